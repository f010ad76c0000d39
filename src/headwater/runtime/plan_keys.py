"""What of a plan names its states, so that a query finds them again although a declaration has changed.

Columns of a stream that a query does not read, and the order in which they are declared, are none of its business: between
a stream and the first projection there are only operators that remember nothing, so no state has ever seen them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import astuple, evolve

from headwater.algebra import nodes as n
from headwater.algebra.plan_data import identity
from headwater.errors import InputError
from headwater.expressions.rewrite import column
from headwater.model.schema import Schema
from headwater.model.types import sql_name
from headwater.optimizer.labels import is_timed

_BETWEEN = (n.Filter, n.TimeWindow, n.Granularity, n.HopWindow, n.Unnest)
"""Operators that remember nothing, and hand on the columns of their input."""


def plan_key(plan: n.Plan, known: dict[n.Plan, str]) -> str:
    """A name for what a plan computes of streams with only the columns that it reads; ``known``: of its parts."""
    return identity(narrow(plan), known)


def read_columns(plan: n.Plan) -> dict[str, dict[str, str]]:
    """By stream: what a plan reads of it, with the types, for messages."""
    found: dict[str, dict[str, str]] = {}
    for source in (node for node in narrow(plan).walk() if isinstance(node, n.Source)):
        found.setdefault(source.name, {}).update({f.name: sql_name(f.type) for f in source.schema})
    return {stream: dict(sorted(columns.items())) for stream, columns in found.items()}


def another_query(
    name: str, reads: Mapping[str, Mapping[str, str]], kept: Mapping[str, Any], why: str = ""
) -> InputError:
    """What is started under a name is not what the checkpoint has under it.

    ``why``: the reason why wider columns make a difference.
    """
    before: Mapping[str, Mapping[str, str]] = kept.get("reads", {})
    told, retyped = [], []
    for stream in dict.fromkeys((*before, *reads)):
        was, now = before.get(stream, {}), reads.get(stream, {})
        other = [column for column in was if column in now and was[column] != now[column]]
        told += [f'Column "{c}" of "{stream}" was {was[c]} and is {now[c]} now.' for c in other]
        retyped += [f'"{c}" of "{stream}" as {was[c]}' for c in other]
        if was.keys() != now.keys():
            told.append(
                f'Of "{stream}" it read {", ".join(was) or "nothing"}; now it is {", ".join(now) or "nothing"}.'
            )
    same = "It reads the same columns; what it computes of them is another thing, or computed in another way."
    back = f"To go on, declare {', '.join(retyped)} again; to begin anew, start" if retyped else "Start"
    return InputError(
        "QUERY_CHANGED",
        f'query "{name}" is not the one that the checkpoint has under this name, so it cannot go on with its state',
        detail=" ".join([*told, why] if why else told) or same,
        hint=f"{back} it under another name, or begin it anew under this one: --restart-query {name}, or in Python "
        f'engine.drop("{name}") before it starts; or use a new checkpoint.',
    )


def first_difference(before: n.Plan, after: n.Plan) -> str:
    """Where two plans part, from the answers down to the streams, as people would say it; nothing if they do not."""
    waiting = [(before, after)]
    while waiting:
        old, new = waiting.pop(0)
        if type(old) is not type(new) or _own(old) != _own(new):
            timed = is_timed(old) or is_timed(new)
            texts = old.label(timed=timed), new.label(timed=timed)
            return f'Where it had "{texts[0]}", it has "{texts[1]}" now.' if texts[0] != texts[1] else ""
        waiting += zip(old.inputs, new.inputs, strict=False)
    return ""


def _own(plan: n.Plan) -> list[object]:
    """What it is besides its inputs."""
    return [value for value in astuple(plan, recurse=False) if not _has_plans(value)]


def _has_plans(value: object) -> bool:
    return isinstance(value, n.Plan) or (isinstance(value, tuple) and bool(value) and isinstance(value[0], n.Plan))


def another_relation(stream: str, now: Schema, before: Schema) -> InputError:
    """A relation that holds rows is declared with other columns."""
    return InputError(
        "STREAM_CHANGED",
        f'"{stream}" is declared otherwise than the checkpoint has it, and its rows are kept there for queries to come',
        detail=f"It was {before}, and is {now} now. Of a table, columns may become wider (a FLOAT: beside a PRIMARY KEY),"
        " be added that can be NULL, and moved (these two not where it has change events without a PRIMARY KEY).",
        hint="Declare it as it was; to begin it anew, DROP it then, or use a new checkpoint.",
    )


def narrow(plan: n.Plan) -> n.Plan:
    """The plan over streams with only the columns that it reads, by name."""
    done: dict[n.Plan, n.Plan] = {}
    for node in plan.walk():
        below = [done[child] for child in node.inputs]
        if isinstance(node, n.Project | n.PreAggregate):
            (read,) = node.names()
            below = [_only(node.input, read, done)]
        done[node] = node.with_new_inputs(below)
        if _is_read_whole(node):  # as by a projection to all columns, which is left out where there are no others
            every = tuple((f.name, column(f)) for f in node.schema)
            done[node] = n.Project(_only(node, node.schema.names, done), every)
    return done[plan]


def _is_read_whole(plan: n.Plan) -> bool:
    """Is it a stream below operators that remember nothing, without a projection?"""
    while isinstance(plan, _BETWEEN):
        (plan,) = plan.inputs
    return isinstance(plan, n.Source)


def _only(plan: n.Plan, columns: Iterable[str], done: Mapping[n.Plan, n.Plan]) -> n.Plan:
    """With the columns alone that are read, where it is a stream below operators that remember nothing; else as ``done``."""
    names = frozenset(columns)
    if isinstance(plan, n.Source):
        kept = sorted((f for f in plan.columns if f.name in names), key=lambda f: f.name)
        return evolve(plan, columns=Schema(tuple(kept)))
    if isinstance(plan, _BETWEEN):
        (read,) = plan.reads(names)
        return plan.with_new_inputs([_only(plan.inputs[0], read, done)])
    return done[plan]
