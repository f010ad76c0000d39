"""The FROM clause: streams, derived streams, sub-queries and their windows, joined together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from attrs import define, evolve, field
from sqlglot import exp

from headwater.algebra.nodes import Dstream, Istream, JoinKind, Plan, Split
from headwater.errors import SqlError
from headwater.language.catalog import Derived, Stream, UnboundedWindow
from headwater.language.expressions import ExpressionBinder
from headwater.language.joins import conjuncts, filtered, join, with_columns
from headwater.language.rendering import Template
from headwater.language.scope import Bound, Column, Item, NameSource, Relation, Scope, project, reference, rename
from headwater.language.syntax import RelationToStream
from headwater.language.text import error_on, span
from headwater.language.types import common_type
from headwater.language.windows import apply_granularity, apply_window

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
}
RELATION_TO_STREAM: dict[str, Callable[[Plan], Plan]] = {"ISTREAM": Istream, "DSTREAM": Dstream, "RSTREAM": Split}


@define
class Output:
    """What a query gives: its plan, whose columns have the names that the user sees."""

    plan: Plan
    columns: tuple[Column, ...]


@define
class Environment:
    """What a FROM clause needs from around it."""

    text: str
    lookup: Callable[[exp.Table], Stream | Derived | Output]
    bind_query: Callable[[exp.Expr], Output]
    unbounded: list[UnboundedWindow] = field(factory=list)


class FromClause:
    """Collects the items of one FROM clause and the conditions between them, then joins them in a good order."""

    def __init__(self, environment: Environment, names: NameSource) -> None:
        self.environment, self.names = environment, names
        self._parts: list[Relation] = []
        self._predicates: list[Bound] = []

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
            self._parts.extend(self._group(start, joined))
        self._check_aliases([first, *(node.this for node in joins)])

    def _check_aliases(self, nodes: Sequence[exp.Expr]) -> None:
        seen: set[str] = set()
        for alias in (n.args.get("alias") for n in nodes):
            if alias is None:
                continue
            if alias.name.casefold() in seen:
                message = f'FROM has more than one "{alias.name}"'
                raise self.error(alias, "DUPLICATE_ALIAS", message, hint="Give each its own alias.")
            seen.add(alias.name.casefold())

    def require(self, predicate: Bound) -> None:
        """A condition that every row of the result must meet (from WHERE)."""
        self._predicates.append(predicate)

    def _group(self, start: exp.Expr, joins: Sequence[exp.Join]) -> list[Relation]:
        parts = self._parenthesised(start)
        nested = start.args.get("joins") or []
        pending = len(self._predicates)
        for node in [*nested, *joins]:
            kind = self._kind(node)
            ours = len(self._predicates)
            right = self._parenthesised(node.this)
            using = node.args.get("using") or []
            on = node.args.get("on")
            if kind == JoinKind.INNER and not using:
                parts = [*parts, *right]
                scope = Scope(self.environment.text, tuple(i for p in parts for i in p.items))
                self._predicates.extend(self._conditions(scope, on))
                continue
            # What joins later must not reach below an outer join: the parts so far become one.
            left_part = self._joined(parts, self._predicates[pending:ours])
            right_part = self._joined(right, self._predicates[ours:])
            del self._predicates[pending:]
            if using:
                parts = [self._join_using(left_part, right_part, kind, using)]
                continue
            if on is None:
                raise self.error(node, "SYNTAX", f"a {kind.name} JOIN needs a condition", hint="Add ON … or USING (…).")
            scope = Scope(self.environment.text, left_part.items + right_part.items)
            parts = [join(left_part, right_part, kind, self._conditions(scope, on), self.names)]
        return parts

    def _conditions(self, scope: Scope, on: exp.Expr | None) -> list[Bound]:
        binder = ExpressionBinder(scope, "ON")
        return [binder.predicate(c) for c in conjuncts(on)]

    def _kind(self, node: exp.Join) -> JoinKind:
        if node.args.get("method"):
            raise self.error(node, "UNSUPPORTED", f"{node.args['method']} JOIN is not supported", hint="Write ON.")
        words = str(node.args.get("side") or ""), str(node.args.get("kind") or "")
        if words not in _JOIN_KINDS:
            raise self.error(node, "UNSUPPORTED", f"{' '.join(filter(None, words))} JOIN is not supported")
        return _JOIN_KINDS[words]

    def _join_using(self, left: Relation, right: Relation, kind: JoinKind, using: Sequence[exp.Expr]) -> Relation:
        """USING (k): equal keys, and one column ``k`` in front of the others."""
        text = self.environment.text
        pairs = []
        for node in using:
            name = exp.Column(this=node.copy())
            pairs.append((Scope(text, left.items).resolve(name), Scope(text, right.items).resolve(name)))
        binder = ExpressionBinder(Scope(text, ()), "USING")
        checked = [binder.comparands(a, b) for a, b in pairs]
        predicates = [Bound(exp.EQ(this=a.node, expression=b.node), pa.bool_(), True, a.origin) for a, b in checked]
        joined = join(left, right, kind, predicates, self.names)
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            return joined
        merged, plan = [], joined.plan
        for node, (a, b) in zip(using, pairs, strict=True):
            chosen = b if kind == JoinKind.RIGHT else a
            internal = chosen.column or ""
            if kind == JoinKind.FULL:
                type_ = common_type(a.type, b.type) or a.type
                chosen = Bound(Template(this="COALESCE({args})", expressions=[a.node, b.node]), type_, True, a.origin)
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
        plan, columns, stream = self._reference(node)
        alias_node = node.args.get("alias")
        alias = alias_node.name if isinstance(alias_node, exp.TableAlias) else None
        if isinstance(alias_node, exp.TableAlias) and alias_node.args.get("columns"):
            columns = self._renamed(alias_node, columns)
        item = Item(columns, alias or None, stream)
        if window := node.args.get("stream_window"):
            plan, unbounded = apply_window(self.environment.text, window, plan, item)
            if unbounded is not None:
                start, end = span(window) or (0, 1)
                name = stream or item.alias or "sub-query"
                noted = UnboundedWindow(unbounded, name, self.environment.text, start, end)
                self.environment.unbounded.append(noted)
        if granularity := node.args.get("granularity"):
            plan = apply_granularity(self.environment.text, granularity, plan)
        item, plan = rename(item, plan, self.names)
        return Relation(plan, (item,))

    def _reference(self, node: exp.Expr) -> tuple[Plan, tuple[Column, ...], str | None]:
        match node:
            case exp.Table():
                found = self.environment.lookup(node)
                if isinstance(found, Output):
                    return found.plan, found.columns, node.name
                if isinstance(found, Derived):
                    self.environment.unbounded.extend(found.unbounded)
                columns = tuple(Column(f.name, f.name, f.type, f.nullable) for f in found.fields)
                return found.plan, columns, found.name
            case exp.Subquery():
                output = self.environment.bind_query(node.this)
                return output.plan, output.columns, None
            case RelationToStream():
                inner = FromClause(self.environment, NameSource())._item(node.expression)
                plan = project(inner.plan, [(c.name, reference(c)) for c in inner.columns])
                (item,) = inner.items
                return RELATION_TO_STREAM[node.this.name](plan), item.columns, item.label
        raise self.error(node, "UNSUPPORTED", "this cannot be used in FROM")

    def _renamed(self, alias: exp.TableAlias, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        given = [c.name for c in alias.args["columns"]]
        if len(given) != len(columns):
            raise self.error(
                alias, "COLUMN_COUNT", f'"{alias.name}" has {len(columns)} columns, but {len(given)} names are given'
            )
        return tuple(evolve(c, name=name) for c, name in zip(columns, given, strict=True))

    # -- joining ----------------------------------------------------------------------------------------------------

    def relation(self) -> Relation:
        """All items joined where all conditions hold."""
        return self._joined(self._parts, self._predicates)

    def _joined(self, parts: Sequence[Relation], predicates: Sequence[Bound]) -> Relation:
        """Left-deep in the order of FROM, but never a product where some other item is connected by equal keys."""
        waiting = list(predicates)
        remaining = [self._narrowed(part, waiting) for part in parts]
        result = remaining.pop(0)
        while remaining:
            chosen = next((p for p in remaining if self._connected(result, p, waiting)), remaining[0])
            remaining.remove(chosen)
            reach = _columns(result) | _columns(chosen)
            ready = [p for p in waiting if set(p.types) <= reach]
            waiting = [p for p in waiting if p not in ready]
            result = join(result, chosen, JoinKind.INNER, ready, self.names)
        if waiting:  # conditions without any column
            result = result.over(filtered(result.plan, waiting))
        return evolve(result, items=tuple(i for part in parts for i in part.items))

    @staticmethod
    def _narrowed(part: Relation, waiting: list[Bound]) -> Relation:
        own = [p for p in waiting if p.types and set(p.types) <= _columns(part)]
        waiting[:] = [p for p in waiting if p not in own]
        return part.over(filtered(part.plan, own))

    @staticmethod
    def _connected(left: Relation, right: Relation, predicates: Sequence[Bound]) -> bool:
        ours, theirs = _columns(left), _columns(right)
        return any(
            isinstance(p.node, exp.EQ)
            and set(p.types) & ours
            and set(p.types) & theirs
            and set(p.types) <= ours | theirs
            for p in predicates
        )


def _columns(relation: Relation) -> set[str]:
    return set(relation.plan.schema.names)
