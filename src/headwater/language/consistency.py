"""How far a query may run ahead of what is certain (CEDR: the spectrum of blocking and remembering)."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen
from sqlglot import exp

from headwater.language.durations import application_time, shown_duration
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

    Both are lengths of the streams' time; block <= remember.
    """

    level: Level
    block: int
    remember: int
    unit: bool = False
    """Were the lengths written with a unit? Only for printing."""

    def __str__(self) -> str:
        if self.level is not Level.BLOCK:
            return self.level.value.upper()
        block, remember = (shown_duration(t, unit=self.unit) for t in (self.block, self.remember))
        return f"BLOCK {block} REMEMBER {remember}"


STRONG = Consistency(Level.STRONG, INFINITY, INFINITY)
MIDDLE = Consistency(Level.MIDDLE, 0, INFINITY)
WEAK = Consistency(Level.WEAK, 0, 0)
_NAMED = {point.level.value.upper(): point for point in (STRONG, MIDDLE, WEAK)}
_CORNERS = {(point.block, point.remember): point for point in (STRONG, MIDDLE, WEAK)}


def bind_consistency(text: str, node: exp.Expr | None) -> Consistency | None:
    """What a CONSISTENCY clause asks for; a BLOCK that is one of the named points is that one."""
    if not isinstance(node, ConsistencyClause):
        return None
    if node.this in _NAMED:
        return _NAMED[node.this]
    block = _reach(text, node.args["block"], "BLOCK")
    remember = _reach(text, node.args["remember"], "REMEMBER")
    if block > remember:
        raise error_on(
            text,
            node,
            "CONSISTENCY",
            "BLOCK cannot be longer than REMEMBER",
            detail="What waits for so long is remembered for as long.",
        )
    unit = any(part.args.get("unit") is not None for part in (node.args["block"], node.args["remember"]))
    return _CORNERS.get((block, remember), Consistency(Level.BLOCK, block, remember, unit))


def _reach(text: str, node: exp.Expr, word: str) -> int:
    return INFINITY if isinstance(node, exp.Var) else application_time(text, node, f"the length of {word}")
