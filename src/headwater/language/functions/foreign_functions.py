"""Functions that other systems have and this one does not: what to write instead."""

from __future__ import annotations

_TIME_IN_DATA = "Name the column that has the time: ORDERED BY ts. A stream without one is stamped when its rows come."
_WINDOW = "It can stand in GROUP BY with the time column first; in FROM write {0}(TABLE s, DESCRIPTOR(ts), …)."
_BUCKETS = (
    "To group by time: FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '15' MINUTES). date_trunc(unit, ts) cuts a time."
)

HINTS = {
    "proctime": _TIME_IN_DATA,
    "current_watermark": "heartbeat(s) tells how far stream s is stable.",
    "current_row_timestamp": _TIME_IN_DATA,
    "mz_now": "A window says how long a row counts: FROM s WINDOW(RANGE 5 MINUTES).",
    "rowtime": "The time of a row is the ORDERED BY column of its stream; select that.",
    "tumble": _WINDOW.format("TUMBLE"),
    "hop": _WINDOW.format("HOP"),
    "session": _WINDOW.format("SESSION"),
    "cumulate": "Write it in FROM: CUMULATE(TABLE s, DESCRIPTOR(ts), step, size), and group by window_start, window_end.",
    "approx_count_distinct": "COUNT(DISTINCT x) is exact, and costs in proportion to what changes.",
    "date_bin": _BUCKETS,
    "time_bucket": _BUCKETS,
    "generate_series": "A source can count: CREATE STREAM s (value BIGINT, ts TIMESTAMP) SOURCE rate(10) ORDERED BY ts.",
    "latest_by_offset": "The last row of each key is a window: FROM s WINDOW(PARTITION BY k ROWS 1).",
    "earliest_by_offset": "The first row of each key: SELECT … QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) = 1.",
    "split_index": "split_part(s, separator, n) counts from 1: split_part(url, '/', 4) is SPLIT_INDEX(url, '/', 3).",
    "topk": "By key: QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) <= 3; of all: ORDER BY x DESC LIMIT 3.",
}
