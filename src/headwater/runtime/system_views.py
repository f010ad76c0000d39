"""The rows of system views: what has changed since the last tick comes in with the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.clock.clock import Clock
from headwater.language.system_views import HEARTBEATS
from headwater.model.delta import Delta
from headwater.model.element import Row
from headwater.model.time import INFINITY

Shown = list[list[Any]]
"""Rows, each with the instant of the wall clock from which it is valid; as JSON keeps them."""


def heartbeat_changes(clock: Clock, shown: Sequence[Sequence[Any]], now: int) -> tuple[Delta, Shown]:
    """What ends and what begins now in the view ``heartbeats``, and all that is shown then."""
    rows: list[Row] = [tuple(row) for stream in clock.progress for row in clock.describe(stream)]
    valid = {tuple(row): int(since) for row, since in shown}
    still = [[list(row), valid.get(row, now)] for row in rows]
    gone = [(row, since) for row, since in valid.items() if row not in set(rows)]
    changes = [(row, since, INFINITY, -1) for row, since in gone]
    changes += [(row, since, now, 1) for row, since in gone]
    changes += [(row, now, INFINITY, 1) for row in rows if row not in valid]
    return Delta.from_rows(HEARTBEATS.schema, changes), still
