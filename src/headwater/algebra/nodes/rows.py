"""Row by row: filters, projections, and rows for the items of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from attrs import evolve, field, frozen

from headwater.algebra.nodes.base import INPUT, Plan, Relational, Unary, with_fields
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.plan_line import readable
from headwater.algebra.row_properties import Rows, is_exact, known_not_null, simplest, types_of
from headwater.algebra.time_properties import RowTimes, Times
from headwater.expressions.facts import Facts, equal_pairs, facts, fixed_columns, is_never_null
from headwater.expressions.nodes import Expression
from headwater.expressions.printing import quoted
from headwater.expressions.rewrite import column, is_constant, plain_column
from headwater.expressions.text import to_text
from headwater.model.schema import Field, Schema
from headwater.model.types import sql_name

_NO_FACTS = Facts()


class _RowByRow(Relational, Unary):
    """Each row by itself: intervals are as they are, and so are pieces."""

    keeper = None
    hides_pieces = False

    def is_stateless(self, inputs: Sequence[Times]) -> bool:
        return True


@frozen(cache_hash=True)
class Filter(_RowByRow):
    """σ: keep the rows where the predicate is true (8.1)."""

    input: Plan = field(metadata=INPUT)
    predicate: Expression

    words = ("filter",)

    def line(self) -> str:
        return f"filter {to_text(self.predicate)}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        (below,) = inputs
        return cls(below, cursor.expression(pa.bool_(), below.schema))

    def label(self, *, timed: bool) -> str:
        return f"Filter {readable(self.predicate)}"

    @property
    def scalars(self) -> tuple[Expression, ...]:
        return (self.predicate,)

    def names(self) -> tuple[frozenset[str], ...]:
        return (frozenset(self.predicate.columns),)

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (wanted | frozenset(self.predicate.columns),)

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """A part of the rows (8.1), of which the predicate says more."""
        (below,) = inputs
        implied = facts(self.predicate)
        if implied == _NO_FACTS:
            return below
        types = types_of(below.schema)
        fixed = {**below.constants, **{name: to_text(c) for name, c in fixed_columns(implied, types).items()}}
        schema = known_not_null(below.schema, implied.known)
        return simplest(schema, below.keys, below.uniform, fixed, equal_pairs(implied, types))

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return inputs[0]

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return inputs[0]

    def filter_may_use(self) -> frozenset[str]:
        """Two filters are one (``merge_filters``)."""
        return frozenset()


@frozen(cache_hash=True)
class Project(_RowByRow):
    """μ: one output column per expression; validity untouched (8.2)."""

    input: Plan = field(metadata=INPUT)
    expressions: tuple[tuple[str, Expression], ...]

    words = ("project",)

    def line(self) -> str:
        below = types_of(self.input.schema)
        return f"project {', '.join(_output_text(name, s, below) for name, s in self.expressions)}".rstrip()

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        (below,) = inputs
        if cursor.at == cursor.end:
            return cls(below, ())
        return cls(below, cursor.listed(lambda: _read_output(cursor, below.schema)))

    def label(self, *, timed: bool) -> str:
        plain = ((name, plain_column(s) == name, s) for name, s in self.expressions)
        return f"Project {', '.join(name if is_name else f'{readable(s)} AS {name}' for name, is_name, s in plain)}"

    def _schema(self) -> Schema:
        return Schema(tuple(Field(name, scalar.type) for name, scalar in self.expressions))

    @property
    def scalars(self) -> tuple[Expression, ...]:
        return tuple(scalar for _, scalar in self.expressions)

    def names(self) -> tuple[frozenset[str], ...]:
        return (frozenset(c for _, scalar in self.expressions for c in scalar.columns),)

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        return self.names()

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """One row for each row (8.2): a key survives if all its columns do."""
        (below,) = inputs
        fields_below = {f.name: f for f in below.schema}
        names: dict[str, str] = {}
        equal: list[tuple[str, str]] = []
        fixed: dict[str, str] = {}
        same: set[str] = set()
        fields = []
        for name, scalar in self.expressions:
            plain = plain_column(scalar)
            if plain is not None and plain in fields_below and fields_below[plain].type == scalar.type:
                fields.append(Field(name, scalar.type, fields_below[plain].nullable))
                if names.setdefault(plain, name) != name:
                    equal.append((names[plain], name))
                if plain in below.uniform:
                    same.add(name)
                if plain in below.constants:
                    fixed[name] = below.constants[plain]
                continue
            fields.append(Field(name, scalar.type, not is_never_null(scalar)))
            if scalar.functions:
                continue
            if is_constant(scalar):
                fixed[name] = to_text(scalar)
            elif all(c in below.uniform and is_exact(fields_below[c].type) for c in scalar.columns):
                same.add(name)
        keys = [frozenset(names[c] for c in key) for key in below.keys if names.keys() >= key]
        return simplest(Schema(tuple(fields)), keys, same, fixed, equal)

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        (below,) = inputs
        return evolve(below, starts_by=self._keeping(below.starts_by))

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        (below,) = inputs
        return RowTimes(self._keeping(below.columns), below.lifetime)

    def _keeping(self, columns: frozenset[str]) -> frozenset[str]:
        """The names that some columns below have here."""
        if not columns:
            return columns
        return frozenset(name for name, scalar in self.expressions if plain_column(scalar) in columns)

    def filter_may_use(self) -> frozenset[str]:
        """Not the result of a user's function, which would run twice."""
        return frozenset(name for name, scalar in self.expressions if not scalar.functions)

    def below(self, name: str, port: int) -> Expression:
        return dict(self.expressions)[name]


