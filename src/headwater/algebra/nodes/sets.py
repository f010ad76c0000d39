"""Rows of several inputs of the same types: unions, differences, intersections; and duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from attrs import evolve, field, frozen

from headwater.algebra.nodes.base import (
    INPUT,
    Bare,
    Plan,
    Relational,
    Unary,
    check_same_types,
    of_all,
    positional,
    unlike_types,
)
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.row_properties import Rows, known_not_null, simplest, united
from headwater.algebra.time_properties import NO_ROW_TIMES, RowTimes, Times, swept
from headwater.expressions.nodes import Expression
from headwater.model.schema import Schema
from headwater.model.time import INFINITY


class _SameTypes(Relational):
    """Columns correspond by their places; the names are those of the first input."""

    def names(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset() for _ in self.inputs)

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(child.schema.names) for child in self.inputs)

    def grouped_by(self, port: int) -> tuple[str, ...]:
        return ()

    def problem(self) -> str | None:
        return unlike_types(self.inputs)

    def filter_may_use(self) -> frozenset[str]:
        """A filter keeps all copies of a row or none."""
        return frozenset(self.schema.names)

    def below(self, name: str, port: int) -> Expression:
        return positional(self, name, port)


@frozen(cache_hash=True)
class Union(_SameTypes):
    """∪: bag union of two inputs or more, multiplicities add (8.3)."""

    inputs: tuple[Plan, ...] = field(metadata=INPUT)

    words = ("union",)
    arity = None
    keeper = None
    hides_pieces = False

    @staticmethod
    def of(plans: Sequence[Plan]) -> Plan:
        """The union of all of them; of one alone, that one."""
        return Union(tuple(plans)) if len(plans) > 1 else plans[0]

    def with_inputs(self, *inputs: Plan) -> Plan:
        return evolve(self, inputs=inputs)

    def line(self) -> str:
        return "union"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        check_same_types(cursor, inputs)
        return cls(inputs)

    def label(self, *, timed: bool) -> str:
        return "Union"

    def _schema(self) -> Schema:
        return of_all([child.schema for child in self.inputs])

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        return united(inputs)

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        lifetimes = {i.lifetime for i in inputs}
        return swept(inputs, lifetimes.pop() if len(lifetimes) == 1 else None)

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        places = [[name in i.columns for name in c.schema.names] for i, c in zip(inputs, self.inputs, strict=True)]
        columns = zip(self.schema.names, zip(*places, strict=True), strict=True)
        lifetimes = {i.lifetime for i in inputs}
        lifetime = lifetimes.pop() if len(lifetimes) == 1 else None
        return RowTimes(frozenset(name for name, in_all in columns if all(in_all)), lifetime)

    def is_empty(self, empty: Sequence[bool]) -> bool:
        return all(empty)

    def is_stateless(self, inputs: Sequence[Times]) -> bool:
        return True


@frozen(cache_hash=True)
class Distinct(Bare, Relational, Unary):
    """δ: one copy of each row at each instant (8.5)."""

    input: Plan = field(metadata=INPUT)

    words = ("distinct",)
    keeper = "DISTINCT"

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """At the latest all columns together are a key."""
        (below,) = inputs
        return below if below.keys else simplest(below.schema, [below.whole], below.uniform, below.constants)

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        if self.begins_once(inputs):
            return swept(inputs, INFINITY, inputs[0].starts_by)
        return swept(inputs)

    def begins_once(self, inputs: Sequence[Times]) -> bool:
        return inputs[0].begin_once(self.schema.names)

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return inputs[0] if inputs[0].lifetime is not None else NO_ROW_TIMES

    def filter_may_use(self) -> frozenset[str]:
        return frozenset(self.schema.names)


class SetKind(StrEnum):
    """What becomes of the multiplicities n1, n2 of a row at an instant."""

    EXCEPT_ALL = "except all"  # max(n1 - n2, 0)               (8.6)
    EXCEPT = "except"  # 1 if n1 > 0 and n2 == 0
    STRICT_DIFFERENCE = "strict difference"  # n1 if n2 == 0    (8.14)
    INTERSECT_ALL = "intersect all"  # min(n1, n2)              (8.12)
    INTERSECT = "intersect"  # 1 if both > 0
    MAX_UNION = "max union"  # max(n1, n2)                      (8.13)


@frozen(cache_hash=True)
class SetOperation(_SameTypes):
    """Difference, intersection and max-union of two inputs of the same types."""

    left: Plan = field(metadata=INPUT)
    right: Plan = field(metadata=INPUT)
    kind: SetKind

    words = tuple(kind.value for kind in SetKind)
    arity = 2
    keeper = "a set operation"
    filter_must_not_fail = True

    @property
    def intersects(self) -> bool:
        return self.kind in (SetKind.INTERSECT, SetKind.INTERSECT_ALL)

    def line(self) -> str:
        return self.kind.value

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        check_same_types(cursor, inputs)
        left, right = inputs
        return cls(left, right, SetKind(words))

    def label(self, *, timed: bool) -> str:
        return self.kind.value.capitalize()

    def _schema(self) -> Schema:
        if self.kind is SetKind.MAX_UNION:
            return of_all([self.left.schema, self.right.schema])
        return self.left.schema

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        left, right = inputs
        if self.kind is SetKind.MAX_UNION:  # max(n1, n2) (8.13)
            both = united(inputs)
            return simplest(both.schema, [both.whole] if left.keys and right.keys else (), (), both.constants)
        keys, same, fixed, schema = set(left.keys), left.uniform, left.constants, left.schema
        if self.intersects:  # at most n1 and at most n2 copies (8.12)
            ours = dict(zip(right.schema.names, left.schema.names, strict=True))
            keys |= {frozenset(ours[c] for c in key) for key in right.keys}
            same = same.union(ours[c] for c in right.uniform)
            fixed = {**{ours[c]: value for c, value in right.constants.items()}, **fixed}
            schema = known_not_null(schema, (ours[f.name] for f in right.schema if not f.nullable))
        if self.kind in (SetKind.EXCEPT, SetKind.INTERSECT) and not keys:
            keys.add(left.whole)
        return simplest(schema, keys, same, fixed)

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        left, right = inputs
        if self.intersects:
            return Times(ends=left.ends or right.ends, accumulates=left.accumulates and right.accumulates)
        return swept(inputs if self.kind is SetKind.MAX_UNION else inputs[:1])

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return inputs[0] if inputs[0].lifetime == 1 and self.kind is not SetKind.MAX_UNION else NO_ROW_TIMES

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        return inputs[0]

    def is_empty(self, empty: Sequence[bool]) -> bool:
        if self.kind is SetKind.MAX_UNION:
            return all(empty)
        return any(empty) if self.intersects else empty[0]
