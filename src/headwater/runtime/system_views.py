"""The rows of system views: what has changed since the last tick comes in with the next one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headwater.language.introspection import Answer
from headwater.language.system_views import SYSTEM_VIEWS, Known, SystemView
from headwater.model.delta import Delta
from headwater.model.element import Row
from headwater.model.time import INFINITY

Shown = dict[str, list[list[Any]]]
"""By view: rows, each with the instant of the wall clock from which it is valid; as JSON keeps them."""


def view_changes(views: Iterable[str], engine: Known, shown: Shown, now: int) -> tuple[dict[str, Delta], Shown]:
    """What ends and what begins now in each of the views, and all that they show then."""
    changes: dict[str, Delta] = {}
    still: Shown = {}
    for name in views:
        changes[name], still[name] = _changes(SYSTEM_VIEWS[name], engine, shown.get(name, []), now)
    return changes, still


def _changes(view: SystemView, engine: Known, shown: list[list[Any]], now: int) -> tuple[Delta, list[list[Any]]]:
    rows: list[Row] = [tuple(row) for row in view.rows(engine)]
    valid = {tuple(row): int(since) for row, since in shown}
    still = [[list(row), valid.get(row, now)] for row in rows]
    gone = [(row, since) for row, since in valid.items() if row not in set(rows)]
    changes = [(row, since, INFINITY, -1) for row, since in gone]
    changes += [(row, since, now, 1) for row, since in gone]
    changes += [(row, now, INFINITY, 1) for row in rows if row not in valid]
    return Delta.from_rows(view.schema, changes), still


def with_view_rows(answer: Answer, engine: Known) -> Answer:
    """The answer with the rows of the view that it is about, if it is about one."""
    for view in SYSTEM_VIEWS.values():
        if answer.title == view.title:
            rows = (tuple("" if value is None else str(value) for value in row) for row in view.shown(engine))
            return Answer(answer.title, answer.columns, tuple(rows))
    return answer


def kept_rows(kept: Mapping[str, Any] | list[Any]) -> Shown:
    """What a manifest keeps; older ones have but the rows of ``heartbeats``."""
    return dict(kept) if isinstance(kept, Mapping) else {"heartbeats": kept} if kept else {}
