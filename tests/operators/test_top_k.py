"""Top-k: timelines by hand, random streams against the definition, and what it costs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.algebra.nodes import Aggregate, AggregateCall, SortKey, Source, TimeWindow, TopK
from headwater.model.delta import Delta
from headwater.model.element import Stable
from headwater.model.history import History, canonical_order, freeze
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.ranking import top_rows
from headwater.operators.ranking.sort_order import SortColumn, sort_ranks
from headwater.operators.ranking.top_k import TopKOperator
from headwater.operators.ranking.top_rows import TopRows
from headwater.runtime.stepping import by_hand
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.choices import Dice
from headwater.testing.generate import StreamShape, cut, reorder, stream, whole
from headwater.testing.timeline import history, timeline

FORMS = {
    "strong": {"speculative": False},
    "open": {"speculative": False, "hold": False},
    "speculative": {"speculative": True},
}
ONE = Schema.of(x="INT")
PAIR = Schema.of(k="STRING", x="INT")
UP, DOWN = SortColumn("x"), SortColumn("x", descending=True)


def numbered(rows: Counter, schema: Schema, order, partition) -> list:
    """(row, number) of one snapshot, by definition: each copy of a row has a number of its own."""
    parts = defaultdict(list)
    for row in rows.elements():
        parts[tuple(freeze(row[schema.index(n)]) for n in partition)].append(row)
    result = []
    for members in parts.values():
        members.sort(key=canonical_order)
        for by in reversed(order):  # sorts are stable, so the last one counts most
            at = schema.index(by.column)
            members.sort(key=lambda row, at=at: canonical_order(row[at]), reverse=by.descending)
            members.sort(key=lambda row, at=at, by=by: (row[at] is None) != by.nulls_first)
        result += [(row, i + 1) for i, row in enumerate(members)]
    return result


def expected(operator: TopKOperator, schema: Schema, delta: Delta, **shape) -> History:
    """At every instant by itself; the last one stands for ever."""
    order, partition = shape.get("order", ()), shape.get("partition", ())
    limit, offset = shape.get("limit", INFINITY), shape.get("offset", 0)
    times = np.concatenate([delta.start, delta.end])
    horizon = int(times[times < INFINITY].max(initial=0))
    rows, answer = delta.rows(), []
    for t in range(horizon + 1):
        valid: Counter = Counter()
        for row, start, end, weight in rows:
            if start <= t < end:
                valid[freeze(row)] += weight
        for row, number in numbered(valid, schema, order, partition):
            if offset < number <= offset + limit:
                shown = (*row, number) if shape.get("rank") else row
                answer.append((shown, t, INFINITY if t == horizon else t + 1, 1))
    return History.of(operator.schema, [Delta.from_rows(operator.schema, answer)])


def run(operator: TopKOperator, ticks, store=None) -> History:
    """Feed the ticks (delta, frontier); the output is checked to be valid, and the state to be empty in the end."""
    state = operator.new_state(store or MemoryStore())
    validator = StreamValidator(operator.schema)
    final = operator._hold
    deltas = []
    for delta, frontier in ticks:
        step = operator.step(state, (delta,), (frontier,))
        validator.check_delta(step.delta, step.frontier)
        assert step.frontier <= frontier if final else step.frontier == frontier
        assert not final or (step.delta.weight > 0).all()
        deltas.append(step.delta)
    assert operator.buffered(state) == (0, 0)
    assert state.segments() == []
    return History.of(operator.schema, deltas)


def ticks_of(schema: Schema, pieces) -> list[tuple[Delta, int]]:
    """One tick a piece; the last one ends the stream."""
    frontier, ticks = BEGINNING, []
    for piece in pieces:
        frontier = max([frontier, *(e.at for e in piece if isinstance(e, Stable))])
        ticks.append((whole(schema, piece), frontier))
    return [*ticks, (Delta.empty(schema), INFINITY)]


# -- timelines --------------------------------------------------------------------------------------------------------

TIMELINES = {
    "the first": (ONE, {"order": [UP], "limit": 1}, "5 0-10, 3 2-6, 4 12-", "5 0-2, 3 2-6, 5 6-10, 4 12-"),
    "numbers": (
        ONE,
        {"order": [UP], "rank": "n"},
        "5 0-10, 3 2-6, 4 12-",
        "5/1 0-2, 3/1 2-6, 5/2 2-6, 5/1 6-10, 4/1 12-",
    ),
    "numbers up to a limit": (
        ONE,
        {"order": [DOWN], "limit": 1, "rank": "n"},
        "5 0-10, 7 4-, 3 2-6",
        "5/1 0-4, 7/1 4-",
    ),
    "numbers after an offset": (
        ONE,
        {"order": [UP], "limit": 2, "offset": 1, "rank": "n"},
        "1 0-4, 2 0-8, 3 0-8, 4 0-6",
        "2/2 0-4, 3/3 0-4, 3/2 4-8, 4/3 4-6",
    ),
    "copies have numbers": (ONE, {"order": [UP], "rank": "n"}, "3*2 0-5, 4 0-5", "3/1 0-5, 3/2 0-5, 4/3 0-5"),
    "copies are cut": (ONE, {"order": [UP], "limit": 2}, "3*3 0-5, 1 2-4", "3*2 0-2, 1 2-4, 3 2-4, 3*2 4-5"),
    "copies on both edges": (ONE, {"order": [UP], "limit": 1, "offset": 1}, "3*3 0-5, 1*2 2-4", "3 0-2, 1 2-4, 3 4-5"),
    "offset": (ONE, {"order": [UP], "limit": 1, "offset": 1}, "1 0-4, 2 0-8, 3 0-8", "2 0-4, 3 4-8"),
    "offset alone": (ONE, {"order": [UP], "offset": 2}, "1 0-9, 2 0-9, 3 3-6, 4 4-5", "3 3-6, 4 4-5"),
    "nothing": (ONE, {"order": [UP], "limit": 0}, "1 0-4, 2 2-", ""),
    "without an order": (ONE, {"limit": 1}, "2 0-4, 1 2-6, null 3-5", "2 0-2, 1 2-3, null 3-5, 1 5-6"),
    "nulls first": (ONE, {"order": [UP], "limit": 2}, "null 0-9, 1 0-9, 2 0-9", "null 0-9, 1 0-9"),
    "nulls last": (
        ONE,
        {"order": [SortColumn("x", nulls_first=False)], "limit": 2},
        "null 0-9, 1 0-9, 2 0-9",
        "1 0-9, 2 0-9",
    ),
    "down, nulls first": (ONE, {"order": [DOWN], "limit": 2}, "null 0-9, 1 0-9, 2 0-9", "null 0-9, 2 0-9"),
    "down, nulls last": (
        ONE,
        {"order": [SortColumn("x", descending=True, nulls_first=False)], "limit": 2},
        "null 0-9, 1 0-9, 2 0-9",
        "1 0-9, 2 0-9",
    ),
    "shortened": (ONE, {"order": [UP], "limit": 1}, "1 0-10, 2 0-10, ~3, 1 0-10>4, ~6", "1 0-4, 2 4-10"),
    "lengthened": (ONE, {"order": [UP], "limit": 1}, "1 0-4, 2 0-10, ~4, 1 0-4>7, ~5", "1 0-7, 2 7-10"),
    "removed": (ONE, {"order": [UP], "limit": 1}, "1 2-9, 2 0-10, ~1, 1 2-9>2", "2 0-10"),
    "one leaves as another comes": (ONE, {"order": [UP], "rank": "n"}, "1 0-5, 3 0-9, 2 5-9", "1/1 0-5, 2/1 5-9, 3/2 0-9"),
    "handed over": (ONE, {"order": [UP], "limit": 1}, "1 0-5, 1 5-9, 2 0-9", "1 0-9"),
    "partitions": (
        PAIR,
        {"order": [UP], "limit": 1, "partition": ["k"]},
        "a/5 0-9, b/7 0-9, a/3 2-4, b/8 1-3, null/1 0-2",
        "a/5 0-2, a/3 2-4, a/5 4-9, b/7 0-9, null/1 0-2",
    ),
    "ties by value": (PAIR, {"order": [UP], "limit": 1}, "b/1 0-9, a/1 3-6, c/1 0-9", "b/1 0-3, a/1 3-6, b/1 6-9"),
    "two columns": (
        PAIR,
        {"order": [DOWN, SortColumn("k", descending=True)], "rank": "n", "limit": 2},
        "b/1 0-9, a/2 0-9, c/2 0-5",
        "c/2/1 0-5, a/2/2 0-5, a/2/1 5-9, b/1/2 5-9",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TIMELINES)
def test_timeline(form, name):
    schema, shape, given, wanted = TIMELINES[name]
    elements = timeline(given, schema)
    operator = TopKOperator(schema, **{"order": (), **shape}, **FORMS[form])
    for pieces in ([elements], [[e] for e in elements]):
        assert run(operator, ticks_of(schema, pieces)) == history(wanted, operator.schema)
    assert history(wanted, operator.schema) == expected(operator, schema, whole(schema, elements), **shape)


# -- random streams ---------------------------------------------------------------------------------------------------

SCHEMA = Schema.of(k="BIGINT", x="DOUBLE", s="STRING", p="BOOLEAN", d=pa.decimal128(10, 2), t="TIMESTAMP")
SHAPES = {
    "first": {"order": [UP], "limit": 2},
    "last of each": {"order": [SortColumn("x", True, False)], "limit": 1, "partition": ["k"]},
    "page": {"order": [SortColumn("s", True), SortColumn("d", nulls_first=False)], "limit": 2, "offset": 2},
    "numbers": {"order": [SortColumn("t"), SortColumn("p", True)], "rank": "n", "partition": ["s", "p"]},
    "few numbers": {"order": [SortColumn("k", True)], "rank": "n", "limit": 3, "offset": 1},
    "any": {"limit": 3, "partition": ["p"]},
}


@pytest.fixture
def no_spare(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Nothing is kept beyond what is in sight; the list says of each pass whether all rows were looked at."""
    passes: list[bool] = []
    sweep = TopRows._sweep

    def counted(self, *arguments, whole, **settings):
        passes.append(whole)
        return sweep(self, *arguments, whole=whole, **settings)

    monkeypatch.setattr(TopRows, "_sweep", counted)
    monkeypatch.setattr(TopRows, "_spare", lambda self, now, *arguments, whole: np.zeros_like(now))
    return passes


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SHAPES)
def test_random_streams_give_the_answer_of_every_instant(form, name, tmp_path: Path):
    for seed in range(10):
        dice = Dice(seed, len(name))
        elements = stream(dice, Source("s", SCHEMA), StreamShape(elements=24, special=True))
        operator = TopKOperator(SCHEMA, **{"order": (), **SHAPES[name]}, **FORMS[form])
        ticks = ticks_of(SCHEMA, cut(dice, elements, dice.integer(1, 6)))
        answer = run(operator, ticks, FileStore(tmp_path / f"{seed}") if seed % 4 == 0 else MemoryStore())
        wanted = expected(operator, SCHEMA, whole(SCHEMA, elements), **SHAPES[name])
        assert answer == wanted, f"seed {seed}: {answer.difference(wanted)}"


