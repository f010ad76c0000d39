"""How far time has come for a node: to the newest row of its streams, less what its query waits or remembers.

A pure function of the tick, so all tasks come to the same number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headwater.model.delta import Delta
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.waiting.block import BlockOperator
from headwater.operators.waiting.finalize import FinalizeOperator
from headwater.runtime.graph import Graph, Node, Wait

Newest = Mapping[str, int]
"""By stream: the largest start that was seen."""
Earlier = Mapping[str, Mapping[int, int]]
"""By stream and length of wall-clock time: the largest start that had been seen so long ago."""


def reached(
    graph: Graph, node: Node, scope: Collection[str], frontiers: Newest, newest: Newest, earlier: Earlier
) -> int:
    """For ``reached`` of a node that serves queries over the streams of ``scope``.

    An operator shows what it knows up to there. A block lets rows pass up to there: those made of what its streams brought
    by then. For a finalize it is where its own streams' past is closed: a stream that lags behind is not cut off by others.
    """
    wait = node.wait
    if isinstance(node.operator, FinalizeOperator):
        closed = {s: max(frontiers.get(s, BEGINNING), _aged(s, wait, newest, earlier)) for s in graph.sources}
        return frontier_of(graph, node.inputs[0], closed)
    come = max((_aged(stream, wait, newest, earlier) for stream in scope), default=BEGINNING)
    if isinstance(node.operator, BlockOperator) and BEGINNING < come < INFINITY:
        return frontier_of(graph, node.inputs[0], dict.fromkeys(graph.sources, come + 1)) - 1
    return come


def _aged(stream: str, wait: Wait, newest: Newest, earlier: Earlier) -> int:
    if wait.length == INFINITY:
        return BEGINNING
    if wait.wall and wait.length:
        return earlier.get(stream, {}).get(wait.length, BEGINNING)
    come = newest.get(stream, BEGINNING)
    return come - wait.length if come > BEGINNING + wait.length else BEGINNING


def frontier_of(graph: Graph, node: int, frontiers: Newest) -> int:
    """How far a part of a plan is that nothing holds back, when its sources are so far."""
    found = graph.nodes[node]
    if found.source is not None:
        return frontiers.get(found.source, BEGINNING)
    if not found.inputs:
        return INFINITY  # constants
    return passed_on(graph, found, tuple(frontier_of(graph, child, frontiers) for child in found.inputs))


def passed_on(graph: Graph, node: Node, below: tuple[int, ...]) -> int:
    """How far a node is that holds nothing back, when its inputs are so far."""
    assert node.operator is not None
    if any(columns is not None for columns in node.operator.routing()):
        return min(below)  # it remembers rows, but does not change their times
    nothing = tuple(Delta.empty(graph.nodes[child].schema) for child in node.inputs)
    return node.operator.step(None, nothing, below).frontier
