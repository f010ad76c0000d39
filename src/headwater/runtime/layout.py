"""Where the operators of a graph run: levels, and what is sent from one to the next.

Level 0 is where data comes in: sources, and the stateless operators right above them; it keeps nothing and its rows are
anywhere. From level 1 on, rows are in the shard that their key says, and each change of the key begins another level. A tick
runs the levels one after the other, each of them on all shards at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from attrs import field, frozen

from headwater.operators.base import EVERY_COLUMN
from headwater.operators.rows.constant import ConstantOperator
from headwater.runtime.graph import Graph, Node

ONE_SHARD: tuple[str, ...] = ()
"""A route: everything goes to the first shard."""


@frozen
class Edge:
    """What a node sends to a later level: its rows by the hash of some columns, or (None) to the same shard."""

    id: int
    node: int
    level: int
    route: tuple[str, ...] | None


class Input(NamedTuple):
    """Where an operator's input comes from: a node of the same level, or an edge."""

    node: int | None = None
    edge: int | None = None


@frozen
class GraphLevel:
    """What runs at one level, in order, and what comes in and goes out."""

    number: int
    nodes: tuple[int, ...]
    incoming: tuple[int, ...]
    outgoing: tuple[int, ...]
    queries: tuple[str, ...]
    """Whose answer is computed here."""


@frozen
class Layout:
    """A graph cut into levels."""

    graph: Graph
    levels: tuple[GraphLevel, ...]
    edges: tuple[Edge, ...]
    inputs: tuple[tuple[Input, ...], ...]
    """For each node."""
    level_of: tuple[int, ...]
    """For each node."""
    scope: tuple[frozenset[str], ...] = field(repr=False)
    """For each node: the streams of all queries that it serves. Speculation goes as far as the furthest of them."""

    @property
    def constants(self) -> tuple[int, ...]:
        """The nodes whose rows come from the plan itself."""
        return tuple(i for i in self.levels[0].nodes if isinstance(self.graph.nodes[i].operator, ConstantOperator))


class _Place(NamedTuple):
    """At which level the rows of a node are, and the keys by any of which they are spread (all in one shard: ())."""

    level: int
    keys: frozenset[tuple[str, ...]]


class _Cutter:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._places: list[_Place] = []
        self._inputs: list[tuple[Input, ...]] = []
        self._edges: dict[tuple[int, int, tuple[str, ...] | None], Edge] = {}

    def cut(self) -> Layout:
        for node in self._graph.nodes:
            self._place(node)
        edges = tuple(self._edges.values())
        levels = tuple(self._level(number, edges) for number in range(self._last() + 1))
        level_of = tuple(place.level for place in self._places)
        return Layout(self._graph, levels, edges, tuple(self._inputs), level_of, _scopes(self._graph))

    def _last(self) -> int:
        return max((place.level for place in self._places), default=0)

    def _level(self, number: int, edges: Sequence[Edge]) -> GraphLevel:
        return GraphLevel(
            number,
            tuple(i for i, place in enumerate(self._places) if place.level == number),
            tuple(e.id for e in edges if e.level == number),
            tuple(e.id for e in edges if self._places[e.node].level == number),
            tuple(q for q, node in self._graph.queries.items() if self._places[node].level == number),
        )

    def _place(self, node: Node) -> None:
        if not node.inputs:
            self._inputs.append(())
            self._places.append(_Place(0, frozenset()))
            return
        assert node.operator is not None
        below = [self._places[i] for i in node.inputs]
        routes = self._routes(node)
        level = max(place.level for place in below)
        moves = routes is not None and not _in_place(below, routes)
        if moves:
            level += 1
        # What has no key of its own and must catch up with a later level goes by all of its columns.
        wanted = routes or [self._graph.nodes[i].schema.names for i in node.inputs]
        ports = zip(node.inputs, wanted, strict=True)
        self._inputs.append(tuple(self._input(i, level, route, moves=moves) for i, route in ports))
        self._places.append(_Place(level, self._keys(node, below, routes, level)))

    def _routes(self, node: Node) -> list[tuple[str, ...]] | None:
        """The columns by which each input must be spread; None: as it comes."""
        assert node.operator is not None
        routing = node.operator.routing()
        if all(columns is None for columns in routing):
            return None
        names = [self._graph.nodes[i].schema.names for i in node.inputs]
        return [
            every if columns == EVERY_COLUMN else columns or ONE_SHARD
            for columns, every in zip(routing, names, strict=True)
        ]

    def _input(self, node: int, level: int, route: tuple[str, ...], *, moves: bool) -> Input:
        here = self._places[node].level
        if here == level and not moves:
            return Input(node=node)
        stays = here > 0 and not moves
        key = (node, level, None if stays else route)
        if key not in self._edges:
            self._edges[key] = Edge(len(self._edges), *key)
        return Input(edge=self._edges[key].id)

    def _keys(
        self, node: Node, below: Sequence[_Place], routes: list[tuple[str, ...]] | None, level: int
    ) -> frozenset[tuple[str, ...]]:
        """By which columns of its output a node's rows are spread."""
        if level == 0:
            return frozenset()
        assert node.operator is not None
        if routes is None:
            spread = [self._carried(node, place.keys, i) for i, place in enumerate(below) if place.level > 0]
            return frozenset.intersection(*spread) if len(spread) == len(below) else frozenset()
        names = set(node.schema.names)
        return frozenset(columns for columns in node.operator.spread(routes) if names.issuperset(columns))

    def _carried(self, node: Node, keys: frozenset[tuple[str, ...]], port: int) -> frozenset[tuple[str, ...]]:
        """The keys under the names that a stateless operator gives them."""
        assert node.operator is not None
        renamed = node.operator.carried(self._graph.nodes[node.inputs[port]].schema)
        return frozenset(
            tuple(renamed[column] for column in columns) for columns in keys if renamed.keys() >= set(columns)
        )


def _in_place(below: Sequence[_Place], routes: Sequence[tuple[str, ...]]) -> bool:
    """Are all inputs spread as the operator needs them?"""
    return all(place.level > 0 and route in place.keys for place, route in zip(below, routes, strict=True))


def _scopes(graph: Graph) -> tuple[frozenset[str], ...]:
    scopes: defaultdict[int, set[str]] = defaultdict(set)
    for query in graph.queries:
        nodes = graph.below(query)
        streams = {source for i in nodes if (source := graph.nodes[i].source) is not None}
        for i in nodes:
            scopes[i] |= streams
    return tuple(frozenset(scopes[node.id]) for node in graph.nodes)


def cut(graph: Graph) -> Layout:
    """The levels of a graph."""
    return _Cutter(graph).cut()