def crowd(seed: int, ticks: int = 10, size: int = 120, *, revise: bool = True) -> list[tuple[Delta, int]]:
    """Many rows in few partitions: ties, copies, endless rows, and rows that are taken away or get another end."""
    random = np.random.default_rng(seed)
    schema = Schema.of(k="BIGINT", x="BIGINT")
    live: list[tuple] = []
    made = []
    for tick in range(ticks):
        frontier, rows = 20 * tick, []
        kept = []
        for row, start, end, weight in live:
            if revise and end >= frontier and random.random() < 0.1:
                ends = [start] if start >= frontier else []
                new_end = random.choice([*ends, int(random.integers(max(frontier, start + 1), frontier + 99))])
                rows += [(row, start, end, -weight), *([(row, start, new_end, weight)] if new_end > start else [])]
                kept += [(row, start, new_end, weight)] if new_end > start else []
            else:
                kept.append((row, start, end, weight))
        for _ in range(size):
            start = frontier + int(random.integers(0, 40))
            end = INFINITY if random.random() < 0.02 else start + int(random.integers(1, 90))
            row = int(random.integers(0, 3)), int(random.integers(0, 60))
            kept.append((row, start, end, int(random.integers(1, 3))))
            rows.append(kept[-1])
        live = kept
        made.append((Delta.from_rows(schema, rows), frontier))
    return [*made, (Delta.empty(schema), 20 * ticks), (Delta.empty(schema), INFINITY)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("partition", [(), ("k",)], ids=["all", "by k"])
@pytest.mark.parametrize("rank", [None, "n"])
def test_first_rows_that_run_out_are_chosen_anew(form, partition, rank, no_spare: list[bool], tmp_path: Path):
    schema = Schema.of(k="BIGINT", x="BIGINT")
    for seed, (limit, offset) in enumerate([(3, 0), (1, 4), (10, 2)]):
        shape = {"order": [DOWN], "limit": limit, "offset": offset, "partition": partition, "rank": rank}
        operator = TopKOperator(schema, **shape, **FORMS[form])
        ticks = crowd(seed)
        answer = run(operator, ticks, FileStore(tmp_path / f"{seed}") if seed == 2 else MemoryStore())
        wanted = expected(operator, schema, Delta.concat(schema, [delta for delta, _ in ticks]), **shape)
        assert answer == wanted, f"seed {seed}: {answer.difference(wanted)[:9]}"
    assert any(no_spare), "all rows were never looked at"


@pytest.mark.parametrize("form", FORMS)
def test_spare_rows_do_not_change_the_answer(form):
    schema = Schema.of(k="BIGINT", x="BIGINT")
    shape = {"order": [UP], "limit": 2, "partition": ["k"]}
    operator = TopKOperator(schema, **shape, **FORMS[form])
    ticks = crowd(7, ticks=12, size=200)
    wanted = expected(operator, schema, Delta.concat(schema, [delta for delta, _ in ticks]), **shape)
    assert run(operator, ticks) == wanted


@pytest.mark.parametrize("form", FORMS)
def test_limit_does_not_depend_on_arrival_or_on_how_ticks_are_cut(form):
    shape = {"order": [UP], "limit": 2, "partition": ["k"], "rank": "n"}
    operator = TopKOperator(SCHEMA, **shape, **FORMS[form])
    rows = [
        "1/0.5/b/null/1.00/null 0-5",
        "1/0.5/a/null/1.00/null 0-5",
        "1/-0.0/a/null/1.00/null 2-4",
        "1/0.5/a/null/1.00/null 0-9",
    ]
    answers = []
    for arrival in permutations(rows):
        elements = timeline(", ".join(arrival), SCHEMA)
        for places in ([0, 4], [0, 1, 4], [0, 1, 2, 3, 4]):
            answers.append(run(operator, ticks_of(SCHEMA, [elements[a:b] for a, b in pairwise(places)])))
    assert all(answer == answers[0] for answer in answers)
    assert answers[0] == expected(operator, SCHEMA, whole(SCHEMA, timeline(", ".join(rows), SCHEMA)), **shape)
    for seed in range(6):
        dice = Dice(seed)
        elements = stream(dice, Source("s", SCHEMA), StreamShape(elements=30))
        histories = [
            run(operator, ticks_of(SCHEMA, cut(dice, reorder(dice, elements), dice.integer(1, 9)))) for _ in range(4)
        ]
        assert all(h == histories[0] for h in histories)


# -- the order --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "ordered"),
    [
        (pa.int8(), [-128, 0, 127]),
        (pa.int64(), [-(2**63), -1, 2**63 - 1]),
        (pa.uint64(), [0, 2**63, 2**64 - 1]),
        (pa.float64(), [-math.inf, -1.5, 0.0, 2.5, math.inf, math.nan]),
        (pa.float32(), [-math.inf, -1.5, 2.5, math.nan]),
        (pa.bool_(), [False, True]),
        (pa.string(), ["", "Z", "a", "é"]),
        (pa.binary(), [b"", b"\x00", b"\xff"]),
        (pa.decimal128(18, 2), [Decimal("-9999999999999999.99"), Decimal("0.00"), Decimal("9999999999999999.99")]),
        (pa.decimal128(38, 0), [Decimal(-(10**37)), Decimal(3), Decimal(10**37)]),
        (pa.date32(), [date(1960, 1, 1), date(2026, 1, 1)]),
        (pa.timestamp("us"), [datetime(1960, 1, 1), datetime(2026, 1, 1, 12)]),
        (pa.list_(pa.int64()), [[], [None], [1], [1, 0], [2]]),
        (pa.struct({"a": pa.int64()}), [{"a": None}, {"a": 1}, {"a": 2}]),
    ],
    ids=str,
)
def test_every_type_in_every_direction(type_, ordered):
    values = [None, *ordered]
    shuffled = np.random.default_rng(3).permutation(len(values))
    column, other = pa.array([values[i] for i in shuffled], type_), pa.array(np.arange(len(values)))
    for descending in (False, True):
        for nulls_first in (False, True):
            ranks = sort_ranks([column, other], [(column, SortColumn("x", descending, nulls_first))])
            places = [*range(1, len(values))][:: -1 if descending else 1]
            wanted = [0, *places] if nulls_first else [*places, 0]
            assert [int(shuffled[i]) for i in np.argsort(ranks)] == wanted


