"""Binding of queries: SELECT blocks, WITH and set operations become plans."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Distinct, Plan, Scalar, SetKind, SetOperation, Union
from headwater.errors import SqlError
from headwater.language.aggregates import Grouping, calls_aggregate
from headwater.language.catalog import Catalog, Derived, Stream, UnboundedWindow
from headwater.language.expressions import ExpressionBinder
from headwater.language.from_clause import RELATION_TO_STREAM, Environment, FromClause, Output
from headwater.language.joins import conjuncts, filtered
from headwater.language.notices import Notice
from headwater.language.scope import Bound, Column, Item, NameSource, Relation, Scope, project, reference, rename_apart
from headwater.language.select_list import Chosen, SelectList
from headwater.language.subqueries import Block, Condition, SubqueryJoins, at_most_one_row, recognise
from headwater.language.text import did_you_mean, error_on
from headwater.language.types import common_type, duckdb_name, shown
from headwater.language.values import Both, Values, is_correlated, with_own_names

_UNSUPPORTED = {
    "order": ("ORDER BY", "A stream is ordered by time; sort what you take from it."),
    "limit": ("LIMIT", "A stream has no end; take the latest rows with WINDOW(ROWS n)."),
    "offset": ("OFFSET", ""),
    "qualify": ("QUALIFY", ""),
    "windows": ("a named WINDOW", "Windows stand after the stream, in FROM: FROM bid WINDOW(RANGE 1 MINUTE)."),
    "laterals": ("LATERAL VIEW", ""),
    "sort": ("SORT BY", ""),
    "cluster": ("CLUSTER BY", ""),
    "distribute": ("DISTRIBUTE BY", ""),
    "into": ("INTO", "Write CREATE STREAM name AS SELECT …"),
    "match": ("MATCH_RECOGNIZE", ""),
    "connect": ("CONNECT BY", ""),
    "sample": ("TABLESAMPLE", ""),
    "pivots": ("PIVOT", ""),
}
_SET_KINDS: dict[tuple[type[exp.Expr], bool], SetKind] = {
    (exp.Except, True): SetKind.EXCEPT,
    (exp.Except, False): SetKind.EXCEPT_ALL,
    (exp.Intersect, True): SetKind.INTERSECT,
    (exp.Intersect, False): SetKind.INTERSECT_ALL,
}


class QueryBinder:
    """Binds one statement's query against a catalog; collects notices, the streams used and UNBOUNDED windows."""

    def __init__(self, catalog: Catalog, text: str) -> None:
        self.catalog, self.text = catalog, text
        self.notices: list[Notice] = []
        self.uses: set[str] = set()
        self.unbounded: list[UnboundedWindow] = []
        self._ctes: list[dict[str, Output]] = []
        self._environment = Environment(text, self._lookup, self.bind, self.unbounded)

    def error(self, node: exp.Expr | None, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.text, node, code, message, hint=hint)

    def bind(self, node: exp.Expr) -> Output:
        """The plan of a query; its columns have the names that the user sees."""
        self._check_supported(node)
        with_ = node.args.get("with_")
        self._ctes.append({})
        try:
            if with_ is not None:
                self._define_all(with_)
            match node:
                case exp.Subquery():
                    return self.bind(node.this)
                case exp.SetOperation():
                    return self._set_operation(node)
                case exp.Select():
                    return self._select(node)
        finally:
            self._ctes.pop()
        raise self.error(node, "UNSUPPORTED", "this query is not supported")

    def _check_supported(self, node: exp.Expr) -> None:
        for key, (name, hint) in _UNSUPPORTED.items():
            if node.args.get(key):
                place = node.args[key]
                raise self.error(
                    place if isinstance(place, exp.Expr) else node, "UNSUPPORTED", f"{name} is not supported", hint=hint
                )

    def _define_all(self, with_: exp.Expr) -> None:
        if with_.args.get("recursive"):
            raise self.error(with_, "UNSUPPORTED", "WITH RECURSIVE is not supported")
        for cte in with_.expressions:
            self._define(cte)

    def _define(self, cte: exp.Expr) -> None:
        output = self.bind(cte.this)
        alias = cte.args["alias"]
        given = [c.name for c in alias.args.get("columns") or ()]
        if given and len(given) != len(output.columns):
            message = f'"{alias.name}" has {len(output.columns)} columns, but {len(given)} names are given'
            raise self.error(alias, "COLUMN_COUNT", message)
        if given:
            pairs = list(zip(given, output.columns, strict=True))
            output = Output(
                project(output.plan, [(n, reference(c)) for n, c in pairs]),
                tuple(evolve(c, name=n, internal=n) for n, c in pairs),
            )
        self._ctes[-1][alias.name.casefold()] = output

    def _lookup(self, node: exp.Table) -> Stream | Derived | Output:
        folded = node.name.casefold()
        for defined in reversed(self._ctes):
            if folded in defined:
                return defined[folded]
        found = self.catalog.get(node.name)
        if found is None:
            names = [*self.catalog.names(), *(n for d in self._ctes for n in d)]
            hint = did_you_mean(node.name, names, all_of_them="There are")
            hint = hint or "Declare it first: CREATE STREAM name (column type, …)."
            raise self.error(node, "UNKNOWN_STREAM", f'stream "{node.name}" does not exist', hint=hint)
        self.uses.add(folded)
        return found

    # -- set operations ---------------------------------------------------------------------------------------------

    def _set_operation(self, node: exp.SetOperation) -> Output:
        if node.args.get("by_name") or node.args.get("side") or node.args.get("kind"):
            raise self.error(node, "UNSUPPORTED", "BY NAME is not supported")
        left, right = self.bind(node.this), self.bind(node.expression)
        word = type(node).__name__.upper()
        if len(left.columns) != len(right.columns):
            raise self.error(
                node.expression,
                "COLUMN_COUNT",
                f"{word} needs the same number of columns on both sides, not {len(left.columns)} and "
                f"{len(right.columns)}",
            )
        types = []
        for a, b in zip(left.columns, right.columns, strict=True):
            type_ = common_type(a.type, b.type)
            if type_ is None:
                raise self.error(
                    node.expression,
                    "TYPE_MISMATCH",
                    f'{word} cannot unite column "{a.name}" of type {shown(a.type)} with "{b.name}" of type '
                    f"{shown(b.type)}",
                    hint="Convert one of them with CAST.",
                )
            types.append(type_)
        columns = tuple(
            evolve(a, type=t, nullable=a.nullable or b.nullable, qualifier=None)
            for a, b, t in zip(left.columns, right.columns, types, strict=True)
        )
        ours, theirs = (self._coerced(side, columns) for side in (left, right))
        distinct = bool(node.args.get("distinct"))
        if isinstance(node, exp.Union):
            united = Union(ours, theirs)
            return Output(Distinct(united) if distinct else united, columns)
        return Output(SetOperation(ours, theirs, _SET_KINDS[type(node), distinct]), columns)

    @staticmethod
    def _coerced(side: Output, columns: Sequence[Column]) -> Plan:
        expressions = []
        for have, want in zip(side.columns, columns, strict=True):
            scalar = reference(have)
            if have.type != want.type:
                scalar = Scalar(f"CAST({scalar.sql} AS {duckdb_name(want.type)})", want.type, scalar.columns)
            expressions.append((want.name, scalar))
        return project(side.plan, expressions)

    # -- SELECT -----------------------------------------------------------------------------------------------------

    def _select(self, node: exp.Select) -> Output:
        chosen = SelectList(self.text, node)
        block = self._block(node, chosen, None, NameSource())
        plan, columns = chosen.project(block.relation, block.outputs, self.notices)
        if node.args.get("distinct"):
            plan = Distinct(plan)
        if chosen.relation_to_stream:
            plan = RELATION_TO_STREAM[chosen.relation_to_stream](plan)
        return Output(plan, columns)

    def _block(self, node: exp.Select, chosen: SelectList, outer: Scope | None, names: NameSource) -> Block:
        """FROM, WHERE, GROUP BY and HAVING of a SELECT, and its select list bound over the rows that they leave."""
        from_ = node.args.get("from_")
        if from_ is None:
            raise self.error(node, "UNSUPPORTED", "a query needs a FROM clause")
        # A sub-query has names of its own; only where outer columns come in must they differ from the outer ones.
        own = names if outer is None else NameSource()
        clause = FromClause(self._environment, own)
        clause.add(from_.this, node.args.get("joins") or [])
        scope = Scope(self.text, clause.items, outer)
        where = node.args.get("where")
        dependent: list[exp.Expr] = []
        later: list[exp.Expr] = []
        for condition in conjuncts(where.this if where else None):
            if is_correlated(condition, scope):
                dependent.append(condition)
            elif condition.find(exp.Query, exp.Subquery):
                later.append(condition)
            else:
                clause.require(ExpressionBinder(scope, "WHERE").predicate(condition))
        relation = clause.relation()
        if dependent:
            relation, own = rename_apart(relation, names), names
        scope = Scope(self.text, relation.items, outer)
        correlated = [ExpressionBinder(Both(scope), "WHERE").predicate(c) for c in dependent]
        names = own
        relation = self._conditions(relation, later, scope, names)
        expressions = chosen.expand(scope)
        if node.args.get("group") or node.args.get("having") or any(calls_aggregate(c.node) for c in expressions):
            return self._grouped(node, expressions, relation, scope, correlated, names)
        values = Values(self.subquery, scope, names, lambda bound: bound)
        outputs = [values.bind(c, "SELECT") for c in expressions]
        relation = values.attached(relation)
        single = not correlated and at_most_one_row(relation.plan)
        return Block(relation, tuple(outputs), tuple(correlated), single)

    def _conditions(
        self, relation: Relation, conditions: Sequence[exp.Expr], scope: Scope, names: NameSource
    ) -> Relation:
        """The conditions of WHERE that contain sub-queries, one after the other."""
        joins = SubqueryJoins(scope, names)
        for node in conditions:
            condition = recognise(node)
            if condition is not None:
                outer = [ExpressionBinder(scope, "WHERE").bind(o) for o in condition.outer]
                block = self.subquery(condition.query, scope, names)
                relation = joins.apply(relation, condition, outer, block)
                continue
            values = Values(self.subquery, scope, names, lambda bound: bound)
            predicate = values.predicate(node, "WHERE")
            attached = values.attached(relation)
            relation = relation.over(filtered(attached.plan, [predicate]))
        return relation

    def subquery(self, node: exp.Expr, outer: Scope, names: NameSource) -> Block:
        """A sub-query of an expression; only a plain SELECT may refer to the outer query."""
        while isinstance(node, exp.Subquery) and not node.args.get("with_"):
            node = node.this
        self._check_supported(node)
        if isinstance(node, exp.Select) and not node.args.get("with_"):
            chosen = SelectList(self.text, node)
            if chosen.relation_to_stream is None:
                block = self._block(node, chosen, outer, names)
                return block if block.correlated else with_own_names(block, names)
        output = self.bind(node)
        outputs = tuple(Bound.of_column(c, node) for c in output.columns)
        relation = Relation(output.plan, (Item(output.columns),))
        return with_own_names(Block(relation, outputs, (), at_most_one_row(output.plan)), names)

    # -- GROUP BY ---------------------------------------------------------------------------------------------------

    def _grouped(
        self,
        node: exp.Select,
        expressions: Sequence[Chosen],
        relation: Relation,
        scope: Scope,
        correlated: Sequence[Bound],
        names: NameSource,
    ) -> Block:
        grouping = Grouping(relation, scope, names)
        group = node.args.get("group")
        for key in self._keys(group, expressions, scope):
            grouping.add_key(key)
        for predicate in correlated:
            grouping.add_key(self._inner_side(predicate, relation))
        values = Values(self.subquery, scope, names, grouping.lift, aggregate=grouping.call)
        outputs = [values.bind(c, "SELECT", lift=False) for c in expressions]
        having = node.args.get("having")
        plain: list[Bound] = []
        conditions: list[tuple[Condition, list[Bound]]] = []
        for condition in conjuncts(having.this if having else None):
            with_aliases = _substituted(condition, expressions, scope)
            recognised = recognise(with_aliases)
            if recognised is None:
                plain.append(values.predicate(with_aliases, "HAVING", lift=False))
            else:
                binder = ExpressionBinder(scope, "HAVING", aggregate=grouping.call)
                conditions.append((recognised, [binder.bind(o) for o in recognised.outer]))
        groups = grouping.build()
        outputs = [grouping.lift(o) for o in outputs]
        result = values.attached(groups)
        result = groups.over(filtered(result.plan, [grouping.lift(p) for p in plain]))
        joins = SubqueryJoins(scope, names)
        for recognised, outer in conditions:
            block = self.subquery(recognised.query, scope, names)
            result = joins.apply(result, recognised, [grouping.lift(o) for o in outer], block)
        single = group is None
        return Block(result, tuple(outputs), tuple(grouping.lift(p) for p in correlated), single)

    def _keys(self, group: exp.Expr | None, expressions: Sequence[Chosen], scope: Scope) -> list[Bound]:
        if group is None:
            return []
        extras = [k for k in ("rollup", "cube", "grouping_sets", "totals", "all") if group.args.get(k)]
        if extras or group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
            raise self.error(group, "UNSUPPORTED", "ROLLUP, CUBE, GROUPING SETS and GROUP BY ALL are not supported")
        keys = []
        for written in group.expressions:
            node = written
            while isinstance(node, exp.Paren):
                node = node.this
            if isinstance(node, exp.Tuple):
                raise self.error(
                    node, "UNSUPPORTED", "GROUP BY takes single expressions", hint="Leave out the parentheses."
                )
            if isinstance(node, exp.Literal) and node.is_int:
                position = int(node.name)
                if not 1 <= position <= len(expressions):
                    message = f"GROUP BY position {position} is not in the select list"
                    hint = f"It has {len(expressions)} column{'s' if len(expressions) > 1 else ''}."
                    raise self.error(node, "GROUP_POSITION", message, hint=hint)
                node = expressions[position - 1].node
            node = _substituted(node, expressions, scope)
            while isinstance(node, exp.Paren):
                node = node.this
            keys.append(ExpressionBinder(scope, "GROUP BY").bind(node))
        return keys

    def _inner_side(self, predicate: Bound, relation: Relation) -> Bound:
        """The key of a correlated aggregate: its sub-query is computed once for every value of it."""
        node, inner = predicate.node, set(relation.plan.schema.names)
        for side in (node.this, node.expression) if isinstance(node, exp.EQ) else ():
            columns = {c.name: c.meta["type"] for c in side.find_all(exp.Column)}
            other = node.expression if side is node.this else node.this
            if columns and set(columns) <= inner and not {c.name for c in other.find_all(exp.Column)} & inner:
                origin = predicate.origin.this if side is node.this else predicate.origin.expression
                if isinstance(side, exp.Column):
                    return Bound(side, columns[side.name], True, origin)
        raise self.error(
            predicate.origin,
            "CORRELATED_SUBQUERY",
            "a sub-query with an aggregate can depend on the outer query only by equal columns",
            hint="Write the condition as: inner_column = outer expression.",
        )


def _substituted(node: exp.Expr, expressions: Sequence[Chosen], scope: Scope) -> exp.Expr:
    """GROUP BY and HAVING may name what SELECT calls an expression, if no column has that name."""
    aliases = {c.name.casefold(): c.node for c in expressions if c.aliased}

    def replaced(inner: exp.Expr) -> exp.Expr:
        if isinstance(inner, exp.Column) and not inner.args.get("table") and inner.name.casefold() in aliases:
            try:
                scope.resolve(inner)
            except SqlError:
                return exp.Paren(this=aliases[inner.name.casefold()].copy())
        return inner

    return node.transform(replaced) if aliases else node
