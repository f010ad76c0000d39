"""The driver of Spark is killed, a task fails, a Python worker dies: nothing is lost, nothing comes twice.

The market of ``tests/engine`` runs on Spark, a job for every tick; what it comes to is what an undisturbed run in one
process comes to, tick by tick.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "engine")]

from engine_market import answers, by_tick, diverted, garbage, open_market, run_market, state  # noqa: E402
from tests.crash import ANY_POINT, Crash, in_child  # noqa: E402

import headwater as hw  # noqa: E402
from headwater.backends.spark.session import SessionHandle  # noqa: E402
from headwater.backends.spark.ship import modules  # noqa: E402
from headwater.errors import HeadwaterError, StateError  # noqa: E402
from headwater.runtime import points  # noqa: E402
from headwater.testing.cases import fresh, scaled  # noqa: E402

STEPS = 3
SPARK = {"runner": "spark", "master": "local[2]", "shards": 2, "small_tick": 0, "steps": STEPS, "apart": True}


def run_on_spark(folder: Path, *, dies_after: float | None = None, **options: Any) -> None:
    """The market on a Spark of its own; it may die some seconds after all queries run."""
    options = SPARK | options
    steps, apart, end = options.pop("steps"), options.pop("apart"), options.pop("end", True)
    if dies_after is not None:
        _die_once_running(folder, dies_after)
    run_market(folder, steps=steps, apart=apart, end=end, **options)


def _die_once_running(folder: Path, seconds: float) -> None:
    import engine_market

    opened = engine_market.open_market

    def open_and_die(*args: Any, **options: Any) -> Any:
        engine = opened(*args, **options)
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return engine

    engine_market.open_market = open_and_die


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    run_market(folder, steps=STEPS, apart=True)
    return outcome(folder)


def outcome(folder: Path) -> dict[str, Any]:
    return {"answers": by_tick(answers(folder)), "diverted": diverted(folder), "state": state(folder)}


def check(folder: Path, undisturbed: dict[str, Any]) -> None:
    found = outcome(folder)
    for what, expected in undisturbed.items():
        assert found[what] == expected, what


@pytest.mark.slow
def test_a_run_on_spark(tmp_path: Path, undisturbed: dict[str, Any]):
    in_child(run_on_spark, tmp_path).result()
    check(tmp_path, undisturbed)
    assert garbage(tmp_path) == []


# -- the driver -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_driver_is_killed_at_every_named_moment(tmp_path: Path, undisturbed: dict[str, Any]):
    """One after the other, each in a later tick than the last; two of them from within a task."""
    crashes = [
        Crash(points.BEFORE_THE_JOB),
        Crash(points.IN_A_SENDER, 2, how="kill the driver"),
        Crash(points.IN_A_STAGE, 3, how="kill the driver"),
        Crash(points.AFTER_THE_SEGMENTS, 2),
        Crash(points.BEFORE_THE_MANIFEST, 2),
        Crash(points.AFTER_THE_MANIFEST, 2),
        Crash(points.IN_A_SINK + "busy"),
        Crash(points.AFTER_THE_SINKS),
    ]
    for crash in crashes:
        ended = in_child(run_on_spark, tmp_path, crash=crash)
        assert ended.killed or ended.error is not None or crash is crashes[-1], crash
        if not ended.killed:
            ended.result()
    in_child(run_on_spark, tmp_path).result()
    check(tmp_path, undisturbed)


@pytest.mark.slow
def test_the_driver_is_killed_while_answers_wait_to_go_out_together(tmp_path: Path, undisturbed: dict[str, Any]):
    crashes = [
        Crash(points.AFTER_THE_SINKS),
        Crash(points.TOGETHER_IN_A_SINK + "busy"),
        Crash(points.AFTER_TOGETHER + "early"),
        Crash(points.AGAIN_IN_A_SINK + "large"),
    ]
    killed = [in_child(run_on_spark, tmp_path, crash=crash, together=3600).killed for crash in crashes]
    assert killed == [True] * len(crashes)
    in_child(run_on_spark, tmp_path, together=3600).result()
    assert _rows(answers(tmp_path)) == _rows_by_query(undisturbed["answers"])
    assert garbage(tmp_path) == []


def _rows(found: dict[str, Any]) -> dict[str, list[str]]:
    """By query, wherever they are."""
    return {query: sorted(row for rows in files.values() for row in rows) for query, files in found.items()}


def _rows_by_query(ticks: dict[Any, list[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for (query, _), rows in ticks.items():
        found.setdefault(query, []).extend(rows)
    return {query: sorted(rows) for query, rows in found.items()}


def read_a_frame(folder: Path) -> None:
    """A stream that Spark reads by itself, and brings again what it has not noted."""
    with hw.connect("local[2]", shards=2, small_tick=0, checkpoint=folder / "checkpoint") as engine:
        frame = engine._backend.spark.readStream.schema("at BIGINT").parquet(str(folder / "in"))
        engine.register("s", frame, time="at", disorder=0)
        engine.sql("SELECT COUNT(*) AS n FROM s", name="counts").start(hw.sinks.parquet(folder / "answers" / "counts"))
        engine.run_to_end(end_streams=False)
        assert engine._core.manifest.counts["s"] == {"rows": 3, "late": 0, "bad": 0}


@pytest.mark.slow
def test_the_driver_is_killed_before_spark_notes_its_batch(tmp_path: Path):
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"at": pa.array([1, 2, 3], pa.int64())}), tmp_path / "in" / "1.parquet")
    assert in_child(read_a_frame, tmp_path, crash=Crash(points.BEFORE_SPARKS_COMMIT)).killed
    in_child(read_a_frame, tmp_path).result()


KILLS = 10
"""So many at least, however few cases are asked for."""
QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""Compiled quickly: a Java that is killed after some seconds need not be fast."""


