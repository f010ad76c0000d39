"""How far a query may run ahead of what is certain (CEDR: the spectrum of blocking and remembering)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from attrs import asdict, frozen
from sqlglot import exp

from headwater.language.durations import application_time, shown_duration, wall_clock
from headwater.language.parsing.syntax import ConsistencyClause
from headwater.language.text import error_on
from headwater.model.time import INFINITY


class Level(StrEnum):
    STRONG = "strong"
    """Only final results, never a retraction."""
    MIDDLE = "middle"
    """Results at once, repaired for as long as anything can change them."""
    WEAK = "weak"
    """Results at once, never repaired."""
    BLOCK = "block"
    """Any other point of the spectrum."""


@frozen
class Consistency:
    """A point of the spectrum: how long results wait, and how long the input is remembered for repairs.

    Both are lengths of the streams' time, or of wall-clock time; block <= remember.
    """

    level: Level
    block: int
    remember: int
    unit: bool = False
    """Were the lengths written with a unit? Only for printing."""
    wall: bool = False
    """Do they count wall-clock time (in microseconds)?"""

    def __str__(self) -> str:
        if self.level is not Level.BLOCK:
            return self.level.value.upper()
        block, remember = (shown_duration(t, unit=self.unit) for t in (self.block, self.remember))
        how = f"BLOCK {block} REMEMBER {remember}" if self.block else f"WEAK REMEMBER {remember}"
        return f"{how} BY WALL CLOCK" if self.wall else how

    def to_manifest(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_manifest(cls, kept: dict[str, Any]) -> Consistency:
        """What ``to_manifest`` described."""
        return cls(**kept | {"level": Level(kept["level"])})


STRONG = Consistency(Level.STRONG, INFINITY, INFINITY)
MIDDLE = Consistency(Level.MIDDLE, 0, INFINITY)
WEAK = Consistency(Level.WEAK, 0, 0)
_NAMED = {point.level.value.upper(): point for point in (STRONG, MIDDLE, WEAK)}
_CORNERS = {(point.block, point.remember): point for point in (STRONG, MIDDLE, WEAK)}


def bind_consistency(text: str, node: exp.Expr | None) -> Consistency | None:
    """What a CONSISTENCY clause asks for; a BLOCK that is one of the named points is that one."""
    if not isinstance(node, ConsistencyClause):
        return None
    if node.this in _NAMED and node.args.get("remember") is None:
        return _NAMED[node.this]
    parts = [part for name in ("block", "remember") if (part := node.args.get(name)) is not None]
    wall = bool(node.args.get("wall"))
    length = _wall_reach if wall else _reach
    block = length(text, node.args["block"], "BLOCK") if node.args.get("block") is not None else 0
    remember = length(text, node.args["remember"], "REMEMBER")
    if block > remember:
        raise error_on(
            text,
            node,
            "CONSISTENCY",
            "BLOCK cannot be longer than REMEMBER",
            detail="What waits for so long is remembered for as long.",
        )
    unit = wall or any(part.args.get("unit") is not None for part in parts)
    return _CORNERS.get((block, remember), Consistency(Level.BLOCK, block, remember, unit, wall))


def _reach(text: str, node: exp.Expr, word: str) -> int:
    return INFINITY if isinstance(node, exp.Var) else application_time(text, node, f"the length of {word}")


def _wall_reach(text: str, node: exp.Expr, word: str) -> int:
    return INFINITY if isinstance(node, exp.Var) else wall_clock(text, node, f"the length of {word}")
