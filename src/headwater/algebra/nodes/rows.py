"""Row by row: filters and projections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from attrs import evolve, field, frozen

from headwater.algebra.nodes.base import INPUT, Plan, Relational, Unary
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
