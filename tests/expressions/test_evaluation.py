"""Scalar expressions, filters and projections over deltas."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from headwater.errors import HeadwaterError
from headwater.expressions.evaluation import Expressions
from headwater.expressions.nodes import Expression
from headwater.model.delta import Delta
from headwater.model.schema import Field, Schema
from headwater.operators.rows.filter import FilterOperator
from headwater.operators.rows.project import ProjectOperator
from headwater.testing.expression_text import bind_text

SCHEMA = Schema.of(x="BIGINT", y="STRING")
DELTA = Delta.from_rows(
    SCHEMA, [((1, "a"), 0, 5, 1), ((None, "b"), 1, 3, 2), ((7, None), 2, 3, -1), ((1, "a"), 4, 9, 1)]
)


def bound(*texts: str) -> list[Expression]:
    return [bind_text(text, SCHEMA) for text in texts]


def test_a_projection_keeps_weights_intervals_and_the_frontier():
    output = Schema.of(a="BIGINT", b="STRING", c="DOUBLE", d="STRING")
    operator = ProjectOperator(SCHEMA, output, bound('"x" + 1', '"y"', '"x" / 2', "'k\"x'"))
    step = operator.step(None, (DELTA,), (3,))
    assert step.frontier == 3
    assert step.delta.schema == output
    assert step.delta.rows() == [
        ((2, "a", 0.5, 'k"x'), 0, 5, 1),
        ((None, "b", None, 'k"x'), 1, 3, 2),
        ((8, None, 3.5, 'k"x'), 2, 3, -1),
        ((2, "a", 0.5, 'k"x'), 4, 9, 1),
    ]


def test_columns_are_passed_on_without_a_copy():
    operator = ProjectOperator(SCHEMA, Schema.of(b="STRING", a="BIGINT"), bound('"y"', '"x"'))
    (b, a) = operator.step(None, (DELTA,), (0,)).delta.columns
    assert b is DELTA.columns[1]
    assert a is DELTA.columns[0]


def test_a_filter_passes_only_what_is_true():
    step = FilterOperator(SCHEMA, *bound('"x" > 1')).step(None, (DELTA,), (5,))
    assert step.delta.rows() == [((7, None), 2, 3, -1)]
    assert step.frontier == 5


@pytest.mark.parametrize(
    "operator",
    [FilterOperator(SCHEMA, *bound('"x" > 1')), ProjectOperator(SCHEMA, Schema.of(z="BIGINT"), bound('"x" * 2'))],
)
def test_an_operator_without_input_gives_nothing(operator):
    step = operator.step(None, (Delta.empty(SCHEMA),), (9,))
    assert len(step.delta) == 0
    assert step.delta.schema == operator.schema
    assert step.frontier == 9
    assert operator.routing() == (None,)
    assert operator.buffered(operator.new_state(None)).rows == 0


def test_a_plan_is_used_again_for_every_batch():
    expressions = Expressions(SCHEMA, bound('"x" + 1'), [pa.int64()])
    for size in (1, 5000, 3):
        (column,) = expressions.evaluate([pa.array(range(size)), pa.nulls(size, pa.string())], size)
        assert column.to_pylist() == list(range(1, size + 1))


def test_expressions_survive_pickling():
    operator = ProjectOperator(SCHEMA, Schema.of(a="BIGINT"), bound('"x" + 1'))
    expected = operator.step(None, (DELTA,), (0,)).delta.rows()
    assert pickle.loads(pickle.dumps(operator)).step(None, (DELTA,), (0,)).delta.rows() == expected


def test_results_have_the_declared_types():
    output = Schema(
        (Field("n", pa.int64()), Field("l", pa.list_(pa.int32())), Field("s", pa.struct([("a", pa.int64())])))
    )
    operator = ProjectOperator(SCHEMA, output, bound('"x"', "ARRAY(1, 2)", "NAMED_STRUCT('a', \"x\")"))
    delta = operator.step(None, (DELTA,), (0,)).delta
    assert [c.type for c in delta.columns] == list(output.types)
    assert delta.rows()[0] == ((1, [1, 2], {"a": 1}), 0, 5, 1)


def test_a_failing_expression_is_named():
    operator = ProjectOperator(SCHEMA, Schema.of(a="BIGINT", b="INT"), bound('"x" + 1', 'CAST("y" AS INTEGER)'))
    with pytest.raises(HeadwaterError) as caught:
        operator.step(None, (DELTA,), (0,))
    assert caught.value.code == "EXPRESSION_FAILED"
    assert caught.value.message == 'could not compute CAST("y" AS INT)'
    assert "'a'" in caught.value.detail
    # The operator can go on with other rows afterwards.
    good = Delta.from_rows(SCHEMA, [((1, "5"), 0, 1, 1)])
    assert operator.step(None, (good,), (0,)).delta.rows() == [((2, 5), 0, 1, 1)]


def test_names_of_struct_fields_are_not_columns():
    expressions = Expressions(SCHEMA, bound("CAST(NAMED_STRUCT('y', \"x\") AS STRUCT<y: BIGINT>)"))
    (column,) = expressions.evaluate([pa.array([1, 2]), pa.nulls(2, pa.string())], 2)
    assert column.to_pylist() == [{"y": 1}, {"y": 2}]
    assert expressions.reads == {0}
