"""What a name means: the columns that a part of a query can see, and where they are in its plan."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from attrs import evolve, frozen
from sqlglot import exp

from headwater.algebra.nodes import Plan, Project
from headwater.expressions import nodes
from headwater.expressions.nodes import Cast, Expression
from headwater.expressions.rewrite import over, plain_column
from headwater.language.text import did_you_mean, error_on
from headwater.language.types import shown
from headwater.model.schema import Field


@frozen
class Column:
    """A column that a query can name."""

    name: str
    """What the user calls it."""
    internal: str
    """Its name in the plan, unique there."""
    type: pa.DataType
    nullable: bool = True
    qualifier: str | None = None
    """The FROM item of an inner query that it comes from; Krämer's texts refer to it from outside (Example 17.7)."""
    hidden: bool = False
    """Merged by USING: seen only with its qualifier."""
    untyped: bool = False
    """A bare NULL, which a set operation may give the type of the other side."""
    copy_of: str | None = None
    """The column of the outer plan that it is a copy of; then no name means it."""
    stamp: bool = False
    """The instant at which the row arrived; no name means that either."""
    argument: str | None = None
    """Of an aggregate without a name of its own: what it is of; Golab 3.4 calls the SUM(a) of INTERNAL windows a outside."""


@frozen
class Item:
    """One item of a FROM clause: how it can be referred to, and its columns."""

    columns: tuple[Column, ...]
    alias: str | None = None
    stream: str | None = None
    time: str | None = None
    """The column that orders the stream, if it declares one (ORDERED BY), by the name that users see."""

    @property
    def label(self) -> str | None:
        return self.alias or self.stream

    def nullable(self, only: Container[str] | None = None) -> Item:
        """As an outer join shows it; or with only some columns (by their names in the plan) that can be NULL."""
        columns = (evolve(c, nullable=True) if only is None or c.internal in only else c for c in self.columns)
        return evolve(self, columns=tuple(columns))


@frozen
class Relation:
    """A partial plan and the items whose columns it carries."""

    plan: Plan
    items: tuple[Item, ...]

    def over(self, plan: Plan) -> Relation:
        """The same columns on top of a larger plan."""
        return evolve(self, plan=plan)

    @property
    def columns(self) -> Iterator[Column]:
        return (c for item in self.items for c in item.columns)


@frozen(eq=False)
class Bound:
    """An expression over the columns of a plan, and where it comes from."""

    expression: Expression
    nullable: bool
    origin: exp.Expr
    """The node in the script, for messages."""

    @classmethod
    def of_column(cls, column: Column, origin: exp.Expr) -> Bound:
        return cls(nodes.Column(column.internal, column.type), column.nullable, origin)

    @property
    def type(self) -> pa.DataType:
        return self.expression.type

    @property
    def columns(self) -> frozenset[str]:
        """The columns it reads."""
        return frozenset(self.expression.columns)

    @property
    def column(self) -> str | None:
        """The name of the column, if it is nothing but a column."""
        return plain_column(self.expression)

    def cast(self, type_: pa.DataType) -> Bound:
        return self if type_ == self.type else evolve(self, expression=Cast(self.expression, type_))


