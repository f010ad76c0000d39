"""State that would grow for ever: UNBOUNDED windows under operators that keep elements (Krämer 11.2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.algebra.nodes import (
    Aggregate,
    Coalesce,
    Distinct,
    Dstream,
    Istream,
    Join,
    JoinKind,
    Plan,
    RowWindow,
    SetOperation,
)
from headwater.language.catalog import UnboundedWindow
from headwater.language.notices import Notice
from headwater.language.text import error_at

_KEEPERS: dict[type[Plan], str] = {
    Aggregate: "an aggregate",
    Distinct: "DISTINCT",
    SetOperation: "a set operation",
    RowWindow: "a ROWS window",
    Istream: "Istream",
    Dstream: "Dstream",
    Coalesce: "a coalesce",
}
_HINT = "Give it a bound, for example: WINDOW(RANGE 1 HOUR)."


def check_bounded(plan: Plan, windows: Sequence[UnboundedWindow], *, refuse: bool) -> list[Notice]:
    """A notice for every UNBOUNDED window whose elements an operator of the plan keeps; or an error for the first."""
    notices = []
    for unbounded in windows:
        keeper = _keeper(plan, unbounded.window)
        if keeper is None:
            continue
        message = f'{_describe(keeper)} keeps state of stream "{unbounded.stream}" for ever'
        if refuse:
            raise error_at(
                unbounded.text,
                unbounded.start,
                unbounded.end,
                "UNBOUNDED_STATE",
                message,
                detail="Its window is UNBOUNDED, so its elements never expire.",
                hint=f"{_HINT[:-1]}, or SET unbounded_state = allow.",
            )
        notices.append(Notice("UNBOUNDED_STATE", message, _HINT))
    return notices


def _describe(keeper: Plan) -> str:
    if isinstance(keeper, Join):
        return {JoinKind.SEMI: "a semi-join", JoinKind.ANTI: "an anti-join"}.get(keeper.kind, "a join")
    return _KEEPERS[type(keeper)]


def _keeper(plan: Plan, window: Plan, above: Plan | None = None) -> Plan | None:
    """The nearest operator above some occurrence of the window that keeps elements."""
    if plan is window:
        return above
    if isinstance(plan, Join) or type(plan) in _KEEPERS:
        above = plan
    found = (_keeper(child, window, above) for child in plan.inputs)
    return next((f for f in found if f is not None), None)
