"""What a bound script is: its queries, its answers, and the catalog that it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from headwater.algebra.nodes import Plan
from headwater.language.catalog import Catalog
from headwater.language.consistency import Consistency
from headwater.language.introspection import Answer, Explain
from headwater.language.notices import Notice
from headwater.settings import Settings

RESULT = "query"
"""The name of a SELECT's result."""


@frozen
class Query:
    """A query that can run: a named one (CREATE STREAM … AS) or a SELECT."""

    name: str
    plan: Plan = field(eq=False)
    consistency: Consistency | None = None
    """If the query says so."""
    uses: frozenset[str] = frozenset()
    """The folded names of the streams and functions that it uses."""


@frozen
class Script:
    """What a script declares and asks for."""

    catalog: Catalog
    named: tuple[Query, ...]
    """The queries of CREATE STREAM, TABLE or VIEW … AS, in order."""
    result: Query | None
    """The last SELECT."""
    notices: tuple[Notice, ...]
    settings: Settings
    answers: tuple[Answer | Explain, ...] = ()
    """What SHOW and DESCRIBE found, and what EXPLAIN asks for, in the order of the script."""
    altered: Mapping[str, Consistency] = field(factory=dict)
    """The level of consistency that ALTER QUERY gives to a query."""
