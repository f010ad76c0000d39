"""Queries inside of queries: what they see of the query around them, and in which way they are computed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Constant
from headwater.language.parsing.syntax import RelationToStream, TableFunction
from headwater.language.relations.from_clause import FromClause
from headwater.language.relations.from_items import Environment, Output
from headwater.language.relations.internal_windows import is_internal
from headwater.language.scope import Bound, Column, Item, NameSource, Relation, Scope
from headwater.language.select.aggregates import calls_aggregate
from headwater.language.select.group_windows import is_window_call
from headwater.language.select.ordering import chooses_rows, keeps_some_rows
from headwater.language.select.select_list import SelectList, relation_to_stream
from headwater.language.subqueries.block import Block, tied, with_own_names
from headwater.language.subqueries.correlation import Correlation, copies, same
from headwater.language.subqueries.empty_aggregates import (
    aggregates_all,
    ask_for_row,
    ask_for_row_unless_null,
    ask_for_rows_in_from,
    ask_for_value,
    is_value,
)
from headwater.language.subqueries.free_names import FreeNames, needs_values, refused
from headwater.language.text import error_on
from headwater.model.schema import Field, Schema

NEEDS_ALL_ROWS = "A window needs all the rows, whatever the outer row is; compare with the outer query above it."
"""Why a query under a window cannot name outer columns: what these were at other instants is not known."""


class BindBlock(Protocol):
    """Binds a SELECT up to its select list; with ``correlated`` over columns of the outer plan, too."""

    def __call__(
        self, node: exp.Select, chosen: SelectList, outer: Scope | None, names: NameSource, *, correlated: bool = False
    ) -> Block: ...


class NestedQueries:
    """Binds the sub-queries in FROM and in the expressions of a statement's queries.

    ``defining`` makes the WITH of a query known for a while.
    """

    def __init__(
        self,
        environment: Environment,
        bind: Callable[[exp.Expr, Correlation | None], Output],
        block: BindBlock,
        defining: Callable[[exp.Expr], AbstractContextManager[None]],
    ) -> None:
        self.text, self._environment = environment.text, evolve(environment, subquery=self.subquery)
        self._bind, self._block = bind, block
        self._free = FreeNames(self.text, self._items, defining)
        self._outputs: dict[int, tuple[exp.Expr, Output]] = {}

    # -- FROM -------------------------------------------------------------------------------------------------------

    def from_clause(
        self,
        node: exp.Select,
        outer: Scope | None,
        names: NameSource,
        correlation: Correlation | None,
        *,
        stamped: bool = False,
    ) -> tuple[FromClause, dict[str, Column] | None]:
        """The items of FROM, and where the copies of outer columns are in their rows."""
        from_ = node.args.get("from_")
        bind = partial(self._derived, outer=outer, correlation=correlation)
        clause = FromClause(evolve(self._environment, bind_query=bind, outer=outer, stamped=stamped), names)
        if from_ is None:
            clause.add_values(self._one_row(node, names))
        else:
            clause.add(from_.this, node.args.get("joins") or [])
        if correlation is None:
            return clause, None
        part, carried = correlation.part(names)
        clause.add_values(part)
        for item in clause.items:
            for column in item.columns:
                if column.copy_of is not None:
                    ours, theirs = (Bound.of_column(c, node) for c in (carried[column.copy_of], column))
                    clause.require(same(ours, theirs))
        return clause, carried

    def _one_row(self, node: exp.Select, names: NameSource) -> Relation:
        """What a query without FROM is over: one row without a name, valid [0, infinity) as all constants are."""
        star = next((e for e in node.expressions if e.is_star), None)
        if star is not None:
            hint = "Name a stream: SELECT * FROM s."
            raise error_on(self.text, star, "SYNTAX", "there is no FROM whose columns * could mean", hint=hint)
        name = names.unique("row")
        hidden = Column("", name, pa.bool_(), nullable=False, hidden=True)
        return Relation(Constant(Schema((Field(name, pa.bool_(), nullable=False),)), ((True,),)), (Item((hidden,)),))

    def _items(self, node: exp.Select, outer: Scope | None) -> tuple[Item, ...]:
        """What FROM has, only to see what names mean."""
        from_ = node.args.get("from_")
        if from_ is None:
            return ()
        bind = partial(self._derived, outer=outer)
        environment = evolve(self._environment, bind_query=bind, outer=outer, unbounded=[], notices=[], bare=[])
        clause = FromClause(environment, NameSource())
        clause.add(from_.this, node.args.get("joins") or [])
        return clause.items

    def _derived(self, node: exp.Expr, *, outer: Scope | None = None, correlation: Correlation | None = None) -> Output:
        """A sub-query in FROM; if it names columns of the outer query, with copies of these for its neighbours."""
        names = self._free.explained(node, outer)
        if outer is None or not names:
            return self.bound_once(node)
        if _is_windowed(node):
            raise refused(self.text, names[0], NEEDS_ALL_ROWS)
        correlation = correlation or Correlation.of(outer, names)
        output = self._bind(node, correlation)
        number = copies(correlation)
        hidden = [
            evolve(c, name="", hidden=True, copy_of=b.column)
            for c, b in zip(output.columns[-number:], correlation.columns, strict=True)
        ]
        return Output(output.plan, (*output.columns[:-number], *hidden))

    def bound_once(self, node: exp.Expr) -> Output:
        """A query that stands on its own: what it gives may be asked for before it is needed."""
        if id(node) not in self._outputs:
            self._outputs[id(node)] = node, self._bind(node, None)  # the node too, so that no other gets its id
        return self._outputs[id(node)][1]

    # -- expressions ------------------------------------------------------------------------------------------------

    def subquery(self, node: exp.Expr, outer: Scope, names: NameSource, kind: str = "VALUE") -> Block:
        """A sub-query of an expression; ``kind`` as in ``Condition``.

        It is joined to the outer rows as it is if that is enough, which is cheapest. If not, it is computed for the
        values of the outer columns that it names.
        """
        while isinstance(node, exp.Subquery) and not any(node.args.get(c) for c in ("with_", "limit", "offset")):
            node = node.this
        ask_for_rows_in_from(node)
        block = self._bound(node, outer, names, kind)
        return evolve(block, one_row=aggregates_all(node), keys=self._environment.keys())

    def _bound(self, node: exp.Expr, outer: Scope, names: NameSource, kind: str) -> Block:
        free, value = self._free.explained(node, outer), False
        if isinstance(node, exp.Select) and self._is_plain(node, kind):
            chosen, whole = SelectList(self.text, node), aggregates_all(node)
            joined = not free or not needs_values(node, free, grouped=_is_grouped(node))
            value = whole and kind == "VALUE" and is_value(node)
            if value and joined:
                ask_for_value(node)
            elif whole and not free:
                ask_for_row(node)
            if not free:
                return with_own_names(self._block(node, chosen, outer, NameSource()), names)
            if joined and (value or not whole):
                return self._block(node, chosen, outer, names, correlated=True)
        if value and isinstance(node, exp.Select):
            ask_for_row_unless_null(node)
        else:
            ask_for_row(node)
        correlation = Correlation.of(outer, free) if free else None
        output = self._bind(node, correlation)
        outputs = tuple(Bound.of_column(c, node) for c in output.columns)
        block = Block(Relation(output.plan, (Item(output.columns),)), outputs, correlation=correlation)
        return tied(with_own_names(block, names))

    def _is_plain(self, node: exp.Select, kind: str) -> bool:
        """Is it enough to know what its FROM, WHERE, GROUP BY and HAVING leave? Only a value may not come twice."""
        group = node.args.get("group")
        windowed = group is not None and any(is_window_call(e.unnest()) for e in group.expressions)
        if windowed or node.args.get("with_") or relation_to_stream(node) is not None or is_internal(node):
            return False
        if chooses_rows(node):
            return kind == "EXISTS" and keeps_some_rows(self.text, node)
        return kind != "VALUE" or not node.args.get("distinct")


def _is_windowed(node: exp.Expr) -> bool:
    """Does a sub-query of FROM stand under something that looks at other instants?"""
    around = node.parent
    if around is None:
        return False
    windowed = any(around.args.get(k) for k in ("stream_window", "granularity"))
    return windowed or isinstance(around.parent, (RelationToStream, TableFunction))


def _is_grouped(node: exp.Select) -> bool:
    return any(node.args.get(c) for c in ("group", "having")) or any(calls_aggregate(e) for e in node.expressions)
