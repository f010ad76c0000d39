"""Learned bounds under seven kinds of delay, against the constant that one would have chosen knowing everything."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from benchmarks.time.headwater_side import headwater
from benchmarks.time.report import Finding, Line, milliseconds, percent, times
from benchmarks.time.rivals import instants, spark, tuned
from benchmarks.time.scoring import late_rows, score
from benchmarks.time.worlds import DELAYS, MILLISECOND, Rows

WITHOUT_WALL = "HEARTBEAT ESTIMATED (WARMUP 0 ROWS)"
CLAUSES = ("", WITHOUT_WALL, "HEARTBEAT ESTIMATED (LATE BUDGET 0.1 %)", "HEARTBEAT ESTIMATED (LATE BUDGET 1 %)")


def method(delays: str, clauses: str) -> str:
    """Our line for these clauses."""
    shown = "default without the wall clock" if clauses == WITHOUT_WALL else clauses
    return f"{delays}: {shown.removeprefix('HEARTBEAT ESTIMATED ').strip('()') or 'default'}"


def run(
    seconds: int = 900,
    seed: int = 11,
    *,
    kinds: Collection[str] = tuple(DELAYS),
    clauses: Collection[str] = CLAUSES,
) -> Finding:
    """Every kind of delay, by default and with budgets."""
    lines = [line for kind in kinds for line in _lines(kind, DELAYS[kind](seed, seconds), clauses)]
    return Finding(
        f"learned bounds: one stream, 200 rows per second, {seconds} s",
        (
            *("delays: HEARTBEAT ESTIMATED", "late %", "mean ms", "median ms", "p99 ms"),
            *("best constant ms", "its late %", "its mean", "its median", "its p99", "mean", "median", "p99"),
        ),
        tuple(lines),
        (
            "The constant is the smallest delay of Spark's rule that makes no more rows late, found in hindsight for "
            "this very run: nobody has it beforehand. Ratios: how many times sooner than with it; below 1 is later.",
            "calm: exponential, 100 ms; spikes: 2 s longer for 4 s about once per minute; regimes: 3 s longer in every "
            "fourth minute; rare long bursts: 5 s longer for 20 s about every 300 s; sinusoid: 50 ms to 3 s, three times; "
            "Pareto: 1.8, at least 50 ms; cut off: every 300 s nothing gets through for 30 s, then all of it. Delays are "
            "synthetic.",
            "Rows that were not final a minute after the last one are in none of the means.",
        ),
    )


def _lines(delays: str, rows: Rows, choices: Collection[str]) -> Iterator[Line]:
    at, one = instants(rows.end), {"s": rows}

    def late_with(delay: int) -> int:
        return int(late_rows(rows, spark(one, {"s": delay}, at)).sum())

    for clauses in choices:
        ours = score(rows, headwater(one, {"s": clauses}, at)["s"])
        constant = tuned(late_with, ours.late)
        theirs = score(rows, spark(one, {"s": constant}, at))
        pairs = ((theirs.mean, ours.mean), (theirs.median, ours.median), (theirs.p99, ours.p99))
        cells = (
            percent(ours.late_share),
            *(milliseconds(value) for value in (ours.mean, ours.median, ours.p99)),
            f"{constant // MILLISECOND:,}",
            percent(theirs.late_share),
            *(milliseconds(value) for value, _ in pairs),
            *(times(*pair) for pair in pairs),
        )
        yield Line(method(delays, clauses), {"headwater": ours, "constant": theirs}, cells)
