"""``headwater bench planner``: the time from text to plan, for queries from small to the largest that we have."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from rich.table import Table

from headwater.language.binder import bind_script
from headwater.language.parsing.statements import parse_script
from headwater.optimizer.optimize import optimize
from headwater.runtime.lower import lower

ROUNDS = 15

_STREAMS = """
CREATE STREAM bid (auction BIGINT, bidder BIGINT, price DOUBLE, ts TIMESTAMP) ORDERED BY ts;
CREATE STREAM auction (id BIGINT, seller BIGINT, category INT, reserve DOUBLE, ts TIMESTAMP) ORDERED BY ts;
CREATE STREAM closed (auction BIGINT, buyer BIGINT, ts TIMESTAMP) ORDERED BY ts;
CREATE STREAM person (id BIGINT, name STRING, city STRING, state STRING, ts TIMESTAMP) ORDERED BY ts;
"""

QUERIES = {
    "filter": "SELECT auction, price * 0.89 AS euro FROM bid WHERE price > 100",
    "sliding count": "SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 10 MINUTES SLIDE 1 MINUTE) GROUP BY auction",
    "highest bid": """SELECT auction, price FROM bid WINDOW(RANGE 10 MINUTES)
        WHERE price = (SELECT MAX(price) FROM bid WINDOW(RANGE 10 MINUTES))""",
    "hot item": """SELECT auction FROM (SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 60 MINUTES) GROUP BY auction) c
        WHERE n >= ALL (SELECT COUNT(*) FROM bid WINDOW(RANGE 60 MINUTES) GROUP BY auction)""",
    "closing price": """SELECT p.auction, a.seller, MAX(p.price) AS price
        FROM (SELECT auction, price FROM bid WINDOW(RANGE 2 DAYS)
              UNION ALL SELECT id, reserve FROM auction WINDOW(RANGE 2 DAYS)) p,
             closed c, auction WINDOW(RANGE 2 DAYS) a
        WHERE p.auction = c.auction AND c.auction = a.id GROUP BY p.auction, a.seller""",
    "largest": """
        WITH offers AS (
            SELECT b.auction, b.bidder, b.price, a.seller, a.category, a.reserve
            FROM bid WINDOW(RANGE 10 MINUTES) b
            JOIN auction WINDOW(RANGE 1 DAY) a ON b.auction = a.id
            WHERE b.price >= a.reserve OR a.reserve IS NULL),
        best AS (
            SELECT auction, category, MAX(price) AS price, COUNT(*) AS bids, COUNT(DISTINCT bidder) AS bidders
            FROM offers GROUP BY auction, category HAVING COUNT(*) > 1),
        ranked AS (
            SELECT auction, category, price, bids, bidders,
                   ROW_NUMBER() OVER (PARTITION BY category ORDER BY price DESC, auction) AS place
            FROM best),
        sellers AS (
            SELECT p.id, p.name, p.state FROM person WINDOW(RANGE 1 DAY) p
            WHERE EXISTS (SELECT 1 FROM auction WINDOW(RANGE 1 DAY) x WHERE x.seller = p.id)
              AND p.id NOT IN (SELECT buyer FROM closed WINDOW(RANGE 1 DAY) WHERE buyer IS NOT NULL))
        SELECT r.category, s.state, s.name, o.auction, r.price, r.bids,
               CASE WHEN r.bidders > 10 THEN 'hot' WHEN r.bidders > 3 THEN 'warm' ELSE 'cold' END AS heat,
               ROUND(r.price - o.reserve, 2) AS margin
        FROM ranked r
        JOIN offers o ON r.auction = o.auction AND r.price = o.price
        JOIN sellers s ON o.seller = s.id
        LEFT JOIN closed WINDOW(RANGE 1 HOUR) c ON c.auction = o.auction
        WHERE r.place <= 3 AND c.auction IS NULL AND s.state IN ('OR', 'ID', 'CA') AND o.category = r.category
        UNION ALL
        SELECT category, NULL, NULL, NULL, AVG(price), COUNT(*), 'all', NULL FROM best GROUP BY category
        EXCEPT
        SELECT a.category, p.state, p.name, a.id, a.reserve, 0, 'none', 0.0
        FROM auction a JOIN person p ON a.seller = p.id WHERE a.category = 10""",
}


def run(rounds: int = ROUNDS) -> Table:
    """One line per query: milliseconds of each step, the best of several rounds."""
    table = Table(title=f"planning, milliseconds of one core, best of {rounds} after a warm-up")
    for column in ("query", "nodes", "parse", "bind", "optimize", "together", "lower"):
        table.add_column(column, justify="left" if column == "query" else "right")
    for name, query in QUERIES.items():
        script = _STREAMS + query
        result = bind_script(script).result
        assert result is not None
        plan = optimize(result.plan).plan
        parse = _best(lambda script=script: parse_script(script), rounds)
        bound = _best(lambda script=script: bind_script(script), rounds)  # which parses, too
        optimized = _best(lambda result=result: optimize(result.plan), rounds)
        lowered = _best(lambda plan=plan: lower({"query": plan}), rounds)
        steps = (parse, bound - parse, optimized, bound + optimized, lowered)
        table.add_row(name, str(sum(1 for _ in plan.walk())), *(f"{1000 * seconds:.1f}" for seconds in steps))
    return table


def _best(work: Callable[[], object], rounds: int) -> float:
    """Seconds; of processor time, since whatever else runs on the machine is not ours."""
    times = []
    for _ in range(rounds + 1):
        began = process_time()
        work()
        times.append(process_time() - began)
    return min(times[1:])
