"""The worked examples of the papers, written down by hand from their digests, on our operators.

A vector is a ``[[case]]`` in one of the files beside this one:

    [[case]]
    title = "difference"
    source = "Krämer table 11.8"
    plan = "SetOperation(S1, S2, SetKind.EXCEPT_ALL)"
    expect = "c 1-8, a 5-11, d 9-14, a 9-10, b 15-17"

Streams, and what is expected, are timelines (``headwater.testing.timeline``) or tables of snapshots: ``{4 = "a*3, b"}``.
``columns`` and ``streams`` stand once in a file or in a case; a stream has one column "x STRING" unless told otherwise.
``plan`` is Python over the nodes of the algebra and the streams' names, ``let`` names parts of it, ``sql`` is a script
without its CREATE STREAMs; without either, each stream must have the expected history itself. ``ticks`` fix what
arrives when, and what the speculative form then shows. ``exact``: the very elements are expected, not just their history.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import Factory, define, evolve

from headwater.algebra import nodes
from headwater.algebra.nodes import AggregateCall, Plan, Project, Scalar, Source
from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.element import Element, Insert, Stable
from headwater.model.history import History, show
from headwater.model.schema import Schema, sql_type
from headwater.model.time import INFINITY
from headwater.model.validity import StreamValidator
from headwater.runtime.inprocess import Runner
from headwater.testing.shape import sources
from headwater.testing.timeline import changes, history, timeline

Tick = dict[str, list[Element]]


@define(kw_only=True)
class Case:
    """One vector, as its file has it."""

    title: str
    source: str
    expect: str | dict[str, str]
    plan: str = ""
    sql: str = ""
    let: dict[str, str] = Factory(dict)
    columns: dict[str, str] = Factory(dict)
    streams: dict[str, str | dict[str, str]] = Factory(dict)
    ticks: list[dict[str, Any]] = Factory(list)
    exact: bool = False
    note: str = ""

    def schema(self, stream: str) -> Schema:
        pairs = (column.split() for column in self.columns.get(stream, "x STRING").split(","))
        return Schema.of(**dict(pairs))

    def elements(self, stream: str) -> list[Element]:
        parts = [tick[stream] for tick in self.ticks if stream in tick] or [self.streams[stream]]
        return [e for part in parts for e in timeline(_text(part), self.schema(stream))]

    def names(self) -> list[str]:
        """The streams, those of the ticks first."""
        arriving = [name for tick in self.ticks for name in tick if name not in ("shows", "frontier")]
        return list(dict.fromkeys([*arriving, *self.streams]))


def _text(stream: str | dict[str, str]) -> str:
    """A table of snapshots as a timeline: an instant is one of its items' intervals."""
    if isinstance(stream, str):
        return stream
    moments = ((f"@{when}" if when.isdigit() else when, rows.split(",")) for when, rows in stream.items())
    return ", ".join(f"{row.strip()} {when}" for when, rows in moments for row in rows)


def load(path: Path) -> Iterator[Case]:
    content = tomllib.loads(path.read_text())
    for raw in content["case"]:
        shared = {key: content.get(key, {}) | raw.get(key, {}) for key in ("columns", "streams")}
        yield Case(**(raw | shared))


CASES = [
    pytest.param(case, id=f"{path.stem}: {case.title} ({case.source})")
    for path in sorted(Path(__file__).parent.glob("*.toml"))
    for case in load(path)
]


# -- plans ------------------------------------------------------------------------------------------------------------


def scalar(sql: str, type_: str = "STRING") -> Scalar:
    return Scalar(sql, sql_type(type_))


def call(function: str, argument: str | None = None, type_: str = "BIGINT", **options: Any) -> AggregateCall:
    return AggregateCall(function, function.lower(), sql_type(type_), argument, **options)


def pick(plan: Plan, *names: str, **renamed: str) -> Plan:
    """The columns of these names, then those that get a new name."""
    chosen = {name: name for name in names} | renamed
    columns = ((new, Scalar(f'"{old}"', plan.schema.field(old).type, (old,))) for new, old in chosen.items())
    return Project(plan, tuple(columns))


