"""Replay: run a script over recorded streams, tick by tick, without a wall clock."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import Factory, define

from headwater.errors import InputError
from headwater.language.binder import bind_script
from headwater.language.catalog import Catalog, Derived, Stream
from headwater.language.consistency import MIDDLE, STRONG, Consistency
from headwater.language.emission import ON_START
from headwater.language.notices import Notice
from headwater.language.put_aside import put_aside
from headwater.language.script import Query, Script, no_query
from headwater.language.system_views import SYSTEM_VIEWS
from headwater.language.time_clauses import AlongWallClock
from headwater.model.delta import Delta
from headwater.model.element import Adjust, Row
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Step
from headwater.optimizer.plan_query import plan_query
from headwater.runtime.executor import Executor
from headwater.runtime.json_values import encoder
from headwater.runtime.known_statistics import declared_statistics
from headwater.runtime.recording import Tick, are_chronons, over_recorded, read_recording
from headwater.runtime.stepping import Stepped, StepRunner
from headwater.sources.computed import ComputedColumns


def load_script(path: Path, *, python_functions: bool = True) -> Script:
    """The bound script of a file."""
    return bind_script(read_script(path), Catalog(python_functions=python_functions))


def read_script(path: Path) -> str:
    """The text of a script. From then on the modules beside it can be imported (CREATE FUNCTION … AS 'module:name').

    The folder goes to the end of ``sys.path``: what is installed is found first.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError("UNREADABLE", f'could not read "{path}": {problem.strerror}') from problem
    except UnicodeDecodeError as problem:
        raise InputError("UNREADABLE", f'"{path}" is not text in UTF-8') from problem
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    return text


def replay(
    script: Script,
    recording: Path,
    *,
    consistency: str | None = None,
    emit: str | None = None,
    batch: int | None = None,
    open_ended: bool = False,
    history: bool = False,
    shards: int = 1,
    executor: Executor | None = None,
    folder: Path | None = None,
) -> list[str]:
    """The lines that the script's queries give for the recording; all of the input is checked before anything runs.

    They are the same for any number of shards and any executor; one that is not this process needs a folder for the state.
    """
    queries = list(script.selects or script.streams)
    if not queries and not script.answers:
        raise no_query(script)
    schemas = script.catalog.sources() | _put_aside(script, queries)
    for query in queries:
        _check_recordable(query, schemas)
    derived = [s.name for s in script.catalog if isinstance(s, Derived)]
    streams = (s for s in script.catalog if isinstance(s, Stream) and s.computed)
    computed = {s.name: ComputedColumns.of(s.schema, s.computed) for s in streams}
    ticks = read_recording(recording, schemas, derived=derived, computed=computed, batch=batch)
    if not open_ended:
        ticks = _ended(ticks, schemas)
    outputs = [_Output(q.name, q.plan.schema) for q in queries]
    chronons = {name: are_chronons(e for tick in ticks for e in tick.elements.get(name, ())) for name in schemas}
    known = declared_statistics(s for s in script.catalog if isinstance(s, Stream))
    plans = {
        q.name: plan_query(over_recorded(q.plan, chronons), script.settings, statistics=known).plan for q in queries
    }
    stepped = [
        Stepped(q.name, plans[q.name], consistency=_level(q, consistency), opens=_opens(q, emit)) for q in queries
    ]
    runner = StepRunner(stepped, shards=shards, folder=folder, executor=executor)
    steps = (runner.tick(tick.deltas(schemas), tick.frontiers) for tick in ticks)
    if history:
        deltas: defaultdict[str, list[Delta]] = defaultdict(list)
        for step in steps:
            for name, (delta, _) in step.items():
                deltas[name].append(delta)
        found = [entry for output in outputs for entry in output.history(deltas[output.name])]
        return [line for *_, line in sorted(found)]
    return [line for step in steps for output in outputs for line in output.elements(step[output.name])]


