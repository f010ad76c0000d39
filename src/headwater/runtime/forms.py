"""What the lowering knows of a node, and for whom a part of a plan is made."""

from __future__ import annotations

from attrs import asdict, evolve, frozen

from headwater.model.time import INFINITY
from headwater.runtime.lineage import was_strong_first


@frozen
class Lowered:
    """A node, whether its output is never taken back, and whether it has not waited yet (for a level that waits).

    Settled: what it has shown only ever gets an end, when that is final.
    """

    node: int
    final: bool
    raw: bool = False
    settled: bool = False


@frozen
class Form:
    """For whom a part of a plan is made: what it shows, and since when it has seen its streams.

    Operators that remember serve only queries that began together: one that began later would get retractions of rows
    that it has never seen. They also serve one level each.
    """

    speculative: bool = False
    since: int = 0
    hold: bool = False
    block: int = 0
    remember: int = INFINITY
    wall: bool = False
    lineage: str = ""
    """The levels that the query had before: what it has shown by now depends on them."""

    def to_data(self) -> dict[str, object]:
        """What is not as usual, for identities: an attribute that comes to be changes nothing for forms without it."""
        return asdict(self, filter=lambda attribute, value: value != attribute.default)

    @property
    def role(self) -> Form:
        """Without the level."""
        return evolve(self, speculative=False, block=0, remember=INFINITY, wall=False, lineage="")

    @property
    def adopted(self) -> bool:
        """Did the query begin with strong operators, whose states the speculative ones have taken over?"""
        return was_strong_first(self.lineage)

    @property
    def waits(self) -> bool:
        """A query whose level has changed keeps what an earlier level needed: it may hold rows, or have closed the past."""
        return bool(self.block or self.remember < INFINITY or self.lineage)


ANY_FORM = Form()
