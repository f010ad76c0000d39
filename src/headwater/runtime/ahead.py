"""What an operator makes before its step is over: rows that may go ahead to the operators above, portion by portion.

For those it is a tick in which time stands still. A portion alone need not be legal there: rows that are taken away, and
rows before the frontier, which only together change no more than an end, wait for the rest of the step.
"""

from __future__ import annotations

from attrs import Factory, define

from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.operators.endpoints import only_ends
from headwater.runtime.graph import Graph, Node
from headwater.runtime.layout import Layout

_FEW = 8
"""Less than one of so many rows of a portion are few: it does not pay to look for equal endpoints."""
_PILES = 16
"""So many portions are put aside before equal endpoints are looked for among all of them."""


def legal_part(delta: Delta, frontier: int) -> tuple[Delta, Delta]:
    """The rows that may go ahead, and those that must wait."""
    goes = (delta.weight > 0) & (delta.start >= frontier)
    return (delta, Delta.empty(delta.schema)) if goes.all() else (delta.filter(goes), delta.filter(~goes))


def shrunk(delta: Delta, portion: int) -> Delta:
    """For operators that see endpoints only: each once, if there are many."""
    return only_ends(delta) if len(delta) > portion // _FEW else delta


def readers_of_ends(layout: Layout) -> frozenset[int]:
    """The nodes whose output only such operators read."""
    graph = layout.graph
    others = set(graph.queries.values())
    for node in graph.nodes:
        if node.operator is not None and not node.operator.only_ends:
            others.update(node.inputs)
    return frozenset(node.id for node in graph.nodes) - others


@define
class Pile:
    """What a node has made in a tick for others to take."""

    node: Node
    ends: bool
    """Do all who read it see endpoints only?"""
    parts: list[Delta] = Factory(list)
    large: int = 0

    def add(self, delta: Delta) -> None:
        self.parts.append(delta)

    def add_portion(self, delta: Delta, portion: int) -> None:
        """One of many, perhaps."""
        self.add(shrunk(delta, portion) if self.ends else delta)
        self.large += 1
        if self.ends and self.large % _PILES == 0:
            self.parts = [Delta.concat(self.node.schema, self.parts).consolidate()]

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    def whole(self) -> Delta:
        return Delta.concat(self.node.schema, self.parts)


def too_large(graph: Graph, node: Node, key: str, most: int) -> StreamError:
    """One step makes more than memory is meant for."""
    assert node.operator is not None
    queries = [f'"{query}"' for query in graph.queries if node.id in graph.below(query)]
    about = node.operator.describe().get("keys")
    where = f" ON {about}" if about else ""
    return StreamError(
        "STEP_TOO_LARGE",
        f"the {node.operator.name}{where} of query {', '.join(queries)} makes more than {most:,} bytes in one tick",
        detail=f"Most rows come with {key}." if key else "It pairs all rows with all.",
        hint="Join by more columns, over shorter windows, or aggregate before joining; SET step_bytes = n allows more.",
    )