class NameSource:
    """Unique names for the columns of one query's plan; case does not tell names apart (nor does it in DuckDB)."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.casefold() for name in taken}

    def unique(self, *wishes: str) -> str:
        """The first wish that is free, else the last one with a number."""
        for wish in wishes:
            if self._claim(wish):
                return wish
        number = 2
        while not self._claim(f"{wishes[-1]}_{number}"):
            number += 1
        return f"{wishes[-1]}_{number}"

    def _claim(self, name: str) -> bool:
        if name.casefold() in self._taken:
            return False
        self._taken.add(name.casefold())
        return True


def reference(column: Column | Field) -> nodes.Column:
    """The plain column as an expression."""
    return nodes.Column(column.internal if isinstance(column, Column) else column.name, column.type)


def project(plan: Plan, expressions: Sequence[tuple[str, Expression]]) -> Plan:
    """A projection; none if it changes nothing, and no second one where the first can rename its own columns."""
    plain = [plain_column(e) for _, e in expressions]
    if list(zip((name for name, _ in expressions), plain, strict=True)) == [(n, n) for n in plan.schema.names]:
        return plan
    if isinstance(plan, Project) and all(name is not None for name in plain):
        below = dict(plan.expressions)
        return Project(plan.input, tuple((name, over(e, below)) for name, e in expressions))
    return Project(plan, tuple(expressions))


def rename(item: Item, plan: Plan, names: NameSource) -> tuple[Item, Plan]:
    """Give the columns names that no other item of the query has; adds nothing if they have them already."""
    label = item.label or "derived"
    columns = tuple(evolve(c, internal=names.unique(c.internal, f"{label}.{c.internal}")) for c in item.columns)
    if columns == item.columns:
        return item, plan
    pairs = zip(item.columns, columns, strict=True)
    renamed = project(plan, [(new.internal, reference(old)) for old, new in pairs])
    return evolve(item, columns=columns), renamed


def rename_apart(relation: Relation, names: NameSource) -> Relation:
    """The relation with all its columns under names that are free in another query, and nothing but them."""
    fresh = {c.internal: names.unique(c.internal, f"sub.{c.internal}") for c in relation.columns}
    types = {c.internal: c.type for c in relation.columns}
    plan = project(relation.plan, [(new, nodes.Column(old, types[old])) for old, new in fresh.items()])
    items = tuple(
        evolve(i, columns=tuple(evolve(c, internal=fresh[c.internal]) for c in i.columns)) for i in relation.items
    )
    return Relation(plan, items)


def moved(items: Sequence[Item], old: Sequence[Item], new: Sequence[Item]) -> tuple[Item, ...]:
    """The items with their columns where ``new`` has them instead of ``old``."""
    columns = ([c.internal for item in listed for c in item.columns] for listed in (old, new))
    places = dict(zip(*columns, strict=True))
    return tuple(
        evolve(i, columns=tuple(evolve(c, internal=places.get(c.internal, c.internal)) for c in i.columns))
        for i in items
    )


def renamed(bound: Bound, columns: Mapping[str, Column]) -> Bound:
    """The expression over other columns, given by the names of those that they replace."""
    copies = {name: nodes.Column(column.internal, column.type) for name, column in columns.items()}
    return evolve(bound, expression=over(bound.expression, copies))


class Scope:
    """The FROM items in sight, and around them those of the outer query (for correlated sub-queries).

    ``carried``: where the plan has copies of outer columns, these by their names in the outer plan. Without, what a name
    means in the outer query is a column of the outer plan.
    """

    def __init__(
        self,
        text: str,
        items: tuple[Item, ...],
        outer: Scope | None = None,
        carried: Mapping[str, Column] | None = None,
    ) -> None:
        self.text, self.items, self.outer, self.carried = text, items, outer, carried

    def resolve(self, node: exp.Column) -> Bound:
        """The column that a name means here; raises if there is none or more than one."""
        parts = [p.name for p in node.parts]
        found = self._find(node, parts)
        if found is not None:
            return found
        if self.outer is not None and self.outer.sees(node):
            found = self.outer.resolve(node)
            return found if self.carried is None else renamed(found, self.carried)
        raise self._unknown(node, parts)

    def finds(self, node: exp.Column) -> bool:
        """True when a FROM item explains the name."""
        return self._find(node, [p.name for p in node.parts]) is not None

    def sees(self, node: exp.Column) -> bool:
        """True when the name means something here or further out."""
        return self.finds(node) or (self.outer is not None and self.outer.sees(node))

    def is_correlated(self, node: exp.Column) -> bool:
        """True when the name means nothing here, but a column of the outer plan."""
        return self.carried is None and self.outer is not None and not self.finds(node) and self.outer.sees(node)

    def star(self, qualifier: exp.Identifier | None) -> list[Column]:
        """The columns of ``*`` or ``s.*``."""
        if qualifier is None:
            return [c for item in self.items for c in item.columns if not c.hidden]
        items = self._items(qualifier.name)
        if not items:
            raise self._unknown_item(qualifier)
        return [c for item in items for c in item.columns if c.copy_of is None and not c.stamp]

    def copies(self, origin: exp.Expr) -> tuple[Bound, ...]:
        """The copies of outer columns in the plan."""
        return tuple(Bound.of_column(c, origin) for c in (self.carried or {}).values())

    # -- looking up -------------------------------------------------------------------------------------------------

    def _find(self, node: exp.Column, parts: list[str]) -> Bound | None:
        qualified = self._candidates(parts[1], parts[0]) if len(parts) > 1 else []
        found, rest = (qualified, parts[2:]) if qualified else (self._candidates(parts[0], None), parts[1:])
        if not found:
            return None
        if rest and not qualified and not pa.types.is_struct(found[0].type) and self._names_outer_item(parts[0]):
            return None
        if len({c.internal for c in found}) > 1:
            raise self._ambiguous(node, parts)
        bound = Bound.of_column(found[0], node)
        for field in rest:
            bound = struct_field(self.text, bound, field)
        return bound

    def _candidates(self, name: str, qualifier: str | None) -> list[Column]:
        items = self.items if qualifier is None else self._items(qualifier)
        folded = name.casefold()
        if qualifier is not None and not items:
            inner = [c for item in self.items if item.alias is None for c in item.columns]
            return [c for c in inner if c.name.casefold() == folded and _same(c.qualifier, qualifier)]
        columns = [c for item in items for c in item.columns if not (c.hidden and qualifier is None)]
        named = [c for c in columns if c.name.casefold() == folded]
        return named or [c for c in columns if _same(c.argument, name)]

    def _items(self, qualifier: str) -> list[Item]:
        """By alias, or the stream's name if there is none; in the end by a stream's name in spite of its alias.

        The last is not SQL, but Krämer's Q3 is printed so; it must not hide what an outer query calls by that name.
        """
        named = [i for i in self.items if _same(i.label, qualifier)]
        if named or self._names_outer_item(qualifier):
            return named
        return [i for i in self.items if _same(i.stream, qualifier)]

    def _names_outer_item(self, name: str) -> bool:
        """Then ``name.x`` is a column of that, not a field of a column that happens to have the same name."""
        return self.outer is not None and (bool(self.outer._items(name)) or self.outer._names_outer_item(name))

    # -- messages ---------------------------------------------------------------------------------------------------

    def _unknown(self, node: exp.Column, parts: list[str]) -> Exception:
        if len(parts) > 1 and not self._items(parts[0]):
            if self.outer is not None and self._names_outer_item(parts[0]):
                return self.outer._unknown(node, parts)
            return self._unknown_item(node.parts[0])
        items = self._items(parts[0]) if len(parts) > 1 else self.items
        name = parts[1] if len(parts) > 1 else parts[0]
        columns = list(dict.fromkeys(c.name for i in items for c in i.columns if c.name))
        where = f' in stream "{parts[0]}"' if len(parts) > 1 else ""
        return error_on(
            self.text,
            node,
            "UNKNOWN_COLUMN",
            f'column "{name}" does not exist{where}',
            hint=did_you_mean(name, columns, all_of_them="The columns are"),
        )

    def _unknown_item(self, node: exp.Expr) -> Exception:
        labels = [i.label for i in self.items if i.label]
        return error_on(
            self.text,
            node,
            "UNKNOWN_STREAM",
            f'stream or alias "{node.name}" is not in FROM',
            hint=did_you_mean(node.name, labels, all_of_them="There are"),
        )

    def _ambiguous(self, node: exp.Column, parts: list[str]) -> Exception:
        owners = [i.label for i in self.items if i.label and any(_same(c.name, parts[-1]) for c in i.columns)]
        examples = " or ".join(f"{o}.{parts[-1]}" for o in dict.fromkeys(owners))
        return error_on(
            self.text,
            node,
            "AMBIGUOUS_COLUMN",
            f'column "{".".join(parts)}" could be any of several',
            hint=f"Say which one: {examples}."
            if examples and len(parts) == 1
            else "Give the streams different aliases.",
        )


def struct_field(text: str, bound: Bound, field: str) -> Bound:
    """``s.f``: one field of a STRUCT."""
    if not pa.types.is_struct(bound.type):
        raise error_on(
            text,
            bound.origin,
            "TYPE_MISMATCH",
            f'cannot take field "{field}" of a value of type {shown(bound.type)}',
        )
    fields = {bound.type.field(i).name.casefold(): bound.type.field(i) for i in range(bound.type.num_fields)}
    if field.casefold() not in fields:
        names = [f.name for f in fields.values()]
        hint = did_you_mean(field, names, all_of_them="The fields are")
        raise error_on(text, bound.origin, "UNKNOWN_COLUMN", f'the STRUCT has no field "{field}"', hint=hint)
    found = fields[field.casefold()]
    return Bound(nodes.Field(bound.expression, found.name, found.type), True, bound.origin)


def _same(left: str | None, right: str | None) -> bool:
    return left is not None and right is not None and left.casefold() == right.casefold()
