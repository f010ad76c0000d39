"""Two judges of an answer that share nothing with the operators: the plan instant by instant, and the text on snapshots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from query_corpus import Case, Table
from query_runs import bound, histories, queries
from query_snapshots import NotJudgedError, Snapshots

from headwater.algebra.nodes import (
    Dstream,
    Frames,
    Granularity,
    HopWindow,
    Istream,
    Plan,
    Sample,
    SessionWindow,
    Source,
    TimeWindow,
)
from headwater.language.script import Query
from headwater.model.delta import Delta
from headwater.model.history import show
from headwater.model.schema import Schema
from headwater.model.time import INFINITY, render
from headwater.runtime.json_values import encoder
from headwater.testing.oracle import expected_history
from headwater.testing.shape import extent, sources

FARTHEST = 20_000
"""The oracle looks at every instant: no further than this one."""
EVERY_INSTANT = 160
"""So many instants are all looked at by the judge of snapshots; of more, those at which something may happen."""
LOOKS = 6
"""Of so many of them, where the oracle looks at all."""
_DIGITS = 9


def judge(case: Case, tables: Sequence[Table]) -> tuple[list[str], list[str]]:
    """The judges that agree with the tables, and why the others do not judge; a wrong answer is an ``AssertionError``."""
    agree, silent = [], []
    for name, ask in (("oracle", _by_plan), ("snapshots", _by_snapshots)):
        try:
            ask(case, tables)
            agree.append(name)
        except NotJudgedError as reason:
            silent.append(f"{name}: {reason}")
    return agree, silent


# -- the plan, instant by instant -------------------------------------------------------------------------------------


def _by_plan(case: Case, tables: Sequence[Table]) -> None:
    inputs = _inputs(case)
    for query, table in zip(queries(bound(case)), tables, strict=True):
        last = max(_endpoints(inputs), default=0) + extent(query.plan)
        if last > FARTHEST:
            raise NotJudgedError(f"{last} instants are too many")
        try:
            history = expected_history(query.plan, {s.name: inputs[s.name] for s in sources(query.plan)})
        except NotImplementedError as problem:
            raise NotJudgedError(str(problem)) from None
        except ValueError as problem:
            raise NotJudgedError(str(problem)) from None
        encode = _Encoder(query.plan.schema)
        expected = Counter({(start, end, encode(row)): n for row, start, end, n in history.rows()})
        found = Counter({(start, end, _canonical(row)): n for start, end, n, row in table.rows})
        if found != expected:
            raise AssertionError("\n".join(["the oracle says:", *(f"  {show(*row)}" for row in history.rows())]))


def _inputs(case: Case) -> dict[str, Delta]:
    """All of every stream, as one delta each."""
    return {name: history.delta() for name, history in histories(case.streams, case.recording).items()}


def _endpoints(inputs: dict[str, Delta]) -> Iterator[int]:
    for delta in inputs.values():
        yield from (t for t in (*delta.start.tolist(), *delta.end.tolist()) if t < INFINITY)


# -- the text, on snapshots -------------------------------------------------------------------------------------------


def _by_snapshots(case: Case, tables: Sequence[Table]) -> None:
    inputs, key = _inputs(case), (case.streams, case.recording)
    for query, table in zip(queries(bound(case)), tables, strict=True):
        instants = _instants(query.plan, inputs, table)
        translated = case.notes("duckdb")
        if not translated and any(isinstance(node, Frames) for node in query.plan.walk()):
            raise NotJudgedError("frames look at rows of other instants")
        text = f"{case.streams}\n;\n{translated or case.sql}"
        dialect = "duckdb" if translated else "spark"
        snapshots = Snapshots(key, text, histories(*key), instants, dialect=dialect)
        encode = _Encoder(query.plan.schema)
        for instant in _some(instants):
            expected = Counter(map(encode, snapshots.at(query.name, instant)))
            found = Counter({_canonical(row): n for start, end, n, row in table.rows if start <= instant < end})
            if found != expected:
                raise AssertionError(_difference(query, instant, found, expected))


def _some(instants: Sequence[int]) -> Sequence[int]:
    """Instants all over time: the oracle looks at every one of them."""
    step = -(-len(instants) // LOOKS)
    return instants[:: step or 1] if instants[-1] <= FARTHEST else instants


def _instants(plan: Plan, inputs: dict[str, Delta], table: Table) -> list[int]:
    """Where to look: everywhere if time is short, else wherever the answer may change, and just before."""
    found = changes(plan, inputs) | {t for row in table.rows for t in row[:2] if t < INFINITY}
    last = max(found, default=0) + 2
    if last <= EVERY_INSTANT:
        return list(range(last + 1))
    return sorted({t for change in found for t in (change, change - 1) if t >= 0})


def changes(plan: Plan, inputs: dict[str, Delta]) -> set[int]:
    """The instants at which the plan's answer may change; windows are taken to stand over single instants."""
    if isinstance(plan, Source):
        return set(_endpoints({plan.name: inputs[plan.name]}))
    below = {t for child in plan.inputs for t in changes(child, inputs)}
    match plan:
        case TimeWindow(size=size, slide=slide):
            entering = {-(-(t + 1) // slide) * slide - 1 for t in below}
            return entering if plan.unbounded else entering | {(t + size + slide) // slide * slide - 1 for t in below}
        case Granularity(granule=granule, offset=offset):
            return {-(-(t - offset) // granule) * granule + offset for t in below}
        case Sample(period=period, offset=offset):
            seen = range(min(below, default=0) // period * period + offset, max(below, default=0) + 1, period)
            return {t for instant in seen for t in (instant, instant + 1)}
        case Istream() | Dstream():
            return below | {t + 1 for t in below}
        case HopWindow(size=size, slide=slide, offset=offset):
            lasts = {(t - offset) // slide * slide + offset + size for t in below}
            ends = {last - k * slide for last in lasts for k in range(-(-size // slide) + 1)}
            return {t for end in ends for t in (end, end + slide)}
        case SessionWindow(gap=gap):
            return {t + gap + more for t in below for more in (-1, 0)}
    return below


def _difference(query: Query, instant: int, found: Counter[str], expected: Counter[str]) -> str:
    lines = [f"DuckDB says otherwise of {query.name} at {render(instant)}:"]
    lines += [f"  too much  {row} x{n}" for row, n in (found - expected).items()]
    lines += [f"  missing   {row} x{n}" for row, n in (expected - found).items()]
    return "\n".join(lines)


# -- values -----------------------------------------------------------------------------------------------------------


class _Encoder:
    """Rows of another engine as the canonical text of a row of ours."""

    def __init__(self, schema: Schema) -> None:
        self._types = schema.types
        self._encoders = [encoder(type_) for type_ in schema.types]

    def __call__(self, row: Sequence[Any]) -> str:
        values = [_coerced(value, type_) for value, type_ in zip(row, self._types, strict=True)]
        pairs = zip(values, self._encoders, strict=True)
        return _canonical([v if v is None or encode is None else encode(v) for v, encode in pairs])


def _coerced(value: Any, type_: pa.DataType) -> Any:
    """DuckDB knows more types of numbers than the model."""
    if value is None:
        return None
    if pa.types.is_floating(type_):
        return float(value)
    if pa.types.is_integer(type_):
        return int(value)
    if pa.types.is_decimal(type_):
        return Decimal(value).quantize(Decimal(1).scaleb(-type_.scale))
    if pa.types.is_list(type_):
        return [_coerced(v, type_.value_type) for v in value]
    return value


def _canonical(row: Sequence[Any]) -> str:
    return json.dumps([_rounded(value) for value in row], ensure_ascii=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") + 0.0
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    if isinstance(value, dict):
        return {name: _rounded(v) for name, v in value.items()}
    return value
