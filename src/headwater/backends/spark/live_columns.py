"""Which columns of each part of a plan are read by what stands above it."""

from __future__ import annotations

from headwater.algebra import nodes as n


def read_columns(plan: n.Plan) -> dict[n.Plan, frozenset[str]]:
    """For each node, the columns of its output that its readers need; of the plan itself, all.

    Where rows are compared as a whole (DISTINCT, EXCEPT, ties of row windows and of top-k), all columns are needed.
    """
    wanted: dict[n.Plan, frozenset[str]] = {node: frozenset() for node in plan.walk()}
    wanted[plan] = frozenset(plan.schema.names)
    for node in reversed(list(plan.walk())):  # readers before what they read
        for child, names in zip(node.inputs, node.reads(wanted[node]), strict=True):
            wanted[child] |= names
    return wanted
