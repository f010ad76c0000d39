"""Plans as plain data and back: what checkpoints keep of them, and what identities are made of.

The form is fixed by ``FORMAT``, not by how plans or expressions are printed. Attributes that have their default are left
out, so that a new attribute of a node changes nothing for plans that do not use it. Whoever reads says what is expected:
only the nodes listed here are made, and nothing in the data names code, but for functions of users by their import path.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any

import attrs
import pyarrow as pa

from headwater.algebra.nodes import AggregateCall, FrameCall, JoinKind, Plan, SetKind, SortKey
from headwater.errors import StateError
from headwater.expressions.nodes import Expression
from headwater.model.functions import UserFunction
from headwater.model.schema import Field, Schema
from headwater.model.types import INTERVAL, parse_sql_type, sql_name

FORMAT = 1
"""Raised when the same plan is written otherwise. Older forms must then be read, or refused (``runtime/checkpoint.py``)."""

_ENUMS: dict[str, type[StrEnum]] = {kind.__name__: kind for kind in (JoinKind, SetKind)}
_VALUES: dict[str, Any] = {"date": date.fromisoformat, "datetime": datetime.fromisoformat, "decimal": Decimal}
_VALUES |= {"bytes": bytes.fromhex, "float": float}


@cache
def _classes() -> dict[str, type]:
    """The classes that data may ask for, by name."""
    listed = [*_below(Plan), *_below(Expression), AggregateCall, FrameCall, SortKey, UserFunction]
    return {kind.__name__: kind for kind in listed if attrs.has(kind)}


def _below(kind: type) -> Iterator[type]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)


def to_data(plan: Plan) -> list[Any]:
    """The nodes of a plan as JSON has them, inputs first; a node that is shared stands there once."""
    places: dict[Plan, int] = {}
    listed = []
    for node in plan.walk():
        listed.append(_record(node, lambda child: {"input": places[child]}))
        places[node] = len(places)
    return listed


def from_data(listed: Sequence[Any]) -> Plan:
    """The plan; raises ``StateError`` for what is none of ours."""
    built: list[Plan] = []
    try:
        for record in listed:
            built.append(_read(record, built))
        return built[-1]
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as problem:
        raise StateError(
            "NOT_OUR_DATA", "a plan cannot be read", detail=f"{type(problem).__name__}: {problem}"
        ) from problem


def to_json(plan: Plan) -> str:
    """One text for equal plans."""
    return _dumped(to_data(plan))


def from_json(text: str) -> Plan:
    """The plan that ``to_json`` has written so; raises ``StateError``."""
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise StateError("NOT_OUR_DATA", "a plan cannot be read", detail=str(problem)) from problem
    return from_data(listed)


def identity(plan: Plan, known: dict[Plan, str]) -> str:
    """A name for what a plan computes: the same for equal plans, in every version of the package.

    ``known`` has those of its parts, and gets the new ones: a part that is shared is looked at once.
    """
    for node in plan.walk():
        if node not in known:
            record = _record(node, lambda child: {"input": known[child]})
            known[node] = digest(record)
    return known[plan]


def digest(data: Any) -> str:
    """A short name for plain data."""
    return hashlib.sha256(_dumped([FORMAT, data]).encode()).hexdigest()[:24]


def _dumped(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


# -- values -------------------------------------------------------------------------------------------------------------


def _record(value: Any, refer: Callable[[Plan], Any]) -> dict[str, Any]:
    """A node: what it is called, and its attributes that have not their default; its inputs as they are referred to."""

    def plain(inner: Any) -> Any:
        return refer(inner) if isinstance(inner, Plan) else _plain(inner, plain)

    return _plain(value, plain)


def _plain(value: Any, plain: Callable[[Any], Any]) -> Any:
    match value:
        case StrEnum():
            return {"enum": type(value).__name__, "value": value.value}
        case None | bool() | int() | str():
            return value
        case float():
            return {"of": "float", "value": repr(value)}
        case bytes():
            return {"of": "bytes", "value": value.hex()}
        case datetime():
            return {"of": "datetime", "value": value.isoformat()}
        case date():
            return {"of": "date", "value": value.isoformat()}
        case Decimal():
            return {"of": "decimal", "value": str(value)}
        case tuple() | list():
            return [plain(item) for item in value]
        case pa.DataType():
            return {"type": sql_name(value)}
        case Schema():
            return {"columns": [[f.name, sql_name(f.type), f.nullable] for f in value]}
    fields = ((a, getattr(value, a.name)) for a in attrs.fields(type(value)) if a.init)
    return {"node": type(value).__name__} | {a.name: plain(v) for a, v in fields if v != a.default}


def _read(data: Any, built: Sequence[Plan]) -> Any:
    match data:
        case {"node": name}:  # first: its attributes may have the names of other tags
            values = {key: _read(value, built) for key, value in data.items() if key != "node"}
            return _classes()[name](**values)
        case {"input": place}:
            return built[place]
        case {"enum": name, "value": value}:
            return _ENUMS[name](value)
        case {"of": kind, "value": value}:
            return _VALUES[kind](value)
        case {"type": name}:
            return INTERVAL if name == "INTERVAL" else parse_sql_type(name)
        case {"columns": columns}:
            return Schema(tuple(Field(name, parse_sql_type(type_), nullable) for name, type_, nullable in columns))
        case dict():
            raise KeyError(*data)
        case list():
            return tuple(_read(item, built) for item in data)
    return data
