"""Predicates over bound expressions, put together: comparisons, connectives, tests for NULL."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.language.scope import Bound


def compared(operator: type[exp.Expr], left: Bound, right: Bound) -> Bound:
    node = operator(this=operand(left.node), expression=operand(right.node))
    return Bound(node, pa.bool_(), left.nullable or right.nullable, left.origin)


def all_of(bounds: Sequence[Bound]) -> Bound:
    return _connected(exp.And, bounds)


def any_of(bounds: Sequence[Bound]) -> Bound:
    return _connected(exp.Or, bounds)


def _connected(connector: type[exp.Expr], bounds: Sequence[Bound]) -> Bound:
    result = bounds[0]
    for further in bounds[1:]:
        node = connector(this=operand(result.node), expression=operand(further.node))
        result = Bound(node, pa.bool_(), result.nullable or further.nullable, result.origin)
    return result


def not_false(bound: Bound) -> Bound:
    """True or NULL."""
    node = exp.Not(this=exp.Is(this=exp.Paren(this=bound.node), expression=exp.false()))
    return evolve(bound, node=node, nullable=False)


def not_true(bound: Bound) -> Bound:
    """False or NULL."""
    node = exp.Not(this=exp.Is(this=exp.Paren(this=bound.node), expression=exp.true()))
    return evolve(bound, node=node, nullable=False)


def is_null(bound: Bound) -> Bound:
    node = exp.Is(this=operand(bound.node), expression=exp.Null())
    return Bound(node, pa.bool_(), False, bound.origin)


def operand(node: exp.Expr) -> exp.Expr:
    return node.copy() if isinstance(node, (exp.Column, exp.Literal, exp.Paren)) else exp.Paren(this=node.copy())
