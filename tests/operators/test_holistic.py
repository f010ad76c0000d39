"""Aggregates over the rows themselves: MIN, MAX, MEDIAN, ARRAY_AGG, LISTAGG, and user-defined ones."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import textwrap
from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.aggregate_meanings import meant

from headwater.algebra.nodes import Source
from headwater.expressions.aggregates import AGGREGATES
from headwater.model.delta import Delta
from headwater.model.element import Stable
from headwater.model.given_functions import give
from headwater.model.history import History, canonical_order, freeze
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.aggregates import snapshots
from headwater.operators.aggregates.aggregate import AggregateOperator, Call
from headwater.operators.aggregates.user_aggregates import load_aggregate
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.choices import Dice
from headwater.testing.generate import StreamShape, cut, stream, whole
from headwater.testing.timeline import timeline

FORMS = {
    "strong": {"speculative": False},
    "strong, never revised": {"speculative": False, "revisable": False},
    "open": {"speculative": False, "hold": False},
    "open, never revised": {"speculative": False, "hold": False, "revisable": False},
    "speculative": {"speculative": True},
}
NAN, INF = math.nan, math.inf


class Product:
    def init(self, value):
        return value

    def merge(self, state, value):
        return state * value

    def eval(self, state):
        return state


class Total:
    """The sum and the count, added."""

    def init(self, value):
        return value, 1

    def merge(self, state, value):
        return state[0] + value, state[1] + 1

    def eval(self, state):
        return state[0] + state[1]

    def inverse(self, state, value):
        return state[0] - value, state[1] - 1


def spread(values):
    return pc.subtract(pc.max(values), pc.min(values))


PRODUCT, TOTAL, SPREAD = ((give(code),) for code in (Product, Total, spread))


def evaluate(function: str, values: list, parameters: tuple):
    """The aggregate of one snapshot, by definition."""
    ordered = sorted(values, key=canonical_order)
    if function in AGGREGATES:
        return meant(function, ordered, parameters)
    ordered = [v for v in ordered if v is not None]
    if not ordered:
        return None
    return {
        "PRODUCT": lambda: math.prod(ordered),
        "TOTAL": lambda: sum(ordered) + len(ordered),
        "SPREAD": lambda: ordered[-1] - ordered[0],
    }[function]()


def expected(operator: AggregateOperator, keys: list[str], calls: list[Call], delta: Delta) -> History:
    """At every instant by itself; the last one stands for ever."""
    names = delta.schema.names
    times = np.concatenate([delta.start, delta.end])
    horizon = int(times[times < INFINITY].max(initial=0))
    rows = delta.rows()
    answer = []
    for t in range(horizon + 1):
        groups = defaultdict(list)
        for row, start, end, weight in rows:
            if start <= t < end:
                named = dict(zip(names, row, strict=True))
                groups[tuple(named[k] for k in keys)].append((named, weight))
        for key, members in groups.items():
            if sum(w for _, w in members) > 0:
                results = []
                for c in calls:
                    taken = [(n[c.argument], w) for n, w in members if c.filter is None or n[c.filter]]
                    copies = defaultdict(int)
                    for value, w in taken:
                        copies[freeze(value)] += w
                    results.append(evaluate(c.function, [v for v, n in copies.items() for _ in range(n)], c.parameters))
                answer.append(((*key, *results), t, INFINITY if t == horizon else t + 1, 1))
    return History.of(operator.schema, [Delta.from_rows(operator.schema, answer)])


def run(operator: AggregateOperator, ticks, store=None) -> History:
    """Feed the ticks (delta, frontier); the output is checked to be valid, and the state to be empty in the end."""
    state = operator.new_state(store or MemoryStore())
    validator = StreamValidator(operator.schema)
    final = operator._hold and not operator._speculative
    deltas = []
    for delta, frontier in ticks:
        step = operator.step(state, (delta,), (frontier,))
        validator.check_delta(step.delta, step.frontier)
        assert not final or (step.delta.weight > 0).all()
        deltas.append(step.delta)
    assert operator.buffered(state) == (0, 0)
    return History.of(operator.schema, deltas)


def ticks_of(schema: Schema, pieces) -> list[tuple[Delta, int]]:
    """One tick a piece; the last one ends the stream."""
    frontier, ticks = BEGINNING, []
    for piece in pieces:
        frontier = max([frontier, *(e.at for e in piece if isinstance(e, Stable))])
        ticks.append((whole(schema, piece), frontier))
    return [*ticks, (Delta.empty(schema), INFINITY)]


def checked(schema: Schema, text: str, calls: list[Call], keys=(), **form) -> list:
    """The rows of the history, after comparing with the definition; one tick per element."""
    operator = AggregateOperator([schema], keys, calls, **form)
    elements = timeline(text, schema)
    history = run(operator, ticks_of(schema, [[e] for e in elements]))
    assert history == expected(operator, list(keys), calls, whole(schema, elements))
    return history.rows()


# -- random streams against the definition ----------------------------------------------------------------------------

SCHEMA = Schema.of(k="BIGINT", x="DOUBLE", s="STRING", p="BOOLEAN", d=pa.decimal128(10, 2), t="TIMESTAMP")
CALLS = {
    "extremes": [
        Call("MIN", "a", pa.float64(), "x"),
        Call("MAX", "b", pa.float64(), "x"),
        Call("MAX", "c", pa.string(), "s"),
        Call("MIN", "d", pa.decimal128(10, 2), "d", "p"),
        Call("MAX", "e", pa.timestamp("us"), "t"),
        Call("MIN", "f", pa.bool_(), "p"),
    ],
    "lists": [
        Call("ARRAY_AGG", "a", pa.list_(pa.float64()), "x"),
        Call("LISTAGG", "b", pa.string(), "s", "p"),
        Call("LISTAGG", "c", pa.string(), "s", parameters=("; ",)),
        Call("MEDIAN", "d", pa.float64(), "x"),
        Call("MEDIAN", "e", pa.float64(), "d", "p"),
        Call("ARRAY_AGG", "f", pa.list_(pa.bool_()), "p", "p"),
    ],
    "modes": [
        Call("MODE", "a", pa.float64(), "x"),
        Call("MODE", "b", pa.string(), "s", "p"),
        Call("MODE", "c", pa.decimal128(10, 2), "d"),
        Call("MODE", "d", pa.bool_(), "p"),
        Call("MODE", "e", pa.timestamp("us"), "t"),
    ],
    "user": [
        Call("PRODUCT", "a", pa.float64(), "x", parameters=PRODUCT),
        Call("TOTAL", "b", pa.float64(), "x", "p", parameters=TOTAL),
        Call("SPREAD", "c", pa.float64(), "x", parameters=SPREAD),
        Call("TOTAL", "d", pa.float64(), "k", parameters=TOTAL),
    ],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("keys", [[], ["k"], ["s", "p"]], ids=str)
def test_random_streams_give_the_answer_of_every_instant(form, calls, keys, tmp_path: Path):
    for seed in range(12):
        dice = Dice(seed, len(calls), len(keys))
        source = Source("s", SCHEMA, revisable=FORMS[form].get("revisable", True))
        elements = stream(dice, source, StreamShape(elements=24, special=calls in ("extremes", "modes")))
        operator = AggregateOperator([SCHEMA], keys, CALLS[calls], **FORMS[form])
        ticks = ticks_of(SCHEMA, cut(dice, elements, dice.integer(1, 6)))
        store = FileStore(tmp_path / f"{seed}") if seed % 4 == 0 else MemoryStore()
        history = run(operator, ticks, store)
        wanted = expected(operator, keys, CALLS[calls], whole(SCHEMA, elements))
        assert history == wanted, f"seed {seed}: {history.difference(wanted)}"


@pytest.mark.parametrize("form", FORMS)
def test_large_random_groups_give_the_same_in_every_form(form, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(snapshots, "_MOST_PAIRS", 500)
    schema = Schema.of(k="BIGINT", x="DOUBLE")
    calls = [
        Call("MAX", "a", pa.float64(), "x"),
        Call("MIN", "b", pa.float64(), "x"),
        Call("MEDIAN", "c", pa.float64(), "x"),
        Call("ARRAY_AGG", "d", pa.list_(pa.float64()), "x"),
        Call("MODE", "e", pa.float64(), "x"),
    ]
    random = np.random.default_rng(1)
    ticks, size = [], 300
    for tick in range(8):
        start = 50 * tick + random.integers(0, 60, size)
        end = start + random.integers(1, 120, size)
        columns = [pa.array(random.integers(0, 5, size)), pa.array(random.integers(0, 40, size) / 4)]
        ticks.append((Delta(schema, columns, start, end, random.integers(1, 3, size)), 50 * tick))
    ticks.append((Delta.empty(schema), INFINITY))
    operator = AggregateOperator([schema], ["k"], calls, **FORMS[form])
    wanted = expected(operator, ["k"], calls, Delta.concat(schema, [delta for delta, _ in ticks]))
    assert run(operator, ticks) == wanted


# -- literal cases ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_value_handed_over_at_an_instant_is_found_after_the_first_row_is_gone(form):
    schema = Schema.of(x="INT")
    calls = [Call("MAX", "m", pa.int32(), "x"), Call("MEDIAN", "d", pa.float64(), "x")]
    rows = checked(schema, "7 0-5, ~3, 7 5-20, ~12, 3 14-16, ~18", calls, **FORMS[form])
    assert rows == [((7, 7.0), 0, 14, 1), ((7, 5.0), 14, 16, 1), ((7, 7.0), 16, 20, 1)]


@pytest.mark.parametrize(
    ("type_", "ordered"),
    [
        (pa.int8(), [-128, 0, 127]),
        (pa.int64(), [-(2**63), -1, 2**63 - 1]),
        (pa.float64(), [-INF, -1.5, 0.0, 2.5, INF, NAN]),
        (pa.float32(), [-INF, -1.5, 2.5, NAN]),
        (pa.bool_(), [False, True]),
        (pa.string(), ["", "Z", "a", "é"]),
        (pa.binary(), [b"", b"\x00", b"\xff"]),
        (pa.decimal128(18, 2), [Decimal("-9999999999999999.99"), Decimal("0.00"), Decimal("9999999999999999.99")]),
        (pa.decimal128(38, 0), [Decimal(-(10**37)), Decimal(3), Decimal(10**37)]),
        (pa.date32(), [date(1960, 1, 1), date(2026, 1, 1)]),
        (pa.timestamp("us"), [datetime(1960, 1, 1), datetime(2026, 1, 1, 12)]),
        (pa.list_(pa.int64()), [[], [1], [1, 0], [2]]),
        (pa.struct({"a": pa.int64()}), [{"a": 1}, {"a": 2}]),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", FORMS)
def test_extremes_of_every_type(form, type_, ordered):
    schema = Schema.of(x=type_)
    calls = [Call("MIN", "low", type_, "x"), Call("MAX", "high", type_, "x")]
    rows = [((v,), i, 2 * len(ordered) - i, 1) for i, v in enumerate(ordered)] + [((None,), 0, 100, 1)]
    operator = AggregateOperator([schema], [], calls, **FORMS[form])
    ticks = [(Delta.from_rows(schema, [row]), BEGINNING) for row in rows]
    history = run(operator, [*ticks, (Delta.empty(schema), INFINITY)])
    for t in range(100):
        valid = [v for v, s, e, _ in rows if s <= t < e and v != (None,)]
        wanted = (valid[0][0], valid[-1][0]) if valid else (None, None)
        assert list(history.snapshot(t)) == list(History.of(
            operator.schema, [Delta.from_rows(operator.schema, [(wanted, t, t + 1, 1)])]).snapshot(t))  # fmt: skip


def test_negative_zero_equals_zero():
    schema = Schema.of(x="DOUBLE")
    for form in FORMS.values():
        checked(schema, "-0.0 0-5, 0.0 3-9, -0.0 7-12", [Call("MAX", "m", pa.float64(), "x")], **form)


def test_the_reserved_key_is_a_value_like_any_other():
    schema = Schema.of(k="STRING", x="BIGINT")
    word = 0x6E756C6C5F6B6579
    rows = checked(schema, f"a/{word} 0-5, a/null 3-9", [Call("MAX", "m", pa.int64(), "x")], ["k"])
    assert rows == [(("a", word), 0, 5, 1), (("a", None), 5, 9, 1)]


def test_median_is_the_mean_of_the_middle_two():
    schema = Schema.of(x="DOUBLE")
    calls = [Call("MEDIAN", "m", pa.float64(), "x")]
    rows = checked(schema, "1 0-10, 4 2-10, 5 4-10, null 6-12, 4*2 8-10", calls)
    assert rows == [((1.0,), 0, 2, 1), ((2.5,), 2, 4, 1), ((4.0,), 4, 10, 1), ((None,), 10, 12, 1)]
    large = [Delta.from_rows(schema, [((x,), 0, 1, 1)]) for x in (-1.5e308, -1.7e308)]
    operator = AggregateOperator([schema], [], calls)
    assert run(operator, [(Delta.concat(schema, large), INFINITY)]).rows() == [((-1.6e308,), 0, 1, 1)]


def test_lists_are_ascending_with_nulls_first_and_copies():
    schema = Schema.of(s="STRING")
    calls = [Call("ARRAY_AGG", "a", pa.list_(pa.string()), "s"), Call("LISTAGG", "l", pa.string(), "s")]
    rows = checked(schema, "b*2 0-9, null 0-9, a 0-9", calls)
    assert rows == [(([None, "a", "b", "b"], "abb"), 0, 9, 1)]


def test_rows_that_are_taken_away_and_given_back_add_up():
    """Weights need not match row by row: only what they come to at an instant counts."""
    schema = Schema.of(x="INT")
    calls = [Call("MAX", "m", pa.int32(), "x"), Call("ARRAY_AGG", "l", pa.list_(pa.int32()), "x")]
    operator = AggregateOperator([schema], [], calls)
    parts = [((5,), 0, 10, 2), ((5,), 4, 6, -2), ((3,), 0, 10, 1), ((5,), 5, 6, 1)]
    ticks = [(Delta.from_rows(schema, [part]), BEGINNING) for part in parts]
    rows = run(operator, [*ticks, (Delta.empty(schema), INFINITY)]).rows()
    assert rows == [
        ((5, [3, 5, 5]), 0, 4, 1), ((3, [3]), 4, 5, 1), ((5, [3, 5]), 5, 6, 1), ((5, [3, 5, 5]), 6, 10, 1)
    ]  # fmt: skip


# -- staircases -------------------------------------------------------------------------------------------------------


def test_staircase_keeps_only_rows_that_can_become_the_extreme():
    schema = Schema.of(x="BIGINT")
    operator = AggregateOperator([schema], [], [Call("MAX", "m", pa.int64(), "x")], revisable=False)
    state = operator.new_state(MemoryStore())
    rows = [((x,), t, t + 1000, 1) for t, x in enumerate([5, 3, 4, 1, 2, 2])]
    operator.step(state, (Delta.from_rows(schema, rows),), (10,))
    assert [s.rows for s in state.staircases.values()] == [3]  # 5, 4 and the second 2
    operator.step(state, (Delta.from_rows(schema, [((9,), 20, 1500, 1)]),), (30,))
    assert [s.rows for s in state.staircases.values()] == [1]
    assert state.kept.rows == 0


# -- user-defined functions -------------------------------------------------------------------------------------------


def test_inverse_is_used_and_never_asked_to_empty_the_state():
    calls = []

    class Watched(Product):
        def merge(self, state, value):
            return state + value

        def inverse(self, state, value):
            calls.append((state, value))
            return state - value

    schema = Schema.of(x="DOUBLE")
    text = "1 0-4, 2 2-8, 4 6-10, 8 12-14"
    elements = timeline(text, schema)
    operator = AggregateOperator([schema], [], [Call("WATCHED", "t", pa.float64(), "x", parameters=(give(Watched),))])
    rows = run(operator, ticks_of(schema, [elements])).rows()
    assert [(row[0], s, e) for row, s, e, _ in rows] == [
        (1, 0, 2), (3, 2, 4), (2, 4, 6), (6, 6, 8), (4, 8, 10), (8, 12, 14)
    ]  # fmt: skip
    assert calls == [(3.0, 1.0), (6.0, 2.0)]


def test_functions_travel_to_another_process(tmp_path: Path):
    (tmp_path / "my_aggregates.py").write_text(
        textwrap.dedent("""
            def longest(values):
                return max(values.to_pylist(), key=len)

            class Joined:
                init = eval = staticmethod(lambda x: x)
                merge = staticmethod(lambda s, x: s + x)
        """)
    )
    make = textwrap.dedent("""
        import pickle, sys, pyarrow as pa
        from headwater.operators.aggregates.user_aggregates import load_aggregate
        paths = "my_aggregates:longest", "my_aggregates:Joined"
        sys.stdout.buffer.write(pickle.dumps([load_aggregate("f", path, pa.string()) for path in paths]))
    """)
    use = textwrap.dedent("""
        import pickle, sys, pyarrow as pa
        longest, joined = pickle.load(sys.stdin.buffer)
        print(longest.evaluate(pa.array([["a", "bb"]])), joined.evaluate(pa.array([["a", "bb"]])))
    """)
    path = f"import sys; sys.path[:0] = {[str(tmp_path), *sys.path]!r}\n"
    made = subprocess.run([sys.executable, "-c", path + make], capture_output=True, check=True).stdout
    used = subprocess.run([sys.executable, "-c", path + use], input=made, capture_output=True, check=True).stdout
    assert used.decode().split("\n")[0] == "['bb'] ['abb']"


def test_functions_that_have_no_module_travel_with_their_code():
    made = load_aggregate("PRODUCT", *PRODUCT, pa.float64())
    assert pickle.loads(pickle.dumps(made)).evaluate(pa.array([[2.0, 3.0], None])) == [6.0, None]
