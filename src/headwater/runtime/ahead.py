"""What an operator makes before its step is over: rows that may go ahead to the operators above, portion by portion.

For those it is a tick in which time stands still. A portion alone need not be legal there: rows that are taken away, and
rows before the frontier, which only together change no more than an end, wait for the rest of the step.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.operators.joins.pile import Pile
from headwater.operators.sight import Sight, put_together, seen_together
from headwater.runtime.graph import Graph, Node
from headwater.runtime.layout import Layout


def legal_part(delta: Delta, frontier: int) -> tuple[Delta, Delta]:
    """The rows that may go ahead, and those that must wait."""
    goes = (delta.weight > 0) & (delta.start >= frontier)
    return (delta, Delta.empty(delta.schema)) if goes.all() else (delta.filter(goes), delta.filter(~goes))


def pile_for(node: Node, readers: Iterable[Sight | None]) -> Pile:
    """For the rows of a node, of which its readers see so much."""
    sight = seen_together(readers, node.schema)
    return Pile(node.schema, partial(put_together, sight=sight) if sight is not None else None)


def later_readers(layout: Layout, node: int) -> list[Sight | None]:
    """What those of later levels see of a node, and the queries whose answer it is."""
    edges = {edge.id for edge in layout.edges if edge.node == node}
    sights: list[Sight | None] = [None for root in layout.graph.queries.values() if root == node]
    for reader, sources in zip(layout.graph.nodes, layout.inputs, strict=True):
        if reader.operator is not None:
            sights += [reader.operator.sight(port) for port, source in enumerate(sources) if source.edge in edges]
    return sights


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
