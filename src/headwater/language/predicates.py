"""Expressions that the binder puts together itself: comparisons, connectives, tests for NULL, constants, structs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from attrs import evolve

from headwater.expressions.nodes import Call, Cast, Expression, Literal
from headwater.language.scope import Bound


def test(name: str, *operands: Expression) -> Call:
    """An operator that gives true, false or NULL."""
    return Call(name, operands, pa.bool_())


def compared(operator: str, left: Bound, right: Bound) -> Bound:
    return Bound(test(operator, left.expression, right.expression), left.nullable or right.nullable, left.origin)


def all_of(bounds: Sequence[Bound]) -> Bound:
    return _connected("and", bounds)


def any_of(bounds: Sequence[Bound]) -> Bound:
    return _connected("or", bounds)


def _connected(connective: str, bounds: Sequence[Bound]) -> Bound:
    if len(bounds) == 1:
        return bounds[0]
    expression = connected(connective, [b.expression for b in bounds])
    return Bound(expression, any(b.nullable for b in bounds), bounds[0].origin)


def connected(connective: str, operands: Sequence[Expression]) -> Call:
    """AND and OR of many: those of the operands that are one are spread out."""
    listed: list[Expression] = []
    for operand in operands:
        spread = isinstance(operand, Call) and operand.name == connective
        listed.extend(operand.arguments if spread else (operand,))
    return test(connective, *listed)


def negated(bound: Bound) -> Bound:
    return evolve(bound, expression=test("not", bound.expression))


def not_false(bound: Bound) -> Bound:
    """True or NULL."""
    return evolve(bound, expression=test("not", test("is false", bound.expression)), nullable=False)


def not_true(bound: Bound) -> Bound:
    """False or NULL."""
    return evolve(bound, expression=test("not", test("is true", bound.expression)), nullable=False)


def is_null(bound: Bound) -> Bound:
    return Bound(test("is null", bound.expression), False, bound.origin)


def is_there(bound: Bound) -> Bound:
    """Not NULL."""
    return negated(is_null(bound))


def null(type_: pa.DataType) -> Cast:
    return Cast(Literal(None, pa.null()), type_)


def whole_number(value: int, type_: pa.DataType) -> Cast:
    return Cast(Literal(str(value), pa.int32() if value < 2**31 else pa.int64()), type_)


def struct(fields: Mapping[str, Expression]) -> Call:
    """A STRUCT of these fields."""
    parts = [part for name, value in fields.items() for part in (Literal(name, pa.string()), value)]
    return Call("named_struct", tuple(parts), pa.struct([(name, value.type) for name, value in fields.items()]))
