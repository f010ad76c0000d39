"""The streams that an engine takes in: what was declared of each, where its rows come from, and who brings them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from attrs import define

from headwater.algebra.nodes import Plan
from headwater.errors import InputError
from headwater.language.catalog import Catalog, Stream
from headwater.language.system_views import comes_with
from headwater.model.schema import Schema
from headwater.runtime.core import Core
from headwater.runtime.delivery import Delivery
from headwater.runtime.feeds import Feed, PolledFeed, PushedFeed, taken_until
from headwater.runtime.loop import Loop
from headwater.runtime.reading import StreamTask
from headwater.sources.base import Source as StreamSource
from headwater.sources.memory import PushedSource


class Backend(Protocol):
    """What an engine runs on, as far as its inputs must know."""

    def feed(self, stream: str, source: StreamSource, core: Core, loop: Loop) -> Feed: ...

    def in_a_word(self, problem: BaseException) -> BaseException: ...


@define
class _Input:
    """One stream whose rows are taken."""

    task: StreamTask
    """What was declared of it, and how its rows are taken in."""
    source: StreamSource
    feed: Feed | None = None
    """None: nobody reads it yet."""


class Inputs:
    """All streams of an engine whose rows are taken, by name."""

    def __init__(self, core: Core, backend: Backend, *, every: int = 0) -> None:
        """``every``: microseconds of the wall clock between the starts of two ticks, at least."""
        self._core, self._backend = core, backend
        self.loop = Loop(core, self.polled, backend.in_a_word, every=every)
        self._known: dict[str, _Input] = {}
        core.streams.taken_until = self.taken_until
        self._asked = time.monotonic()
        """When the sources were last asked whether they have failed."""

    # -- streams come and go -----------------------------------------------------------------------------------------

    def open(self, catalog: Catalog, folder: Path) -> None:
        """Take what a catalog declares with a source; what it no longer has is forgotten. A mistake changes nothing."""
        from headwater.sources.connectors import make_source

        declared = [e for e in catalog if isinstance(e, Stream) and e.source is not None]
        new = [e for e in declared if not self._is_taken(e)]
        sources = [make_source(entry, base_folder=folder) for entry in new]
        for name in [n for n, known in self._known.items() if catalog.get(n) is not known.task.declared]:
            with self.loop.held():
                self._forget(name)
        for entry, source in zip(new, sources, strict=True):
            self.take(entry, source)

    def _is_taken(self, stream: Stream) -> bool:
        return stream.name in self._known and self._known[stream.name].task.declared is stream

    def take(self, stream: Stream, source: StreamSource, *, partition: str | None = None) -> None:
        task = StreamTask.of(stream, source, partition=partition)
        self._core.streams.add(task)
        self._known[stream.name] = _Input(task, source)

    def _forget(self, name: str) -> None:
        known = self._known.pop(name)
        if known.feed is not None:
            known.feed.stop()
        self._core.streams.drop(name)

    def pushed(self, stream: Stream, table: pa.Table, *, promise: int | None, check: bool) -> Delivery:
        """What was pushed by hand; ``check``: raise at once what is wrong with the rows, as nobody waits for the tick."""
        known = self._known.get(stream.name)
        if known is not None and not isinstance(known.source, PushedSource):
            raise InputError(
                "CANNOT_PUSH",
                f'"{stream.name}" is no stream to push into: its rows come from {known.source!r}',
                hint="Declare it without a SOURCE: CREATE STREAM name (…) ORDERED BY column.",
            )
        delivery = self._pushed_feed(stream).delivery(table, promise=promise)
        for piece in delivery.pieces if check else ():
            self._known[stream.name].task.intake.check(piece)
        return delivery

    def _pushed_feed(self, stream: Stream) -> PushedFeed:
        """Where the rows of a stream come in that somebody pushes; its clock runs from when it is first read or pushed."""
        if stream.name not in self._known:
            self.take(stream, PushedSource(Schema(())))
        known = self._known[stream.name]
        if not isinstance(known.feed, PushedFeed):
            known.feed = PushedFeed(stream.name)
        return known.feed

    # -- feeds -------------------------------------------------------------------------------------------------------

    def start(self, plan: Plan, catalog: Catalog) -> None:
        """Start the sources that a plan reads."""
        parents = {child: t.stream for t in self._core.streams.tasks.values() for child in (t.late, t.bad)}
        for name in [parents.get(name) or comes_with(catalog, name) for name in plan.streams]:
            entry, known = catalog.get(name), self._known.get(name)
            if isinstance(entry, Stream) and name not in self._core.streams.tasks and not catalog.gets_late_rows(entry):
                self._pushed_feed(entry)
            elif known is not None and known.feed is None:
                known.feed = self._new_feed(known)
                known.feed.start()

    def _new_feed(self, known: _Input) -> Feed:
        name = known.task.stream
        if isinstance(known.source, PushedSource):
            return PushedFeed(name)
        return self._backend.feed(name, known.source, self._core, self.loop)

    def stop_unused(self) -> None:
        """Stop the sources that no query reads any more."""
        used = self.read()
        for name, known in self._known.items():
            if known.feed is not None and name not in used and not isinstance(known.feed, PushedFeed):
                known.feed.stop()
                known.feed = None

    def stop(self) -> None:
        for feed in self.feeds:
            feed.stop()

    @property
    def feeds(self) -> list[Feed]:
        return [known.feed for known in list(self._known.values()) if known.feed is not None]

    def polled(self) -> list[Delivery]:
        """What is new in sources that must be asked."""
        found = [feed.poll() for feed in self.feeds if isinstance(feed, PolledFeed)]
        return [delivery for delivery in found if delivery is not None]

    def taken_until(self) -> dict[str, int]:
        fed = {name: known.feed for name, known in list(self._known.items()) if known.feed is not None}
        return taken_until(list(self._core.streams.tasks), fed, self.loop.looked_at)

    def drain(self) -> None:
        """Wait until everything is answered that the sources have now. Raises what fails meanwhile."""
        with self.loop.held():
            for feed in self.feeds:
                feed.look_again()
        with self.loop.hurried():
            for feed in self.feeds:
                while not feed.is_drained():
                    self.loop.raise_failure()
                    self.loop.pause()
            self.loop.settle()
        self.loop.raise_failure()

    def raise_failure(self) -> None:
        """What stops everything: a tick that failed, or a source."""
        self.loop.raise_failure()
        if time.monotonic() - self._asked > 1:  # asking Spark has a price
            self._asked = time.monotonic()
            for problem in (feed.failure() for feed in self.feeds):
                if problem is not None:
                    raise problem

    # -- what they are -----------------------------------------------------------------------------------------------

    @property
    def finite(self) -> bool:
        """Will all sources that are read end by themselves?"""
        fed = [known for known in self._known.values() if known.feed is not None]
        return bool(fed) and all(known.source.finite for known in fed)

    def figures(self, stream: str) -> Mapping[str, float]:
        """What the source of a stream says of its rows before they are read."""
        known = self._known.get(stream)
        return {} if known is None else known.source.figures(known.task.intake.time)

    def expected_rows(self) -> int | None:
        """About how many rows the sources that are read have; None: nobody knows."""
        expected = [known.source.expected_rows() for known in self._known.values() if known.feed is not None]
        return sum(rows or 0 for rows in expected) if all(rows is not None for rows in expected) else None

    def taken(self) -> list[tuple[StreamSource, StreamTask]]:
        """Every stream: its source, and how its rows are taken in."""
        return [(known.source, known.task) for known in self._known.values()]

    def read(self) -> set[str]:
        """What queries read, and the streams whose late or malformed rows they read."""
        read = self._core.deployment.layout.graph.read
        return read | {t.stream for t in self._core.streams.tasks.values() if {t.late, t.bad} & read}
