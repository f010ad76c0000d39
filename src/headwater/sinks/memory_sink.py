"""An answer kept in memory, to be asked while the query runs: what holds now, what held then.

What came in one tick is one chunk of columns. Chunks of about the same size are merged, and what cancels goes, so there
are only ever as many as the logarithm of the rows; readers work on the chunks as they were when they began.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen

from headwater.errors import InputError
from headwater.language.emission import ON_CLOSE, ON_START, Form
from headwater.model.delta import Delta
from headwater.model.durations import instants_in
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.result import Result
from headwater.sinks.base import Guarantee, Output, Sink, Staged, Stager
from headwater.sinks.parts import DeltaStager, batches
from headwater.sinks.tables import check_names, final_rows, instant_of, render_instant


@frozen
class _Kept:
    """What is known after a tick; replaced as a whole, so that readers need no lock."""

    chunks: tuple[Delta, ...] = ()
    frontier: int = BEGINNING
    newest: int = BEGINNING
    """The largest start that came."""


class MemorySink(Sink):
    """Keeps the rows of an answer with their lifetimes, in the driver.

    A tick that is delivered twice is kept once. The rows live as long as the process: after a restart the sink begins with
    what is delivered from then on.

    Parameters
    ----------
    keep
        How much of the past to keep, in application time: rows that ended longer ago are forgotten. None keeps everything.
    """

    guarantee = Guarantee.EXACTLY_ONCE

    takes_changes = True
    emission = ON_START

    def __init__(self, *, keep: str | timedelta | int | None = None) -> None:
        self._wanted = keep
        self._keep: int | None = None
        self._kept = _Kept()
        self._last = -1
        self._writing = threading.Lock()

    def open(self, output: Output) -> None:
        super().open(output)
        wanted = self._wanted
        self._keep = None if wanted is None else instants_in(wanted, timestamps=output.timestamps, what="keep")
        # What a tick takes back may have been forgotten; rows are shown as final ones whatever they were.
        self._shown = evolve(output, speculative=False, emission=ON_CLOSE)
        check_names(output if output.speculative else self._shown)
        self._kept, self._last = _Kept(), -1

    def stager(self) -> Stager:
        return DeltaStager()

    def deliver(self, tick: int, parts: Sequence[Staged], frontier: int) -> None:
        with self._writing:
            if tick <= self._last:
                return
            kept = self._kept
            delta = self._read(parts)
            chunks = (*kept.chunks, delta) if len(delta) else kept.chunks
            kept = evolve(
                kept,
                frontier=max(kept.frontier, frontier),
                newest=max(kept.newest, delta.largest_start()),
            )
            self._kept = evolve(kept, chunks=self._merged(chunks, self._horizon(kept)))
            self._last = tick

    def _read(self, parts: Sequence[Staged]) -> Delta:
        # Copied out of the mapped files: these are deleted, and their space should be free then.
        deltas = [_copied(Delta.from_batch(batch), self.output.schema) for batch in batches(parts)]
        return Delta.concat(self.output.schema, deltas)

    # -- asking -----------------------------------------------------------------------------------------------------

    @property
    def latest(self) -> int | None:
        """The latest instant that can be asked for: the last final one, or of a speculative answer the last known one.

        When the input has ended, everything is final: then it is the last instant at which a row begins.
        """
        return self._latest(self._kept)

    def snapshot(self, at: Any = None) -> Result:
        """The rows that are valid at an instant, by default at the latest: what a database would answer then."""
        self._check_open()
        kept = self._kept
        instant = self._latest(kept) if at is None else instant_of(self.output, at)
        if instant is None:
            return Result(
                self._rows(Delta.empty(self.output.schema)).select(list(self.output.schema.names)), spark=self.spark
            )
        if at is not None:
            self._check_known(kept, instant, at)
        valid = [c.filter((c.start <= instant) & (c.end > instant)) for c in kept.chunks]
        return Result(self._rows(self._summed(valid)).select(list(self.output.schema.names)), spark=self.spark)

    def history(self) -> Result:
        """When each row held, as far as it is kept: maximal intervals ``_start``, ``_end`` (or NULL), one row per copy.

        In the order of time.
        """
        delta = self._all()
        rows = self._rows(History.of(delta.schema, [delta]).delta())
        return Result(rows.sort_by([("_start", "ascending"), ("_end", "ascending")]), spark=self.spark)

    def table(self) -> pa.Table:
        """All rows that are kept as they were delivered, repairs applied, with their lifetimes."""
        return self._rows(self._all())

    def _all(self) -> Delta:
        self._check_open()
        kept = self._kept
        horizon = self._horizon(kept)
        return self._summed([_alive(c, horizon) for c in kept.chunks])

    def __len__(self) -> int:
        """How many rows are kept, some perhaps of those that cancel or may be forgotten."""
        return sum(map(len, self._kept.chunks))

    def _latest(self, kept: _Kept) -> int | None:
        final = kept.frontier - 1 if BEGINNING < kept.frontier < INFINITY else BEGINNING
        if kept.frontier == INFINITY or self.output.early:
            final = max(final, kept.newest)
        return None if final == BEGINNING else final

    def _check_open(self) -> None:
        if not hasattr(self, "output"):
            raise InputError(
                "SINK_NOT_OPEN", "no query writes into this memory yet", hint="Start one: query.start(sink)."
            )

    def _check_known(self, kept: _Kept, instant: int, at: Any) -> None:
        if not self.output.early and instant >= kept.frontier:
            raise self._not_final(kept.frontier, at)
        horizon = self._horizon(kept)
        if horizon is not None and instant < horizon:
            raise InputError(
                "FORGOTTEN",
                f'the answer of "{self.output.query}" at {at} is forgotten',
                detail=f"It is kept from {self._rendered(horizon)} on.",
                hint="Keep more of the past: memory(keep=…).",
            )

    def _not_final(self, frontier: int, at: Any) -> InputError:
        before, query = self._rendered(frontier), self.output.query
        if self.output.emission.form is Form.CLOSE:  # the answer may be known, but has not come
            return InputError(
                "NOT_FINAL",
                f'the answer of "{query}" at {at} is not here yet: its rows come when they have an end (EMIT ON CLOSE)',
                detail=f"All that began before {before} has come.",
                hint="Ask for an earlier instant, or write EMIT ON START to see what is known at once.",
            )
        return InputError(
            "NOT_FINAL",
            f'the answer of "{query}" at {at} is not final yet',
            detail=f"It is final before {before}.",
            hint="Ask for an earlier instant, or write CONSISTENCY MIDDLE to see answers before they are final.",
        )

    def _rendered(self, instant: int) -> str:
        return "the beginning" if instant == BEGINNING else render_instant(self.output, instant)

    def _summed(self, chunks: Sequence[Delta]) -> Delta:
        delta = Delta.concat(self.output.schema, chunks).consolidate()
        return delta.filter(delta.weight > 0)

    def _rows(self, delta: Delta) -> pa.Table:
        return final_rows(self._shown, delta, any_year=True)

    # -- forgetting -------------------------------------------------------------------------------------------------

    def _horizon(self, kept: _Kept) -> int | None:
        """Rows that end here or before are forgotten."""
        latest = self._latest(kept)
        return None if self._keep is None or latest is None else latest - self._keep

    def _merged(self, chunks: tuple[Delta, ...], horizon: int | None) -> tuple[Delta, ...]:
        """Merge from the newest on while a chunk is not much larger than what follows it; drop those that are all past."""
        if horizon is not None:
            chunks = tuple(c for c in chunks if c.end.max() > horizon)
        while len(chunks) > 1 and len(chunks[-2]) <= 2 * len(chunks[-1]):
            together = Delta.concat(self.output.schema, [_alive(c, horizon) for c in chunks[-2:]]).consolidate()
            chunks = (*chunks[:-2], together) if len(together) else chunks[:-2]
        return chunks


def _alive(delta: Delta, horizon: int | None) -> Delta:
    return delta if horizon is None else delta.filter(delta.end > horizon)


def _copied(delta: Delta, schema: Schema) -> Delta:
    columns = [pa.concat_arrays([c, c.slice(0, 0)]) for c in delta.columns]
    wide = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, schema, strict=True)]
    return Delta(schema, wide, delta.start.copy(), delta.end.copy(), delta.weight.copy())
