"""CSV to columns: fast where all is well, and row by row judged (but never row by row read) where something is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from attrs import frozen
from pyarrow import csv

from headwater.model.arrays import Int64Array
from headwater.model.schema import Schema
from headwater.model.types import sql_name
from headwater.sources.columns import coalesce, joined, shortened, valid
from headwater.sources.conform import find_columns, first_reasons, number_notes
from headwater.sources.text_lines import TextLines, count_lines
from headwater.sources.text_values import FALSE, TRUE, parse_texts


class ParsedText(NamedTuple):
    """Good rows, and the others with their line in the block, counted from 0."""

    rows: pa.RecordBatch
    line: Int64Array | None = None
    reason: pa.Array | None = None
    raw: pa.Array | None = None


@frozen
class CsvText:
    """How lines are read. An empty value is NULL unless ``null`` says otherwise; a quoted one is never NULL.

    A line is a row, and a quote that is not closed at its end is an error; unless ``multiline``, when values in quotes may
    hold newlines.
    """

    schema: Schema
    delimiter: str = ","
    null: str = ""
    formats: tuple[str, ...] = ()
    """strptime patterns for TIMESTAMP and DATE, beside ISO 8601."""
    multiline: bool = False

    def header(self, line: pa.Buffer) -> list[str]:
        """The names in a first line."""
        if line.size == 0 or not bytes(line).strip():
            return []
        found = csv.read_csv(
            line, read_options=csv.ReadOptions(use_threads=False), parse_options=self._parsing(), convert_options=_TEXT
        )
        return [name.strip().removeprefix("\ufeff") for name in found.column_names]

    def parse(self, block: pa.Buffer, names: Sequence[str]) -> ParsedText:
        """The declared columns of lines that have these names. Raises ``UnfitError`` if one is missing."""
        places = find_columns(names, self.schema)
        rows = self._fast(block, len(names), places)
        return ParsedText(rows) if rows is not None else self._judged(block, len(names), places)

    # -- all is well -------------------------------------------------------------------------------------------------

    def _fast(self, block: pa.Buffer, width: int, places: Sequence[int]) -> pa.RecordBatch | None:
        """All rows with their types; None if anything is wrong anywhere."""
        if not count_lines(block):
            return pa.RecordBatch.from_pylist([], schema=self._arrow())
        for zone in (None, "UTC") if self._has_timestamps() else (None,):
            table = self._typed(block, width, places, zone)
            if table is not None:
                lines = count_lines(block)
                if not self.multiline and table.num_rows != lines and table.num_rows != len(TextLines(block)):
                    return None
                return _one_batch(table.cast(self._arrow()))
        return None

    def _typed(self, block: pa.Buffer, width: int, places: Sequence[int], zone: str | None) -> pa.Table | None:
        types = [pa.timestamp("us", zone) if pa.types.is_timestamp(t) else t for t in self.schema.types]
        names = [f"c{place}" for place in places]
        try:
            table = self._read(block, width, names, dict(zip(names, types, strict=True)))
            for column in table.columns:
                if pa.types.is_decimal(column.type):
                    column.validate(full=True)  # an exponent gets past the reader's own check of the precision
        except pa.ArrowException:
            return None
        return table.rename_columns(list(self.schema.names))

    def _has_timestamps(self) -> bool:
        return any(pa.types.is_timestamp(t) for t in self.schema.types)

    # -- something is wrong ------------------------------------------------------------------------------------------

    def _judged(self, block: pa.Buffer, width: int, places: Sequence[int]) -> ParsedText:
        lines = TextLines(block, multiline=self.multiline)
        reasons = pa.nulls(len(lines), pa.string())
        reasons = first_reasons(reasons, lines.not_utf8(), "the line is not text in UTF-8")
        if not self.multiline:
            reasons = first_reasons(reasons, lines.unclosed_quotes(self.delimiter), "a quote is not closed")
        broken = valid(reasons)
        left = np.flatnonzero(~broken)
        if len(left) == 0:
            return self._with_bad(lines, reasons, pa.RecordBatch.from_pylist([], schema=self._arrow()))
        texts, miscounted = self._texts(lines.without(broken), width, places)
        if miscounted:
            at = left[[row for row, _ in miscounted]]
            said = np.full(len(lines), "", object)
            said[at] = [f"there are {count} values, not {width}" for _, count in miscounted]
            wrong = np.zeros(len(lines), np.bool_)
            wrong[at] = True
            reasons = first_reasons(reasons, wrong, pa.array(said, pa.string()))
            left = np.flatnonzero(~valid(reasons))
        assert texts.num_rows == len(left), "every line is a row"
        rows, wrong_values = self._values(texts)
        good = np.ones(len(left), np.bool_)
        if wrong_values is not None:
            spread = np.full(len(lines), -1, np.int64)
            spread[left] = np.arange(len(left))
            at = pa.array(spread, mask=spread < 0)
            reasons = coalesce(reasons, wrong_values.take(at))
            good = ~valid(wrong_values)
        return self._with_bad(lines, reasons, rows.filter(pa.array(good)))

    def _texts(self, block: pa.Buffer, width: int, places: Sequence[int]) -> tuple[pa.Table, list[tuple[int, int]]]:
        """The declared columns as text, and the rows (from 0) that have another number of values, with that number."""
        miscounted: list[tuple[int, int]] = []

        def skip(row: csv.InvalidRow) -> str:
            miscounted.append((row.number - 1, row.actual_columns))
            return "skip"

        names = [f"c{place}" for place in places]
        table = self._read(block, width, names, dict.fromkeys(names, pa.string()), skip)
        return table.rename_columns(list(self.schema.names)), miscounted

    def _values(self, texts: pa.Table) -> tuple[pa.RecordBatch, pa.Array | None]:
        columns, reasons = [], None
        for field in self.schema:
            text = texts.column(field.name).combine_chunks()
            values, failed = parse_texts(text, field.type, formats=self.formats)
            columns.append(values)
            if failed.any():
                start = f'column "{field.name}" is {sql_name(field.type)}, which "'
                reasons = first_reasons(
                    reasons, failed, joined(start, shortened(text), '" is not', number_notes(field, text))
                )
        return pa.RecordBatch.from_arrays(columns, schema=self._arrow()), reasons

    def _with_bad(self, lines: TextLines, reasons: pa.Array, rows: pa.RecordBatch) -> ParsedText:
        wrong = valid(reasons)
        return ParsedText(rows, lines.line[wrong], reasons.drop_null(), lines.texts(wrong))

    # -- pyarrow -----------------------------------------------------------------------------------------------------

    def _read(
        self,
        block: pa.Buffer,
        width: int,
        names: list[str],
        types: dict[str, pa.DataType],
        skip: object = None,
    ) -> pa.Table:
        reading = csv.ReadOptions(
            use_threads=False, block_size=block.size + 1, column_names=[f"c{i}" for i in range(width)]
        )
        converting = csv.ConvertOptions(
            column_types=types,
            include_columns=names,
            null_values=[self.null],
            true_values=list(TRUE),
            false_values=list(FALSE),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            timestamp_parsers=[csv.ISO8601, *self.formats],
        )
        return csv.read_csv(block, read_options=reading, parse_options=self._parsing(skip), convert_options=converting)

    def _parsing(self, skip: object = None) -> csv.ParseOptions:
        return csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=self.multiline, invalid_row_handler=skip)

    def _arrow(self) -> pa.Schema:
        return pa.schema([pa.field(f.name, f.type) for f in self.schema])


_TEXT = csv.ConvertOptions(strings_can_be_null=False)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
