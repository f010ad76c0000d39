"""One frontier with the raises that are still to come: of a partition, or of a stream as a whole."""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from headwater.clock.raises import Stair, Step, fire, offer
from headwater.model.time import BEGINNING


@frozen
class Track:
    """Immutable: every method gives the next one. The frontier never goes back."""

    frontier: int = BEGINNING
    reason: str = ""
    """The bound that set the frontier."""
    newest: int = BEGINNING
    """The largest time seen."""
    rows: int = 0
    """So many have come."""
    stair: Stair = ()
    waiting: tuple[tuple[int, Stair], ...] = ()
    """By the number of rows that a bound counts: from ``due`` (wall clock) on, rows that arrive are surely among them."""
    counting: Stair = ()
    """Due when so many rows have come."""

    def raised(self, frontier: int, reason: str) -> Track:
        if frontier <= self.frontier:
            return self
        return Track(frontier, reason, self.newest, self.rows, self.stair, self.waiting, self.counting)

    def offered(self, due: int, frontier: int, reason: str) -> Track:
        """A raise at an instant of the wall clock."""
        if frontier <= self.frontier:
            return self
        stair = offer(self.stair, Step(due, frontier, reason))
        return self if stair is self.stair else evolve(self, stair=stair)

    def fired(self, until: int) -> Track:
        """What is due has happened."""
        if not self.stair or self.stair[0].due > until:
            return self
        left, step = fire(self.stair, until)
        track = evolve(self, stair=left)
        return track if step is None else track.raised(step.frontier, step.reason)

    # -- bounds that count rows (digest 3.3) --------------------------------------------------------------------------

    def counting_from_here(self, rows: int, frontier: int, reason: str) -> Track:
        """Rows that come from now on count."""
        if frontier <= self.frontier:
            return self
        return evolve(self, counting=offer(self.counting, Step(self.rows + rows, frontier, reason)))

    def counting_after(self, opens: int, rows: int, frontier: int, reason: str) -> Track:
        """Rows that arrive after an instant count."""
        if frontier <= self.frontier:
            return self
        waiting = dict(self.waiting)
        waiting[rows] = offer(waiting.get(rows, ()), Step(opens, frontier, reason))
        return evolve(self, waiting=tuple(sorted(waiting.items())))

    def counted(self, rows: int, drained: int, newest: int) -> tuple[Track, Step | None]:
        """So many more rows have come, the newest of them; and the highest raise for which they suffice.

        Only those count that arrived after the instant at which counting begins: it begins in the first tick of which all
        rows arrived later, since all that had arrived by then (``drained``) was taken by the ticks before.
        """
        total, newest = self.rows + rows, max(self.newest, newest)
        if not self.waiting and not self.counting:
            return Track(self.frontier, self.reason, newest, total, self.stair), None
        waiting, counting = {}, self.counting
        for needed, stair in self.waiting:
            left, step = fire(stair, drained)
            if step is not None:
                counting = offer(counting, Step(self.rows + needed, step.frontier, step.reason))
            if left:
                waiting[needed] = left
        counting, enough = fire(counting, total)
        track = Track(self.frontier, self.reason, newest, total, self.stair, tuple(waiting.items()), counting)
        return track, enough

    def without_raises(self) -> Track:
        """Nothing is to come any more: the frontier stays where it is until something new is offered."""
        return evolve(self, stair=(), waiting=(), counting=())

    def next_above(self, frontier: int) -> Step | None:
        """The first raise beyond a frontier."""
        return next((s for s in self.stair if s.frontier > frontier), None)

    def to_manifest(self) -> dict[str, Any]:
        return {
            "frontier": self.frontier,
            "reason": self.reason,
            "newest": self.newest,
            "rows": self.rows,
            "stair": [list(s) for s in self.stair],
            "waiting": [[rows, [list(s) for s in stair]] for rows, stair in self.waiting],
            "counting": [list(s) for s in self.counting],
        }

    @classmethod
    def from_manifest(cls, kept: dict[str, Any]) -> Track:
        return cls(
            kept["frontier"],
            kept["reason"],
            kept["newest"],
            kept["rows"],
            _stair(kept["stair"]),
            tuple((rows, _stair(stair)) for rows, stair in kept["waiting"]),
            _stair(kept["counting"]),
        )


def _stair(kept: list[list[Any]]) -> Stair:
    return tuple(Step(*step) for step in kept)
