"""How batches of a stream come that no Spark query brings: asked for, or pushed by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, Protocol

import pyarrow as pa

from headwater.errors import StateError
from headwater.model.time import BEGINNING, INFINITY
from headwater.runtime.core import Core
from headwater.runtime.delivery import Delivery
from headwater.sources.base import Piece, Source
from headwater.sources.malformed import PUSHED

ROWS_A_TICK = 5_000_000
"""However far behind, a tick takes at most about so many rows of a source."""


class Feed(Protocol):
    """Brings the batches of one stream."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def look_again(self) -> None:
        """What is there now counts as well. Only while no tick runs."""
        ...

    def is_drained(self) -> bool:
        """Has everything been committed that was there when it was told to look again?"""
        ...

    def taken_until(self) -> int:
        """An instant of the wall clock: all that had arrived by then is committed, or part of the tick that begins now."""
        ...

    def failure(self) -> BaseException | None:
        """Why it brings nothing any more, if it failed by itself."""
        ...


def taken_until(streams: Iterable[str], feeds: Mapping[str, Feed], looked_at: int) -> dict[str, int]:
    """By stream: the instant by which all that had arrived was taken; of what is handed over, by the loop's last look.

    Of streams that nobody reads nothing is taken: what they have waits for whoever reads them later.
    """
    return {n: min(feeds[n].taken_until(), looked_at) if n in feeds else BEGINNING for n in streams}


class PolledFeed:
    """Asks a source for what is new, on Spark too. The engine keeps the offset, in the manifest."""

    def __init__(self, stream: str, source: Source, core: Core) -> None:
        self._stream, self._source, self._core = stream, source, core
        self._rows = getattr(source, "rows_per_tick", ROWS_A_TICK)
        self._empty = self._finished = False
        self._running = False
        self._beginning: Any = None
        self._taken_until = BEGINNING
        if core.committed.store is not None:
            source.remember_in(core.committed.store)

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False

    def look_again(self) -> None:
        self._empty = False
        self._source.look_again()

    def is_drained(self) -> bool:
        return self._finished or (self._empty and not self._source.finite)

    def taken_until(self) -> int:
        return self._taken_until

    def failure(self) -> BaseException | None:
        return None  # whoever asks it hears of that

    def poll(self) -> Delivery | None:
        if not self._running or self._finished:
            return None
        kept: dict[str, Any] = self._core.manifest.batches.get(self._stream, {})
        offset = kept.get("offset", self._beginning)
        if kept and offset is None:  # it would begin again, and bring what is in the answers already
            raise StateError(
                "OTHER_SOURCE",
                f'the checkpoint has read stream "{self._stream}" by a query of Spark\'s, and cannot tell how far that is',
                hint="Give the stream another name, drop it first, or begin with an empty checkpoint.",
            )
        asked = self._core.wall.now()
        found = self._source.poll(offset, self._rows)
        if offset is None and not found.splits:
            # A paced source counts from when it was first asked, which is before it has anything.
            self._beginning = found.offset
        if not found.looked:
            return None
        self._empty = not found.splits
        if self._empty:
            self._taken_until = asked
        self._finished = found.finished and not found.splits
        if not found.splits:
            return None
        number = (kept.get("batch") or 0) + 1
        sizes = [self._source.split_rows(split) for split in found.splits]
        size = sum(s or 0 for s in sizes) if all(s is not None for s in sizes) else None
        return Delivery(self._stream, number, found.offset, found.splits, self._source, size=size)


class PushedFeed:
    """Rows come when somebody pushes them."""

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def look_again(self) -> None: ...

    def is_drained(self) -> bool:
        return True

    def taken_until(self) -> int:
        """What is pushed waits for the next tick, whose stamp is later than its arrival."""
        return INFINITY

    def failure(self) -> BaseException | None:
        return None

    def delivery(self, table: pa.Table, *, promise: int | None = None) -> Delivery:
        """The rows, and perhaps the word that nothing before an instant comes any more; it may come alone."""
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        firsts = accumulate((b.num_rows for b in batches), initial=1)
        pieces = [Piece(b, where=PUSHED, promise=promise, first=n) for b, n in zip(batches, firsts, strict=False)]
        return Delivery(self._stream, pieces=pieces, size=table.num_rows)
