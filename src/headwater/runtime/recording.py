"""Recorded physical streams: elements as JSON lines, read and checked as a whole before anything runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from attrs import define, evolve, field

from headwater.algebra.nodes import Plan, Source
from headwater.errors import HeadwaterError, InputError
from headwater.language.text import did_you_mean
from headwater.model.delta import Delta
from headwater.model.element import Adjust, Insert, Stable
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.types import sql_name
from headwater.model.validity import StreamValidator
from headwater.runtime.json_values import Decode, WrongValueError, decoder
from headwater.sources.computed import ComputedColumns
from headwater.sources.conform import UnfitError, find_column

_KEYS = {
    "insert": {"stream", "kind", "start", "end", "at", "row"},
    "adjust": {"stream", "kind", "start", "end", "at", "new_end", "row"},
    "stable": {"stream", "kind", "at"},
    "tick": {"kind"},
}


@define
class Tick:
    """What happens between two moments at which results are visible."""

    elements: dict[str, list[Insert | Adjust]] = field(factory=lambda: defaultdict(list))
    frontiers: dict[str, int] = field(factory=dict)

    def deltas(self, schemas: Mapping[str, Schema]) -> dict[str, Delta]:
        return {
            name: Delta.from_elements(schemas[name], elements).consolidate() for name, elements in self.elements.items()
        }


def read_recording(
    path: Path,
    schemas: Mapping[str, Schema],
    *,
    derived: Iterable[str] = (),
    computed: Mapping[str, ComputedColumns] = MappingProxyType({}),
    batch: int | None = None,
) -> list[Tick]:
    """The ticks of a recording: at its tick lines, or else every ``batch`` elements, or all in one.

    The last one is what comes after the last cut, perhaps nothing.
    Every element is checked against the columns of its stream and against all that came before it.
    ``derived``: streams that queries make; ``computed``: by stream the columns that are computed where a row lacks them.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError("UNREADABLE", f'could not read "{path}": {problem.strerror}') from problem
    except UnicodeDecodeError as problem:
        raise InputError("UNREADABLE", f'"{path}" is not text in UTF-8') from problem
    reader = _Reader(schemas, frozenset(derived), computed)
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            with _on_line(number):
                reader.take(number, line)
    return reader.ticks(batch)


@contextmanager
def _on_line(number: int) -> Iterator[None]:
    """A mistake is one of this line."""
    try:
        yield
    except HeadwaterError as problem:
        message = f"line {number}: {problem.message}"
        raise type(problem)(problem.code, message, detail=problem.detail, hint=problem.hint) from problem


class _Reader:
    def __init__(
        self, schemas: Mapping[str, Schema], derived: frozenset[str], computed: Mapping[str, ComputedColumns]
    ) -> None:
        self._streams = {name: _Stream(name, schema, computed.get(name)) for name, schema in schemas.items()}
        self._derived = derived
        self._entries: list[tuple[str, Insert | Adjust | Stable] | None] = []  # None: a tick line

    def take(self, number: int, line: str) -> None:
        entry = _parse(line)
        kind = entry.get("kind")
        if not isinstance(kind, str) or kind not in _KEYS:
            message = f"unknown kind {json.dumps(kind)}" if "kind" in entry else 'the key "kind" is missing'
            raise InputError("BAD_ELEMENT", message, hint=f"It is one of {', '.join(_KEYS)}.")
        unknown = sorted(entry.keys() - _KEYS[kind])
        if unknown:
            hint = did_you_mean(unknown[0], _KEYS[kind])
            raise InputError("BAD_ELEMENT", f'{_a(kind)} has no key "{unknown[0]}"', hint=hint)
        if kind == "tick":
            self._entries.append(None)
            return
        stream = self._stream(entry)
        element = stream.element(kind, entry)
        if stream.computed is None:
            stream.validator.check_element(element)
        else:  # once all of its columns are known
            stream.unchecked.append((number, len(self._entries), element))
        self._entries.append((stream.name, element))

    def _stream(self, entry: dict[str, Any]) -> _Stream:
        name = entry.get("stream")
        if not isinstance(name, str):
            raise InputError("BAD_ELEMENT", 'the key "stream" is missing or no string')
        if name in self._streams:
            return self._streams[name]
        if name in self._derived:
            raise InputError("UNKNOWN_STREAM", f'stream "{name}" is computed by a query and takes no elements')
        hint = did_you_mean(name, self._streams) or f"The script declares {', '.join(self._streams) or 'none'}."
        raise InputError("UNKNOWN_STREAM", f'stream "{name}" is not declared in the script', hint=hint)

    def ticks(self, batch: int | None) -> list[Tick]:
        for stream in self._streams.values():
            for place, element in stream.checked():
                self._entries[place] = stream.name, element
        ticked = any(entry is None for entry in self._entries)
        ticks, current, size = [], Tick(), 0
        for entry in self._entries:
            if entry is not None:
                name, element = entry
                if isinstance(element, Stable):
                    current.frontiers[name] = element.at
                else:
                    current.elements[name].append(element)
                size += 1
            if entry is None or (not ticked and size == batch):
                ticks.append(current)
                current, size = Tick(), 0
        return [*ticks, current]


