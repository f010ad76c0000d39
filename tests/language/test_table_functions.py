"""TUMBLE, HOP and SESSION in all their spellings: at every instant what DuckDB makes of the rows by arithmetic."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest

from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.history import History, freeze
from headwater.model.time import INFINITY
from headwater.runtime.stepping import by_hand

STREAMS = "CREATE STREAM e (k INT, v INT, i BIGINT) ORDERED BY i;"
INTERVALS = "CREATE STREAM e (k INT, v INT, i BIGINT);"
SEEDS = 5
HORIZON = 60

# The rows of e at each of their instants t, in windows [ws, we), as the relation that is valid at instant :now.
HOP = """
    SELECT k, v, i, ws AS window_start, ws + {size} AS window_end
    FROM e, range(start, stop) AS instants(t), (SELECT n * {slide} + {offset} AS ws FROM range(-20, 80) AS numbers(n))
    WHERE ws <= t AND t < ws + {size} AND ws + {size} <= $now AND $now < ws + {size} + {slide}
"""
SESSION = """
    WITH points AS (SELECT k, v, i, t, {partition} AS p FROM e, range(start, stop) AS instants(t)),
    breaks AS (
        SELECT *, t - lag(t) OVER (PARTITION BY p ORDER BY t) > {gap} AS new FROM (SELECT DISTINCT p, t FROM points)
    ),
    numbered AS (SELECT *, count(*) FILTER (WHERE new) OVER (PARTITION BY p ORDER BY t) AS session FROM breaks),
    sessions AS (SELECT p, min(t) AS ws, max(t) + {gap} AS we FROM numbered GROUP BY p, session)
    SELECT k, v, i, ws AS window_start, we AS window_end
    FROM points JOIN sessions ON points.p IS NOT DISTINCT FROM sessions.p AND ws <= t AND t < we
    WHERE we <= $now
