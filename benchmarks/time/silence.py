"""A source that falls silent: when are its last rows final?"""

from __future__ import annotations

from benchmarks.time.headwater_side import headwater
from benchmarks.time.report import Finding, Line, milliseconds, percent, times
from benchmarks.time.rivals import EMITTED, flink, instants, spark
from benchmarks.time.scoring import Heartbeats, score
from benchmarks.time.worlds import SECOND, on_off

BASELINE = "Spark, delay 1 s"
DECLARED = "DISORDER 1 SECOND DISORDER 0 SECONDS AFTER 1 SECOND"
WARM = "HEARTBEAT ESTIMATED (WARMUP 1000 ROWS)"
OURS = (
    "",
    "HEARTBEAT ESTIMATED (WARMUP 0 ROWS, ALPHA 1, MARGIN 0)",
    WARM,
    DECLARED,
    f"{DECLARED} TIMEOUT 5 SECONDS",
    "DISORDER 1 SECOND TIMEOUT 5 SECONDS",
)


def method(clauses: str) -> str:
    """Our line for these clauses."""
    return f"Headwater, {clauses or 'nothing declared'}"


def run(seconds: int = 900, seed: int = 1) -> Finding:
    """All methods over one stream of bursts."""
    rows = on_off(seed, seconds)
    at, emitted = instants(rows.end), instants(rows.end, EMITTED)
    one = {"s": rows}
    series: dict[str, Heartbeats] = {
        BASELINE: spark(one, {"s": SECOND}, at),
        "Spark, delay 0.5 s": spark(one, {"s": SECOND // 2}, at),
        "Flink, bound 1 s": flink(one, {"s": SECOND}, emitted),
        "Flink, bound 1 s, idle after 5 s": flink(one, {"s": SECOND}, emitted, idle={"s": 5 * SECOND}),
        **{method(clauses): headwater(one, {"s": clauses}, at)["s"] for clauses in OURS},
    }
    found = {name: score(rows, beats) for name, beats in series.items()}
    lines = tuple(
        Line(
            name,
            {"stream": its},
            (
                percent(its.late_share),
                *(milliseconds(value) for value in (its.mean, its.median, its.p99)),
                str(its.stuck),
                times(found[BASELINE].mean, its.mean),
            ),
        )
        for name, its in found.items()
    )
    return Finding(
        f"a source that falls silent: 2 s of rows, 28 s of silence ({len(rows):,} rows in {seconds} s)",
        ("method", "late %", "mean ms", "median ms", "p99 ms", "never final", "sooner than Spark 1 s"),
        lines,
        (
            "From the sending of a row until it is final. Delays are exponential, 100 ms in the mean; ticks of 100 ms.",
            "Rows that were never final are not in the means: the last ones, of which Spark and Flink hear nothing more.",
            "With a warm-up the first 1000 rows wait for the third burst, which the mean of a short run shows.",
        ),
    )
