"""Rows wait where they take the least room: heartbeats of operators with an eye on memory (Srivastava & Widom 7).

A strong answer is final when all streams have come to it. A part of the plan over some of the streams could run ahead of
the others; but if it puts out more than it takes, all it does is to fill the state above it. With ``SET memory_aware = on``
its inputs wait instead, for all the streams of its label. What is shown at once, at other levels, does not wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from headwater.algebra import nodes as n
from headwater.clock.labels import Labeled, assign_labels
from headwater.expressions.nodes import FALSE, TRUE
from headwater.optimizer.cost import Estimates, Statistics, estimate
from headwater.optimizer.labels import is_timed, label


def labeled(plan: n.Plan, statistics: Statistics | None = None) -> Labeled | None:
    """The plan as the labels see it: operators, and how many rows each is expected to put out for one that it takes."""
    if isinstance(plan, n.Source):
        return None
    return _seen(plan, estimate(plan, statistics), count(1), timed=is_timed(plan))


def _seen(plan: n.Plan, estimates: Estimates, numbers: Iterator[int], *, timed: bool) -> Labeled:
    if isinstance(plan, n.Source):
        return Labeled(plan.name)
    inputs = tuple(_seen(child, estimates, numbers, timed=timed) for child in plan.inputs)
    taken = sum(estimates[child].rate for child in plan.inputs)
    out = estimates[plan].rate / taken if taken else 1.0
    return Labeled(f"{next(numbers)} {label(plan, timed=timed)}", inputs, out)


def held_back(plan: n.Plan, statistics: Statistics | None = None) -> n.Plan:
    """The plan with rows waiting before every operator whose label names streams that are not below it."""
    tree = labeled(plan, statistics)
    if tree is None:
        return plan
    sources = {node.name: node for node in plan.walk() if isinstance(node, n.Source)}
    return _held(plan, tree, assign_labels(tree), sources)


def _held(plan: n.Plan, tree: Labeled, labels: Mapping[str, frozenset[str]], sources: Mapping[str, n.Source]) -> n.Plan:
    inputs = [_held(child, its, labels, sources) for child, its in zip(plan.inputs, tree.inputs, strict=True)]
    mine = labels.get(tree.name, frozenset())
    if mine > tree.streams():
        for i, below in enumerate(tree.inputs):
            reached = labels.get(below.name, frozenset((below.name,)))
            awaited = [only_time(sources[name]) for name in sorted((mine - reached) & sources.keys())]
            if awaited:
                inputs[i] = n.Await(inputs[i], n.Union.of(awaited), plan.grouped_by(i))
    return plan.with_new_inputs(inputs)


def only_time(source: n.Source) -> n.Plan:
    """No rows of it, only how far it is."""
    return n.Project(n.Filter(source, FALSE), (("row", TRUE),))
