"""A node of a plan in one line, as a person would say it."""

from __future__ import annotations

import pyarrow as pa

from headwater.algebra import nodes as n
from headwater.algebra.expressions import plain_column, renamed
from headwater.model.time import INFINITY, MICROSECONDS

_UNITS = [(name, length) for name, length in reversed(MICROSECONDS.items()) if name != "WEEK"]
_LONGEST = 100


def is_timed(plan: n.Plan) -> bool:
    """Do the plan's instants count microseconds? Taken from the sources: they have a TIMESTAMP, or nothing does."""
    found = [s for s in plan.walk() if isinstance(s, n.Source)]
    return any(pa.types.is_timestamp(f.type) for s in found for f in s.schema)


def length(instants: int, *, timed: bool) -> str:
    """A length of time: ``10 MINUTES`` where instants are microseconds, else the number of instants."""
    if instants == INFINITY:
        return "UNBOUNDED"
    if timed:
        for name, unit in _UNITS:
            if instants % unit == 0:
                return f"{instants // unit:,} {name}{'' if instants == unit else 'S'}"
    return f"{instants:,}"


def label(plan: n.Plan, *, timed: bool) -> str:
    """What the node does, without what is below it."""
    text = _label(plan, timed)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _label(plan: n.Plan, timed: bool) -> str:
    match plan:
        case n.Source(name=name):
            return f"Source {name}"
        case n.Constant(rows=rows):
            return f"Constant of {len(rows)} row{'' if len(rows) == 1 else 's'}" if rows else "Nothing"
        case n.Filter(predicate=predicate):
            return f"Filter {_plain(predicate.sql)}"
        case n.Project(expressions=expressions):
            return f"Project {', '.join(_output(name, s) for name, s in expressions)}"
        case n.Join():
            return _join(plan)
        case n.SetOperation(kind=kind):
            return kind.value.capitalize()
        case n.Aggregate():
            return _aggregate(plan)
        case n.TimeWindow(size=size, slide=slide):
            sliding = f" SLIDE {length(slide, timed=timed)}" if slide != 1 else ""
            return f"Window RANGE {length(size, timed=timed)}{sliding}"
        case n.RowWindow(rows=rows, slide=slide, partition=partition):
            sliding = f" SLIDE {slide:,}" if slide != 1 else ""
            return f"Window {_by('PARTITION BY', partition)}ROWS {rows:,}{sliding}"
        case n.HopWindow(size=size, slide=slide, lifetime=lifetime):
            kind = "Tumble" if size == slide else f"Hop by {length(slide, timed=timed)}, size"
            shown = f", shown for {length(lifetime, timed=timed)}" if lifetime is not None else ""
            return f"{kind} {length(size, timed=timed)}{shown}"
        case n.SessionWindow(gap=gap, partition=partition):
            return f"Session {_by('PARTITION BY', partition)}gap {length(gap, timed=timed)}"
        case n.TopK():
            return _top(plan)
        case n.Await(other=other):
            return f"Wait for {', '.join(s.name for s in other.walk() if isinstance(s, n.Source))}"
        case n.Granularity(granule=granule, offset=offset):
            return f"Granularity {length(granule, timed=timed)}{_offset(granule, offset, timed=timed)}"
        case n.Sample(period=period, offset=offset):
            return f"Refresh every {length(period, timed=timed)}{_offset(period, offset, timed=timed)}"
        case n.Stamp(column=column):
            return f"Stamp {column} (the instant of arrival)"
        case n.Split(length=piece):
            return f"Split into {length(piece, timed=timed)}" if piece > 1 else "Split into instants (Rstream)"
        case n.Coalesce(longest=longest):
            return "Coalesce" if longest == INFINITY else f"Coalesce up to {length(longest, timed=timed)}"
    return type(plan).__name__


def _offset(step: int, offset: int, *, timed: bool) -> str:
    """A refresh is at the last instant of a slide, just before the next one begins."""
    late = offset % step
    if late and late == step - 1:
        return " (at the last instant)"
    return f" ({length(late, timed=timed)} later)" if late else ""


def _join(plan: n.Join) -> str:
    on = [f"{a} = {b}" for a, b in plan.keys]
    if plan.residual is not None:
        columns = {name: name[2:] for name in plan.residual.columns}  # without l. and r.
        on.append(_plain(renamed(plan.residual, columns).sql))
    if not on:
        return f"{'Cross' if plan.kind is n.JoinKind.INNER else plan.kind.value.capitalize()} join"
    return f"{plan.kind.value.capitalize()} join on {' AND '.join(on)}"


def _aggregate(plan: n.Aggregate) -> str:
    calls = ", ".join(f"{_call(c)} AS {c.output}" for c in plan.calls)
    groups = f" by {', '.join(plan.keys)}" if plan.keys else ""
    return f"Aggregate{groups}{': ' if calls else ''}{calls}"


def _call(call: n.AggregateCall) -> str:
    inside = f"{'DISTINCT ' if call.distinct else ''}{call.argument or '*'}"
    only = f" FILTER ({call.filter})" if call.filter else ""
    return f"{call.function}({inside}){only}"


def _top(plan: n.TopK) -> str:
    order = ", ".join(f"{k.column}{' DESC' if k.descending else ''}" for k in plan.order)
    many = "Number rows" if plan.limit == INFINITY else f"Top {plan.limit:,}"
    skipped = f" after {plan.offset:,}" if plan.offset else ""
    sorting = f" by {order}" if order else ""
    partition = f" in each {', '.join(plan.partition)}" if plan.partition else ""
    return f"{many}{skipped}{sorting}{partition}"


def _by(words: str, columns: tuple[str, ...]) -> str:
    return f"{words} {', '.join(columns)} " if columns else ""


def _output(name: str, scalar: n.Scalar) -> str:
    plain = plain_column(scalar)
    return name if plain == name else f"{_plain(scalar.sql)} AS {name}"


def _plain(sql: str) -> str:
    """Without the quotes around columns: for reading only."""
    return sql.replace('"', "")
