"""Replay: run a script over recorded streams, tick by tick, without a wall clock."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import define

from headwater.errors import InputError
from headwater.language.binder import Query, Script, bind_script
from headwater.language.catalog import Derived
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.base import Step
from headwater.runtime.inprocess import Runner
from headwater.runtime.json_values import encoder
from headwater.runtime.recording import Tick, read_recording


def load_script(path: Path) -> Script:
    """The bound script of a file."""
    try:
        return bind_script(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InputError("UNREADABLE", f'could not read "{path}": {problem.strerror}') from problem
    except UnicodeDecodeError as problem:
        raise InputError("UNREADABLE", f'"{path}" is not text in UTF-8') from problem


def replay(
    script: Script,
    recording: Path,
    *,
    consistency: str | None = None,
    batch: int | None = None,
    open_ended: bool = False,
    history: bool = False,
) -> list[str]:
    """The lines that the script's queries give for the recording; all of the input is checked before anything runs."""
    queries = [script.result] if script.result else list(script.named)
    if not queries:
        raise InputError("NO_QUERY", "the script has no query", hint="Add a SELECT, or CREATE STREAM name AS SELECT …")
    schemas = script.catalog.sources()
    computed = [s.name for s in script.catalog if isinstance(s, Derived)]
    ticks = read_recording(recording, schemas, computed=computed, batch=batch)
    if not open_ended:
        ticks = _ended(ticks, schemas)
    outputs = [_Output(q.name, q.plan.schema) for q in queries]
    steps = _run(queries, ticks, schemas, consistency)
    if history:
        deltas: defaultdict[str, list[Delta]] = defaultdict(list)
        for step in steps:
            for name, (delta, _) in step.items():
                deltas[name].append(delta)
        found = [entry for output in outputs for entry in output.history(deltas[output.name])]
        return [line for *_, line in sorted(found)]
    return [line for step in steps for output in outputs for line in output.elements(step[output.name])]


def _ended(ticks: Sequence[Tick], schemas: dict[str, Schema]) -> list[Tick]:
    """The last tick also says that nothing more comes."""
    everything = dict.fromkeys(schemas, INFINITY)
    return [*ticks[:-1], Tick(ticks[-1].elements, everything)]


def _run(
    queries: Sequence[Query], ticks: Sequence[Tick], schemas: dict[str, Schema], consistency: str | None
) -> Iterator[dict[str, Step]]:
    """The steps of all queries, tick by tick. Queries of one consistency share a graph."""
    groups: defaultdict[bool, dict[str, Any]] = defaultdict(dict)
    for query in queries:
        groups[(consistency or query.consistency or "strong") == "middle"][query.name] = query.plan
    runners = [Runner(plans, speculative=speculative) for speculative, plans in groups.items()]
    for tick in ticks:
        deltas = tick.deltas(schemas)
        steps: dict[str, Step] = {}
        for runner in runners:
            steps.update(runner.tick(deltas, tick.frontiers))
        yield steps


@define
class _Output:
    """One query's output as lines."""

    name: str
    schema: Schema
    _frontier: int = BEGINNING

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
        rows = self._rows(history.delta())
        times = zip(history.start.tolist(), history.end.tolist(), history.count.tolist(), strict=True)
        for row, (start, end, count) in zip(rows, times, strict=True):
            entry = {"stream": self.name, "start": start, "end": _instant(end), "count": count, "row": row}
            yield self.name, start, end, _json(row), _json(entry)

    def _elements(self, delta: Delta) -> Iterator[tuple[int, int, str, int, str]]:
        """Weights as inserts and adjusts: what goes and what comes of one row and start are one change of its end."""
        changes: defaultdict[tuple[str, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        shown: dict[str, dict[str, Any]] = {}
        times = zip(delta.start.tolist(), delta.end.tolist(), delta.weight.tolist(), strict=True)
        for row, (start, end, weight) in zip(self._rows(delta), times, strict=True):
            text = _json(row)
            shown[text] = row
            gone, come = changes[text, start]
            (come if weight > 0 else gone).extend([end] * abs(weight))
        for (text, start), (gone, come) in changes.items():
            gone.sort()
            come.sort()
            paired = min(len(gone), len(come))
            for end, new_end in zip(gone, come[:paired] + [start] * (len(gone) - paired), strict=True):
                yield start, end, text, new_end, self._line("adjust", start, end, shown[text], new_end)
            for end in come[paired:]:
                yield start, end, text, end, self._line("insert", start, end, shown[text])

    def _line(self, kind: str, start: int, end: int, row: dict[str, Any], new_end: int | None = None) -> str:
        entry: dict[str, Any] = {"stream": self.name, "kind": kind, "start": start, "end": _instant(end)}
        if new_end is not None:
            entry["new_end"] = _instant(new_end)
        return _json({**entry, "row": row})

    def _rows(self, delta: Delta) -> list[dict[str, Any]]:
        columns = []
        for column, f in zip(delta.columns, self.schema, strict=True):
            encode, values = encoder(f.type), column.to_pylist()
            columns.append(values if encode is None else [None if v is None else encode(v) for v in values])
        return [dict(zip(self.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _instant(instant: int) -> int | None:
    """The end of time is null."""
    return None if instant == INFINITY else instant


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
