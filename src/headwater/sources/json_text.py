"""Lines of JSON objects to columns: fast where all is well; where something is not, exactly the lines are found."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
from attrs import evolve, field, frozen
from pyarrow import json

from headwater.expressions.connection import connection
from headwater.model.schema import Field, Schema
from headwater.model.types import sql_name, string_literal
from headwater.sources.columns import coalesce, nulls, valid, where
from headwater.sources.conform import Conformed, conform, epoch_note, first_reasons
from headwater.sources.csv_text import ParsedText
from headwater.sources.json_keys import Spellings, as_declared, other_spellings, spelled_fields
from headwater.sources.text_lines import TextLines, count_lines, is_utf8

_ROW = re.compile(r" in row \d+$")
_NOT_JSON = "CASE WHEN NOT ok AND NOT regexp_matches(x, '(?i)nan|inf') THEN 'this is not JSON'"
_NO_OBJECT = "WHEN top <> 'OBJECT' THEN 'this is no JSON object'"


@frozen
class JsonText:
    """How lines are read: a key that is not there is NULL, keys that are not declared are left out.

    A key is a column's if it is spelled so, or else in no other way than in upper and lower case, as in every format.

    TIMESTAMP and DATE are strings in ISO 8601, BINARY is base64, DECIMAL a number or a string.
    """

    schema: Schema
    formats: tuple[str, ...] = ()
    """strptime patterns for TIMESTAMP and DATE, beside ISO 8601."""
    exact: frozenset[str] = frozenset()
    """Columns whose keys are not looked for in other spellings."""
    spellings: Spellings = field(factory=dict, eq=False)
    """How else keys are spelled in the lines of the moment."""

    def parse(self, block: pa.Buffer) -> ParsedText:
        if count_lines(block) == 0:
            return ParsedText(pa.RecordBatch.from_pylist([], schema=pa.schema(self._read_fields())))
        batch = self._typed(block) if is_utf8(block) else None
        # A key that seems to be missing may be there in another spelling.
        sought = self._looked_for() if not isinstance(batch, pa.RecordBatch) else self._with_nulls(batch)
        spellings = other_spellings(block, [name for f in sought for name in _names(f)])
        spelled = evolve(self, spellings=spellings)
        if spellings:
            batch = spelled._typed(block)
        if isinstance(batch, pa.RecordBatch) and batch.num_rows == count_lines(block):
            rows, reasons = spelled._conformed(batch)
            if reasons is None:
                return ParsedText(rows)
        return spelled._judged(block)

    def _looked_for(self) -> list[pa.Field]:
        return [pa.field(f.name, f.type) for f in self.schema if f.name not in self.exact]

    def _with_nulls(self, batch: pa.RecordBatch) -> list[pa.Field]:
        """The columns of which some row has no value."""
        return [f for f in self._looked_for() if _has_nulls(batch.column(f.name))]

    def _conformed(self, batch: pa.RecordBatch) -> Conformed:
        """What the reader has found as the columns that are declared."""
        unclear = None
        if self.spellings:
            batch, unclear = as_declared(batch, self._read_fields(), self.spellings)
        rows, reasons = conform(batch, self._nullable(), formats=self.formats, base64=True)
        if unclear is not None and unclear.any():
            reasons = first_reasons(
                reasons, unclear, "several keys may be the one of a column: they differ only in case"
            )
        return Conformed(rows, reasons)

    def _judged(self, block: pa.Buffer) -> ParsedText:
        lines = TextLines(block)
        reasons = first_reasons(None, lines.not_utf8(), "the line is not text in UTF-8")
        reasons = coalesce(reasons, self._surely_wrong(lines, reasons))
        left = np.flatnonzero(nulls(reasons))
        kept = TextLines(lines.without(valid(reasons)))
        found = _Found(len(kept))
        if len(left):
            self._search(kept, 0, len(kept), found)
        batches = [b for b in found.batches if b.num_rows] or [
            pa.RecordBatch.from_pylist([], schema=self._read_schema())
        ]
        batch = pa.Table.from_batches(batches).combine_chunks().to_batches()[:1]
        rows = batch[0] if batch else batches[0]
        good = left[found.good]
        conformed, wrong = self._conformed(rows)
        said = np.full(len(lines), None, object)
        said[left] = found.reasons
        if wrong is not None:
            said[good] = wrong.to_numpy(zero_copy_only=False)
            conformed = conformed.filter(wrong.is_null())
        reasons = coalesce(reasons, pa.array(said, pa.string()))
        bad = valid(reasons)
        return ParsedText(conformed, lines.line[bad], reasons.drop_null(), lines.texts(bad))

    def _surely_wrong(self, lines: TextLines, reasons: pa.Array) -> pa.Array:
        """What can be said of all lines at once: no JSON at all, or values of another kind in plain columns."""
        texts = lines.texts(np.ones(len(lines), np.bool_))
        texts = where(nulls(reasons), texts, "{}")
        plain = [f for f in self.schema if _KINDS.get(_kind(f.type))]
        paths = ", ".join(map(_path, plain)) or "'$'"
        checks = " ".join(_wrong_kind(f, i) for i, f in enumerate(plain, 1))
        valid_lines = connection().from_arrow(pa.table({"x": texts})).project("x, json_valid(x) AS ok")
        # All columns in one call: each call reads the text once more.
        kinds = valid_lines.project(
            f"x, ok, CASE WHEN ok THEN json_type(x) END AS top, CASE WHEN ok THEN json_type(x, [{paths}]) END AS kinds"
        )
        found = kinds.project(f"{_NOT_JSON} {_NO_OBJECT} {checks} END AS r").to_arrow_table()
        return found.column("r").combine_chunks().cast(pa.string())

    def _search(self, lines: TextLines, low: int, high: int, found: _Found) -> None:
        """Halve what cannot be read until only single lines are left: as many steps as there are bad lines, and a few."""
        start, end = int(lines.start[low]), int(lines.end[high - 1])
        batch = self._typed(pa.py_buffer(lines.data[start:end]))
        if isinstance(batch, pa.RecordBatch) and batch.num_rows == high - low:
            found.take(batch, low, high)
        elif high - low == 1:
            more = "there is more than one JSON object in the line"
            found.reasons[low] = more if isinstance(batch, pa.RecordBatch) else batch
        else:
            middle = (low + high) // 2
            self._search(lines, low, middle, found)
            self._search(lines, middle, high, found)

    def _typed(self, block: pa.Buffer) -> pa.RecordBatch | str:
        """All lines at once, or what is wrong with one of them."""
        try:
            table = json.read_json(
                block,
                read_options=json.ReadOptions(use_threads=False, block_size=block.size + 1),
                parse_options=json.ParseOptions(
                    explicit_schema=self._read_schema(), unexpected_field_behavior="ignore", newlines_in_values=False
                ),
            )
            for column in table.columns:
                if pa.types.is_decimal(column.type):
                    column.validate(full=True)
        except (pa.ArrowException, UnicodeDecodeError) as problem:
            said = _ROW.sub("", str(problem).partition("\n")[0].removeprefix("JSON parse error: "))
            return f"the line is not what is declared: {said}"
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)

    def _read_schema(self) -> pa.Schema:
        """What Arrow looks for."""
        return pa.schema(spelled_fields(self._read_fields(), self.spellings))

    def _read_fields(self) -> list[pa.Field]:
        return [pa.field(f.name, _read_type(f.type, texts=bool(self.formats))) for f in self.schema]

    def _nullable(self) -> Schema:
        """NOT NULL is the intake's concern."""
        return Schema(tuple(Field(f.name, f.type) for f in self.schema))


