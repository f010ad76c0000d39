"""State that would grow for ever: UNBOUNDED windows under operators that keep elements (Krämer 11.2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.algebra.nodes import Frames, Plan, SessionWindow
from headwater.algebra.properties import unbounded_state
from headwater.language.catalog import UnboundedWindow
from headwater.language.notices import Notice
from headwater.language.text import error_at

_HINT = "Give it a bound, for example: WINDOW(RANGE 1 HOUR)."
_FRAME_HINT = "Give it a bound, for example: OVER (… RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND CURRENT ROW)."
_SESSION_HINT = "A session stays for ever once it has ended."


def check_bounded(plan: Plan, windows: Sequence[UnboundedWindow], *, refuse: bool) -> list[Notice]:
    """A notice for every UNBOUNDED window whose elements an operator of the plan keeps; or an error for the first."""
    notices = []
    keepers = frozenset(unbounded_state(plan)) if windows else frozenset()
    for unbounded in windows:
        framed = isinstance(unbounded.window, Frames)
        keeper = unbounded.window if framed else _keeper(plan, unbounded.window, keepers)
        if keeper is None:
            continue
        message = f'{keeper.keeper} keeps state of stream "{unbounded.stream}" for ever'
        session = isinstance(unbounded.window, SessionWindow)
        if refuse:
            raise error_at(
                unbounded.text,
                unbounded.start,
                unbounded.end,
                "UNBOUNDED_STATE",
                message,
                detail=f"Its window is {'a SESSION' if session else 'UNBOUNDED'}, so its elements never expire.",
                hint="SET unbounded_state = allow." if session else f"{_HINT[:-1]}, or SET unbounded_state = allow.",
            )
        notices.append(
            Notice("UNBOUNDED_STATE", message, _FRAME_HINT if framed else _SESSION_HINT if session else _HINT)
        )
    return notices


def _keeper(plan: Plan, window: Plan, keepers: frozenset[Plan], above: Plan | None = None) -> Plan | None:
    """The nearest operator above some occurrence of the window that keeps elements."""
    if plan is window:
        return above
    if plan in keepers:
        above = plan
    found = (_keeper(child, window, keepers, above) for child in plan.inputs)
    return next((f for f in found if f is not None), None)
