"""The functions that may stand after SOURCE, and the sources they make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from attrs import evolve

from headwater.errors import InputError
from headwater.language import arguments as kinds
from headwater.language.arguments import Arguments, Parameter
from headwater.language.catalog import Stream
from headwater.language.text import did_you_mean
from headwater.model.schema import Schema
from headwater.model.types import sql_name
from headwater.sources.base import Source
from headwater.sources.csv_files import CsvFormat
from headwater.sources.file_formats import FileFormat
from headwater.sources.file_names import absolute, exists, folder_of, is_file
from headwater.sources.files import FileSource
from headwater.sources.json_files import JsonFormat
from headwater.sources.memory import MemorySource, PushedSource
from headwater.sources.nexmark import NexmarkSource
from headwater.sources.nexmark_generator import NexmarkGenerator
from headwater.sources.parquet_files import ParquetFormat
from headwater.sources.rate import RATE_SCHEMA, RateSource
from headwater.sources.socket import SocketSource
from headwater.sources.text_values import time_formats

Make = Callable[[Stream, Arguments, Path], Source]


def make_source(stream: Stream, *, base_folder: Path) -> Source:
    """The source that a stream declares; relative paths are from the base folder, that of the script.

    Raises
    ------
    InputError
        With the name of the stream and the function, for a function, option or argument that cannot be, or a folder that
        is not there.
    """
    connector = stream.source
    if connector is None:
        raise InputError(
            "NO_SOURCE",
            f'stream "{stream.name}" has no source',
            hint="Declare one: SOURCE parquet('folder'). Or register a DataFrame under its name.",
        )
    given = Arguments(f'source {connector.name} of stream "{stream.name}"', connector)
    make = _FUNCTIONS.get(connector.name.casefold())
    if make is None:
        hint = did_you_mean(connector.name.casefold(), _FUNCTIONS, all_of_them="There are")
        message = f'stream "{stream.name}": there is no source function "{connector.name}"'
        raise InputError("UNKNOWN_SOURCE", message, hint=hint)
    return make(stream, given, base_folder)


_MALFORMED = Parameter("malformed", kinds.one_of("fail", "divert"), default="fail")
_ROWS_PER_TICK = Parameter("rows_per_tick", kinds.count, default=5_000_000)
_PATH = Parameter("path", kinds.text, required=True, place=0)
_FORMATS = Parameter("timestamp_format", time_formats, default=())
_CHANGES = (
    Parameter("changes", kinds.one_of("headwater", "debezium")),
    Parameter("ordered", kinds.flag),
    Parameter("checked", kinds.flag),
    Parameter("counted", kinds.flag),
    Parameter("instants", kinds.one_of("timestamps", "numbers")),
)
"""What these say is part of the stream's declaration (``language/change_binding.py``)."""
_FILES = (
    _PATH,
    _MALFORMED,
    *_CHANGES,
    _ROWS_PER_TICK,
    Parameter("follow", kinds.flag),
    Parameter("max_age", kinds.duration),
)


def _parquet(stream: Stream, given: Arguments, base: Path) -> Source:
    return _files(stream, given, base, given.bound(_FILES), ParquetFormat())


def _csv(stream: Stream, given: Arguments, base: Path) -> Source:
    _no_nested(stream, given)
    if stream.has_events:
        raise given.error("WRONG_ARGUMENT", "CSV cannot hold change events, which are nested", "Use json or parquet.")
    values = given.bound(
        (
            *_FILES,
            _FORMATS,
            Parameter("header", kinds.flag, default=True),
            Parameter("delimiter", kinds.one_character, default=","),
            Parameter("null", kinds.text, default=""),
            Parameter("multiline", kinds.flag, default=False),
        )
    )
    format_ = CsvFormat(
        values["header"], values["delimiter"], values["null"], values["timestamp_format"], values["multiline"]
    )
    return _files(stream, given, base, values, format_)


def _json(stream: Stream, given: Arguments, base: Path) -> Source:
    values = given.bound((*_FILES, _FORMATS))
    return _files(stream, given, base, values, JsonFormat(values["timestamp_format"]))