@pytest.mark.slow
def test_the_driver_is_killed_by_chance(tmp_path: Path, undisturbed: dict[str, Any]):
    """Again and again until it has come to the end; then the next one begins.

    By the clock, so wherever it is (in a job, between two ticks, while Spark commits, while queries go on), and at named
    moments, of the driver or of a task.
    """
    wanted = max(KILLS, scaled(2 * KILLS))
    dice, kills, folder, whole = random.Random(fresh(0)), 0, tmp_path / "0", 0
    while True:
        options: dict[str, Any] = {"small_tick": dice.choice([0, 0, 50_000]), "config": QUICK_START}
        if kills < wanted and dice.random() < 0.5:
            options["dies_after"] = dice.uniform(0.1, 6)
        elif kills < wanted:
            options["crash"] = Crash(ANY_POINT, dice.randint(1, 40), how="kill the driver")
        ended = in_child(run_on_spark, folder, **options)
        kills += ended.killed
        if not ended.killed:
            assert ended.result() is None
            check(folder, undisturbed)
            whole += 1
            if kills >= wanted:
                break
            folder = tmp_path / str(whole)
    assert kills >= wanted


def run_and_tell(folder: Path) -> None:
    """Writes down which process Java is."""
    with open_market(folder, **{k: SPARK[k] for k in ("runner", "master", "shards", "small_tick")}) as engine:
        spark = engine._backend.spark
        (folder / "java").write_text(str(spark.sparkContext._gateway.proc.pid))
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_nothing_stays_behind_of_a_killed_driver(tmp_path: Path):
    assert in_child(run_and_tell, tmp_path).killed
    try:
        java = os.pidfd_open(int((tmp_path / "java").read_text()))
    except ProcessLookupError:
        return
    ended, _, _ = select.select([java], [], [], 60)
    os.close(java)
    assert ended


# -- tasks ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("how", ["raise", "kill"])
def test_a_task_that_fails_is_tried_again(how: Any, tmp_path: Path, undisturbed: dict[str, Any]):
    """With an error of its own, and because its Python process is killed. What it wrote before is garbage."""
    marker = tmp_path / "failed once"
    crash = Crash(points.IN_A_TASK, 1, how=how, once=str(marker))
    in_child(run_on_spark, tmp_path / "market", crash=crash, master="local[2,4]").result()
    assert marker.exists()
    check(tmp_path / "market", undisturbed)


@pytest.mark.parametrize(
    ("fault", "code", "told"),
    [
        ("fail", "EXPRESSION_FAILED", "a failure on purpose"),
        ("kill", "TICK_FAILED", "A Python worker exited unexpectedly"),
    ],
)
def test_a_task_that_fails_for_good(fault: str, code: str, told: str, session: SessionHandle, tmp_path: Path):
    """The tick is not committed and says why; a new engine goes on as if nothing had been."""
    modules(session.spark, [Path(__file__).parent])
    (tmp_path / "in").mkdir()
    pq.write_table(
        pa.table({"at": pa.array([1, 2], pa.int32()), "x": pa.array([10, 20], pa.int32())}), tmp_path / "in/1.parquet"
    )
    (tmp_path / "armed").touch()
    with fragile(session, tmp_path, fault) as engine:
        with pytest.raises(HeadwaterError) as failure:
            engine.run_to_end()
        assert failure.value.code == code
        assert told in str(failure.value)
        assert engine._core.manifest.tick == 0
    (tmp_path / "armed").unlink()
    with fragile(session, tmp_path, fault) as engine:
        engine.run_to_end()
    assert answers(tmp_path, by_file=False) == {
        "sums": sorted(f"{{'s': {s}, '_start': {a}, '_end': {b}}}" for s, a, b in ((10, 1, 2), (30, 2, 6), (20, 6, 7)))
    }


def fragile(session: SessionHandle, folder: Path, fault: str) -> hw.Engine:
    """An engine with a function that fails while there is a file."""
    engine = hw.connect(spark=session.spark, checkpoint=folder / "checkpoint", small_tick=-1)
    engine.sql(f"""
        CREATE FUNCTION fragile(x INT, folder STRING) RETURNS INT AS 'crash_functions:{fault}';
        CREATE STREAM event (at INT, x INT) SOURCE parquet('{folder}/in') ORDERED BY at IN ORDER;
    """)
    query = engine.sql(f"SELECT SUM(fragile(x, '{folder}')) AS s FROM event WINDOW(RANGE 5)", name="sums")
    query.start(hw.sinks.parquet(folder / "answers" / "sums"))
    return engine


@pytest.mark.slow
def test_a_damaged_segment_is_named(tmp_path: Path):
    """Also when it is a task that reads it."""
    in_child(run_on_spark, tmp_path, steps=1, end=False).result()
    names = []
    for path in (tmp_path / "checkpoint" / "segments").iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        names.append(path.name)
    error = in_child(run_on_spark, tmp_path).error
    assert isinstance(error, StateError)
    assert error.code == "STATE_DAMAGED"
    assert any(name in str(error) for name in names)
