"""The function ``heartbeat(stream)``: how far a stream is. It stands for a sub-query of the table ``heartbeats``."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from headwater.language.catalog import Catalog, Stream
from headwater.language.system_views import HEARTBEATS, SYSTEM_VIEWS
from headwater.language.text import did_you_mean, error_on

NAME = "heartbeat"


def with_heartbeats(text: str, catalog: Catalog, query: exp.Expr) -> exp.Expr:
    """The query with ``(SELECT MIN(heartbeat) FROM heartbeats WHERE stream = 'bid')`` in the place of ``heartbeat(bid)``."""
    calls = [call for call in query.find_all(exp.Anonymous) if call.name.casefold() == NAME]
    for call in calls:
        call.replace(_subquery(_stream(text, catalog, call)))
    return query


def check_time(text: str, catalog: Catalog, query: exp.Expr, read: Collection[str]) -> None:
    """System views are valid in wall-clock time, so that with plain numbers they have no instant in common."""
    numbers = [e.name for name in read if isinstance(e := catalog.get(name), Stream) and not e.has_unit]
    views = [view for name, view in SYSTEM_VIEWS.items() if name in read and catalog.get(name) is None]
    if not views or not numbers:
        return
    view = views[0].name
    message = f'"{view}" is valid in wall-clock time, and "{numbers[0]}" counts time in plain numbers'
    detail, hint = "The two have no instant in common, so nothing would come of it.", f"SELECT * FROM {view}."
    if views[0] is HEARTBEATS:
        detail = f"The function {NAME}() reads that table. {detail}"
        hint = f"SELECT {NAME} FROM {view} WHERE stream = '{numbers[0]}'."
    hint = f"Ask for it in a query of its own: {hint}"
    raise error_on(text, query, "TIME_UNIT", message, detail=detail, hint=hint)


def _stream(text: str, catalog: Catalog, call: exp.Anonymous) -> Stream:
    given = call.expressions
    if len(given) != 1 or not isinstance(given[0], exp.Column) or given[0].args.get("table") is not None:
        message, hint = f'function "{NAME}" takes the name of a stream', f"Write {NAME}(bid)."
        raise error_on(text, call, "WRONG_ARGUMENTS", message, hint=hint)
    name = given[0].name
    found = catalog.get(name)
    if not isinstance(found, Stream):
        streams = [entry.name for entry in catalog if isinstance(entry, Stream)]
        hint = did_you_mean(name, streams, all_of_them="There are")
        message = f'stream "{name}" does not exist' if found is None else f'"{name}" is a query and has no heartbeat'
        raise error_on(text, given[0], "UNKNOWN_STREAM", message, hint=hint)
    if catalog.get(HEARTBEATS.name) is not None:
        message = f'function "{NAME}" reads the table "{HEARTBEATS.name}", but the name is taken'
        raise error_on(text, call, "UNSUPPORTED", message, hint=f'Give your own "{HEARTBEATS.name}" another name.')
    return found


def _subquery(stream: Stream) -> exp.Subquery:
    """Of all partitions; in the type of the stream's time."""
    least: exp.Expr = exp.Anonymous(this="MIN", expressions=[exp.column("heartbeat")])
    if stream.has_unit:
        least = exp.Anonymous(this="timestamp_micros", expressions=[least])
    mine = exp.EQ(this=exp.column("stream"), expression=exp.Literal.string(stream.name))
    return exp.select(least).from_(HEARTBEATS.name).where(mine).subquery()
