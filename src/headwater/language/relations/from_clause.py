"""The FROM clause: its items joined together."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import JoinKind
from headwater.errors import SqlError
from headwater.expressions.nodes import Call
from headwater.expressions.rewrite import can_fail, is_call
from headwater.expressions.types import common_type
from headwater.language.expressions import ExpressionBinder
from headwater.language.parsing.syntax import ArrayRows, RelationToStream
from headwater.language.predicates import compared
from headwater.language.relations.from_items import Environment, ItemBinder
from headwater.language.relations.joins import conjuncts, filtered, join, with_columns
from headwater.language.relations.temporal_joins import TemporalJoin
from headwater.language.relations.unnesting import bind_array, one_row, unnested
from headwater.language.scope import Bound, Column, Item, NameSource, Relation, Scope, rename
from headwater.language.subqueries.free_names import is_correlated, refused
from headwater.language.subqueries.values import Values
from headwater.language.text import error_on

_JOIN_KINDS = {
    ("", ""): JoinKind.INNER,
    ("", "INNER"): JoinKind.INNER,
    ("", "CROSS"): JoinKind.INNER,
    ("LEFT", ""): JoinKind.LEFT,
    ("LEFT", "OUTER"): JoinKind.LEFT,
    ("RIGHT", ""): JoinKind.RIGHT,
    ("RIGHT", "OUTER"): JoinKind.RIGHT,
    ("FULL", ""): JoinKind.FULL,
    ("FULL", "OUTER"): JoinKind.FULL,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("", "SEMI"): JoinKind.SEMI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
    ("", "ANTI"): JoinKind.ANTI,
    ("RIGHT", "SEMI"): JoinKind.SEMI,
    ("RIGHT", "ANTI"): JoinKind.ANTI,
}
"""A RIGHT SEMI or ANTI JOIN is the LEFT one with its sides exchanged."""


class FromClause:
    """Collects the items of one FROM clause and the conditions between them, then joins them in a good order."""

    def __init__(self, environment: Environment, names: NameSource) -> None:
        self.environment, self.names = environment, names
        self._parts: list[Relation] = []
        self._predicates: list[Bound] = []
        self.deferred: list[tuple[exp.Expr, tuple[Item, ...]]] = []
        """Conditions of ON for the query to see to, with what is in sight: on sub-queries, or on an outer query."""
        self._items = ItemBinder(environment)

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(i for part in self._parts for i in part.items)

    def error(self, node: exp.Expr, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.environment.text, node, code, message, hint=hint)

    # -- collecting -------------------------------------------------------------------------------------------------

    def add(self, first: exp.Expr, joins: Sequence[exp.Join]) -> None:
        """A comma binds looser than JOIN, so every comma begins a group of its own."""
        groups: list[tuple[exp.Expr, list[exp.Join]]] = [(first, [])]
        for node in joins:
            if node.args.get("kind") == "COMMA":
                groups.append((node.this, []))
            else:
                groups[-1][1].append(node)
        for start, joined in groups:
            if version := start.args.get("as_of"):
                hint = "Write it after the table that is joined: FROM b JOIN p FOR SYSTEM_TIME AS OF b.ts ON …"
                raise self.error(version, "SYNTAX", "FOR SYSTEM_TIME AS OF needs a stream left of it", hint=hint)
            group = self._group(start, joined)  # which may take what is there into it
            self._parts.extend(group)
        self._check_aliases([first, *(node.this for node in joins)])

    def _check_aliases(self, nodes: Sequence[exp.Expr]) -> None:
        seen: set[str] = set()
        for alias in (n.args.get("alias") for n in nodes):
            if alias is None or not alias.name:
                continue
            if alias.name.casefold() in seen:
                message = f'FROM has more than one "{alias.name}"'
                raise self.error(alias, "DUPLICATE_ALIAS", message, hint="Give each its own alias.")
            seen.add(alias.name.casefold())

    def add_values(self, relation: Relation) -> None:
        """Rows without names, to be joined with the others by conditions only."""
        self._parts.append(relation)

    def require(self, predicate: Bound) -> None:
        """A condition that every row of the result must meet (from WHERE)."""
        self._predicates.append(predicate)

    def is_fragile(self, predicate: Bound) -> bool:
        """Must the condition not meet rows that others drop?"""
        return _is_fragile(predicate, self._parts)

    def _group(self, start: exp.Expr, joins: Sequence[exp.Join]) -> list[Relation]:
        parts = self._beside([], start) if isinstance(start, ArrayRows) else self._parenthesised(start)
        nested = start.args.get("joins") or []
        pending, early = len(self._predicates), len(self.deferred)
        for node in [*nested, *joins]:
            if isinstance(node.this, ArrayRows):
                parts = self._beside(parts, node.this, outer=self._is_outer(node))
                pending = min(pending, len(self._predicates))
                scope = self._scope(tuple(i for p in parts for i in p.items))
                self._predicates.extend(self._conditions(scope, node.args.get("on"), inner=True))
                continue
            kind = self._kind(node)
            ours, deferred = len(self._predicates), len(self.deferred)
            right = self._parenthesised(node.this)
            using, natural = node.args.get("using") or [], node.args.get("method") == "NATURAL"
            on = node.args.get("on")
            if node.args.get("method") == "ASOF" or node.this.args.get("as_of"):
                right, on = self._temporal(node, parts, right)
            if kind == JoinKind.INNER and not using and not natural:
                parts = [*parts, *right]
                scope = self._scope(tuple(i for p in parts for i in p.items))
                self._predicates.extend(self._conditions(scope, on, inner=True))
                continue
            self._check_deferred(kind, early, deferred)
            self._check_copies(node, kind, parts, right)
            # What joins later must not reach below an outer join: the parts so far become one.
            left_part = self._joined(parts, self._predicates[pending:ours])
            right_part = self._joined(right, self._predicates[ours:])
            del self._predicates[pending:]
            if kind in (JoinKind.SEMI, JoinKind.ANTI) and node.args.get("side") == "RIGHT":
                left_part, right_part = right_part, left_part
            if natural:
                using = self._common_columns(node, left_part, right_part)
            if using:
                parts = [self._join_using(left_part, right_part, kind, using)]
                continue
            if on is None:
                raise self.error(node, "SYNTAX", f"a {kind.name} JOIN needs a condition", hint="Add ON … or USING (…).")
            parts = [self._outer_join(left_part, right_part, kind, on)]
        return parts

    # -- arrays -----------------------------------------------------------------------------------------------------

    def _beside(self, parts: list[Relation], node: ArrayRows, *, outer: bool = False) -> list[Relation]:
        """The parts with the rows of an array, which may be of any item before it; they stay in their order."""
        text, visible = self.environment.text, [*self._parts, *parts]
        array = bind_array(node, self._scope(tuple(i for p in visible for i in p.items)))
        owners = [part for part in visible if array.columns & _columns(part)]
        if not owners:
            return [*parts, unnested(text, node, one_row(), array, self.names, outer=outer)]
        if owners == visible[-1:]:
            (parts or self._parts).pop()
            return [*parts, unnested(text, node, owners[0], array, self.names, outer=outer)]
        whole = self._joined(visible, self._predicates)
        self._parts, self._predicates = [], []
        return [unnested(text, node, whole, array, self.names, outer=outer)]

    def _is_outer(self, node: exp.Join) -> bool:
        """LEFT JOIN … ON TRUE keeps rows without items."""
        kind, on = self._kind(node), node.args.get("on")
        if kind not in (JoinKind.INNER, JoinKind.LEFT) or node.args.get("using") or node.args.get("method"):
            hint = "Write CROSS JOIN UNNEST(…), or LEFT JOIN UNNEST(…) ON TRUE."
            raise self.error(
                node.this, "UNSUPPORTED", "the rows of an array can be joined to those before it only", hint=hint
            )
        if kind == JoinKind.LEFT and not (isinstance(on, exp.Boolean) and on.this):
            hint = "Write ON TRUE, and the condition in WHERE; or unnest in a sub-query, and join that."
            raise self.error(on or node.this, "UNSUPPORTED", "LEFT JOIN UNNEST needs ON TRUE", hint=hint)
        return kind == JoinKind.LEFT

    def _outer_join(self, left: Relation, right: Relation, kind: JoinKind, on: exp.Expr) -> Relation:
        """Conditions on sub-queries become columns of the side that they are about, and conditions on those."""
        scope, conditions = self._scope(left.items + right.items), []
        sides = [left, right]
        for condition in conjuncts(on):
            if not condition.find(exp.Query, exp.Subquery):
                conditions += self._conditions(scope, condition)
                continue
            number, values, predicate = self._about_one_side(condition, scope, sides, kind)
            sides[number] = values.attached(sides[number])
            conditions.append(predicate)
        return join(sides[0], sides[1], kind, conditions, self.names)

    def _about_one_side(
        self, condition: exp.Expr, scope: Scope, sides: Sequence[Relation], kind: JoinKind
    ) -> tuple[int, Values, Bound]:
        """Which side the condition is about, what it needs beside it, and the condition over that."""
        subquery = self.environment.subquery
        if subquery is None or is_correlated(condition, scope):
            raise self._only_inner(condition)
        direct = [n for n in condition.walk(prune=_is_query) if isinstance(n, exp.Column)]
        for column in direct:
            scope.resolve(column)  # of both sides: what is ambiguous is refused
        for number in (0, 1) if kind == JoinKind.RIGHT else (1, 0):  # the one whose rows it may leave out
            values = Values(subquery, self._scope(sides[number].items), self.names, lambda bound: bound)
            try:
                return number, values, values.predicate(condition, "ON")
            except SqlError as problem:
                if problem.code not in ("UNKNOWN_COLUMN", "UNKNOWN_STREAM"):
                    raise
        raise self._only_inner(condition)

    def _temporal(
        self, node: exp.Join, left: Sequence[Relation], right: Sequence[Relation]
    ) -> tuple[list[Relation], exp.Expr | None]:
        """The right side and ON of a join that says of which instant that is."""
        if len(right) != 1:
            raise self.error(node, "UNSUPPORTED", "the right side must be one stream or table", hint="Write a SELECT.")
        join, version = TemporalJoin(self.environment, left, right[0]), node.this.args.get("as_of")
        if version is not None:
            join.check_version(version, node.args.get("on"))
        if node.args.get("method") != "ASOF":
            return list(right), node.args.get("on")
        found, on = join.last_rows(node, self.names)
        return [found], on

    def _scope(self, items: tuple[Item, ...]) -> Scope:
        return Scope(self.environment.text, items, self.environment.outer)

    def _conditions(self, scope: Scope, on: exp.Expr | None, *, inner: bool = False) -> list[Bound]:
        """The conditions of ON; an inner join leaves those to the query that only it can bind."""
        binder, bound = ExpressionBinder(scope, "ON"), []
        for condition in conjuncts(on):
            if not condition.find(exp.Query, exp.Subquery) and not is_correlated(condition, scope):
                bound.append(binder.predicate(condition))
            elif inner:
                self.deferred.append((condition, scope.items))
            else:
                raise self._only_inner(condition)
        return bound

    def _check_deferred(self, kind: JoinKind, early: int, late: int) -> None:
        """What is left for later must not decide about rows that an outer join fills up with NULL."""
        filled_left = self.deferred[early:late] if kind in (JoinKind.RIGHT, JoinKind.FULL) else []
        filled_right = self.deferred[late:] if kind != JoinKind.RIGHT else []
        for condition, _ in (*filled_left, *filled_right):
            raise self._only_inner(condition)

    def _check_copies(
        self, node: exp.Expr, kind: JoinKind, left: Sequence[Relation], right: Sequence[Relation]
    ) -> None:
        """Copies of outer columns must reach the rows of the query: not as NULL, and not only to be looked for."""
        lost = [*(left if kind in (JoinKind.RIGHT, JoinKind.FULL) else ()), *(right if kind != JoinKind.RIGHT else ())]
        if kind != JoinKind.INNER and any(c.copy_of is not None for relation in lost for c in relation.columns):
            raise self.error(
                node,
                "CORRELATED_SUBQUERY",
                f"a sub-query that depends on the outer query cannot be on this side of a {kind.name} JOIN",
                hint="Put the join into the sub-query, or the condition on outer columns into ON or WHERE around it.",
            )

    def _only_inner(self, condition: exp.Expr) -> SqlError:
        if condition.find(exp.Query, exp.Subquery):
            hint = "Put the part about one side into a sub-query in FROM: LEFT JOIN (SELECT … FROM b WHERE …) AS b ON …"
            message = "a sub-query in ON of an outer join can depend on one of its sides only"
            return self.error(condition, "SUBQUERY_POSITION", message, hint=hint)
        outer = self.environment.outer
        assert outer is not None
        column = next(c for c in condition.find_all(exp.Column) if outer.sees(c))
        return refused(self.environment.text, column, "In ON of an outer join only its two sides can be compared.")

    def _kind(self, node: exp.Join) -> JoinKind:
        method = node.args.get("method")
        if method not in (None, "NATURAL", "ASOF"):
            raise self.error(node, "UNSUPPORTED", f"{method} JOIN is not supported", hint="Write ON.")
        words = str(node.args.get("side") or ""), str(node.args.get("kind") or "")
        if words not in _JOIN_KINDS:
            raise self.error(node, "UNSUPPORTED", f"{' '.join(filter(None, words))} JOIN is not supported")
        kind, asof, version = _JOIN_KINDS[words], method == "ASOF", node.this.args.get("as_of")
        if (asof or version is not None) and kind not in (JoinKind.INNER, JoinKind.LEFT):
            what = "an ASOF JOIN" if asof else "a join FOR SYSTEM_TIME AS OF"
            raise self.error(version or node, "UNSUPPORTED", f"{what} is an inner or a LEFT JOIN")
        return kind

    def _common_columns(self, node: exp.Join, left: Relation, right: Relation) -> list[exp.Expr]:
        """NATURAL JOIN: USING of all names that both sides have."""
        text = self.environment.text
        ours, theirs = (Scope(text, side.items).star(None) for side in (left, right))
        folded = {c.name.casefold() for c in theirs}
        common = dict.fromkeys(c.name for c in ours if c.name.casefold() in folded)
        if not common:
            hint = "Write CROSS JOIN for all pairs, or ON with a condition."
            raise self.error(node, "NO_COMMON_COLUMN", "a NATURAL JOIN needs a column of the same name", hint=hint)
        place = node.find(exp.Identifier)
        return [exp.to_identifier(name).update_positions(place) for name in common]

    def _join_using(self, left: Relation, right: Relation, kind: JoinKind, using: Sequence[exp.Expr]) -> Relation:
        """USING (k): equal keys, and one column ``k`` in front of the others."""
        text = self.environment.text
        pairs = []
        for node in using:
            name = exp.Column(this=node.copy())
            pairs.append((Scope(text, left.items).resolve(name), Scope(text, right.items).resolve(name)))
        binder = ExpressionBinder(Scope(text, ()), "USING")
        checked = [binder.comparands(a, b) for a, b in pairs]
        predicates = [compared("=", a, b) for a, b in checked]
        joined = join(left, right, kind, predicates, self.names)
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            return joined
        merged, plan = [], joined.plan
        for node, (a, b) in zip(using, pairs, strict=True):
            chosen = b if kind == JoinKind.RIGHT else a
            internal = chosen.column or ""
            if kind == JoinKind.FULL:
                type_ = common_type(a.type, b.type) or a.type
                either = Call("coalesce", (a.expression, b.expression), type_)
                chosen = Bound(either, a.nullable or b.nullable, a.origin)
                plan, (internal,) = with_columns(plan, [chosen], self.names)
            merged.append(Column(node.name, internal, chosen.type, chosen.nullable))
        hidden = {bound.column for pair in pairs for bound in pair}
        items = tuple(
            evolve(i, columns=tuple(evolve(c, hidden=c.hidden or c.internal in hidden) for c in i.columns))
            for i in joined.items
        )
        return Relation(plan, (Item(tuple(merged)), *items))

    # -- items ------------------------------------------------------------------------------------------------------

    def _parenthesised(self, node: exp.Expr) -> list[Relation]:
        """``(a JOIN b ON …)`` is a group; anything else is one item."""
        if isinstance(node, exp.Subquery) and isinstance(node.this, (exp.Table, exp.Subquery, RelationToStream)):
            plain = not any(node.args.get(k) for k in ("alias", "stream_window", "granularity"))
            if plain:
                return self._group(node.this, [])
            raise self.error(
                node, "UNSUPPORTED", "a join in parentheses cannot have an alias or a window", hint="Write a SELECT."
            )
        return [self._item(node)]

    def _item(self, node: exp.Expr) -> Relation:
        item, plan = rename(*self._items.bind(node, stamped=self.environment.stamped), self.names)
        return Relation(plan, (item,))

    # -- joining ----------------------------------------------------------------------------------------------------

    def relation(self) -> Relation:
        """All items joined where all conditions hold."""
        return self._joined(self._parts, self._predicates)

    def _joined(self, parts: Sequence[Relation], predicates: Sequence[Bound]) -> Relation:
        """Left-deep in the order of FROM, but never a product where some other item is connected by equal keys."""
        fragile = [p for p in predicates if _is_fragile(p, parts)]
        waiting = [p for p in predicates if p not in fragile]
        remaining = [self._narrowed(part, waiting) for part in parts]
        result = remaining.pop(0)
        while remaining:
            chosen = next((p for p in remaining if self._connected(result, p, waiting)), remaining[0])
            remaining.remove(chosen)
            reach = _columns(result) | _columns(chosen)
            ready = [p for p in waiting if p.columns <= reach]
            waiting = [p for p in waiting if p not in ready]
            result = join(result, chosen, JoinKind.INNER, ready, self.names)
        if waiting or fragile:  # conditions without any column, and those that must not meet rows that others drop
            result = result.over(filtered(result.plan, [*waiting, *fragile]))
        return evolve(result, items=tuple(i for part in parts for i in part.items))

    @staticmethod
    def _narrowed(part: Relation, waiting: list[Bound]) -> Relation:
        own = [p for p in waiting if p.columns and p.columns <= _columns(part)]
        waiting[:] = [p for p in waiting if p not in own]
        return part.over(filtered(part.plan, own))

    @staticmethod
    def _connected(left: Relation, right: Relation, predicates: Sequence[Bound]) -> bool:
        ours, theirs = _columns(left), _columns(right)
        return any(
            is_call(p.expression, "=") and p.columns & ours and p.columns & theirs and p.columns <= ours | theirs
            for p in predicates
        )


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Query, exp.Subquery))


def _columns(relation: Relation) -> set[str]:
    return set(relation.plan.schema.names)


def _is_fragile(predicate: Bound, parts: Sequence[Relation]) -> bool:
    """Can it fail? An equation that joins two of the parts is needed there."""
    if not can_fail(predicate.expression):
        return False
    return not is_call(predicate.expression, "=") or any(predicate.columns <= _columns(part) for part in parts)