class _Stream:
    """One declared stream: turns JSON into elements of it."""

    def __init__(self, name: str, schema: Schema, computed: ComputedColumns | None) -> None:
        self.name, self.schema, self.computed = name, schema, computed
        self.unchecked: list[tuple[int, int, Insert | Adjust | Stable]] = []
        """Elements that may lack computed columns, each with its line and its place."""
        self.validator = StreamValidator(schema)
        self._decoders: dict[str, Decode] = {f.name: decoder(f.type) for f in schema}
        self._shapes: dict[tuple[str, ...], list[str | None]] = {}
        """By the keys of a row, in their order: which of them is each column."""

    def element(self, kind: str, entry: dict[str, Any]) -> Insert | Adjust | Stable:
        if kind == "stable":
            return Stable(_instant(entry, "at", infinite=True))
        start, end = self._interval(entry)
        row = self._row(entry)
        if kind == "insert":
            return Insert(row, start, end)
        return Adjust(row, start, end, _instant(entry, "new_end", infinite=True))

    def checked(self) -> Iterator[tuple[int, Insert | Adjust | Stable]]:
        """Those elements with all columns, by their places: all rows that lack some are computed at once."""
        if self.computed is None:
            return
        names, made = self.computed.names, [i for i, f in enumerate(self.schema) if f.name in self.computed.names]
        rows = [(number, e) for number, _, e in self.unchecked if not isinstance(e, Stable)]
        columns = zip(*(e.row for _, e in rows), strict=True) if rows else ((),) * len(self.schema)
        arrays = {f.name: pa.array(c, f.type) for f, c in zip(self.schema, columns, strict=True) if f.name not in names}
        found, reasons = self.computed.added(pa.RecordBatch.from_pydict(arrays), None)
        values = zip(*(found.column(i).to_pylist() for i in made), strict=True)
        told = [None] * len(rows) if reasons is None else reasons.to_pylist()
        complete = {number: (new, why) for (number, _), new, why in zip(rows, values, told, strict=True)}
        for number, place, element in self.unchecked:
            with _on_line(number):
                whole = element if isinstance(element, Stable) else self._complete(element, made, *complete[number])
                self.validator.check_element(whole)
            yield place, whole

    def _complete(
        self, element: Insert | Adjust, places: Sequence[int], values: Sequence[Any], why: str | None
    ) -> Insert | Adjust:
        """With the computed values in the places of those that the row lacks."""
        if why is not None:
            raise InputError("BAD_VALUE", f'stream "{self.name}": {why}')
        row = list(element.row)
        for place, value in zip(places, values, strict=True):
            row[place] = value if row[place] is None else row[place]
        return evolve(element, row=tuple(row))

    @staticmethod
    def _interval(entry: dict[str, Any]) -> tuple[int, int]:
        if "at" in entry:
            if "start" in entry or "end" in entry:
                raise InputError("BAD_ELEMENT", 'an element has either "at" or "start" and "end"')
            at = _instant(entry, "at")
            return at, at + 1
        return _instant(entry, "start"), _instant(entry, "end", infinite=True)

    def _row(self, entry: dict[str, Any]) -> tuple[Any, ...]:
        given = entry.get("row")
        if not isinstance(given, dict):
            raise InputError("BAD_ELEMENT", 'the key "row" is missing or no object')
        if (shape := tuple(given)) not in self._shapes:
            self._shapes[shape] = self._keys(shape)
        pairs = zip(self.schema, self._shapes[shape], strict=True)
        lacking = frozenset() if self.computed is None else self.computed.names
        return tuple(
            self._value(f.name, None if k is None else given[k], nullable=f.nullable or f.name in lacking)
            for f, k in pairs
        )

    def _keys(self, shape: tuple[str, ...]) -> list[str | None]:
        """How a row spells the columns, by the rule of all formats; None: it does not have one."""
        try:
            places = [find_column(name, shape) for name in self.schema.names]
        except UnfitError as problem:
            raise InputError("AMBIGUOUS_COLUMN", f'stream "{self.name}": {problem}') from None
        unknown = [name for i, name in enumerate(shape) if i not in places]
        if unknown:
            hint = did_you_mean(unknown[0], self._decoders) or f"The columns are {', '.join(self._decoders)}."
            raise InputError("UNKNOWN_COLUMN", f'stream "{self.name}" has no column "{unknown[0]}"', hint=hint)
        return [None if place < 0 else shape[place] for place in places]

    def _value(self, name: str, value: Any, *, nullable: bool) -> Any:
        if value is None:
            if nullable:
                return None
            raise InputError("NULL_VALUE", f'column "{name}" of stream "{self.name}" is NOT NULL')
        try:
            return self._decoders[name](value)
        except WrongValueError as problem:
            type_ = sql_name(self.schema.field(name).type)
            shown = json.dumps(value, default=float, ensure_ascii=False)
            raise InputError(
                "BAD_VALUE",
                f'column "{name}" of stream "{self.name}" is {type_}, which {shown} is not',
                detail=f"It must be {problem}.",
            ) from None


