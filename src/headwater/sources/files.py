"""Files that arrive in a folder, one by one, as a stream: parquet, CSV, JSON.

A file must appear whole: write it elsewhere, or under a name that begins with a dot or an underscore, then rename it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.model.schema import Schema
from headwater.sources.base import Malformed, Polled, Source, SparkBatch, Split
from headwater.sources.file_formats import CUT_ROWS, NO_COLUMNS, WHOLE_BYTES, FileFormat
from headwater.sources.file_position import HOUR, FilePosition
from headwater.sources.file_system import FoundFile, list_files
from headwater.sources.listed_files import listed_splits
from headwater.sources.parquet_batches import parquet_batch
from headwater.sources.parquet_files import ParquetFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPARKS_AGE = 7 * 24 * HOUR
_COUNTED = 200
"""The rows of so many files of a batch are counted in the driver; of more only those of large files."""


class FileSource(Source):
    """A file, the files of a folder, or those that a glob matches.

    Parameters
    ----------
    path
        Absolute, or with the address of its file system.
    rows_per_tick
        A tick takes about so many rows at most, however many files wait. On Spark a file is never left half read, so one
        that is larger comes in one batch; cut it into ticks by ``cut`` and ``split_rows``.
    follow
        Wait for more files? Otherwise the stream ends with the files that are there.
    max_age
        A file that turns up with a modification time so much older (microseconds) than the newest one is no longer found.
    optional
        Columns that files may have besides; only tasks read them.
    """

    def __init__(
        self,
        path: str,
        schema: Schema,
        format: FileFormat,
        *,
        malformed: Malformed = "fail",
        rows_per_tick: int = 5_000_000,
        follow: bool = True,
        max_age: int | None = None,
        optional: Schema = NO_COLUMNS,
    ) -> None:
        self.path, self.schema, self.format = path, schema, format
        self.malformed = malformed
        self.rows_per_tick, self.finite = rows_per_tick, not follow
        self.max_age = max_age
        self.reader = format.reader(schema, optional)
        self._plain = not optional.fields
        self.suits_spark = isinstance(format, ParquetFormat) and self._plain
        self._row_bytes: float | None = None

    # -- Spark -------------------------------------------------------------------------------------------------------

    def splits(self, spark: SparkSession) -> DataFrame:
        """Spark lists the files and remembers which it has given out; it never opens them."""
        most = max(int(self.rows_per_tick * self._bytes_a_row()), 1)
        age = f"{(self.max_age or _SPARKS_AGE) // 1_000_000}s"
        return listed_splits(spark, self.path, maxBytesPerTrigger=most, maxFileAge=age)

    def cut(self, splits: Sequence[Split]) -> list[Split]:
        if len(splits) <= _COUNTED:
            return [part for split in splits for part in self.format.cut(split, CUT_ROWS)]
        large = (self.format.cut(s, CUT_ROWS) if s["length"] > WHOLE_BYTES else [s] for s in splits)
        return [part for parts in large for part in parts]

    def native_batch(self, spark: SparkSession, splits: Sequence[Split]) -> DataFrame | None:
        """Spark's own reading, where it finds the same rows and fails where we do."""
        if self.malformed != "fail" or not splits or not self._plain:
            return None
        paths = list(dict.fromkeys(s["path"] for s in splits))
        return self.format.native(spark, paths, self.schema, self.malformed)

    def spark_batch(self, spark: SparkSession, splits: Sequence[Split], time: str) -> SparkBatch | None:
        """Only parquet: texts are parsed faster by tasks."""
        if not self.suits_spark:
            return None
        return parquet_batch(spark, list(dict.fromkeys(s["path"] for s in splits)), self.schema, time)

    # -- without Spark -----------------------------------------------------------------------------------------------

    def poll(self, offset: Any, rows: int) -> Polled:
        position = FilePosition.from_offset(offset)
        max_age = self.max_age or HOUR
        taken: list[Split] = []
        held = 0
        for file in position.unread(list_files(self.path), max_age):
            start = position.at if file.path == position.open else 0
            for part in self.format.cut(_whole(file, start), max(rows, 1)):
                if taken and held + self._rows(part) > rows:
                    position = position.after_part(file.path, part.get("start", 0))
                    return Polled(taken, position.to_offset())
                taken.append(part)
                held += self._rows(part)
            position = position.after_file(file, max_age)
        return Polled(taken, position.to_offset(), finished=self.finite)

    def split_rows(self, split: Split) -> int | None:
        return split.get("rows")

    def expected_rows(self) -> int | None:
        return round(sum(file.length for file in list_files(self.path)) / self._bytes_a_row())

    def _rows(self, part: Split) -> int:
        return part["rows"] if "rows" in part else int(part["length"] / self._bytes_a_row())

    def _bytes_a_row(self) -> float:
        """Seen in the oldest file with rows; before there is any, a guess."""
        if self._row_bytes is None:
            looks = (self.format.row_bytes(f.path) for f in list_files(self.path)[:20])
            self._row_bytes = next((found for found in looks if found), None)
        return self._row_bytes or self.format.usual_row_bytes

    def __repr__(self) -> str:
        return f"{self.format.name}({self.path!r})"


def _whole(file: FoundFile, start: int) -> Split:
    split: Split = {"path": file.path, "length": file.length, "modified": file.modified}
    return {**split, "start": start} if start else split
