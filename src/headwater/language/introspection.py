"""What a script asks about itself: SHOW and DESCRIBE are answered at once, EXPLAIN when its plan is rendered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

from attrs import field, frozen

from headwater.algebra.nodes import Plan
from headwater.expressions.aggregates import BY_SQL_NAME
from headwater.expressions.functions.record import arity
from headwater.expressions.text import to_sql
from headwater.language import heartbeat_function
from headwater.language.catalog import Catalog, Derived, Entry, Function, Kind, Stream, Target
from headwater.language.consistency import Consistency
from headwater.language.durations import shown_duration
from headwater.language.emission import Emission
from headwater.language.functions.registry import SCALARS, SPECIAL_FORMS
from headwater.language.functions.special_functions import SPECIAL_FUNCTIONS
from headwater.language.time_clauses import HeartbeatFromSource, SentAt
from headwater.model.schema import Field
from headwater.model.types import sql_name

SHOW_STREAMS = "SHOW STREAMS"
SHOW_QUERIES = "SHOW QUERIES"
SHOW_SINKS = "SHOW SINKS"
"""The titles of their answers."""


@frozen
class Answer:
    """A small table: what SHOW or DESCRIBE found at its place in the script."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        """Aligned text, a line per row."""
        table = [self.columns, *self.rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(self.columns))]
        rule = ["-" * w for w in widths]
        lines = [
            [cell.ljust(w) for cell, w in zip(row, widths, strict=True)] for row in (self.columns, rule, *self.rows)
        ]
        return "\n".join("  ".join(line).rstrip() for line in lines)


class ExplainLevel(StrEnum):
    LOGICAL = "logical"
    """The plan as written."""
    OPTIMIZED = "optimized"
    PHYSICAL = "physical"
    """The operators that run."""
    HEARTBEAT = "heartbeat"
    """What it waits for: the bounds of its streams, and what follows from them."""


class ExplainFormat(StrEnum):
    TREE = "tree"
    TEXT = "text"
    """The plan text, which can be parsed again."""
    JSON = "json"
    MERMAID = "mermaid"


@frozen
class Explain:
    """A plan that EXPLAIN asks for, as bound: not optimized yet."""

    name: str
    """Of the query, or ``query``."""
    plan: Plan = field(eq=False)
    level: ExplainLevel = ExplainLevel.OPTIMIZED
    format: ExplainFormat = ExplainFormat.TREE
    verbose: bool = False
    consistency: Consistency | None = None
    streams: tuple[Stream, ...] = field(default=(), eq=False)
    """All streams that were declared before it."""
    emission: Emission | None = None


@frozen
class ShownQuery:
    """What SHOW QUERIES says of one query."""

    name: str
    fields: tuple[Field, ...]
    consistency: Consistency | None = None
    uses: frozenset[str] = frozenset()
    emit: str = "-"
    """When its rows go out."""


# -- SHOW -------------------------------------------------------------------------------------------------------------


def show_streams(catalog: Catalog, like: str | None) -> Answer:
    rows = [
        (s.name, _declared(s), (s.time or "") if isinstance(s, Stream) else "", _origin(s), _promises(s))
        for s in _sorted(catalog, (Kind.STREAM,), like)
    ]
    return Answer(SHOW_STREAMS, ("stream", "columns", "time", "source", "promises"), tuple(rows))


def show_tables(catalog: Catalog, like: str | None, kinds: tuple[Kind, ...] = (Kind.TABLE, Kind.VIEW)) -> Answer:
    rows = [(s.name, s.kind.value, _declared(s), ", ".join(s.key), _origin(s)) for s in _sorted(catalog, kinds, like)]
    title = "SHOW VIEWS" if kinds == (Kind.VIEW,) else "SHOW TABLES"
    return Answer(title, ("name", "kind", "columns", "key", "source"), tuple(rows))


def show_sinks(catalog: Catalog, like: str | None) -> Answer:
    sinks = [s for s in _sorted(catalog, (Kind.SINK,), like) if isinstance(s, Derived) and s.target is not None]
    rows = [
        (s.name, _columns(s.fields), str(s.target), _interval(s.target), ", ".join(sorted(s.uses)))
        for s in sinks
        if s.target is not None
    ]
    return Answer(SHOW_SINKS, ("sink", "columns", "to", "every", "uses"), tuple(rows))


def _interval(target: Target) -> str:
    return shown_duration(target.every, unit=True) if target.every else "tick"


def show_queries(queries: Iterable[ShownQuery], like: str | None) -> Answer:
    rows = [
        (q.name, _columns(q.fields), str(q.consistency or "STRONG"), q.emit, ", ".join(sorted(q.uses)))
        for q in queries
        if _matches(q.name, like)
    ]
    return Answer(SHOW_QUERIES, ("query", "columns", "consistency", "emit", "uses"), tuple(rows))


def show_functions(catalog: Catalog, like: str | None, origin: str | None) -> Answer:
    ours = sorted(catalog.functions.values(), key=lambda f: f.name.casefold()) if origin != "SYSTEM" else []
    rows = [(f.name, _function_kind(f), _signature(f), f.definition.path) for f in ours if _matches(f.name, like)]
    if origin != "USER":
        rows += [(n, *_built_in(n), "built in") for n in _BUILT_IN if _matches(n, like)]
    return Answer("SHOW FUNCTIONS", ("function", "kind", "arguments", "source"), tuple(rows))


# -- DESCRIBE ---------------------------------------------------------------------------------------------------------


def describe_fields(name: str, fields: Sequence[Field], entry: Entry | None = None) -> Answer:
    """The columns of a stream, a table or a query, and what each is for."""
    rows = [(f.name, sql_name(f.type), "yes" if f.nullable else "no", _role(f.name, entry)) for f in fields]
    return Answer(f"DESCRIBE {name}", ("column", "type", "nullable", "role"), tuple(rows))


def describe_function(function: Function) -> Answer:
    definition = function.definition
    rows = [
        ("name", function.name),
        ("kind", _function_kind(function)),
        ("arguments", _signature(function)),
        ("returns", sql_name(definition.returns)),
        ("path", definition.path),
    ]
    return Answer(f"DESCRIBE {function.name}", ("property", "value"), tuple(rows))


def describe_built_in(name: str) -> Answer | None:
    """A function of ours; None if there is none of the name."""
    folded = name.lower()
    if folded not in _BUILT_IN:
        return None
    kind, arguments = _built_in(folded)
    rows = (("name", folded), ("kind", kind), ("arguments", arguments), ("path", "built in"))
    return Answer(f"DESCRIBE {folded}", ("property", "value"), rows)


# -- pieces -----------------------------------------------------------------------------------------------------------


_BUILT_IN = sorted({*SCALARS, *SPECIAL_FUNCTIONS, *SPECIAL_FORMS, *BY_SQL_NAME, heartbeat_function.NAME})


def _built_in(name: str) -> tuple[str, str]:
    """Its kind, and what it takes."""
    if name in BY_SQL_NAME:
        return "aggregate", BY_SQL_NAME[name].takes
    if name in SPECIAL_FORMS:
        return "scalar", "a form of its own"
    if name == heartbeat_function.NAME:
        return "scalar", "the name of a stream"
    function = SPECIAL_FUNCTIONS.get(name) or SCALARS[name]
    return "scalar", arity(function.least, function.most)


def _matches(name: str, like: str | None) -> bool:
    """SQL's ``%`` and ``_``, and ``*`` as in Spark; case does not matter."""
    if like is None:
        return True
    pieces = {"%": ".*", "*": ".*", "_": "."}
    pattern = "".join(pieces.get(c, re.escape(c)) for c in like)
    return re.fullmatch(pattern, name, re.IGNORECASE | re.DOTALL) is not None


