"""How commands and programs end: when asked to, at once when asked twice, and without a mess."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import headwater as hw
from headwater.runtime import temporary
from headwater.runtime.core import Core

MAIN = "from headwater.cli.main import main; main()"
FUNCTION = """
import threading
from pathlib import Path

def stuck(x):
    (Path(__file__).parent / "begun").touch()
    threading.Event().wait()
"""
SCRIPT = """
CREATE FUNCTION stuck(x BIGINT) RETURNS BIGINT AS 'slow_function:stuck';
CREATE STREAM s (x BIGINT, at INT) SOURCE json('in') ORDERED BY at;
SELECT SUM(stuck(x)) AS n FROM s WINDOW(RANGE 5);
"""


def interrupted_in_a_tick(place: Path, *options: str) -> tuple[int, str, float]:
    """A command in whose tick nothing goes on any more is interrupted again and again: status, errors, seconds."""
    (place / "in").mkdir()
    (place / "in" / "1.json").write_text('{"x": 1, "at": 1}\n')
    (place / "slow_function.py").write_text(FUNCTION)
    (place / "s.sql").write_text(SCRIPT)
    command = [sys.executable, "-c", MAIN, "run", str(place / "s.sql"), "--sink", "noop", *options]
    environment = {**os.environ, "TMPDIR": str(place / "tmp"), "PYTHONPATH": os.pathsep.join([str(place), *sys.path])}
    (place / "tmp").mkdir()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as run:
        try:
            end = time.monotonic() + 60
            while not (place / "begun").exists() and run.poll() is None:
                assert time.monotonic() < end, "it has not begun"
                time.sleep(0.05)
            began = time.monotonic()
            while run.poll() is None and time.monotonic() < began + 30:
                run.send_signal(signal.SIGINT)
                time.sleep(0.3)
            took = time.monotonic() - began
        finally:
            run.kill()
        assert run.stderr is not None
        return run.wait(), run.stderr.read(), took


def test_a_second_interrupt_ends_a_command_at_once(tmp_path: Path):
    status, errors, took = interrupted_in_a_tick(tmp_path, "--runner", "inprocess")
    assert status == 130, errors
    assert "ended at once" in errors
    assert "Traceback" not in errors
    assert took < 10
    assert not list((tmp_path / "tmp").glob("headwater-*"))


UNCLOSED = """
import headwater as hw
engine = hw.connect(runner="inprocess")
engine.sql("CREATE STREAM s (x BIGINT, at INT) ORDERED BY at IN ORDER TIMEOUT 1 SECOND")
run = engine.sql("SELECT x * 2 AS y FROM s WHERE x > 0").start()
engine.push("s", [{"x": 1, "at": 1}])
"""


def test_a_program_that_closes_nothing_ends_without_a_word():
    """DuckDB used to list what the engine's thread still held, in some sixty lines."""
    ran = subprocess.run([sys.executable, "-c", UNCLOSED], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_folder_that_a_task_brings_back_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A task that was told to stop may write once more after its engine was closed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    core = Core(shards=1, durable=True)
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("headwater-")
    core.close()
    assert not folder.exists()
    (folder / "segments").mkdir(parents=True)
    (folder / "segments" / "late.arrow").touch()
    temporary.remove_all()
    assert not list(tmp_path.iterdir())


def test_many_engines_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for _ in range(20):
        with hw.connect(runner="inprocess") as engine:
            engine.sql("CREATE STREAM s (x BIGINT, at INT) ORDERED BY at IN ORDER TIMEOUT 1 SECOND")
            engine.sql("SELECT SUM(x) AS y FROM s WINDOW(RANGE 5)").start()
            engine.push("s", [{"x": 1, "at": 1}])
    assert not list(tmp_path.iterdir())