def plans(case: Case) -> Iterator[tuple[str, Plan]]:
    """The plans of a case: as written, also with all that is true of its streams declared, and from its SQL."""
    plain = {name: Source(name, case.schema(name)) for name in case.names()}
    declared = {name: _declared(source, case.elements(name)) for name, source in plain.items()}
    for how, streams in (("plain sources", plain), ("declared sources", declared)):
        words = vars(nodes) | {"scalar": scalar, "call": call, "pick": pick, "INFINITY": INFINITY} | streams
        for name, text in case.let.items():
            words[name] = eval(text, words)
        if case.plan:
            yield f"plan over {how}", eval(case.plan, words)
        elif not case.sql:
            yield from ((f"{name}, {how}", stream) for name, stream in streams.items())
    if case.sql:
        script = bind_script(script_of(case))
        query = script.result or script.named[-1]
        yield "SQL", query.plan


def _declared(source: Source, elements: list[Element]) -> Source:
    if not all(isinstance(e, Insert) for e in elements):
        return source
    return evolve(source, revisable=False, chronons=all(e.end == e.start + 1 for e in elements))


def script_of(case: Case) -> str:
    declarations = [f"CREATE STREAM {name} ({case.columns.get(name, 'x STRING')});" for name in case.names()]
    return "\n".join([*declarations, case.sql])


# -- arrival ----------------------------------------------------------------------------------------------------------


def arrivals(case: Case, names: list[str]) -> Iterator[tuple[str, list[Tick]]]:
    """All at once; one element a tick in order of time (or as the case says); one stream after the other."""
    streams = {name: case.elements(name) for name in names}
    yield "all in one tick", [{name: [*elements, Stable(INFINITY)] for name, elements in streams.items()}]
    end: Tick = {name: [Stable(INFINITY)] for name in names}
    if case.ticks:
        ticks = [{n: timeline(_text(tick[n]), case.schema(n)) for n in names if n in tick} for tick in case.ticks]
        yield "tick by tick", [*ticks, end]
        return
    single = [{name: part} for name, elements in streams.items() for part in _followed(elements)]
    if all(_is_ordered(elements) for elements in streams.values()):
        single.sort(key=lambda tick: next(iter(tick.values()))[0].start)
    yield "one element a tick", [*single, end]
    if len(names) > 1:
        yield "stream by stream", [{n: part} for n in reversed(names) for part in _followed(streams[n])] + [end]


def _is_ordered(elements: list[Element]) -> bool:
    starts = [e.start for e in elements if isinstance(e, Insert)]
    return len(starts) == len(elements) and starts == sorted(starts)


def _followed(elements: list[Element]) -> list[list[Element]]:
    """One element each; where a stream is ordered by start, its frontier follows."""
    return [[e, Stable(e.start)] if _is_ordered(elements) else [e] for e in elements]


# -- running ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_vector(case: Case):
    for what, plan in plans(case):
        expected = history(_text(case.expect), plan.schema)
        for how, ticks in arrivals(case, [source.name for source in sources(plan)]):
            for form in ("strong", "speculative"):
                run = f"{what}, {how}, {form}"
                *on_the_way, answer = answers(plan, ticks, speculative=form == "speculative")
                _compare(History.of(plan.schema, answer), expected, run)
                if case.exact:
                    wanted = changes(timeline(_text(case.expect), plan.schema), plan.schema)
                    assert Delta.concat(plan.schema, [*answer, wanted.negate()]).consolidate().rows() == [], run


def answers(plan: Plan, ticks: list[Tick], *, speculative: bool) -> list[list[Delta]]:
    """After each tick, all that has come out; on the way every promise is checked."""
    runner = Runner({"query": plan}, speculative=speculative)
    validator = StreamValidator(plan.schema)
    schemas = {source.name: source.schema for source in sources(plan)}
    output: list[Delta] = []
    so_far = []
    for tick in ticks:
        deltas = {name: changes(elements, schemas[name]) for name, elements in tick.items()}
        frontiers = {n: e.at for n, elements in tick.items() for e in elements if isinstance(e, Stable)}
        step = runner.tick(deltas, frontiers)["query"]
        assert speculative or (step.delta.consolidate().weight > 0).all(), "the strong form takes something back"
        validator.check_delta(step.delta, step.frontier)
        output.append(step.delta)
        so_far.append(list(output))
    assert validator.frontier == INFINITY
    assert runner.buffered().rows == 0
    return so_far


def _compare(answer: History, expected: History, run: str) -> None:
    wrong = [show(row, start, end, n) for row, start, end, n in answer.difference(expected)]
    assert not wrong, f"{run}: too much, or (negative) missing: {'; '.join(wrong)}"
