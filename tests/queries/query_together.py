"""The whole corpus as one graph: every case has streams of its own, and all of them run tick by tick at the same time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import evolve, frozen
from query_corpus import Case, Table, answer, files, read
from query_runs import bound, queries, recorded

from headwater.algebra.nodes import Plan, Source
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.optimizer.plan_query import plan_query
from headwater.runtime.executor import Executor
from headwater.runtime.json_values import encoder
from headwater.runtime.recording import Tick, are_chronons, over_recorded, read_recording
from headwater.runtime.stepping import Stepped, StepRunner


@frozen
class Part:
    """One case: its queries, under names of their own, and what its streams bring."""

    case: Case
    stepped: tuple[Stepped, ...]
    schemas: dict[str, Schema]
    ticks: Sequence[Tick]

    @property
    def prefix(self) -> str:
        return f"{self.case.path.stem}/{self.case.name}/"

    def deltas(self, tick: int) -> dict[str, Delta]:
        its = self.ticks[tick].deltas(self.schemas) if tick < len(self.ticks) else {}
        return {self.prefix + name: delta for name, delta in its.items()}

    def frontiers(self, tick: int) -> dict[str, int]:
        """The last tick also says that nothing more comes."""
        if tick >= len(self.ticks) - 1:
            return {self.prefix + name: INFINITY for name in self.schemas}
        return {self.prefix + name: at for name, at in self.ticks[tick].frontiers.items()}


def parts(*, batch: int | None, speculative: bool) -> Iterator[Part]:
    """Every query case of the corpus, with so many elements per tick."""
    for case in (case for path in files() for case in read(path) if case.kind == "query"):
        script = bound(case)
        schemas = script.catalog.sources()
        ticks = read_recording(recorded(case.streams, case.recording), schemas, batch=batch)
        chronons = {name: are_chronons(e for tick in ticks for e in tick.elements.get(name, ())) for name in schemas}
        part = Part(case, (), schemas, ticks)
        plans = {q.name: plan_query(over_recorded(q.plan, chronons), script.settings).plan for q in queries(script)}
        stepped = (Stepped(part.prefix + name, _renamed(p, part.prefix), speculative) for name, p in plans.items())
        yield evolve(part, stepped=tuple(stepped))


def _renamed(plan: Plan, prefix: str) -> Plan:
    done: dict[Plan, Plan] = {}
    for node in plan.walk():
        if isinstance(node, Source):
            done[node] = evolve(node, name=prefix + node.name)
        else:
            done[node] = node.with_new_inputs(done[child] for child in node.inputs)
    return done[plan]


def differences(
    parts_: Sequence[Part], *, shards: int, executor: Executor | None = None, folder: Path | None = None
) -> list[str]:
    """Run all of them at once; the cases whose histories are not those of their files, with both."""
    stepped = [query for part in parts_ for query in part.stepped]
    runner = StepRunner(stepped, shards=shards, executor=executor, folder=folder)
    found: dict[str, list[Delta]] = {query.name: [] for query in stepped}
    for tick in range(max(len(part.ticks) for part in parts_)):
        deltas = {name: delta for part in parts_ for name, delta in part.deltas(tick).items()}
        frontiers = {name: at for part in parts_ for name, at in part.frontiers(tick).items()}
        for name, step in runner.tick(deltas, frontiers).items():
            found[name].append(step.delta)
    return [told for part in parts_ if (told := _difference(part, found))]


def _difference(part: Part, found: dict[str, list[Delta]]) -> str:
    tables = [_table(q.name.removeprefix(part.prefix), q.plan.schema, found[q.name]) for q in part.stepped]
    text = answer(tables, part.case.recording.scale)
    if _words(text) == _words(part.case.expected):
        return ""
    return f"{part.prefix}\n{part.case.sql}\nexpected:\n{part.case.expected}\nfound:\n{text}\n"


def _table(name: str, schema: Schema, deltas: Sequence[Delta]) -> Table:
    encode = [encoder(field.type) or (lambda value: value) for field in schema]
    rows = []
    for row, start, end, n in History.of(schema, deltas).rows():
        values = tuple(None if v is None else e(v) for v, e in zip(row, encode, strict=True))
        shown = json.dumps(dict(zip(schema.names, values, strict=True)), separators=(",", ":"), ensure_ascii=False)
        rows.append((start, end, shown, (start, end, n, values)))
    return Table(name, schema.names, tuple(row for *_, row in sorted(rows, key=lambda r: r[:3])))


def _words(text: str) -> list[list[str]]:
    """A table may be aligned otherwise."""
    return [line.split() for line in text.split("\n")]
