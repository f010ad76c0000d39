"""What runs a tick, what it is told and what it brings; and the executor that runs it in this process.

Other executors are backends, above the runtime: Spark's is in ``backends/spark``.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from attrs import Factory, define, frozen

from headwater.algebra.nodes import Plan
from headwater.clock.clock import Clock
from headwater.clock.seen import Seen
from headwater.model.delta import Delta
from headwater.runtime.bundles import Bundle
from headwater.runtime.delivery import Delivery
from headwater.runtime.deployment import Running
from headwater.runtime.layout import Layout
from headwater.runtime.measured import Samples, together
from headwater.runtime.reading import StreamTask, take_in
from headwater.runtime.sender import Arrivals, SenderOutput, send
from headwater.runtime.stage import Records, Stage, StageOutput, StateCache, Worked
from headwater.runtime.tick import StreamTimes, Tick, level_0_frontiers, stream_times
from headwater.sinks.base import Staged, Stager
from headwater.state.store import FileStore, MemoryStore, Store

Sent = tuple[Arrivals, SenderOutput]
"""What a sender has read, and what it has noted meanwhile."""


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
    pushed: Sequence[Sent] = ()
    """What was pushed by hand: taken in already, as whoever pushed it hears what is wrong with it."""
    tasks: Mapping[str, StreamTask] = Factory(dict)
    """By stream: how the rows of its deliveries are taken in."""
    queries: Sequence[Running] = ()
    """Whose answers are computed."""
    node_of: Callable[[Plan], int] | None = None
    """The node of a part of their plans that remembers nothing."""
    exchange: str | None = None
    """Where tasks of one machine may leave large bundles for each other."""


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
    progress: StreamTimes = Factory(lambda: StreamTimes({}, {}, Clock()))
    rows: dict[str, int] = Factory(dict)
    late: dict[str, int] = Factory(dict)
    bad: dict[str, int] = Factory(dict)
    diverted: dict[str, list[Staged]] = Factory(dict)
    missing: dict[str, dict[str, str]] = Factory(dict)
    """By stream and column that rows lack: what to tell the user."""
    seen: dict[str, list[Seen]] = Factory(dict)
    """By stream: what all tasks saw of it."""
    samples: dict[str, Samples] = Factory(dict)
    worked: dict[str, Worked] = Factory(dict)
    phases: dict[str, float] = Factory(dict)
    """Seconds by what they went into."""


class Executor(Protocol):
    """Runs ticks. Where and how the rows of the deliveries are read is its own choice."""

    def run(self, job: TickJob, deliveries: Sequence[Delivery] = ()) -> TickResult: ...

    def carry(self, keys: Mapping[str, str]) -> None:
        """Operators go on under other keys, with the states of the old ones: by new key the old."""
        ...


def send_own(job: TickJob, read: Sequence[Sent] = ()) -> Iterator[tuple[SenderOutput, list[tuple[int, int, Bundle]]]]:
    """What the driver itself brings, a sender each: recordings and constants, what was pushed, what it has read."""
    for i, (arrivals, noted) in enumerate([(Arrivals(dict(job.given), {}), SenderOutput()), *job.pushed, *read]):
        constants = {} if i else job.constants
        about = {"stagers": job.stagers, "staging": job.staging, "constants": constants, "out": noted}
        yield send(job.layout, job.tick, arrivals, sender=i, **about)


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
        for stream, sample in sent.samples.items():
            result.samples[stream] = together([result.samples.get(stream, {}), sample])
        _gather(result, sent)
    result.progress, result.seen = stream_times(job.tick, seen), dict(seen)
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
        self._cache.copy(keys)

    def run(self, job: TickJob, deliveries: Sequence[Delivery] = (), *, sent: Sequence[Sent] = ()) -> TickResult:
        """``sent``: what somebody else has done of other deliveries."""
        began = time.perf_counter()
        waiting: defaultdict[tuple[int, int], list[Bundle]] = defaultdict(list)
        senders: list[SenderOutput] = []
        for out, bundles in send_own(job, [*sent, *(_read_splits(job, delivery) for delivery in deliveries)]):
            senders.append(out)
            for level, shard, bundle in bundles:
                waiting[level, shard].append(bundle)
        read = time.perf_counter()
        stages: list[StageOutput] = []
        store: Store = self._memory if job.segments is None else FileStore(job.segments)
        about: dict[str, Any] = {"store": store, "place": job.segments or "", "cache": self._cache}
        about |= {"stagers": job.stagers, "staging": job.staging}
        for level in range(1, len(job.layout.levels)):
            for shard in range(job.tick.shards):
                stage = Stage(job.layout, level, shard, job.tick, **about)
                out, onward = stage.run(waiting.pop((level, shard), []), job.records.get(shard, {}))
                stages.append(out)
                for later, to, bundle in onward:
                    waiting[later, to].append(bundle)
        phases = {"sources": read - began, "operators": time.perf_counter() - read}
        self._cache.forget({node.key for node in job.layout.graph.nodes})
        return collected(job, senders, stages, phases)


def _read_splits(job: TickJob, delivery: Delivery) -> Sent:
    task, noted = job.tasks[delivery.stream], SenderOutput()
    return take_in(task, delivery.cut, job.tick, job.layout, job.staging, noted), noted
