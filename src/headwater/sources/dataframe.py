"""Any streaming DataFrame as a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from attrs import evolve

from headwater.errors import InputError
from headwater.language.binder import bind_script
from headwater.language.catalog import Kind, Stream
from headwater.language.changes import CHANGED, ChangeFormat, Changes, element_columns
from headwater.language.statistics_clause import check_statistics
from headwater.language.text import did_you_mean
from headwater.language.time_clauses import Disorder
from headwater.model.durations import instants_in
from headwater.model.schema import START, Field, Schema
from headwater.model.types import quote, sql_name
from headwater.sources.base import Malformed, Source
from headwater.sources.spark_types import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DataFrameSource(Source):
    """The rows of a streaming DataFrame. A Spark TIMESTAMP is an instant and becomes the same one in UTC.

    Its replay after a crash is up to the source that the DataFrame reads from.
    """

    def __init__(self, frame: DataFrame, *, malformed: Malformed = "fail", name: str = "stream") -> None:
        if not frame.isStreaming:
            raise InputError(
                "NOT_STREAMING",
                f'"{name}" is a DataFrame that does not stream',
                hint="Read it with spark.readStream, or push its rows: MemorySource(schema).push(frame.toArrow()).",
            )
        _check_names(frame, name)
        self.frame, self.malformed = frame, malformed
        self.schema: Schema = schema_of(frame.schema)

    def rows(self, spark: SparkSession) -> DataFrame:
        """As they are: in Arrow a Spark TIMESTAMP is in UTC, whatever the session's zone; the intake takes it so."""
        return self.frame

    def __repr__(self) -> str:
        return "a Spark DataFrame"


def _check_names(frame: DataFrame, name: str) -> None:
    folded: set[str] = set()
    for column in frame.columns:
        if column.casefold() in folded:
            message = f'"{name}" has two columns "{column}"'
            raise InputError("DUPLICATE_COLUMN", message, hint="Rename one with withColumnRenamed, or select others.")
        folded.add(column.casefold())


# -- what is known of the stream --------------------------------------------------------------------------------------


def declared(
    name: str,
    columns: Schema,
    *,
    time: str | None = None,
    disorder: str | int | None = None,
    changes: str | None = None,
    key: Sequence[str] = (),
    malformed: Malformed = "fail",
    statistics: Mapping[str, float] | None = None,
) -> Stream:
    """The stream that a DataFrame with these columns is.

    Rows with ``_start`` and no time column carry their intervals and changes; rows with neither are stamped on arrival.
    """
    stream = _declared(name, columns, time, disorder, changes, key, malformed)
    return evolve(stream, statistics=check_statistics(statistics or {}, stream))


def _declared(
    name: str,
    columns: Schema,
    time: str | None,
    disorder: str | int | None,
    changes: str | None,
    key: Sequence[str],
    malformed: Malformed,
) -> Stream:
    if changes is None and time is None and START in columns.names:
        changes = ChangeFormat.HEADWATER
    if changes is not None and changes not in tuple(ChangeFormat):
        hint = f"There are {', '.join(ChangeFormat)}."
        raise InputError("UNKNOWN_CHANGES", f'there are no changes of the kind "{changes}"', hint=hint)
    if changes != ChangeFormat.DEBEZIUM and key:
        message = f'stream "{name}" cannot have a key: only change events are put together by one'
        raise InputError("CONFLICTING_CLAUSES", message, hint='Leave it out, or say changes="debezium".')
    if changes == ChangeFormat.HEADWATER:
        return _of_elements(name, columns, time, malformed)
    stream = Stream(name, columns, time=time, registered=True)
    if time is not None and "(" in time and time not in columns.names and changes is None:
        stream = _of_computed_time(name, columns, time)
        time = stream.time
    if changes == ChangeFormat.DEBEZIUM:
        stream = _of_events(name, columns, time, tuple(key))
    names = stream.schema.names
    if time is not None and time not in names:
        raise InputError(
            "UNKNOWN_COLUMN",
            f'the DataFrame has no column "{time}" to order stream "{name}" by',
            hint=did_you_mean(time, names) or f"It has {', '.join(names)}.",
        )
    if disorder is None:
        return stream
    bound = instants_in(disorder, timestamps=stream.has_unit, what=f'the disorder of stream "{name}"')
    return evolve(stream, clauses=(Disorder(bound),))


def _of_computed_time(name: str, columns: Schema, time: str) -> Stream:
    """The same, declared in SQL: the time is what ORDERED BY computes of the columns."""
    listed = ", ".join(f"{quote(f.name, '`')} {sql_name(f.type)}{'' if f.nullable else ' NOT NULL'}" for f in columns)
    bound = bind_script(f"CREATE STREAM stream ({listed}) ORDERED BY {time}").catalog.get("stream")
    assert isinstance(bound, Stream)
    return evolve(bound, name=name, registered=True)


def _of_elements(name: str, columns: Schema, time: str | None, malformed: Malformed) -> Stream:
    if time is not None:
        message = f'the rows of stream "{name}" carry intervals; they cannot be ordered by "{time}" as well'
        raise InputError("CONFLICTING_CLAUSES", message)
    if START not in columns.names:
        message = f'the DataFrame has no column "{START}", which says when a row of stream "{name}" begins'
        raise InputError("UNKNOWN_COLUMN", message, hint=f"It has {', '.join(columns.names)}.")
    numbered = pa.types.is_integer(columns.field(START).type)
    special = {*element_columns(timestamps=True).names, "_tick"}
    rest = Schema(tuple(Field(f.name, f.type) for f in columns if f.name not in special))
    changes = Changes(ChangeFormat.HEADWATER, lenient=malformed == "divert")
    return Stream(name, rest, changes=changes, numbered=numbered, registered=True)


def _of_events(name: str, columns: Schema, time: str | None, key: tuple[str, ...]) -> Stream:
    """The columns of the table are those of the image of a row after its change."""
    image = next((f.type for f in columns if f.name == "after"), None)
    if image is None or not pa.types.is_struct(image):
        message = f'the DataFrame has no column "after" with the rows of stream "{name}"'
        hint = "A change event has before and after (STRUCTs), op, and ts_ms; unpack it with from_json."
        raise InputError("UNKNOWN_COLUMN", message, hint=hint)
    fields = [Field(image.field(i).name, image.field(i).type) for i in range(image.num_fields)]
    missing = next((k for k in key if k not in [f.name for f in fields]), None)
    if missing is not None:
        hint = did_you_mean(missing, [f.name for f in fields], all_of_them="There are")
        raise InputError("UNKNOWN_COLUMN", f'the rows of stream "{name}" have no column "{missing}"', hint=hint)
    schema = Schema(tuple(evolve(f, nullable=f.name not in key) for f in fields))
    changes = Changes(ChangeFormat.DEBEZIUM)
    return Stream(name, schema, time=time or CHANGED, kind=Kind.TABLE, key=key, changes=changes, registered=True)
