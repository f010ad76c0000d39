"""Files in a folder, one or more per tick: Parquet, CSV or JSON. Exactly once.

    answers/
      _headwater.json             whose answers these are, and the last tick that is complete; with a checksum
      _staged/                    written by tasks, not part of the answer yet
      tick-00000012-0000.parquet  part 0 of tick 12

Tasks write whole files under ``_staged``; delivery only renames them. The name follows from tick and part, so a part that is
delivered again is seen to be there. Readers skip names that begin with an underscore.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import InputError, StateError
from headwater.model.delta import Delta
from headwater.model.wider_types import holds_all_of
from headwater.sinks.base import Guarantee, Output, Sink, Staged, Stager
from headwater.sinks.compaction import GRACE, check_compactable, compact_folder, repair
from headwater.sinks.file_formats import FileFormat, ParquetFormat
from headwater.sinks.folder import Folder, split_place
from headwater.sinks.joining import SMALL, join_files
from headwater.sinks.parts import missing
from headwater.sinks.spark_files import as_delivered, write_parquet
from headwater.sinks.tables import arrow_schema, check_names, to_table
from headwater.state.sealed import ANSWERS, seal, unseal, version_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORD = ANSWERS
STAGED = "_staged"
_VERSION = 2
_TICK = re.compile(r"tick-(\d+)-")
_DECIMAL = re.compile(r"decimal128\((\d{1,2}), (\d{1,2})\)")


class FileStager(Stager):
    """Writes a part in its final form."""

    def __init__(self, output: Output, folder: Folder, format_: FileFormat) -> None:
        self.output, self.folder, self.format = output, folder, format_

    def stage(self, tick: int, shard: int, delta: Delta, folder: str) -> Staged:
        table = to_table(self.output, delta, tick)
        name = f"tick-{tick:08d}-{shard:04d}-{uuid.uuid4().hex}{self.format.extension}"
        staged = self.folder / STAGED
        with staged.writing(name) as stream:
            self.format.write(table, stream)
        return Staged(table.num_rows, path=f"{staged}/{name}")


class FileSink(Sink):
    """A folder of files."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, place: str | os.PathLike[str], format_: FileFormat, *, compact: int = 0) -> None:
        """``compact``: when there are more small files than so many, they become one; 0: never."""
        self.folder, self.format, self.compact = Folder(place), format_, compact
        self.grace, self._uncounted = GRACE, 0
        """So many files have come since those that are there were counted."""
        self.takes_frames = isinstance(format_, ParquetFormat)  # Spark's way to write values as texts is not ours
        self.last_tick = -1

    def open(self, output: Output) -> None:
        super().open(output)
        check_names(output)
        self.format.check(arrow_schema(output))
        (self.folder / STAGED).make()
        if self.folder.exists(RECORD):
            self.last_tick = self._checked(self.folder.read(RECORD).to_pybytes())
        else:
            self._claim()
        if self.compact:
            check_compactable(self.folder)
        repair(self.folder)
        self._uncounted = self.compact
        self._clean(self.last_tick)

    def stager(self) -> Stager:
        return FileStager(self.output, self.folder, self.format)

    def stage_frame(self, frame: DataFrame, tick: int, folder: str) -> list[str]:
        assert isinstance(self.format, ParquetFormat)
        staged, written = self.folder / STAGED, f"tick-{tick:08d}-spark-{uuid.uuid4().hex}"
        rows = as_delivered(frame, self.output, tick)
        paths = []
        for i, name in enumerate(write_parquet(rows, staged / written, self.format.compression)):
            final = f"tick-{tick:08d}-{i:04d}-{uuid.uuid4().hex}{self.format.extension}"
            staged.move(f"{written}/{name}", final)
            paths.append(f"{staged}/{final}")
        (staged / written).delete_all()
        return paths

    def deliver(self, tick: int, parts: Sequence[Staged], frontier: int) -> None:
        if tick > self.last_tick:
            if self.every:
                parts = self._joined(tick, parts)
            for number, part in enumerate(parts):
                self._deliver_part(part, f"tick-{tick:08d}-{number:04d}{self.format.extension}")
            self._write_record(tick, frontier)
            self.last_tick = tick
            self._uncounted += len(parts)
        self._clean(tick)
        if self.compact and self._uncounted > self.compact:
            compact_folder(self.folder, most=self.compact, grace=self.grace)
            self._uncounted = 0

    def describe(self) -> dict[str, Any]:
        return {"sink": self.format.name, "path": str(self.folder), "delivery": str(self.guarantee)}

    def _deliver_part(self, part: Staged, name: str) -> None:
        assert part.path is not None
        if self.folder.exists(name):  # an earlier delivery came so far
            return
        _, staged = split_place(part.path)
        if not self.folder.exists(f"{STAGED}/{staged}"):
            raise missing(part.path)
        self.folder.move(f"{STAGED}/{staged}", name)

    def _joined(self, tick: int, parts: Sequence[Staged]) -> list[Staged]:
        """The small ones as one file, which comes first, and the others as they are."""
        names = [split_place(part.path or "")[1] for part in parts]
        sizes = (self.folder / STAGED).sizes(names)
        # One that is gone was large: an earlier delivery has moved it. Small ones stay until all is in place.
        small = [name for name, size in zip(names, sizes, strict=True) if 0 <= size < SMALL]
        large = [part for part, size in zip(parts, sizes, strict=True) if not 0 <= size < SMALL]
        if len(small) <= 1:
            return list(parts)
        joined = f"tick-{tick:08d}-joined-{uuid.uuid4().hex}{self.format.extension}"
        if not self.folder.exists(f"tick-{tick:08d}-0000{self.format.extension}"):  # else it is there already
            join_files(self.folder / STAGED, small, joined, self.format)
        return [Staged(sum(part.rows for part in parts), path=f"{self.folder / STAGED}/{joined}"), *large]

    def _clean(self, tick: int) -> None:
        """Delete what was staged for this tick and before but not delivered: attempts that failed, or came second."""
        staged = self.folder / STAGED
        for name in staged.names():
            found = _TICK.match(name)
            if found and int(found[1]) <= tick:
                (staged / name).delete_all() if "-spark-" in name else staged.delete(name)

    # -- whose folder it is ---------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        others = [name for name in self.folder.names() if not name.startswith(("_", "."))]
        if others:
            raise InputError(
                "FOLDER_NOT_EMPTY",
                f'"{self.folder}" already has files that no query of Headwater wrote',
                detail=f"One of them is {others[0]}.",
                hint="Write into an empty folder: readers could not tell the rows apart.",
            )
        self._write_record(-1, None)

    def _identity(self) -> dict[str, Any]:
        """What must not change in the life of a folder."""
        output = self.output
        columns = {field.name: str(field.type) for field in arrow_schema(output)}
        return {"query": output.query, "origin": output.origin, "format": self.format.name, "columns": columns}

    def _write_record(self, tick: int, frontier: int | None) -> None:
        record = {"version": _VERSION, **self._identity(), "last_tick": tick, "frontier": frontier}
        record["timestamps"] = self.output.timestamps
        self.folder.replace(RECORD, seal(record, indent=1))

    def _checked(self, found: bytes) -> int:
        """The last complete tick, if the folder is this query's."""
        record: dict[str, Any] = {}
        last = -1
        try:
            record = unseal(found)
            last, version = int(record["last_tick"]), int(record["version"])
        except (ValueError, KeyError, TypeError) as problem:
            version = version_of(found, "version")
            if version is None or version >= _VERSION:
                raise StateError(
                    "SINK_DAMAGED",
                    f'"{self.folder}/{RECORD}" cannot be read',
                    detail=str(problem),
                    hint="Put it back from a copy, or write into a new folder.",
                ) from problem
        if version != _VERSION:
            raise StateError(
                "SINK_VERSION",
                f'"{self.folder}" was written in version {version} of the layout, this is version {_VERSION}',
                hint="Write into a new folder.",
            )
        for name, mine in self._identity().items():
            theirs = record.get(name)
            if theirs != mine and not (name == "columns" and _are_wider(mine, theirs)):
                raise self._of_another(name, theirs, mine)
        return last

    def _of_another(self, name: str, theirs: Any, mine: Any) -> InputError:
        said = {
            "query": f'the answers of "{theirs}"',
            "origin": f'answers of "{self.output.query}" that were computed under another checkpoint',
            "format": f"{theirs} files",
            "columns": f'rows with other columns than "{self.output.query}" has',
        }
        told = f"They are {_listed(theirs)} there, and {_listed(mine)} here." if name == "columns" else ""
        going_on = "Go on with that checkpoint, write" if name == "origin" else "Write"
        return InputError(
            "FOLDER_OF_ANOTHER",
            f'"{self.folder}" holds {said[name]}',
            detail=told,
            hint=f"{going_on} into a new folder, or delete this one.",
        )


def _are_wider(mine: dict[str, str], theirs: Any) -> bool:
    """Do the columns hold all that is in the files? Then readers can have both as what they are now."""
    if not isinstance(theirs, dict) or list(mine) != list(theirs):
        return False
    pairs = [(_type(mine[name]), _type(str(was))) for name, was in theirs.items() if mine[name] != was]
    return all(None not in pair and holds_all_of(*pair) for pair in pairs)


def _type(text: str) -> pa.DataType | None:
    """A number type as ``str`` wrote it; None for others."""
    digits = _DECIMAL.fullmatch(text)
    if digits:
        return pa.decimal128(int(digits[1]), int(digits[2]))
    return pa.type_for_alias(text) if text in ("int8", "int16", "int32", "int64", "float", "double") else None


def _listed(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns.items())
