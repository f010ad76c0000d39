"""Rows that are put together look the same to whoever sees less than rows."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.aggregates.aggregate import AggregateOperator, Call
from headwater.operators.joins.pile import Pile, covered
from headwater.operators.sight import Sight, put_together, seen_together
from headwater.operators.sweeps.count_sweep import CountSweepOperator
from headwater.state.store import MemoryStore
from headwater.testing.cases import scaled
from headwater.testing.choices import Dice

TYPES = {"BIGINT": pa.int64(), "INT": pa.int32(), "TINYINT": pa.int8(), "DOUBLE": pa.float64()}
TYPES |= {f"DECIMAL({p},2)": pa.decimal128(p, 2) for p in (5, 18, 19, 21, 38)}
SUMS = {"DOUBLE": pa.float64()} | dict.fromkeys(("BIGINT", "INT", "TINYINT"), pa.int64())


def value(dice: Dice, type_: str) -> object:
    if dice.integer(0, 5) == 0:
        return None
    if type_ == "DOUBLE":
        special = [math.nan, math.inf, -math.inf, -0.0]
        return special[dice.integer(0, 3)] if dice.integer(0, 9) == 0 else dice.integer(-99, 99) / 10
    if type_.startswith("DECIMAL"):
        most = 10 ** min(TYPES[type_].precision, 36) - 1
        size = most if dice.integer(0, 3) == 0 else 999
        return Decimal(dice.integer(-1, 1) * (size - dice.integer(0, 9))).scaleb(-2)
    most = 2 ** (TYPES[type_].bit_width - 1)
    if type_ == "BIGINT":
        most >>= 8  # so that sums fit
    return [most - 1, -most, 7, 0, -3][dice.integer(0, 4)]


def rows(dice: Dice, types: list[str], count: int, *, gone: bool) -> Delta:
    schema = Schema.of(k="STRING", **{f"x{i}": TYPES[t] for i, t in enumerate(types)}, f="BOOLEAN")
    made = []
    for _ in range(count):
        start = dice.integer(0, 8)
        end = INFINITY if dice.integer(0, 6) == 0 else start + dice.integer(1, 8)
        row = ("ab"[dice.integer(0, 1)], *(value(dice, t) for t in types), bool(dice.integer(0, 1)))
        made.append((row, start, end, 1 + dice.integer(0, 1)))
        if gone and dice.integer(0, 4) == 0:
            made.append((row, start, end, -1))
    return Delta.from_rows(schema, made)


def call(dice: Dice, i: int, type_: str, functions: list[str]) -> Call:
    function = functions[dice.integer(0, len(functions) - 1)]
    shown = {"COUNT": pa.int64(), "AVG": pa.float64()}.get(function)
    if shown is None:
        shown = SUMS.get(type_, pa.decimal128(38, 2)) if function == "SUM" else TYPES[type_]
    return Call(function, f"y{i}", shown, f"x{i}", "f" if dice.integer(0, 2) == 0 else None)


def answer(operator: AggregateOperator | CountSweepOperator, *ticks: tuple[Delta, int]) -> History:
    state, shown = operator.new_state(MemoryStore()), []
    for delta, frontier in ticks:
        shown.append(operator.step(state, (delta,), (frontier,), int(delta.start.max(initial=0))).delta)
    return History.of(operator.schema, shown)


def piled(whole: Delta, operator: AggregateOperator, dice: Dice, monkeypatch: pytest.MonkeyPatch) -> Delta:
    """As it comes from a pile of portions, put together now and then."""
    monkeypatch.setattr("headwater.operators.joins.pile._LOOSE", dice.integer(0, 20))
    sight = seen_together([operator.sight(0)], whole.schema)
    assert sight is not None
    pile = Pile(whole.schema, lambda delta: put_together(delta, sight))
    cuts = sorted(dice.integer(0, len(whole)) for _ in range(dice.integer(1, 6)))
    for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        pile.add_portion(whole.take(np.arange(a, b)))
    return put_together(pile.whole(), sight)


@pytest.mark.parametrize("speculative", [False, True], ids=["strong", "speculative"])
@pytest.mark.parametrize("extremes", [False, True], ids=["sums", "extremes"])
def test_aggregates_see_the_same(speculative: bool, extremes: bool, monkeypatch: pytest.MonkeyPatch):
    if speculative and extremes:
        return  # they see rows
    for seed in range(scaled(150)):
        dice = Dice(seed, 5)
        types = [sorted(TYPES)[dice.integer(0, len(TYPES) - 1)] for _ in range(dice.integer(1, 3))]
        calls = []
        for i, type_ in enumerate(types):
            word = not type_.startswith("DECIMAL") or TYPES[type_].precision <= 18
            functions = ["MIN", "MAX"] if extremes and word and dice.integer(0, 2) else ["COUNT", "SUM", "AVG"]
            calls += [call(dice, i, type_, functions)]
        whole = rows(dice, types, dice.integer(1, 30), gone=not extremes)
        keys = ("k",) if dice.integer(0, 1) else ()
        calls.append(Call("COUNT", "n", pa.int64()))
        operator = AggregateOperator([whole.schema], keys, calls, speculative=speculative, revisable=not extremes)
        later = whole.filter(whole.start > 100)
        seen = piled(whole, operator, dice, monkeypatch)
        expected = answer(operator, (whole, 4), (later, INFINITY))
        assert answer(operator, (seen, 4), (later, INFINITY)) == expected, seed


def test_where_rows_only_end_nothing_is_added():
    """Speculation goes as far as something begins: -3 is taken away, not 3 added."""
    schema = Schema.of(x="INT")
    most = 2**31 - 1
    whole = Delta.from_rows(schema, [((v,), 0, 5 + i % 2, 1) for i, v in enumerate([-3, 4, most // 3, -most // 3] * 9)])
    seen = put_together(whole, Sight(sums=frozenset("x")))
    assert seen.largest_start() == 0
    assert seen.weight[seen.start == 0].sum() == 36
    assert len(seen) < 12


def test_a_sum_comes_down_to_a_few_rows_an_instant():
    schema = Schema.of(x="BIGINT", y="DOUBLE")
    many = 20_000
    numbers = np.arange(many)
    starts = numbers % 10
    columns = [pa.array(numbers), pa.array(numbers * 0.1)]
    whole = Delta(schema, columns, starts, starts + 5, np.ones(many, np.int64))
    seen = put_together(whole, Sight(sums=frozenset("xy")))
    assert len(seen) <= 4 * 15
    at_0 = [(x, y, w) for (x, y), start, _, w in seen.rows() if start == 0]
    assert sum(w for _, _, w in at_0) == many // 10
    assert sum(x * w for x, _, w in at_0) == sum(range(0, many, 10))
    exact = sum(Fraction(i * 0.1) for i in range(0, many, 10))
    assert sum(Fraction(y) * w for _, y, w in at_0) == exact  # all digits of it


def test_values_that_no_sum_can_hold_stay_by_themselves():
    values = [1.5e308, 1.5e308, -1.5e308, 1.5, 2.5, math.inf, math.nan, 1.5]
    whole = Delta.from_rows(Schema.of(x="DOUBLE"), [((v,), 0, 5, 1) for v in values])
    seen = put_together(whole, Sight(sums=frozenset("x"))).rows()
    begins = sorted((x, w) for (x,), start, _, w in seen if start == 0 and x == x)
    assert begins == [(-1.5e308, 1), (0.0, 2), (5.5, 1), (1.5e308, 2), (math.inf, 1)]


def test_what_is_seen_of_a_column_in_two_ways_stays():
    schema = Schema.of(x="INT", y="STRING")
    x, y = frozenset("x"), frozenset("y")
    assert seen_together([Sight(sums=x), Sight(values=x)], schema) == Sight(values=x)
    assert seen_together([Sight(sums=x, counts=y), Sight(counts=x)], schema) == Sight(sums=x, counts=y)
    assert seen_together([Sight(sums=x), Sight(most=x)], schema) is None
    assert seen_together([Sight(sums=x), None], schema) is None
    assert seen_together([Sight(sums=x), Sight(every=True)], schema) == Sight(values=x | y)


def test_whether_a_row_is_there_needs_it_once():
    schema = Schema.of(x="INT")
    made = [((1,), 0, 4, 1), ((1,), 2, 6, 3), ((1,), 6, 7, 1), ((1,), 8, 9, 1), ((2,), 1, INFINITY, 1), ((2,), 5, 6, 1)]
    seen = sorted(covered(Delta.from_rows(schema, made)).rows())
    assert seen == [((1,), 0, 7, 1), ((1,), 8, 9, 1), ((2,), 1, INFINITY, 1)]


def test_the_same_history_of_rows_is_seen():
    schema = Schema.of(x="BIGINT")
    made = [((1,), 0, 5, 1), ((1,), 3, 5, 2), ((1,), 5, 9, 1), ((2,), 0, INFINITY, 1), ((2,), 4, 6, -1)]
    whole = Delta.from_rows(schema, made)
    ends = put_together(whole, Sight(values=frozenset("x")))
    assert History.of(schema, [ends]) == History.of(schema, [whole])
    assert len(ends) == len({(x, t) for (x,), start, end, _ in made for t in (start, end) if t < INFINITY})
