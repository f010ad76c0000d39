"""Joins: inner, semi, anti and outer; by equal keys, by any predicate, and the product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.algebra.nodes import Source
from headwater.expressions.nodes import Expression
from headwater.kernels.sort import sort_by_key
from headwater.model.delta import Delta
from headwater.model.element import Stable
from headwater.model.history import History
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.joins import join as join_module
from headwater.operators.joins.join import JoinOperator
from headwater.operators.joins.outer_join import OuterJoinOperator, SemiJoinOperator
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.choices import Dice
from headwater.testing.expression_text import bind_text
from headwater.testing.generate import StreamShape, cut, whole
from headwater.testing.generate import stream as random_stream
from headwater.testing.timeline import changes, timeline

OUTER = ("left", "right", "full")
LEFT, RIGHT = Schema.of(x="STRING"), Schema.of(y="STRING")
S1 = "c 1-8, a 5-11, d 6-14, a 9-10, b 12-17"  # Table 11.1
S2 = "b 1-7, d 3-9, a 4-5, b 7-15, e 10-18"


def residual(text: str, left: Schema, right: Schema) -> Expression:
    pair = [Field(f"{side}.{f.name}", f.type) for side, schema in (("l", left), ("r", right)) for f in schema]
    return bind_text(text, Schema(tuple(pair)))


def outer_join(left: Schema, right: Schema, keys, condition: str | None, kind: str, **form: bool):
    operator = SemiJoinOperator if kind in ("semi", "anti") else OuterJoinOperator
    predicate = None if condition is None else residual(condition, left, right)
    return operator(left, right, keys, predicate, kind=kind, **form)


def stream(text: str, schema: Schema) -> Delta:
    return changes(timeline(text, schema), schema)


def joined(operator, left: Delta, right: Delta, frontiers=(INFINITY, INFINITY)) -> set:
    state = operator.new_state(MemoryStore())
    step = operator.step(state, (left, right), frontiers)
    assert step.frontier == min(frontiers)
    return {("".join(map(str, row)), s, e, n) for row, s, e, n in History.of(operator.schema, [step.delta]).rows()}


# -- literal cases ----------------------------------------------------------------------------------------------------


def test_equi_join_of_table_11_6():
    operator = JoinOperator(LEFT, RIGHT, [("x", "y")])
    assert joined(operator, stream(S1, LEFT), stream(S2, RIGHT)) == {("dd", 6, 9, 1), ("bb", 12, 15, 1)}


def test_product_of_s1_and_s2():
    operator = JoinOperator(LEFT, RIGHT, [])
    text = (
        "cb 1-7, cd 3-8, ca 4-5, ab 5-7, ad 5-9, db 6-7, dd 6-9, cb 7-8, ab 7-11, db 7-14, ab 9-10, ae 10-11, de 10-14, "
        "bb 12-15, be 12-17"
    )
    expected = {("".join(r), s, e, n) for r, s, e, n in History.of(LEFT, [stream(text, LEFT)]).rows()}
    assert joined(operator, stream(S1, LEFT), stream(S2, RIGHT)) == expected


def test_golden_a_2_emits_at_once_and_repairs():
    operator = JoinOperator(LEFT, RIGHT, [("x", "y")])
    state = operator.new_state(MemoryStore())

    def tick(left: str, right: str, *frontiers: int):
        delta, frontier = operator.step(state, (stream(left, LEFT), stream(right, RIGHT)), frontiers)
        return sorted((row[0], s, e, w) for row, s, e, w in delta.rows()), frontier

    begin = BEGINNING
    assert tick("A0 0-2", "", begin, begin) == ([], begin)
    assert tick("", "", 1, begin) == ([], begin)
    assert tick("A1 2-6", "", 1, begin) == ([], begin)
    assert tick("", "A1 3-5", 1, begin) == ([("A1", 3, 5, 1)], begin)
    assert tick("", "", 1, 3) == ([], 1)
    assert state.rows == 2  # A0 cannot meet anything any more
    assert tick("A1 2-6>4", "", 1, 3) == ([("A1", 3, 4, 1), ("A1", 3, 5, -1)], 1)
    assert [sorted(side.all()["expiry"].tolist()) for side in state.sides] == [[4], [5]]
    assert tick("", "", INFINITY, INFINITY) == ([], INFINITY)
    assert operator.buffered(state) == (0, 0)


def test_a_row_removed_altogether_leaves_nothing_behind():
    """Errata 8: the printed algorithm stores it again as an empty interval."""
    operator = JoinOperator(LEFT, RIGHT, [("x", "y")])
    state = operator.new_state(MemoryStore())
    operator.step(state, (stream("a 6-7", LEFT), stream("", RIGHT)), (BEGINNING, BEGINNING))
    operator.step(state, (stream("a 6-7>6", LEFT), stream("", RIGHT)), (BEGINNING, BEGINNING))
    assert len(operator.step(state, (stream("", LEFT), stream("a 2-", RIGHT)), (BEGINNING, BEGINNING)).delta) == 0
    assert state.rows == 1


def test_weights_multiply_and_null_keys_match_nothing():
    operator = JoinOperator(LEFT, RIGHT, [("x", "y")])
    left, right = stream("a*2 1-9, null 1-9", LEFT), stream("a*3 4-, null 1-9", RIGHT)
    assert joined(operator, left, right) == {("aa", 4, 9, 6)}


@pytest.mark.parametrize(
    ("types", "left", "right"),
    [
        (("BIGINT", "BIGINT"), "1/x 1-9, 2/y 1-9", "2/z 3-5"),
        (("INT", "BIGINT"), "1/x 1-9, 2/y 1-9", "2/z 3-5"),
        (("DOUBLE", "DOUBLE"), "1/x 1-9, 2/y 1-9", "2/z 3-5"),
        (("DATE", "DATE"), "2020-01-01/x 1-9, 2020-01-02/y 1-9", "2020-01-02/z 3-5"),
        ((pa.decimal128(9, 2), pa.decimal128(9, 2)), "1/x 1-9, 2/y 1-9", "2/z 3-5"),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_keys_of_every_kind_come_back_with_their_type(types, left, right, together):
    schemas = Schema.of(k=types[0], v="STRING"), Schema.of(m=types[1], w="STRING")
    operator = JoinOperator(*schemas, [("k", "m")])
    state = operator.new_state(MemoryStore())
    deltas = stream(left, schemas[0]), stream(right, schemas[1])
    empty = tuple(map(Delta.empty, schemas))
    ticks = [deltas] if together else [(empty[0], deltas[1]), (deltas[0], empty[1])]
    out = [operator.step(state, tick, (BEGINNING, BEGINNING)).delta for tick in ticks]
    expected = Delta.concat(operator.schema, out)
    assert [c.type for c in expected.columns] == list(operator.schema.types)
    (((key, y, other, z), s, e, w),) = expected.rows()
    assert (key == other, y, z, s, e, w) == (True, "y", "z", 3, 5, 1)


def test_a_composite_key_matches_when_all_its_parts_do():
    schemas = Schema.of(a="BIGINT", b="STRING"), Schema.of(c="BIGINT", d="STRING")
    operator = JoinOperator(*schemas, [("a", "c"), ("b", "d")])
    left, right = stream("1/p 0-9, 1/q 0-9, null/p 0-9", schemas[0]), stream("1/q 5-7, 2/p 0-9, 1/null 0-9", schemas[1])
    assert joined(operator, left, right) == {("1q1q", 5, 7, 1)}
    assert operator.routing() == (("a", "b"), ("c", "d"))


def test_a_residual_that_is_null_is_not_true():
    schemas = Schema.of(k="BIGINT", u="BIGINT"), Schema.of(m="BIGINT", v="BIGINT")
    operator = JoinOperator(*schemas, [("k", "m")], residual('"l.u" < "r.v"', *schemas))
    left, right = stream("1/5 0-9, 1/null 0-9, 1/8 0-9", schemas[0]), stream("1/7 3-", schemas[1])
    assert joined(operator, left, right) == {("1517", 3, 9, 1)}


def test_rows_are_kept_until_the_other_side_has_passed_their_end():
    operator = JoinOperator(LEFT, RIGHT, [("x", "y")], revisable=False)
    state = operator.new_state(MemoryStore())
    operator.step(state, (stream("a 0-5, b 0-9", LEFT), stream("c 0-5", RIGHT)), (7, 0))
    assert [side.rows for side in state.sides] == [2, 0]
    operator.step(state, (stream("", LEFT), stream("", RIGHT)), (7, 5))
    assert [side.rows for side in state.sides] == [1, 0]
    operator.step(state, (stream("", LEFT), stream("d 5-", RIGHT)), (INFINITY, 5))
    assert [side.rows for side in state.sides] == [1, 0]
    step = operator.step(state, (stream("", LEFT), stream("b 6-7", RIGHT)), (INFINITY, INFINITY))
    assert step.delta.rows() == [(("b", "b"), 6, 7, 1)]
    assert state.rows == 0


def test_a_large_product_is_made_in_blocks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(join_module, "BLOCK", 64)
    schemas = Schema.of(u="BIGINT"), Schema.of(v="BIGINT")
    operator = JoinOperator(*schemas, [], residual('"l.u" = "r.v" + 1', *schemas))
    rows = [((i,), i, i + 50, 1) for i in range(200)]
    left, right = (Delta.from_rows(schema, rows) for schema in schemas)
    expected = {(f"{i + 1}{i}", i + 1, i + 50, 1) for i in range(199)}
    assert joined(operator, left, right) == expected
    state = operator.new_state(MemoryStore())
    empty = Delta.empty(schemas[0])
    assert len(operator.step(state, (empty, right), (BEGINNING, BEGINNING)).delta) == 0
    late = operator.step(state, (left, Delta.empty(schemas[1])), (BEGINNING, BEGINNING)).delta
    assert {(f"{a}{b}", s, e, w) for (a, b), s, e, w in late.rows()} == expected


def test_state_survives_through_a_manifest(tmp_path: Path):
    operator = JoinOperator(LEFT, RIGHT, [("x", "y")])
    state = operator.new_state(FileStore(tmp_path))
    operator.step(state, (stream("a 0-5, b 2-", LEFT), stream("c 0-5", RIGHT)), (1, 1))
    back = operator.new_state(FileStore(tmp_path))
    back.from_manifest(state.to_manifest())
    assert operator.buffered(back) == operator.buffered(state)
    step = operator.step(back, (stream("", LEFT), stream("a 3-4, b 3-4", RIGHT)), (1, 1))
    assert sorted(step.delta.rows()) == [(("a", "a"), 3, 4, 1), (("b", "b"), 3, 4, 1)]


def test_negative_starts_and_endless_rows():
    operator = JoinOperator(LEFT, RIGHT, [("x", "y")])
    state = operator.new_state(MemoryStore())
    empty = stream("", LEFT), stream("", RIGHT)
    operator.step(state, (stream("a -50-, a -9--3", LEFT), empty[1]), (BEGINNING, BEGINNING))
    step = operator.step(state, (empty[0], stream("a -20-", RIGHT)), (BEGINNING, BEGINNING))
    assert {r[1:] for r in step.delta.rows()} == {(-20, INFINITY, 1), (-9, -3, 1)}


def test_the_sort_by_key_is_stable_and_right_where_the_top_bits_agree():
    r = np.random.default_rng(5)
    for n in (0, 1, 2, 33, 5000):
        low = r.integers(0, 2**64, n, dtype=np.uint64)
        low[: n // 2] = (low[: n // 2] & np.uint64(3)) + np.uint64(1 << 60)  # these differ in the lowest bits only
        high = r.integers(0, 3, n, dtype=np.uint64)
        assert (sort_by_key(low, high) == np.lexsort((high, low))).all()
        assert (sort_by_key(low, np.empty(0, np.uint64)) == np.argsort(low, kind="stable")).all()


# -- semi, anti and outer joins -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("speculative", [False, True])
@pytest.mark.parametrize("condition", [None, "true"])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("semi", "d 6-9, b 12-15"),
        ("anti", "c 1-8, a 5-11, d 9-14, a 9-10, b 15-17"),
        ("left", "c/null 1-8, a/null 5-11, d/d 6-9, d/null 9-14, a/null 9-10, b/b 12-15, b/null 15-17"),
        ("right", "null/b 1-7, null/d 3-6, d/d 6-9, null/a 4-5, null/b 7-12, b/b 12-15, null/e 10-18"),
        (
            "full",
            "c/null 1-8, a/null 5-11, d/d 6-9, d/null 9-14, a/null 9-10, b/b 12-15, b/null 15-17, "
            "null/b 1-7, null/d 3-6, null/a 4-5, null/b 7-12, null/e 10-18",
        ),
    ],
)
def test_matches_of_s1_and_s2(kind: str, expected: str, condition: str | None, speculative: bool):
    operator = outer_join(LEFT, RIGHT, [("x", "y")], condition, kind, speculative=speculative)
    history = History.of(operator.schema, [stream(expected, operator.schema)])
    state = operator.new_state(MemoryStore())
    step = operator.step(state, (stream(S1, LEFT), stream(S2, RIGHT)), (INFINITY, INFINITY))
    assert History.of(operator.schema, [step.delta]) == history
    assert (step.frontier, operator.buffered(state)) == (INFINITY, (0, 0))


def test_multiplicities_of_the_left_are_kept_and_null_keys_have_no_match():
    left, right = stream("a*3 1-9, null*2 1-9, b 1-9", LEFT), stream("a*2 2-4, null 1-9, a 3-5", RIGHT)
    for condition in (None, "true"):
        semi, anti = (outer_join(LEFT, RIGHT, [("x", "y")], condition, kind) for kind in ("semi", "anti"))
        assert joined(semi, left, right) == {("a", 2, 5, 3)}
        assert joined(anti, left, right) == {("a", 1, 2, 3), ("a", 5, 9, 3), ("None", 1, 9, 2), ("b", 1, 9, 1)}


def test_a_semi_join_with_an_endless_right_side_does_not_wait_for_it():
    operator = outer_join(LEFT, RIGHT, [("x", "y")], None, "semi")
    state = operator.new_state(MemoryStore())
    step = operator.step(state, (stream("a 5-8", LEFT), stream("a 0-", RIGHT)), (6, 6))
    assert step.delta.rows() == [(("a",), 5, 8, 1)]
    assert step.frontier == 6


def test_a_strong_anti_join_says_only_what_is_final():
    operator = outer_join(LEFT, RIGHT, [("x", "y")], None, "anti")
    state = operator.new_state(MemoryStore())
    step = operator.step(state, (stream("a 0-9", LEFT), stream("", RIGHT)), (4, 4))
    assert (len(step.delta), step.frontier) == (0, 0)
    step = operator.step(state, (stream("", LEFT), stream("a 5-7", RIGHT)), (6, 6))
    assert (step.delta.rows(), step.frontier) == ([(("a",), 0, 5, 1)], 6)
    step = operator.step(state, (stream("", LEFT), stream("", RIGHT)), (20, 20))
    assert (step.delta.rows(), step.frontier) == ([(("a",), 7, 9, 1)], 20)


def test_columns_padded_with_null_are_nullable():
    schemas = tuple(Schema((Field(n, pa.int64(), nullable=False),)) for n in "xy")
    nullable = {k: [f.nullable for f in outer_join(*schemas, [("x", "y")], None, k).schema] for k in OUTER}
    assert nullable == {"left": [False, True], "right": [True, False], "full": [True, True]}


# -- random streams against the definition ----------------------------------------------------------------------------

HORIZON = 40
TYPES = {"k": "BIGINT", "u": "STRING"}, {"m": "BIGINT", "v": "STRING"}
CASES: dict[str, tuple[list[tuple[str, str]], str | None, Callable[[tuple, tuple], bool]]] = {
    "equi": ([("k", "m")], None, lambda a, b: None not in (a[0], b[0]) and a[0] == b[0]),
    "composite": ([("k", "m"), ("u", "v")], None, lambda a, b: a == b and None not in a),
    "equi with residual": (
        [("k", "m")],
        '"l.u" <> "r.v"',
        lambda a, b: None not in a + b and a[0] == b[0] and a[1] != b[1],
    ),
    "theta": ([], '"l.k" < "r.m"', lambda a, b: None not in (a[0], b[0]) and a[0] < b[0]),
    "product": ([], None, lambda a, b: True),
}


def answer(kind: str, left: Counter, right: Counter, pair: Callable[[tuple, tuple], bool]) -> Counter:
    """The join of two multisets, by definition."""
    inner = Counter({(*a, *b): n * m for a, n in left.items() for b, m in right.items() if pair(a, b)})
    left_alone = Counter({a: n for a, n in left.items() if not any(pair(a, b) for b in right)})
    right_alone = Counter({b: n for b, n in right.items() if not any(pair(a, b) for a in left)})
    if kind == "semi":
        return left - left_alone
    if kind == "anti":
        return left_alone
    if kind in ("left", "full"):
        inner += Counter({(*a, None, None): n for a, n in left_alone.items()})
    if kind in ("right", "full"):
        inner += Counter({(None, None, *b): n for b, n in right_alone.items()})
    return inner


def snapshots(schema: Schema, deltas: list[Delta], until: int) -> list[Counter]:
    history = History.of(schema, deltas)
    return [history.snapshot(t) for t in range(until)]


@pytest.mark.parametrize("speculative", [False, True], ids=["strong", "speculative"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["inner", "semi", "anti", *OUTER])
def test_random_streams_agree_with_the_definition(kind: str, case: str, speculative: bool, tmp_path: Path):
    keys, condition, pair = CASES[case]
    for seed in range(8):
        dice = Dice(seed)
        revisable = seed % 4 != 0
        inputs = tuple(Source(n, Schema.of(**t), revisable=revisable) for n, t in zip("lr", TYPES, strict=True))
        schemas = tuple(source.schema for source in inputs)
        shape = StreamShape(elements=20)
        parts = [cut(dice, [*random_stream(dice, s, shape), Stable(INFINITY)], 6) for s in inputs]
        predicate = None if condition is None else residual(condition, *schemas)
        form = {"speculative": speculative, "revisable": revisable or speculative}
        if kind == "inner":
            operator = JoinOperator(*schemas, keys, predicate, **form)
        else:
            operator = outer_join(*schemas, keys, condition, kind, **form)
        state = operator.new_state(FileStore(tmp_path) if seed == 1 else MemoryStore())
        validator = StreamValidator(operator.schema)
        frontiers, arrived, out = [BEGINNING, BEGINNING], ([], []), []
        for tick in zip(*parts, strict=True):
            deltas = tuple(whole(schema, part) for schema, part in zip(schemas, tick, strict=True))
            for side, part in enumerate(tick):
                arrived[side].append(deltas[side])
                frontiers[side] = max([frontiers[side], *(e.at for e in part if isinstance(e, Stable))])
            delta, frontier = operator.step(state, deltas, tuple(frontiers))
            out.append(delta)
            assert frontier == min(frontiers) if speculative else frontier <= min(frontiers)
            assert operator.retracts or (delta.weight > 0).all()
            validator.check_delta(delta, frontier)
            # An inner join is right for all input so far; the others as far as nothing can change any more, or, if they
            # speculate, up to the largest start of either input.
            until = HORIZON if kind == "inner" else max(0, min(frontier, HORIZON))
            if speculative:
                starts = [
                    int(Delta.concat(s, ds).consolidate().start.max(initial=-1))
                    for s, ds in zip(schemas, arrived, strict=True)
                ]
                until = max(until, max(starts) + 1)
            sides = (snapshots(schema, ds, until) for schema, ds in zip(schemas, arrived, strict=True))
            expected = [answer(kind, a, b, pair) for a, b in zip(*sides, strict=True)]
            assert snapshots(operator.schema, out, until) == expected
        assert (frontier, operator.buffered(state)) == (INFINITY, (0, 0))
