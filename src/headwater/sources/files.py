"""Files that arrive in a folder, one by one, as a stream: parquet, CSV, JSON.

A file must appear whole: write it elsewhere, or under a name that begins with a dot or an underscore, then rename it.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from headwater.errors import InputError
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING
from headwater.sources.answers import STABLE, StableReader, stable_point
from headwater.sources.base import Malformed, Polled, Source, SparkBatch, Split
from headwater.sources.file_formats import CUT_ROWS, NO_COLUMNS, WHOLE_BYTES, FileFormat
from headwater.sources.file_listing import Listing
from headwater.sources.file_names import FoundFile, list_files
from headwater.sources.file_position import HOUR, FilePosition
from headwater.sources.parquet_batches import parquet_batch
from headwater.sources.parquet_files import SKIP, ParquetFormat, made_of
from headwater.sources.parquet_footers import footer_figures
from headwater.state.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("headwater")
_OF_A_TICK = re.compile(r"/tick-\d+-\d+\.parquet$")
_COUNTED = 200
"""The rows of so many files of a batch are counted; how many more have is guessed from these, unless they are large."""


class FileSource(Source):
    """A file, the files of a folder, or those that a glob matches.

    Parameters
    ----------
    path
        Absolute, or with the address of its file system.
    rows_per_tick
        A tick takes about so many rows at most, however many files wait; of a file with more rows it takes a part.
    follow
        Wait for more files? Otherwise the stream ends with the files that are there.
    max_age
        A file that turns up with a modification time so much older (microseconds) than the newest one is no longer found.
    optional
        Columns that files may have besides; only tasks read them.
    answers
        Are these answers of an engine, in ``"timestamps"`` or ``"numbers"``? Then the folder tells how far they go.
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
        answers: Literal["timestamps", "numbers"] | None = None,
    ) -> None:
        self.path, self.schema, self.format = path, schema, format
        self.malformed = malformed
        self.rows_per_tick, self.finite = rows_per_tick, not follow
        self.max_age = max_age
        self._answers = answers
        read = format.reader(schema, optional)
        self.reader = read if answers is None else StableReader(read)
        self._plain = not optional.fields
        self.suits_spark = isinstance(format, ParquetFormat) and self._plain
        self._row_bytes: float | None = None
        self._figures: Mapping[str, float] | None = None
        self._listing = Listing(path)
        self._store: Store | None = None
        self._position: FilePosition | None = None
        """How far it has been read, and which files wait, if asked to go on from ``_offset``."""
        self._offset: Any = None
        self._waiting: deque[FoundFile] = deque()

    # -- Spark -------------------------------------------------------------------------------------------------------

    def spark_batch(self, spark: SparkSession, splits: Sequence[Split], time: str) -> SparkBatch | None:
        """Only parquet: texts are parsed faster by tasks."""
        paths = _whole_files(splits)
        return parquet_batch(spark, paths, self.schema, time) if self.suits_spark and paths else None

    # -- asked for what is new ---------------------------------------------------------------------------------------

    def poll(self, offset: Any, rows: int) -> Polled:
        stable = None if self._answers is None else stable_point(self.path, timestamps=self._answers == "timestamps")
        promised = {} if not offset or STABLE not in offset else {STABLE: offset[STABLE]}
        if not rows:
            return Polled([], offset or FilePosition(self._age).to_offset())
        if stable is not None and stable > promised.get(STABLE, BEGINNING):
            self._listing.look_again()  # it speaks of files that must be found first
        new = self._listing.look()
        position = self._go_on(offset, new)
        self._measure(self._waiting)
        taken: list[Split] = []
        held = files = length = 0
        while self._waiting:
            file = self._waiting[0]
            if not self._listing.has(file):
                self._waiting.popleft()
                continue
            start = position.at if file.path == position.open else 0
            counted = files < _COUNTED or start > 0 or file.length > WHOLE_BYTES
            guess = round(held * file.length / length) if held and length else self._guess(file.length)
            for part in self._rest(file, position) or (self._parts(file, start, rows) if counted else [_whole(file)]):
                count = part.get("rows", guess)
                if taken and held + count > rows:
                    position.read_part(file.path, part.get("start", 0))
                    self._offset = position.to_offset() | promised
                    return Polled(taken, self._offset)
                taken.append(part)
                held += count
            files, length = files + 1, length + file.length
            position.read_file(self._waiting.popleft())
        if stable is not None and new is not None and stable > promised.get(STABLE, BEGINNING):
            promised = {STABLE: stable}  # everything is taken that it speaks of
            taken.append(dict(promised))
        # What files without anything have brought nobody notes: then it stands where it stood.
        self._offset = offset if offset is not None and not taken else position.to_offset() | promised
        return Polled(taken, self._offset, finished=self.finite, looked=new is not None or bool(taken))

    def _rest(self, file: FoundFile, position: FilePosition) -> list[Split]:
        """What is left to read of a file that was made of others, some of which have been read (``sinks/compaction.py``)."""
        if not isinstance(self.format, ParquetFormat) or not _OF_A_TICK.search(file.path):
            return []
        known = made_of(file.path)
        read = position.read_of([path for path, _ in known])
        skip = sum(rows for _, rows in known[:read])
        left = sum(rows for _, rows in known[read:])
        return [_whole(file) | {SKIP: skip, "rows": left}] if read else []

    def _parts(self, file: FoundFile, start: int, rows: int) -> list[Split]:
        """What ticks of so many rows take of it; all of it, if that is one."""
        parts = self.format.cut(_whole(file, start), max(rows, 1))
        if start or len(parts) > 1:
            return parts
        return [_whole(file) | ({"rows": parts[0]["rows"]} if "rows" in parts[0] else {})]

    def cut(self, splits: Sequence[Split]) -> list[Split]:
        """For tasks. What is small stays whole, and is not opened again."""
        cut = ([s] if STABLE in s or SKIP in s or self._is_small(s) else self.format.cut(s, CUT_ROWS) for s in splits)
        return [part for parts in cut for part in parts]

    def _is_small(self, split: Split) -> bool:
        return split["rows"] <= CUT_ROWS if "rows" in split else split["length"] <= WHOLE_BYTES

    def _go_on(self, offset: Any, new: list[FoundFile] | None) -> FilePosition:
        """The position of an offset; then ``_waiting`` has what is unread there, with the files that are new."""
        position = self._position
        if position is None or offset is None or offset != self._offset:  # it goes on from elsewhere
            position = self._position = FilePosition(self._age, offset, self._store)
            self._waiting = deque(position.unread(self._listing.files))
        elif new:
            self._waiting = deque(position.unread([*self._waiting, *new]))
            self._tell_of_old(position.too_old(new))
        return position

    def _tell_of_old(self, files: Sequence[FoundFile]) -> None:
        """They cannot be told from files that were read long ago and are forgotten, so they are passed over."""
        if files:
            log.warning(
                "%d files that came into %s just now are passed over, %s for one: their modification times are too far "
                "behind the newest file that was read. Look further back (max_age => '7 days'), or touch them.",
                len(files), self.path, files[0].path,
            )  # fmt: skip

    @property
    def _age(self) -> int:
        return self.max_age or HOUR

    def look_again(self) -> None:
        self._listing.look_again()

    def remember_in(self, store: Store) -> None:
        self._store = store

    def figures(self, time: str | None) -> Mapping[str, float]:
        """From the footers of the parquet files that are there when it is first asked for."""
        if self._figures is None and isinstance(self.format, ParquetFormat):
            with suppress(OSError, InputError):
                self._figures = footer_figures(list_files(self.path), self.schema, time)
        return self._figures or {}

    def split_rows(self, split: Split) -> int | None:
        return 0 if STABLE in split else split.get("rows")

    def expected_rows(self) -> int | None:
        return round(sum(file.length for file in list_files(self.path)) / self._bytes_per_row())

    def _guess(self, length: int) -> int:
        return int(length / (self._row_bytes or self.format.usual_row_bytes))

    def _bytes_per_row(self) -> float:
        """Seen in the oldest file with rows; before there is any, a guess."""
        if self._row_bytes is None:
            self._measure(list_files(self.path))
        return self._row_bytes or self.format.usual_row_bytes

    def _measure(self, files: Iterable[FoundFile]) -> None:
        """See how long rows are, unless that is known."""
        if self._row_bytes is None:
            looks = (self.format.row_bytes(f.path) for f in islice((f for f in files if f.length), 20))
            self._row_bytes = next((found for found in looks if found), None)

    def __repr__(self) -> str:
        return f"{self.format.name}({self.path!r})"


def _whole_files(splits: Sequence[Split]) -> list[str]:
    """The files of which these are all; none, if some are only parts."""
    whole = all("path" in s and "start" not in s and SKIP not in s for s in splits)
    return [s["path"] for s in splits] if whole else []


def _whole(file: FoundFile, start: int = 0) -> Split:
    split: Split = {"path": file.path, "length": file.length, "modified": file.modified}
    return {**split, "start": start} if start else split