"""


def hop(size: int, slide: int, offset: int = 0) -> str:
    return HOP.format(size=size, slide=slide, offset=offset)


def session(gap: int, partition: str = "1") -> str:
    return SESSION.format(gap=gap, partition=partition)


def counts(windows: str, keys: str) -> str:
    return f"SELECT {keys}, count(*) FROM ({windows}) GROUP BY {keys}"


QUERIES = [
    ("SELECT * FROM TUMBLE(TABLE e, DESCRIPTOR(i), 10)", hop(10, 10)),
    ("SELECT * FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(i), 7, 3))", hop(7, 7, 3)),
    ("SELECT * FROM TUMBLE(TABLE e, DESCRIPTOR(i), 7, -3)", hop(7, 7, -3)),
    ("SELECT * FROM HOP(TABLE e, DESCRIPTOR(i), 4, 10)", hop(10, 4)),
    ("SELECT * FROM HOP(TABLE e, DESCRIPTOR(i), 10, 4)", hop(4, 10)),
    (
        'SELECT * FROM TABLE(HOP(DATA => TABLE e, TIMECOL => DESCRIPTOR(i), SIZE => 9, SLIDE => 3, "OFFSET" => 1)) h',
        hop(9, 3, 1),
    ),
    (
        "SELECT window_start, window_end, k, COUNT(*) FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(i), 10)) "
        "GROUP BY window_start, window_end, k",
        counts(hop(10, 10), "window_start, window_end, k"),
    ),
    (
        "SELECT window.start, window.end, k, COUNT(*) FROM e GROUP BY window(i, 10, 4), k",
        counts(hop(10, 4), "window_start, window_end, k"),
    ),
    (
        "SELECT window(i, 10, 5, 2).start AS s, COUNT(*) AS n FROM e GROUP BY window(i, 10, 5, 2) HAVING n > 1",
        counts(hop(10, 5, 2), "window_start") + " HAVING count(*) > 1",
    ),
    (
        "SELECT k, w FROM TUMBLE(TABLE (SELECT k + 1 AS k, v, i FROM e WHERE v > 1), DESCRIPTOR(i), 10) AS t(k, v, i, s, w)",
        f"SELECT k + 1, window_end FROM ({hop(10, 10)}) WHERE v > 1",
    ),
    (
        "SELECT * FROM TUMBLE(TABLE e, DESCRIPTOR(i), 10) QUALIFY ROW_NUMBER() OVER "
        "(PARTITION BY window_start, k ORDER BY v, i) = 1",
        f"SELECT * FROM ({hop(10, 10)}) QUALIFY row_number() OVER (PARTITION BY window_start, k "
        "ORDER BY v NULLS FIRST, i NULLS FIRST) = 1",
    ),
    ("SELECT * FROM SESSION(TABLE e, DESCRIPTOR(i), 2)", session(2)),
    ("SELECT * FROM TABLE(SESSION(TABLE e PARTITION BY k, DESCRIPTOR(i), 3)) s", session(3, "k")),
    (
        "SELECT * FROM SESSION(DATA => TABLE e PARTITION BY (k, v), TIMECOL => DESCRIPTOR(i), GAP => 4)",
        session(4, "(k, v)"),
    ),
    ("SELECT * FROM e WINDOW(SESSION 2)", session(2)),
    ("SELECT * FROM e x [PARTITION BY x.k SESSION 3]", session(3, "k")),
    (
        "SELECT k, session_window.start, session_window.end, COUNT(*) FROM e GROUP BY k, session_window(i, 3)",
        counts(session(3, "k"), "k, window_start, window_end"),
    ),
    (
        "SELECT k % 2 AS odd, session_window.start, COUNT(*) FROM e GROUP BY session_window(i, 2), odd",
        counts(session(2, "k % 2"), "k % 2, window_start"),
    ),
]


def rows(seed: int, *, lasting: bool) -> list[tuple[tuple, int, int, int]]:
    rng = random.Random(seed)
    found = []
    for _ in range(rng.choice([0, 5, 14])):
        start = rng.randrange(30)
        values = (rng.choice([1, 2, 3, None]), rng.choice([1, 2, None]), start)
        found.append((values, start, start + rng.choice([1, 1, 1, 3] if lasting else [1]), rng.choice([1, 1, 2])))
    return found


@pytest.mark.parametrize(("sql", "oracle"), QUERIES, ids=[sql for sql, _ in QUERIES])
def test_every_snapshot_has_the_rows_of_the_windows_that_are_reported(sql: str, oracle: str):
    lasting = "SESSION 2" in sql or "SESSION 3" in sql  # in our own words: by what is valid
    script = bind_script((INTERVALS if lasting else STREAMS) + sql)
    plan, schema = script.result.plan, script.catalog.sources()["e"]
    connection = duckdb.connect()
    for seed in range(SEEDS):
        stream = rows(seed, lasting=lasting)
        delta = Delta.from_rows(schema, stream)
        step = by_hand({"q": plan}).tick({"e": delta}, {"e": INFINITY})["q"]
        assert step.frontier == INFINITY
        history = History.of(plan.schema, [step.delta])
        connection.execute("CREATE OR REPLACE TABLE e (k INT, v INT, i BIGINT, start BIGINT, stop BIGINT)")
        copies = [(*values, start, stop) for values, start, stop, weight in stream for _ in range(weight)]
        if copies:
            connection.executemany("INSERT INTO e VALUES (?, ?, ?, ?, ?)", copies)
        for instant in range(HORIZON):
            expected = Counter(freeze(row) for row in connection.execute(oracle, {"now": instant}).fetchall())
            assert history.snapshot(instant) == expected, (seed, instant)


def test_the_ends_have_the_type_of_the_time_column():
    streams = "CREATE STREAM a (ts TIMESTAMP, n BIGINT); CREATE STREAM b (ts TIMESTAMP) ORDERED BY ts; "
    streams += "CREATE STREAM c (n BIGINT) ORDERED BY n;"
    for query, type_ in (
        ("SELECT window_end FROM TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '1' HOUR)", "timestamp[us]"),
        ("SELECT window_end FROM TUMBLE(TABLE c, DESCRIPTOR(n), 3600)", "int64"),
        ("SELECT window_end FROM a WINDOW(SESSION 5)", "int64"),
        ("SELECT window_end FROM a WINDOW(SESSION 5 MINUTES)", "timestamp[us]"),
        ("SELECT window_end FROM b WINDOW(SESSION 5 SECONDS)", "timestamp[us]"),
        ("SELECT window.end FROM b GROUP BY window(ts, '1 day')", "timestamp[us]"),
    ):
        plan = bind_script(streams + query).result.plan
        assert [str(f.type) for f in plan.schema] == [type_], query
