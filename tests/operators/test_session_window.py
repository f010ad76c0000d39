"""Session windows: tables by hand, what goes out when, and random streams against the definition."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.algebra import nodes as n
from headwater.model.delta import Delta
from headwater.model.element import Stable
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.rows.split import SplitOperator
from headwater.operators.windows.session_window import SessionWindowOperator
from headwater.runtime.stepping import by_hand
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.timeline import changes, history, timeline

ONE = Schema.of(x="STRING")
PAIR = Schema.of(k="BIGINT", v="STRING")
WIDE = Schema.of(v="STRING", k="STRING", j="INT")
ENDS = {"start": "window_start", "end": "window_end", "time": pa.int64()}
FORMS = pytest.mark.parametrize("speculative", [False, True], ids=["strong", "speculative"])


def session(schema, gap, partition=(), *, speculative, **ends):
    return SessionWindowOperator(schema, gap, partition, speculative=speculative, **(ENDS | ends))


def windowed(schema):
    return Schema((*schema.fields, *Schema.of(window_start="BIGINT", window_end="BIGINT").fields))


class Harness:
    """One operator over a timeline: every stable point ends a tick."""

    def __init__(self, schema, gap, partition=(), *, speculative, store=None):
        self.schema = schema
        self.operator = session(schema, gap, partition, speculative=speculative)
        self.state = self.operator.new_state(store or MemoryStore())
        self.validator = StreamValidator(self.operator.schema)
        self.frontier = BEGINNING
        self.out = []

    def tick(self, rows, frontier=None, reached=BEGINNING):
        """What comes of a timeline (or a delta), as text."""
        delta = changes(timeline(rows, self.schema), self.schema) if isinstance(rows, str) else rows
        self.frontier = self.frontier if frontier is None else frontier
        step = self.operator.step(self.state, (delta,), (self.frontier,), reached)
        self.validator.check_delta(step.delta, step.frontier)
        self.promised = step.frontier
        self.out.append(step.delta)
        return sorted(
            f"{'/'.join(map(str, row))} {start}-{'' if end == INFINITY else end}:{weight:+d}"
            for row, start, end, weight in step.delta.consolidate().rows()
        )

    def run(self, text):
        """The history of the whole timeline."""
        arrived = []
        for element in [*timeline(text, self.schema), Stable(INFINITY)]:
            if isinstance(element, Stable):
                self.tick(changes(arrived, self.schema), element.at)
                arrived = []
            else:
                arrived.append(element)
        assert (self.state.rows, self.state.bytes, self.state.segments()) == (0, 0, [])
        return History.of(self.operator.schema, self.out)


B = f"~{BEGINNING}"


@FORMS
@pytest.mark.parametrize(
    ("gap", "given", "expected"),
    [
        pytest.param(4, "a @1, b @3, c @9", "a/1/7 7-, b/1/7 7-, c/9/13 13-", id="two sessions"),
        pytest.param(4, "a @1, b @5", "a/1/9 9-, b/1/9 9-", id="a row exactly a gap later continues"),
        pytest.param(4, "a @1, ~5, b @5", "a/1/9 9-, b/1/9 9-", id="also when the frontier has come to the end"),
        pytest.param(4, "a @1, b @6", "a/1/5 5-, b/6/10 10-", id="a row after the gap begins another"),
        pytest.param(4, f"a @1, b @9, {B}, c @5", "a/1/13 13-, b/1/13 13-, c/1/13 13-", id="a late row joins two"),
        pytest.param(4, f"a @1, b @9, {B}, c @4", "a/1/8 8-, c/1/8 8-, b/9/13 13-", id="a late row joins one"),
        pytest.param(4, f"b @9, {B}, a @6", "a/6/13 13-, b/6/13 13-", id="a late row begins it earlier"),
        pytest.param(4, f"a @1, c @5, b @9, {B}, c 5-6>5", "a/1/5 5-, b/9/13 13-", id="a retraction splits a session"),
        pytest.param(4, f"a @1, b @5, {B}, b 5-6>5", "a/1/5 5-", id="a retraction shortens a session"),
        pytest.param(4, f"a @1, b @5, {B}, a 1-2>1", "b/5/9 9-", id="a retraction begins it later"),
        pytest.param(4, f"a @1, b @1, c @5, {B}, b 1-2>1", "a/1/9 9-, c/1/9 9-", id="another row holds the place"),
        pytest.param(4, f"a @1, {B}, a 1-2>1", "", id="a retraction takes all"),
        pytest.param(
            2, f"a @1, b @3, c @5, d @7, {B}, b 3-4>3, c 5-6>5", "a/1/3 3-, d/7/9 9-", id="two retractions at once"
        ),
        pytest.param(4, "a*2 @1, a @3", "a/1/7 7-, a/1/7 7-, a/1/7 7-", id="duplicates"),
        pytest.param(4, f"a*2 @1, {B}, a 1-2>1", "a/1/5 5-", id="one copy goes"),
        pytest.param(4, "a @-9, b @-6, c @-1", "a/-9/-2 -2-, b/-9/-2 -2-, c/-1/3 3-", id="before zero"),
        pytest.param(1, "a @1, a @2, a @4", "a/1/3 3-, a/1/3 3-, a/4/5 5-", id="gap of one"),
    ],
)
def test_tables(gap, given, expected, speculative):
    answer = Harness(ONE, gap, speculative=speculative).run(given)
    assert answer == history(expected, windowed(ONE))


@FORMS
def test_partitions_have_sessions_of_their_own(speculative):
    answer = Harness(PAIR, 4, ["k"], speculative=speculative).run(
        "1/a @1, 2/b @3, null/c @4, 1/d @5, null/e @8, 2/f @9"
    )
    expected = "1/a/1/9 9-, 1/d/1/9 9-, 2/b/3/7 7-, 2/f/9/13 13-, null/c/4/12 12-, null/e/4/12 12-"
    assert answer == history(expected, windowed(PAIR))


@FORMS
def test_a_session_that_would_end_at_the_end_of_time_is_never_shown(speculative):
    last = INFINITY - 1
    answer = Harness(ONE, 4, speculative=speculative).run(
        f"a @{last - 20}, b @{last - 4}, c @{last - 1}, d @{last - 30}"
    )
    shown = {(row, start) for row, start, _, _ in answer.rows()}
    assert shown == {(("a", last - 20, last - 16), last - 16), (("d", last - 30, last - 26), last - 26)}
    promised = Harness(ONE, 4, speculative=False)
    promised.tick("", last)
    assert promised.promised == INFINITY


@FORMS
def test_the_ends_are_timestamps_where_time_has_a_unit(speculative):
    operator = session(ONE, 60_000_000, speculative=speculative, time=pa.timestamp("us"))
    delta = Delta.from_rows(ONE, [(("a",), 90_000_000, 90_000_001, 1)])
    step = operator.step(operator.new_state(MemoryStore()), (delta,), (INFINITY,))
    row = ("a", datetime(1970, 1, 1, 0, 1, 30), datetime(1970, 1, 1, 0, 2, 30))
    assert step.delta.rows() == [(row, 150_000_000, INFINITY, 1)]


# -- what goes out when ----------------------------------------------------------------------------------------------


def test_strong_sessions_go_out_when_the_frontier_has_passed_their_ends():
    run = Harness(ONE, 4, speculative=False)
    assert run.tick("a @1, b @3") == []
    assert run.tick("", 7) == []  # a row at 7 would continue it
    assert run.tick("", 8) == ["a/1/7 7-:+1", "b/1/7 7-:+1"]
    assert run.state.rows == 0
    assert run.tick("c @8, d @30", 31) == ["c/8/12 12-:+1"]
    assert run.tick("", INFINITY) == ["d/30/34 34-:+1"]


def test_the_strong_frontier_is_the_first_end_that_may_still_change():
    run = Harness(PAIR, 4, ["k"], speculative=False)

    def promised(rows, frontier=None):
        run.tick(rows, frontier)
        return run.promised

    assert promised("1/a @3") == BEGINNING
    assert promised("", 2) == 6  # a session that begins at 2
    assert promised("", 4) == 7  # that of 1 is open, and ends at 7
    assert promised("2/b @5", 6) == 7
    assert promised("", 7) == 7
    assert promised("1/c @7", 8) == 9  # that of 1 goes on till 11, that of 2 may end at 9
    assert promised("", 10) == 11
    assert promised("", 20) == 24
    assert promised("", INFINITY) == INFINITY


def test_speculative_sessions_go_out_when_time_has_come_to_their_ends():
    run = Harness(ONE, 4, speculative=True)
    assert run.tick("a @1, b @3") == []
    assert run.tick("", reached=6) == []
    assert run.tick("", reached=7) == ["a/1/7 7-:+1", "b/1/7 7-:+1"]
    assert run.tick("c @2") == ["c/1/7 7-:+1"]  # nothing else changes
    assert run.tick("d @7") == ["a/1/7 7-:-1", "b/1/7 7-:-1", "c/1/7 7-:-1"]  # it goes on, and is not over
    assert run.tick("e @16") == ["a/1/11 11-:+1", "b/1/11 11-:+1", "c/1/11 11-:+1", "d/1/11 11-:+1"]
    assert run.tick("b 3-4>3, c 2-3>2") == [
        "a/1/11 11-:-1", "a/1/5 5-:+1", "b/1/11 11-:-1", "c/1/11 11-:-1", "d/1/11 11-:-1", "d/7/11 11-:+1",
    ]  # fmt: skip
    assert run.tick("f @11") == ["d/7/11 11-:-1", "d/7/15 15-:+1", "f/7/15 15-:+1"]
    assert run.tick("", 16) == []
    assert run.state.rows == 1  # e: what is final has left
    assert run.tick("e 16-17>16", 16) == []
    assert run.state.rows == 0


def test_the_speculative_frontier_is_that_of_the_input():
    run = Harness(ONE, 4, speculative=True)
    for frontier in (BEGINNING, 3, 5, INFINITY):
        run.tick("" if frontier > 3 else "a @3", frontier)
        assert run.promised == frontier


@FORMS
def test_a_tick_reads_only_the_sessions_that_it_changes(speculative, monkeypatch):
    run = Harness(PAIR, 4, ["k"], speculative=speculative)
    run.tick(", ".join(f"{k}/a @{t}" for k in range(20) for t in (1, 2, 3)), 4)
    loaded = []
    load = run.state.sessions.members.load
    monkeypatch.setattr(run.state.sessions.members, "load", lambda ids: loaded.append(len(ids)) or load(ids))
    run.tick("5/b @5", 5)
    assert loaded == []
    run.tick("5/c @6, 7/a @6, 8/a @8", 8)
    assert sum(loaded) == 18  # all that end at 7: those of 5 and 7 go on


# -- random streams ---------------------------------------------------------------------------------------------------


def sessions_of(elements, gap, keys):
    """{(row, instant): n} by the definition: ((row, first, end), instant) -> n."""
    found: Counter = Counter()
    partitions: dict = {}
    for (row, at), count in elements.items():
        if count:
            partitions.setdefault(tuple(row[i] for i in keys), []).append((at, row, count))
    for members in partitions.values():
        members.sort(key=lambda member: member[0])
        begins = [i for i, m in enumerate(members) if i == 0 or m[0] - members[i - 1][0] > gap]
        for a, b in zip(begins, [*begins[1:], len(members)], strict=True):
            for at, row, count in members[a:b]:
                found[(*row, members[a][0], members[b - 1][0] + gap), at] += count
    return found


def shown_at(found, instant):
    shown: Counter = Counter()
    for (row, _), count in found.items():
        if row[-1] <= instant:
            shown[row] += count
    return shown


def kept_of(elements, gap, keys, frontier, *, speculative):
    """How many copies there are of each row of a session that is not final."""
    seen = Counter({(row, at): count for (row, at), count in elements.items() if speculative or at < frontier})
    return [count for (row, _), count in sessions_of(seen, gap, keys).items() if row[-1] >= frontier]


TEXT = ["a", "b", None, "ab"]


def element(rng, schema):
    if schema is ONE:
        return (rng.choice(TEXT),)
    if schema is PAIR:
        return rng.choice([1, 2, None, -5]), rng.choice(TEXT)
    return rng.choice(TEXT), rng.choice(["p", "q", None]), rng.choice([1, 2])


def stream(rng, schema):
    """Ticks of ([(row, instant, weight)], frontier): ties, duplicates, weights, removals of what is not final."""
    frontier, live = BEGINNING, Counter()
    base = rng.choice([-30, 0, 1_700_000_000_000_000])
    for _ in range(rng.randint(1, 9)):
        low = base if frontier == BEGINNING else frontier
        news = [
            (element(rng, schema), low + rng.choice([0, 0, rng.randint(0, 25)]), rng.choice([1, 1, 1, 2]))
            for _ in range(rng.randint(0, 8))
        ]
        for (row, at), count in live.items():
            if count and at >= low and rng.random() < 0.3:
                news.append((row, at, -rng.randint(1, count)))
        for row, at, weight in news:
            live[row, at] += weight
        rng.shuffle(news)
        if rng.random() < 0.7:
            frontier = max(low, low + rng.randint(-2, 12))
        yield news, frontier
    yield [], INFINITY


@FORMS
@pytest.mark.parametrize("files", [False, True], ids=["memory", "files"])
@pytest.mark.parametrize(
    ("schema", "partition"),
    [(ONE, []), (PAIR, ["k"]), (WIDE, ["k", "j"]), (WIDE, ["k"])],
    ids=["all", "int", "pair", "text"],
)
def test_random_streams_agree_with_the_definition(speculative, files, schema, partition, tmp_path: Path):
    rng = random.Random(f"{speculative}{files}{partition}")
    keys = [schema.index(name) for name in partition]
    for case in range(3 if files else 25):
        gap = rng.choice([1, 2, 4, 7])
        store = FileStore(tmp_path / str(case)) if files else MemoryStore()
        run = Harness(schema, gap, partition, speculative=speculative, store=store)
        elements, reached = Counter(), BEGINNING
        for news, frontier in stream(rng, schema):
            for row, at, weight in news:
                elements[row, at] += weight
                reached = max(reached, at) if weight > 0 else reached
            run.tick(Delta.from_rows(schema, [(row, at, at + 1, w) for row, at, w in news]), frontier)
            found = sessions_of(elements, gap, keys)
            answer = History.of(run.operator.schema, run.out)
            for instant in {max(row[-1], BEGINNING + 1) - d for row, _ in found for d in (0, 1)}:
                if instant < run.promised or (speculative and instant <= reached):
                    assert answer.snapshot(instant) == shown_at(found, instant)
            kept = kept_of(elements, gap, keys, frontier, speculative=speculative)
            assert len(kept) <= run.state.sessions.members.rows <= sum(kept)
        assert (run.state.rows, run.state.bytes, run.state.segments()) == (0, 0, [])


@FORMS
def test_what_is_final_leaves_the_state_for_good(speculative):
    rng = random.Random(5)
    run = Harness(PAIR, 3, ["k"], speculative=speculative)
    elements = Counter()
    for tick in range(60):
        news = [((rng.randint(0, 30), rng.choice("abc")), 10 * tick + rng.randint(0, 19)) for _ in range(20)]
        elements.update(news)
        gone = [(row, at) for row, at in rng.sample(sorted(elements), 3) if at >= 10 * tick and elements[row, at]]
        elements.subtract(gone)
        rows = [(row, at, at + 1, 1) for row, at in news] + [(row, at, at + 1, -1) for row, at in gone]
        run.tick(Delta.from_rows(PAIR, rows), 10 * tick + 10)
        assert run.state.sessions.members.rows == sum(
            kept_of(elements, 3, [0], 10 * tick + 10, speculative=speculative)
        )
    run.tick("", INFINITY)
    assert History.of(run.operator.schema, run.out).snapshot(10_000) == shown_at(sessions_of(elements, 3, [0]), 10_000)


# -- elements that never end ------------------------------------------------------------------------------------------


@FORMS
def test_a_session_of_an_endless_element_never_ends(speculative):
    split = SplitOperator(ONE, 1, for_window=True)
    kept = split.new_state(MemoryStore())
    run = Harness(ONE, 3, speculative=speculative)
    for rows, frontier in (("a @1, b @6, c 8-", 2), ("", 9), ("d @20", 15), ("", INFINITY)):
        step = split.step(kept, (changes(timeline(rows)),), (frontier,))
        run.tick(step.delta, step.frontier)
    assert History.of(run.operator.schema, run.out) == history("a/1/4 4-", windowed(ONE))
    assert run.state.rows == 0


# -- in plans ---------------------------------------------------------------------------------------------------------


@FORMS
def test_an_aggregate_gives_one_row_a_session(speculative):
    source = n.Source("s", PAIR, chronons=True)
    window = n.SessionWindow(source, 4, ("k",), time=pa.int64())
    count = n.AggregateCall("COUNT", "n", pa.int64())
    plan = n.Aggregate(window, ("k", "window_start", "window_end"), (count,))
    runner = by_hand({"q": plan}, speculative=speculative, shards=3)
    ticks = [("1/a @1, 2/b @2, 1/c @9", 0), ("1/d @5, 2/b @7", 3), ("2/b 7-8>7", 8), ("", INFINITY)]
    out = [runner.tick({"s": changes(timeline(rows, PAIR), PAIR)}, {"s": at})["q"].delta for rows, at in ticks]
    assert runner.buffered().rows == 0
    assert History.of(plan.schema, out) == history("1/1/13/3 13-, 2/2/6/1 6-", plan.schema)


def test_a_strong_query_is_never_revised_and_does_not_wait_for_the_end():
    source = n.Source("s", PAIR)  # revisable intervals
    runner = by_hand({"q": n.SessionWindow(source, 2, ("k",), time=pa.int64())})
    step = runner.tick({"s": changes(timeline("1/a 1-4, 2/b 5-9, 1/a 1-4>3", PAIR), PAIR)}, {"s": 6})["q"]
    assert sorted(step.delta.consolidate().rows()) == [((1, "a", 1, 4), 4, INFINITY, 2)]  # at 1 and at 2
    assert step.frontier == 7  # b is there at 5 and may end at 6


@FORMS
def test_state_is_the_rows_of_open_sessions(speculative):
    """Of those that are over nothing stays; a row of one that is open takes 16 bytes and its columns."""
    schema = Schema.of(k="BIGINT", v="BIGINT")
    pause, still = (Harness(schema, 100, ["k"], speculative=speculative) for _ in range(2))
    sizes = []
    for tick in range(40):
        number = tick * 500 + np.arange(500)
        for harness, time in ((pause, number * 10 + number // 100 * 1_000), (still, number * 10)):
            columns = [pa.array(np.zeros(500, np.int64)), pa.array(number)]
            harness.tick(Delta(schema, columns, time, time + 1, np.ones(500, np.int64)), int(time[-1]))
        sizes.append(pause.state.bytes)
        assert still.state.bytes < 32 * len(number) * (tick + 1) + 1_000
    assert max(sizes) < 32 * 100 + 1_000
