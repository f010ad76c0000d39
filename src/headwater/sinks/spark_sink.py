"""Any batch writer of Spark: a function gets every tick's rows as a DataFrame."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.errors import InputError
from headwater.model.delta import Delta
from headwater.result import spark_columns
from headwater.sinks.base import Output, Sink, Staged, Stager
from headwater.sinks.file_formats import ParquetFormat
from headwater.sinks.folder import Folder
from headwater.sinks.parts import INLINE_BYTES, read_table, stage_table
from headwater.sinks.spark_files import as_delivered, spark_path, write_parquet
from headwater.sinks.tables import arrow_schema, check_names, to_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ParquetStager(Stager):
    """Small parts go with the commit, large ones become Parquet files, which Spark reads without the driver."""

    def __init__(self, output: Output) -> None:
        self.output = output

    def stage(self, tick: int, shard: int, delta: Delta, folder: str) -> Staged:
        table = to_table(self.output, delta, tick)
        if not folder or table.nbytes < INLINE_BYTES:
            return stage_table(table, folder)
        place, name = Folder(folder), f"{uuid.uuid4().hex}.parquet"
        place.make()
        with place.writing(name) as stream:
            ParquetFormat().write(table, stream)
        return Staged(table.num_rows, path=f"{place}/{name}")


class SparkSink(Sink):
    """Calls ``function(frame, tick)`` in the driver, in the order of the ticks, for each that has rows."""

    takes_changes = True

    def __init__(self, function: Callable[[DataFrame, int], object]) -> None:
        self.function = function
        self._last = -1

    def open(self, output: Output) -> None:
        super().open(output)
        check_names(output)
        self._last = -1
        if self.spark is None:
            raise InputError(
                "NO_SPARK",
                f'"{output.query}" cannot be written by Spark: this engine runs without it',
                hint='Connect with Spark (without runner="inprocess"), or use foreach(), which gets Arrow tables.',
            )

    def stager(self) -> Stager:
        return ParquetStager(self.output)

    takes_frames = True

    def stage_frame(self, frame: DataFrame, tick: int, folder: str) -> list[str]:
        place = Folder(f"{folder}/{uuid.uuid4().hex}")
        return [f"{place}/{name}" for name in write_parquet(as_delivered(frame, self.output, tick), place)]

    def deliver(self, tick: int, parts: Sequence[Staged], frontier: int) -> None:
        if tick <= self._last:
            return
        if parts:
            self.function(self._frame(parts), tick)
        self._last = tick

    def describe(self) -> dict[str, Any]:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return {"sink": "spark", "function": name, "delivery": str(self.guarantee)}

    def _frame(self, parts: Sequence[Staged]) -> DataFrame:
        schema = arrow_schema(self.output)
        columns = spark_columns(schema)
        inline = [part for part in parts if part.path is None]
        paths = [spark_path(part.path) for part in parts if part.path is not None]
        frames = [self.spark.read.schema(columns).parquet(*paths)] if paths else []
        if inline:
            frames.append(self.spark.createDataFrame(read_table(inline, schema), schema=columns))
        return frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])
