"""A tick: what every task of it is told, and how far time is when all have seen the same.

Frontiers are a pure function of the clocks before the tick and of what was seen in it. So the driver and every shard come
to the same numbers without another round of messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from attrs import Factory, frozen

from headwater.clock.clock import Clock
from headwater.clock.seen import Seen
from headwater.model.delta import Delta
from headwater.model.time import BEGINNING, INFINITY
from headwater.runtime.layout import Layout

STEP_BYTES = 2 << 30


@frozen
class Tick:
    """What all tasks of a tick know."""

    number: int
    shards: int
    clock: Clock = Factory(Clock)
    """Of the streams that have one, before the tick."""
    given: Mapping[str, int] = Factory(dict)
    """The frontiers of streams that are told them: recordings, and what is pushed by hand."""
    newest: Mapping[str, int] = Factory(dict)
    """The largest start of each stream before the tick."""
    follows: Mapping[str, str] = Factory(dict)
    """Streams of late or malformed rows, and the stream whose rows they are: time is the same for both."""
    ended: frozenset[str] = frozenset()
    """Streams from which nothing will come after this tick."""
    portion: int | None = None
    """How many rows a level takes at once; None: as many as run fastest."""
    step_bytes: int = STEP_BYTES
    """How much the steps of a level may make in one shard before it is an error: what they make is kept in memory."""
    now: int = 0
    """The wall clock when all of its batches had come, in microseconds; later in every tick."""
    drained: Mapping[str, int] = Factory(dict)
    """By stream: the instant of the wall clock by which everything that had arrived was taken; left out: now."""
    together: tuple[frozenset[str], ...] = ()
    """The streams that each running query reads."""
    newest_before: Mapping[str, Mapping[int, int]] = Factory(dict)
    """By stream and length of wall-clock time: the largest start that had been seen so long ago."""

    def frontier(self, stream: str) -> int:
        """Rows of a stream that start before it come too late."""
        return self.clock.frontier(stream) if stream in self.clock.progress else BEGINNING


class Made(NamedTuple):
    """What a node brought in one tick: rows, how far these are complete, and how far its answer is known.

    More is known than has come where an operator holds back rows that have begun until they end.
    """

    delta: Delta
    frontier: int
    known: int


class StreamTimes(NamedTuple):
    """By stream: how far it is final, and how far it has been seen."""

    frontiers: dict[str, int]
    newest: dict[str, int]
    clock: Clock


def stream_times(tick: Tick, seen: Mapping[str, Sequence[Seen]]) -> StreamTimes:
    """Where the streams are once everything of the tick has been seen."""
    clock = tick.clock.after(seen, tick.now, drained=tick.drained, together=tick.together, ended=tick.ended)
    frontiers = {name: clock.frontier(name) for name in clock.progress} | dict(tick.given)
    frontiers |= dict.fromkeys(tick.ended, INFINITY)
    frontiers |= {child: frontiers.get(parent, BEGINNING) for child, parent in tick.follows.items()}
    newest = dict(tick.newest)
    for name, parts in seen.items():
        newest[name] = max(newest.get(name, BEGINNING), *(part.newest for part in parts if part.rows), BEGINNING)
    newest |= {child: newest.get(parent, BEGINNING) for child, parent in tick.follows.items()}
    return StreamTimes(frontiers, newest, clock)


def level_0_frontiers(layout: Layout, frontiers: Mapping[str, int]) -> dict[int, int]:
    """How far the nodes of level 0 are, when their sources are so far. Frontiers do not depend on rows there."""
    found: dict[int, int] = {}
    for i in layout.levels[0].nodes:
        node = layout.graph.nodes[i]
        if node.operator is None:
            found[i] = frontiers.get(node.source or "", BEGINNING)
        elif not node.inputs:
            found[i] = INFINITY  # constants
        else:
            nothing = tuple(Delta.empty(layout.graph.nodes[child].schema) for child in node.inputs)
            found[i] = node.operator.step(None, nothing, tuple(found[child] for child in node.inputs)).frontier
    return found