def test_values_that_are_equal_are_ties():
    x, k = pa.array([0.0, -0.0, math.nan, math.nan]), pa.array(["b", "a", "d", "c"])
    assert sort_ranks([x, k], [(x, UP)]).tolist() == [1, 0, 3, 2]
    assert sort_ranks([x, k], [(x, DOWN)]).tolist() == [3, 2, 1, 0]
    assert sort_ranks([k], []).tolist() == [1, 0, 3, 2]


# -- the forms --------------------------------------------------------------------------------------------------------


def steps(operator: TopKOperator, *ticks: tuple[str, int]) -> list[tuple[list, int]]:
    state = operator.new_state(MemoryStore())
    shown = []
    for text, frontier in ticks:
        step = operator.step(state, (whole(ONE, timeline(text, ONE)),), (frontier,))
        shown.append(
            (sorted(((r[0], s, e, w) for r, s, e, w in step.delta.consolidate().rows()), key=str), step.frontier)
        )
    return shown


def test_strong_holds_what_is_in_sight_until_it_leaves():
    operator = TopKOperator(ONE, [UP], 1)
    assert steps(operator, ("5 0-20, 3 4-6, 9 0-7", 3), ("", 5), ("", 8), ("", INFINITY)) == [
        ([], 0),
        ([(5, 0, 4, 1)], 4),
        ([(3, 4, 6, 1)], 6),  # 5 again, since 6; what 9 does does not matter
        ([(5, 6, 20, 1)], INFINITY),
    ]


