"""The engine's core: runs ticks, commits them, delivers them. It knows neither SQL nor where batches come from.

The order within a tick is what makes it exactly once: run, commit the manifest, deliver to the sinks, let the sources go on.
A crash before the commit leaves garbage, and the sources bring the same batches again; a crash after it leaves answers to
deliver again under the same number.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve

from headwater.clock.times import Times
from headwater.clock.wall import WallClock
from headwater.errors import HeadwaterError
from headwater.model.time import INFINITY
from headwater.runtime import points
from headwater.runtime.checkpoint import Manifest
from headwater.runtime.committed import Committed
from headwater.runtime.delivery import Delivery
from headwater.runtime.deployment import Deployment
from headwater.runtime.executor import Executor, LocalExecutor, TickResult
from headwater.runtime.queries import Queries
from headwater.runtime.streams import Streams
from headwater.runtime.tick_making import TickMaker, take_pushed
from headwater.runtime.views.metrics import Metrics
from headwater.runtime.views.picture import Picture, QueryPicture
from headwater.runtime.views.progress import TickLog

_GO_ON_FROM_BEFORE = (
    "Nothing of this tick is committed. To go on from before it, connect with the checkpoint again, DROP QUERY of that name,"
    " start it as it should be, and the others as they were."
)
_BEGIN_AGAIN = (
    "The engine has stopped, and nothing of this tick is answered: begin again with the query as it should be, or without"
    " it. With a checkpoint the others would go on from before it."
)


class Core:
    """Everything between the sources' batches and the sinks."""

    def __init__(
        self,
        *,
        shards: int,
        checkpoint: str | Path | None = None,
        executor: Executor | None = None,
        durable: bool = True,
        keep: int = 3,
        sync: bool = False,
        wall: WallClock | None = None,
    ) -> None:
        self.executor, self.deployment = executor or LocalExecutor(), Deployment()
        self.committed = Committed(checkpoint, shards=shards, durable=durable, keep=keep, sync=sync)
        self.streams = Streams(self.committed, self.deployment, wall)
        self.queries = Queries(self.committed, self.deployment, self.executor)
        self.ticks = TickMaker(self.committed, self.deployment, self.queries, self.streams, shards=shards)
        self.metrics, self._log = Metrics(), TickLog()

    @property
    def manifest(self) -> Manifest:
        """Of the last tick."""
        return self.committed.manifest

    @property
    def times(self) -> Times:
        return self.streams.times

    @property
    def wall(self) -> WallClock:
        return self.streams.wall

    @property
    def awaited(self) -> tuple[str, ...]:
        """Queries of the checkpoint that must be started again, or dropped, before anything runs."""
        return self.queries.awaited

    def tick(
        self, deliveries: Sequence[Delivery] = (), *, ended: Iterable[str] = (), idle: bool = False
    ) -> TickResult | None:
        """One tick over all batches that wait. None if there is nothing to do; ``idle``: let time pass all the same."""
        committed = self.committed
        with committed.lock, _saying_how_to_go_on(kept=committed.checkpoint is not None):
            began, ended = time.time(), frozenset(ended)
            fresh = [d for d in deliveries if d.stream in self.streams.tasks and not committed.covers(d)]
            if not idle and not fresh and self._is_ended(ended):
                return None
            moved = self.ticks.move_shards()
            prepared = self.ticks.prepare(ended)
            points.passed(points.BEFORE_THE_JOB)
            pushed = take_pushed(prepared.job, [d for d in fresh if d.pieces])
            if fresh and not (idle or ended) and all(d.done.is_set() for d in fresh):
                return None
            job = evolve(prepared.job, pushed=pushed)
            result = self.executor.run(job, [d for d in fresh if not d.pieces])
            points.passed(points.AFTER_THE_SEGMENTS)
            ran = time.time()
            self.queries.advance(result)
            manifest = self.ticks.manifest(prepared, result, fresh)
            points.passed(points.BEFORE_THE_MANIFEST)
            committed.commit(manifest)
            self.streams.ticked(job.tick, result.progress.clock)
            points.passed(points.AFTER_THE_MANIFEST)
            kept = time.time()
            self.queries.deliver(self.wall.now())
            points.passed(points.BEFORE_THE_DIVERTED)
            committed.deliver_diverted()
            points.passed(points.AFTER_THE_SINKS)
            committed.tidy(sweep=moved)
            result.phases |= {"commit": kept - ran, "deliver": time.time() - kept}
            self._log.note(self.metrics.record(manifest, result, began), self.picture)
            self._log.tell_missing(result.missing)
            return result

    def deliver_due(self) -> None:
        """Let go out together what has waited until its sink's interval was over."""
        self.queries.deliver_together(self.wall.now())

    def is_due(self) -> bool:
        """Would a tick without rows bring anything, because time has passed (digest 12.2: a wake-up is a full tick)?"""
        with self.committed.lock:
            return self.deployment.has_newcomers(self.manifest.records) or self.streams.would_move()

    def _is_ended(self, streams: frozenset[str]) -> bool:
        """Are these streams at their end already, and has everybody heard of it?"""
        heard = (query.frontier == INFINITY for query in self.deployment)
        return self.streams.are_ended(streams) and (not streams or all(heard))

    def picture(self) -> Picture:
        """How everything is now; also while a tick runs."""
        manifest, queries = self.manifest, {query.name: QueryPicture.of(query) for query in list(self.deployment)}
        units = manifest.described.get("queries", {})
        kept = {name: manifest.queries[name] for name in self.awaited if name in manifest.queries}
        awaited = {name: QueryPicture.kept(name, of, timestamps=units.get(name, True)) for name, of in kept.items()}
        graph, clock = self.deployment.layout.graph, self.times.clock
        tasks = list(self.streams.tasks.items())
        streams = {name: task.timestamps for name, task in tasks if name in clock.progress}
        counted = (manifest.tick, manifest.records, manifest.counts, manifest.newest)
        return Picture(*counted, streams, clock, graph, queries, awaited, self.metrics.copy())

    def close(self, *, deliver: bool = True) -> None:
        """``deliver``: also answers that wait for the end of an interval."""
        with self.committed.lock:
            try:
                self.queries.close(deliver=deliver)
            finally:
                self.committed.close()


@contextmanager
def _saying_how_to_go_on(*, kept: bool) -> Iterator[None]:
    """Around a tick. When an expression of one query fails, all stop: they share operators and time.

    ``kept``: is there a checkpoint?
    """
    try:
        yield
    except HeadwaterError as problem:
        if problem.code != "EXPRESSION_FAILED":
            raise
        raise problem.hinting(_GO_ON_FROM_BEFORE if kept else _BEGIN_AGAIN) from problem.__cause__
