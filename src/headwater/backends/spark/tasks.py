"""What Spark's tasks run: senders and stages, as functions of Arrow batches.

All edges have one schema, (shard, port, blob): a bundle for a shard of the level ``port``, or what the driver is told (port
-1). What is for a later level, or for the driver, passes through the levels between.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import frozen

from headwater.backends.spark.native_rows import Found, Shape, WholeRows
from headwater.backends.spark.native_slices import SlicesShape
from headwater.backends.spark.sealed_errors import Seal
from headwater.backends.spark.ship import pickled
from headwater.model.delta import Delta
from headwater.runtime import points
from headwater.runtime.bundles import Bundle, pack, unpack
from headwater.runtime.layout import Layout
from headwater.runtime.plain_data import decode, encode
from headwater.runtime.reading import StreamTask, take_in, together
from headwater.runtime.sender import Arrivals, SenderOutput, send
from headwater.runtime.stage import Stage, StageOutput, StateCache, Worked
from headwater.runtime.tick import Tick
from headwater.sinks.base import Stager
from headwater.sources.base import Piece, Split
from headwater.state.store import FileStore

if TYPE_CHECKING:
    from pyspark import Broadcast

EDGE = "shard int, port int, blob binary"
DRIVER = -1
NO_SENDER = -2
"""The port of a row that brings nothing, where no sender runs before the first stage."""

_ARROW = pa.schema([("shard", pa.int32()), ("port", pa.int32()), ("blob", pa.binary())])
_cache = StateCache()
_programs: dict[str, tuple[Layout, Mapping[str, Stager]]] = {}


@frozen
class Program:
    """The graph and what stages its answers: sent to the workers once, not with every tick."""

    version: str
    pickled: Any  # Broadcast[bytes]

    @classmethod
    def of(cls, layout: Layout, stagers: Mapping[str, Stager], broadcast: Callable[[bytes], Broadcast]) -> Program:
        return cls(uuid.uuid4().hex, broadcast(pickled((layout, dict(stagers)), "the graph of the queries")))

    def forget(self) -> None:
        """No task needs it any more."""
        self.pickled.unpersist()

    def load(self) -> tuple[Layout, Mapping[str, Stager]]:
        if self.version not in _programs:
            _programs.clear()  # an older graph is not needed any more
            _programs[self.version] = pickle.loads(self.pickled.value)
        return _programs[self.version]


@frozen
class Work:
    """What all tasks of a tick are told."""

    program: Program
    tick: Tick
    staging: str
    segments: str
    exchange: str | None
    """A folder for large bundles, where all tasks see the same files."""
    seal: Seal
    """How mistakes of users reach the driver."""


@frozen
class Told:
    """What the driver is told by a task: by a sender, or by a stage."""

    sender: SenderOutput | None = None
    stage: StageOutput | None = None


@frozen
class SplitSender:
    """Reads splits: the rows of its input only say which."""

    work: Work
    tasks: Mapping[str, StreamTask]
    shares: Sequence[Sequence[tuple[str, Split]]]
    """What each task reads, as (stream, split)."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.work.seal.reporting():
            for batch in batches:
                for share in batch.column(0).to_pylist():
                    yield from self._read(share)

    def _read(self, share: int) -> Iterator[pa.RecordBatch]:
        by_stream: dict[str, list[Split]] = {}
        for stream, split in self.shares[share]:
            by_stream.setdefault(stream, []).append(split)
        yield _sent(self.work, self.tasks, by_stream, share)


