"""The streams that an engine takes in: what was declared of each, where its rows come from, and who brings them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from attrs import define

from headwater.algebra.nodes import Plan, Source
from headwater.backends.spark.native_parts import is_stateless
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

if TYPE_CHECKING:
    from headwater.backends.spark.session import SessionHandle


@define
class _Input:
    """One stream whose rows are taken."""

    declared: Stream
    """Another one of the same name is another stream."""
    source: StreamSource
    feed: Feed | None = None
    """None: nobody reads it yet."""


class Inputs:
    """All streams of an engine whose rows are taken, by name."""

    def __init__(self, core: Core, session: SessionHandle | None) -> None:
        self._core, self._session = core, session
        self.loop = Loop(core, self.polled)
        self._known: dict[str, _Input] = {}

    # -- streams come and go -----------------------------------------------------------------------------------------

    def open(self, catalog: Catalog, folder: Path) -> None:
        """Take what a catalog declares with a source; what it no longer has is forgotten. A mistake changes nothing."""
        from headwater.sources.connectors import make_source

        declared = [e for e in catalog if isinstance(e, Stream) and e.source is not None]
        new = [e for e in declared if not self._is_taken(e)]
        sources = [make_source(entry, base_folder=folder) for entry in new]
        for name in [n for n, known in self._known.items() if catalog.get(n) is not known.declared]:
            with self.loop.held():
                self._forget(name)
        for entry, source in zip(new, sources, strict=True):
            self.take(entry, source)

    def _is_taken(self, stream: Stream) -> bool:
        return stream.name in self._known and self._known[stream.name].declared is stream

    def take(self, stream: Stream, source: StreamSource, *, partition: str | None = None) -> None:
        self._known[stream.name] = _Input(stream, source)
        self._core.add_stream(StreamTask.of(stream, source, partition=partition))

    def _forget(self, name: str) -> None:
        known = self._known.pop(name)
        if known.feed is not None:
            known.feed.stop()
        self._core.drop_stream(name)

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
            self._core.streams[stream.name].intake.check(piece)
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
        parents = {child: t.stream for t in self._core.streams.values() for child in (t.late, t.bad)}
        read = [node.name for node in plan.walk() if isinstance(node, Source)]
        for name in [parents.get(name) or comes_with(catalog, name) for name in read]:
            entry, known = catalog.get(name), self._known.get(name)
            if isinstance(entry, Stream) and name not in self._core.streams and not catalog.gets_late_rows(entry):
                self._pushed_feed(entry)
            elif known is not None and known.feed is None:
                known.feed = self._new_feed(known)
                known.feed.start()

    def _new_feed(self, known: _Input) -> Feed:
        name = known.declared.name
        if isinstance(known.source, PushedSource):
            return PushedFeed(name)
        frame = None if self._session is None else known.source.rows(self._session.spark)
        if self._session is None or frame is None:
            return PolledFeed(name, known.source, self._core, self._session)
        from headwater.backends.spark.feed import SparkFeed

        return SparkFeed(name, frame, self._session, self._core, self.loop)

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
        return taken_until(list(self._core.streams), fed, self.loop.looked_at)

    def failures(self) -> Iterator[BaseException]:
        """Why sources have failed."""
        asked = (feed.failure() for feed in self.feeds if hasattr(feed, "failure"))
        return (problem for problem in asked if problem is not None)

    # -- what they are -----------------------------------------------------------------------------------------------

    @property
    def finite(self) -> bool:
        """Will all sources that are read end by themselves?"""
        fed = [known for known in self._known.values() if known.feed is not None]
        return bool(fed) and all(known.source.finite for known in fed)

    def expected_rows(self) -> int | None:
        """About how many rows the sources that are read have; None: nobody knows."""
        expected = [known.source.expected_rows() for known in self._known.values() if known.feed is not None]
        return sum(rows or 0 for rows in expected) if all(rows is not None for rows in expected) else None

    def spark_streams(self, plan: Plan) -> list[str]:
        """Streams with whose rows Spark can compute by itself, for this plan."""
        files = self._plain(k for k in self._known.values() if k.source.suits_spark)
        whole = self._session is not None and is_stateless(plan)
        return [*self.row_streams(), *(files if whole else [])]

    def row_streams(self) -> list[str]:
        """Streams whose rows Spark has as rows of their columns, so that it can compute with them."""
        if self._session is None:
            return []
        rows = (k for k in self._known.values() if k.source.reader is None and k.source.parser is None)
        return self._plain(k for k in rows if not isinstance(k.source, PushedSource))

    def _plain(self, found: Iterable[_Input]) -> list[str]:
        names = [known.declared.name for known in found]
        return [n for n in names if n in self._core.streams and self._core.streams[n].intake.is_plain]

    def read(self) -> set[str]:
        """What queries read, and the streams whose late or malformed rows they read."""
        read = self._core.deployment.layout.graph.read
        return read | {t.stream for t in self._core.streams.values() if {t.late, t.bad} & read}