def test_open_form_shows_what_is_in_sight_and_closes_it_later():
    operator = TopKOperator(ONE, [UP], 1, hold=False)
    assert steps(operator, ("5 0-20, 3 4-6", 3), ("", 5), ("", 8), ("", INFINITY)) == [
        ([(5, 0, INFINITY, 1)], 3),
        ([(3, 4, INFINITY, 1), (5, 0, 4, 1), (5, 0, INFINITY, -1)], 5),
        ([(3, 4, 6, 1), (3, 4, INFINITY, -1), (5, 6, INFINITY, 1)], 8),
        ([(5, 6, 20, 1), (5, 6, INFINITY, -1)], INFINITY),
    ]


def test_speculative_form_repairs_what_a_late_row_changes_and_nothing_else():
    operator = TopKOperator(ONE, [UP], 1, speculative=True)
    assert steps(operator, ("5 0-20, 3 4-6, 4 10-12", BEGINNING), ("1 8-9", BEGINNING), ("9 3-19", BEGINNING)) == [
        ([(3, 4, 6, 1), (4, 10, INFINITY, 1), (5, 0, 4, 1), (5, 6, 10, 1)], BEGINNING),
        ([(1, 8, 9, 1), (5, 6, 10, -1), (5, 6, 8, 1), (5, 9, 10, 1)], BEGINNING),
        ([], BEGINNING),
    ]