def _put_aside(script: Script, queries: Sequence[Query]) -> dict[str, Schema]:
    """Late and malformed rows that queries read: a recording has none, unless it names them itself."""
    read = {name for query in queries for name in query.plan.streams}
    found = (put_aside(script.catalog, name) for name in read if script.catalog.get(name) is None)
    return {stream.name: stream.schema for stream in found if stream is not None}


def _check_recordable(query: Query, recorded: Collection[str]) -> None:
    """What the engine tells of itself, it tells in wall-clock time, of which a recording has none."""
    for name in query.plan.streams:
        if name not in recorded and name in SYSTEM_VIEWS:
            raise InputError(
                "NO_WALL_CLOCK",
                f'query "{query.name}" reads "{name}", and a replay has no wall clock',
                detail="How far streams are stands in the recording itself, as its stable points.",
                hint="Run it with headwater run, or in an engine.",
            )


def notices_of_replay(script: Script) -> list[Notice]:
    """What is written in the script and means nothing here."""
    along = [
        s.name for s in script.catalog if isinstance(s, Stream) for c in s.clauses if isinstance(c, AlongWallClock)
    ]
    message = "a replay has no wall clock, so ALONG WALL CLOCK says nothing here: the recording's stable points count"
    return [Notice("NO_WALL_CLOCK", f"{message} ({', '.join(along)})")] if along else []


def _ended(ticks: Sequence[Tick], schemas: dict[str, Schema]) -> list[Tick]:
    """The last tick also says that nothing more comes."""
    everything = dict.fromkeys(schemas, INFINITY)
    return [*ticks[:-1], Tick(ticks[-1].elements, everything)]


def _level(query: Query, chosen: str | None) -> Consistency:
    """What is chosen for the run counts more than what the query asks for."""
    if chosen is not None:
        return MIDDLE if chosen == "middle" else STRONG
    return query.consistency or STRONG


def _opens(query: Query, chosen: str | None) -> bool:
    """Likewise; without either, elements come with both ends."""
    return chosen == "start" if chosen is not None else query.emission == ON_START


@define
class _Output:
    """One query's output as lines."""

    name: str
    schema: Schema
    _frontier: int = BEGINNING
    _encoders: list[Any] = Factory(lambda self: [encoder(f.type) for f in self.schema], takes_self=True)

    def elements(self, step: Step) -> list[str]:
        """The elements of one tick in the order of (start, end, row), then how far they are final."""
        lines = [line for *_, line in sorted(self._elements(step.delta.consolidate()))]
        if step.frontier > self._frontier:
            self._frontier = step.frontier
            lines.append(_json({"stream": self.name, "kind": "stable", "at": _instant(step.frontier)}))
        return lines

    def history(self, deltas: Sequence[Delta]) -> Iterator[tuple[str, int, int, str, str]]:
        """(stream, start, end, row, line) for every row of the canonical history."""
        history = History.of(self.schema, deltas)
        for values, start, end, count in history.delta().rows():
            row = self._row(values)
            entry = {"stream": self.name, "start": start, "end": _instant(end), "count": count, "row": row}
            yield self.name, start, end, _json(row), _json(entry)

    def _elements(self, delta: Delta) -> Iterator[tuple[int, int, str, int, str]]:
        for element in delta.to_elements():
            entry = {"start": element.start, "end": _instant(element.end)}
            if isinstance(element, Adjust):
                kind, new_end = "adjust", element.new_end
                entry["new_end"] = _instant(new_end)
            else:
                kind, new_end = "insert", element.end
            row = self._row(element.row)
            line = _json({"stream": self.name, "kind": kind, **entry, "row": row})
            yield element.start, element.end, _json(row), new_end, line

    def _row(self, values: Row) -> dict[str, Any]:
        encoded = (v if v is None or e is None else e(v) for v, e in zip(values, self._encoders, strict=True))
        return dict(zip(self.schema.names, encoded, strict=True))


def _instant(instant: int) -> int | None:
    """The end of time is null."""
    return None if instant == INFINITY else instant


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
