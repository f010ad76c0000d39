"""Rows of one instant beside the answer of a window that they fell into: when that is there, they are over.

Flink's texts compare their times (NEXMark q7); here rows meet while both are valid, so the stream needs a window, too.
"""

from __future__ import annotations

from headwater.algebra.nodes import HopWindow, Join, Plan, SessionWindow
from headwater.algebra.properties import TimeColumn, row_times
from headwater.language.notices import Notice

_SECOND = 1_000_000


def check_closed_windows(plan: Plan, time_column: TimeColumn) -> list[Notice]:
    """A notice for each join that compares the time of a stream without a window with what a window gave."""
    found = {}
    for node in plan.walk():
        if isinstance(node, Join) and node.residual is not None:
            sides = ((node.left, "l", node.right, "r"), (node.right, "r", node.left, "l"))
            for bare, ours, other, theirs in sides:
                times = row_times(bare, time_column)
                windows = [n for n in other.walk() if isinstance(n, (HopWindow, SessionWindow))]
                compared = any(f"{ours}.{c}" in node.residual.columns for c in times.columns)
                compared &= any(c.startswith(f"{theirs}.") for c in node.residual.columns)
                if times.lifetime == 1 and windows and compared:
                    found[_notice(bare, windows[0])] = None
    return list(found)


def _notice(bare: Plan, window: HopWindow | SessionWindow) -> Notice:
    name = next(iter(bare.streams), "s")
    size = window.size if isinstance(window, HopWindow) else window.gap
    length = f"{size // _SECOND + 1} SECONDS" if size % _SECOND == 0 else str(size + 1)
    return Notice(
        "CLOSED_WINDOW",
        f'rows of stream "{name}" are over when the window that they fell into has its answer, so they do not meet',
        f"Give the stream a window that is longer than the other: FROM {name} [RANGE {length}].",
    )
