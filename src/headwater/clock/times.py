"""The clock of an engine: its streams come and go, and what a checkpoint knows of them is kept until they are back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from attrs import evolve

from headwater.clock.along import breath, goes_along
from headwater.clock.clock import Clock
from headwater.clock.progress import Progress
from headwater.clock.rules import Rules, StreamRules, rules_of
from headwater.language.catalog import Stream
from headwater.model.time import BEGINNING


class Times:
    """Holds the clock after the last committed tick."""

    def __init__(self, kept: Mapping[str, Any]) -> None:
        """``kept``: what the checkpoint has."""
        self._kept: dict[str, Any] = dict(kept.get("streams", {}))
        """Of streams that have not been declared again."""
        self._signed: dict[str, str] = dict(kept.get("rules", {}))
        self._declared: dict[str, Stream] = {}
        self.clock = evolve(Clock(), now=kept.get("now"))
        self._still = self.clock.rules.standing_still()

    def add(self, stream: Stream) -> None:
        """It goes on where it was."""
        self._declared[stream.name] = stream
        self._use_rules()

    def drop(self, stream: str) -> None:
        self._declared.pop(stream, None)
        self._kept.pop(stream, None)
        self._use_rules()

    def ticked(self, clock: Clock) -> None:
        """A tick was committed: this is the clock after it."""
        self.clock = clock
        for name in clock.progress:
            self._kept.pop(name, None)

    def _use_rules(self) -> None:
        """Streams that are back after a restart, and have not ticked since, are as the checkpoint has them.

        If their rules are others now, raises that the old ones had promised are forgotten: it only takes longer (digest
        12.7). Rules may speak of streams that are declared later, so this is judged anew with every declaration.
        """
        clock = self.clock.with_rules(rules_of(self._declared.values()))
        progress = dict(clock.progress)
        for name in progress.keys() & self._kept.keys():
            rules, known = (
                clock.rules.streams[name],
                Progress.from_manifest(self._kept[name]),
            )
            same = self._signed.get(name) == _signature(clock.rules, name)
            progress[name] = known if same else _without_raises(known, rules)
        self.clock = evolve(clock, progress=progress)
        self._still = clock.rules.standing_still()

    def frontier(self, stream: str) -> int:
        return self.clock.frontier(stream)

    def would_move(
        self,
        streams: Collection[str],
        now: int,
        drained: Mapping[str, int],
        together: Iterable[Collection[str]],
    ) -> bool:
        """Would the frontier of one of these streams rise if a tick came now, without rows?

        Where that is because time passes, once in a while is enough. Before the first row only time can raise one.
        """
        clock = self.clock
        if clock.now is None and not any(goes_along(clock.rules, name) for name in streams):
            return False
        last = max((p.arrival or BEGINNING for name, p in clock.progress.items() if name in streams), default=BEGINNING)
        if clock.now is not None and now - clock.now < breath(now - last if last > BEGINNING else 0):
            clock = evolve(clock, rules=self._still)
        later = clock.after({}, now, drained=drained, together=together)
        return any(later.frontier(name) > clock.frontier(name) for name in streams)

    def to_manifest(self, clock: Clock | None = None) -> dict[str, Any]:
        """All that must be known to go on."""
        clock = clock or self.clock
        kept = clock.to_manifest()
        signed = {name: _signature(clock.rules, name) for name in clock.progress}
        return {**kept, "streams": {**self._kept, **kept["streams"]}, "rules": {**self._signed, **signed}}


def _without_raises(known: Progress, rules: StreamRules) -> Progress:
    floor = known.floor.without_raises().raised(known.frontier, known.reason)
    parts = () if rules.as_one else tuple((name, track.without_raises()) for name, track in known.parts)
    return evolve(known, floor=floor, parts=parts).learning_anew(rules)


def _signature(rules: Rules, stream: str) -> str:
    """Tells whether the rules of a stream are the same as before."""
    bounds = sorted((leader, its) for (leader, laggard), its in rules.bounds.items() if laggard == stream)
    rows = sorted((leader, its) for (leader, laggard), its in rules.row_bounds.items() if laggard == stream)
    return repr((rules.streams[stream], bounds, rows))
