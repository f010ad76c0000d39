"""Run one tick: in this process, level by level and shard by shard. Spark's way to do the same is in ``backends/spark``."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from attrs import Factory, define, frozen

from headwater.backends.spark.native_parts import NativePart
from headwater.backends.spark.native_slices import Slices
from headwater.clock.clock import Clock
from headwater.clock.seen import Seen
from headwater.model.delta import Delta
from headwater.runtime.bundles import Bundle
from headwater.runtime.layout import Layout
from headwater.runtime.sender import Arrivals, SenderOutput, send
from headwater.runtime.stage import Record, Stage, StageOutput, StateCache, Worked
from headwater.runtime.tick import Progress, Tick, level_0_frontiers, progress
from headwater.sinks.base import Staged, Stager
from headwater.state.store import FileStore, MemoryStore, Store

Records = dict[int, dict[str, Record]]
"""By shard, then by node key."""


@frozen
class TickJob:
    """Everything that a tick needs."""

    tick: Tick
    layout: Layout
    records: Records
    """As committed with the tick before."""
    stagers: Mapping[str, Stager] = Factory(dict)
    segments: str | None = None
    """The folder of state segments; None: state stays in memory."""
    staging: str = ""
    """Where parts of the answers are put aside."""
    given: Mapping[str, Delta] = Factory(dict)
    """What the driver itself brings: recordings, what is pushed by hand. By stream."""
    constants: Mapping[str, Delta] = Factory(dict)
    """By node key: the constants of queries that begin with this tick."""
    natives: Mapping[str, Sequence[NativePart]] = Factory(dict)
    """By stream: the parts of queries that Spark may compute before its rows enter Python."""
    slices: Mapping[str, Slices] = Factory(dict)
    """By stream: the partial aggregate through which alone it is read, if Spark may compute it."""


@define
class TickResult:
    """What a tick brought."""

    records: Records = Factory(dict)
    """What has changed of them."""
    staged: dict[str, list[Staged]] = Factory(dict)
    frontiers: dict[str, int] = Factory(dict)
    """By query: all rows of its answer that start before this have come."""
    known: dict[str, int] = Factory(dict)
    """By query: its answer is known before this, even where rows wait until they end."""
    progress: Progress = Factory(lambda: Progress({}, {}, Clock()))
    rows: dict[str, int] = Factory(dict)
    late: dict[str, int] = Factory(dict)
    bad: dict[str, int] = Factory(dict)
    diverted: dict[str, list[Staged]] = Factory(dict)
    missing: dict[str, dict[str, str]] = Factory(dict)
    """By stream and column that rows lack: what to tell the user."""
    worked: dict[str, Worked] = Factory(dict)
    phases: dict[str, float] = Factory(dict)
    """Seconds by what they went into."""


class Executor(Protocol):
    """Runs ticks."""

    def run(self, job: TickJob) -> TickResult: ...


def collected(
    job: TickJob, senders: Iterable[SenderOutput], stages: Iterable[StageOutput], phases: dict[str, float]
) -> TickResult:
    """What all tasks of a tick brought, together."""
    result = TickResult(phases=phases)
    seen: defaultdict[str, list[Seen]] = defaultdict(list)
    counts: Sequence[str] = ("rows", "late", "bad")
    for sent in senders:
        for name in counts:
            total, part = getattr(result, name), getattr(sent, name)
            total.update({stream: total.get(stream, 0) + n for stream, n in part.items()})
        for stream, its in sent.seen.items():
            seen[stream].extend(its)
        for stream, files in sent.diverted.items():
            result.diverted.setdefault(stream, []).extend(files)
        for stream, texts in sent.missing.items():
            result.missing[stream] = texts | result.missing.get(stream, {})
        _gather(result, sent)
    result.progress = progress(job.tick, seen)
    origin = level_0_frontiers(job.layout, result.progress.frontiers)
    result.frontiers = {q: origin[job.layout.graph.queries[q]] for q in job.layout.levels[0].queries}
    result.known = dict(result.frontiers)
    for stage in stages:
        result.records.setdefault(stage.shard, {}).update(stage.records)
        for all_, its in ((result.frontiers, stage.frontiers), (result.known, stage.known)):
            all_.update({query: min(frontier, all_.get(query, frontier)) for query, frontier in its.items()})
        _gather(result, stage)
    return result


def _gather(result: TickResult, part: SenderOutput | StageOutput) -> None:
    for query, staged in part.staged.items():
        result.staged.setdefault(query, []).append(staged)
    for key, worked in part.worked.items():
        before = result.worked.get(key, Worked(0, 0, 0.0))
        result.worked[key] = before.plus(worked)


class LocalExecutor:
    """All shards one after the other in this process, with state kept in its memory between ticks."""

    def __init__(self) -> None:
        self._cache = StateCache(most=None)
        self._memory = MemoryStore()

    def carry(self, keys: Mapping[str, str]) -> None:
        """Operators go on under other keys, with the states of the old ones: by new key the old."""
        self._cache.copy(keys)

    def store(self, job: TickJob) -> Store:
        return self._memory if job.segments is None else FileStore(job.segments)

    def run(self, job: TickJob, arrivals: Sequence[tuple[Arrivals, SenderOutput]] = ()) -> TickResult:
        """``arrivals``: what the driver has read of the sources by itself, and what it noted."""
        began = time.perf_counter()
        waiting: defaultdict[tuple[int, int], list[Bundle]] = defaultdict(list)
        senders: list[SenderOutput] = []
        shared = {"stagers": job.stagers, "staging": job.staging}
        for i, (part, noted) in enumerate([(Arrivals(dict(job.given), {}), SenderOutput()), *arrivals]):
            constants = job.constants if i == 0 else {}
            out, bundles = send(job.layout, job.tick, part, sender=i, constants=constants, out=noted, **shared)
            senders.append(out)
            for level, shard, bundle in bundles:
                waiting[level, shard].append(bundle)
        sent = time.perf_counter()
        stages: list[StageOutput] = []
        store = self.store(job)
        for level in range(1, len(job.layout.levels)):
            for shard in range(job.tick.shards):
                stage = Stage(
                    job.layout,
                    level,
                    shard,
                    job.tick,
                    store=store,
                    place=job.segments or "",
                    cache=self._cache,
                    **shared,
                )
                out, onward = stage.run(waiting.pop((level, shard), []), job.records.get(shard, {}))
                stages.append(out)
                for later, to, bundle in onward:
                    waiting[later, to].append(bundle)
        phases = {"sources": sent - began, "operators": time.perf_counter() - sent}
        self._cache.forget({node.key for node in job.layout.graph.nodes})
        return collected(job, senders, stages, phases)
