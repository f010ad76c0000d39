"""Kept state by name: written as a manifest, read back from one, and spread over another number of shards.

A manifest is JSON: the numbers of a state, and of each segment its name and ranges. So it is small whatever the segments
hold, and reading it back opens none of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from headwater.errors import StateError
from headwater.model.arrays import Int64Array
from headwater.model.delta import shard_of
from headwater.model.identity import identify
from headwater.state.columns import Columns
from headwater.state.store import Segment, Store

SavedState = dict[str, Any]
"""A state as JSON: its numbers, and of each segment its name and ranges."""
Rule = Callable[[Iterable[int]], int]
"""One number for the states of several shards."""
Scalars = Mapping[str, Rule | None]
Route = Callable[[Columns], Int64Array]
"""The shard of each row that is kept, from its columns."""


def agreed(values: Iterable[int]) -> int:
    """The one value that all shards have; only between ticks do they. Raises ``StateError`` if it is not one."""
    found = sorted(set(values))
    if len(found) > 1:
        raise StateError(
            "STATE_UNEVEN",
            "the shards of an operator have come unequally far",
            detail=f"they are at {found[0]} and at {found[-1]}",
            hint="Change the number of shards between two ticks, from the states of one committed tick.",
        )
    return found[0]


class State:
    """What is kept from tick to tick: ``scalars`` names its numbers, ``layouts`` the attributes that keep the rest.

    A layout is another state, None, or several of them. A scalar's rule makes one number of those of several shards; None:
    it is counted anew while rows are handed over.
    """

    scalars: ClassVar[Scalars] = {}
    layouts: ClassVar[tuple[str, ...]] = ()

    @property
    def bytes(self) -> int:
        return sum(part.bytes for name in self.layouts for part in _each(getattr(self, name)))

    def segments(self) -> Iterable[Segment]:
        return [s for name in self.layouts for part in _each(getattr(self, name)) for s in part.segments()]

    def to_manifest(self) -> SavedState:
        """Everything that is kept, as JSON can hold it."""
        manifest: SavedState = {_shown(name): int(getattr(self, name)) for name in self.scalars}
        return manifest | {_shown(n): [p.to_manifest() for p in _each(getattr(self, n))] for n in self.layouts}

    def from_manifest(self, manifest: SavedState) -> None:
        """Become what ``to_manifest`` described; no segment is opened. What it does not know of is empty."""
        for name in self.scalars:
            setattr(self, name, manifest[_shown(name)])
        for name in (name for name in self.layouts if _shown(name) in manifest):
            for part, described in zip(_each(getattr(self, name)), manifest[_shown(name)], strict=True):
                part.from_manifest(described)

    @classmethod
    def hand_over(cls, old: Sequence[Self], new: Sequence[Self], route: Route) -> None:
        """All that the old ones keep goes to the new ones, which are empty: each row to the one of its shard."""
        for name, rule in cls.scalars.items():
            if rule is not None:
                value = rule([getattr(state, name) for state in old])
                for state in new:
                    setattr(state, name, value)
        for name in cls.layouts:
            for parts in zip(*(_each(getattr(state, name)) for state in (*old, *new)), strict=True):
                type(parts[0]).hand_over(parts[: len(old)], parts[len(old) :], route)


class StateLayout(State):
    """A structure of segments."""

    _store: Store
    _segments: list[Segment]

    @property
    def bytes(self) -> int:
        return sum(segment.bytes for segment in self.segments())

    def segments(self) -> Iterable[Segment]:
        return list(self._segments)

    def to_manifest(self) -> SavedState:
        return super().to_manifest() | {"segments": [segment.to_manifest() for segment in self._segments]}

    def from_manifest(self, manifest: SavedState) -> None:
        super().from_manifest(manifest)
        self._segments = [self._store.open(segment) for segment in manifest["segments"]]

    @classmethod
    def hand_over(cls, old: Sequence[Self], new: Sequence[Self], route: Route) -> None:
        super().hand_over(old, new, route)
        for layout in old:
            layout.move_to(new, route)

    @abstractmethod
    def move_to(self, targets: Sequence[Self], route: Route) -> None:
        """Give each row to the target of its shard. Only what the rows say may change here: old states stay readable."""


def is_segment(manifest: Mapping[str, Any]) -> bool:
    """Does this part of a manifest describe a segment?"""
    return "name" in manifest and "rows" in manifest


def state_segments(manifest: Any) -> Iterator[str]:
    """The names of all segments that a manifest, or anything made of manifests, refers to.

    >>> list(state_segments({"frontier": 3, "base": [{"segments": [{"name": "a", "rows": 7}]}]}))
    ['a']
    """
    if isinstance(manifest, Mapping):
        if is_segment(manifest):
            yield manifest["name"]
        else:
            yield from state_segments(list(manifest.values()))
    elif isinstance(manifest, list | tuple):
        for part in manifest:
            if isinstance(part, Mapping | list | tuple):
                yield from state_segments(part)


# -- shards ---------------------------------------------------------------------------------------------------------


def route_by_key(shards: int) -> Route:
    """For rows that are kept under the key by which they are routed; without one, by all their columns (``column.i``)."""

    def route(columns: Columns) -> Int64Array:
        if "low" in columns:
            return shard_of(columns.key, shards)
        whole = [columns[name] for name in sorted(columns, key=_number) if name.startswith("column.")]
        return shard_of(identify(whole, columns.rows), shards)

    return route


def _number(name: str) -> int:
    number = name.rpartition(".")[2]
    return int(number) if number.isdecimal() else -1


def rows_by_shard(shard: Int64Array) -> Iterator[tuple[int, Int64Array]]:
    """(shard, its rows in their order), for shards that have any."""
    order = np.argsort(shard, kind="stable")
    begins = np.flatnonzero(np.diff(shard[order], prepend=-1))
    for rows in np.split(order, begins[1:]) if len(order) else ():
        yield int(shard[rows[0]]), rows


def _each(part: State | Mapping[Any, State] | Iterable[State] | None) -> Iterator[State]:
    if isinstance(part, State):
        yield part
    elif isinstance(part, Mapping):
        yield from part.values()
    elif part is not None:
        yield from part


def _shown(name: str) -> str:
    return name.lstrip("_")
