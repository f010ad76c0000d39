"""Joins of two inputs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import pyarrow as pa
from attrs import evolve, field, frozen

from headwater.algebra.nodes.base import INPUT, Plan, Relational
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.plan_line import readable
from headwater.algebra.row_properties import Key, Rows, known_not_null, nullable_fields, simplest, types_of
from headwater.algebra.time_properties import RowTimes, Times
from headwater.expressions.facts import facts
from headwater.expressions.nodes import Expression
from headwater.expressions.printing import quoted
from headwater.expressions.rewrite import renamed
from headwater.expressions.text import to_text
from headwater.model.schema import Field, Schema


class JoinKind(StrEnum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


@frozen(cache_hash=True)
class Join(Relational):
    """⋈ (8.10), outer joins, ⋉ and ▷ with the left multiplicity kept.

    A pair matches when all key pairs are equal (NULL equals nothing) and the residual is true. The residual sees the left
    columns as ``"l.<name>"`` and the right ones as ``"r.<name>"``. Output columns: left then right, or left only for
    semi and anti; where names clash the binder renames before joining.
    """

    left: Plan = field(metadata=INPUT)
    right: Plan = field(metadata=INPUT)
    kind: JoinKind
    keys: tuple[tuple[str, str], ...] = ()
    residual: Expression | None = None

    words = tuple(f"{kind.value} join" for kind in JoinKind)
    arity = 2

    @property
    def keeper(self) -> str | None:
        return {JoinKind.SEMI: "a semi-join", JoinKind.ANTI: "an anti-join"}.get(self.kind, "a join")

    @property
    def pads_left(self) -> bool:
        """Are the left columns NULL where a right row has no partner?"""
        return self.kind in (JoinKind.RIGHT, JoinKind.FULL)

    @property
    def pads_right(self) -> bool:
        return self.kind in (JoinKind.LEFT, JoinKind.FULL)

    def line(self) -> str:
        keys = f" on {', '.join(f'{quoted(a)} = {quoted(b)}' for a, b in self.keys)}" if self.keys else ""
        residual = f" where {to_text(self.residual)}" if self.residual is not None else ""
        return f"{self.kind.value} join{keys}{residual}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        left, right = inputs
        ours, theirs = left.schema, right.schema
        keys = cursor.listed(lambda: _read_key(cursor, ours, theirs)) if cursor.accept("on") else ()
        residual = None
        if cursor.accept("where"):
            pair = (
                Field(f"{side}.{f.name}", f.type, f.nullable) for side, s in (("l", ours), ("r", theirs)) for f in s
            )
            residual = cursor.expression(pa.bool_(), Schema(tuple(pair)))
        return cls(left, right, JoinKind(words.split(maxsplit=1)[0]), keys, residual)

    def label(self, *, timed: bool) -> str:
        on = [f"{a} = {b}" for a, b in self.keys]
        if self.residual is not None:
            columns = {name: name[2:] for name in self.residual.columns}  # without l. and r.
            on.append(readable(renamed(self.residual, columns)))
        if not on:
            return f"{'Cross' if self.kind is JoinKind.INNER else self.kind.value.capitalize()} join"
        return f"{self.kind.value.capitalize()} join on {' AND '.join(on)}"

    def _schema(self) -> Schema:
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self.left.schema
        left, right = self.left.schema.fields, self.right.schema.fields
        if self.pads_left:
            left = nullable_fields(left)
        if self.pads_right:
            right = nullable_fields(right)
        return Schema(left + right)

    @property
    def scalars(self) -> tuple[Expression, ...]:
        return () if self.residual is None else (self.residual,)

    def names(self) -> tuple[frozenset[str], ...]:
        compared = () if self.residual is None else self.residual.columns
        sides = []
        for port, side in enumerate(("l.", "r.")):
            sides.append(frozenset(self.grouped_by(port)).union(c[2:] for c in compared if c.startswith(side)))
        return tuple(sides)

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        sides = zip(self.names(), self.inputs, strict=True)
        return tuple(names | (wanted & frozenset(side.schema.names)) for names, side in sides)

    def grouped_by(self, port: int) -> tuple[str, ...]:
        return tuple(pair[port] for pair in self.keys)

    def problem(self) -> str | None:
        ours, theirs = types_of(self.left.schema), types_of(self.right.schema)
        missing = [pair for pair in self.keys if pair[0] not in ours or pair[1] not in theirs]
        if missing:
            return f"there are no such keys: {missing}"
        types = [(ours[a], theirs[b]) for a, b in self.keys]
        return f"keys of different types: {types}" if any(a != b for a, b in types) else None

    # -- what is known of its output --------------------------------------------------------------------------------

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """Keys are equal in pairs, NULL equals nothing."""
        left, right = inputs
        if self.kind is JoinKind.ANTI:
            return left
        types, others = types_of(left.schema), types_of(right.schema)
        pairs = [(a, b) for a, b in self.keys if types.get(a) == others.get(b)]
        ours, theirs = self._matched()
        match self.kind:
            case JoinKind.SEMI:
                return Rows(known_not_null(left.schema, ours), left.keys, left.uniform, left.constants)
            case JoinKind.LEFT:
                return _padded(left, right, pairs)
            case JoinKind.RIGHT:
                padded = _padded(right, left, [(b, a) for a, b in pairs])
                return evolve(padded, schema=Schema(nullable_fields(left.schema) + right.schema.fields))
            case JoinKind.FULL:
                return _full(left, right)
        keys = _pair_keys(left, right, pairs) + _pair_keys(right, left, [(b, a) for a, b in pairs])
        schema = Schema(known_not_null(left.schema, ours).fields + known_not_null(right.schema, theirs).fields)
        return simplest(schema, keys, left.uniform | right.uniform, {**left.constants, **right.constants}, pairs)

    def _matched(self) -> tuple[set[str], set[str]]:
        """The columns of either side that are not NULL in a pair that matches."""
        ours, theirs = {a for a, _ in self.keys}, {b for _, b in self.keys}
        if self.residual is not None:
            for name in facts(self.residual).known:
                (ours if name.startswith("l.") else theirs).add(name[2:])
        return ours, theirs

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        """What two intervals share is no longer than either; a lone row is there as long as its own is."""
        left, right = inputs
        accumulates = self._accumulates(left, right)
        match self.kind:
            case JoinKind.INNER if 1 in (left.lifetime, right.lifetime):
                return Times(1, accumulates=accumulates)
            case JoinKind.INNER | JoinKind.SEMI:
                ends = left.ends or right.ends
            case JoinKind.FULL:
                ends = left.ends and right.ends
            case _:
                ends = right.ends if self.kind is JoinKind.RIGHT else left.ends
        return Times(ends=ends, accumulates=accumulates)

    def _accumulates(self, left: Times, right: Times) -> bool:
        """Pairs accumulate when one side does and the other does not end; lone rows when their side does."""
        if self.kind is JoinKind.ANTI:
            return left.accumulates
        if self.kind is JoinKind.SEMI:
            return left.accumulates and not right.ends
        pairs = (left.accumulates and not right.ends) or (right.accumulates and not left.ends)
        return pairs or (self.pads_right and left.accumulates) or (self.pads_left and right.accumulates)

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        """A pair begins with the later of its two: that is certain only of a row of one instant."""
        left, right = inputs
        columns: frozenset[str] = frozenset()
        if left.lifetime == 1 and not self.pads_left:
            columns |= left.columns
        if right.lifetime == 1 and self.kind in (JoinKind.INNER, JoinKind.RIGHT):
            columns |= right.columns
        inner = self.kind is JoinKind.INNER and 1 in (left.lifetime, right.lifetime)
        return RowTimes(columns, 1 if columns or inner else None)

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        match self.kind:
            case JoinKind.INNER | JoinKind.SEMI:
                return any(inputs)
            case JoinKind.FULL:
                return all(inputs)
        return inputs[1] if self.kind is JoinKind.RIGHT else inputs[0]

    def is_empty(self, empty: Sequence[bool]) -> bool:
        left, right = empty
        needed = {JoinKind.INNER: left or right, JoinKind.SEMI: left or right, JoinKind.FULL: left and right}
        return needed.get(self.kind, right if self.kind is JoinKind.RIGHT else left)

    def filter_may_use(self) -> frozenset[str]:
        """Conditions go to one side, become keys or join the residual (``filter_into_join``)."""
        return frozenset()


def _read_key(cursor: Cursor, left: Schema, right: Schema) -> tuple[str, str]:
    ours = cursor.column(left, "a column of the left input in double quotes")
    cursor.expect("=")
    return ours, cursor.column(right, "a column of the right input in double quotes")


def _pair_keys(left: Rows, right: Rows, pairs: Sequence[tuple[str, str]]) -> list[Key]:
    """Keys of the matching pairs: a key of either side, less what is equal to a column of the left one.

    Where the right side has a key among the columns that are compared, nothing is left of it: each left row has one
    partner at most.
    """
    partners = {b for _, b in pairs}
    unique = any(key <= partners for key in right.keys)
    keys = list(left.keys) if unique else []
    for ours in left.keys:
        equal = {b for a, b in pairs if a in ours}
        keys += [ours | (theirs - equal) for theirs in right.keys]
    return keys


def _padded(kept: Rows, other: Rows, pairs: Sequence[tuple[str, str]]) -> Rows:
    """A left outer join: every left row is in the answer, with its partners or with NULLs.

    The keys of pairs hold: rows of different left rows differ in the left key, and a row with NULLs is alone.
    """
    schema = Schema(kept.schema.fields + nullable_fields(other.schema))
    return simplest(schema, _pair_keys(kept, other, pairs), kept.uniform, kept.constants)


def _full(left: Rows, right: Rows) -> Rows:
    """Both sides padded: a lone left row and a lone right row differ only by a key column that is never NULL itself."""
    never = {f.name for rows in (left, right) for f in rows.schema if not f.nullable}
    keys = [a | b for a in left.keys for b in right.keys if (a | b) & never]
    return simplest(Schema(nullable_fields(left.schema) + nullable_fields(right.schema)), keys)
