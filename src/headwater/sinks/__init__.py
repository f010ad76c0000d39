"""Data goes out: where the answers of a query are delivered.

Each function makes a sink for ``query.start(…)``. A sink gets the final rows with their lifetimes, ``_start`` and ``_end``;
or a changelog, of rows that come as soon as they begin (``EMIT ON START``), or of a query that may repair its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import os
    from datetime import timedelta

    import pyarrow as pa

    from headwater.sinks.base import Sink
    from headwater.sinks.callback_sink import CallbackSink
    from headwater.sinks.console_sink import ConsoleSink
    from headwater.sinks.delta_sink import DeltaSink
    from headwater.sinks.file_sink import FileSink
    from headwater.sinks.memory_sink import MemorySink
    from headwater.sinks.noop_sink import NoopSink
    from headwater.sinks.spark_sink import SparkSink

    Path = str | os.PathLike[str]
    Length = str | float | timedelta
    S = TypeVar("S", bound=Sink)

__all__ = ["console", "csv", "delta", "foreach", "json", "memory", "noop", "parquet", "spark"]


def _paced(sink: S, every: Length) -> S:
    from headwater.model.durations import wall_time_in

    sink.every = wall_time_in(every, what="the interval of a sink")
    return sink


def _most_files(compact: int) -> int:
    from headwater.errors import InputError

    if not isinstance(compact, int) or isinstance(compact, bool) or compact < 0 or compact == 1:
        hint = "It is the number of small files from which on they become one, as 64; 0: never."
        raise InputError("OUT_OF_RANGE", f"compact cannot be {compact!r}", hint=hint)
    return compact


# The modules are imported when they are needed, so that naming a sink costs nothing.


def console(*, rows: int = 20, form: str = "table", file: IO[str] | None = None, every: Length = 0) -> ConsoleSink:
    """Print the first rows of every tick, as a ``table`` or as ``lines``. At least once.

    >>> console(rows=5, form="lines").describe()["delivery"]
    'at least once'
    """
    from headwater.sinks.console_sink import ConsoleSink

    return _paced(ConsoleSink(rows=rows, form=form, file=file), every)


def memory(*, keep: str | timedelta | int | None = None) -> MemorySink:
    """Keep the answer in memory, to ask for snapshots and for its history. Exactly once, as long as the process lives.

    ``keep`` bounds it: rows that ended so long ago (``"10 minutes"`` of application time) are forgotten.

    >>> memory(keep="10 minutes").describe()["delivery"]
    'exactly once'
    """
    from headwater.sinks.memory_sink import MemorySink

    return MemorySink(keep=keep)


def parquet(path: Path, *, compression: str = "snappy", every: Length = 0, compact: int = 0) -> FileSink:
    """Parquet files in a folder, one or more per tick; a path or any URI that pyarrow knows. Exactly once.

    ``every``: answers of all ticks within such an interval of the wall clock go out together, as one file unless it is
    large (``"1 minute"``, a number of seconds, a timedelta). ``compact``: when there are more small files than so many, they
    become one (on a file system of this machine; 0: never).

    >>> parquet("/data/answers").describe()
    {'sink': 'parquet', 'path': '/data/answers', 'delivery': 'exactly once'}
    """
    from headwater.sinks.file_formats import ParquetFormat
    from headwater.sinks.file_sink import FileSink

    return _paced(FileSink(path, ParquetFormat(compression), compact=_most_files(compact)), every)


def csv(path: Path, *, every: Length = 0) -> FileSink:
    """CSV files in a folder, each with a line of names. Exactly once.

    >>> csv("s3://bucket/answers").describe()["path"]
    's3://bucket/answers'
    """
    from headwater.sinks.file_formats import CsvFormat
    from headwater.sinks.file_sink import FileSink

    return _paced(FileSink(path, CsvFormat()), every)


def json(path: Path, *, every: Length = 0) -> FileSink:
    """Files in a folder with a JSON object per line. Exactly once.

    >>> json("/data/answers").describe()["sink"]
    'json'
    """
    from headwater.sinks.file_formats import JsonFormat
    from headwater.sinks.file_sink import FileSink

    return _paced(FileSink(path, JsonFormat()), every)


def foreach(function: Callable[[pa.Table, int], object], *, every: Length = 0) -> CallbackSink:
    """Call ``function(table, tick)`` for every tick that has rows, in the driver. At least once.

    After a crash the last tick may come again with the same number and the same rows.

    >>> foreach(lambda table, tick: print(tick, table.num_rows)).describe()["delivery"]
    'at least once'
    """
    from headwater.sinks.callback_sink import CallbackSink

    return _paced(CallbackSink(function), every)


def spark(function: Callable[[Any, int], object], *, every: Length = 0) -> SparkSink:
    """Call ``function(frame, tick)`` for every tick that has rows: any batch writer of Spark will do. At least once.

    >>> spark(lambda frame, tick: frame.write.mode("append").saveAsTable("answers")).describe()["sink"]
    'spark'
    """
    from headwater.sinks.spark_sink import SparkSink

    return _paced(SparkSink(function), every)


def delta(
    path: Path,
    *,
    partition_by: Sequence[str] = (),
    storage_options: Mapping[str, str] | None = None,
    every: Length = 0,
    compact: int = 0,
) -> DeltaSink:
    """Append to a Delta table, one commit per tick. Exactly once. Needs ``pip install 'headwater[delta]'``.

    ``compact``: after so many commits small files become one, in a commit of their own; 0: never.

    >>> delta("/data/answers").describe()["delivery"]
    'exactly once'
    """
    from headwater.sinks.delta_sink import DeltaSink

    settings = {"partition_by": partition_by, "storage_options": storage_options, "compact": _most_files(compact)}
    return _paced(DeltaSink(path, **settings), every)


def noop() -> NoopSink:
    """Count the rows and drop them: to measure a query alone.

    >>> noop().rows
    0
    """
    from headwater.sinks.noop_sink import NoopSink

    return NoopSink()
