"""SHOW STREAMS and SHOW QUERIES as an engine answers them: with what has come, what runs, and how far it is final."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from headwater.language.emission import shown_emission
from headwater.language.introspection import SHOW_QUERIES, SHOW_SINKS, SHOW_STREAMS, Answer
from headwater.model.time import INFINITY
from headwater.runtime.views.amounts import instant_text, length_text
from headwater.runtime.views.progress import late_by_text, moment_text, query_progress, stream_progress

if TYPE_CHECKING:
    from headwater.runtime.views.picture import Picture

_STREAM_COLUMNS = ("rows", "late", "malformed", "final before", "late by")
_NO_ROWS = ("0", "0", "0", "-", "-")
_QUERY_COLUMNS = ("state", "since", "rows", "forgotten", "behind", "final before")
_NOTHING = ("-", "-", "-", "-", "-")


def with_counts(answer: Answer, picture: Picture) -> Answer:
    """The answer with what only a running engine knows, if it is about streams."""
    if answer.title != SHOW_STREAMS:
        return answer
    counted = {}
    for s in stream_progress(picture):
        final = "the end" if picture.clock.frontier(s.name) == INFINITY else moment_text(s.frontier)
        counts = (f"{s.rows:,}", f"{s.late_rows:,}", f"{s.bad_rows:,}")
        counted[s.name] = (*counts, final, late_by_text(s.late_by) or "-")
    # Streams of late rows are no streams of their own here: they have the time of those whose rows they get.
    rows = tuple((*row, *counted.get(row[0], _NO_ROWS)) for row in answer.rows)
    return Answer(answer.title, (*answer.columns, *_STREAM_COLUMNS), rows)


def with_states(answer: Answer, picture: Picture, *, views: Collection[str] = (), failed: bool = False) -> Answer:
    """The answer with what only an engine knows, if it is about queries. ``views``: their names, in lower case."""
    if answer.title == SHOW_SINKS:
        running = "failed" if failed else "running"
        states = (running if row[0] in picture.queries else "not started" for row in answer.rows)
        told = tuple((*row, state) for row, state in zip(answer.rows, states, strict=True))
        return Answer(answer.title, (*answer.columns, "state"), told)
    if answer.title != SHOW_QUERIES:
        return answer
    rows: list[tuple[str, ...]] = []
    for name, columns, consistency, emit, uses in answer.rows:
        if name in picture.queries:
            query = picture.queries[name]
            shown = (name, columns, str(query.level), shown_emission(query.emission, query.level), uses)
            rows.append((*shown, "failed" if failed else "running", *_progress(picture, name)))
        elif name not in picture.awaited:
            state = "view" if name.casefold() in views else "not started"
            rows.append((name, columns, consistency, emit, uses, state, *_NOTHING))
    return Answer(answer.title, (*answer.columns, *_QUERY_COLUMNS), (*rows, *_awaited(answer, picture)))


def _progress(picture: Picture, name: str) -> tuple[str, ...]:
    query, now = picture.queries[name], query_progress(picture, name)
    final = instant_text(query.frontier, timestamps=query.timestamps)
    since = "the beginning" if query.since == 0 else f"tick {query.since:,}"
    return since, f"{now.rows_out:,}", f"{now.forgotten_rows:,}", length_text(now.lag), final


def _awaited(answer: Answer, picture: Picture) -> Iterable[tuple[str, ...]]:
    """Nothing runs before these are started again, or dropped."""
    known = {row[0]: (row[1], row[-1]) for row in answer.rows}
    for name, query in picture.awaited.items():
        columns, uses = known.get(name, ("", ""))
        final = instant_text(query.frontier, timestamps=query.timestamps)
        shown = (name, columns, str(query.level), shown_emission(query.emission, query.level), uses)
        yield (*shown, "awaited", f"tick {query.since:,}", "-", "-", "-", final)
