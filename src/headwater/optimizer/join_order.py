"""In which order to join: over a graph of relations and the predicates between them.

Inner joins commute and associate, so any binary tree over the relations gives the same answer. Up to eight relations all
trees are compared by dynamic programming; above that, the pair with the fewest results is joined first, again and again
(Golab 5.3.2). What a part of the relations gives does not depend on how it was joined (OF 22.4), so one estimate a part
will do. No product is formed as long as some order can do without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

from attrs import frozen

from headwater.optimizer.estimation.characteristics import Characteristics, joined
from headwater.optimizer.estimation.estimates import STATELESS, Estimate, State
from headwater.optimizer.estimation.resources import join_cost, join_state

MOST_COMPARED = 8
"""With more relations the number of trees is too large to look at all of them."""

Tree: TypeAlias = "int | tuple[Tree, Tree]"
"""The index of a relation, or a join of two trees. The left one has the smallest index of both."""


@frozen
class Relation:
    """An input of the joins. ``index``: how predicates and trees call it; 0, 1, 2, … in the order of the query."""

    index: int
    estimate: Estimate


@frozen
class Predicate:
    """A condition between two or more relations. A pair of rows satisfies it with the chance ``selectivity``.

    Of equalities that follow from others (a = b, b = c, a = c) only as many count as say something new: leave out the rest.
    """

    relations: frozenset[int]
    selectivity: float


class JoinCost(NamedTuple):
    """Compared in this order; the cost of a tree is the sum over its joins."""

    products: int
    """Joins without any predicate."""
    time: float
    bytes: float

    def plus(self, a: JoinCost, b: JoinCost) -> JoinCost:
        return JoinCost(
            self.products + a.products + b.products, self.time + a.time + b.time, self.bytes + a.bytes + b.bytes
        )


def order_joins(relations: Sequence[Relation], predicates: Sequence[Predicate]) -> Tree:
    """The tree that is expected to cost least; of equal ones the one nearest to the order of the query.

    >>> three = [Relation(i, Estimate(Characteristics.of(1, 100), {}, horizon=1e6, arrivals=1.0)) for i in range(3)]
    >>> order_joins(three, [Predicate(frozenset({0, 1}), 0.1), Predicate(frozenset({0, 2}), 0.01)])
    ((0, 2), 1)
    """
    assert relations, "there is nothing to join"
    graph = JoinGraph(relations, predicates)
    return _compare_all(graph) if len(relations) <= MOST_COMPARED else _fewest_first(graph)


class Part(NamedTuple):
    """Some of the relations, joined by whatever tree."""

    stream: Characteristics
    changes: float
    """Rows of deltas per instant."""
    churn: float
    width: float
    """Bytes of a row."""
    state: State
    """What a join keeps of it, while rows come on the other side."""
    near: int
    """The relations that a predicate between two connects it with."""

    def kept_beside(self, other: Part) -> State:
        return self.state if other.stream.rate else STATELESS


class JoinGraph:
    """The relations as bits of a mask; what each set of them gives when joined."""

    def __init__(self, relations: Sequence[Relation], predicates: Sequence[Predicate]) -> None:
        self.relations = sorted(relations, key=lambda r: r.index)
        place = {r.index: i for i, r in enumerate(self.relations)}
        assert all(len(p.relations) > 1 for p in predicates), "a predicate over one relation is a filter"
        self._predicates = [(sum(1 << place[r] for r in p.relations), p.selectivity) for p in predicates]
        self._wide = [touched for touched, _ in self._predicates if touched.bit_count() > 2]
        self._parts: dict[int, Part] = {}
        for i, relation in enumerate(self.relations):
            estimate, bit = relation.estimate, 1 << i
            near = 0
            for touched, _ in self._predicates:
                near |= touched ^ bit if touched & bit and touched.bit_count() == 2 else 0
            self._parts[bit] = _part(estimate.stream, estimate.churn, estimate.row_bytes, near)

    @property
    def everything(self) -> int:
        return (1 << len(self.relations)) - 1

    def part(self, mask: int) -> Part:
        known = self._parts.get(mask)
        if known is None:
            last = 1 << (mask.bit_length() - 1)
            rest, one = self.part(mask ^ last), self._parts[last]
            stream = joined(rest.stream, one.stream, self._selectivity(mask ^ last, last))
            known = _part(stream, max(rest.churn, one.churn), rest.width + one.width, rest.near | one.near)
            self._parts[mask] = known
        return known

    def _selectivity(self, left: int, right: int) -> float:
        chance = 1.0
        for touched, selectivity in self._predicates:
            if _links(touched, left, right):
                chance *= selectivity
        return chance

    def is_product(self, left: int, right: int) -> bool:
        """Is there no predicate that connects the two parts?"""
        if self.part(left).near & right:
            return False
        return not any(_links(touched, left, right) for touched in self._wide)

    def cost(self, left: int, right: int) -> JoinCost:
        """Of one join, without those below it."""
        one, other, result = self.part(left), self.part(right), self.part(left | right)
        # Of a side nothing is kept if nothing comes on the other.
        state = one.kept_beside(other).plus(other.kept_beside(one))
        time = join_cost(one.changes + other.changes, result.changes, result.changes, state.rows, result.width)
        return JoinCost(int(self.is_product(left, right)), time, state.bytes)


_NOBODY = Characteristics(1.0, 0.0)


def _part(stream: Characteristics, churn: float, width: float, near: int) -> Part:
    return Part(stream, stream.rate * churn, churn, width, join_state(stream, _NOBODY, width, 0.0), near)


def _links(touched: int, left: int, right: int) -> bool:
    """Does the predicate connect the two parts, needing nothing else?"""
    return bool(touched & left and touched & right and not touched & ~(left | right))


def _compare_all(graph: JoinGraph) -> Tree:
    """The best tree of every part from the best trees of its halves."""
    best: dict[int, tuple[JoinCost, Tree]] = {
        1 << i: (JoinCost(0, 0.0, 0.0), r.index) for i, r in enumerate(graph.relations)
    }
    for part in range(1, graph.everything + 1):  # every smaller set of the same bits is a smaller number
        if part & (part - 1) == 0:
            continue
        for right in _right_halves(part):
            left = part ^ right
            (one, one_tree), (other, other_tree) = best[left], best[right]
            if part in best:
                products = one.products + other.products + graph.is_product(left, right)
                if products > best[part][0].products:
                    continue
            cost = graph.cost(left, right).plus(one, other)
            if part not in best or cost < best[part][0]:
                best[part] = cost, (one_tree, other_tree)
    return best[graph.everything][1]


def _right_halves(part: int) -> Iterator[int]:
    """Every way to cut the part in two, each once: the right half without the lowest bit. First the last relation alone,
    as the query has it.
    """
    alone = 1 << (part.bit_length() - 1)
    yield alone
    free = part & (part - 1)
    half = free
    while half:
        if half != alone:
            yield half
        half = (half - 1) & free


def _fewest_first(graph: JoinGraph) -> Tree:
    """Golab's heuristic with trees on both sides: the two that give the fewest results next."""
    trees: dict[int, Tree] = {1 << i: r.index for i, r in enumerate(graph.relations)}
    while len(trees) > 1:
        left, right = min(combinations(sorted(trees, key=_lowest), 2), key=lambda pair: _fewness(graph, *pair))
        trees[left | right] = (trees.pop(left), trees.pop(right))
    return next(iter(trees.values()))


def _lowest(part: int) -> int:
    return part & -part


def _fewness(graph: JoinGraph, left: int, right: int) -> tuple[int, float, float]:
    cost = graph.cost(left, right)
    return cost.products, graph.part(left | right).stream.alive, cost.time
