"""Answers that wait for the end of their sink's interval (EVERY), so that many ticks are one delivery.

    checkpoint/
      waiting/<query>/000000000012.json   what tick 12 has answered, with a checksum
      waiting/<query>/delivered.json      the tick up to which everything has gone out

A committed tick is written down here instead of being delivered, so a tick costs the same however much waits. Whatever a
crash leaves goes out together when the query is started again, under the number of the last committed tick: that is the
number that a delivery has which a crash cut off, and the rows are the same, since every tick between them is written down.
"""

from __future__ import annotations

from typing import Any

from headwater.errors import StateError
from headwater.runtime.kept_names import check_staged
from headwater.runtime.staged_json import staged_from_json, staged_to_json
from headwater.sinks.base import Staged
from headwater.state.filesystem import UNFINISHED, Folder
from headwater.state.folder_names import folder_name
from headwater.state.sealed import seal, unseal

_DELIVERED = "delivered.json"
_DIGITS = 12


class Waiting:
    """What waits of one query's answers. Without a folder it is in memory only."""

    def __init__(self, checkpoint: Folder | None, query: str) -> None:
        self._folder = None if checkpoint is None else checkpoint / "waiting" / folder_name(query)
        self._staging = "" if checkpoint is None else str(checkpoint / "staged")
        self._by_tick: dict[int, list[Staged]] = {}
        self.ticks: set[int] = set()
        """Those whose staged files under the checkpoint must stay."""
        self.since: int | None = None
        """When the first tick came that was not delivered, by the wall clock; None: everything is."""
        self.delivered = -1
        if self._folder is not None and self._folder.exists():
            self._read(self._folder)

    @property
    def parts(self) -> list[Staged]:
        """All that waits, in the order of the ticks."""
        return [part for tick in sorted(self._by_tick) for part in self._by_tick[tick]]

    def up_to(self, tick: int, parts: list[Staged]) -> list[Staged]:
        """All that waits when a tick has answered this, which may be written down already, or delivered."""
        known = tick in self._by_tick or tick <= self.delivered
        return self.parts if known else [*self.parts, *parts]

    def put(self, tick: int, parts: list[Staged], now: int) -> None:
        """A committed tick's answer; a second time it does nothing."""
        if tick <= self.delivered:
            return
        self.since = now if self.since is None else self.since
        if not parts or tick in self._by_tick:
            return
        self._note(tick, parts)
        if self._folder is not None:
            if len(self._by_tick) == 1:
                self._folder.make()
            self._folder.replace(_name(tick), seal({"parts": [staged_to_json(part) for part in parts]}))

    def _note(self, tick: int, parts: list[Staged]) -> None:
        self._by_tick[tick] = parts
        if any((part.path or "").startswith(f"{self._staging}/") for part in parts):
            self.ticks.add(tick)

    def is_due(self, now: int, every: int) -> bool:
        """Is the interval over in which the first of it came? A clock that was set back does not put it off."""
        return self.since is not None and now // every != self.since // every

    def went_out(self, tick: int) -> None:
        """Everything up to this tick is delivered."""
        written = list(self._by_tick)
        self._by_tick, self.ticks, self.since, self.delivered = {}, set(), None, tick
        if self._folder is not None and written:
            self._folder.replace(_DELIVERED, seal({"tick": tick}))  # first: or a part of it would come again by itself
            for old in written:
                self._folder.delete(_name(old))

    def go_back_to(self, tick: int) -> None:
        """Ticks after this one have not happened: their manifests are gone."""
        for later in [t for t in self._by_tick if t > tick]:
            del self._by_tick[later]
            self.ticks.discard(later)
            if self._folder is not None:
                self._folder.delete(_name(later))

    def forget(self) -> None:
        """The query has ended for good."""
        self._by_tick, self.ticks, self.since, self.delivered = {}, set(), None, -1
        if self._folder is not None:
            self._folder.delete_all()

    def _read(self, folder: Folder) -> None:
        for name in folder.names():
            if name.endswith(UNFINISHED):
                folder.delete(name)
                continue
            try:
                kept = unseal(folder.read(name).to_pybytes())
                if name == _DELIVERED:
                    self.delivered = int(kept["tick"])
                else:
                    self._note(_tick(name), [staged_from_json(part) for part in kept["parts"]])
            except (ValueError, KeyError, TypeError) as problem:
                raise _damaged(f"{folder}/{name}", problem) from problem
        for tick in [t for t in self._by_tick if t <= self.delivered]:
            del self._by_tick[tick]
            self.ticks.discard(tick)
            folder.delete(_name(tick))
        check_staged(self.parts, self._staging, str(folder))


def waiting_ticks(checkpoint: Folder) -> set[int]:
    """The ticks that are written down for any query: their staged files must stay."""
    names = [name for query in (checkpoint / "waiting").names() for name in (checkpoint / "waiting" / query).names()]
    return {_tick(name) for name in names if name.removesuffix(".json").isdigit()}


def _name(tick: int) -> str:
    return f"{tick:0{_DIGITS}d}.json"


def _tick(name: str) -> int:
    return int(name.removesuffix(".json"))


def _damaged(path: str, problem: Any) -> StateError:
    return StateError(
        "STATE_DAMAGED",
        f'"{path}" cannot be read, which tells of answers that wait to be delivered',
        detail=str(problem),
        hint="Put it back from a copy of the checkpoint.",
    )