def test_a_row_that_stays_in_sight_is_one_element():
    operator = TopKOperator(ONE, [UP], 2)
    state = operator.new_state(MemoryStore())
    texts = ["1 0-50, 7 0-99", *(f"{20 + t} {t}-{t + 5}" for t in range(1, 60))]  # rows come and go behind it
    deltas = [operator.step(state, (whole(ONE, timeline(x, ONE)),), (t,)).delta for t, x in enumerate(texts)]
    assert [(r, s, e) for d in deltas for r, s, e, _ in d.rows() if r == (1,)] == [((1,), 0, 50)]


def test_strong_top_k_of_counts_does_not_wait_for_the_end():
    """Which group has the most rows: the others never change again, and still time goes on."""
    source = Source("s", PAIR)
    counts = Aggregate(TimeWindow(source, INFINITY), ("k",), (AggregateCall("COUNT", "n", pa.int64()),))
    runner = by_hand({"q": TopK(counts, (SortKey("n", descending=True),), 1)})
    rows, answer = [(("quiet", 0), 0, 1, 1)], []
    for tick in range(20):
        rows += [(("ab"[tick % 2], tick), 3 * tick + 1, 3 * tick + 2, 1)]
        answer.append(runner.tick({"s": Delta.from_rows(PAIR, rows)}, {"s": 3 * tick})["q"])
        rows = []
    assert sum(len(step.delta) for step in answer) >= 10
    assert answer[-1].frontier >= 40


