"""A node of a plan in one line, as a person would say it."""

from __future__ import annotations

import pyarrow as pa

from headwater.algebra import nodes as n

_LONGEST = 100


def is_timed(plan: n.Plan) -> bool:
    """Do the plan's instants count microseconds? Taken from the sources: they have a TIMESTAMP, or nothing does."""
    found = [s for s in plan.walk() if isinstance(s, n.Source)]
    return any(pa.types.is_timestamp(f.type) for s in found for f in s.schema)


def label(plan: n.Plan, *, timed: bool) -> str:
    """What the node does, without what is below it."""
    text = plan.label(timed=timed)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
