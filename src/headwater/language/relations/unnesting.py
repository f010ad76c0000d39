"""Rows of the items of an array, beside those that the array is a value of."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.algebra.nodes import Constant, Unnest
from headwater.expressions import nodes
from headwater.expressions.nodes import Call, Cast, Expression, Literal
from headwater.language.expressions import ExpressionBinder
from headwater.language.parsing.syntax import ArrayRows
from headwater.language.scope import Bound, Column, Item, NameSource, Relation, Scope, project, reference
from headwater.language.subqueries.free_names import is_correlated
from headwater.language.text import error_on
from headwater.language.types import shown
from headwater.model.schema import Schema

_CALLED = {"UNNEST": "UNNEST", "EXPLODE": "explode", "POSEXPLODE": "posexplode", "INLINE": "inline"}


def bind_array(node: ArrayRows, scope: Scope) -> Bound:
    """The array, over the columns of what stands before it in FROM."""
    called = _CALLED[node.args["kind"]]
    for clause in ("stream_window", "granularity"):
        if node.args.get(clause) is not None:
            hint = "Window the stream before it, or the result: FROM (SELECT … FROM s, UNNEST(s.a) AS t(x)) WINDOW(…)."
            raise error_on(scope.text, node, "UNSUPPORTED", f"the rows of {called} cannot have a window", hint=hint)
    if is_correlated(node.this, scope):
        raise error_on(
            scope.text,
            node,
            "CORRELATED_SUBQUERY",
            f"{called} of an array of the outer query cannot be used in a sub-query",
            hint="Write it in FROM of the outer query; or ask array_contains(a, x), x = ANY (a).",
        )
    bound = ExpressionBinder(scope, called).bind(node.this)
    if not pa.types.is_list(bound.type):
        hint = "JSON text becomes one by from_json(s, 'ARRAY<STRING>')." if pa.types.is_string(bound.type) else ""
        raise error_on(
            scope.text, node, "TYPE_MISMATCH", f"{called} takes an ARRAY, not {shown(bound.type)}", hint=hint
        )
    if node.args["kind"] == "INLINE" and not pa.types.is_struct(bound.type.value_type):
        message = f"inline takes an ARRAY of STRUCTs, not {shown(bound.type)}"
        raise error_on(scope.text, node, "TYPE_MISMATCH", message, hint="Write explode(…).")
    return bound


def one_row() -> Relation:
    """What an array of constants is unnested beside."""
    return Relation(Constant(Schema.of(one=pa.int32()), ((1,),)), ())


def unnested(
    text: str, node: ArrayRows, relation: Relation, array: Bound, names: NameSource, *, outer: bool = False
) -> Relation:
    """The relation with a row for each item, and the item's columns."""
    kind = node.args["kind"]
    numbered = kind == "POSEXPLODE" or bool(node.args.get("ordinality"))
    column, item = names.unique("array"), names.unique("item")
    place = names.unique("place") if numbered else None
    kept = [(f.name, reference(f)) for f in relation.plan.schema]
    below = project(relation.plan, [*kept, (column, array.expression)])
    plan = Unnest(below, column, item, place, outer or bool(node.args.get("outer")))
    alias = node.args.get("alias")
    given = [c.name for c in alias.args.get("columns") or ()] if alias is not None else []
    values = _values(node, nodes.Column(item, array.type.value_type), len(given) - numbered)
    if place is not None:
        values = _with_place(kind, values, nodes.Column(place, pa.int64()))
    if given and len(given) != len(values):
        there = f"{len(values)} column{'' if len(values) == 1 else 's'} ({', '.join(name for name, _ in values)})"
        message = f"{_CALLED[kind]} makes {there}, but {len(given)} name{' is' if len(given) == 1 else 's are'} given"
        raise error_on(text, alias, "COLUMN_COUNT", message)
    named = [(name, value) for name, (_, value) in zip(given or [n for n, _ in values], values, strict=True)]
    columns = tuple(
        Column(name, names.unique(name), value.type, hidden=bool(node.args.get("hidden"))) for name, value in named
    )
    computed = [(c.internal, value) for c, (_, value) in zip(columns, named, strict=True)]
    label = alias.name or None if alias is not None else None
    return Relation(project(plan, [*kept, *computed]), (*relation.items, Item(columns, alias=label)))


def _values(node: ArrayRows, item: nodes.Column, given: int) -> list[tuple[str, Expression]]:
    """The columns that an item becomes: its fields, of STRUCTs, where Flink and Spark's inline do so.

    One name for a STRUCT of several fields means all of it.
    """
    kind, alias = node.args["kind"], node.args.get("alias")
    fields = [item.type.field(i) for i in range(item.type.num_fields)] if pa.types.is_struct(item.type) else []
    if kind == "INLINE" or (kind == "UNNEST" and fields and (given != 1 or len(fields) == 1)):
        return [(f.name, nodes.Field(item, f.name, f.type)) for f in fields]
    if kind != "UNNEST":
        return [("col", item)]
    return [(alias.name if alias is not None and alias.name else "unnest", item)]  # as in PostgreSQL


def _with_place(kind: str, values: Sequence[tuple[str, Expression]], place: Expression) -> list[tuple[str, Expression]]:
    """Spark counts from 0, and says it first."""
    if kind == "UNNEST":
        return [*values, ("ordinality", place)]
    before = Call("-", (place, Literal("1", pa.int32())), pa.int64())
    return [("pos", Cast(before, pa.int32())), *values]
