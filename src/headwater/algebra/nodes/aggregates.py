"""Groups: aggregation, and rows on their way to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import pyarrow as pa
from attrs import field, frozen

from headwater.algebra.nodes.base import INPUT, Plan, Relational, Unary
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.plan_line import after, plain_name
from headwater.algebra.plan_values import literal
from headwater.algebra.row_properties import Rows, simplest
from headwater.algebra.time_properties import NO_ROW_TIMES, RowTimes, Times, swept
from headwater.expressions.aggregates import AGGREGATES
from headwater.expressions.aggregates import Aggregate as BuiltIn
from headwater.expressions.printing import quoted
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY
from headwater.model.types import sql_name


@frozen(cache_hash=True)
class AggregateCall:
    """One aggregate of a grouping: ``function`` applied to a column, or to rows when there is no argument."""

    function: str
    """A name of ``expressions.aggregates.AGGREGATES``, or of an aggregate of a user."""
    output: str
    type: pa.DataType
    argument: str | None = None
    """Input column; None only for COUNT(*)."""
    distinct: bool = False
    filter: str | None = None
    """A BOOLEAN input column: only rows where it is true take part (FILTER (WHERE …))."""
    parameters: tuple[object, ...] = ()
    """Constants, such as LISTAGG's separator."""

    @property
    def built_in(self) -> BuiltIn | None:
        """What is known of the function; nothing of one of a user."""
        return AGGREGATES.get(self.function)

    @property
    def is_deaf(self) -> bool:
        """Do duplicates make no difference, also without DISTINCT?"""
        return self.built_in is not None and self.built_in.deaf

    @property
    def is_extreme(self) -> bool:
        """Is it the least or the largest of the values?"""
        return self.built_in is not None and self.built_in.is_extreme

    def text(self) -> str:
        first = "*" if self.argument is None else quoted(self.argument)
        arguments = ", ".join([f"{'DISTINCT ' if self.distinct else ''}{first}", *map(literal, self.parameters)])
        condition = f" FILTER {quoted(self.filter)}" if self.filter is not None else ""
        return f"{plain_name(self.function)}({arguments}){condition} AS {quoted(self.output)} {sql_name(self.type)}"

    @classmethod
    def read(cls, cursor: Cursor, schema: Schema) -> Self:
        function = cursor.plain_name("an aggregate, such as COUNT")
        cursor.expect("(")
        distinct = cursor.accept("DISTINCT")
        argument = None if cursor.accept("*") else cursor.column(schema, "* or a column in double quotes")
        parameters = cursor.listed(cursor.constant) if cursor.accept(",") else ()
        cursor.expect(")")
        condition = cursor.column(schema) if cursor.accept("FILTER") else None
        cursor.expect("AS")
        output = cursor.name("the name of the result in double quotes")
        return cls(function, output, cursor.type(), argument, distinct, condition, parameters)

    def label(self) -> str:
        inside = f"{'DISTINCT ' if self.distinct else ''}{self.argument or '*'}"
        only = f" FILTER ({self.filter})" if self.filter else ""
        return f"{self.function}({inside}){only} AS {self.output}"


@frozen(cache_hash=True)
class Grouping(Relational, Unary):
    """One column per key and per call."""

    input: Plan = field(metadata=INPUT)
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]

    def line(self) -> str:
        calls = f": {', '.join(call.text() for call in self.calls)}" if self.calls else ""
        return f"{self.words[0]}{after('by', self.keys)}{calls}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        (below,) = inputs
        schema = below.schema
        keys = cursor.columns_after(schema, "by")
        calls = cursor.listed(lambda: AggregateCall.read(cursor, schema)) if cursor.accept(":") else ()
        return cls(below, keys, calls)

    def label(self, *, timed: bool) -> str:
        calls = ", ".join(call.label() for call in self.calls)
        groups = f" by {', '.join(self.keys)}" if self.keys else ""
        return f"{self.words[0].capitalize()}{groups}{': ' if calls else ''}{calls}"

    def _schema(self) -> Schema:
        keys = tuple(self.input.schema.field(k) for k in self.keys)
        return Schema(keys + tuple(Field(c.output, c.type) for c in self.calls))

    def names(self) -> tuple[frozenset[str], ...]:
        read = (name for call in self.calls for name in (call.argument, call.filter) if name is not None)
        return (frozenset((*self.keys, *read)),)

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        return self.names()

    def grouped_by(self, port: int) -> tuple[str, ...]:
        return self.keys


@frozen(cache_hash=True)
class Aggregate(Grouping):
    """γ with aggregation (8.15); no keys: scalar aggregation α (8.9). An empty snapshot gives no row, also for COUNT."""

    words = ("aggregate",)
    keeper = "an aggregate"

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """A row per group (8.15), at most one without keys (8.9); there are no empty groups."""
        (below,) = inputs
        fields_below = {f.name: f for f in below.schema}
        group = frozenset(self.keys)
        fields = [fields_below[name] for name in self.keys]
        for call in self.calls:
            over_values = call.argument is not None and not fields_below[call.argument].nullable and call.filter is None
            known = call.built_in is not None and (call.built_in.counts or (call.built_in.present and over_values))
            fields.append(Field(call.output, call.type, nullable=not known))
        keys = [group, *(key for key in below.keys if key <= group)]
        return simplest(Schema(tuple(fields)), keys, below.uniform & group, below.constants_among(group))

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        if self.begins_once(inputs):
            return swept(inputs, INFINITY, inputs[0].starts_by.intersection(self.keys))
        return swept(inputs)

    def begins_once(self, inputs: Sequence[Times]) -> bool:
        return inputs[0].begin_once(self.keys)

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        """All rows of a group begin and end together, so the group does not change while it is there."""
        (below,) = inputs
        if below.lifetime is None:
            return NO_ROW_TIMES
        return RowTimes(below.columns.intersection(self.keys), below.lifetime)


@frozen(cache_hash=True)
class PreAggregate(Grouping):
    """Rows on their way to an aggregation, free to be put together: others of the same keys, counts and sums (or extremes).

    Each call brings what an aggregate above it takes as its argument: COUNT a BOOLEAN that is NULL where a row does not
    count, SUM numbers of the same sum, MIN and MAX values of the same extreme. For the plan that runs only.
    """

    words = ("partial aggregate",)
    keeper = None
    hides_pieces = False

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """Other rows of the same keys."""
        (below,) = inputs
        group = frozenset(self.keys)
        return simplest(self.schema, [], below.uniform & group, below.constants_among(group))

    def is_stateless(self, inputs: Sequence[Times]) -> bool:
        return True
