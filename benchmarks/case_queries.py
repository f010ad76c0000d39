"""What DuckDB is asked for the jobs of the measured operators: one query over all rows."""

from __future__ import annotations

from benchmarks.data import SECOND, WINDOW

ROWS = 10
GAP = 2 * SECOND
PERIOD = 10 * SECOND
PIECE = 20 * SECOND

_ENDS = f"""
  ends AS (SELECT auction, ts AS t, 1 AS c, price AS p FROM bid
           UNION ALL SELECT auction, ts + {WINDOW}, -1, -price FROM bid),
  steps AS (SELECT auction, t, sum(c) AS c, sum(p) AS p FROM ends GROUP BY auction, t)"""

MOVING_SUM = f"""
WITH {_ENDS}
SELECT * FROM (
  SELECT auction, t, lead(t) OVER w AS until, sum(c) OVER w AS n, sum(p) OVER w AS total
  FROM steps WINDOW w AS (PARTITION BY auction ORDER BY t)) WHERE n > 0"""

MOVING_MAX = f"""
WITH ends AS (SELECT auction, ts AS t, 1 AS c, price AS p, price AS x FROM bid
              UNION ALL SELECT auction, ts + {WINDOW}, -1, -price, NULL FROM bid),
  steps AS (SELECT auction, t, sum(c) AS c, sum(p) AS p, max(x) AS x FROM ends GROUP BY auction, t)
SELECT * FROM (
  SELECT auction, t, lead(t) OVER w AS until, sum(c) OVER w AS n, sum(p) OVER w AS total,
         max(x) OVER (PARTITION BY auction ORDER BY t RANGE BETWEEN {WINDOW - 1} PRECEDING AND CURRENT ROW) AS highest
  FROM steps WINDOW w AS (PARTITION BY auction ORDER BY t)) WHERE n > 0"""

DISTINCT = f"""
SELECT auction, min(ts), max(ts) + {WINDOW} FROM (
  SELECT auction, ts, sum(fresh) OVER (PARTITION BY auction ORDER BY ts ROWS UNBOUNDED PRECEDING) AS island FROM (
    SELECT auction, ts, CASE WHEN ts > lag(ts) OVER (PARTITION BY auction ORDER BY ts) + {WINDOW} THEN 1 ELSE 0 END AS fresh
    FROM bid)) GROUP BY auction, island"""

EXCEPT = f"""
WITH ends AS (SELECT auction, ts AS t, 1 AS a, 0 AS b FROM auction
              UNION ALL SELECT auction, ts + {WINDOW}, -1, 0 FROM auction
              UNION ALL SELECT auction, ts, 0, 1 FROM bid UNION ALL SELECT auction, ts + {WINDOW}, 0, -1 FROM bid),
  steps AS (SELECT auction, t, sum(a) AS a, sum(b) AS b FROM ends GROUP BY auction, t)
SELECT * FROM (
  SELECT auction, t, lead(t) OVER w AS until, greatest(sum(a) OVER w - sum(b) OVER w, 0) AS n
  FROM steps WINDOW w AS (PARTITION BY auction ORDER BY t)) WHERE n > 0"""

JOIN = f"""
SELECT b.auction, b.price, a.seller, greatest(b.ts, a.ts), least(b.ts, a.ts) + {WINDOW}
FROM bid b JOIN auction a ON b.auction = a.auction AND b.ts < a.ts + {WINDOW} AND a.ts < b.ts + {WINDOW}"""

LAST_ROWS = f"""
SELECT auction, price, ts, lead(ts, {ROWS}) OVER (PARTITION BY auction ORDER BY ts, price) FROM bid"""

MOVING_MEDIAN = f"""
SELECT auction, ts, median(price)
  OVER (PARTITION BY auction ORDER BY ts RANGE BETWEEN {WINDOW - 1} PRECEDING AND CURRENT ROW)
FROM bid"""

MOVING_CORRELATION = f"""
SELECT auction, ts, corr(price, ts)
  OVER (PARTITION BY auction ORDER BY ts RANGE BETWEEN {WINDOW - 1} PRECEDING AND CURRENT ROW)
FROM bid"""

HIGHEST_BY = f"""
SELECT auction, ts, arg_max(ts, price)
  OVER (PARTITION BY auction ORDER BY ts RANGE BETWEEN {WINDOW - 1} PRECEDING AND CURRENT ROW)
FROM bid"""

OUTER_JOIN = JOIN.replace("FROM bid b JOIN", "FROM bid b LEFT JOIN")

SEMI_JOIN = f"""
SELECT b.auction, b.price, b.ts FROM bid b
WHERE EXISTS (SELECT 1 FROM auction a WHERE b.auction = a.auction AND b.ts < a.ts + {WINDOW} AND a.ts < b.ts + {WINDOW})"""

ANTI_JOIN = SEMI_JOIN.replace("WHERE EXISTS", "WHERE NOT EXISTS")

INTERSECT = EXCEPT.replace("greatest(sum(a) OVER w - sum(b) OVER w, 0)", "least(sum(a) OVER w, sum(b) OVER w)")

SESSIONS = f"""
SELECT auction, price, min(ts) OVER s, max(ts) OVER s + {GAP} FROM (
  SELECT auction, price, ts, sum(fresh) OVER (PARTITION BY auction ORDER BY ts ROWS UNBOUNDED PRECEDING) AS session FROM (
    SELECT *, CASE WHEN ts > lag(ts) OVER (PARTITION BY auction ORDER BY ts) + {GAP} THEN 1 ELSE 0 END AS fresh FROM bid))
WINDOW s AS (PARTITION BY auction, session)"""

FIRST_OF_GROUPS = """
SELECT auction, price, ts FROM bid QUALIFY row_number() OVER (PARTITION BY auction ORDER BY price DESC, ts) <= 3"""

ARRIVALS = "SELECT auction, ts, count(*) FROM bid GROUP BY auction, ts"

LIVES = f"""
WITH events AS (SELECT auction, price, ts, 1 AS c FROM bid UNION ALL SELECT auction, price, ts + {WINDOW}, -1 FROM bid)
SELECT * FROM (
  SELECT auction, price, ts, lead(ts) OVER w AS until, sum(c) OVER w AS n
  FROM events WINDOW w AS (PARTITION BY auction, price ORDER BY ts)) WHERE n > 0"""

LATEST = """
SELECT auction, price, ts, lead(ts) OVER (PARTITION BY auction ORDER BY ts, price) FROM bid"""

REFRESHES = f"""
WITH numbered AS (
  SELECT *, (ts + {PERIOD - 1}) // {PERIOD} AS low, (ts + {WINDOW + PERIOD - 1}) // {PERIOD} AS high FROM bid)
SELECT auction, price, unnest(range(low::BIGINT, high::BIGINT)) * {PERIOD} AS t FROM numbered"""

PIECES = f"SELECT auction, price, ts + unnest(range(0, {WINDOW // PIECE})) * {PIECE} AS t FROM bid"

OVER = f"""
SELECT auction, price, ts, sum(price) OVER (w ROWS UNBOUNDED PRECEDING), avg(price) OVER (w ROWS {ROWS - 1} PRECEDING),
       lag(price) OVER w FROM bid WINDOW w AS (PARTITION BY auction ORDER BY ts, price)"""

BY_START = "SELECT * FROM bid ORDER BY ts"
BY_END = f"SELECT *, ts + {WINDOW} AS until FROM bid ORDER BY until"
