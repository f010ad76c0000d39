"""What must hold of the clock whatever the bounds and the rows are (digest 12.7, 12.8)."""

from __future__ import annotations

import itertools
import json
import pickle
import random

import pytest
from attrs import evolve
from tests.clock.worlds import heartbeats, random_matrix, rules_from, rules_of_sql, seen, seen_of

from headwater.clock.bounds import Bound, RowBound
from headwater.clock.clock import Clock
from headwater.clock.progress import Progress
from headwater.clock.rules import Rules, StreamRules
from headwater.clock.seen import Seen
from headwater.model.time import BEGINNING, INFINITY

SEEDS = range(25)

Script = list[tuple[int, list[tuple[int, int]]]]


def _world(seed: int, *, ticks: int = 60, timeout: bool = True) -> tuple[Rules, Script]:
    """Any rules and any rows, late ones too."""
    dice = random.Random(seed)
    n = dice.randint(1, 3)
    matrix = random_matrix(dice, n, delay=6, lag=9, share=0.7)
    more = {"timeout": dice.choice([None, 9]) if timeout else None}
    rules = rules_from(matrix, [dice.randint(0, 4) for _ in range(n)], ordered=dice.random() < 0.4, **more)
    instants = sorted(dice.sample(range(3 * ticks), ticks))
    script = [
        (now, [(dice.randrange(n), now + dice.randint(-12, 3)) for _ in range(dice.choice([0, 0, 1, 4]))])
        for now in instants
    ]
    return rules, script


