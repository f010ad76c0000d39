"""One tick as one Spark job: senders, then a stage for every level, with bundles shuffled between them.

How rows come in is chosen here, delivery by delivery: their queries are answered natively, tasks read splits, or tasks take
rows that Spark has. A tick with few rows runs in the driver.
"""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.backends.spark.feed import RowDelivery
from headwater.backends.spark.native_answers import answers
from headwater.backends.spark.native_computed import is_native
from headwater.backends.spark.native_rows import Shape, WholeRows, native_rows
from headwater.backends.spark.native_slices import SlicesShape, native_meter, sliced_rows
from headwater.backends.spark.routes import Routes
from headwater.backends.spark.sealed_errors import Seal
from headwater.backends.spark.session import SessionHandle
from headwater.backends.spark.tasks import (
    DRIVER,
    EDGE,
    NO_SENDER,
    Program,
    RowSender,
    SplitSender,
    StageRun,
    Told,
    Work,
)
from headwater.errors import HeadwaterError
from headwater.operators.aggregates.pre_aggregate import ReductionMeter
from headwater.runtime.bundles import pack
from headwater.runtime.delivery import Delivery
from headwater.runtime.executor import LocalExecutor, Sent, TickJob, TickResult, collected, send_own
from headwater.runtime.layout import Layout
from headwater.runtime.plain_data import decode, encode
from headwater.runtime.sender import SenderOutput
from headwater.sources.base import SparkBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkExecutor:
    """Runs ticks as jobs of a Spark session, small ones in the driver."""

    def __init__(self, session: SessionHandle, *, small_tick: int | None = None) -> None:
        """``small_tick``: a tick of up to so many rows runs in the driver; None: every tick is a job."""
        self._session, self._spark = session, session.spark
        self._small_tick, self._driver = small_tick, LocalExecutor()
        self._layout: Layout | None = None
        self._routes = Routes({}, {}, {})
        self._program: tuple[object, object, Program] | None = None
        self._meters: dict[str, ReductionMeter] = {}

    def carry(self, keys: Mapping[str, str]) -> None:
        self._driver.carry(keys)

    def run(self, job: TickJob, deliveries: Sequence[Delivery] = ()) -> TickResult:
        """Natively what can be answered so, the rest in the driver if it is small, else as one job."""
        if self._is_small(deliveries):
            return self._driver.run(job, deliveries)
        if self._layout is not job.layout:
            self._layout, self._routes = job.layout, Routes.of(job)
        began = time.perf_counter()
        native = [(d, self._answer_natively(job, d)) for d in deliveries]
        sent = [part for _, parts in native for part in parts or ()]
        rest = [delivery for delivery, parts in native if parts is None]
        if len(rest) < len(deliveries) and self._is_small(rest):
            took = time.perf_counter() - began
            result = self._driver.run(job, rest, sent=sent)
            result.phases["job"] = took
            return result
        return self._run_job(job, rest, sent)

    def _is_small(self, deliveries: Sequence[Delivery]) -> bool:
        """What nobody reads in a task, and what is quicker read here; with 0 everything of a source is a job."""
        if self._small_tick is None:
            return False
        sizes = [d.size for d in deliveries]
        if not sizes:
            return True
        return all(s is not None for s in sizes) and 0 < self._small_tick >= sum(s or 0 for s in sizes)

    def _answer_natively(self, job: TickJob, delivery: Delivery) -> list[Sent] | None:
        """Of a batch whose queries all need no state, what senders would bring; None: they must."""
        queries, task = self._routes.answered.get(delivery.stream, ()), job.tasks[delivery.stream]
        intake = task.intake
        plain = is_native(intake) and task.parser is None and intake.partition is None
        if not queries or intake.time is None or not plain or {task.late, task.bad} & set(job.layout.graph.sources):
            return None
        if isinstance(delivery, RowDelivery):
            batch: SparkBatch | None = SparkBatch(delivery.rows)
        else:
            source = delivery.source
            batch = None if source is None else source.spark_batch(self._spark, delivery.splits, intake.time)
            if batch is not None and intake.computed is not None:
                batch = batch._replace(span=None)  # what the files say of their columns, they do not of these
        return None if batch is None else answers(batch, task, job, queries)

    def _run_job(self, job: TickJob, deliveries: Sequence[Delivery], sent: Sequence[Sent]) -> TickResult:
        """``sent``: what is done already of other deliveries."""
        assert job.segments is not None, "tasks of Spark keep their state in files"
        began = time.perf_counter()
        exchange = self._exchange_of(job)
        work = Work(self._program_of(job), job.tick, job.staging, job.segments, exchange, self._session.seal)
        own, bundles = self._send_own(job, sent)
        frame = self._senders(work, job, deliveries)
        for level in range(1, len(job.layout.levels)):
            frame = self._stage(frame, work, level, job, bundles[level])
        if frame is None:
            return collected(job, own, [], {"driver": time.perf_counter() - began})
        planned = time.perf_counter()
        parts = self._collect(frame)
        phases = {"plan": planned - began, "job": time.perf_counter() - planned}
        if exchange is not None:
            shutil.rmtree(exchange, ignore_errors=True)
        senders = [*own, *(part.sender for part in parts if part.sender is not None)]
        stages = {(p.stage.level, p.stage.shard): p.stage for p in parts if p.stage is not None}
        phases["operators"] = sum(stage.seconds for stage in stages.values())
        result = collected(job, senders, stages.values(), phases)
        self._measure(result)
        return result

    def _measure(self, result: TickResult) -> None:
        """How far did partial aggregates shrink what came, whoever computed them?"""
        for key in (slices.key for slices in self._routes.slices.values()):
            if key in result.worked:
                self._meters.setdefault(key, native_meter()).record(
                    result.worked[key].rows_in, result.worked[key].rows_out
                )

    def _program_of(self, job: TickJob) -> Program:
        """The graph, sent to the workers when it has changed."""
        if self._program is None or self._program[0] is not job.layout or self._program[1] is not job.stagers:
            if self._program is not None:
                self._program[2].forget()
            made = Program.of(job.layout, job.stagers, self._spark.sparkContext.broadcast)
            self._program = job.layout, job.stagers, made
        return self._program[2]

    def _exchange_of(self, job: TickJob) -> str | None:
        if job.exchange is None or not self._session.local:
            return None
        folder = Path(job.exchange) / str(job.tick.number)
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def _send_own(
        self, job: TickJob, sent: Sequence[Sent]
    ) -> tuple[list[SenderOutput], dict[int, dict[int, list[bytes]]]]:
        """What the driver brings, as senders of their own; its bundles travel with the stages."""
        packed: defaultdict[int, dict[int, list[bytes]]] = defaultdict(dict)
        outs: list[SenderOutput] = []
        for out, bundles in send_own(job, sent):
            outs.append(out)
            for level, shard, bundle in bundles:
                if bundle.deltas or bundle.seen:
                    packed[level].setdefault(shard, []).append(pack(bundle, None))
        return outs, packed

    def _senders(self, work: Work, job: TickJob, deliveries: Sequence[Delivery]) -> DataFrame | None:
        named = [d for d in deliveries if not isinstance(d, RowDelivery)]
        frames = [self._read_splits(work, job, named)] if any(d.splits for d in named) else []
        frames += [self._take_rows(work, job, d) for d in deliveries if isinstance(d, RowDelivery)]
        return reduce(lambda one, other: one.union(other), frames) if frames else None

    def _read_splits(self, work: Work, job: TickJob, deliveries: Sequence[Delivery]) -> DataFrame:
        splits = [(d.stream, split) for d in deliveries for split in d.cut]
        count = min(len(splits), self._session.shards)
        tasks = {d.stream: job.tasks[d.stream] for d in deliveries}
        sender = SplitSender(work, tasks, [splits[i::count] for i in range(count)])
        return self._spark.range(0, count, 1, count).mapInArrow(sender, EDGE)

    def _take_rows(self, work: Work, job: TickJob, delivery: RowDelivery) -> DataFrame:
        """As they are, or what Spark makes of them first: groups of a partial aggregate, or the parts of the queries."""
        task, frontier = job.tasks[delivery.stream], job.tick.frontier(delivery.stream)
        slices, parts = self._routes.slices.get(task.stream), self._routes.parts.get(task.stream, ())
        meter = None if slices is None else self._meters.get(slices.key)
        made: tuple[DataFrame, Shape | SlicesShape] | None = None
        if slices is not None and meter is not None and meter.pays:
            made = sliced_rows(delivery.rows, task.intake, frontier, slices)
        if made is None and parts:
            made = native_rows(delivery.rows, task.intake, frontier, parts)
        frame, shape = made or (delivery.rows, WholeRows())
        return frame.mapInArrow(RowSender(work, task, shape), EDGE)

    def _stage(
        self,
        frame: DataFrame | None,
        work: Work,
        level: int,
        job: TickJob,
        given: Mapping[int, Sequence[bytes]],
    ) -> DataFrame:
        shards = job.tick.shards
        if frame is None:
            nobody = ["cast(id as int) as shard", f"{NO_SENDER} as port", "cast('' as binary) as blob"]
            frame = self._spark.range(0, shards, 1, shards).selectExpr(*nobody)
        else:
            frame = frame.repartitionById(shards, "shard")
        records = {shard: encode(self._records_of(job, level, shard)) for shard in range(shards)}
        return frame.mapInArrow(StageRun(work, level, records, given), EDGE)

    def _records_of(self, job: TickJob, level: int, shard: int) -> dict:
        """Only what the level's operators need."""
        known = job.records.get(shard, {})
        keys = (job.layout.graph.nodes[i].key for i in job.layout.levels[level].nodes)
        return {key: known[key] for key in keys if key in known}

    def _collect(self, frame: DataFrame) -> list[Told]:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            table = frame.where(f"port = {DRIVER}").toArrow()
        except (PySparkException, Py4JJavaError) as problem:
            raise failed(problem, self._session.seal) from None
        return [decode(Told, blob.as_py()) for blob in table.column("blob")]


_WORKER_DIED = "Python worker exited unexpectedly"


def failed(problem: Exception, seal: Seal) -> HeadwaterError:
    """The mistake that a task reported, or in one line why Spark gave up."""
    text = str(problem)
    told = seal.opened(text)
    if told is not None:
        return told
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if not line.startswith(("at ", "Driver stacktrace", "..."))), text)
    python = [line for line in lines if "Error:" in line and not line.startswith(("at ", "org.", "Caused"))]
    detail = (python[-1] if python else last)[:500]
    if any(_WORKER_DIED in line for line in lines):
        detail = "A Python worker exited unexpectedly: it crashed, or was killed, perhaps for want of memory."
    return HeadwaterError(
        "TICK_FAILED",
        "a task of Spark failed, so the tick was not committed",
        detail=detail,
        hint="Nothing is lost: the tick runs again after a restart. Spark's log has the whole story.",
    )
