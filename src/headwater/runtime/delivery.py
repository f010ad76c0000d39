"""What a source hands over to the engine.

There are three routes from there, and an executor chooses: *read splits* (a task or the driver reads what the source has
named), *take rows* (somebody has them already: they were pushed, or Spark reads them), and *answer natively* (Spark reads,
computes and writes, and no row enters Python). Whatever comes by the first two goes through the same intake.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from attrs import Factory, define

from headwater.sources.base import Piece, Source, Split


@define(eq=False)
class Delivery:
    """What a source hands over: one batch of one stream."""

    stream: str
    batch: int | None = None
    """The source's number for it; None: it has none, and cannot come twice."""
    offset: Any = None
    """Where the source goes on after it, if the engine keeps that for it."""
    splits: Sequence[Split] = ()
    """As coarse as the source has named them."""
    source: Source | None = None
    """Who has named the splits."""
    pieces: Sequence[Piece] = ()
    """Rows that were pushed."""
    size: int | None = None
    """How many rows it has, if that is known."""
    urgent: bool = False
    """Does somebody wait for its tick? Then that is not put off to let more rows come."""
    done: threading.Event = Factory(threading.Event)
    error: BaseException | None = None

    @property
    def cut(self) -> Sequence[Split]:
        """Finer splits of the same rows, so that several tasks share what is large."""
        return self.splits if self.source is None else self.source.cut(self.splits)

    def finish(self, error: BaseException | None = None) -> None:
        """The first word counts: what was refused by itself stays refused when the rest of its tick is done."""
        if not self.done.is_set():
            self.error = error
            self.done.set()
