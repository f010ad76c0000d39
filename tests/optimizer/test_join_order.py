"""The order of joins: as good as the best of all trees, without products, and as written where nothing is gained."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from headwater.optimizer.cost import Characteristics, Column, Estimate
from headwater.optimizer.join_order import JoinCost, JoinGraph, Predicate, Relation, Tree, order_joins


def relation(index: int, rate: float = 1.0, alive: float = 100.0, width: float = 8.0) -> Relation:
    stream = Characteristics(rate, alive)
    return Relation(index, Estimate(stream, {"x": Column(10.0, bytes=width)}, horizon=1e6, arrivals=rate))


def between(selectivity: float, *relations: int) -> Predicate:
    return Predicate(frozenset(relations), selectivity)


def leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [*leaves(tree[0]), *leaves(tree[1])]


def mask(tree: Tree) -> int:
    return sum(1 << leaf for leaf in leaves(tree))


def cost(graph: JoinGraph, tree: Tree) -> JoinCost:
    if isinstance(tree, int):
        return JoinCost(0, 0.0, 0.0)
    return graph.cost(mask(tree[0]), mask(tree[1])).plus(cost(graph, tree[0]), cost(graph, tree[1]))


def every_tree(members: tuple[int, ...]) -> Iterator[Tree]:
    if len(members) == 1:
        yield members[0]
    first, *others = members
    for size in range(len(others)):
        for beside in combinations(others, size):
            left = (first, *beside)
            right = tuple(m for m in others if m not in beside)
            yield from ((a, b) for a in every_tree(left) for b in every_tree(right))


def random_graph(rng: np.random.Generator, size: int) -> tuple[list[Relation], list[Predicate]]:
    """Streams and relations that never change, with predicates between two and three, connected or not."""
    relations = [
        relation(
            i,
            rate=float(10 ** rng.uniform(-3, 1)) * (rng.random() < 0.85),
            alive=float(10 ** rng.uniform(0, 4)),
            width=float(rng.integers(4, 100)),
        )
        for i in range(size)
    ]
    predicates = [
        between(float(10 ** rng.uniform(-4, 0)), i, int(rng.integers(i))) for i in range(1, size) if rng.random() < 0.85
    ]
    while rng.random() < 0.4:
        touched = rng.choice(size, size=min(size, int(rng.integers(2, 4))), replace=False)
        predicates.append(between(float(10 ** rng.uniform(-3, 0)), *map(int, touched)))
    return relations, predicates


@pytest.mark.parametrize("seed", range(60))
def test_no_tree_is_cheaper(seed: int):
    rng = np.random.default_rng(seed)
    relations, predicates = random_graph(rng, int(rng.integers(2, 6)))
    chosen = order_joins(relations, predicates)
    assert sorted(leaves(chosen)) == list(range(len(relations)))
    graph = JoinGraph(relations, predicates)
    best = min(cost(graph, tree) for tree in every_tree(tuple(range(len(relations)))))
    ours = cost(graph, chosen)
    assert ours.products == best.products
    assert ours.time == pytest.approx(best.time, rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_a_part_gives_the_same_however_it_is_joined(seed: int):
    """OF 22.4 is associative and commutative."""
    rng = np.random.default_rng(seed)
    relations, predicates = random_graph(rng, 4)
    graph = JoinGraph(relations, predicates)
    streams = [r.estimate.stream for r in relations]
    chance = np.prod([p.selectivity for p in predicates])
    alive = chance * np.prod([s.alive for s in streams])
    rate = sum(s.rate * alive / s.alive for s in streams)
    assert graph.part(graph.everything).stream[:2] == pytest.approx((rate, alive))


def test_the_selective_join_comes_first():
    three = [relation(0), relation(1), relation(2)]
    assert order_joins(three, [between(0.001, 1, 2), between(0.5, 0, 1)]) == (0, (1, 2))
    assert order_joins(three, [between(0.001, 0, 2), between(0.5, 0, 1)]) == ((0, 2), 1)


def test_where_nothing_is_gained_the_order_of_the_query_stays():
    same = [relation(i) for i in range(4)]
    assert order_joins(same[:2], [between(0.1, 0, 1)]) == (0, 1)
    assert order_joins(same[:3], [between(0.1, 0, 1), between(0.1, 0, 2)]) == ((0, 1), 2)
    assert order_joins([relation(3)], []) == 3


def test_no_product_however_cheap_it_would_be():
    """Two tiny relations that only a large stream connects (a star): their product would cost least."""
    star = [relation(0, rate=0.0, alive=2), relation(1, rate=100, alive=1e5), relation(2, rate=0.0, alive=2)]
    assert order_joins(star, [between(0.5, 0, 1), between(0.5, 1, 2)]) in (((0, 1), 2), (0, (1, 2)))


def test_a_product_that_cannot_be_avoided():
    islands = [relation(0), relation(1), relation(2), relation(3)]
    tree = order_joins(islands, [between(0.01, 0, 2), between(0.01, 1, 3)])
    assert tree == ((0, 2), (1, 3))
    assert order_joins(islands[:2], []) == (0, 1)


def test_a_predicate_over_three_needs_all_three():
    three = [relation(0), relation(1), relation(2)]
    tree = order_joins(three, [between(1e-6, 0, 1, 2), between(0.1, 1, 2)])
    assert tree == (0, (1, 2))


@pytest.mark.parametrize("size", [9, 14])
def test_many_relations_are_joined_without_products(size: int):
    rng = np.random.default_rng(size)
    relations = [relation(i, alive=float(10 ** rng.uniform(0, 3))) for i in range(size)]
    predicates = [between(float(10 ** rng.uniform(-3, -1)), i, int(rng.integers(i))) for i in range(1, size)]
    tree = order_joins(relations, predicates)
    assert sorted(leaves(tree)) == list(range(size))
    assert cost(JoinGraph(relations, predicates), tree).products == 0


def test_relations_may_come_in_any_order_and_with_any_numbers():
    odd = [relation(7), relation(3), relation(5)]
    assert order_joins(odd, [between(0.001, 5, 7), between(0.5, 3, 5)]) == (3, (5, 7))


@pytest.mark.parametrize("seed", range(20))
def test_fewest_first_is_not_far_from_the_best(seed: int, monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(seed)
    relations = [relation(i, alive=float(10 ** rng.uniform(1, 3))) for i in range(6)]
    predicates = [between(float(10 ** rng.uniform(-3, -1)), i, int(rng.integers(i))) for i in range(1, 6)]
    graph = JoinGraph(relations, predicates)
    best = cost(graph, order_joins(relations, predicates))
    monkeypatch.setattr("headwater.optimizer.join_order.MOST_COMPARED", 1)
    quick = cost(graph, order_joins(relations, predicates))
    assert quick.products == 0
    assert best.time <= quick.time <= 3 * best.time
