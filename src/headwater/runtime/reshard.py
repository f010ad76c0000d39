"""The state of a graph for another number of shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from headwater.operators.base import Operator
from headwater.operators.rows.constant import ConstantOperator
from headwater.runtime.layout import Layout
from headwater.runtime.stage import STRONG_FORM, Record, Records, owner_of
from headwater.state.store import Store


def reshard(layout: Layout, records: Records, shards: int, store: Store) -> Records:
    """Every operator's records, spread anew by its key."""
    moved: Records = {shard: {} for shard in range(shards)}
    for node in layout.graph.nodes:
        old = [its[node.key] for _, its in sorted(records.items()) if node.key in its]
        if not old or node.operator is None:
            continue
        if isinstance(node.operator, ConstantOperator):
            moved[0][node.key] = old[0]
            continue
        marked = {STRONG_FORM: True} if STRONG_FORM in old[0] else {}
        for shard, record in enumerate(_spread(owner_of(node, old[0]), old, shards, store)):
            moved[shard][node.key] = record | marked
    return moved


def _spread(operator: Operator, old: Sequence[Record], shards: int, store: Store) -> list[Record]:
    states: list[Any] = [operator.restore(record["state"], store) for record in old]
    # What the shards had heard may differ; hearing it again does no harm. None of them promises more than the slowest did.
    promised = min(record["promised"] for record in old)
    return [new_record(operator, state, promised) for state in operator.reshard(states, shards, store)]


def new_record(operator: Operator, state: Any, promised: int) -> Record:
    """Of a state that was made anew: what it had heard it must hear again."""
    rows, size = operator.buffered(state)
    saved = operator.save(state)
    kept = {"rows": rows, "bytes": size, "state": saved, "counts": operator.counts(state)}
    return {"version": uuid4().hex, "heard": [], "promised": promised} | kept
