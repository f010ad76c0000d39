"""What a source is.

Either the engine asks it for what is new, and it gives *splits*, small values that name pieces of the input: tasks of Spark,
or the process itself, read them as Arrow (no row of it ever becomes a row of the JVM). How far it has been read is an
offset, which the engine keeps with its own state. Or it has *rows*, any streaming DataFrame: then Spark owns offsets,
replay and rate limits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa

from headwater.model.schema import Schema
from headwater.state.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Malformed = Literal["fail", "divert"]

Split = dict[str, Any]
"""A piece of input that one task reads: plain values only (it goes through Spark rows as JSON)."""


class BadRows(NamedTuple):
    """Rows that are not what the stream declares, kept as text."""

    where: pa.Array
    """STRING: the file, or whatever names the place."""
    line: pa.Array
    """BIGINT, NULL where there are no lines."""
    reason: pa.Array
    """STRING."""
    raw: pa.Array
    """STRING: the row as it came."""


class Piece(NamedTuple):
    """What a reader found: good rows with the declared columns that are there, and the rows that are no such thing."""

    rows: pa.RecordBatch
    bad: BadRows | None = None
    partition: str = ""
    """The partition of the source that they came through, where it has any (each has a clock of its own)."""
    where: str = ""
    """What names the place that they came from, for messages: a file, a range of events."""
    promise: int | None = None
    """The source's own word that nothing before this instant comes any more."""
    first: int | None = None
    """The number of the first row, where rows are counted: those that are pushed by hand."""
    missing: tuple[tuple[str, str], ...] = ()
    """Columns that are NULL because they are not there, each with the one that may have been meant, "" if none."""
    left_out: frozenset[str] = frozenset()
    """Declared columns that are there and were not read, because nobody wants them."""


class Span(NamedTuple):
    """What is known of rows before they are read: all are well-formed, and their times are from one instant to another."""

    rows: int
    oldest: int
    newest: int


class SparkBatch(NamedTuple):
    """Rows that Spark reads by itself."""

    frame: DataFrame
    span: Span | None = None


class Reader(ABC):
    """Reads splits, in a task or in the driver. Picklable, without Spark. Never turns what it cannot read into NULL."""

    @abstractmethod
    def read(self, split: Split, columns: Collection[str] | None = None) -> Iterator[Piece]:
        """The rows of one split in moderate batches (about 100,000 rows).

        ``columns``: the declared ones that somebody wants; None: all. Others may be left out where none of their values
        could make a row malformed (``can_leave_out``). So a text is read whole: whoever wants it, it is judged.
        """


class Parser(ABC):
    """Makes pieces of the rows of a streaming DataFrame, in a task. Picklable, without Spark."""

    @abstractmethod
    def parse(self, rows: pa.RecordBatch) -> Piece:
        """The rows as they came to rows of the stream."""


class Polled(NamedTuple):
    """What came since the offset, and the offset after it."""

    splits: Sequence[Split]
    offset: Any
    """JSON values."""
    finished: bool = False
    """Nothing will ever come any more."""
    looked: bool = True
    """Has it looked for what is new? Not where looking takes long and was done just now."""


class Source(ABC):
    """Where a stream's rows come from. ``schema`` is the declared one."""

    schema: Schema
    reader: Reader | None = None
    """How tasks read the splits; None for a source of rows."""
    parser: Parser | None = None
    """What makes pieces of the rows of a source of rows; None: the rows are the stream's already."""
    finite: bool = False
    """Does it end by itself?"""
    durable: bool = True
    """Can the same splits or rows be read again after a crash?"""
    malformed: Malformed = "fail"
    """What becomes of rows that are not what the stream declares."""

    def figures(self, time: str | None) -> Mapping[str, float]:
        """What it says of its rows before any is read, by the names of STATISTICS; a rate is per instant."""
        return {}

    def cut(self, splits: Sequence[Split]) -> list[Split]:
        """Finer splits of the same rows in the same order, so that several tasks share what is large."""
        return list(splits)

    def rows(self, spark: SparkSession) -> DataFrame | None:
        """A streaming DataFrame of rows as they come; None for a source that is asked for splits."""
        return None

    suits_spark: bool = False
    """Is there a ``spark_batch``?"""

    def spark_batch(self, spark: SparkSession, splits: Sequence[Split], time: str) -> SparkBatch | None:
        """The rows of these splits as a DataFrame, where Spark reads the same rows, and as fast as tasks do.

        Malformed rows are left in. A TIMESTAMP is Spark's own, which has a zone; the session's must be UTC.
        """
        return None

    def poll(self, offset: Any, rows: int) -> Polled:
        """Splits with about so many rows at most since the offset (None: from the beginning).

        These may be coarse, a whole file each: they are given to ``cut`` before tasks read them.
        """
        raise NotImplementedError

    def look_again(self) -> None:  # noqa: B027 - most look whenever they are asked
        """The next time it is asked, it must look for what is new."""

    def remember_in(self, store: Store) -> None:  # noqa: B027 - most need not much
        """Where offsets may keep what is too much for them, as segments that they describe."""

    def split_rows(self, split: Split) -> int | None:
        """About how many rows a split has, if that is known without reading it."""
        return None

    def total_rows(self) -> int | None:
        """How many rows there will ever be, where that is known."""
        return None

    def expected_rows(self) -> int | None:
        """About how many rows there are up to now, for a progress bar; None: nobody knows."""
        return self.total_rows()
