"""SHOW STREAMS as an engine answers it: with what has come, and how far it is final."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.language.introspection import SHOW_STREAMS, Answer
from headwater.model.time import INFINITY
from headwater.runtime.progress import late_by_text, moment_text, stream_progress

if TYPE_CHECKING:
    from headwater.runtime.core import Core

_NOTHING = ("0", "0", "0", "-", "-")


def with_counts(answer: Answer, core: Core) -> Answer:
    """The answer with what only a running engine knows, if it is about streams."""
    if answer.title != SHOW_STREAMS:
        return answer
    counts = {s.name: (f"{s.rows:,}", f"{s.late_rows:,}", f"{s.bad_rows:,}") for s in stream_progress(core)}
    bounds = {s.name: late_by_text(s.late_by) or "-" for s in stream_progress(core)}
    finals = {s.name: moment_text(s.frontier) for s in stream_progress(core)}
    ended = {name for name in counts if core.times.frontier(name) == INFINITY}
    told = {n: (*counts[n], "the end" if n in ended else finals[n], bounds[n]) for n in counts}
    # Streams of late rows are no streams of their own here: they have the time of those whose rows they get.
    rows = tuple((*row, *told.get(row[0], _NOTHING)) for row in answer.rows)
    return Answer(answer.title, (*answer.columns, "rows", "late", "malformed", "final before", "late by"), rows)
