"""What a bound script is: its queries, its answers, and the catalog that it leaves behind."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count

from attrs import evolve, field, frozen

from headwater.algebra.nodes import Plan
from headwater.errors import InputError
from headwater.language.catalog import Catalog, Kind, Target
from headwater.language.consistency import Consistency
from headwater.language.emission import Emission
from headwater.language.introspection import Answer, Explain
from headwater.language.notices import Notice
from headwater.settings import Settings

RESULT = "query"
"""The name of a SELECT's result, in a script that of the last one."""


@frozen
class Query:
    """A query that can run: a named one (CREATE STREAM … AS) or a SELECT."""

    name: str
    plan: Plan = field(eq=False)
    consistency: Consistency | None = None
    """If the query says so."""
    uses: frozenset[str] = frozenset()
    """The folded names of the streams and functions that it uses."""
    emission: Emission | None = None
    """In which form its rows go out, if the query says so."""
    target: Target | None = None
    """Where its rows go, if it is that of a sink."""

    @classmethod
    def of(
        cls,
        name: str,
        plan: Plan,
        consistency: Consistency | None,
        emission: Emission | None,
        uses: frozenset[str],
        target: Target | None = None,
    ) -> Query:
        """With the plan of what goes out."""
        return cls(name, plan if emission is None else emission.of(plan), consistency, uses, emission, target)


def with_names(selects: Sequence[Query], taken: Collection[str]) -> tuple[Query, ...]:
    """The SELECTs of a script with a name each; ``taken``: the folded names that others have.

    The last one is ``query``, so that a script with one SELECT and a longer one whose last it is name it alike.
    """
    numbered = (f"{RESULT}_{number}" for number in count(1))
    free = (name for name in numbered if name not in taken)
    return tuple(evolve(query, name=next(free)) for query in selects[:-1]) + tuple(selects[-1:])


def no_query(script: Script) -> InputError:
    """There is nothing to run."""
    hint = "Add a SELECT, or CREATE STREAM name AS SELECT …"
    if script.named:
        hint = f"A view is only a name: add SELECT * FROM {script.named[-1].name}; or make it a STREAM."
    return InputError("NO_QUERY", "the script has no query", hint=hint)


@frozen
class Script:
    """What a script declares and asks for."""

    catalog: Catalog
    named: tuple[Query, ...]
    """The queries of CREATE STREAM, TABLE, VIEW or SINK … AS, in order."""
    selects: tuple[Query, ...]
    """Every SELECT, in order: ``query_1``, ``query_2``, …, and ``query``, the last one."""
    notices: tuple[Notice, ...]
    settings: Settings
    answers: tuple[Answer | Explain, ...] = ()
    """What SHOW and DESCRIBE found, and what EXPLAIN asks for, in the order of the script."""
    altered: Mapping[str, Consistency] = field(factory=dict)
    """The level of consistency that ALTER QUERY gives to a query."""
    ended: tuple[str, ...] = ()
    """The running queries that DROP QUERY ends."""

    @property
    def result(self) -> Query | None:
        """The last SELECT."""
        return self.selects[-1] if self.selects else None

    @property
    def streams(self) -> tuple[Query, ...]:
        """The named queries that run by themselves. A view does not: it is only a name."""
        kinds = {entry.name: entry.kind for entry in self.catalog}
        return tuple(query for query in self.named if kinds.get(query.name) is not Kind.VIEW)

    @property
    def queries(self) -> tuple[Query, ...]:
        """Everything that runs: the named queries, and every SELECT."""
        return (*self.streams, *self.selects)