def _output_text(name: str, scalar: Expression, below: Mapping[str, object]) -> str:
    plain = plain_column(scalar)
    if plain is None or below.get(plain) != scalar.type:
        return f"{quoted(name)} {sql_name(scalar.type)} = {to_text(scalar)}"
    return quoted(name) if plain == name else f"{quoted(name)} = {quoted(plain)}"


def _read_output(cursor: Cursor, schema: Schema) -> tuple[str, Expression]:
    """``"z"``, ``"w" = "x"`` or ``"y" INT = "x" + 1``."""
    start = cursor.at
    name = cursor.name("the name of a column in double quotes")
    if cursor.at == cursor.end or cursor.accept(","):
        cursor.at = start
        return name, column(schema.field(cursor.column(schema)))
    type_ = None if cursor.accept("=") else cursor.type()
    if type_ is not None:
        cursor.expect("=")
        return name, cursor.expression(type_, schema)
    start = cursor.at
    plain = plain_column(cursor.expression(None, schema))
    if plain is None:
        cursor.at = start
        hint = f"Anything else needs a type: {quoted(name)} BIGINT = …"
        raise cursor.expected("a column of the input in double quotes", hint=hint)
    return name, column(schema.field(plain))


@frozen(cache_hash=True)
class Unnest(_RowByRow):
    """υ: a copy of a row for each item of one of its arrays, with the item in place of the array.

    Not in Krämer: the lateral join of SQL:1999 with the rows that an array is made of, snapshot by snapshot.
    """

    input: Plan = field(metadata=INPUT)
    array: str
    item: str
    place: str | None = None
    """The column that says which item it is, from 1 on."""
    outer: bool = False
    """Does a row without items stay, once, with NULL?"""

    words = ("unnest",)
    filter_must_not_fail = True

    def line(self) -> str:
        place = "" if self.place is None else f" place {quoted(self.place)}"
        return f"unnest {quoted(self.array)} as {quoted(self.item)}{place}{' outer' if self.outer else ''}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        (below,) = inputs
        array = cursor.column(below.schema)
        cursor.expect("as")
        item = cursor.name("the name of the item in double quotes")
        place = cursor.name("the name of the place in double quotes") if cursor.accept("place") else None
        return cls(below, array, item, place, cursor.accept("outer"))

    def label(self, *, timed: bool) -> str:
        place = "" if self.place is None else f", {self.place}"
        return f"Unnest {self.array} AS {self.item}{place}{', or NULL if empty' if self.outer else ''}"

    def _schema(self) -> Schema:
        return self._unnested(self.input.schema)

    def _unnested(self, below: Schema) -> Schema:
        kept = Schema(tuple(f for f in below if f.name != self.array))
        made = [Field(self.item, below.field(self.array).type.value_type)]
        if self.place is not None:
            made.append(Field(self.place, pa.int64(), self.outer))
        return with_fields(kept, *made)

    def problem(self) -> str | None:
        array = self.input.schema.field(self.array)
        return None if pa.types.is_list(array.type) else f'"{self.array}" is no ARRAY, but {sql_name(array.type)}'

    def names(self) -> tuple[frozenset[str], ...]:
        return (frozenset({self.array}),)

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        return ((wanted & self.filter_may_use()) | {self.array},)

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """Of copies of a row only the place tells one from another."""
        (below,) = inputs
        keys = [key | {self.place} for key in below.keys if self.array not in key] if self.place is not None else []
        fixed = {name: value for name, value in below.constants.items() if name != self.array}
        return simplest(self._unnested(below.schema), keys, below.uniform - {self.array}, fixed)

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return inputs[0]

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return inputs[0]

    def filter_may_use(self) -> frozenset[str]:
        """The columns that its input has too: all copies of a row go, or stay."""
        return frozenset(self.input.schema.names) - {self.array}
