"""Binding of queries: SELECT blocks, WITH and set operations become plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Distinct, Plan
from headwater.algebra.properties import row_times
from headwater.language import system_views
from headwater.language.catalog import Catalog, Derived, Kind, Stream, UnboundedWindow
from headwater.language.closed_windows import check_closed_windows
from headwater.language.expressions import ExpressionBinder
from headwater.language.notices import Notice
from headwater.language.one_instant import BareItem, one_instant
from headwater.language.relations.from_items import Environment, Output, names_given
from headwater.language.relations.joins import conjuncts, equal_sides, filtered
from headwater.language.relations.lasting_rows import repeated
from headwater.language.scope import (
    Bound,
    Item,
    NameSource,
    Relation,
    Scope,
    moved,
    project,
    reference,
    rename_apart,
)
from headwater.language.select.aggregates import Grouping, calls_aggregate
from headwater.language.select.frames import Order
from headwater.language.select.group_windows import GroupWindow, with_window_column
from headwater.language.select.grouping import bind_group_by, substituted
from headwater.language.select.ordering import Ordering
from headwater.language.select.output_streams import output_stream
from headwater.language.select.ranking import Ranking
from headwater.language.select.select_list import Chosen, SelectList
from headwater.language.select.set_operations import combined_all, sides_of
from headwater.language.subqueries.block import Block
from headwater.language.subqueries.correlation import Correlation, copies
from headwater.language.subqueries.empty_aggregates import (
    ask_for_rows,
    is_asked_for_rows,
    of_nothing,
    wants_row,
    wants_value,
    with_a_row,
)
from headwater.language.subqueries.free_names import is_correlated, refused
from headwater.language.subqueries.nested import NEEDS_ALL_ROWS, NestedQueries
from headwater.language.subqueries.values import Values
from headwater.language.text import OfText, did_you_mean

_UNSUPPORTED = {
    "locks": ("FOR UPDATE", "A continuous query reads streams and locks nothing."),
    "sort": ("SORT BY", ""),
    "cluster": ("CLUSTER BY", ""),
    "distribute": ("DISTRIBUTE BY", ""),
    "into": ("INTO", "Write CREATE STREAM name AS SELECT …"),
    "match": ("MATCH_RECOGNIZE", ""),
    "connect": ("CONNECT BY", ""),
    "sample": ("TABLESAMPLE", ""),
    "pivots": ("PIVOT", ""),
}


class _Cte(NamedTuple):
    """What WITH defines."""

    output: Output
    in_expressions: Output
    """With a row where it aggregates nothing, for sub-queries of expressions."""

    @property
    def has_rows(self) -> bool:
        return self.in_expressions is not self.output


class QueryBinder(OfText):
    """Binds one statement's query against a catalog; collects notices, the streams used and UNBOUNDED windows."""

    def __init__(self, catalog: Catalog, text: str, *, one_row: bool = False) -> None:
        self.catalog, self.text, self._one_row = catalog, text, one_row
        self.notices: list[Notice] = []
        self.uses: set[str] = set()
        self.unbounded: list[UnboundedWindow] = []
        self.bare: list[BareItem] = []
        self.meant: set[str] = set()
        self._ctes: list[dict[str, _Cte]] = []
        known = catalog.get, catalog.keys
        collected = self.unbounded, self.notices, self.bare, self.meant
        self._environment = Environment(text, self._lookup, self.bind, *collected, *known)
        self._nested = NestedQueries(self._environment, self.bind, self._block, self._defining)

    def instant_notices(self, plan: Plan) -> list[Notice]:
        """What to know of rows that live one instant; of a stream that is a query it was said when that was defined."""
        used = [entry for name in self.uses if isinstance(entry := self.catalog.get(name), Derived)]
        time = self._environment.time_column

        def is_told(node: Plan) -> bool:
            return any(node in entry.plan.walk() for entry in used)

        found = one_instant(plan, self.bare, time_column=time, meant=self.meant, known=is_told)
        return [*found, *check_closed_windows(plan, time)]

    def bind(self, node: exp.Expr, correlation: Correlation | None = None) -> Output:
        """The plan of a query; its columns have the names that the user sees.

        In a correlated sub-query the last columns are copies of the outer ones (``Correlation``).
        """
        self._check_supported(node)
        with self._defining(node):
            match node:
                case exp.Subquery():
                    return self._ordered(node, self.bind(node.this, correlation), correlation)
                case exp.SetOperation():
                    sides = [self.bind(side, correlation) for side in sides_of(node)]
                    return self._ordered(node, combined_all(self.text, node, sides), correlation)
                case exp.Select():
                    return self._select(with_window_column(self.text, node), correlation)
        raise self.error(node, "UNSUPPORTED", "this query is not supported")

    def _check_supported(self, node: exp.Expr) -> None:
        for key, (name, hint) in _UNSUPPORTED.items():
            if node.args.get(key):
                place = node.args[key]
                raise self.error(
                    place if isinstance(place, exp.Expr) else node, "UNSUPPORTED", f"{name} is not supported", hint=hint
                )

    @contextmanager
    def _defining(self, node: exp.Expr) -> Iterator[None]:
        """With what the WITH of a query defines."""
        self._ctes.append({})
        try:
            with_ = node.args.get("with_")
            if with_ is not None and with_.args.get("recursive"):
                hint = "Write out as many levels as there can be: WITH one AS (…), two AS (SELECT … FROM one JOIN …) …"
                raise self.error(with_, "UNSUPPORTED", "WITH RECURSIVE is not supported", hint=hint)
            for cte in with_.expressions if with_ is not None else ():
                self._define(cte)
            yield
        finally:
            self._ctes.pop()

    def _define(self, cte: exp.Expr) -> None:
        output = self._defined(cte)
        self._ctes[-1][cte.alias.casefold()] = _Cte(output, output)
        rows = cte.copy()
        if ask_for_rows(rows.this, of=[name for d in self._ctes for name, known in d.items() if known.has_rows]):
            told = len(self.notices), len(self.unbounded)  # once is enough
            self._ctes[-1][cte.alias.casefold()] = _Cte(output, self._defined(rows))
            del self.notices[told[0] :], self.unbounded[told[1] :]

    def _defined(self, cte: exp.Expr) -> Output:
        output = self._nested.bound_once(cte.this)
        alias = cte.args["alias"]
        given = names_given(self.text, alias, output.columns)
        if given:
            pairs = list(zip(given, output.columns, strict=True))
            output = Output(
                project(output.plan, [(n, reference(c)) for n, c in pairs]),
                tuple(evolve(c, name=n, internal=n) for n, c in pairs),
            )
        return output

    def _lookup(self, node: exp.Table) -> Stream | Derived | Output:
        folded = node.name.casefold()
        for defined in reversed(self._ctes):
            if folded in defined:
                return defined[folded].in_expressions if is_asked_for_rows(node) else defined[folded].output
        found = system_views.find_entry(self.catalog, node.name)
        if found is None:
            names = [*self.catalog.names(), *(n for d in self._ctes for n in d)]
            hint = did_you_mean(node.name, names, all_of_them="There are")
            hint = hint or "Declare it first: CREATE STREAM name (column type, …)."
            raise self.error(node, "UNKNOWN_STREAM", f'stream "{node.name}" does not exist', hint=hint)
        if found.kind is Kind.SINK:
            hint = (
                f"Name the query: CREATE STREAM name AS SELECT …; CREATE SINK {found.name} TO … AS SELECT * FROM name;"
            )
            raise self.error(node, "SINK_READ", f'sink "{found.name}" cannot be read: its rows go elsewhere', hint=hint)
        self.uses.add(folded)
        return found

    def _ordered(self, node: exp.Expr, output: Output, correlation: Correlation | None) -> Output:
        """ORDER BY and LIMIT after a set operation or parentheses."""
        ordering = Ordering(self.text, node, copies=copies(correlation))
        self.notices.extend(ordering.notices)
        return ordering.over(output)

    # -- SELECT -----------------------------------------------------------------------------------------------------

    def _select(self, node: exp.Select, correlation: Correlation | None = None) -> Output:
        stream = output_stream(self.text, node, self.notices)
        node = stream.query
        ordering = Ordering(self.text, node, copies=copies(correlation))
        chosen = SelectList(self.text, node, also=ordering.columns)
        if stream.compares_instants and correlation is not None:
            hint = f"{stream.kind} compares instants; the sub-query must be the same at all of them."
            raise refused(self.text, correlation.names[0], hint)
        outer = correlation.outer if correlation is not None else None
        block = self._block(node, chosen, outer, NameSource(), correlation=correlation, stamped=stream.stamped)
        stamps = [c for c in block.relation.columns if c.stamp]
        projected = chosen.project(
            block.relation, block.outputs, self.notices, with_hidden=ordering.chooses, beside=stamps
        )
        self.notices.extend(ordering.notices)
        if ordering.distinct:
            projected = evolve(projected, plan=Distinct(projected.plan))
        columns = projected.columns
        if stream.kind == "INTERNAL":
            pairs = zip(columns, chosen.arguments(), strict=True)
            columns = tuple(evolve(column, argument=argument) for column, argument in pairs)
        plan = ordering.applied(projected)
        if stream.kind == "RSTREAM":
            self.notices += repeated(plan, self._environment.has_unit)
        return Output(stream.applied(plan, columns), columns)

    def _block(
        self,
        node: exp.Select,
        chosen: SelectList,
        outer: Scope | None,
        names: NameSource,
        *,
        correlation: Correlation | None = None,
        correlated: bool = False,
        stamped: bool = False,
    ) -> Block:
        """FROM, WHERE, GROUP BY and HAVING of a SELECT, and its select list bound over the rows that they leave.

        In a sub-query ``outer`` is what is in sight around it. With ``correlation`` it is computed over the values of
        outer columns; with ``correlated`` it names columns of the outer plan, and is to be joined to that. With
        ``stamped`` the rows carry the instants at which they arrived.
        """
        self._check_supported(node)
        relation, scope, names, conditions = self._rows(
            node, outer, names, correlation, correlated=correlated, stamped=stamped
        )
        window = GroupWindow.of(node, scope, names, relation.plan, self._environment)
        if window is not None:
            if correlation is not None:
                raise refused(self.text, correlation.names[0], NEEDS_ALL_ROWS)
            relation = window.announced(relation)
            scope = Scope(self.text, relation.items, outer)
        expressions = chosen.expand(scope)
        if node.args.get("group") or node.args.get("having") or any(calls_aggregate(c.node) for c in expressions):
            return self._grouped(node, expressions, relation, scope, conditions, names, window, correlation)
        order = self._order_of(relation)
        ranking = Ranking(scope, names, node.args.get("windows") or (), within=scope.copies(node), order=order)
        values = Values(self._nested.subquery, scope, names, lambda bound: bound, window=ranking.call)
        outputs = [values.bind(c, "ORDER BY" if c.hidden else "SELECT") for c in expressions]
        qualified = self._qualify(node, expressions, scope, values, ranking)
        relation = ranking.applied(values.attached(relation), lambda bound: bound)
        relation = relation.over(filtered(relation.plan, qualified))
        return Block(relation, tuple(outputs), tuple(conditions))

    def _order_of(self, relation: Relation) -> Order:
        """What OVER (ORDER BY …) goes by."""
        times, item = row_times(relation.plan, self._environment.time_column), relation.items[0]
        return Order(times, lambda plan, place: self._environment.note_unbounded(plan, place, item))

    def _rows(
        self,
        node: exp.Select,
        outer: Scope | None,
        names: NameSource,
        correlation: Correlation | None,
        *,
        correlated: bool,
        stamped: bool,
    ) -> tuple[Relation, Scope, NameSource, list[Bound]]:
        """What FROM and WHERE leave, its scope and names; and the conditions that name columns of the outer plan."""
        # A sub-query has names of its own; only where outer columns come in must they differ from the outer ones.
        own = names if outer is None else NameSource()
        clause, carried = self._nested.from_clause(node, outer, own, correlation, stamped=stamped)
        where = node.args.get("where")
        written = [(c, clause.items) for c in conjuncts(where.this if where else None)]
        dependent: list[tuple[exp.Expr, tuple[Item, ...]]] = []
        later: list[tuple[exp.Expr, tuple[Item, ...]]] = []
        fragile: list[tuple[exp.Expr, tuple[Item, ...]]] = []
        for condition, items in (*clause.deferred, *written):
            scope = Scope(self.text, items, outer, carried)
            if is_correlated(condition, scope):
                dependent.append((condition, items))
            elif condition.find(exp.Query, exp.Subquery):
                later.append((condition, items))
            elif clause.is_fragile(predicate := ExpressionBinder(scope, "WHERE").predicate(condition)):
                fragile.append((condition, items))  # not for rows that a sub-query drops
            else:
                clause.require(predicate)
        relation, found = clause.relation(), clause.items
        if correlated:
            relation, own = rename_apart(relation, names), names

        def seen(items: tuple[Item, ...]) -> Scope:
            return Scope(self.text, moved(items, found, relation.items), outer, carried)

        predicates = [ExpressionBinder(seen(items), "WHERE").predicate(c) for c, items in dependent]
        for items in dict.fromkeys(items for _, items in later):
            values = Values(self._nested.subquery, seen(items), own, lambda bound: bound)
            for condition in (c for c, in_sight in later if in_sight == items):
                values.require(condition, "WHERE")
            relation = values.attached(relation)
        guarded = [ExpressionBinder(seen(items), "WHERE").predicate(c) for c, items in fragile]
        return relation.over(filtered(relation.plan, guarded)), seen(found), own, predicates

    # -- GROUP BY ---------------------------------------------------------------------------------------------------

    def _grouped(
        self,
        node: exp.Select,
        expressions: Sequence[Chosen],
        relation: Relation,
        scope: Scope,
        correlated: Sequence[Bound],
        names: NameSource,
        window: GroupWindow | None = None,
        correlation: Correlation | None = None,
    ) -> Block:
        visible = expressions[: len(expressions) - len(scope.carried or ())]
        keys = bind_group_by(self.text, node.args.get("group"), visible, scope)
        if window is not None:
            relation = window.over(relation, keys.keys)
            if window.sessions is not None:
                self._environment.note_unbounded(window.sessions, node.args["group"], scope.items[0])
        if optional := keys.optional_columns():  # NULL in the groups of the other sets
            items = tuple(i.nullable(optional) for i in scope.items)
            scope = Scope(self.text, items, scope.outer, scope.carried)
        rows = Values(self._nested.subquery, scope, names, lambda bound: bound)
        grouping = Grouping(relation, scope, names, subquery=rows.hook("an aggregate"))
        grouping.group_by(keys.keys, keys.sets)
        ranking = Ranking(
            scope, names, node.args.get("windows") or (), aggregate=grouping.call, within=scope.copies(node)
        )
        values = Values(
            self._nested.subquery, scope, names, grouping.lift, aggregate=grouping.call, window=ranking.call
        )
        outputs = [values.bind(c, "ORDER BY" if c.hidden else "SELECT", lift=False) for c in expressions]
        qualified = self._qualify(node, expressions, scope, values, ranking, lift=False)
        groups = Values(self._nested.subquery, scope, names, grouping.lift, aggregate=grouping.call)
        depending: list[Bound] = []
        having = node.args.get("having")
        for condition in conjuncts(having.this if having else None):
            with_aliases = substituted(condition, expressions, scope)
            if is_correlated(with_aliases, scope):
                depending.append(groups.predicate(with_aliases, "HAVING", lift=False))
            else:
                groups.require(with_aliases, "HAVING")
        for key in (*scope.copies(node), *(_inner_side(p, relation) for p in correlated)):
            grouping.add_key(key)
        grouping.relation = rows.attached(relation)
        result = grouping.build()
        outputs = [grouping.lift(o) for o in outputs]
        copied = [grouping.lift(copy) for copy in scope.copies(node)]
        outer_names = {copy.column for copy in copied}
        selected = [o for o in outputs if o.column is None or o.column not in outer_names]
        if wants_row(node, selected, grouping.results, by_default=self._one_row):
            result = with_a_row(result, names, copied, correlation, node)
        empty = of_nothing(outputs, grouping.results) if wants_value(node) else ()
        result = values.attached(groups.attached(result))
        result = ranking.applied(result, grouping.lift)
        result = result.over(filtered(result.plan, [grouping.lift(q) for q in qualified]))
        outer = tuple(grouping.lift(p) for p in (*correlated, *depending))
        return Block(result, tuple(outputs), outer, empty=empty)

    def _qualify(
        self,
        node: exp.Select,
        expressions: Sequence[Chosen],
        scope: Scope,
        values: Values,
        ranking: Ranking,
        *,
        lift: bool = True,
    ) -> list[Bound]:
        """The conditions of QUALIFY: a filter after OVER as HAVING is one after GROUP BY."""
        qualify = node.args.get("qualify")
        if qualify is None:
            return []
        conditions = [substituted(c, expressions, scope) for c in conjuncts(qualify.this)]
        bound = [values.predicate(c, "QUALIFY", lift=lift) for c in conditions]
        if not ranking.called:
            hint = "Filter rows with WHERE, groups with HAVING."
            raise self.error(qualify, "SYNTAX", "QUALIFY needs a function with OVER", hint=hint)
        return bound


def _inner_side(predicate: Bound, relation: Relation) -> Bound:
    """The key of a sub-query that groups and depends on the outer query by it: the inner side of ``inner = outer``."""
    inner = set(relation.plan.schema.names)
    sides = equal_sides(predicate, set(predicate.columns) - inner, inner)
    assert sides is not None  # ``needs_values`` has seen to it
    return sides[1]
