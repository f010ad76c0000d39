"""What a source hands over to the engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import Factory, define

from headwater.sources.base import Piece, SparkBatch, Split

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@define(eq=False)
class Delivery:
    """What a source hands over: one batch of one stream."""

    stream: str
    batch: int | None = None
    """The source's number for it; None: it has none, and cannot come twice."""
    offset: Any = None
    """Where the source goes on after it, if the engine keeps that for it."""
    splits: Sequence[Split] = ()
    rows: DataFrame | None = None
    pieces: Sequence[Piece] = ()
    size: int | None = None
    """How many rows it has, if that is known."""
    native: Callable[[str], SparkBatch | None] | None = None
    """By the time column: the rows of the splits as Spark reads them by itself, if it can."""
    done: threading.Event = Factory(threading.Event)
    error: BaseException | None = None

    def finish(self, error: BaseException | None = None) -> None:
        """The first word counts: what was refused by itself stays refused when the rest of its tick is done."""
        if not self.done.is_set():
            self.error = error
            self.done.set()