def _files(stream: Stream, given: Arguments, base: Path, values: dict[str, Any], format_: FileFormat) -> Source:
    path = absolute(values["path"], base)
    if not exists(path):
        what = "the folder" if "." not in Path(path).name or path != folder_of(path) else "the file or folder"
        hint = "Make it; files may come later." if what == "the folder" else "Make the file, or name its folder."
        raise given.error("NO_SUCH_FOLDER", f'{what} "{folder_of(path)}" does not exist', hint)
    follow = values["follow"] if values["follow"] is not None else not is_file(path)
    answers = "timestamps" if stream.has_unit else "numbers"
    columns = (evolve(f, nullable=f.nullable and f.name not in stream.clocked) for f in stream.brought)
    return FileSource(
        path,
        Schema(tuple(columns)),
        format_,
        malformed=values["malformed"],
        rows_per_tick=values["rows_per_tick"],
        follow=follow,
        max_age=values["max_age"],
        optional=stream.optional,
        answers=answers if stream.changes is not None and not stream.has_events else None,
    )


def _nexmark(stream: Stream, given: Arguments, base: Path) -> Source:
    values = given.bound(
        (
            Parameter("kind", kinds.one_of("person", "auction", "bid"), required=True, place=0),
            Parameter("rate", kinds.rate, default=10_000),
            Parameter("events", kinds.count),
            Parameter("seed", kinds.whole, default=1),
            Parameter("disorder", kinds.duration, default=0),
            Parameter("start", kinds.moment, default=kinds.moment("2026-01-01 00:00:00")),
            Parameter("paced", kinds.flag, default=True),
            Parameter("since", kinds.moment),
            _ROWS_PER_TICK,
        )
    )
    generator = NexmarkGenerator(
        values["kind"], values["rate"], values["seed"], values["disorder"], values["start"], values["events"]
    )
    try:
        pace = {name: values[name] for name in ("paced", "since", "rows_per_tick")}
        return NexmarkSource(generator, stream.brought, **pace)
    except InputError as problem:
        raise given.error(problem.code, problem.message, problem.hint, detail=problem.detail) from None


def _rate(stream: Stream, given: Arguments, base: Path) -> Source:
    values = given.bound(
        (Parameter("rows_per_second", kinds.rate, default=1, place=0), Parameter("rows", kinds.count), _ROWS_PER_TICK)
    )
    if stream.brought.types != RATE_SCHEMA.types:
        raise given.error(
            "WRONG_COLUMNS",
            f"its columns are {stream.brought}",
            f"It has two, whatever their names: {RATE_SCHEMA}.",
        )
    return RateSource(
        stream.brought,
        rows_per_second=values["rows_per_second"],
        rows=values["rows"],
        rows_per_tick=values["rows_per_tick"],
    )


def _socket(stream: Stream, given: Arguments, base: Path) -> Source:
    values = given.bound(
        (
            Parameter("host", kinds.text, required=True, place=0),
            Parameter("port", kinds.port, required=True, place=1),
            Parameter("format", kinds.one_of("text", "csv", "json")),
            Parameter("delimiter", kinds.one_character, default=","),
            _MALFORMED,
        )
    )
    one_text = len(stream.brought) == 1 and pa.types.is_string(stream.brought.types[0])
    format_ = values["format"] or ("text" if one_text else "csv")
    if format_ == "text" and not one_text:
        hint = "Declare one column of type STRING, or choose format => 'csv' or 'json'."
        raise given.error("WRONG_COLUMNS", f"lines of text have one column, not {stream.brought}", hint)
    if format_ == "csv":
        _no_nested(stream, given)
    return SocketSource(
        values["host"],
        values["port"],
        stream.brought,
        format=format_,
        delimiter=values["delimiter"],
        malformed=values["malformed"],
    )


def _memory(stream: Stream, given: Arguments, base: Path) -> Source:
    values = given.bound((Parameter("folder", kinds.text, place=0), _MALFORMED, *_CHANGES))
    folder = None if values["folder"] is None else absolute(values["folder"], base)
    return MemorySource(stream.brought, folder=folder, malformed=values["malformed"], optional=stream.optional)


def _push(stream: Stream, given: Arguments, base: Path) -> Source:
    values = given.bound((_MALFORMED, *_CHANGES))
    return PushedSource(stream.brought, malformed=values["malformed"], optional=stream.optional)


def _no_nested(stream: Stream, given: Arguments) -> None:
    nested = next((f for f in stream.brought if pa.types.is_nested(f.type)), None)
    if nested is not None:
        message = f'CSV cannot hold column "{nested.name}" of type {sql_name(nested.type)}'
        raise given.error("WRONG_COLUMNS", message, "Use json or parquet.")


_FUNCTIONS: dict[str, Make] = {
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
    "nexmark": _nexmark,
    "rate": _rate,
    "socket": _socket,
    "memory": _memory,
    "push": _push,
}
