"""GROUP BY and aggregates: what is computed below, per group, and above."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Aggregate, AggregateCall, Distinct, Scalar
from headwater.errors import SqlError
from headwater.language.expressions import ExpressionBinder, check_column_type
from headwater.language.functions import AGGREGATES
from headwater.language.joins import with_columns
from headwater.language.rendering import Template, column_node, render
from headwater.language.scope import Bound, Column, Item, NameSource, Relation, Scope, project, reference
from headwater.language.text import error_on
from headwater.language.types import shown
from headwater.operators.expression import quote


def calls_aggregate(node: exp.Expr | None) -> bool:
    """True when the expression itself, not a sub-query in it, calls an aggregate."""
    if node is None:
        return False
    found = node.walk(prune=lambda n: isinstance(n, (exp.Query, exp.Subquery)))
    return any(
        isinstance(n, exp.GroupConcat) or (isinstance(n, exp.Anonymous) and n.name.lower() in AGGREGATES) for n in found
    )


class Grouping:
    """Collects the keys and aggregate calls of one query block and builds the node for them.

    Expressions of SELECT and HAVING are bound over the input first, calls as columns of the result; ``lift`` then
    replaces the keys in them. What still refers to the input had to be grouped.
    """

    def __init__(self, relation: Relation, scope: Scope, names: NameSource) -> None:
        self.relation, self.scope, self.names = relation, scope, names
        self._keys: list[Bound] = []
        self._calls: dict[tuple[object, ...], tuple[AggregateCall, Bound | None, Bound | None]] = {}
        self._results: dict[str, Column] = {}
        self._key_names: dict[str, str] = {}

    def error(self, node: exp.Expr, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.scope.text, node, code, message, hint=hint)

    # -- collecting -------------------------------------------------------------------------------------------------

    def add_key(self, key: Bound) -> None:
        if not any(k.sql == key.sql for k in self._keys):
            self._keys.append(key)

    def call(self, node: exp.Expr) -> Bound:
        """The hook for aggregates: the call as a column of the result."""
        origin, condition = node, None
        if isinstance(node, exp.Filter):
            condition = ExpressionBinder(self.scope, "FILTER").predicate(node.expression.this)
            node = node.this
        if isinstance(node, exp.WithinGroup):
            raise self.error(origin, "UNSUPPORTED", "WITHIN GROUP can be used with LISTAGG only")
        name = str(node.meta.get("name") or node.name)
        function = AGGREGATES.get(name.lower())
        if function is None:
            raise self.error(origin, "WRONG_ARGUMENTS", f'"{name}" is no aggregate, so it takes no FILTER')
        argument, distinct, parameters = self._argument(node, name.upper())
        type_ = pa.int64() if argument is None else function.result(argument.type)
        if argument is not None and type_ is None:
            raise self.error(
                node, "TYPE_MISMATCH", f"{name.upper()} takes {function.takes}, not {shown(argument.type)}"
            )
        key = (
            function.name,
            argument.sql if argument else None,
            distinct,
            condition.sql if condition else None,
            parameters,
        )
        if key not in self._calls:
            output = self.names.unique(name.lower())
            call = AggregateCall(function.name, output, type_, None, distinct, None, parameters)
            self._calls[key] = call, argument, condition
            self._results[output] = Column(output, output, type_, function.name != "COUNT")
        return Bound.of_column(self._results[self._calls[key][0].output], origin)

    def _argument(self, node: exp.Expr, name: str) -> tuple[Bound | None, bool, tuple[object, ...]]:
        """The argument (None for ``*``), whether it is DISTINCT, and constant parameters."""
        if isinstance(node, exp.GroupConcat):
            return self._list_argument(node)
        given: list[exp.Expr] = list(node.expressions)
        distinct = bool(given) and isinstance(given[0], exp.Distinct)
        if distinct:
            given = given[0].expressions
        if name == "COUNT" and len(given) == 1 and not distinct and isinstance(given[0], (exp.Star, exp.Literal)):
            return None, False, ()
        if any(isinstance(g, (exp.Order, exp.Ordered)) for g in given):
            raise self.error(node, "UNSUPPORTED", f"ORDER BY inside {name} is not supported")
        arguments = [self._plain(g) for g in given]
        if name == "COUNT" and len(arguments) > 1:
            return self._all_of(arguments), distinct, ()
        if len(arguments) != 1:
            raise self.error(node, "WRONG_ARGUMENTS", f'aggregate "{name}" takes 1 argument, not {len(arguments)}')
        return arguments[0], distinct, ()

    def _list_argument(self, node: exp.GroupConcat) -> tuple[Bound, bool, tuple[object, ...]]:
        argument = node.this
        separator = node.args.get("separator")
        if separator is not None and not (isinstance(separator, exp.Literal) and separator.is_string):
            raise self.error(separator, "WRONG_ARGUMENTS", "the separator of LISTAGG must be a constant string")
        ordered = argument if isinstance(argument, exp.Order) else None
        if ordered is not None:
            argument = ordered.this
        distinct = isinstance(argument, exp.Distinct)
        if distinct:
            (argument,) = argument.expressions
        bound = self._plain(argument)
        for by in ordered.expressions if ordered is not None else ():
            if by.args.get("desc") or self._plain(by.this).sql != bound.sql:
                raise self.error(by, "UNSUPPORTED", "LISTAGG can be ordered by its own values only, ascending")
        return bound, distinct, (separator.this if separator is not None else "",)

    def _plain(self, node: exp.Expr) -> Bound:
        binder = ExpressionBinder(self.scope, "an aggregate")
        bound = binder.bind(node)
        check_column_type(binder, bound)
        return bound.cast(pa.string(), "VARCHAR") if pa.types.is_null(bound.type) else bound

    @staticmethod
    def _all_of(arguments: Sequence[Bound]) -> Bound:
        """COUNT(a, b): rows where none is NULL, as one STRUCT."""
        names = [f"c{i}" for i in range(len(arguments))]
        there = " AND ".join(f"{{{i}}} IS NOT NULL" for i in range(len(arguments)))
        packed = ", ".join(f"'{name}': {{{i}}}" for i, name in enumerate(names))
        template = Template(
            this=f"CASE WHEN {there} THEN {{{{{packed}}}}} END", expressions=[a.node for a in arguments]
        )
        type_ = pa.struct([(n, a.type) for n, a in zip(names, arguments, strict=True)])
        return Bound(template, type_, True, arguments[0].origin)

    # -- building ---------------------------------------------------------------------------------------------------

    def build(self) -> Relation:
        """The input with keys, arguments and conditions as columns, then the node; its columns are the new scope."""
        arguments = [a for _, a, _ in self._calls.values() if a is not None]
        conditions = [c for *_, c in self._calls.values() if c is not None]
        plan, read = with_columns(self.relation.plan, [*self._keys, *arguments, *conditions], self.names)
        key_names, read = read[: len(self._keys)], read[len(self._keys) :]
        argument_names = iter(read[: len(arguments)])
        condition_names = iter(read[len(arguments) :])
        calls = tuple(
            evolve(
                call,
                argument=next(argument_names) if argument is not None else None,
                filter=next(condition_names) if condition is not None else None,
            )
            for call, argument, condition in self._calls.values()
        )
        keys = tuple(dict.fromkeys(key_names))
        for name, key in zip(key_names, self._keys, strict=True):
            self._results[name] = Column(name, name, key.type, key.nullable)
        self._key_names = {key.sql: name for name, key in zip(key_names, self._keys, strict=True)}
        if not calls:
            kept = [(k, Scalar(quote(k), plan.schema.field(k).type, (k,))) for k in keys]
            plan = Distinct(project(plan, kept))
        else:
            used = {*keys, *(c.argument for c in calls), *(c.filter for c in calls)}
            kept = [(f.name, reference(f)) for f in plan.schema if f.name in used]
            if plan is not self.relation.plan and kept:
                plan = project(plan, kept)
            plan = Aggregate(plan, keys, calls)
        columns = tuple(self._results[n] for n in plan.schema.names)
        return Relation(plan, (Item(columns),))

    def lift(self, bound: Bound) -> Bound:
        """An expression over the input as one over the groups (after ``build``)."""

        below = set(self.relation.plan.schema.names)

        def lifted(node: exp.Expr) -> exp.Expr:
            name = self._key_names.get(render(node))
            if name is not None:
                key = column_node(name)
                key.meta.update(node.meta, type=self._results[name].type)
                return key
            if isinstance(node, exp.Column) and node.name in below:
                raise self._not_grouped(node)
            return node

        return evolve(bound, node=_replaced(bound.node.copy(), lifted))

    def _not_grouped(self, node: exp.Column) -> SqlError:
        visible = {c.internal: c.name for c in self.relation.columns}
        name = visible.get(node.name, node.name)
        return self.error(
            node,
            "NOT_GROUPED",
            f'column "{name}" is neither in GROUP BY nor inside an aggregate',
            hint=f"Add it to GROUP BY, or take one value of it, for example: MAX({name}).",
        )


def _replaced(node: exp.Expr, replacement: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The tree with the topmost replaceable parts replaced."""
    new = replacement(node)
    if new is not node:
        return new
    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expr):
            node.set(key, _replaced(value, replacement))
        elif isinstance(value, list):
            node.set(key, [_replaced(v, replacement) if isinstance(v, exp.Expr) else v for v in value])
    return node
