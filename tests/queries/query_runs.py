"""Cases run as ``headwater replay`` runs them: bound, planned and executed tick by tick over a recording."""

from __future__ import annotations

import json
import tempfile
from functools import cache, lru_cache
from pathlib import Path

import pyarrow as pa
from attrs import evolve
from query_corpus import Case, Recording, Table, elements

from headwater.algebra.plan_text import print_plan
from headwater.backends.explain import explain
from headwater.language.binder import bind_script
from headwater.language.catalog import Catalog
from headwater.language.introspection import Explain, ExplainLevel
from headwater.language.script import Query, Script
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.runtime.json_values import encoder
from headwater.runtime.recording import Tick, read_recording
from headwater.runtime.replay import replay
from headwater.testing.plan_text import parse_plan

Way = tuple[str | None, int | None, str]
"""(consistency, elements per tick, optimizer on or off)"""
WAYS: tuple[Way, ...] = ((None, None, "on"), (None, None, "off"), ("middle", 3, "on"))
"""As the query says and all in one tick, without the optimizer, in other cuts. The strong form of these: ``final``."""


@lru_cache(maxsize=4)
def bound(case: Case) -> Script:
    """The case's script; its lines are counted from its own first line."""
    catalog = Catalog()
    streams = bind_script(case.streams, catalog)
    return bind_script(case.sql, catalog, streams.settings)


def queries(script: Script) -> list[Query]:
    """What the script asks for: its SELECTs, or else every stream that it defines."""
    return list(script.selects or script.named)


def tables(case: Case, consistency: str | None, batch: int | None, optimizer: str = "on") -> list[Table]:
    """The history of every query, run in one of the ways."""
    script = bound(case)
    script = evolve(script, settings=script.settings.with_value("optimizer", optimizer))
    recording = recorded(case.streams, case.recording)
    rows: dict[str, list[tuple[int, int, int, tuple[object, ...]]]] = {}
    for line in map(json.loads, replay(script, recording, consistency=consistency, batch=batch, history=True)):
        end = INFINITY if line["end"] is None else line["end"]
        rows.setdefault(line["stream"], []).append((line["start"], end, line["count"], tuple(line["row"].values())))
    return [Table(q.name, q.plan.schema.names, tuple(rows.get(q.name, ()))) for q in queries(script)]


def explained(case: Case) -> None:
    """Every plan of the case can be explained, as written, as optimized and as run; and its text means the same plan."""
    script = bound(case)
    for query in queries(script):
        for level in ExplainLevel:
            assert explain(Explain(query.name, query.plan, level), script.settings), level
        written = print_plan(query.plan)
        assert print_plan(parse_plan(written)) == written, f"the plan text is read as another plan:\n{written}"


def final(case: Case) -> list[Table]:
    """The same from what the strong form gives element by element, which it never takes back."""
    script = bound(case)
    lines = replay(script, recorded(case.streams, case.recording), consistency="strong", batch=1)
    taken_back = [line for line in lines if json.loads(line)["kind"] == "adjust"]
    assert not taken_back, f"the strong form takes something back: {taken_back[0]}"
    path = Path(_folder().name) / "output.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    schemas = {query.name: query.plan.schema for query in queries(script)}
    (tick,) = read_recording(path, schemas)
    assert all(tick.frontiers.get(name) == INFINITY for name in schemas), "the end is not final"
    return [_table(name, schema, tick) for name, schema in schemas.items()]


def _table(name: str, schema: Schema, tick: Tick) -> Table:
    history = History.of(schema, [Delta.from_elements(schema, tick.elements[name])])
    encode = [encoder(field.type) or (lambda value: value) for field in schema]
    rows = []
    for row, start, end, n in history.rows():
        values = tuple(None if v is None else e(v) for v, e in zip(row, encode, strict=True))
        shown = json.dumps(dict(zip(schema.names, values, strict=True)), separators=(",", ":"), ensure_ascii=False)
        rows.append((start, end, shown, (start, end, n, values)))
    return Table(name, schema.names, tuple(row for *_, row in sorted(rows, key=lambda r: r[:3])))


@cache
def histories(streams: str, recording: Recording) -> dict[str, History]:
    """What was valid when in every stream of the input; cases declare no streams of their own."""
    schemas = bind_script(streams).catalog.sources()
    (tick,) = read_recording(recorded(streams, recording), schemas)
    deltas = tick.deltas(schemas)
    return {name: History.of(schema, [deltas[name]] if name in deltas else []) for name, schema in schemas.items()}


@cache
def recorded(streams: str, recording: Recording) -> Path:
    """A file with the recording, made once for all cases that use it."""
    columns = {
        name: [(field.name, pa.types.is_string(field.type)) for field in schema]
        for name, schema in bind_script(streams).catalog.sources().items()
    }
    text = "".join(f"{json.dumps(line)}\n" for line in elements(recording, columns))
    path = Path(_folder().name) / f"{len(list(Path(_folder().name).iterdir()))}.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="headwater-queries-")
