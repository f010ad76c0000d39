"""Random plans run by an engine: pushed tick by tick, started and stopped on the way, and judged by the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import evolve

import headwater as hw
from headwater.algebra.nodes import Plan, Source
from headwater.language.consistency import MIDDLE, STRONG
from headwater.model.delta import Delta
from headwater.model.element import Element, Stable
from headwater.model.history import History
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.types import sql_name
from headwater.query import Query, Run
from headwater.settings import Settings
from headwater.testing import plans
from headwater.testing.choices import Choices
from headwater.testing.generate import StreamShape, cut, stream, whole
from headwater.testing.oracle import expected_history
from headwater.testing.shape import is_exact, sources

Ticks = list[dict[str, Sequence[Element]]]


def random_sources(choices: Choices, *, count: int = 2) -> list[Source]:
    """As declared without a time column: rows have intervals of their own and may change."""
    made = [plans.source(choices, name, name) for name in "stu"[:count]]
    return [evolve(s, chronons=False, revisable=True) for s in made]


def declare(engine: hw.Engine, made: Sequence[Source]) -> None:
    for source in made:
        columns = ", ".join(f"{f.name} {sql_name(f.type)}" for f in source.schema)
        engine.sql(f"CREATE STREAM {source.name} ({columns})")


def random_ticks(choices: Choices, made: Sequence[Source], count: int, *, revised: bool = True) -> Ticks:
    """What each tick brings, in order of arrival; without rows that stay for ever."""
    shape = StreamShape(infinite=False)
    given = {s.name: stream(choices, s if revised else evolve(s, revisable=False), shape) for s in made}
    parts = {name: cut(choices, its, count) for name, its in given.items()}
    return [{name: part[i] for name, part in parts.items()} for i in range(count)]


def start(engine: hw.Engine, name: str, plan: Plan, *, speculative: bool) -> Run:
    return Query(name, plan, MIDDLE if speculative else STRONG, Settings(), (), engine).start()


def push(engine: hw.Engine, made: Sequence[Source], tick: Mapping[str, Sequence[Element]]) -> None:
    """One after the other: each stream is a tick of its own."""
    for source in made:
        elements = tick[source.name]
        frontier = max((e.at for e in elements if isinstance(e, Stable)), default=None)
        delta = whole(source.schema, elements)
        if len(delta) or frontier is not None:
            engine.push(source.name, delta, frontier=frontier)


def seen_of(made: Sequence[Source], ticks: Ticks, begin: int = 0) -> dict[str, Delta]:
    """What somebody gets who is there from this tick on: what holds then, or may still change, and what comes."""
    found: dict[str, Delta] = {}
    for s in made:
        before, after = ([e for tick in part for e in tick[s.name]] for part in (ticks[:begin], ticks[begin:]))
        frontier = max((e.at for e in before if isinstance(e, Stable)), default=BEGINNING)
        standing = whole(s.schema, before).consolidate()
        found[s.name] = Delta.concat(s.schema, [standing.filter(standing.end >= frontier), whole(s.schema, after)])
    return found


def expected(plan: Plan, seen: Mapping[str, Delta]) -> Counter[str]:
    return _counted(plan, expected_history(plan, {s.name: seen[s.name] for s in sources(plan)}))


def found(plan: Plan, run: Run) -> Counter[str]:
    return _counted(plan, History.of(plan.schema, [run.sink._all()]))


def _counted(plan: Plan, history: History) -> Counter[str]:
    exact = is_exact(plan)
    counts: Counter[str] = Counter()
    for row, begin, end, count in history.rows():
        shown = row if exact else tuple(round(v, 9) + 0.0 if isinstance(v, float) else v for v in row)
        counts[f"{shown} [{begin}, {'inf' if end == INFINITY else end})"] += count
    return counts
