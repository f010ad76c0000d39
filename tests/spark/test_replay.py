"""``headwater replay --runner spark`` prints what it prints in process, line by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.backends.spark.session import SessionHandle
from headwater.cli.main import app

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "auction"


def replay(*options: str, folder: Path = EXAMPLE) -> str:
    files = [str(folder / "queries.sql"), "--input", str(folder / "events.jsonl")]
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


LEVELS = """
CREATE STREAM s (k INT, v INT);
CREATE STREAM a AS SELECT k, SUM(v) AS v FROM s GROUP BY k CONSISTENCY BLOCK 3 REMEMBER 6;
CREATE STREAM b AS SELECT x.k, y.v FROM s x, s y WHERE x.k = y.k CONSISTENCY WEAK REMEMBER 4;
CREATE STREAM c AS SELECT k + v AS w FROM s WHERE v > 1 CONSISTENCY BLOCK 2 REMEMBER UNBOUNDED;
"""


@pytest.mark.usefixtures("session")
def test_every_level_gives_the_same_lines(tmp_path: Path):
    (tmp_path / "queries.sql").write_text(LEVELS, encoding="utf-8")
    times = [i + 5 * (i % 3) for i in range(40)]
    rows = [
        {"stream": "s", "kind": "insert", "start": t, "end": t + 4, "row": {"k": i % 4, "v": i}}
        for i, t in enumerate(times)
    ]
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    lines = replay("--batch", "4", folder=tmp_path)
    assert lines.count('"insert"') > 40
    assert replay("--batch", "4", "--runner", "spark", "--shards", "3", folder=tmp_path) == lines


def test_shards_change_nothing_in_process():
    assert replay("--batch", "3", "--shards", "4") == replay("--batch", "3")
