"""Rows that a stream could not take: late ones and malformed ones. They can be read like streams that were declared.

``<stream>_late`` has the columns of the stream, unless LATE ROWS says something else of them; ``<stream>_bad`` has the rows
as text, where they come from and what is wrong with them.
"""

from __future__ import annotations

from headwater.language.catalog import Catalog, Stream
from headwater.language.time_clauses import LatePolicy, LateRows
from headwater.model.schema import Schema

LATE, BAD = "_late", "_bad"
BAD_SCHEMA = Schema.of(source="STRING", line="BIGINT", reason="STRING", row="STRING")


def put_aside(catalog: Catalog, name: str) -> Stream | None:
    """The stream of the late or malformed rows of another one, if a name is one that it has without being declared."""
    for ending in (LATE, BAD):
        if not name.casefold().endswith(ending):
            continue
        parent = catalog.get(name[: -len(ending)])
        if not isinstance(parent, Stream) or parent.late_rows_of is not None:
            continue
        if ending == BAD:
            return Stream(f"{parent.name}{BAD}", BAD_SCHEMA, late_rows_of=parent.name)
        if is_diverted_by_default(parent):
            return Stream(f"{parent.name}{LATE}", parent.carried, late_rows_of=parent.name)
    return None


def is_diverted_by_default(stream: Stream) -> bool:
    """Do its late rows become rows of ``<stream>_late``?"""
    said = next((c for c in stream.clauses if isinstance(c, LateRows)), None)
    return said is None or (said.policy is LatePolicy.DIVERT and said.into is None)
