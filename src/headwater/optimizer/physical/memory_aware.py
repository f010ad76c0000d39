"""Rows wait where they take the least room: heartbeats of operators with an eye on memory (Srivastava & Widom 7).

A strong answer is final when all streams have come to it. A part of the plan over some of the streams could run ahead of
the others; but if it puts out more than it takes, all it does is to fill the state above it. With ``SET memory_aware = on``
its inputs wait instead, for all the streams of its label. What is shown at once, at other levels, does not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count

from headwater.algebra import nodes as n
from headwater.expressions.nodes import FALSE, TRUE
from headwater.optimizer.labels import is_timed, label
from headwater.optimizer.physical.wait_labels import Labeled, assign_labels
from headwater.optimizer.rule import Context, rule

Rates = Callable[[n.Plan], float]
"""How many rows a part of a plan is expected to put out in an instant."""


def labeled(plan: n.Plan, rate: Rates) -> Labeled | None:
    """The plan as the labels see it: operators, and how many rows each is expected to put out for one that it takes."""
    if isinstance(plan, n.Source):
        return None
    return _seen(plan, rate, count(1), timed=is_timed(plan))


def _seen(plan: n.Plan, rate: Rates, numbers: Iterator[int], *, timed: bool) -> Labeled:
    if isinstance(plan, n.Source):
        return Labeled(plan.name)
    inputs = tuple(_seen(child, rate, numbers, timed=timed) for child in plan.inputs)
    taken = sum(map(rate, plan.inputs))
    out = rate(plan) / taken if taken else 1.0
    return Labeled(f"{next(numbers)} {label(plan, timed=timed)}", inputs, out)


@rule(
    n.Plan,
    law="op(S) ≐ op(await_T(S))",
    condition="SET memory_aware = on; op would put out more than it takes while what is above it waits for the streams T",
    source="Srivastava & Widom 7",
    physical=True,
    whole=True,
)
def memory_aware(plan: n.Plan, context: Context) -> n.Plan | None:
    tree = labeled(plan, lambda node: context.estimate(node).rate)
    if tree is None:
        return None
    sources = {node.name: node for node in plan.walk() if isinstance(node, n.Source)}
    changed = _held(plan, tree, assign_labels(tree), sources)
    return None if changed is plan else changed


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