@frozen
class RowSender:
    """Takes rows that Spark has read, one partition of one stream: as they are, or what Spark has made of them."""

    work: Work
    task: StreamTask
    shape: Shape | SlicesShape | WholeRows

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.work.seal.reporting():
            layout, stagers = self.work.program.load()
            stream, noted, made = self.task.stream, SenderOutput(), list[Found]()
            rest = take_in(self.task, self._apart(batches, made), self.work.tick, layout, self.work.staging, noted)
            noted.rows[stream] += sum(f.rows for f in made)
            if isinstance(self.shape, SlicesShape):
                rows, groups = (sum(f.reduced[i] for f in made) for i in (0, 1))
                noted.worked[self.shape.key] = Worked(rows, groups, 0.0)
            seen = together([*rest.seen[stream], *(s for f in made for s in f.seen)])
            given = {p.node: Delta.concat(p.schema, [f.parts[p.node] for f in made]) for p in self.shape.parts}
            about = {"stagers": stagers, "staging": self.work.staging, "out": noted, "given": given or None}
            arrivals = Arrivals(rest.deltas, {stream: seen})
            out, bundles = send(layout, self.work.tick, arrivals, sender=_partition(), **about)
            yield _rows([(0, DRIVER, encode(Told(sender=out))), *_packed(bundles, self.work.exchange)])

    def _apart(self, batches: Iterable[pa.RecordBatch], made: list[Found]) -> Iterator[Piece]:
        """What must be judged here; ``made`` gets the rest, batch by batch."""
        for batch in batches:
            found = self.shape.read(batch)
            made.append(found._replace(apart=None))
            if found.apart is not None:
                yield self.task.piece(found.apart)


@frozen
class StageRun:
    """One level; a task of it is one shard."""

    work: Work
    level: int
    records: Mapping[int, bytes]
    """By shard, as JSON."""
    given: Mapping[int, Sequence[bytes]]
    """Bundles that the driver itself sends to this level, by shard."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.work.seal.reporting():
            mine: list[Bundle] = []
            here = _partition()  # repartitionById gives each shard a task of its own, also if nobody sends anything
            for batch in batches:
                for shard, port, blob in zip(*(batch.column(i) for i in range(3)), strict=True):
                    if port.as_py() == self.level:
                        assert shard.as_py() == here, "a bundle came to the wrong shard"
                        mine.append(unpack(blob.as_buffer()))
                    elif port.as_py() != NO_SENDER:
                        yield _rows([(shard.as_py(), port.as_py(), blob.as_py())])
            yield self._run(here, mine)

    def _run(self, shard: int, bundles: list[Bundle]) -> pa.RecordBatch:
        layout, stagers = self.work.program.load()
        given = [unpack(pa.py_buffer(data)) for data in self.given.get(shard, ())]
        stage = Stage(
            layout,
            self.level,
            shard,
            self.work.tick,
            store=FileStore(self.work.segments),
            place=self.work.segments,
            cache=_cache,
            stagers=stagers,
            staging=self.work.staging,
        )
        out, onward = stage.run([*given, *bundles], decode(Any, self.records[shard]))
        points.passed(points.IN_A_TASK)
        return _rows([(shard, DRIVER, encode(Told(stage=out))), *_packed(onward, self.work.exchange)])


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def _sent(
    work: Work, tasks: Mapping[str, StreamTask], batches: Mapping[str, Iterable[Piece | Split]], sender: int
) -> pa.RecordBatch:
    layout, stagers = work.program.load()
    noted, arrivals = SenderOutput(), Arrivals({}, {})
    for stream, batch in batches.items():
        part = take_in(tasks[stream], batch, work.tick, layout, work.staging, noted)
        arrivals.deltas.update(part.deltas)
        arrivals.seen.update(part.seen)
    shared = {"stagers": stagers, "staging": work.staging}
    out, bundles = send(layout, work.tick, arrivals, sender=sender, out=noted, **shared)
    return _rows([(0, DRIVER, encode(Told(sender=out))), *_packed(bundles, work.exchange)])


def _packed(bundles: Iterable[tuple[int, int, Bundle]], exchange: str | None) -> list[tuple[int, int, bytes]]:
    return [(shard, level, pack(bundle, exchange)) for level, shard, bundle in bundles]


def _rows(rows: Sequence[tuple[int, int, bytes]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, t) for c, t in zip(columns, _ARROW.types, strict=True)], schema=_ARROW
    )
