"""The dataflow: operators, and whose output each of them reads."""

from __future__ import annotations

from attrs import define, field, frozen

from headwater.model.schema import Schema
from headwater.operators.base import Operator


@frozen(eq=False)
class Node:
    """An operator and the nodes that feed its inputs; a source has no operator."""

    id: int
    operator: Operator | None
    inputs: tuple[int, ...]
    schema: Schema
    source: str | None = None


@define
class Graph:
    """Nodes in an order in which every node follows its inputs, and the node of each query."""

    nodes: list[Node] = field(factory=list)
    queries: dict[str, int] = field(factory=dict)

    def add_source(self, name: str, schema: Schema) -> int:
        self.nodes.append(Node(len(self.nodes), None, (), schema, name))
        return len(self.nodes) - 1

    def add(self, operator: Operator, *inputs: int) -> int:
        self.nodes.append(Node(len(self.nodes), operator, inputs, operator.schema))
        return len(self.nodes) - 1
