"""The arguments of aggregates: DISTINCT, several of them, the separator and order of LISTAGG."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from headwater.errors import SqlError
from headwater.expressions.nodes import Case
from headwater.expressions.rewrite import conjunction
from headwater.language.expressions import ExpressionBinder, Hook, check_column_type
from headwater.language.predicates import is_there, struct
from headwater.language.scope import Bound, Scope
from headwater.language.text import error_on


class AggregateArguments:
    """Binds what stands in the parentheses of calls; ``inner`` is told of aggregates in it, ``subquery`` of sub-queries."""

    def __init__(self, scope: Scope, inner: Hook | None, subquery: Hook | None = None) -> None:
        self.scope, self._inner, self._subquery = scope, inner, subquery

    def error(self, node: exp.Expr, code: str, message: str) -> SqlError:
        return error_on(self.scope.text, node, code, message)

    def of(self, node: exp.Expr, name: str) -> tuple[Bound | None, bool, tuple[object, ...]]:
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
        arguments = [self._bound(g) for g in given]
        if name == "COUNT" and len(arguments) > 1:
            return _all_of([typed_null(a, pa.string()) for a in arguments]), distinct, ()
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
        bound = self._bound(argument)
        for by in ordered.expressions if ordered is not None else ():
            if by.args.get("desc") or self._bound(by.this).expression != bound.expression:
                raise self.error(by, "UNSUPPORTED", "LISTAGG can be ordered by its own values only, ascending")
        return bound, distinct, (separator.this if separator is not None else "",)

    def _bound(self, node: exp.Expr) -> Bound:
        binder = ExpressionBinder(self.scope, "an aggregate", aggregate=self._inner, subquery=self._subquery)
        bound = binder.bind(node)
        check_column_type(binder, bound)
        return bound


def typed_null(bound: Bound, type_: pa.DataType) -> Bound:
    """A NULL without a type as one of this type."""
    return bound.cast(type_) if pa.types.is_null(bound.type) else bound


def _all_of(arguments: Sequence[Bound]) -> Bound:
    """COUNT(a, b): rows where none is NULL, as one STRUCT."""
    there = conjunction(is_there(a).expression for a in arguments)
    packed = struct({f"c{i}": a.expression for i, a in enumerate(arguments)})
    return Bound(Case(((there, packed),), packed.type), True, arguments[0].origin)
