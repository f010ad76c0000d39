"""The engine's core: runs ticks, commits them, delivers them. It knows neither SQL nor where batches come from.

The order within a tick is what makes it exactly once: run, commit the manifest, deliver to the sinks, let the sources go on.
A crash before the commit leaves garbage, and the sources bring the same batches again; a crash after it leaves answers to
deliver again under the same number.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from headwater.clock.times import Times
from headwater.clock.wall import SystemClock, WallClock
from headwater.errors import StreamError
from headwater.language.catalog import Stream
from headwater.language.consistency import STRONG, Consistency
from headwater.language.emission import Emission
from headwater.language.system_views import HEARTBEATS, SYSTEM_VIEWS
from headwater.model.delta import Delta
from headwater.model.time import BEGINNING, INFINITY
from headwater.runtime import points
from headwater.runtime.change_level import check_change, check_form, with_carried
from headwater.runtime.changed_relation import check_time, redeclare
from headwater.runtime.checkpoint import Checkpoint, Manifest
from headwater.runtime.delivery import Delivery
from headwater.runtime.deployment import Deployment, Running
from headwater.runtime.executor import LocalExecutor, Records, TickJob, TickResult
from headwater.runtime.lineage import began_strong
from headwater.runtime.measured import measured_after
from headwater.runtime.metrics import Metrics, with_counts_of
from headwater.runtime.plan_keys import another_query
from headwater.runtime.progress import TickLog
from headwater.runtime.reading import StreamTask, take_in
from headwater.runtime.reshard import reshard
from headwater.runtime.sender import Arrivals, SenderOutput
from headwater.runtime.stopped import told_how_to_go_on
from headwater.runtime.system_views import Shown, heartbeat_changes
from headwater.runtime.temporary import make_folder, remove_folder
from headwater.runtime.tick import STEP_BYTES, Tick
from headwater.runtime.wider_states import graphs_of, widened
from headwater.sinks.diverted import deliver_diverted
from headwater.sources.base import Piece, SparkBatch
from headwater.state.filesystem import Folder
from headwater.state.store import FileStore

if TYPE_CHECKING:
    from headwater.backends.spark.job import SparkExecutor

log = logging.getLogger("headwater")

SMALL_TICK = 50_000
"""Up to so many rows a tick runs in the driver: a Spark job would take longer to start than to run."""


class Core:
    """Everything between the sources' batches and the sinks."""

    def __init__(
        self,
        *,
        shards: int,
        checkpoint: str | Path | None = None,
        spark: SparkExecutor | None = None,
        durable: bool = True,
        keep: int = 3,
        sync: bool = False,
        small_tick: int = SMALL_TICK,
        wall: WallClock | None = None,
    ) -> None:
        self.lock = threading.RLock()
        """Held while a tick runs, and while queries come and go."""
        self.shards, self._spark, self._small_tick = shards, spark, small_tick
        self._local = LocalExecutor()
        self._temporary: str | None = None
        self.checkpoint: Checkpoint | None = None
        if checkpoint is None and durable:
            checkpoint = self._temporary = make_folder()
        if checkpoint is not None:
            self.checkpoint = Checkpoint(Folder(checkpoint), keep, sync)
        self.deployment, self.step_bytes = Deployment(), STEP_BYTES
        self.streams: dict[str, StreamTask] = {}
        self.wall: WallClock = wall or SystemClock()
        self.drained: Callable[[], Mapping[str, int]] = dict
        """By stream: the instant of the wall clock by which all that had arrived was taken; left out: now."""
        self.metrics, self._log = Metrics(), TickLog()
        found = self.checkpoint.open() if self.checkpoint else None
        self._store = FileStore(self.checkpoint.segments) if self.checkpoint is not None else None
        self.manifest = found or Manifest(shards=shards)
        self.times = Times(self.manifest.clock)
        if self.times.clock.now is not None:
            self.wall.not_before(self.times.clock.now)
        if found is None and self.checkpoint is not None:
            self.checkpoint.commit(self.manifest)  # sinks are told whose answers they get before the first tick
        self._deliver_diverted(self.manifest)  # those of the last tick may not have been kept before a crash
        self.deployment.keep_as_text(self.manifest.relations)
        self._awaited = dict(self.manifest.queries)
        """Queries of the checkpoint that have not been started again."""
        self._shown_before: dict[str, dict[int, int]] = {}
        self._shown: Shown = self.manifest.shown

    def use(self, spark: SparkExecutor) -> None:
        """Run large ticks as jobs of Spark's."""
        self._spark = spark

    # -- streams and queries -----------------------------------------------------------------------------------------

    def add_stream(self, task: StreamTask) -> None:
        """Begin to take rows of a stream; its clock goes on where it was."""
        with self.lock:
            check_time(task, self.manifest)
            self.streams[task.stream] = task
            declared = task.declared or Stream(task.stream, task.intake.schema, time=task.intake.time)
            self.times.add(declared)
            redeclare(self.manifest, self.deployment.relations.get(task.stream), declared.plan, self._store)
            self.deployment.keep(declared.plan)

    def drop_stream(self, stream: str) -> None:
        with self.lock:
            self.streams.pop(stream, None)
            self.times.drop(stream)
            gone, kept = self.deployment.forget(stream), self.manifest
            kept.records = {n: {k: r for k, r in its.items() if k not in gone} for n, its in kept.records.items()}
            kept.clock = self.times.to_manifest()
            known = (kept.batches, kept.newest, kept.counts, kept.frontiers, kept.relations, kept.measured)
            for what in (*known, kept.described.get("times", {})):
                what.pop(stream, None)
            self._commit_again()
            if self.checkpoint is not None:
                self.checkpoint.forget_source(stream)

    def _commit_again(self) -> None:
        """The last tick stays as it is, but something that it knew is forgotten; also after a crash."""
        if self.checkpoint is not None:
            self.checkpoint.commit(self.manifest)

    def start(self, query: Running) -> None:
        """Let a query run from the next tick on, or go on if the checkpoint has it."""
        with self.lock:
            self.deployment.check_new(query.name)
            kept, query.asked = self.manifest.queries.get(query.name), query.level
            if kept is not None:
                self._resume(query, kept)
            else:
                query.since = self.manifest.tick
            query.output = evolve(query.output, origin=self.manifest.origin)
            self._open_sink(query, kept)
            self.deployment.add(query)
            self._awaited.pop(query.name, None)
            if kept is not None and query.asked != Consistency.from_manifest(kept["asked"]):
                self.change_level(query.name, query.asked)

    def _open_sink(self, query: Running, kept: dict[str, Any] | None) -> None:
        """The last tick's answer may not have arrived before a crash: then it comes again, in the form that it had."""
        staged = query.output.speculative if kept is None else kept.get("staged", query.output.speculative)
        query.sink.open(evolve(query.output, speculative=staged))
        if self.checkpoint is not None:
            self.checkpoint.check_sink(self.manifest.tick, query.sink)
        if kept is not None and query.name in self.manifest.outputs:
            points.passed(points.AGAIN_IN_A_SINK + query.name)
            query.sink.deliver(self.manifest.tick, self.manifest.outputs[query.name], query.closed)
        if staged != query.output.speculative:
            query.sink.change(query.output)

    def _resume(self, query: Running, kept: dict[str, Any]) -> None:
        """Go on where the checkpoint has it, with the level that it had last, unless another is asked for now."""
        level, asked = Consistency.from_manifest(kept["level"]), Consistency.from_manifest(kept["asked"])
        form = Emission.from_manifest(kept["emission"])
        output = evolve(query.output, speculative=kept["speculative"], emission=form, settled=level == STRONG)
        past: dict[str, Any] = {name: kept[name] for name in ("since", "frontier", "closed", "lineage")}
        past |= {"consistency": level, "output": output}
        if query.asked not in (None, asked):
            check_change(output, query.sink, level, query.level)
        before, after, why = graphs_of(evolve(query, **past), kept)
        certain = query.level == level == STRONG and began_strong(kept["lineage"])
        check_form(query.output, form, same=before is not None, strong=certain)
        if before is None:
            raise another_query(query.name, query.reads, kept, why)
        self.manifest.records = widened(before, after, self.manifest.records, self._store)
        for name, value in past.items():
            setattr(query, name, value)

    def change_level(self, name: str, consistency: Consistency) -> None:
        """Let a query go on with another level of consistency from the next tick on."""
        with self.lock:
            query, before = self.deployment[name], self.manifest.queries.get(name, {})
            staged = before.get("staged", query.output.speculative)  # how the last tick's answer is kept
            taken = self.deployment.change_level(name, consistency, self.manifest.tick)
            self.manifest.records = with_carried(self.manifest.records, taken)
            self._local.carry(taken.keys)
            self.manifest.queries[name] = query.to_manifest(self.deployment.key_of(name)) | {"staged": staged}
            self._commit_again()

    def stop(self, name: str, *, forget: bool = True) -> None:
        """Let a query end; what only it used is freed. Not forgotten, it can be started again where it was."""
        with self.lock:
            if name in self.deployment:
                query = self.deployment.remove(name)
                query.sink.close()
            if forget:
                self._awaited.pop(name, None)
                self.manifest.outputs.pop(name, None)
                if self.manifest.queries.pop(name, None) is not None:
                    self._commit_again()

    @property
    def awaited(self) -> tuple[str, ...]:
        """Queries of the checkpoint that must be started again, or dropped, before anything runs."""
        return tuple(self._awaited)

    # -- ticks -------------------------------------------------------------------------------------------------------

    def covers(self, delivery: Delivery) -> bool:
        """Is the batch part of a committed tick already? Only Spark brings one again; who is asked begins at the offset."""
        kept = self.manifest.batches.get(delivery.stream, {})
        known, batch = kept.get("batch"), delivery.batch
        return delivery.offset is None and kept.get("offset") is None and None not in (batch, known) and batch <= known

    def tick(
        self,
        deliveries: Sequence[Delivery] = (),
        *,
        given: Mapping[str, Delta] | None = None,
        frontiers: Mapping[str, int] | None = None,
        ended: Iterable[str] = (),
        idle: bool = False,
    ) -> TickResult | None:
        """One tick over all batches that wait. None if there is nothing to do; ``idle``: let time pass all the same."""
        with self.lock, told_how_to_go_on(kept=self.checkpoint is not None):
            began = time.time()
            fresh = [d for d in deliveries if d.stream in self.streams and not self.covers(d)]
            ended = frozenset(ended)
            if not idle and not fresh and not given and not frontiers and self._is_ended(ended):
                return None
            moved = self._prepare_shards()
            job = self._job(given or {}, frontiers or {}, ended)
            points.passed(points.BEFORE_THE_JOB)
            pushed = self._pushed(job, [d for d in fresh if d.pieces])
            if fresh and not (idle or given or frontiers or ended) and all(d.done.is_set() for d in fresh):
                return None
            result = self._execute(job, [d for d in fresh if not d.pieces], pushed)
            points.passed(points.AFTER_THE_SEGMENTS)
            ran = time.time()
            manifest = self._next(job, result, fresh)
            points.passed(points.BEFORE_THE_MANIFEST)
            if self.checkpoint is not None:
                self.checkpoint.commit(manifest)
            self.manifest = manifest
            self.times.ticked(result.progress.clock)
            self._shown_before = dict(job.tick.newest_before)  # type: ignore[arg-type]
            points.passed(points.AFTER_THE_MANIFEST)
            committed = time.time()
            self._deliver(manifest)
            points.passed(points.AFTER_THE_SINKS)
            if self.checkpoint is not None:
                self.checkpoint.tidy(manifest.tick, sweep=moved)
            result.phases["commit"] = committed - ran
            result.phases["deliver"] = time.time() - committed
            self._log.note(self, self.metrics.record(self, result, began))
            self._log.tell_missing(result.missing)
            return result

    def is_due(self) -> bool:
        """Would a tick without rows bring anything, because time has passed (digest 12.2: a wake-up is a full tick)?"""
        with self.lock:
            if self.deployment.has_newcomers(self.manifest.records):
                return True
            read = self.deployment.layout.graph.read
            follows = self._follows()
            names = {follows.get(name, name) for name in read} & self.streams.keys()
            if not names:
                return False
            now = self.wall.now()
            return self.times.would_move(names, now, self.drained(), self.deployment.together) or (
                self._newest_before(now) != self._shown_before
            )

    def _newest_before(self, now: int) -> dict[str, dict[int, int]]:
        """How far the streams had been seen, as long ago as queries let their rows wait by the wall clock."""
        graph = self.deployment.layout.graph
        lengths = {node.delay for node in graph.nodes if node.wall and node.delay < INFINITY}
        found = {name: {n: self.times.clock.newest_at(name, now - n) for n in lengths} for name in self.streams}
        return found if lengths else {}

    def _is_ended(self, streams: frozenset[str]) -> bool:
        """Are these streams at their end already, and has everybody heard of it?"""
        kept = self.manifest
        own = streams - self._follows().keys()  # the others end with those they follow
        ends = (self.times.frontier(s) if s in self.streams else kept.frontiers.get(s, BEGINNING) for s in own)
        return all(end == INFINITY for end in (*ends, *(query.frontier for query in self.deployment if streams)))

    def _prepare_shards(self) -> bool:
        """After a restart with another number of shards, the state moves first. Does it?"""
        moves = self.manifest.shards != self.shards
        if moves and self.manifest.records and self._store is not None:
            self.manifest.records = reshard(self.deployment.layout, self.manifest.records, self.shards, self._store)
        self.manifest.shards = self.shards
        return moves

    def _job(self, given: Mapping[str, Delta], frontiers: Mapping[str, int], ended: frozenset[str]) -> TickJob:
        kept, number = self.manifest, self.manifest.tick + 1
        told = {s: f for s, f in kept.frontiers.items() if s not in self.streams}
        told |= {s: max(f, told.get(s, BEGINNING)) for s, f in frontiers.items()}
        newest = dict(kept.newest)
        for stream, delta in given.items():
            newest[stream] = max(newest.get(stream, BEGINNING), delta.largest_start())
        now, self._shown = self.wall.stamp(), []
        if HEARTBEATS.name in self._views_read():
            changes, self._shown = heartbeat_changes(self.times.clock, kept.shown, now)
            given, told = {**given, HEARTBEATS.name: changes}, {**told, HEARTBEATS.name: now}
        tick = Tick(
            number,
            self.shards,
            self.times.clock,
            told,
            newest,
            self._follows(),
            ended,
            now=now,
            drained=self.drained(),
            together=self.deployment.together,
            newest_before=self._newest_before(now),
            step_bytes=self.step_bytes,
        )
        place = self.checkpoint
        return TickJob(
            tick,
            self.deployment.layout,
            kept.records,
            self.deployment.stagers,
            place.segments if place else None,
            place.staging(number) if place else "",
            given,
            self.deployment.new_constants(kept.records),
            self.deployment.natives,
            self.deployment.slices,
        )

    def _views_read(self) -> set[str]:
        """System views that queries read; a stream of the user's may have the same name."""
        return {name for name in self.deployment.layout.graph.sources if name in SYSTEM_VIEWS} - self.streams.keys()

    def _follows(self) -> dict[str, str]:
        """Streams of late or malformed rows, and whose rows these are; not where the name is that of another stream."""
        tasks = self.streams.values()
        return {child: t.stream for t in tasks for child in (t.late, t.bad) if child not in self.streams}

    def _pushed(self, job: TickJob, deliveries: Sequence[Delivery]) -> list[tuple[Arrivals, SenderOutput]]:
        """What was pushed by hand. Malformed rows are the mistake of whoever pushed them, who hears of it: nothing of
        that push is taken, and everybody else goes on."""
        found = []
        for delivery in deliveries:
            try:
                found.append(self._read(job, delivery, delivery.pieces))
            except StreamError as problem:
                if problem.code == "LATE_ROW":  # LATE ROWS ERROR asks for the end of everything
                    raise
                log.warning("a push was refused: %s", problem)
                delivery.finish(problem)
        return found

    def _execute(
        self, job: TickJob, deliveries: Sequence[Delivery], pushed: Sequence[tuple[Arrivals, SenderOutput]]
    ) -> TickResult:
        if self._spark is None or self._is_small(deliveries):
            return self._execute_here(job, deliveries, pushed)
        from headwater.backends.spark.job import Batches

        began = time.perf_counter()
        answered = {d.stream: its for d in deliveries if (its := self._answered_by_spark(job, d)) is not None}
        deliveries = [d for d in deliveries if d.stream not in answered]
        sent = [*pushed, *(part for its in answered.values() for part in its)]
        if answered and self._is_small(deliveries):
            took = time.perf_counter() - began
            result = self._execute_here(job, deliveries, sent)
            result.phases["job"] = took
            return result
        tasks = {d.stream: self.streams[d.stream] for d in deliveries}
        splits = [(d.stream, split) for d in deliveries for split in d.splits]
        rows = {d.stream: d.rows for d in deliveries if d.rows is not None}
        return self._spark.run(job, Batches(tasks, splits, rows), sent)

    def _answered_by_spark(self, job: TickJob, delivery: Delivery) -> list[tuple[Arrivals, SenderOutput]] | None:
        """Of a batch whose queries all need no state, what senders would bring; None: they must."""
        queries, task = self.deployment.stateless.get(delivery.stream, ()), self.streams[delivery.stream]
        intake = task.intake
        time, plain = intake.time, intake.is_plain and task.parser is None and intake.partition is None
        if not queries or time is None or not plain or {task.late, task.bad} & set(job.layout.graph.sources):
            return None
        from headwater.backends.spark.native_answers import answers

        if delivery.rows is not None:
            return answers(SparkBatch(delivery.rows), task, job, queries)
        batch = delivery.native(time) if delivery.native is not None else None
        return None if batch is None else answers(batch, task, job, queries)

    def _is_small(self, deliveries: Sequence[Delivery]) -> bool:
        """What nobody reads in a task, and what is quicker read here; with 0 everything of a source is a job."""
        sizes = [d.size for d in deliveries]
        if not sizes:
            return True
        return all(s is not None for s in sizes) and 0 < self._small_tick >= sum(s or 0 for s in sizes)

    def _execute_here(
        self,
        job: TickJob,
        deliveries: Sequence[Delivery],
        sent: Sequence[tuple[Arrivals, SenderOutput]] = (),
    ) -> TickResult:
        """``sent``: what is there already of other batches."""
        arrivals, began = [*sent], time.perf_counter()
        for delivery in deliveries:
            if delivery.rows is not None:
                table = delivery.rows.toArrow().combine_chunks()
                pieces: Iterable[Piece] = map(self.streams[delivery.stream].piece, table.to_batches())
            else:
                pieces = self.streams[delivery.stream].pieces(delivery.splits)
            arrivals.append(self._read(job, delivery, pieces))
        read = time.perf_counter() - began
        result = self._local.run(job, arrivals)
        result.phases["sources"] = result.phases.get("sources", 0.0) + read
        return result

    def _read(self, job: TickJob, delivery: Delivery, pieces: Iterable[Piece]) -> tuple[Arrivals, SenderOutput]:
        counted = SenderOutput()
        task = self.streams[delivery.stream]
        return take_in(task, pieces, job.tick, job.layout, job.staging, counted), counted

    def _next(self, job: TickJob, result: TickResult, deliveries: Sequence[Delivery]) -> Manifest:
        """The manifest of this tick."""
        kept = self.manifest
        live = {node.key for node in job.layout.graph.nodes}
        records: Records = {
            shard: {k: r for k, r in (kept.records.get(shard, {}) | result.records.get(shard, {})).items() if k in live}
            for shard in range(self.shards)
        }
        for key in job.constants:
            records[0][key] = {"version": "", "heard": [], "promised": INFINITY, "rows": 0, "bytes": 0, "state": None}
        batches = dict(kept.batches)
        for d in deliveries:
            if d.batch is not None:
                batches[d.stream] = {"batch": d.batch, "offset": d.offset}
        for query in self.deployment:
            query.frontier = max(query.frontier, result.known.get(query.name, BEGINNING))
            query.closed = max(query.closed, result.frontiers.get(query.name, BEGINNING))
            query.rows += sum(part.rows for part in result.staged.get(query.name, ()))
        waiting = {name: its for name, its in kept.queries.items() if name in self._awaited}
        queries = {q.name: q.to_manifest(self.deployment.key_of(q.name)) for q in self.deployment}
        return Manifest(
            job.tick.number,
            self.shards,
            records,
            self.times.to_manifest(result.progress.clock),
            {s: f for s, f in result.progress.frontiers.items() if s in job.tick.given},
            result.progress.newest,
            batches,
            waiting | queries,
            result.staged,
            result.diverted,
            with_counts_of(kept.counts, {"rows": result.rows, "late": result.late, "bad": result.bad}),
            kept.origin,
            self._shown,
            self.deployment.relations_as_text(),
            self.deployment.described(self.streams),
            measured_after(kept.measured, kept.newest, job, result),
        )

    def _deliver(self, manifest: Manifest) -> None:
        for query in self.deployment:
            points.passed(points.IN_A_SINK + query.name)
            query.sink.deliver(manifest.tick, manifest.outputs.get(query.name, []), query.closed)
        points.passed(points.BEFORE_THE_DIVERTED)
        self._deliver_diverted(manifest)

    def _deliver_diverted(self, manifest: Manifest) -> None:
        for stream, parts in manifest.diverted.items():
            deliver_diverted(self.aside, stream, manifest.tick, parts)

    @property
    def aside(self) -> str:
        """The folder of rows that no query took: the checkpoint, or one that goes with the engine."""
        if self.checkpoint is not None:
            return str(self.checkpoint.folder)
        self._temporary = self._temporary or make_folder()
        return self._temporary

    def close(self) -> None:
        with self.lock:
            for query in self.deployment:
                query.sink.close()
            if self.checkpoint is not None:
                self.checkpoint.close()
            if self._temporary is not None:
                remove_folder(self._temporary)
