"""Another level of consistency for a query that runs, between two ticks: its operators go on with what they have.

Operators of all levels but STRONG have the same form and keep the same state; a level only says how long rows wait and for
how long the past stays open. So the state of each operator goes to the one that has its role in the new graph. After a
change both a finalize and a block stay in the plan for good: rows may still wait in the one, and what the other has closed
stays closed. The block lets everything pass in the end, and both only move forward, so any change is right at any tick.

A query that becomes STRONG keeps its operators too, and gets one at its root that lets only final changes pass: from then on
nothing is taken back but what had been shown before and was wrong. It may become another one again.

A query that was STRONG from its beginning has other operators: what they keep says nothing of what they would have shown. It
cannot become another one.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.errors import InputError
from headwater.language.consistency import STRONG, Consistency
from headwater.runtime.executor import Records
from headwater.runtime.graph import Graph


def can_change(old: Consistency, new: Consistency, lineage: str) -> bool:
    """Can a query of the one level, which had others before, go on with the other?"""
    return old != STRONG or new == STRONG or bool(lineage)


def check_change(query: str, old: Consistency, new: Consistency, lineage: str) -> None:
    """Raises ``InputError`` where it cannot."""
    if not can_change(old, new, lineage):
        raise InputError(
            "UNSUPPORTED",
            f'query "{query}" cannot change from CONSISTENCY {old} to {new} while it runs',
            detail="Strong from its beginning, it has kept only what is needed for final answers, not for repairs.",
            hint="Stop it, and start it again with the other level.",
        )


def lineage_after(lineage: str, level: Consistency, tick: int) -> str:
    """What is to be said of the past of a query whose level changes after this tick."""
    return f"{lineage}{level} until {tick}; "


def carried(before: Graph, after: Graph, query: str) -> dict[str, str]:
    """For each operator of a query: by its new key the old one of whoever had its role, where these differ."""
    old = {before.nodes[i].role: before.nodes[i].key for i in before.below(query)}
    nodes = [after.nodes[i] for i in after.below(query)]
    return {node.key: old[node.role] for node in nodes if node.role in old and old[node.role] != node.key}


def with_carried(records: Records, keys: Mapping[str, str]) -> Records:
    """The records of a tick, with those of the old keys also under the new ones. What a shard had heard was of the old
    level: nothing is passed over in the next tick."""
    return {
        shard: its | {new: its[old] | {"heard": []} for new, old in keys.items() if old in its}
        for shard, its in records.items()
    }
