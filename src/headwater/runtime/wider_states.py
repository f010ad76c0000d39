"""A query goes on although columns that it reads have become wider: its states are written once more with their new types.

Equal values have equal hashes whatever their width, so each row stays in its shard and in its place: of the segments only
those columns are cast that keep values as they are (``state/retyped.py``). That is O(state), once, before the first tick.
The old segments stay while the last manifest of before names them: a restart with the old declaration finds everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from attrs import evolve

from headwater.algebra.plan_data import from_json
from headwater.errors import StateError
from headwater.model.types import parse_sql_type
from headwater.model.wider_types import holds_all_of
from headwater.operators.base import Operator
from headwater.operators.rows.constant import ConstantOperator
from headwater.operators.tables.repair import RepairOperator
from headwater.operators.tables.standing_rows import HandOverOperator, Standing
from headwater.runtime.deployment import Running, graph_if, root_key
from headwater.runtime.graph import Graph, Node
from headwater.runtime.plan_keys import first_difference
from headwater.runtime.stage import Record, Records, owner_of
from headwater.runtime.wider_plan import UnlikeError, check_wider
from headwater.state.retyped import KeptTypes, with_types
from headwater.state.store import MemoryStore, Store


def graphs_of(query: Running, kept: Mapping[str, Any]) -> tuple[Graph | None, Graph, str]:
    """What the query was made of, what it is made of now, and why not: None if more has changed than the width of columns.

    ``kept``: what the checkpoint has of it.
    """
    now = graph_if(query)
    if root_key(now, query.name) == kept["key"]:
        return now, now, ""
    if not kept.get("plan"):  # an older checkpoint, or too long a text
        return None, now, ""
    try:
        before = from_json(kept["plan"])
    except StateError:  # of another version of the package
        return None, now, ""
    try:
        check_wider(before, query.plan)  # first: what is made of a plan may call functions that it names
        was = graph_if(evolve(query, plan=before))
        check_followers(was, now)
    except UnlikeError as problem:
        return None, now, str(problem) or _in_general(query, kept) or first_difference(before, query.plan)
    return was if root_key(was, query.name) == kept["key"] else None, now, ""


def _in_general(query: Running, kept: Mapping[str, Any]) -> str:
    """What to say where types are wider only, and the query is put together in another way."""
    before = {(stream, name): type_ for stream, its in kept["reads"].items() for name, type_ in its.items()}
    now = {(stream, name): type_ for stream, its in query.reads.items() for name, type_ in its.items()}
    other = [(before[c], now[c]) for c in before.keys() & now.keys() if before[c] != now[c]]
    wider = all(holds_all_of(parse_sql_type(new), parse_sql_type(old)) for old, new in other)
    if not other or not wider or before.keys() != now.keys():
        return ""
    return (
        "Over these types it is put together in another way; a join or union with another type casts the narrower one."
    )


def check_followers(old: Graph, new: Graph) -> None:
    """Raises ``UnlikeError`` unless each operator of the new graph can go on with the state of the one in its place."""
    for was, now in _pairs(old, new):
        before, after = _operators(was), _operators(now)
        if [*map(type, before)] != [*map(type, after)]:
            raise UnlikeError
        if isinstance(after[0], Standing | RepairOperator | HandOverOperator):
            continue  # what relations keep follows their declarations by itself (``changed_relation``)
        if [old.nodes[i].schema.names for i in was.inputs] != [new.nodes[i].schema.names for i in now.inputs]:
            raise UnlikeError
        if not all(follower.goes_on_from(operator) for operator, follower in zip(before, after, strict=True)):
            told = "a DECIMAL of more than 18 digits is added up and compared in another way than a shorter one"
            raise UnlikeError(f"In its {after[0].name}, {told}.")


def widened(old: Graph, new: Graph, records: Records, store: Store | None) -> Records:
    """The records, with those of the old graph's operators also under the keys of the new ones, as they keep them."""
    if old is new or store is None:
        return records
    found: Records = {shard: dict(its) for shard, its in records.items()}
    for was, now in _pairs(old, new):
        for its in (its for its in found.values() if was.key in its and now.key not in its):
            its[now.key] = _cast(its[was.key], (was, old), (now, new), store)
    return found


def _pairs(old: Graph, new: Graph) -> list[tuple[Node, Node]]:
    """The operators with records. Those without may differ: a projection to all columns of a stream is left out."""
    kept = [[node for node in graph.nodes if any(map(_has_record, _operators(node)))] for graph in (old, new)]
    if len(kept[0]) != len(kept[1]):
        raise UnlikeError
    return list(zip(*kept, strict=True))


def _operators(node: Node) -> list[Operator]:
    return [operator for operator in (node.operator, node.before) if operator is not None]


def _has_record(operator: Operator) -> bool:
    return isinstance(operator, ConstantOperator) or operator.new_state(MemoryStore()) is not None


def _cast(record: Record, was: tuple[Node, Graph], now: tuple[Node, Graph], store: Store) -> Record:
    before, after = (_kept_types(owner_of(node, record), node, graph) for node, graph in (was, now))
    other = {place: type_ for place, type_ in after.items() if before[place] != type_}
    if not other or not record["state"]:
        return record
    return record | {"version": uuid4().hex, "state": with_types(record["state"], other, store)}


def _kept_types(operator: Operator, node: Node, graph: Graph) -> KeptTypes:
    return operator.kept_types([graph.nodes[i].schema for i in node.inputs])
