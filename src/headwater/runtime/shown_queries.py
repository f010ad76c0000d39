"""SHOW QUERIES as an engine answers it: what runs, how far it is, and what else is defined or waits to be started."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from headwater.language.consistency import Consistency
from headwater.language.emission import Emission, shown_emission
from headwater.language.introspection import SHOW_QUERIES, Answer
from headwater.runtime.amounts import instant_text, length_text
from headwater.runtime.progress import query_progress

if TYPE_CHECKING:
    from headwater.runtime.core import Core

_COLUMNS = ("state", "since", "rows", "forgotten", "behind", "final before")
_NOTHING = ("-", "-", "-", "-", "-")


def with_states(answer: Answer, core: Core, *, views: Collection[str] = (), failed: bool = False) -> Answer:
    """The answer with what only an engine knows, if it is about queries. ``views``: their names, in lower case."""
    if answer.title != SHOW_QUERIES:
        return answer
    rows: list[tuple[str, ...]] = []
    for name, columns, consistency, emit, uses in answer.rows:
        if name in core.deployment:
            query = core.deployment[name]
            shown = (name, columns, str(query.level), shown_emission(query.output.emission, query.level), uses)
            rows.append((*shown, "failed" if failed else "running", *_progress(core, name)))
        elif name not in core.awaited:
            state = "view" if name.casefold() in views else "not started"
            rows.append((name, columns, consistency, emit, uses, state, *_NOTHING))
    return Answer(answer.title, (*answer.columns, *_COLUMNS), (*rows, *_awaited(answer, core)))


def _progress(core: Core, name: str) -> tuple[str, ...]:
    query, now = core.deployment[name], query_progress(core, name)
    final = instant_text(query.frontier, timestamps=query.output.timestamps)
    since = "the beginning" if query.since == 0 else f"tick {query.since:,}"
    return since, f"{now.rows_out:,}", f"{now.forgotten_rows:,}", length_text(now.lag), final


def _awaited(answer: Answer, core: Core) -> Iterable[tuple[str, ...]]:
    """Nothing runs before these are started again, or dropped."""
    known = {row[0]: (row[1], row[-1]) for row in answer.rows}
    for name in core.awaited:
        kept = core.manifest.queries[name]
        columns, uses = known.get(name, ("", ""))
        emit = shown_emission(Emission.from_manifest(kept["emission"]), Consistency.from_manifest(kept["level"]))
        timestamps = core.manifest.described.get("queries", {}).get(name, True)
        final = instant_text(kept["frontier"], timestamps=timestamps)
        shown = (name, columns, kept["consistency"], emit, uses)
        yield (*shown, "awaited", f"tick {kept['since']:,}", "-", "-", "-", final)
