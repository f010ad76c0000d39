"""A running number and the time it was due, as Spark's rate source has it: ``rate(rows_per_second => 10)``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.model.schema import Schema
from headwater.sources.base import Piece, Reader, Split
from headwater.sources.generated import GeneratedSource

RATE_SCHEMA = Schema.of(timestamp="TIMESTAMP", value="BIGINT")
_PIECE = 100_000


@frozen
class RateReader(Reader):
    """``timestamp`` and ``value``; a stream may name its two columns as it likes."""

    schema: Schema
    rate: int

    def read(self, split: Split, columns: Collection[str] | None = None) -> Iterator[Piece]:
        for start in range(split["from"], split["to"], _PIECE):
            value = np.arange(start, min(start + _PIECE, split["to"]), dtype=np.int64)
            timestamp = pa.array(split["began"] + value * 1_000_000 // self.rate).cast(pa.timestamp("us"))
            yield Piece(pa.RecordBatch.from_arrays([timestamp, pa.array(value)], names=list(self.schema.names)))


class RateSource(GeneratedSource):
    """So many rows per second. The schema has two columns, the time and the number."""

    def __init__(
        self,
        schema: Schema = RATE_SCHEMA,
        *,
        rows_per_second: int = 1,
        rows: int | None = None,
        rows_per_tick: int = 2_000_000,
        wall_clock: Callable[[], int] | None = None,
    ) -> None:
        self.schema, self.rate, self._rows = schema, rows_per_second, rows
        self.paced, self.rows_per_tick, self.wall_clock = True, rows_per_tick, wall_clock
        self.finite = rows is not None
        self.reader = RateReader(schema, rows_per_second)

    @property
    def numbers(self) -> int | None:
        return self._rows

    def _known(self, began: int) -> Split:
        return {"began": began}

    def __repr__(self) -> str:
        return f"rate({self.rate} per second)"
