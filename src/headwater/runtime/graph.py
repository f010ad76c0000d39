"""The dataflow: operators, and whose output each of them reads."""

from __future__ import annotations

from attrs import define, field, frozen

from headwater.model.schema import Schema
from headwater.operators.base import Operator


@frozen
class Wait:
    """By how much a node is kept behind the newest row of its streams (CEDR: blocking, and remembering)."""

    length: int = 0
    wall: bool = False
    """Is that wall-clock time (in microseconds), or a length of the streams' own time?"""


_AT_ONCE = Wait()


@frozen(eq=False)
class Node:
    """An operator and the nodes that feed its inputs; a source has no operator."""

    id: int
    operator: Operator | None
    inputs: tuple[int, ...]
    schema: Schema
    source: str | None = None
    key: str = ""
    """What it computes, for whom and since when: the name of its state, the same in every graph that has the node."""
    stateless: bool = False
    """Neither it nor anything below it remembers a thing."""
    speculative: bool = False
    """Does it show more as time is seen to pass, even if nothing comes?"""
    wait: Wait = _AT_ONCE
    role: str = ""
    """The key without the consistency level: what keeps its state when a query's level changes."""
    before: Operator | None = None
    """The strong form of the operator, which had this role first: its state may still have to be taken over."""
    standing: int | None = None
    """The node whose standing rows it hands over in its first tick."""

    @property
    def delay(self) -> int:
        """By how much it is kept behind the newest row."""
        return self.wait.length

    @property
    def wall(self) -> bool:
        """Is that wall-clock time?"""
        return self.wait.wall


@define
class Graph:
    """Nodes in an order in which every node follows its inputs, and the node of each query."""

    nodes: list[Node] = field(factory=list)
    queries: dict[str, int] = field(factory=dict)
    relations: dict[str, int] = field(factory=dict)
    """By stream: the node that keeps the rows that hold now, for queries to come."""

    def add_source(self, name: str, schema: Schema, key: str = "", role: str = "") -> int:
        self.nodes.append(Node(len(self.nodes), None, (), schema, name, key, stateless=True, role=role))
        return len(self.nodes) - 1

    def add(
        self,
        operator: Operator,
        *inputs: int,
        key: str = "",
        stateless: bool = False,
        speculative: bool = False,
        wait: Wait = _AT_ONCE,
        role: str = "",
        before: Operator | None = None,
        standing: int | None = None,
    ) -> int:
        about = (key, stateless, speculative, wait, role, before, standing)
        node = Node(len(self.nodes), operator, inputs, operator.schema, None, *about)
        self.nodes.append(node)
        return node.id

    @property
    def sources(self) -> tuple[str, ...]:
        """The streams it reads, each once."""
        return tuple(dict.fromkeys(node.source for node in self.nodes if node.source is not None))

    def columns(self, stream: str) -> frozenset[str]:
        """What is read of a stream."""
        return frozenset(name for node in self.nodes if node.source == stream for name in node.schema.names)

    def whose(self, node: int) -> str:
        """The queries that are computed from a node, as a text that names them."""
        names = [f'"{query}"' for query in self.queries if node in self.below(query)]
        return f"{'query' if len(names) == 1 else 'queries'} {', '.join(names)}"

    @property
    def read(self) -> set[str]:
        """The streams that queries read; others are here only because what they hold is kept."""
        below = {i for query in self.queries for i in self.below(query)}
        return {source for i in below if (source := self.nodes[i].source) is not None}

    def below(self, query: str) -> set[int]:
        """The nodes that a query is computed from."""
        found: set[int] = set()
        waiting = [self.queries[query]]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting.extend(self.nodes[node].inputs)
        return found