class _Found:
    """What the search has found so far."""

    def __init__(self, rows: int) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.good = np.zeros(rows, np.bool_)
        self.reasons = np.full(rows, None, object)

    def take(self, batch: pa.RecordBatch, low: int, high: int) -> None:
        self.batches.append(batch)
        self.good[low:high] = True


def _read_type(type_: pa.DataType, *, texts: bool) -> pa.DataType:
    """What Arrow reads it as: dates and bytes as strings; timestamps too (``texts``), if they have formats of their own."""
    if pa.types.is_date32(type_) or pa.types.is_binary(type_) or (texts and pa.types.is_timestamp(type_)):
        return pa.string()
    if pa.types.is_list(type_):
        return pa.list_(_read_type(type_.value_type, texts=texts))
    if pa.types.is_struct(type_):
        return pa.struct([(f.name, _read_type(f.type, texts=texts)) for f in _fields(type_)])
    return type_


def _fields(type_: pa.DataType) -> list[pa.Field]:
    return [type_.field(i) for i in range(type_.num_fields)]


def _names(field: pa.Field) -> list[str]:
    """Its name, and those inside of it."""
    type_ = field.type
    while pa.types.is_list(type_):
        type_ = type_.value_type
    inside = _fields(type_) if pa.types.is_struct(type_) else []
    return [field.name, *(name for f in inside for name in _names(f))]


def _has_nulls(column: pa.Array) -> bool:
    if column.null_count or not pa.types.is_nested(column.type):
        return bool(column.null_count)
    return any(map(_has_nulls, column.flatten() if pa.types.is_struct(column.type) else [column.flatten()]))


_KINDS = {
    "whole": ("BIGINT", "UBIGINT"),
    "number": ("BIGINT", "UBIGINT", "DOUBLE"),
    "boolean": ("BOOLEAN",),
    "text": ("VARCHAR",),
}


def _kind(type_: pa.DataType) -> str:
    if pa.types.is_integer(type_):
        return "whole"
    if pa.types.is_floating(type_):
        return "number"
    if pa.types.is_boolean(type_):
        return "boolean"
    return "" if pa.types.is_nested(type_) or pa.types.is_decimal(type_) else "text"


def _path(field: Field) -> str:
    """Where its value is, as a literal: a JSON pointer, in which a name is only a name, whatever stands in it."""
    name = field.name.replace("~", "~0").replace("/", "~1").replace("'", "''")
    return f"'/{name}'"


def _wrong_kind(field: Field, place: int) -> str:
    """A WHEN that says what is wrong with a value of another kind. Numbers beyond 64 bits are left to the reader."""
    allowed = ", ".join(f"'{kind}'" for kind in (*_KINDS[_kind(field.type)], "NULL"))
    start = f'column "{field.name}" is {sql_name(field.type)}, which '.replace("'", "''")
    shown = f"left(CAST(json_extract(x, {_path(field)}) AS VARCHAR), 100)"
    note = string_literal(epoch_note(field))
    numbers = ", ".join(f"'{kind}'" for kind in _KINDS["number"])
    noted = f"CASE WHEN kinds[{place}] IN ({numbers}) THEN {note} ELSE '' END"
    return f"WHEN kinds[{place}] NOT IN ({allowed}) THEN concat('{start}', {shown}, ' is not', {noted})"
