"""Another level of consistency for a query that runs, between two ticks: its operators go on with what they have.

Operators of all levels but STRONG have the same form and keep the same state; a level only says how long rows wait and for
how long the past stays open. So the state of each operator goes to the one that has its role in the new graph. After a
change both a finalize and a block stay in the plan for good: rows may still wait in the one, and what the other has closed
stays closed. The block lets everything pass in the end, and both only move forward, so any change is right at any tick.

A query that becomes STRONG keeps its operators too, and gets one at its root that lets only final changes pass: from then on
nothing is taken back but what had been shown before and was wrong. It may become another one again.

A query that was STRONG from its beginning has other operators. What they keep is what the speculative ones keep at the
frontier, with everything behind it still to be shown, so these take it over in the next tick (``Operator.adopt``): what the
strong form had held back comes then, once, and what had been final stays. Its plan has the shape of the strong one, so that
each operator finds the state of its own role: also a part that was there twice, once holding back what is open and once
not. Where rows waited in an align, an open one lets them go. What had been taken in before the change does not wait again
below the operators, and is not forgotten.

Its answer goes on as a changelog then: rows come when their start is final and get their end when that is, so that as much
is shown as is known; but where the query was STRONG in another form, in that one.

A sink that has got final rows only, without the columns of a changelog, may not be able to go on with one: then the level
stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from attrs import evolve

from headwater.errors import InputError
from headwater.language.consistency import STRONG, Consistency
from headwater.language.emission import ON_START, Emission
from headwater.runtime.graph import Graph
from headwater.runtime.lineage import was_strong_first
from headwater.runtime.stage import STRONG_FORM, Records
from headwater.sinks.base import Output, Sink
from headwater.sinks.tables import check_names


def can_change(output: Output, sink: Sink, old: Consistency, new: Consistency) -> bool:
    """Can a query that delivers such answers to this sink go on with another level?"""
    return output.changelog or new in (STRONG, old) or sink.takes_changes


def check_change(output: Output, sink: Sink, old: Consistency, new: Consistency) -> None:
    """Raises ``InputError`` where it cannot."""
    if not can_change(output, sink, old, new):
        about = sink.describe()
        raise InputError(
            "UNSUPPORTED",
            f'query "{output.query}" cannot change from CONSISTENCY {old} to {new} while it runs',
            detail=f'Its sink "{about["sink"]}" has got final rows only, without the columns that say what is taken back.',
            hint="Stop it, and start it with the other level and a sink in another place.",
        )
    if new != STRONG:
        check_names(Output(output.query, output.schema, speculative=True, timestamps=output.timestamps))


def changed_output(output: Output, lineage: str, new: Consistency) -> Output:
    """What a query with these levels behind it delivers from now on."""
    forms = output.emission.period or was_strong_first(lineage)
    emission = output.emission if forms or new != STRONG else ON_START
    return evolve(output, speculative=True, settled=new == STRONG, emission=emission)


def check_form(output: Output, kept: Emission, *, same: bool, strong: bool) -> None:
    """Raises ``InputError`` if a query goes on in another form than it had: its operators and its sink are those of the old.

    ``same``: it is that query in all else; ``strong``: it was certain from its beginning, and shall be.
    """
    form = output.emission
    if form == kept or not (form.period or kept.period or (same and strong)):
        return
    raise InputError(
        "OTHER_FORM",
        f'query "{output.query}" cannot go on with EMIT {form}: under the checkpoint it has EMIT {kept}',
        detail="Rows that were shown, or wait to be, would come twice or not at all.",
        hint=f"Write EMIT {kept}, give the query another name, or drop it first.",
    )


class Carried(NamedTuple):
    """Whose states the operators of a query go on with, by their new keys."""

    keys: Mapping[str, str]
    """The old key of whoever had the role, where it is another one."""
    adopted: frozenset[str] = frozenset()
    """Those that go on with the state of their strong form."""


def carried(before: Graph, after: Graph, query: str) -> Carried:
    """Each operator goes on with the state of whoever had its role."""
    old = {before.nodes[i].role: before.nodes[i] for i in before.below(query)}
    nodes = [after.nodes[i] for i in after.below(query)]
    taken = {node.key: old[node.role] for node in nodes if node.role in old and old[node.role].key != node.key}
    adopted = {node.key for node in nodes if node.key in taken and node.speculative > taken[node.key].speculative}
    return Carried({key: node.key for key, node in taken.items()}, frozenset(adopted))


def with_carried(records: Records, taken: Carried) -> Records:
    """The records of a tick, with those of the old keys also under the new ones. What a shard had heard was of the old
    level: nothing is passed over in the next tick."""
    marked = {key: {"heard": []} | ({STRONG_FORM: True} if key in taken.adopted else {}) for key in taken.keys}
    return {
        shard: its | {new: its[old] | marked[new] for new, old in taken.keys.items() if old in its}
        for shard, its in records.items()
    }
