"""Columns that are computed of those that rows bring, a batch at once. What cannot be computed makes its row a bad one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
from attrs import field, frozen

from headwater.errors import HeadwaterError
from headwater.expressions.connection import attempting
from headwater.expressions.duckdb import to_duckdb
from headwater.expressions.evaluation import Expressions
from headwater.expressions.nodes import Expression
from headwater.expressions.printing import quoted
from headwater.expressions.text import to_sql
from headwater.model.schema import Schema
from headwater.sources.columns import joined, shortened
from headwater.sources.conform import Conformed, first_reasons


@frozen
class ComputedColumns:
    """Expressions over the columns that rows bring, by the names of the columns that they make. Picklable."""

    schema: Schema
    """All columns, in order."""
    expressions: tuple[tuple[str, Expression], ...]
    _planned: Expressions = field(eq=False, repr=False)

    @classmethod
    def of(cls, schema: Schema, expressions: Sequence[tuple[str, Expression]]) -> ComputedColumns:
        names = {name for name, _ in expressions}
        brought = Schema(tuple(f for f in schema if f.name not in names))
        types = [schema.field(name).type for name, _ in expressions]
        planned = Expressions(brought, [e for _, e in expressions], types)
        return cls(schema, tuple(expressions), planned)

    @property
    def brought(self) -> Schema:
        """The columns that rows bring."""
        return self._planned.schema

    @property
    def names(self) -> frozenset[str]:
        """The columns that are computed."""
        return frozenset(name for name, _ in self.expressions)

    @property
    def reads(self) -> frozenset[str]:
        """The columns that they are computed of."""
        return frozenset(column for _, expression in self.expressions for column in expression.columns)

    def without(self, columns: Collection[str]) -> ComputedColumns:
        """Where these columns are not read, of which nothing is computed."""
        return self.of(Schema(tuple(f for f in self.schema if f.name not in columns)), self.expressions)

    def added(self, rows: pa.RecordBatch, reasons: pa.Array | None) -> Conformed:
        """All columns of rows that have those that are brought, and what is wrong with rows, as far as it was known too."""
        try:
            made = self._planned.evaluate(rows.columns, rows.num_rows)
        except HeadwaterError:
            made, reasons = self._judged(rows, reasons)
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        columns |= dict(zip((name for name, _ in self.expressions), made, strict=True))
        arrow = pa.schema([pa.field(f.name, f.type) for f in self.schema])
        return Conformed(pa.RecordBatch.from_arrays([columns[f.name] for f in self.schema], schema=arrow), reasons)

    def _judged(self, rows: pa.RecordBatch, reasons: pa.Array | None) -> tuple[list[pa.Array], pa.Array | None]:
        """Row by row: NULL where an expression fails, which TRY tells from one that is NULL."""
        relation = attempting().from_arrow(pa.Table.from_batches([rows]))
        made = []
        for name, expression in self.expressions:
            text, type_ = to_duckdb(expression), self.schema.field(name).type
            of = ", ".join(f"CAST({quoted(c)} AS VARCHAR)" for c in expression.columns) or "''"
            found = relation.project(
                f"TRY({text}) AS v, TRY(({text}) IS NULL) IS NULL AS failed, concat_ws(', ', {of}) AS shown"
            ).to_arrow_table()
            values = found.column("v").combine_chunks()
            made.append(values if values.type == type_ else values.cast(type_))
            failed = found.column("failed").combine_chunks().to_numpy(zero_copy_only=False)
            if failed.any():
                start = f'column "{name}" cannot be computed: {to_sql(expression)} of '
                shown = shortened(found.column("shown").combine_chunks().cast(pa.string()))
                reasons = first_reasons(reasons, failed, joined(start, shown))
        return made, reasons

    def note(self, name: str) -> str:
        """What a message says of a column: how it is computed, if it is."""
        return next((f" ({to_sql(expression)})" for n, expression in self.expressions if n == name), "")
