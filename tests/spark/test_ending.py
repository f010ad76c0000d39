"""The end of Spark under an engine, and of an engine on Spark that is asked twice; each has a Spark of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_ending import interrupted_in_a_tick

PROGRAM = """
import os, signal, sys
import headwater as hw
from pyspark import SparkContext

def run(end):
    with hw.connect("local[2]", checkpoint=sys.argv[1], shards=2, small_tick=-1) as engine:
        engine.sql('''CREATE STREAM bid (auction BIGINT, ts TIMESTAMP)
            SOURCE nexmark('bid', rate => 5000, events => 20000, paced => false, rows_per_tick => 8000)
            ORDERED BY ts DISORDER 1 SECOND''')
        engine.sql("SELECT COUNT(*) AS n FROM bid WINDOW(RANGE 1 SECOND)", name="q").start(hw.sinks.noop())
        if end:
            engine.run_to_end()
            return engine.progress().rows
        while engine.progress().tick < 1:
            engine.wait(0.05)
        os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
        engine.wait(60)

try:
    run(end=False)
except hw.HeadwaterError as problem:
    print(problem.code)
print(run(end=True) > 0)
"""


@pytest.mark.slow
def test_the_jvm_killed_under_an_engine_is_one_message_and_nothing_is_lost(tmp_path: Path):
    """Even in the same process another engine goes on, on a Spark of its own."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "checkpoint")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert ran.stdout.split() == ["SPARK_ENDED", "True"], ran.stderr
    assert "Traceback" not in ran.stderr, ran.stderr


@pytest.mark.slow
def test_a_second_interrupt_ends_a_command_on_spark_at_once(tmp_path: Path):
    status, errors, took = interrupted_in_a_tick(tmp_path, "--master", "local[2]")
    assert status == 130, errors
    assert "Traceback" not in errors
    assert took < 20
    assert not list((tmp_path / "tmp").glob("headwater-*"))