def _parse(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_without_repeats)
    except (json.JSONDecodeError, RecursionError) as problem:
        place = f" at column {problem.colno}" if isinstance(problem, json.JSONDecodeError) else ""
        raise InputError("BAD_JSON", f"this is not JSON{place}") from None
    if not isinstance(entry, dict):
        raise InputError("BAD_JSON", "a line must be a JSON object")
    return entry


def _no_constant(name: str) -> Any:
    raise InputError("BAD_JSON", f"{name} is not JSON", hint=f'Write it as a string: "{name}".')


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(n for n in names if names.count(n) > 1)
        raise InputError("BAD_JSON", f'the key "{repeated}" comes twice')
    return found


def _instant(entry: dict[str, Any], key: str, *, infinite: bool = False) -> int:
    if key not in entry:
        raise InputError("BAD_ELEMENT", f'the key "{key}" is missing')
    value = entry[key]
    if value is None and infinite:
        return INFINITY
    if not isinstance(value, int) or isinstance(value, bool):
        allowed = "a whole number, or null for infinity" if infinite else "a whole number"
        raise InputError("BAD_ELEMENT", f'"{key}" must be {allowed}, not {json.dumps(value, default=float)}')
    if not BEGINNING < value < INFINITY:
        raise InputError("BAD_ELEMENT", f'"{key}" must fit in 64 bits, which {value} does not')
    return value


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "ai" else f"a {kind}"


# -- plans over recordings --------------------------------------------------------------------------------------------


def are_chronons(elements: Iterable[Insert | Adjust]) -> bool:
    """Does a recorded stream have only elements of one instant?"""
    return all(isinstance(e, Insert) and e.end == e.start + 1 for e in elements)


def over_recorded(plan: Plan, chronons: Mapping[str, bool]) -> Plan:
    """The plan over streams as they were recorded, whatever their declarations let expect. Anything may be revised."""
    done: dict[Plan, Plan] = {}
    for node in plan.walk():
        if isinstance(node, Source):
            recorded = Source(node.name, node.columns, chronons=chronons[node.name], unordered=node.unordered)
            done[node] = recorded
        else:
            done[node] = node.with_new_inputs(done[child] for child in node.inputs)
    return done[plan]
