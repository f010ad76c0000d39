"""Queries with grouping sets, top-k, ranks, constants and table functions, and the plans that they become."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

SHAPES = [
    (
        "SELECT item, COUNT(*) AS n FROM bid GROUP BY ROLLUP(item, bidder)",
        """
        Project item, n: "count"
          Union
            Aggregate [item bidder] count=COUNT(*)
              bid
            Project item, bidder: CAST(NULL AS STRING), count
              Aggregate [item] count=COUNT(*)
                bid
            Project item: CAST(NULL AS INT), bidder: CAST(NULL AS STRING), count
              Aggregate [] count=COUNT(*)
                bid
        """,
    ),
    (
        "SELECT item, bidder, SUM(price + 1) AS s, GROUPING(item) AS g FROM bid GROUP BY GROUPING SETS "
        "((item, bidder), (bidder), ())",
        """
        Project item, bidder, s: "sum", g: "grouping"
          Union
            Project item, bidder, sum, grouping: CAST(0 AS TINYINT)
              Aggregate [item bidder] sum=SUM(expression)
                Project item, bidder, expression: "price" + 1
                  bid
            Project item: CAST(NULL AS INT), bidder, sum, grouping: CAST(1 AS TINYINT)
              Aggregate [bidder] sum=SUM(expression)
                Project item, bidder, expression: "price" + 1
                  bid
            Project item: CAST(NULL AS INT), bidder: CAST(NULL AS STRING), sum, grouping: CAST(1 AS TINYINT)
              Aggregate [] sum=SUM(expression)
                Project item, bidder, expression: "price" + 1
                  bid
        """,
    ),
    (
        "SELECT item, bidder FROM bid GROUP BY CUBE(item), bidder",
        """
        Union
          Distinct
            Project item, bidder
              bid
          Project item: CAST(NULL AS INT), bidder
            Distinct
              Project bidder
                bid
        """,
    ),
    (  # a key is found in a longer conjunction, and a constant key is no unit
        "SELECT item > 1 AND price > 2 AND bidder = 'MONTH' AS v, date_trunc('month', CAST(bidder AS TIMESTAMP)) AS m "
        "FROM bid GROUP BY item > 1 AND price > 2, bidder, 'MONTH'",
        """
        Project v: "expression" AND "bidder" = 'MONTH', m: DATE_TRUNC('MONTH', CAST("bidder" AS TIMESTAMP))
          Distinct
            Project expression: "item" > 1 AND "price" > 2, bidder, expression_2: 'MONTH'
              bid
        """,
    ),
    (
        "SELECT item, upper(bidder) AS b, MAX(price) FROM bid GROUP BY ALL",
        """
        Project item, b: "expression", max(price): "max"
          Aggregate [item expression] max=MAX(price)
            Project item, price, expression: UPPER("bidder")
              bid
        """,
    ),
    (
        "SELECT item, price FROM bid ORDER BY price DESC LIMIT 3",
        """
        TopK 3 [price desc]
          Project item, price
            bid
        """,
    ),
    (
        "SELECT item FROM bid ORDER BY price, item DESC NULLS FIRST LIMIT 3 OFFSET 2",
        """
        Project item
          TopK 3 after 2 [order, item desc nulls first]
            Project item, order: "price"
              bid
        """,
    ),
    (
        "SELECT item, COUNT(*) AS n FROM bid [RANGE 10] GROUP BY item ORDER BY MAX(price) DESC LIMIT 1",
        """
        Project item, n
          TopK 1 [order desc]
            Project item, n: "count", order: "max"
              Aggregate [item] count=COUNT(*), max=MAX(price)
                TimeWindow 10
                  bid
        """,
    ),
    (
        "SELECT DISTINCT item FROM bid ORDER BY 1 LIMIT 2",
        """
        TopK 2 [item]
          Distinct
            Project item
              bid
        """,
    ),
    (
        "SELECT DISTINCT ON (item) item, bidder FROM bid ORDER BY price DESC",
        """
        Project item, bidder
          TopK 1 of each [item] [order desc]
            Project item, bidder, order: "price"
              bid
        """,
    ),
    (
        "SELECT item FROM bid LIMIT 5",
        """
        TopK 5 []
          Project item
            bid
        """,
    ),
    (
        "SELECT item FROM bid LIMIT 0",
        """
        TopK 0 []
          Project item
            bid
        """,
    ),
    (
        "SELECT item FROM bid ORDER BY price",
        """
        Project item
          bid
        """,
    ),
    (
        "SELECT item FROM bid OFFSET 5",
        """
        TopK all after 5 []
          Project item
            bid
        """,
    ),
    (
        "SELECT Istream(item) FROM bid [RANGE 10] ORDER BY item LIMIT 1",
        """
        Istream
          TopK 1 [item]
            Project item
              TimeWindow 10
                bid
        """,
    ),
    (
        "SELECT item FROM bid UNION SELECT item FROM closed ORDER BY item + 1 LIMIT 2",
        """
        Project item
          TopK 2 [expression]
            Project item, expression: "item" + 1
              Distinct
                Union
                  Project item
                    bid
                  Project item
                    closed
        """,
    ),
    (
        "SELECT item FROM (SELECT item, price FROM bid ORDER BY price LIMIT 3) WHERE price > 2",
        """
        Project item
          Filter "price" > 2
            TopK 3 [price]
              Project item, price
                bid
        """,
    ),
    (
        "SELECT item, ROW_NUMBER() OVER (PARTITION BY item ORDER BY price DESC) AS rn FROM bid",
        """
        Project item, rn: "row_number"
          TopK all of each [item] [price desc] as row_number
            bid
        """,
    ),
    (
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY upper(bidder) ORDER BY price + 1) AS rn "
        "FROM bid) WHERE rn <= 3",
        """
        Filter "rn" <= 3
          Project item, price, bidder, rn: "row_number"
            TopK all of each [expression] [expression_2] as row_number
              Project item, price, bidder, expression: UPPER("bidder"), expression_2: "price" + 1
                bid
        """,
    ),
    (
        "SELECT item FROM bid QUALIFY ROW_NUMBER() OVER (ORDER BY price) = 1 AND ROW_NUMBER() OVER "
        "(PARTITION BY bidder ORDER BY price) < 3",
        """
        Project item
          Filter "row_number" = 1 AND "row_number_2" < 3
            TopK all of each [bidder] [price] as row_number_2
              TopK all [price] as row_number
                bid
        """,
    ),
    (
        "SELECT item, COUNT(*) AS n FROM bid GROUP BY item QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) = 1",
        """
        Project item, n: "count"
          Filter "row_number" = 1
            TopK all [count desc] as row_number
              Aggregate [item] count=COUNT(*)
                bid
        """,
    ),
    (
        "SELECT item, RANK() OVER (ORDER BY at) AS r FROM closed",
        """
        Project item, r: "rank"
          Join inner [at=at_2]
            closed
            Project at_2: "at", rank
              Aggregate [at] rank=MIN(row_number)
                TopK all [at] as row_number
                  closed
        """,
    ),
    (
        "SELECT DENSE_RANK() OVER (PARTITION BY item ORDER BY at) AS r FROM closed",
        """
        Project r: "dense_rank"
          Join inner [item=item_2 at=at_2]
            closed
            Project item_2: "item", at_2: "at", dense_rank
              TopK all of each [item] [at] as dense_rank
                Distinct
                  closed
        """,
    ),
    (
        "SELECT item, price / SUM(price) OVER (PARTITION BY item) AS share FROM bid",
        """
        Project item, share: "price" / "sum"
          Join inner [expression=expression_2]
            Project item, price, bidder, expression: NAMED_STRUCT('key', "item")
              bid
            Project item_2, sum, expression_2: NAMED_STRUCT('key', "item_2")
              Project item_2: "item", sum
                Aggregate [item] sum=SUM(price)
                  bid
        """,
    ),
    (
        "SELECT MAX(at) OVER () AS m FROM closed",
        """
        Project m: "max"
          Join inner []
            closed
            Aggregate [] max=MAX(at)
              closed
        """,
    ),
    (
        "SELECT * EXCEPT (bidder) REPLACE (price * 2 AS price) FROM bid",
        """
        Project item, price: "price" * 2
          bid
        """,
    ),
    (
        "SELECT item FROM bid UNION ALL BY NAME SELECT at, item FROM closed",
        """
        Union
          Project item, at: CAST(NULL AS BIGINT)
            Project item
              bid
          Project item, at
            closed
        """,
    ),
    (
        "SELECT t, price FROM bid JOIN (VALUES (1, 'one'), (2, NULL)) v(item, t) USING (item)",
        """
        Project t: "col2", price
          Join inner [item=col1]
            bid
            Constant [col1 col2] (1, 'one') (2, None)
        """,
    ),
    (
        "SELECT * FROM bid NATURAL JOIN closed",
        """
        Project item, price, bidder, at
          Join inner [item=closed.item]
            bid
            Project closed.item: "item", at
              closed
        """,
    ),
    (
        "SELECT * FROM bid FULL JOIN closed USING (item)",
        """
        Project item: COALESCE("item", "closed.item"), price, bidder, at
          Join full [item=closed.item]
            bid
            Project closed.item: "item", at
              closed
        """,
    ),
    (
        "SELECT n, p FROM bid AS b(n, p, o) [RANGE 5]",
        """
        Project n: "item", p: "price"
          TimeWindow 5
            bid
        """,
    ),
    (
        "SELECT * FROM TUMBLE(TABLE auction, DESCRIPTOR(opened), INTERVAL '10' MINUTES) a",
        """
        HopWindow 600000000 slide 600000000 window_start window_end timestamp[us]
          auction
        """,
    ),
    (
        "SELECT * FROM TABLE(HOP(TABLE closed, DESCRIPTOR(at), 5, 20, 7))",
        """
        HopWindow 20 slide 5 offset 2 window_start window_end int64
          closed
        """,
    ),
    (
        "SELECT item, window_start, COUNT(*) FROM SESSION(TABLE closed PARTITION BY item, DESCRIPTOR(at), 5) "
        "GROUP BY item, window_start",
        """
        Project item, window_start, count(*): "count"
          Aggregate [item window_start] count=COUNT(*)
            SessionWindow 5 [item] window_start window_end int64
              closed
        """,
    ),
    (
        "SELECT * FROM closed WINDOW(PARTITION BY item SESSION 10) c",
        """
        SessionWindow 10 [item] window_start window_end int64
          closed
        """,
    ),
    (
        "SELECT * FROM TUMBLE(TABLE (SELECT * FROM TUMBLE(TABLE closed, DESCRIPTOR(at), 5)), DESCRIPTOR(window_end), 10)",
        """
        HopWindow 10 slide 10 window_start_2 window_end_2 int64
          Istream
            HopWindow 5 slide 5 window_start window_end int64
              closed
        """,
    ),
    (
        "SELECT window.start AS s, COUNT(*) AS n FROM auction GROUP BY window(opened, '1 hour', '30 minutes'), seller",
        """
        Project s: "window"."start", n: "count"
          Aggregate [window seller] count=COUNT(*)
            Project item, seller, reserve, opened, window: NAMED_STRUCT('start', "window_start", 'end', "window_end")
              HopWindow 3600000000 slide 1800000000 window_start window_end timestamp[us]
                auction
        """,
    ),
    (
        "SELECT session_window.end AS e, COUNT(*) AS n FROM closed GROUP BY item, session_window(at, 5)",
        """
        Project e: "session_window"."end", n: "count"
          Aggregate [item session_window] count=COUNT(*)
            Project item, at, session_window: NAMED_STRUCT('start', "window_start", 'end', "window_end")
              SessionWindow 5 [item] window_start window_end int64
                closed
        """,
    ),
]


@pytest.mark.parametrize(("sql", "expected"), SHAPES, ids=[sql for sql, _ in SHAPES])
def test_a_query_becomes_this_plan(shape: Callable[[str], str], sql: str, expected: str):
    assert shape(sql) == dedent(expected).strip()
