"""From what is committed to the job of the next tick, and from what it brought to the next manifest."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from attrs import frozen

from headwater.errors import StreamError
from headwater.language.system_views import SYSTEM_VIEWS, Known
from headwater.model.delta import Delta
from headwater.model.time import INFINITY
from headwater.runtime.checkpoint import Manifest
from headwater.runtime.committed import Committed
from headwater.runtime.delivery import Delivery
from headwater.runtime.deployment import Deployment
from headwater.runtime.executor import Sent, TickJob, TickResult
from headwater.runtime.measured import measured_after
from headwater.runtime.queries import Queries
from headwater.runtime.reading import take_in
from headwater.runtime.reshard import reshard
from headwater.runtime.sender import SenderOutput
from headwater.runtime.stage import Records
from headwater.runtime.streams import Streams
from headwater.runtime.system_views import Shown, view_changes
from headwater.runtime.tick import STEP_BYTES, Tick
from headwater.runtime.views.metrics import with_counts_of

log = logging.getLogger("headwater")


@frozen
class Prepared:
    """The job of a tick, and what system views show once it is done."""

    job: TickJob
    shown: Shown


class TickMaker:
    """Makes jobs, and the manifests of what they brought."""

    def __init__(
        self, committed: Committed, deployment: Deployment, queries: Queries, streams: Streams, *, shards: int
    ) -> None:
        self._committed, self._deployment, self._queries, self._streams = committed, deployment, queries, streams
        self._shards, self.step_bytes = shards, STEP_BYTES

    def move_shards(self) -> bool:
        """After a restart with another number of shards, the state moves first. Does it?"""
        kept, store = self._committed.manifest, self._committed.store
        moves = kept.shards != self._shards
        if moves and kept.records and store is not None:
            kept.records = reshard(self._deployment.layout, kept.records, self._shards, store)
        kept.shards = self._shards
        return moves

    def prepare(self, ended: frozenset[str]) -> Prepared:
        """The next tick. What the driver brings by itself: the changes of system views."""
        kept, streams = self._committed.manifest, self._streams
        now = streams.wall.stamp()
        changes, shown = view_changes(self._views_read(), Known(streams.times.clock, kept.counts), kept.shown, now)
        frontiers = {s: f for s, f in kept.frontiers.items() if s not in streams.tasks} | dict.fromkeys(changes, now)
        tick = Tick(
            kept.tick + 1,
            self._shards,
            streams.times.clock,
            frontiers,
            dict(kept.newest),
            streams.follows(),
            ended,
            now=now,
            drained=streams.taken_until(),
            together=self._deployment.together,
            newest_before=streams.newest_before(now),
            step_bytes=self.step_bytes,
        )
        return Prepared(self._job(tick, changes), shown)

    def _job(self, tick: Tick, given: Mapping[str, Delta]) -> TickJob:
        place, deployment, records = self._committed.checkpoint, self._deployment, self._committed.manifest.records
        return TickJob(
            tick,
            deployment.layout,
            records,
            deployment.stagers,
            place.segments if place else None,
            place.staging(tick.number) if place else "",
            given,
            deployment.new_constants(records),
            tasks=self._streams.tasks,
            queries=tuple(deployment),
            node_of=deployment.node_of,
            exchange=place.exchange if place else None,
        )

    def _views_read(self) -> set[str]:
        """System views that queries read; a stream of a user may have the same name."""
        read = self._deployment.layout.graph.sources
        return {name for name in read if name in SYSTEM_VIEWS} - self._streams.tasks.keys()

    def manifest(self, prepared: Prepared, result: TickResult, deliveries: Sequence[Delivery]) -> Manifest:
        """Of the tick that has brought this."""
        job, kept = prepared.job, self._committed.manifest
        batches = {d.stream: {"batch": d.batch, "offset": d.offset} for d in deliveries if d.batch is not None}
        return Manifest(
            job.tick.number,
            self._shards,
            self._records(job, result),
            self._streams.times.to_manifest(result.progress.clock),
            {s: f for s, f in result.progress.frontiers.items() if s in job.tick.given},
            result.progress.newest,
            kept.batches | batches,
            self._queries.to_manifest(),
            result.staged,
            result.diverted,
            with_counts_of(kept.counts, {"rows": result.rows, "late": result.late, "bad": result.bad}),
            kept.origin,
            prepared.shown,
            self._deployment.relations_as_text(),
            self._deployment.described(self._streams.tasks),
            measured_after(kept.measured, kept.newest, job, result),
        )

    def _records(self, job: TickJob, result: TickResult) -> Records:
        kept, live = self._committed.manifest.records, {node.key for node in job.layout.graph.nodes}
        records: Records = {
            shard: {k: r for k, r in (kept.get(shard, {}) | result.records.get(shard, {})).items() if k in live}
            for shard in range(self._shards)
        }
        for key in job.constants:
            records[0][key] = {"version": "", "heard": [], "promised": INFINITY, "rows": 0, "bytes": 0, "state": None}
        return records


def take_pushed(job: TickJob, deliveries: Sequence[Delivery]) -> list[Sent]:
    """What was pushed by hand. Malformed rows are the mistake of whoever pushed them, who hears of it: nothing of that push
    is taken, and everybody else goes on."""
    taken: list[Sent] = []
    for delivery in deliveries:
        task, noted = job.tasks[delivery.stream], SenderOutput()
        try:
            taken.append((take_in(task, delivery.pieces, job.tick, job.layout, job.staging, noted), noted))
        except StreamError as problem:
            if problem.code == "LATE_ROW":  # LATE ROWS ERROR asks for the end of everything
                raise
            log.warning("a push was refused: %s", problem)
            delivery.finish(problem)
    return taken
