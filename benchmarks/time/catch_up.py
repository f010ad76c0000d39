"""After an outage two backlogs are read at different speed: is anything late only because we were slow?"""

from __future__ import annotations

import numpy as np

from benchmarks.time.headwater_side import headwater
from benchmarks.time.report import Finding, Line, milliseconds
from benchmarks.time.rivals import flink, instants, spark
from benchmarks.time.scoring import Heartbeats, score
from benchmarks.time.worlds import MILLISECOND, SECOND, START, Rows, jittering_pair
from headwater.model.arrays import Int64Array

DRAIN = {"left_side": 50, "right_side": 1}
"""Rows a tick at most. An even drain hides the mistake."""
OURS = "Headwater"
BY_WALL_CLOCK = "Headwater's bounds on the plain wall clock"
CLAUSES = {
    name: f"DISORDER 200 MILLISECONDS LATENCY 1 SECOND LAGS {other} BY AT MOST 200 MILLISECONDS"
    for name, other in (("left_side", "right_side"), ("right_side", "left_side"))
}
WITH_SENT = "Headwater, with SENT AT"
_DELAY = dict.fromkeys(DRAIN, 1_300 * MILLISECOND)


def run(seconds: int = 150, seed: int = 3, *, outage: tuple[int, int] = (20, 50)) -> Finding:
    """All methods over the same reading of both streams."""
    sent = jittering_pair(seed, seconds)
    at = instants(max(rows.end for rows in sent.values()), tail=150 * SECOND)
    at = at[(at < START + outage[0] * SECOND) | (at >= START + outage[1] * SECOND)]
    streams, drained = {}, {}
    for name, rows in sent.items():
        streams[name], drained[name] = _read(rows, at, DRAIN[name])
    with_sent = {name: f"{clauses} SENT AT sent" for name, clauses in CLAUSES.items()}
    series: dict[str, dict[str, Heartbeats]] = {
        OURS: headwater(streams, CLAUSES, at, drained=drained),
        WITH_SENT: headwater(streams, with_sent, at, drained=drained),
        BY_WALL_CLOCK: headwater(streams, CLAUSES, at),
        "Spark min, delays 1.3 s": dict.fromkeys(streams, spark(streams, _DELAY, at)),
        "Spark max, delays 1.3 s": dict.fromkeys(streams, spark(streams, _DELAY, at, policy="max")),
        "Spark, as two partitions of one stream": dict.fromkeys(streams, _as_one(streams, at)),
        "Flink, bounds 1.3 s": {name: flink({name: rows}, _DELAY, at[1::2]) for name, rows in streams.items()},
    }
    return Finding(
        f"catching up after {outage[1] - outage[0]} s of outage, {DRAIN['left_side']} and {DRAIN['right_side']} rows/tick",
        ("method", "rows", "late, read fast", "late, read slowly", "both final, mean ms", "never final"),
        tuple(_line(method, streams, its) for method, its in series.items()),
        (
            "7 rows per second each, up to 1 s of latency, clocks within 100 ms. Final: rows of the stream that is read "
            "fast, for an operator over both; the time is that of reading the backlog.",
            "Spark max, and Spark with one stream, lose what the slower backlog holds; Spark min and Flink lose nothing.",
            "Without a send time Headwater takes rows to be sent as late as they are read, so a bound begins to hold only "
            "when the backlog is gone.",
        ),
    )


def _read(rows: Rows, at: Int64Array, most: int) -> tuple[Rows, Int64Array]:
    """The rows as they are read, and what has been taken by each tick.

    Everything that had arrived, if nothing is waiting; else all that arrived before the next one that waits.
    """
    arrived = np.searchsorted(rows.arrival, at, side="right")
    taken = np.empty(len(at), np.int64)
    so_far = 0
    for n, here in enumerate(arrived.tolist()):
        so_far = min(here, so_far + most)
        taken[n] = so_far
    read_in = np.searchsorted(taken, np.arange(so_far), side="right")
    next_unread = rows.arrival[np.minimum(taken, len(rows) - 1)]
    read = Rows(rows.time[:so_far], at[read_in], rows.sent[:so_far])
    return read, np.where(taken == arrived, at, next_unread - 1)


def _as_one(streams: dict[str, Rows], at: Int64Array) -> Heartbeats:
    arrival = np.concatenate([rows.arrival for rows in streams.values()])
    order = np.argsort(arrival, kind="stable")
    time, sent = (np.concatenate([getattr(rows, part) for rows in streams.values()]) for part in ("time", "sent"))
    merged = Rows(time[order], arrival[order], sent[order])
    return spark({"both": merged}, {"both": _DELAY["left_side"]}, at)


def _line(method: str, streams: dict[str, Rows], series: dict[str, Heartbeats]) -> Line:
    both = series["left_side"].least(series["right_side"])
    scores = {name: score(rows, series[name]) for name, rows in streams.items()}
    scores["both"] = score(streams["left_side"], both, judged=series["left_side"])
    cells = (
        f"{sum(len(rows) for rows in streams.values()):,}",
        *(str(scores[name].late) for name in DRAIN),
        milliseconds(scores["both"].mean),
        str(scores["both"].stuck),
    )
    return Line(method, scores, cells)
