"""A tick: what every task of it is told, and how far time is when all have seen the same.

Frontiers are a pure function of the clocks before the tick and of what was seen in it. So the driver and every shard come
to the same numbers without another round of messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from attrs import Factory, frozen

from headwater.clock.frontier import Seen, StreamClock
from headwater.model.delta import Delta
from headwater.model.time import BEGINNING, INFINITY
from headwater.runtime.layout import Layout


@frozen
class Tick:
    """What all tasks of a tick know."""

    number: int
    shards: int
    clocks: Mapping[str, StreamClock] = Factory(dict)
    """Of each stream that has one, before the tick."""
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


class Progress(NamedTuple):
    """By stream: how far it is final, and how far it has been seen."""

    frontiers: dict[str, int]
    newest: dict[str, int]
    clocks: dict[str, StreamClock]


def progress(tick: Tick, seen: Mapping[str, Sequence[Seen]]) -> Progress:
    """Where the streams are once everything of the tick has been seen."""
    clocks = {name: clock.after(seen.get(name, ())) for name, clock in tick.clocks.items()}
    clocks |= {name: clock.ended() for name, clock in clocks.items() if name in tick.ended}
    frontiers = {name: clock.frontier for name, clock in clocks.items()} | dict(tick.given)
    frontiers |= dict.fromkeys(tick.ended, INFINITY)
    frontiers |= {child: frontiers.get(parent, BEGINNING) for child, parent in tick.follows.items()}
    newest = dict(tick.newest)
    for name, parts in seen.items():
        newest[name] = max(newest.get(name, BEGINNING), *(part.newest for part in parts if part.rows), BEGINNING)
    newest |= {child: newest.get(parent, BEGINNING) for child, parent in tick.follows.items()}
    return Progress(frontiers, newest, clocks)


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


def reached(layout: Layout, node: int, newest: Mapping[str, int]) -> int:
    """How far time has come for the queries that a node serves."""
    return max((newest.get(stream, BEGINNING) for stream in layout.scope[node]), default=BEGINNING)