def _steps(clock: Clock, script: Script) -> list[Clock]:
    found = []
    for now, rows in script:
        clock = clock.after(seen(rows, clock), now, together=[clock.rules.streams.keys()])
        found.append(clock)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_frontiers_never_go_back(seed):
    rules, script = _world(seed)
    values = [heartbeats(clock, lowest=-100) for clock in _steps(Clock.of(rules), script)]
    assert all(a <= b for before, after in itertools.pairwise(values) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_one_big_advance_is_many_small_ones(seed):
    rules, script = _world(seed, timeout=False)
    clocks = _steps(Clock.of(rules), script)
    dense = [(now, dict(script).get(now, [])) for now in range(script[0][0], script[-1][0] + 1)]
    by_instant = dict(zip((now for now, _ in dense), _steps(Clock.of(rules), dense), strict=True))
    assert [heartbeats(c) for c in clocks] == [heartbeats(by_instant[now]) for now, _ in script]


@pytest.mark.parametrize("seed", SEEDS)
def test_silence_may_be_one_tick_or_many(seed):
    rules, script = _world(seed, ticks=20)
    for clock in _steps(Clock.of(rules), script):
        slow, streams = clock, [rules.streams.keys()]
        for now in range(script[-1][0], script[-1][0] + 25):
            slow = slow.after({}, now, together=streams)
            assert heartbeats(clock.after({}, now, together=streams)) == heartbeats(slow)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tick_may_be_cut_and_shuffled(seed):
    rules, script = _world(seed, timeout=False)
    dice, whole, cut = random.Random(seed), Clock.of(rules), Clock.of(rules)
    for now, rows in script:
        whole = whole.after(seen(rows, whole), now)
        shuffled = dice.sample(rows, len(rows))
        pieces = [shuffled[::2], shuffled[1::2]]
        judge = cut
        for piece in pieces:  # both were judged before the tick
            cut = cut.after(seen(piece, judge), now)
        assert heartbeats(cut) == heartbeats(whole)
        assert [cut.newest(s) for s in rules.streams] == [whole.newest(s) for s in rules.streams]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_several_tasks_saw_is_what_one_would_have_seen(seed):
    rules, script = _world(seed)
    one, several = Clock.of(rules), Clock.of(rules)
    for now, rows in script:
        parts: dict[str, list[Seen]] = {}
        for row in rows:
            for name, its in seen([row], several).items():
                parts.setdefault(name, []).extend(its)
        one, several = one.after(seen(rows, one), now), several.after(parts, now)
        assert several == one


@pytest.mark.parametrize("seed", SEEDS)
def test_later_stamps_never_raise_a_frontier_sooner(seed):
    rules, script = _world(seed, timeout=False)
    dice = random.Random(seed)
    prompt, delayed = Clock.of(rules), Clock.of(rules)
    waiting: list[tuple[int, int]] = []
    for now, rows in script:
        prompt = prompt.after(seen(rows, prompt), now)
        waiting += rows
        taken = waiting if dice.random() < 0.5 else []
        waiting = [] if taken else waiting
        delayed = delayed.after(seen(taken), now, drained=dict.fromkeys(rules.streams, now if not waiting else -1))
        assert all(a <= b for a, b in zip(heartbeats(delayed), heartbeats(prompt), strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_redundant_bound_changes_nothing(seed):
    rules, script = _world(seed)
    dice = random.Random(seed)
    entries = {(n, n): r.own for n, r in rules.streams.items()} | dict(rules.bounds)
    entry, bounds = dice.choice([(e, b) for e, b in sorted(entries.items()) if b])
    weaker = (*bounds, Bound(bounds[-1].after + dice.randint(0, 3), bounds[-1].lag + dice.randint(0, 3)))
    if entry[0] == entry[1]:
        more = evolve(rules, streams={**rules.streams, entry[0]: evolve(rules.streams[entry[0]], own=weaker)})
    else:
        more = evolve(rules, bounds={**rules.bounds, entry: weaker})
    pairs = zip(_steps(Clock.of(rules), script), _steps(Clock.of(more), script), strict=True)
    assert all(heartbeats(a) == heartbeats(b) for a, b in pairs)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_restored_clock_goes_on_as_if_nothing_had_happened(seed):
    rules, script = _world(seed)
    clocks = _steps(Clock.of(rules), script)
    for crash in (0, len(script) // 2, len(script) - 1):
        kept = json.loads(json.dumps(clocks[crash].to_manifest()))
        restored = Clock.from_manifest(kept, rules)
        assert restored == clocks[crash] == pickle.loads(pickle.dumps(restored))
        assert _steps(restored, script[crash + 1 :]) == clocks[crash + 1 :]


@pytest.mark.parametrize("seed", SEEDS)
def test_lost_staircases_delay_and_never_falsify(seed):
    rules, script = _world(seed)
    clocks = _steps(Clock.of(rules), script)
    crash = len(script) // 2
    lost = {name: _without_raises(p) for name, p in clocks[crash].progress.items()}
    poorer = _steps(evolve(clocks[crash], progress=lost), script[crash + 1 :])
    for after, before in zip(poorer, clocks[crash + 1 :], strict=True):
        assert all(a <= b for a, b in zip(heartbeats(after), heartbeats(before), strict=True))
    assert all(a >= b for a, b in zip(heartbeats(poorer[-1]), heartbeats(clocks[crash]), strict=True))


def _without_raises(progress: Progress) -> Progress:
    parts = tuple((name, track.without_raises()) for name, track in progress.parts)
    return evolve(progress, floor=progress.floor.without_raises(), parts=parts)


def test_estimated_streams_are_restored_too():
    rules = rules_of_sql("CREATE STREAM s0 (ts TIMESTAMP) ORDERED BY ts;")
    dice, clock, twin = random.Random(1), Clock.of(rules), Clock.of(rules)
    raised = 0
    for tick in range(80):
        now = tick * 100_000
        rows = [(0, now - dice.randint(0, 300_000)) for _ in range(30)]
        clock, before = clock.after(seen(rows, clock), now), clock
        twin = Clock.from_manifest(json.loads(json.dumps(twin.to_manifest())), rules).after(seen(rows, twin), now)
        assert twin == clock
        raised += clock.frontier("s0") > before.frontier("s0")
    assert raised > 20
    assert clock.reason("s0") == "HEARTBEAT ESTIMATED"
    assert clock.describe("s0")[0].estimated_delta is not None


# -- streams come, go and are altered ---------------------------------------------------------------------------------


def _one(own: list[tuple[int, int]], **more) -> Rules:
    return rules_from({(0, 0): own}, [0], **more)


def test_a_tighter_bound_keeps_what_is_to_come_and_counts_for_the_newest_row():
    clock = Clock.of(_one([(5, 3)])).after(seen([(0, 100)]), 0)
    clock = clock.with_rules(_one([(5, 3), (2, 8)])).after({}, 1)
    assert heartbeats(clock) == [-1]
    assert heartbeats(clock.after({}, 2)) == [92]
    assert heartbeats(clock.after({}, 5)) == [97]


def test_a_looser_bound_discards_what_is_to_come_and_keeps_what_was_promised():
    clock = Clock.of(_one([(0, 9), (5, 3)])).after(seen([(0, 100)]), 0)
    assert heartbeats(clock) == [91]
    clock = clock.with_rules(_one([(0, 20), (5, 7)]))
    assert heartbeats(clock.after({}, 5)) == [93]
    assert heartbeats(clock.after(seen([(0, 105)]), 1)) == [91]
    assert heartbeats(clock.after(seen([(0, 120)]), 1)) == [100]


def test_a_longer_latency_discards_what_is_to_come():
    clock = Clock.of(rules_from({(0, 0): [(0, 1)]}, [3])).after(seen([(0, 50)]), 0)
    slower = clock.with_rules(rules_from({(0, 0): [(0, 1)]}, [8]))
    assert heartbeats(clock.after({}, 3)) == [49]
    assert heartbeats(slower.after({}, 7)) == [-1]
    assert heartbeats(slower.after({}, 8)) == [49]


def test_streams_come_and_go():
    one = "CREATE STREAM s0 (t BIGINT) ORDERED BY t IN ORDER;"
    first, script = rules_of_sql(one), one + "CREATE STREAM s1 (t BIGINT) ORDERED BY t LAGS s0 BY AT MOST 4;"
    clock = Clock.of(first).after({"s0": [seen_of([10])]}, 0)
    clock = clock.with_rules(rules_of_sql(script))
    assert clock.frontier("s1") == BEGINNING
    clock = clock.after({"s0": [seen_of([20])]}, 1)
    assert (clock.frontier("s0"), clock.frontier("s1")) == (20, 16)
    assert clock.reason("s1") == "LAGS s0 BY AT MOST 4"
    alone = clock.with_rules(first)
    assert set(alone.progress) == {"s0"}
    assert alone.frontier("s0") == 20


def test_partitions_are_told_apart_only_from_the_change_on():
    watermark = rules_of_sql("CREATE STREAM s0 (t BIGINT) ORDERED BY t WATERMARK FOR t AS t - 5;")
    declared = rules_of_sql("CREATE STREAM s0 (t BIGINT) ORDERED BY t DISORDER 5;")
    clock = Clock.of(watermark).after({"s0": [seen_of([50], partition="a"), seen_of([20], partition="b")]}, 0)
    assert clock.frontier("s0") == 46
    clock = clock.with_rules(declared)
    assert clock.frontier("s0") == 46
    clock = clock.after({"s0": [seen_of([60], 46, partition="a")]}, 1)
    assert clock.frontier("s0") == 55
    clock = clock.after({"s0": [seen_of([20, 56], 55, partition="b")]}, 2)
    assert (clock.frontier("s0"), clock.late("s0")) == (55, {"DISORDER 5": 1})


# -- small things -----------------------------------------------------------------------------------------------------


def test_an_ended_stream_is_complete():
    clock = Clock.of(_one([(0, 1)])).after(seen([(0, 5)]), 0, ended=["s0"])
    assert clock.frontier("s0") == INFINITY
    assert Clock.of(_one([(0, 1)])).ended("s0").after({}, 3).frontier("s0") == INFINITY


def test_the_wall_clock_does_not_step_back():
    clock = Clock.of(_one([(5, 1)])).after(seen([(0, 5)]), 100)
    assert clock.after({}, 40).now == 100


def test_the_newest_time_of_an_earlier_instant_is_never_too_new():
    dice, clock = random.Random(4), Clock.of(_one([(0, 50)]))
    history, newest = [], BEGINNING
    for now in range(0, 4_000, 3):
        ts = now + dice.randint(-5, 5)
        clock = clock.after(seen([(0, ts)], clock), now)
        newest = max(newest, ts)
        history.append((now, newest))
    assert len(clock.progress["s0"].ring) <= 256
    for now, known in history:
        assert clock.newest_at("s0", now) <= known
    assert [clock.newest_at("s0", now) for now, _ in history[-100:]] == [known for _, known in history[-100:]]
    assert clock.newest_at("s0", -1) == BEGINNING
    assert clock.newest_at("s0", history[-500][0]) >= history[-600][1]


def test_late_rows_are_counted_by_the_bound_that_they_violate():
    rules = rules_of_sql("""
        CREATE STREAM a (t BIGINT) ORDERED BY t DISORDER 2;
        CREATE STREAM b (t BIGINT) ORDERED BY t DISORDER 90 LAGS a BY AT MOST 5;
    """)
    clock = Clock.of(rules).after({"a": [seen_of([100])]}, 0)
    clock = clock.after({"b": [seen_of([10, 96], clock.frontier("b"))], "a": [seen_of([97], clock.frontier("a"))]}, 1)
    assert clock.late("b") == {"LAGS a BY AT MOST 5": 1}
    assert clock.late("a") == {"DISORDER 2": 1}
    assert clock.describe("b")[0].late_rows == 1


def test_rows_that_arrive_while_a_tick_is_put_together_are_no_backlog():
    rules = rules_from({(0, 0): [(0, 1)], (0, 1): [(0, 5)]}, [0, 0])
    clock = Clock.of(rules).after({}, 10, drained={"s0": 8, "s1": 9})
    clock = clock.after(seen([(0, 100)]), 20, drained={"s0": 18, "s1": 19})
    assert not clock.progress["s1"].behind
    assert heartbeats(clock) == [-1, -1]
    assert heartbeats(clock.after({}, 30, drained={"s0": 20, "s1": 20})) == [99, 95]
    behind = clock.after(seen([(0, 110)]), 30, drained={"s0": 30, "s1": 19})
    assert behind.progress["s1"].behind
    assert heartbeats(behind) == [109, -1]


def test_rows_that_are_stamped_on_arrival_are_never_late():
    rules = Rules(streams={"s0": StreamRules(name="s0", has_time=False, stamped=True)})
    clock = Clock.of(rules).after({"s0": [seen_of([50])]}, 50)
    assert (clock.frontier("s0"), clock.reason("s0")) == (51, "the wall clock")
    assert clock.after({}, 60).frontier("s0") == 61


def test_rows_count_only_if_they_arrived_when_counting_had_begun():
    """The stamp of a tick is later than the arrival of its rows: a stamp after the instant alone proves nothing."""
    rules = rules_from({}, [3, 3], ordered=True)
    rules = evolve(rules, row_bounds={("s0", "s1"): (RowBound(1, 0),)})
    clock = Clock.of(rules).after(seen([(0, 10)]), 0)
    clock = clock.after(seen([(1, 4)]), 10)
    assert heartbeats(clock)[1] == -1, "it may have been there at 2, and have been sent before"
    assert heartbeats(clock.after(seen([(1, 5)]), 20))[1] == 10


def test_late_rows_say_something_of_other_streams():
    rules = rules_from({(0, 0): [(0, 1)], (0, 1): [(0, 1)]}, [0, 0], ordered=True)
    clock = Clock.of(rules).after({"s0": [Seen("", BEGINNING, INFINITY, 0, promise=100)]}, 0)
    clock = clock.after(seen([(0, 50)], clock), 1)
    assert heartbeats(clock) == [99, 49]
    assert clock.late("s0") == {"the source's heartbeat": 1}


def test_nobody_is_held_back_before_anything_has_come():
    clock = Clock.of(rules_from({(0, 0): [(0, 1)], (1, 1): [(0, 1)]}, [0, 0]))
    assert clock.blocked_by(["s0", "s1"]) == ()
    assert clock.after(seen([(0, 5)]), 0).blocked_by(["s0", "s1"]) == ("s1",)
