"""One tick as one Spark job: senders, then a stage for every level, with bundles shuffled between them."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, field

from headwater.backends.spark.native_rows import Shape, native_rows
from headwater.backends.spark.native_slices import SlicesShape, native_meter, sliced_rows
from headwater.backends.spark.sealed_errors import Seal
from headwater.backends.spark.session import SessionHandle
from headwater.backends.spark.tasks import (
    DRIVER,
    EDGE,
    NO_SENDER,
    NativeSender,
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
from headwater.runtime.executor import TickJob, TickResult, collected
from headwater.runtime.plain_data import decode, encode
from headwater.runtime.reading import StreamTask
from headwater.runtime.sender import Arrivals, SenderOutput, send
from headwater.sources.base import Split

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@define
class Batches:
    """What Spark's sources have for a tick."""

    tasks: Mapping[str, StreamTask]
    splits: Sequence[tuple[str, Split]] = ()
    """(stream, split): read by the tasks themselves."""
    rows: Mapping[str, DataFrame] = field(factory=dict)
    """Rows that Spark has read, by stream."""


class SparkExecutor:
    """Runs ticks as jobs of a Spark session."""

    def __init__(self, session: SessionHandle, *, exchange: str | None = None) -> None:
        self._session, self._spark = session, session.spark
        self._exchange = exchange if session.local else None
        self._program: tuple[object, object, Program] | None = None
        self._meters: dict[str, ReductionMeter] = {}

    def run(
        self,
        job: TickJob,
        batches: Batches | None = None,
        arrivals: Sequence[tuple[Arrivals, SenderOutput]] = (),
    ) -> TickResult:
        """``arrivals``: what the driver has read by itself, and what it noted."""
        assert job.segments is not None, "tasks of Spark keep their state in files"
        began = time.perf_counter()
        exchange = self._exchange_of(job)
        work = Work(self._program_of(job), job.tick, job.staging, job.segments, exchange, self._session.seal)
        given, bundles = self._given(job, arrivals)
        frame = self._senders(work, batches or Batches({}), job)
        for level in range(1, len(job.layout.levels)):
            frame = self._stage(frame, work, level, job, bundles[level])
        if frame is None:
            return collected(job, given, [], {"driver": time.perf_counter() - began})
        planned = time.perf_counter()
        parts = self._collect(frame)
        phases = {"plan": planned - began, "job": time.perf_counter() - planned}
        if exchange is not None:
            shutil.rmtree(exchange, ignore_errors=True)
        senders = [*given, *(part.sender for part in parts if part.sender is not None)]
        stages = {(p.stage.level, p.stage.shard): p.stage for p in parts if p.stage is not None}
        phases["operators"] = sum(stage.seconds for stage in stages.values())
        result = collected(job, senders, stages.values(), phases)
        self._measure(job, result)
        return result

    def _measure(self, job: TickJob, result: TickResult) -> None:
        """How far did partial aggregates shrink what came, whoever computed them?"""
        for key in (slices.key for slices in job.slices.values()):
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
        if self._exchange is None:
            return None
        folder = Path(self._exchange) / str(job.tick.number)
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def _given(
        self, job: TickJob, arrivals: Sequence[tuple[Arrivals, SenderOutput]]
    ) -> tuple[list[SenderOutput], dict[int, dict[int, list[bytes]]]]:
        """What the driver brings, as a sender of its own; its bundles travel with the stages."""
        shared = {"stagers": job.stagers, "staging": job.staging}
        packed: defaultdict[int, dict[int, list[bytes]]] = defaultdict(dict)
        outs: list[SenderOutput] = []
        for i, (part, noted) in enumerate([(Arrivals(dict(job.given), {}), SenderOutput()), *arrivals]):
            constants = {} if i else job.constants
            out, bundles = send(job.layout, job.tick, part, sender=i, constants=constants, out=noted, **shared)
            outs.append(out)
            for level, shard, bundle in bundles:
                if bundle.deltas or bundle.seen:
                    packed[level].setdefault(shard, []).append(pack(bundle, None))
        return outs, packed

    def _senders(self, work: Work, batches: Batches, job: TickJob) -> DataFrame | None:
        frames = []
        if batches.splits:
            count = min(len(batches.splits), self._session.shards)
            shares = [batches.splits[i::count] for i in range(count)]
            sender = SplitSender(work, batches.tasks, shares)
            frames.append(self._spark.range(0, count, 1, count).mapInArrow(sender, EDGE))
        for stream, rows in batches.rows.items():
            frames.append(self._row_sender(rows, work, batches.tasks[stream], job))
        if not frames:
            return None
        frame = frames[0]
        for other in frames[1:]:
            frame = frame.union(other)
        return frame

    def _row_sender(self, rows: DataFrame, work: Work, task: StreamTask, job: TickJob) -> DataFrame:
        slices, frontier = job.slices.get(task.stream), job.tick.frontier(task.stream)
        meter = None if slices is None else self._meters.get(slices.key)
        found: tuple[DataFrame, Shape | SlicesShape] | None = None
        if slices is not None and meter is not None and meter.pays:
            found = sliced_rows(rows, task.intake, frontier, slices)
        parts = job.natives.get(task.stream, ())
        if found is None and parts:
            found = native_rows(rows, task.intake, frontier, parts)
        if found is None:
            return rows.mapInArrow(RowSender(work, task), EDGE)
        frame, shape = found
        return frame.mapInArrow(NativeSender(work, task, shape), EDGE)

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
