"""Names in a query that only the query around it can explain, and how it depends on that query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from sqlglot import exp

from headwater.errors import SqlError
from headwater.language.functions.user_functions import is_aggregate
from headwater.language.relations.joins import conjuncts
from headwater.language.scope import Item, Scope
from headwater.language.text import error_on

_QUERIES = (exp.Query, exp.Subquery)
_SEES_ALIASES = frozenset({"group", "having", "qualify", "order"})
"""Clauses that may name what the select list calls an expression."""
_NO_EXPRESSIONS = frozenset({"from_", "joins", "with_", "laterals"})


class FreeNames:
    """Finds the columns that a query names but does not have; of every query once.

    ``items`` gives what a SELECT has in FROM, ``defining`` makes the WITH of a query known for a while.
    """

    def __init__(
        self,
        text: str,
        items: Callable[[exp.Select, Scope | None], tuple[Item, ...]],
        defining: Callable[[exp.Expr], AbstractContextManager[None]],
    ) -> None:
        self.text, self._items, self._defining = text, items, defining
        self._known: dict[int, tuple[exp.Expr, tuple[exp.Column, ...]]] = {}

    def of(self, query: exp.Expr, outer: Scope | None) -> tuple[exp.Column, ...]:
        """The columns in it, at whatever depth, that none of its own FROM clauses has."""
        if id(query) not in self._known:
            self._refuse_in_with(query, outer)
            with self._defining(query):
                self._known[id(query)] = query, tuple(self._find(query, outer))
        return self._known[id(query)][1]

    def explained(self, query: exp.Expr, outer: Scope | None) -> tuple[exp.Column, ...]:
        """Those that the outer query has."""
        if outer is None or not any(_may_be_of(c, outer) for c in query.find_all(exp.Column)):
            return ()
        found = tuple(c for c in self.of(query, outer) if outer.sees(c))
        self._refuse_outer_aggregates(found)
        return found

    def _find(self, query: exp.Expr, outer: Scope | None) -> Iterator[exp.Column]:
        match query:
            case exp.Subquery():
                yield from self.of(query.this, outer)
            case exp.SetOperation():
                yield from self.of(query.this, outer)
                yield from self.of(query.expression, outer)
            case exp.Select():
                yield from self._in_select(query, outer)

    def _in_select(self, query: exp.Select, outer: Scope | None) -> Iterator[exp.Column]:
        scope = Scope(self.text, self._items(query, outer), outer)
        aliases = {e.alias.casefold() for e in query.expressions if isinstance(e, exp.Alias)}
        derived: list[exp.Expr] = []
        roots = [("joins", on) for on in _join_conditions(query, derived)]
        for clause, value in query.args.items():
            if clause not in _NO_EXPRESSIONS:
                roots += [
                    (clause, v) for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expr)
                ]
        for clause, root in roots:
            for node in root.walk(prune=lambda n: isinstance(n, _QUERIES)):
                if isinstance(node, _QUERIES):
                    yield from (c for c in self.of(node, scope) if not scope.finds(c))
                elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star) and not scope.finds(node):
                    plain = not node.args.get("table")
                    if not (plain and clause in _SEES_ALIASES and node.name.casefold() in aliases):
                        yield node
        for node in derived:  # what stands in FROM does not see its neighbours
            yield from self.of(node, outer)

    def _refuse_outer_aggregates(self, found: Sequence[exp.Column]) -> None:
        """In SQL an aggregate of outer columns only is one of the outer query, wherever it stands."""
        outer = {id(c) for c in found}
        for call in filter(None, map(_aggregate_around, found)):
            if {id(c) for c in call.find_all(exp.Column)} <= outer:
                name = str(call.meta.get("name") or call.name).upper()
                raise error_on(
                    self.text,
                    call,
                    "CORRELATED_SUBQUERY",
                    f"{name} of columns of the outer query cannot be computed in a sub-query",
                    hint="Compute it in a query of FROM, and name its column here.",
                )

    def _refuse_in_with(self, query: exp.Expr, outer: Scope | None) -> None:
        with_ = query.args.get("with_")
        for cte in with_.expressions if with_ is not None and outer is not None else ():
            for column in self.explained(cte.this, outer):
                raise refused(
                    self.text,
                    column,
                    "A query in WITH stands on its own; put it in FROM, or the condition where it is used.",
                )


def _aggregate_around(column: exp.Column) -> exp.Expr | None:
    """The aggregate that the column is an argument of; none where no aggregate can be, which is said elsewhere."""
    node: exp.Expr | None = column
    call = None
    while node is not None and not isinstance(node, (exp.Query, exp.Where, exp.Join)):
        if isinstance(node, exp.GroupConcat) or (isinstance(node, exp.Anonymous) and is_aggregate(node.name)):
            call = node
        node = node.parent
    return call if isinstance(node, exp.Query) else None


def _may_be_of(column: exp.Column, outer: Scope) -> bool:
    """Could the name mean something in the outer query? It need not be right there, if it is explained further in."""
    if isinstance(column.this, exp.Star):
        return False
    try:
        return outer.sees(column)
    except SqlError:
        return True


def refused(text: str, column: exp.Column, hint: str) -> SqlError:
    """The error for an outer column where it can mean nothing."""
    name = ".".join(p.name for p in column.parts)
    return error_on(
        text, column, "CORRELATED_SUBQUERY", f'column "{name}" of the outer query cannot be used here', hint=hint
    )


def is_correlated(condition: exp.Expr, scope: Scope) -> bool:
    """Does the condition itself, not a sub-query in it, name columns of the outer plan?"""
    inside = condition.walk(prune=lambda n: isinstance(n, (exp.Query, exp.Subquery)))
    return any(isinstance(n, exp.Column) and not n.is_star and scope.is_correlated(n) for n in inside)


def _join_conditions(query: exp.Select, derived: list[exp.Expr]) -> Iterator[exp.Expr]:
    """The conditions in FROM; the queries there are added to ``derived``."""
    pending: list[exp.Expr] = [query.args["from_"]] if query.args.get("from_") else []
    pending += query.args.get("joins") or []
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Subquery) and isinstance(node.this, (exp.Select, exp.SetOperation)):
            derived.append(node.this)
            continue
        if isinstance(node, exp.Join) and node.args.get("on"):
            yield node.args["on"]
        for key in ("this", "expression", "joins"):
            value = node.args.get(key)
            pending += [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expr)]


# -- how a sub-query depends on the outer query -----------------------------------------------------------------------


def needs_values(query: exp.Select, free: Sequence[exp.Column], *, grouped: bool) -> bool:
    """Must the sub-query be computed for the values of the outer columns, or is it enough to join it to the outer rows?

    A join is enough if these stand only in conditions of WHERE and HAVING and in the select list, outside of aggregates
    and further sub-queries. A sub-query that groups is computed for each group, so it can depend only by equal values.
    """
    outer = {id(c) for c in free}
    return any(not _joins(c, query, outer, grouped=grouped) for c in free)


def _joins(column: exp.Column, query: exp.Select, outer: set[int], *, grouped: bool) -> bool:
    node: exp.Expr | None = column
    while node is not None and node.parent is not query:
        if isinstance(node, _QUERIES) or _computes_of_many(node):
            return False
        node = node.parent
    if node is None or _computes_of_many(node):
        return False
    match node.arg_key:
        case "expressions":
            return True
        case "where" | "having" | "joins":
            whole = node.args.get("on") if node.arg_key == "joins" else node.this
            condition = next((c for c in conjuncts(whole) if any(n is column for n in c.walk())), None)
            if condition is None or condition.find(*_QUERIES):
                return False
            return not grouped or node.arg_key == "having" or _equates(condition, outer)
    return False


def _computes_of_many(node: exp.Expr) -> bool:
    return isinstance(
        node, (exp.GroupConcat, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Window)
    ) or (isinstance(node, exp.Anonymous) and is_aggregate(node.name))


def _equates(condition: exp.Expr, outer: set[int]) -> bool:
    """``inner = outer``."""
    if not isinstance(condition, exp.EQ):
        return False
    sides = [{id(c) in outer for c in side.find_all(exp.Column)} for side in (condition.this, condition.expression)]
    return sides in ([{True}, {False}], [{False}, {True}])
