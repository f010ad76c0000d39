"""Runs of ``headwater replay`` in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app


class Outcome(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def replay(tmp_path: Path) -> Callable[..., Outcome]:
    """``replay(script, lines, *options)``; lines are dicts, or text to be taken as it is."""

    def run(script: str, lines: Sequence[dict[str, Any] | str] = (), *options: str) -> Outcome:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (tmp_path / "script.sql").write_text(script)
        (tmp_path / "events.jsonl").write_text("".join(f"{t}\n" for t in texts))
        arguments = ["replay", str(tmp_path / "script.sql"), "--input", str(tmp_path / "events.jsonl"), *options]
        result = CliRunner().invoke(app, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def command() -> Callable[..., Outcome]:
    """``command("state", folder)``: any command in this process."""

    def run(*arguments: object) -> Outcome:
        result = CliRunner().invoke(app, list(map(str, arguments)))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run
