"""Unit tests of queries: what a script answers to a few rows, however they arrive.

>>> check_query(
...     "CREATE STREAM bid (item STRING, price INT); SELECT item, MAX(price) AS best FROM bid [RANGE 10] GROUP BY item",
...     {"bid": "lamp/20 @1, lamp/25 @4"},
...     "lamp/20 1-4, lamp/25 4-14",
... )
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.errors import InputError
from headwater.language.binder import bind_script
from headwater.language.catalog import Catalog, Stream
from headwater.language.script import Query, Script
from headwater.model.element import Adjust, Element, Insert, Stable
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import INFINITY, MICROSECONDS, unit_of
from headwater.runtime.json_values import encoder
from headwater.runtime.replay import replay
from headwater.sources.timed import as_times
from headwater.testing.timeline import changes, render_timeline, timeline

Rows = list[tuple[str, int, int, int, str]]
"""(query, start, end, copies, the row as JSON): what a history says, in order."""


def check_query(
    script: str, inputs: Mapping[str, str], answer: str | Mapping[str, str], *, unit: str | None = None
) -> None:
    """Raise ``AssertionError`` unless a script's answer over these rows is the one given.

    The rows come in one tick and one by one, and, if nothing takes any of them back, in the opposite order; the answer is
    given when it is final and at once with repairs: all of these must end in the same history.

    Parameters
    ----------
    script
        Declares its streams and has one query, or several with names (CREATE STREAM name AS …). Sources are not read.
    inputs
        By stream, its rows in the notation of ``headwater.testing.timeline``: ``"lamp/20 @1, lamp/25 4-9"``. A time column
        (ORDERED BY) is left out: it is where the row begins.
    answer
        In the same notation, when which row holds; of several queries by name.
    unit
        What the instants of all of these count: ``"minute"``, for streams ordered by a TIMESTAMP. If not given: as they are.

    >>> sql = '''
    ...     CREATE STREAM visit (page STRING, ts TIMESTAMP) ORDERED BY ts;
    ...     SELECT page, COUNT(*) AS n FROM visit WINDOW(RANGE 5 MINUTES) GROUP BY page
    ... '''
    >>> check_query(sql, {"visit": "home @1, home @3"}, "home/1 1-3, home/2 3-6, home/1 6-8", unit="minute")
    >>> check_query(sql, {"visit": "home @1"}, "home/1 1-5", unit="minute")
    Traceback (most recent call last):
    AssertionError: the answer is another one
      expected: home/1 1-5
      answered: home/1 1-6
    """
    scale = 1 if unit is None else MICROSECONDS[unit_of(unit)]
    bound = bind_script(script, Catalog())
    streams = {name: _elements(bound, name, text, scale) for name, text in inputs.items()}
    queries = list(bound.selects or bound.streams)  # those that a replay runs
    expected = sorted(_expected(queries, answer, scale))
    for elements, options in _ways(streams):
        answered = sorted(_answered(bound, elements, **options))
        if answered != expected:
            told = f"  expected: {_shown(queries, expected, scale)}\n  answered: {_shown(queries, answered, scale)}"
            raise AssertionError(f"the answer is another one\n{told}")


def _elements(bound: Script, name: str, text: str, scale: int) -> list[Element]:
    """The rows of a stream, with the time that each begins at in its time column."""
    stream = bound.catalog.get(name)
    if not isinstance(stream, Stream):
        declared = ", ".join(bound.catalog.sources()) or "none"
        raise InputError("UNKNOWN_STREAM", f'stream "{name}" is not declared', hint=f"The script declares {declared}.")
    if stream.time is None or stream.time not in stream.schema.names:
        return timeline(text, stream.schema, scale=scale)
    place = stream.schema.index(stream.time)
    rest = Schema(tuple(field for field in stream.schema if field.name != stream.time))
    found = timeline(text, rest, scale=scale)
    return [_with_time(element, place, stream.schema.types[place]) for element in found]


def _with_time(element: Element, place: int, type_: pa.DataType) -> Element:
    if isinstance(element, Stable):
        return element
    time = as_times(pa.array([element.start]).to_numpy(), type_)[0].as_py()
    row = (*element.row[:place], time, *element.row[place:])
    if isinstance(element, Adjust):
        return Adjust(row, element.start, element.end, element.new_end)
    return Insert(row, element.start, element.end)


def _ways(streams: Mapping[str, Sequence[Element]]) -> Iterator[tuple[list[tuple[str, Element]], dict[str, Any]]]:
    """In which order elements come, and how they are run."""
    forward = [(name, element) for name, elements in streams.items() for element in elements]
    yield forward, {}
    yield forward, {"consistency": "strong", "batch": 1}
    yield forward, {"consistency": "middle", "batch": 1}
    if all(isinstance(element, Insert) for _, element in forward):
        yield forward[::-1], {"consistency": "middle", "batch": 1}


def _answered(bound: Script, elements: Sequence[tuple[str, Element]], **options: Any) -> Rows:
    schemas = bound.catalog.sources()
    with tempfile.TemporaryDirectory(prefix="headwater-") as folder:
        recording = Path(folder) / "recording.jsonl"
        lines = (json.dumps(_line(name, element, schemas[name])) for name, element in elements)
        recording.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        found = [json.loads(line) for line in replay(bound, recording, history=True, **options)]
    return [
        (f["stream"], f["start"], INFINITY if f["end"] is None else f["end"], f["count"], json.dumps(f["row"]))
        for f in found
    ]


def _line(name: str, element: Element, schema: Schema) -> dict[str, Any]:
    if isinstance(element, Stable):
        return {"stream": name, "kind": "stable", "at": _instant(element.at)}
    shared = {"stream": name, "start": element.start, "end": _instant(element.end), "row": _row(element.row, schema)}
    if isinstance(element, Adjust):
        return {"kind": "adjust", "new_end": _instant(element.new_end), **shared}
    return {"kind": "insert", **shared}


def _row(values: Sequence[Any], schema: Schema) -> dict[str, Any]:
    encoders = (encoder(field.type) for field in schema)
    encoded = (v if v is None or e is None else e(v) for v, e in zip(values, encoders, strict=True))
    return dict(zip(schema.names, encoded, strict=True))


def _instant(instant: int) -> int | None:
    return None if instant == INFINITY else instant


def _expected(queries: Sequence[Query], answer: str | Mapping[str, str], scale: int) -> Iterator[tuple[Any, ...]]:
    if isinstance(answer, str):
        if len(queries) != 1:
            names = ", ".join(query.name for query in queries) or "none"
            hint = 'Give a text for each, by name: {"name": "…"}.'
            raise InputError("WHICH_QUERY", f"an answer is for one query, and the script has {names}", hint=hint)
        answer = {queries[0].name: answer}
    for query in queries:
        schema = query.plan.schema
        told = timeline(answer.get(query.name, ""), schema, scale=scale)
        for row, start, end, count in History.of(schema, [changes(told, schema)]).rows():
            yield query.name, start, end, count, json.dumps(_row(row, schema))


def _shown(queries: Sequence[Query], rows: Sequence[tuple[Any, ...]], scale: int) -> str:
    """As timelines; of several queries each with its name."""
    texts = []
    for query in queries:
        own = [
            Insert(tuple(json.loads(row).values()), start, end)
            for name, start, end, count, row in rows
            if name == query.name
            for _ in range(count)
        ]
        text = render_timeline(own, scale=scale) or "nothing"
        texts.append(f"{query.name}: {text}" if len(queries) > 1 else text)
    return "; ".join(texts)
