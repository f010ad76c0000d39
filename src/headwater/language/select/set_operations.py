"""UNION, EXCEPT and INTERSECT of two queries: columns paired, brought to one type, and combined."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Distinct, Plan, SetKind, SetOperation, Union
from headwater.errors import SqlError
from headwater.expressions.nodes import Expression, Literal
from headwater.expressions.rewrite import typed_as
from headwater.expressions.types import common_type
from headwater.language.relations.from_items import Output
from headwater.language.scope import Column, project, reference
from headwater.language.text import error_on
from headwater.language.types import shown

_KINDS: dict[tuple[type[exp.Expr], bool], SetKind] = {
    (exp.Except, True): SetKind.EXCEPT,
    (exp.Except, False): SetKind.EXCEPT_ALL,
    (exp.Intersect, True): SetKind.INTERSECT,
    (exp.Intersect, False): SetKind.INTERSECT_ALL,
}

Pair = tuple[Column | None, Column | None]
"""A column of the result: where it comes from on either side; None: it is NULL there."""


def sides_of(node: exp.SetOperation) -> list[exp.Expr]:
    """The queries that it combines: two, or all of a chain of UNIONs of one kind."""
    sides = [node.expression]
    below: exp.Expr = node.this
    while isinstance(node, exp.Union) and isinstance(below, exp.Union) and _is_same(node, below):
        sides.append(below.expression)
        below = below.this
    return [below, *reversed(sides)]


def _is_same(node: exp.Union, below: exp.Union) -> bool:
    """Is nothing said of the inner union but what is said of the outer one?"""
    own = {name for name, value in below.args.items() if value} - {"this", "expression", "distinct"}
    return not own and not node.args.get("by_name") and bool(node.args["distinct"]) == bool(below.args["distinct"])


def combined_all(text: str, node: exp.SetOperation, sides: Sequence[Output]) -> Output:
    """The result of all; half and half, so that a long chain is no deep plan."""
    if len(sides) == 1:
        return sides[0]
    half = len(sides) // 2
    return combined(text, node, combined_all(text, node, sides[:half]), combined_all(text, node, sides[half:]))


def combined(text: str, node: exp.SetOperation, left: Output, right: Output) -> Output:
    """The result of the set operation; its columns have the names of the left side."""
    pairs = _pairs_by_name(text, node, left, right) if node.args.get("by_name") else _pairs(text, node, left, right)
    columns = tuple(_unified(text, node, a, b) for a, b in pairs)
    ours = _coerced(left.plan, [a for a, _ in pairs], columns)
    theirs = _coerced(right.plan, [b for _, b in pairs], columns)
    distinct = bool(node.args.get("distinct"))
    if isinstance(node, exp.Union):
        united = Union((ours, theirs))
        return Output(Distinct(united) if distinct else united, columns)
    return Output(SetOperation(ours, theirs, _KINDS[type(node), distinct]), columns)


def _pairs(text: str, node: exp.SetOperation, left: Output, right: Output) -> list[Pair]:
    if len(left.columns) != len(right.columns):
        raise error_on(
            text,
            node.expression,
            "COLUMN_COUNT",
            f"{_word(node)} needs the same number of columns on both sides, not {len(left.columns)} and "
            f"{len(right.columns)}",
        )
    return list(zip(left.columns, right.columns, strict=True))


def _pairs_by_name(text: str, node: exp.SetOperation, left: Output, right: Output) -> list[Pair]:
    """UNION BY NAME (DuckDB): equal names go together, what one side lacks is NULL there."""
    if not isinstance(node, exp.Union):
        raise _by_name_refused(text, node, f"{_word(node)} BY NAME is not supported", "List the columns in one order.")
    if node.args.get("side") or node.args.get("kind") or node.args.get("on"):
        raise _by_name_refused(text, node, "this form of BY NAME is not supported", "Write UNION BY NAME.")
    theirs = {c.name.casefold(): c for c in right.columns}
    pairs: list[Pair] = [(c, theirs.pop(c.name.casefold(), None)) for c in left.columns]
    return [*pairs, *((None, c) for c in theirs.values())]


def _by_name_refused(text: str, node: exp.SetOperation, message: str, hint: str) -> SqlError:
    return error_on(text, node, "UNSUPPORTED", message, hint=hint)


def _unified(text: str, node: exp.SetOperation, ours: Column | None, theirs: Column | None) -> Column:
    """The column of the result that holds the values of both."""
    if ours is None or theirs is None:
        there = ours or theirs
        assert there is not None
        return evolve(there, internal=there.name, nullable=True, qualifier=None, hidden=False)
    type_ = common_type(*(pa.null() if c.untyped else c.type for c in (ours, theirs)))
    if type_ is None:
        verb = "unite" if isinstance(node, exp.Union) else "compare"
        raise error_on(
            text,
            node.expression,
            "TYPE_MISMATCH",
            f'{_word(node)} cannot {verb} column "{ours.name}" of type {shown(ours.type)} with "{theirs.name}" of type '
            f"{shown(theirs.type)}",
            hint="Convert one of them with CAST.",
        )
    untyped = ours.untyped and theirs.untyped
    type_ = ours.type if untyped else type_
    return evolve(ours, type=type_, nullable=_nullable(node, ours, theirs), qualifier=None, untyped=untyped)


def _nullable(node: exp.SetOperation, ours: Column, theirs: Column) -> bool:
    """Rows of EXCEPT come from the left side, those of INTERSECT are in both, those of UNION in either."""
    if isinstance(node, exp.Except):
        return ours.nullable
    if isinstance(node, exp.Intersect):
        return ours.nullable and theirs.nullable
    return ours.nullable or theirs.nullable


def _coerced(plan: Plan, have: Sequence[Column | None], want: Sequence[Column]) -> Plan:
    return project(plan, [(w.name, _as_type(h, w.type)) for h, w in zip(have, want, strict=True)])


def _as_type(column: Column | None, type_: pa.DataType) -> Expression:
    return typed_as(Literal(None, pa.null()) if column is None else reference(column), type_)


def _word(node: exp.SetOperation) -> str:
    return type(node).__name__.upper()
