"""Ticks by hand: deltas and frontiers in, each query's step out, on any executor. For recordings and tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.algebra.nodes import Plan
from headwater.errors import InputError
from headwater.language.consistency import MIDDLE, STRONG, Consistency
from headwater.model.delta import Delta
from headwater.model.time import BEGINNING
from headwater.operators.base import Buffered, Step
from headwater.operators.rows.constant import ConstantOperator
from headwater.runtime.change_level import carried, with_carried
from headwater.runtime.executor import Executor, LocalExecutor, TickJob, TickResult
from headwater.runtime.graph import Graph
from headwater.runtime.layout import Layout, cut
from headwater.runtime.lineage import lineage_after
from headwater.runtime.lower import Lowering
from headwater.runtime.reshard import reshard
from headwater.runtime.stage import Records
from headwater.runtime.tick import Tick
from headwater.sinks.base import Staged
from headwater.sinks.parts import DeltaStager
from headwater.state.store import FileStore


class Stepped(NamedTuple):
    """A query to be run by hand."""

    name: str
    plan: Plan
    speculative: bool = False
    consistency: Consistency | None = None
    """If it is given, what counts instead of ``speculative``."""
    lineage: str = ""
    """The levels that it had before."""
    opens: bool = False
    """Do its rows go out with an open end, as soon as they begin?"""

    @property
    def level(self) -> Consistency:
        return self.consistency or (MIDDLE if self.speculative else STRONG)


def graph_of(queries: Iterable[Stepped]) -> Graph:
    """One graph for all of them."""
    graph = Graph()
    lowering = Lowering(graph)
    for query in queries:
        if query.level.wall:
            raise InputError(
                "NO_WALL_CLOCK",
                f'query "{query.name}" cannot run with CONSISTENCY {query.level}: here there is no wall clock',
                detail="A recording is run through at once; only the times of its rows are known.",
                hint="Give the lengths in the streams' own time: leave out BY WALL CLOCK.",
            )
        lowering.add_query(query.name, query.plan, consistency=query.level, lineage=query.lineage, opens=query.opens)
    return graph


def constants_of(layout: Layout) -> dict[str, Delta]:
    """The rows of every constant in the plans, by node key."""
    nodes = [layout.graph.nodes[i] for i in layout.constants]
    return {n.key: n.operator.rows_as_delta() for n in nodes if isinstance(n.operator, ConstantOperator)}


def merged(records: Records, changed: Records) -> Records:
    """The records after a tick."""
    return {shard: records.get(shard, {}) | changed.get(shard, {}) for shard in records.keys() | changed.keys()}


class StepRunner:
    """Runs queries tick by tick; whoever calls brings the rows and says how far the streams are."""

    def __init__(
        self,
        queries: Sequence[Stepped],
        *,
        shards: int = 1,
        folder: Path | None = None,
        executor: Executor | None = None,
        portion: int | None = None,
    ) -> None:
        self._queries = {query.name: query for query in queries}
        self.layout = cut(graph_of(queries))
        self._shards, self._executor = shards, executor or LocalExecutor()
        self._folder, self._portion = folder, portion
        self._records: Records = {}
        self._constants = constants_of(self.layout)
        self._frontiers = dict.fromkeys(self.layout.graph.sources, BEGINNING)
        self._newest: dict[str, int] = {}
        self._ticks = 0
        self.known: dict[str, int] = {}
        """By query: how far its answer is known."""

    def tick(self, deltas: Mapping[str, Delta], frontiers: Mapping[str, int]) -> dict[str, Step]:
        """One unit of progress: the sources' deltas, then their new frontiers (absent: as before)."""
        result = self.run(deltas, frontiers)
        schemas = {name: self.layout.graph.nodes[i].schema for name, i in self.layout.graph.queries.items()}
        return {
            name: Step(Delta.concat(schema, list(map(_read, result.staged.get(name, ())))), result.frontiers[name])
            for name, schema in schemas.items()
        }

    def buffered(self) -> Buffered:
        """What all operators keep."""
        kept = [record for its in self._records.values() for record in its.values()]
        return Buffered(sum(r["rows"] for r in kept), sum(r["bytes"] for r in kept))

    def change_level(self, name: str, consistency: Consistency) -> None:
        """Let a query go on with another level."""
        query, before = self._queries[name], self.layout.graph
        if query.level == consistency:
            return
        lineage = lineage_after(query.lineage, query.level, self._ticks)
        self._queries[name] = query._replace(consistency=consistency, lineage=lineage)
        self.layout = cut(graph_of(self._queries.values()))
        if self._ticks == 0:
            self._constants = constants_of(self.layout)
        taken = carried(before, self.layout.graph, name)
        live = {node.key for node in self.layout.graph.nodes}
        records = with_carried(self._records, taken)
        self._records = {shard: {k: r for k, r in its.items() if k in live} for shard, its in records.items()}
        self._executor.carry(taken.keys)

    def restart(self, shards: int) -> None:
        """Go on as another process would, from what is on disk, with so many shards."""
        assert self._folder is not None, "state in memory is gone with its process"
        kept = {int(shard): its for shard, its in json.loads(json.dumps(self._records)).items()}
        if kept:
            self._records = reshard(self.layout, kept, shards, FileStore(self._folder / "segments"))
        self._shards, self._executor = shards, LocalExecutor()

    @property
    def records(self) -> Records:
        """As of the last tick."""
        return self._records

    def counts(self, what: str) -> int:
        """What all operators have counted of something, as "forgotten" rows."""
        kept = [record for its in self._records.values() for record in its.values()]
        return sum(record.get("counts", {}).get(what, 0) for record in kept)

    def run(self, deltas: Mapping[str, Delta], frontiers: Mapping[str, int]) -> TickResult:
        known = {name: delta for name, delta in deltas.items() if name in self._frontiers}
        for name, frontier in frontiers.items():
            if name in self._frontiers:
                self._frontiers[name] = max(self._frontiers[name], frontier)
        for name, delta in known.items():
            self._newest[name] = max(self._newest.get(name, BEGINNING), delta.largest_start())
        self._ticks += 1
        tick = Tick(
            self._ticks, self._shards, given=dict(self._frontiers), newest=dict(self._newest), portion=self._portion
        )
        job = TickJob(
            tick,
            self.layout,
            self._records,
            dict.fromkeys(self.layout.graph.queries, DeltaStager()),
            str(self._folder / "segments") if self._folder else None,
            str(self._folder / "staged") if self._folder else "",
            known,
            self._constants,
            exchange=str(self._folder / "exchange") if self._folder else None,
        )
        result = self._executor.run(job)
        self._records, self._constants, self.known = merged(self._records, result.records), {}, result.known
        return result


def by_hand(
    plans: Mapping[str, Plan],
    *,
    speculative: bool = False,
    consistency: Consistency | None = None,
    opens: bool = False,
    **how: Any,
) -> StepRunner:
    """A runner of plans by name, all at one level; ``how`` as for ``StepRunner``."""
    level = consistency or (MIDDLE if speculative else STRONG)
    return StepRunner([Stepped(name, plan, consistency=level, opens=opens) for name, plan in plans.items()], **how)


def _read(part: Staged) -> Delta:
    with pa.ipc.open_stream(part.data if part.data is not None else part.path) as reader:
        table = reader.read_all().combine_chunks()
    return Delta.from_batch(table.to_batches()[0])
