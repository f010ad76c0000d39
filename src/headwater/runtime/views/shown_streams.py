"""SHOW STREAMS as an engine answers it: with what has come, and how far it is final."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.language.introspection import SHOW_STREAMS, Answer
from headwater.model.time import INFINITY
from headwater.runtime.views.progress import late_by_text, moment_text, stream_progress

if TYPE_CHECKING:
    from headwater.runtime.views.picture import Picture

_NOTHING = ("0", "0", "0", "-", "-")


def with_counts(answer: Answer, picture: Picture) -> Answer:
    """The answer with what only a running engine knows, if it is about streams."""
    if answer.title != SHOW_STREAMS:
        return answer
    told = {}
    for s in stream_progress(picture):
        final = "the end" if picture.clock.frontier(s.name) == INFINITY else moment_text(s.frontier)
        counts = (f"{s.rows:,}", f"{s.late_rows:,}", f"{s.bad_rows:,}")
        told[s.name] = (*counts, final, late_by_text(s.late_by) or "-")
    # Streams of late rows are no streams of their own here: they have the time of those whose rows they get.
    rows = tuple((*row, *told.get(row[0], _NOTHING)) for row in answer.rows)
    return Answer(answer.title, (*answer.columns, "rows", "late", "malformed", "final before", "late by"), rows)
