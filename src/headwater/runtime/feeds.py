"""How batches of a stream come without Spark: asked for, or pushed by hand."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from headwater.model.time import BEGINNING, INFINITY
from headwater.runtime.core import Core, Delivery
from headwater.sources.base import Piece, Source

ROWS_A_TICK = 5_000_000
"""However far behind, a tick takes at most about so many rows of a source."""


class Feed(Protocol):
    """Brings the batches of one stream."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def look_again(self) -> None:
        """What is there now counts as well. Only while no tick runs."""
        ...

    def drained(self) -> bool:
        """Has everything been committed that was there when it was told to look again?"""
        ...

    def taken_until(self) -> int:
        """An instant of the wall clock: all that had arrived by then is committed, or part of the tick that begins now."""
        ...


class PolledFeed:
    """Asks a source for what is new. The engine keeps the offset, in the manifest."""

    def __init__(self, stream: str, source: Source, core: Core) -> None:
        self._stream, self._source, self._core = stream, source, core
        self._rows = getattr(source, "rows_per_tick", ROWS_A_TICK)
        self._empty = self._finished = False
        self._running = False
        self._beginning: Any = None
        self._taken_until = BEGINNING

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False

    def look_again(self) -> None:
        self._empty = False

    def drained(self) -> bool:
        return self._finished or (self._empty and not self._source.finite)

    def taken_until(self) -> int:
        return self._taken_until

    def poll(self) -> Delivery | None:
        if not self._running or self._finished:
            return None
        kept: dict[str, Any] = self._core.manifest.batches.get(self._stream, {})
        offset = kept.get("offset", self._beginning)
        asked = self._core.wall.now()
        found = self._source.poll(offset, self._rows)
        if offset is None and not found.splits:
            # A paced source counts from when it was first asked, which is before it has anything.
            self._beginning = found.offset
        self._empty = not found.splits
        if self._empty:
            self._taken_until = asked
        self._finished = found.finished and not found.splits
        if not found.splits:
            return None
        number = (kept.get("batch") or 0) + 1
        sizes = [self._source.split_rows(split) for split in found.splits]
        size = sum(s or 0 for s in sizes) if all(s is not None for s in sizes) else None
        return Delivery(self._stream, number, found.offset, self._source.cut(found.splits), size=size)


class PushedFeed:
    """Rows come when somebody pushes them."""

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def look_again(self) -> None: ...

    def drained(self) -> bool:
        return True

    def taken_until(self) -> int:
        """What is pushed waits for the next tick, whose stamp is later than its arrival."""
        return INFINITY

    def delivery(self, table: pa.Table, *, promise: int | None = None) -> Delivery:
        """The rows, and perhaps the word that nothing before an instant comes any more; it may come alone."""
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        return Delivery(self._stream, pieces=[Piece(b, promise=promise) for b in batches], size=table.num_rows)