def _sorted(catalog: Catalog, kinds: tuple[Kind, ...], like: str | None) -> list[Entry]:
    found = [s for s in catalog if s.kind in kinds and _matches(s.name, like)]
    return sorted(found, key=lambda s: s.name.casefold())


def _columns(fields: Iterable[Field]) -> str:
    return ", ".join(map(str, fields))


def _declared(entry: Entry) -> str:
    """The columns, also how some are computed."""
    computed = dict(entry.computed) if isinstance(entry, Stream) else {}
    return ", ".join(f"{f} AS {to_sql(computed[f.name])}" if f.name in computed else str(f) for f in entry.fields)


def _origin(entry: Entry) -> str:
    if isinstance(entry, Derived):
        return "constant" if entry.is_constant else "query"
    if entry.late_rows_of is not None:
        return f"late rows of {entry.late_rows_of}"
    return str(entry.source) if entry.source is not None else ""


def _promises(entry: Entry) -> str:
    """The time clauses as SQL."""
    return " ".join(c.sql(unit=entry.has_unit) for c in entry.clauses) if isinstance(entry, Stream) else ""


def _role(column: str, entry: Entry | None) -> str:
    roles = ["key"] if entry is not None and column in entry.key else []
    if isinstance(entry, Stream):
        roles += ["time"] if column == entry.time else []
        roles += ["time of sending" for c in entry.clauses if isinstance(c, SentAt) and c.column == column]
        roles += [f"computed: {to_sql(expression)}" for name, expression in entry.computed if name == column]
        roles += ["heartbeat" for c in entry.clauses if isinstance(c, HeartbeatFromSource) and c.column == column]
    return ", ".join(roles)


def _function_kind(function: Function) -> str:
    return "aggregate" if function.aggregate else "scalar"


def _signature(function: Function) -> str:
    pairs = zip(function.parameters, function.definition.parameters, strict=True)
    return ", ".join(f"{name} {sql_name(type_)}" for name, type_ in pairs)
