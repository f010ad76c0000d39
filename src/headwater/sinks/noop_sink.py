"""Nowhere: counts rows and drops them, to measure a query alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headwater.model.delta import Delta
from headwater.sinks.base import Output, Sink, Staged, Stager
from headwater.sinks.parts import count_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class CountingStager(Stager):
    """Stages nothing but how many rows there were."""

    def stage(self, tick: int, shard: int, delta: Delta, folder: str) -> Staged:
        return Staged(count_changes(delta))


class NoopSink(Sink):
    """``rows`` and ``ticks`` since it was opened; a tick counts once."""

    takes_changes = True

    def __init__(self) -> None:
        self.rows = self.ticks = 0
        self.frontier: int | None = None
        self._last = -1

    def open(self, output: Output) -> None:
        super().open(output)
        self.rows = self.ticks = 0
        self._last = -1

    def stager(self) -> Stager:
        return CountingStager()

    takes_frames = True

    def stage_frame(self, frame: DataFrame, tick: int, folder: str) -> list[str]:
        frame.write.format("noop").mode("overwrite").save()
        return []

    def deliver(self, tick: int, parts: Sequence[Staged], frontier: int) -> None:
        if tick <= self._last:
            return
        self._last, self.frontier = tick, frontier
        self.ticks += 1
        self.rows += sum(part.rows for part in parts)
