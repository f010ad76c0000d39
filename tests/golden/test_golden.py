"""The worked examples of the papers, written down by hand from their digests, run on our operators and through SQL.

A vector is a ``[[case]]`` in one of the files beside this one:

    [[case]]
    title = "difference"
    source = "Krämer table 11.8"
    plan = "SetOperation(S1, S2, SetKind.EXCEPT_ALL)"
    expect = "c 1-8, a 5-11, d 9-14, a 9-10, b 15-17"

``streams`` and ``expect`` are timelines (``headwater.testing.timeline``) or tables of snapshots: ``{4 = "a*3, b"}``. A
stream has the column "x STRING" unless ``columns`` says otherwise. ``plan`` is Python over the nodes of the algebra,
the streams and what ``let`` names; ``sql`` is a script without its CREATE STREAMs; with neither, each stream must have
the expected history itself. ``columns``, ``streams`` and ``let`` may also stand once for a whole file. ``ticks`` say what
arrives when, and what the speculative form then ``shows``. ``exact``: these very elements, not just their history.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from attrs import Factory, define, evolve

from headwater.algebra import nodes
from headwater.algebra.nodes import AggregateCall, Plan, Project, Source
from headwater.expressions.nodes import Expression
from headwater.expressions.rewrite import column, typed_as
from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.element import Adjust, Element, Insert, Stable
from headwater.model.history import History, show
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.model.types import sql_type
from headwater.model.validity import StreamValidator
from headwater.runtime.replay import replay
from headwater.runtime.stepping import by_hand
from headwater.testing.expression_text import bind_text
from headwater.testing.shape import sources
from headwater.testing.timeline import changes, history, timeline

Tick = dict[str, list[Element]]


# -- the files --------------------------------------------------------------------------------------------------------


@define(kw_only=True)
class Case:
    """One vector as its file has it."""

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

    def names(self) -> list[str]:
        arriving = [name for tick in self.ticks for name in tick if name not in ("shows", "frontier")]
        return list(dict.fromkeys(arriving or self.streams))

    def declared(self, stream: str) -> str:
        return self.columns.get(stream, "x STRING")

    def schema(self, stream: str) -> Schema:
        return Schema.of(**dict(column.split() for column in self.declared(stream).split(",")))

    def read(self, stream: str, text: str | dict[str, str]) -> list[Element]:
        return timeline(_text(text), self.schema(stream))

    def elements(self, stream: str) -> list[Element]:
        parts = [tick[stream] for tick in self.ticks if stream in tick] or [self.streams[stream]]
        return [element for part in parts for element in self.read(stream, part)]


def _text(stream: str | dict[str, str]) -> str:
    """A table of snapshots as a timeline: ``{4 = "a, b", 5- = "a"}`` is ``a @4, b @4, a 5-``."""
    if isinstance(stream, str):
        return stream
    moments = ((f"@{when}" if when.isdigit() else when, rows.split(",")) for when, rows in stream.items())
    return ", ".join(f"{row.strip()} {when}" for when, rows in moments for row in rows)


def load() -> Iterator[tuple[str, Case]]:
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        for raw in content.pop("case"):
            shared = {key: value | raw.get(key, {}) for key, value in content.items()}
            yield path.stem, Case(**(raw | shared))


CASES = list(load())


def cases(chosen: Callable[[Case], object]) -> pytest.MarkDecorator:
    found = [pytest.param(case, id=f"{family}: {case.title}") for family, case in CASES if chosen(case)]
    return pytest.mark.parametrize("case", found)


# -- plans ------------------------------------------------------------------------------------------------------------


NUMBERS = Schema.of(
    **dict.fromkeys(("itemID", "l.itemID", "r.itemID"), "INT"), **{"l.count": "BIGINT", "r.count": "BIGINT"}
)
COLUMNS = Schema((*Schema.of(**dict.fromkeys(("x", "y", "l.x", "r.y"), "STRING")), *NUMBERS))


def scalar(sql: str, type_: str = "STRING") -> Expression:
    """An expression with columns in backquotes."""
    return typed_as(bind_text(sql.replace("`", '"'), COLUMNS), sql_type(type_))


def call(function: str, argument: str | None = None, type_: str = "BIGINT", **options: Any) -> AggregateCall:
    return AggregateCall(function, function.lower(), sql_type(type_), argument, **options)


def union(*sides: Plan) -> Plan:
    return nodes.Union(sides)


def pick(plan: Plan, *names: str, **renamed: str) -> Plan:
    """The columns of these names, then those that get a new one."""
    chosen = {name: name for name in names} | renamed
    columns = ((new, column(plan.schema.field(old))) for new, old in chosen.items())
    return Project(plan, tuple(columns))


class Words(dict[str, Any]):
    """What the text of a plan may name; the parts in ``let`` are made when they are used."""

    def __init__(self, let: dict[str, str], streams: dict[str, Source]) -> None:
        words = {"scalar": scalar, "call": call, "pick": pick, "Union": union, "INFINITY": INFINITY}
        super().__init__(vars(nodes) | words | streams)
        self._let = let

    def __missing__(self, name: str) -> Plan:
        return self.plan(self._let[name])

    def plan(self, text: str) -> Plan:
        return eval(text, {}, self)


def plans(case: Case) -> Iterator[tuple[str, Plan]]:
    """The plan over sources of which nothing is known, and over sources that declare all that is true of them."""
    plain = {name: Source(name, case.schema(name)) for name in case.names()}
    informed = {name: _informed(source, case.elements(name)) for name, source in plain.items()}
    for what, streams in (("plain sources", plain), ("informed sources", informed)):
        if case.plan:
            yield what, Words(case.let, streams).plan(case.plan)
        else:
            yield from ((f"{name} of {what}", stream) for name, stream in streams.items())


def _informed(source: Source, elements: list[Element]) -> Source:
    if not all(isinstance(e, Insert) for e in elements):
        return source
    return evolve(source, revisable=False, chronons=all(e.end == e.start + 1 for e in elements))


# -- arrival ----------------------------------------------------------------------------------------------------------


def arrivals(case: Case, names: list[str]) -> Iterator[tuple[str, list[Tick]]]:
    """All at once; one element a tick, in the order of time or as the case has it; one stream after the other."""
    streams = {name: case.elements(name) for name in names}
    yield "all in one tick", [{name: [*elements, Stable(INFINITY)] for name, elements in streams.items()}]
    end: Tick = {name: [Stable(INFINITY)] for name in names}
    if case.ticks:
        ticks = [{n: case.read(n, tick[n]) for n in names if n in tick} for tick in case.ticks]
        yield "tick by tick", [*ticks, end]
        return
    single: list[Tick] = [{name: part} for name in reversed(names) for part in _followed(streams[name])]
    if len(names) > 1:
        yield "stream by stream", [*single, end]
    if all(map(_is_ordered, streams.values())):
        single.sort(key=lambda tick: next(part[0].start for part in tick.values()))
    yield "one element a tick", [*single, end]


def _is_ordered(elements: list[Element]) -> bool:
    starts = [e.start for e in elements if isinstance(e, Insert)]
    return len(starts) == len(elements) and starts == sorted(starts)


def _followed(elements: list[Element]) -> list[list[Element]]:
    """One element each, with all its copies; where a stream is ordered by start, its frontier follows."""
    ordered = _is_ordered(elements)
    return [[*copies, Stable(e.start)] if ordered else [*copies] for e, copies in groupby(elements)]


# -- operators --------------------------------------------------------------------------------------------------------


@cases(lambda case: case.plan or not case.sql)
def test_operators_give_the_vector(case: Case):
    for what, plan in plans(case):
        for how, ticks in arrivals(case, [source.name for source in sources(plan)]):
            for form in ("strong", "speculative"):
                try:
                    _check(case, plan, ticks, speculative=form == "speculative")
                except Exception as problem:
                    problem.add_note(f"{case.source}, with {what}, {how}, {form}")
                    raise


def _check(case: Case, plan: Plan, ticks: list[Tick], *, speculative: bool) -> None:
    output = Delta.empty(plan.schema)
    looks = case.ticks if speculative and len(ticks) > 1 else []
    for i, (delta, frontier) in enumerate(_run(plan, ticks, speculative=speculative)):
        output = Delta.concat(plan.schema, [output, delta])
        look = looks[i] if i < len(looks) else {}
        if "shows" in look:
            _compare(output, look["shows"], f"after tick {i}")
        assert frontier == look.get("frontier", frontier), f"after tick {i}"
    _compare(output, case.expect, "at the end")
    if case.exact:
        assert sorted(output.consolidate().rows()) == sorted(_expected(case.expect, plan.schema).rows())


def _run(plan: Plan, ticks: list[Tick], *, speculative: bool) -> Iterator[tuple[Delta, int]]:
    """The output tick by tick; every promise that comes with it is checked."""
    runner = by_hand({"query": plan}, speculative=speculative)
    schemas = {source.name: source.schema for source in sources(plan)}
    validator = StreamValidator(plan.schema)
    for tick in ticks:
        deltas = {name: changes(elements, schemas[name]) for name, elements in tick.items()}
        frontiers = {name: e.at for name, elements in tick.items() for e in elements if isinstance(e, Stable)}
        delta, frontier = runner.tick(deltas, frontiers)["query"]
        assert speculative or (delta.consolidate().weight > 0).all(), "the strong form takes something back"
        validator.check_delta(delta, frontier)
        yield delta, frontier
    assert validator.frontier == INFINITY
    assert runner.buffered().rows == 0


def _expected(text: str | dict[str, str], schema: Schema) -> Delta:
    return changes(timeline(_text(text), schema), schema).consolidate()


def _compare(output: Delta, text: str | dict[str, str], when: str) -> None:
    answer, expected = (History.of(output.schema, [d]) for d in (output, _expected(text, output.schema)))
    wrong = [show(*entry) for entry in answer.difference(expected)]
    assert not wrong, f"{when}, too much (or, if negative, missing): {'; '.join(wrong)}"


# -- SQL --------------------------------------------------------------------------------------------------------------


@cases(lambda case: case.sql)
@pytest.mark.parametrize("consistency", ["strong", "middle"])
def test_sql_gives_the_vector(case: Case, consistency: str, tmp_path: Path):
    used = [name for name in case.names() if re.search(rf"\b{name}\b", case.sql)]
    text = "\n".join([*(f"CREATE STREAM {name} ({case.declared(name)});" for name in used), case.sql])
    for how, ticks in arrivals(case, used):
        script = bind_script(text)
        query = script.result or script.named[-1]
        recording = tmp_path / f"{how}.jsonl"
        recording.write_text("".join(f"{json.dumps(line)}\n" for line in _lines(case, ticks)))
        answers = map(json.loads, replay(script, recording, consistency=consistency, history=True))
        rows = [(*a["row"].values(), a["start"], a["end"], a["count"]) for a in answers if a["stream"] == query.name]
        expected = history(_text(case.expect), query.plan.schema).rows()
        wanted = [(*row, start, None if end == INFINITY else end, count) for row, start, end, count in expected]
        assert sorted(rows, key=repr) == sorted(wanted, key=repr), how


def _lines(case: Case, ticks: list[Tick]) -> Iterator[dict[str, Any]]:
    """The ticks in the form of a recording."""
    for tick in ticks:
        for stream, elements in tick.items():
            for element in elements:
                yield {"stream": stream, **_line(case, stream, element)}
        yield {"kind": "tick"}


def _line(case: Case, stream: str, element: Element) -> dict[str, Any]:
    if isinstance(element, Stable):
        return {"kind": "stable", "at": _end(element.at)}
    row = dict(zip(case.schema(stream).names, element.row, strict=True))
    if isinstance(element, Adjust):
        ends = {"kind": "adjust", "end": _end(element.end), "new_end": _end(element.new_end)}
    else:
        ends = {"kind": "insert", "end": _end(element.end)}
    return {"start": element.start, "row": row, **ends}


def _end(instant: int) -> int | None:
    return None if instant == INFINITY else instant
