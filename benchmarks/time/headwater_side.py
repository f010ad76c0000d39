"""Headwater's own clock, driven by simulated rows under what SQL declares of their streams."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.time.scoring import NEVER, Heartbeats
from benchmarks.time.worlds import Rows
from headwater.clock.clock import Clock
from headwater.clock.rules import rules_of
from headwater.clock.seen import Seen
from headwater.language.binder import bind_script
from headwater.language.catalog import Stream
from headwater.model.arrays import Int64Array
from headwater.model.time import BEGINNING, INFINITY


def declared(clauses: Mapping[str, str]) -> Clock:
    """The clock of streams that are declared with these clauses, before their first row."""
    columns = "(ts TIMESTAMP, sent TIMESTAMP)"
    script = ";\n".join(f"CREATE STREAM {name} {columns} ORDERED BY ts {its}" for name, its in clauses.items())
    return Clock.of(rules_of(entry for entry in bind_script(script).catalog if isinstance(entry, Stream)))


def headwater(
    streams: Mapping[str, Rows],
    clauses: Mapping[str, str],
    at: Int64Array,
    *,
    drained: Mapping[str, Int64Array] | None = None,
) -> dict[str, Heartbeats]:
    """A tick at each of these instants; what each stream had promised after it.

    ``drained``: at each tick, the instant up to which all that had arrived was taken; if not given, everything always is.
    """
    clock = declared(clauses)
    ends = {name: np.searchsorted(rows.arrival, at, side="right").tolist() for name, rows in streams.items()}
    found: dict[str, list[int]] = {name: [] for name in streams}
    begin = dict.fromkeys(streams, 0)
    for n, now in enumerate(at.tolist()):
        seen = {}
        for name, rows in streams.items():
            if ends[name][n] > begin[name]:
                seen[name] = [_seen(rows, slice(begin[name], ends[name][n]), clock.frontier(name))]
                begin[name] = ends[name][n]
        taken = {name: int(upto[n]) for name, upto in (drained or {}).items()}
        clock = clock.after(seen, now, drained=taken, together=[frozenset(streams)])
        for name, beats in found.items():
            beats.append(max(clock.frontier(name) - 1, NEVER))
    return {name: Heartbeats(at, np.array(beats, np.int64)) for name, beats in found.items()}


def _seen(rows: Rows, part: slice, frontier: int) -> Seen:
    """As a source tells it: rows in time, and late ones apart."""
    time = rows.time[part]
    late = time < frontier
    on_time, behind = time[~late], time[late]
    return Seen(
        "",
        newest=int(on_time.max()) if len(on_time) else BEGINNING,
        oldest=int(on_time.min()) if len(on_time) else INFINITY,
        rows=len(on_time),
        late=len(behind),
        sent=int(rows.sent[part].max()),
        late_newest=int(behind.max()) if len(behind) else BEGINNING,
        late_oldest=int(behind.min()) if len(behind) else INFINITY,
    )