# -- cost -------------------------------------------------------------------------------------------------------------


def looked_at(monkeypatch: pytest.MonkeyPatch, values, ticks: int, size: int, lifetime: int) -> tuple[list[int], int]:
    """How many rows each tick of a sliding window of one partition looks at, and how many are live in the end."""
    schema = Schema.of(x="BIGINT", i="BIGINT")
    operator = TopKOperator(schema, [UP], 3)
    state = operator.new_state(MemoryStore())
    seen: list[int] = []
    assign = top_rows.assign_slots

    def counted(partitions, known, others, order):
        seen[-1] += sum(len(rows.partition) for rows in known) + len(others.low)
        return assign(partitions, known, others, order)

    monkeypatch.setattr(top_rows, "assign_slots", counted)
    for tick in range(ticks):
        seen.append(0)
        start = np.arange(tick * size, (tick + 1) * size)
        columns = [pa.array(values(start)), pa.array(start)]
        delta = Delta(schema, columns, start, start + lifetime, np.ones(size, np.int64))
        operator.step(state, (delta,), (int(start[-1]) + 1,))
    return seen, min(lifetime, ticks * size)


def test_tick_of_a_large_partition_looks_at_few_of_its_rows(monkeypatch: pytest.MonkeyPatch):
    random = np.random.default_rng(5)
    seen, live = looked_at(monkeypatch, lambda start: random.integers(0, 10**9, len(start)), 220, 100, 20_000)
    assert live == 20_000
    assert np.median(seen[200:]) < 400
    assert max(seen[20:]) < 25_000  # all of them now and then


def test_rows_that_leave_in_the_order_of_the_limit_are_chosen_anew_rarely(monkeypatch: pytest.MonkeyPatch):
    """The worst case: the oldest rows are the first ones, so all that leaves leaves from the top."""
    seen, live = looked_at(monkeypatch, lambda start: start, 400, 100, 20_000)
    settled = seen[200:]
    assert sum(rows > live // 2 for rows in settled) <= 2 * len(settled) // int((live / 100) ** 0.5)
    assert np.mean(settled) < 3_500
