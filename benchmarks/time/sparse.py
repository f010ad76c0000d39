"""A fast and a sparse stream in one query: who waits for whom, and whose rows are lost?"""

from __future__ import annotations

from benchmarks.time.headwater_side import headwater
from benchmarks.time.report import Finding, Line, milliseconds, percent
from benchmarks.time.rivals import EMITTED, flink, instants, spark
from benchmarks.time.scoring import Heartbeats, score
from benchmarks.time.worlds import MILLISECOND, SECOND, Rows, fast_and_sparse

CLAUSES = {
    "fast": "IN ORDER LATENCY 200 MILLISECONDS LAGS sparse BY AT MOST 400 MILLISECONDS",
    "sparse": "IN ORDER LATENCY 10 SECONDS LAGS fast BY AT MOST 400 MILLISECONDS",
}
OURS = "Headwater, LATENCY 0.2/10 s, LAGS BY AT MOST 0.4 s"
SENT = "Headwater, the same with SENT AT"
LEARNED = "Headwater, nothing declared"
LEARNED_SOON = "Headwater, HEARTBEAT ESTIMATED (WARMUP 0 ROWS, SILENCE 10 SECONDS)"
SPARK_MIN = "Spark min, delays 0.2/10 s"
_SHORT = {"fast": 200 * MILLISECOND, "sparse": 10 * SECOND}
_TICK = 20 * MILLISECOND
"""What is asked is how long bounds make rows wait, so ticks shall not."""
_LONG = dict.fromkeys(_SHORT, 10_600 * MILLISECOND)

Series = tuple[Heartbeats, Heartbeats, Heartbeats]
"""Of the fast stream, of the sparse one, of both."""


def run(seconds: int = 1800, seed: int = 4) -> Finding:
    """All methods over both streams."""
    streams = fast_and_sparse(seed, seconds)
    series = {**_ours(streams), **_theirs(streams)}
    return Finding(
        f"a fast and a sparse stream: 100 rows per second, and one in 20 s ({seconds} s)",
        ("method", "late % fast", "late % sparse", "fast alone, mean ms", "join, mean ms", "join, p99 ms"),
        tuple(_line(method, streams, its) for method, its in series.items()),
        (
            "From the sending of a row of the fast stream until it is final: for an operator over the fast stream alone, "
            "and for one over both. Latency is up to 0.2 s and 10 s; clocks are within 200 ms.",
            "200 ms of the first are the latency that is declared, the rest are ticks of 20 ms. Measured from the times of "
            "rows instead, it would be shorter by as much as the source's clock is fast.",
            "Spark has one watermark per query, so its operator over the fast stream alone waits like the join.",
        ),
    )


def _ours(streams: dict[str, Rows]) -> dict[str, Series]:
    at = instants(max(rows.end for rows in streams.values()), _TICK)
    with_sent = {name: f"{clauses} SENT AT sent" for name, clauses in CLAUSES.items()}
    found = {}
    learned = {
        LEARNED: dict.fromkeys(CLAUSES, ""),
        LEARNED_SOON: dict.fromkeys(CLAUSES, LEARNED_SOON.removeprefix("Headwater, ")),
    }
    for method, clauses in ((OURS, CLAUSES), (SENT, with_sent), *learned.items()):
        its = headwater(streams, clauses, at)
        found[method] = its["fast"], its["sparse"], its["fast"].least(its["sparse"])
    return found


def _theirs(streams: dict[str, Rows]) -> dict[str, Series]:
    end = max(rows.end for rows in streams.values())
    at, emitted = instants(end, _TICK), instants(end, EMITTED)
    found: dict[str, Series] = {}
    for method, delays, policy in (
        (SPARK_MIN, _SHORT, "min"),
        ("Spark max, delays 0.2/10 s", _SHORT, "max"),
        ("Spark max, delays 10.6/10.6 s", _LONG, "max"),
    ):
        watermark = spark(streams, delays, at, policy=policy)
        found[method] = watermark, watermark, watermark
    fast, sparse = (flink({name: streams[name]}, _SHORT, emitted) for name in ("fast", "sparse"))
    found["Flink, bounds 0.2/10 s"] = fast, sparse, flink(streams, _SHORT, emitted)
    idle = flink(streams, _SHORT, emitted, idle={"sparse": 5 * SECOND})
    # A row of the sparse stream is late for the join, which is where it is judged.
    found["Flink, bounds 0.2/10 s, sparse idle after 5 s"] = fast, idle, idle
    return found


def _line(method: str, streams: dict[str, Rows], series: Series) -> Line:
    fast, sparse, both = series
    scores = {
        "fast": score(streams["fast"], fast),
        "sparse": score(streams["sparse"], sparse),
        "join": score(streams["fast"], both, judged=fast),
    }
    cells = (
        percent(scores["fast"].late_share),
        percent(scores["sparse"].late_share),
        *(milliseconds(value) for value in (scores["fast"].mean, scores["join"].mean, scores["join"].p99)),
    )
    return Line(method, scores, cells)
