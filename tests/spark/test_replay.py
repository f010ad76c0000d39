"""``headwater replay --runner spark`` prints what it prints in process, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.runtime.spark.session import SessionHandle

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "auction"


def replay(*options: str) -> str:
    files = [str(EXAMPLE / "queries.sql"), "--input", str(EXAMPLE / "events.jsonl")]
    result = CliRunner().invoke(app, ["replay", *files, *options])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.mark.parametrize(
    ("shards", "options"),
    [
        ("2", ["--consistency", "strong"]),
        ("5", ["--consistency", "middle", "--batch", "20"]),
        ("3", ["--history"]),
    ],
)
def test_the_lines_are_the_same(session: SessionHandle, shards: str, options: list[str]):
    lines = replay(*options)
    assert lines
    assert replay(*options, "--runner", "spark", "--shards", shards) == lines
    assert session.spark.range(3).count() == 3, "a Spark that was there before is left as it was"


def test_shards_change_nothing_in_process():
    assert replay("--batch", "3", "--shards", "4") == replay("--batch", "3")
