"""Which streams an operator of a plan waits for: heartbeats of operators, with an eye on memory (Srivastava & Widom 7).

An operator may run as far as its own inputs have come. But if it puts out more than it takes, running early only fills
the queue before an operator above that waits for other streams; then it had better wait for these too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen


@frozen
class Labeled:
    """An operator of a plan, or a stream (a leaf without inputs)."""

    name: str
    inputs: tuple[Labeled, ...] = ()
    selectivity: float = 1.0
    """Rows out for each row in; more than 1: it is proliferative."""

    def operators(self) -> Iterator[Labeled]:
        """This one and all below it, without the streams."""
        if self.inputs:
            yield self
            for below in self.inputs:
                yield from below.operators()

    def streams(self) -> frozenset[str]:
        """The streams that feed it."""
        return frozenset().union(*(i.streams() for i in self.inputs)) if self.inputs else frozenset((self.name,))


def memory_links(root: Labeled) -> dict[str, str]:
    """From each proliferative operator to the lowest one above with which the chain is selective again.

    The root's output leaves the system, so at the root every chain ends.
    """
    links: dict[str, str] = {}

    def visit(node: Labeled, above: tuple[Labeled, ...]) -> None:
        if not node.inputs:
            return
        total, place = node.selectivity, 0
        while total > 1 and place < len(above):
            total *= above[-1 - place].selectivity
            place += 1
        if node.selectivity > 1 and place:
            links[node.name] = above[-place].name
        for below in node.inputs:
            visit(below, (*above, node))

    visit(root, ())
    return links


def assign_labels(root: Labeled, links: Mapping[str, str] | None = None) -> dict[str, frozenset[str]]:
    """For each operator the streams that it waits for: those that feed it, or all that its parent waits for.

    It waits with its parent if a link starts at it or below it and ends above it.
    """
    links = memory_links(root) if links is None else links
    labels: dict[str, frozenset[str]] = {}

    def visit(node: Labeled, above: tuple[str, ...]) -> None:
        if not node.inputs:
            return
        waits = any(links.get(o.name) in above for o in node.operators())
        labels[node.name] = labels[above[-1]] if above and waits else node.streams()
        for below in node.inputs:
            visit(below, (*above, node.name))

    visit(root, ())
    return labels
