"""A relation that holds rows and is declared with further columns, in another order, or wider: its rows as read now.

Rows are kept by all their values, so other columns make other keys, and other shards. What is kept is therefore given once
to empty states of the new operators, as if it had just come; then these hear how far time is. A column that was not there
is NULL. Where columns are only wider, rows have the same keys: then states are written once more with the new types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve

from headwater.algebra.nodes import Plan, Source
from headwater.algebra.plan_data import to_json
from headwater.errors import InputError
from headwater.model.delta import Delta, shard_of
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING
from headwater.operators.base import Operator
from headwater.operators.tables.repair import RepairOperator
from headwater.operators.tables.standing_rows import HandOverOperator, Standing
from headwater.operators.waiting.pools import PoolOperator
from headwater.runtime.checkpoint import Manifest
from headwater.runtime.graph import Graph, Node
from headwater.runtime.lower import Lowering
from headwater.runtime.plan_keys import another_relation
from headwater.runtime.reading import StreamTask
from headwater.runtime.reshard import new_record
from headwater.runtime.stage import Records
from headwater.runtime.wider_plan import is_wider_source
from headwater.runtime.wider_states import widened
from headwater.state.store import Store


def check_time(task: StreamTask, manifest: Manifest) -> None:
    """Is a stream placed in time as it was? How far it is final, and all states, speak of that time."""
    before = manifest.described.get("times", {}).get(task.stream, task.placed_by)
    if before != task.placed_by:
        raise InputError(
            "STREAM_CHANGED",
            f'the time of "{task.stream}" is another one than the checkpoint has',
            detail=f"It was told by {before}, and is told by {task.placed_by} now.",
            hint="Declare it as it was; to begin it anew, DROP it then, or use a new checkpoint.",
        )


def redeclare(manifest: Manifest, before: Source | None, after: Plan, store: Store | None) -> None:
    """What a manifest has of a relation goes on under its declaration of now, from the next tick on.

    Raises ``InputError`` where it holds rows and the difference is another one than columns that may be NULL, their order,
    or wider types.
    """
    if isinstance(after, Source) and after.revisable and before is not None and before != after:
        late = [query["since"] for query in manifest.queries.values()]
        manifest.records = _read_anew(before, after, manifest.records, late, store)
        manifest.relations[after.name] = to_json(after)


def _read_anew(before: Source, after: Source, records: Records, late: Iterable[int], store: Store | None) -> Records:
    """The records, with what the relation keeps under its new keys instead of the old ones.

    ``late``: the ticks since when queries read it that began later.
    """
    ticks = sorted(set(late) - {0})
    old, new = (_lowered(relation, ticks) for relation in (before, after))
    keys = {node.key for node in old.nodes}
    follows = store is not None and _has_only_more(before, after)
    is_wider = follows and before.schema.names == after.schema.names
    wide = widened(old, new, records, store) if is_wider else records
    kept = {shard: {k: r for k, r in its.items() if k not in keys} for shard, its in wide.items()}
    if is_wider:
        return kept
    carried = _Carried(old, records, store) if store is not None and follows else None
    if carried is None or not all(map(carried.can_follow, old.nodes)):
        if any(record["rows"] for its in records.values() for key, record in its.items() if key in keys):
            raise another_relation(after.name, after.schema, before.schema)
        return kept
    for was, now in zip(old.nodes, new.nodes, strict=True):
        if was.operator is not None:
            for shard, record in carried.records_of(was, now, new).items():
                kept[shard][now.key] = record
    return kept


def _lowered(relation: Source, ticks: Sequence[int]) -> Graph:
    graph = Graph()
    lowering = Lowering(graph)
    lowering.add_relation(relation)
    for tick in ticks:
        lowering.add_late_reader(relation, tick)
    return graph


def _has_only_more(before: Source, after: Source) -> bool:
    """Has it the same columns, perhaps elsewhere or wider, and others that may be NULL?"""
    if evolve(after, columns=before.columns) != before:
        return False
    known = before.schema.names
    has_all = {*known} <= {*after.schema.names} and is_wider_source(before, after)
    return has_all and all(f.nullable for f in after.columns if f.name not in known)


class _Carried:
    """What the operators of a relation know, for those that follow them."""

    def __init__(self, old: Graph, records: Records, store: Store) -> None:
        self._old, self._records, self._store = old, records, store
        (self._standing,) = old.relations.values()

    def can_follow(self, node: Node) -> bool:
        """Change events without a key are kept as sums, of which the events cannot be told."""
        known = (Standing, RepairOperator, HandOverOperator)
        return node.operator is None or isinstance(node.operator, known) or not self._has_record(node)

    def records_of(self, was: Node, now: Node, new: Graph) -> dict[int, Any]:
        """By shard."""
        if not self._has_record(was):
            return {}
        if isinstance(was.operator, HandOverOperator):
            return {shard: its[was.key] for shard, its in self._records.items() if was.key in its}
        old, operator = self._states(was), now.operator
        assert operator is not None
        schema = new.nodes[now.inputs[0]].schema
        fed = [_with_columns(delta, schema) for delta in self._fed(was, old)]
        promised = min(its[was.key]["promised"] for its in self._records.values() if was.key in its)
        states = _fed_states(operator, fed, len(self._records), min(state.frontier for state in old), self._store)
        if isinstance(operator, PoolOperator):
            states[0].broken = sum(state.broken for state in old)
        return {shard: new_record(operator, state, promised) for shard, state in enumerate(states)}

    def _has_record(self, node: Node) -> bool:
        return any(node.key in its for its in self._records.values())

    def _states(self, node: Node) -> list[Any]:
        assert node.operator is not None
        saved = [its[node.key]["state"] for _, its in sorted(self._records.items()) if node.key in its]
        return [node.operator.restore(state, self._store) for state in saved]

    def _fed(self, node: Node, states: Sequence[Any]) -> list[Delta]:
        """What makes an empty state know the same, one after the other."""
        if isinstance(node.operator, Standing):
            return [_together([node.operator.remembered(state) for state in states])]
        # It knows only the hashes of what has passed; what has not ended of that stands in the relation.
        assert isinstance(node.operator, PoolOperator)
        standing = self._old.nodes[self._standing]
        waiting = _together([node.operator.waiting(state) for state in states])
        return [*self._fed(standing, self._states(standing)), waiting]


def _together(deltas: Sequence[Delta]) -> Delta:
    return Delta.concat(deltas[0].schema, deltas)


def _with_columns(delta: Delta, schema: Schema) -> Delta:
    """By their names; NULL where there is none."""
    known = delta.schema.names
    columns = [delta.column(f.name).cast(f.type) if f.name in known else pa.nulls(len(delta), f.type) for f in schema]
    return Delta(schema, columns, delta.start, delta.end, delta.weight)


def _fed_states(operator: Operator, fed: Sequence[Delta], shards: int, frontier: int, store: Store) -> list[Any]:
    """New states of all shards that were given this; then time goes on to the frontier."""
    (by,) = operator.routing()
    assert by is not None
    states = [operator.new_state(store) for _ in range(shards)]
    for delta in fed:
        place = shard_of(delta.key(by), shards)
        for shard, state in enumerate(states):
            operator.step(state, (delta.take(np.flatnonzero(place == shard)),), (BEGINNING,))
    for state in states:
        operator.step(state, (Delta.empty(fed[0].schema),), (frontier,))
    return states
