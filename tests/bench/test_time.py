"""The simulations of time: the rules of the others are theirs, and ours are as much better as we say, on small sizes."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks.time import catch_up, command, learning, silence, sparse
from benchmarks.time.report import Finding, Line
from benchmarks.time.rivals import EMITTED, flink, instants, newest_by, spark, tuned
from benchmarks.time.scoring import NEVER, Heartbeats, late_rows, score
from benchmarks.time.worlds import DELAYS, MILLISECOND, SECOND, START, Rows
from headwater.cli.main import app


def rows_of(*pairs: tuple[float, float]) -> Rows:
    """(sent, arrived) in milliseconds after the start."""
    return Rows.of(*(np.array(column, float) for column in zip(*pairs, strict=True)))


def at_milliseconds(*milliseconds: int) -> np.ndarray:
    return START + np.array(milliseconds, np.int64) * MILLISECOND


def since_start(beats: Heartbeats) -> list[float | None]:
    """In milliseconds; None where nothing is promised."""
    return [None if beat == NEVER else (beat - START) / MILLISECOND for beat in beats.heartbeat.tolist()]


# -- scores -----------------------------------------------------------------------------------------------------------


def test_a_row_that_comes_with_the_promise_is_not_covered_by_it():
    rows = rows_of((10, 100), (10, 101), (11, 101))
    beats = Heartbeats(at_milliseconds(100), at_milliseconds(10))
    assert late_rows(rows, beats).tolist() == [False, True, False]


def test_a_score_tells_late_rows_waits_and_rows_that_are_never_final():
    rows = rows_of((0, 50), (20, 60), (90, 95), (5, 250))
    beats = Heartbeats(at_milliseconds(100, 200), at_milliseconds(0, 30))
    found = score(rows, beats)
    assert (found.rows, found.late, found.stuck) == (4, 1, 1)
    assert found.mean == (100 + 180) / 2


# -- Spark's rule and Flink's -----------------------------------------------------------------------------------------


def test_spark_subtracts_its_delay_from_the_newest_row_of_the_batch_in_whole_milliseconds():
    rows = rows_of((50.9, 60), (20, 110), (250, 260))
    beats = spark({"s": rows}, {"s": 30 * MILLISECOND}, at_milliseconds(100, 200, 300, 400))
    assert since_start(beats) == [20, 20, 220, 220]
    assert late_rows(rows, beats).tolist() == [False, True, False]  # 20 <= 20


def test_spark_counts_an_operator_that_saw_nothing_as_the_year_1970():
    streams = {"a": rows_of((50, 60)), "b": rows_of((150, 160))}
    delays, at = {"a": 0, "b": 0}, at_milliseconds(100, 200)
    assert spark(streams, delays, at).heartbeat.tolist() == [0, START + 50 * MILLISECOND]
    assert since_start(spark(streams, delays, at, policy="max")) == [50, 150]


def test_flink_stays_one_millisecond_behind_and_follows_the_slowest_active_split():
    streams = {"a": rows_of((500, 510), (900, 910)), "b": rows_of((100, 110))}
    bounds, at = {"a": 0, "b": 0}, at_milliseconds(200, 600, 1000)
    assert since_start(flink({"a": streams["a"]}, bounds, at)) == [None, 499, 899]
    assert since_start(flink(streams, bounds, at)) == [None, 99, 99]
    idle = {"b": 300 * MILLISECOND}
    assert since_start(flink(streams, bounds, at, idle=idle)) == [None, 499, 899]


def test_nothing_advances_in_flink_when_all_are_idle():
    streams = {"a": rows_of((500, 510)), "b": rows_of((100, 110))}
    at = at_milliseconds(200, 600, 5000)
    idle = dict.fromkeys(streams, 450 * MILLISECOND)
    found = since_start(flink(streams, {"a": 0, "b": 0}, at, idle=idle))
    assert found[-1] == found[-2]


def test_the_largest_time_by_an_instant_includes_what_comes_at_it():
    rows = rows_of((10, 100), (5, 150))
    assert newest_by(rows, at_milliseconds(99, 100, 200)).tolist() == [NEVER, *at_milliseconds(10, 10).tolist()]


def test_the_constant_in_hindsight_is_the_smallest_that_will_do():
    rows = DELAYS["calm"](1, 30)
    at = instants(rows.end)

    def late_with(delay: int) -> int:
        return int(late_rows(rows, spark({"s": rows}, {"s": delay}, at)).sum())

    found = tuned(late_with, 5)
    assert late_with(found) <= 5 < late_with(found - MILLISECOND)


# -- the simulations --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def silent() -> Finding:
    return silence.run(180)


@pytest.mark.parametrize("clauses", ["", f"{silence.DECLARED} TIMEOUT 5 SECONDS"])
def test_a_source_that_falls_silent_is_final_ten_times_sooner_and_nothing_is_stuck(silent, clauses):
    ours = silent.scores(silence.method(clauses))["stream"]
    assert ours.stuck == 0
    assert ours.late_share < 0.001
    for rival in (silence.BASELINE, "Flink, bound 1 s", "Flink, bound 1 s, idle after 5 s"):
        theirs = silent.scores(rival)["stream"]
        assert theirs.mean > 10 * ours.mean
        assert theirs.stuck > 100


def test_a_warm_up_is_shown_for_what_it_costs(silent):
    warm, default = (silent.scores(silence.method(c))["stream"] for c in (silence.WARM, ""))
    assert warm.mean > 2 * default.mean
    assert warm.stuck == 0


def test_a_sparse_stream_neither_holds_up_the_fast_one_nor_loses_rows():
    found = sparse.run(400)
    for method in (sparse.OURS, sparse.SENT):
        ours = found.scores(method)
        assert ours["fast"].late == ours["sparse"].late == 0
        assert ours["fast"].mean < 350
        assert found.scores(sparse.SPARK_MIN)["join"].mean > 3 * ours["join"].mean
    assert found.scores("Spark max, delays 0.2/10 s")["sparse"].late_share > 0.9
    assert found.scores("Flink, bounds 0.2/10 s, sparse idle after 5 s")["sparse"].late_share > 0.5
    assert found.scores("Flink, bounds 0.2/10 s")["join"].mean > 3 * ours["join"].mean


def test_learned_bounds_are_sooner_where_delays_vary_and_little_later_where_they_do_not():
    found = learning.run(300, kinds=("calm", "regimes"), clauses=("",))
    for kind, least in (("calm", 0.7), ("regimes", 1.5)):
        its = found.scores(learning.method(kind, ""))
        assert its["constant"].late <= its["headwater"].late
        assert its["headwater"].late_share < 0.002
        assert its["constant"].mean > least * its["headwater"].mean


def test_catching_up_makes_nothing_late():
    found = catch_up.run()
    for method in (catch_up.OURS, catch_up.WITH_SENT, "Spark min, delays 1.3 s", "Flink, bounds 1.3 s"):
        assert found.scores(method)["left_side"].late == found.scores(method)["right_side"].late == 0
    for method in (catch_up.BY_WALL_CLOCK, "Spark max, delays 1.3 s", "Spark, as two partitions of one stream"):
        assert found.scores(method)["right_side"].late > 300


def test_rows_are_read_no_faster_than_they_can_be():
    rows = rows_of(*((n, n) for n in range(0, 1000, 10)))
    at = instants(rows.end, tail=SECOND)
    read, drained = catch_up._read(rows, at, 4)
    assert np.bincount(np.searchsorted(at, read.arrival), minlength=len(at)).max() == 4
    assert (drained <= at).all()
    assert drained[0] == rows.arrival[4] - 1
    assert drained[-1] == rows.arrival[len(read)] - 1  # it has not caught up
    assert catch_up._read(rows, at, 20)[1][-1] == at[-1]


# -- what is printed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("markdown", [True, False])
def test_every_line_is_printed(monkeypatch, markdown):
    numbers = score(rows_of((0, 50)), Heartbeats(at_milliseconds(100), at_milliseconds(0)))
    findings = [
        Finding(f"case {n}", ("method", "mean"), (Line("Headwater", {"s": numbers}, (f"{n}7",)),), (f"note {n}",))
        for n in range(2)
    ]
    monkeypatch.setattr(command, "simulate", lambda: findings)
    text = io.StringIO()
    command.run(Console(file=text, width=120), markdown=markdown, command="headwater bench time")
    shown = text.getvalue()
    for part in ("case 0", "case 1", "07", "17", "note 0", "note 1"):
        assert part in shown
    assert ("| Headwater | 07 |" in shown) == markdown
    assert ("headwater bench time" in shown) == markdown


def test_the_command_prints_the_simulations(monkeypatch):
    monkeypatch.setattr(command, "simulate", lambda: [catch_up.run(30, outage=(5, 8))])
    found = CliRunner().invoke(app, ["bench", "time", "--markdown"])
    assert found.exit_code == 0, found.output
    assert "### catching up after 3 s of outage" in found.output
    assert f"| {catch_up.OURS} | 420 | 0 | 0 |" in found.output


def test_flink_speaks_every_fifth_of_a_second():
    assert np.diff(instants(START + SECOND, EMITTED, tail=0)).tolist() == [200 * MILLISECOND] * 4
