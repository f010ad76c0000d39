"""Of a stream only the columns are read that something above needs; its source can leave out the others."""

from __future__ import annotations

from attrs import evolve

from headwater.algebra import nodes as n
from headwater.optimizer.physical.live_columns import narrow_schema, read_columns
from headwater.optimizer.rule import Context, rule


@rule(
    n.Plan,
    law="op(S) ≐ op(π_A(S)), and π_A(S) is what the source of S brings",
    condition="A holds what is read of S; S has rows of one instant, which are never revised",
    source="ours: Krämer 10.3.1, down to the files",
    physical=True,
    whole=True,
)
def prune_columns(plan: n.Plan, context: Context) -> n.Plan | None:
    live = read_columns(plan)
    done: dict[n.Plan, n.Plan] = {}
    for node in plan.walk():
        if isinstance(node, n.Source) and node.chronons and not node.revisable:
            columns = narrow_schema(node.schema, live[node])
            done[node] = node if columns == node.schema else evolve(node, columns=columns)
        else:
            done[node] = node.with_new_inputs(done[child] for child in node.inputs)
    return None if done[plan] is plan else done[plan]
