"""Queries and the plans that they become."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

SHAPES = [
    (
        "SELECT * FROM bid",
        """
        bid
        """,
    ),
    (
        "SELECT item, price * 2 AS p FROM bid WHERE price > 10 AND bidder LIKE 'a%'",
        """
        Project item, p: "price" * 2
          Filter "price" > 10 AND "bidder" LIKE 'a%'
            bid
        """,
    ),
    (
        "SELECT bid.* FROM bid WINDOW(RANGE 10 MINUTES SLIDE 1 MINUTE)",
        """
        TimeWindow 600000000 slide 60000000
          bid
        """,
    ),
    (
        "SELECT * FROM bid [RANGE 10]",
        """
        TimeWindow 10
          bid
        """,
    ),
    (
        "SELECT * FROM bid [NOW]",
        """
        bid
        """,
    ),
    (
        "SELECT * FROM bid WINDOW(RANGE 1)",
        """
        bid
        """,
    ),
    (
        "SELECT * FROM bid WINDOW(RANGE 1 SLIDE 10)",
        """
        TimeWindow 1 slide 10
          bid
        """,
    ),
    (
        "SELECT * FROM bid WINDOW(RANGE UNBOUNDED)",
        """
        TimeWindow unbounded
          bid
        """,
    ),
    (
        "SELECT * FROM bid [ROWS UNBOUNDED]",
        """
        TimeWindow unbounded
          bid
        """,
    ),
    (
        "SELECT * FROM bid [ROWS 5 SLIDE 2]",
        """
        RowWindow 5 slide 2 []
          bid
        """,
    ),
    (
        "SELECT * FROM bid b [PARTITION BY b.item, bidder ROWS 5]",
        """
        RowWindow 5 [item bidder]
          bid
        """,
    ),
    (
        "SELECT * FROM bid [PARTITION BY item ROWS 5] b",
        """
        RowWindow 5 [item]
          bid
        """,
    ),
    (
        "SELECT * FROM bid WINDOW(PARTITION BY item RANGE 5 SECONDS)",
        """
        TimeWindow 5000000
          bid
        """,
    ),
    (
        "SELECT * FROM bid WINDOW(RANGE INTERVAL '2' DAYS)",
        """
        TimeWindow 172800000000
          bid
        """,
    ),
    (
        "SELECT * FROM bid WINDOW(RANGE 1 HOUR) GRANULARITY(1 MINUTE) b",
        """
        Granularity 60000000
          TimeWindow 3600000000
            bid
        """,
    ),
    (
        "SELECT * FROM bid GRANULARITY(5)",
        """
        Granularity 5
          bid
        """,
    ),
    (
        "SELECT * FROM (SELECT item FROM bid) WINDOW(RANGE 5) q",
        """
        TimeWindow 5
          Project item
            bid
        """,
    ),
    (
        "SELECT * FROM Istream(bid [RANGE 5]) b",
        """
        Istream
          TimeWindow 5
            bid
        """,
    ),
    (
        "SELECT * FROM Dstream(SELECT item FROM bid) d WINDOW(RANGE 3)",
        """
        TimeWindow 3
          Dstream
            Project item
              bid
        """,
    ),
    (
        "SELECT * FROM Rstream(bid)",
        """
        Split 1
          bid
        """,
    ),
    (
        "SELECT Istream(item, price AS p) FROM bid [RANGE 5]",
        """
        Istream
          Project item, p: "price"
            TimeWindow 5
              bid
        """,
    ),
    (
        "SELECT Dstream(*) FROM bid [RANGE 5]",
        """
        Dstream
          TimeWindow 5
            bid
        """,
    ),
    (
        "SELECT b.item, seller FROM bid b, auction a "
        "WHERE b.item = a.item AND price > reserve AND seller = 'x' AND b.bidder <> 'y'",
        """
        Project item, seller
          Join inner [item=a.item] if "l.price" > "r.reserve"
            Filter "bidder" <> 'y'
              bid
            Filter "seller" = 'x'
              Project a.item: "item", seller, reserve, opened
                auction
        """,
    ),
    (
        "SELECT b.item FROM bid b JOIN auction a ON b.item = a.item + 1 AND upper(b.bidder) = a.seller",
        """
        Project item
          Join inner [item=expression_2 expression=seller]
            Project item, price, bidder, expression: UPPER("bidder")
              bid
            Project a.item, seller, reserve, opened, expression_2: "a.item" + 1
              Project a.item: "item", seller, reserve, opened
                auction
        """,
    ),
    (
        "SELECT b.item FROM bid b LEFT JOIN auction a ON b.item = a.item AND a.seller = 'x' AND b.price > 1",
        """
        Project item
          Join left [item=a.item] if "l.price" > 1
            bid
            Filter "seller" = 'x'
              Project a.item: "item", seller, reserve, opened
                auction
        """,
    ),
    (
        "SELECT b.item FROM bid b RIGHT JOIN auction a ON b.item = a.item AND a.seller = 'x' AND b.price > 1",
        """
        Project item
          Join right [item=a.item] if "r.seller" = 'x'
            Filter "price" > 1
              bid
            Project a.item: "item", seller, reserve, opened
              auction
        """,
    ),
    (
        "SELECT b.item FROM bid b FULL JOIN auction a ON b.item = a.item AND a.seller = 'x'",
        """
        Project item
          Join full [item=a.item] if "r.seller" = 'x'
            bid
            Project a.item: "item", seller, reserve, opened
              auction
        """,
    ),
    (
        "SELECT * FROM bid LEFT SEMI JOIN closed ON bid.item = closed.item",
        """
        Join semi [item=closed.item]
          bid
          Project closed.item: "item", at
            closed
        """,
    ),
    (
        "SELECT * FROM bid LEFT ANTI JOIN closed ON bid.item = closed.item",
        """
        Join anti [item=closed.item]
          bid
          Project closed.item: "item", at
            closed
        """,
    ),
    (
        "SELECT * FROM bid CROSS JOIN closed",
        """
        Project item, price, bidder, item_2: "closed.item", at
          Join inner []
            bid
            Project closed.item: "item", at
              closed
        """,
    ),
    (
        "SELECT b.item FROM bid b, opening a, closed c WHERE b.item = c.item AND c.item = a.item",
        """
        Project item
          Join inner [c.item=a.item]
            Join inner [item=c.item]
              bid
              Project c.item: "item", at
                closed
            Project a.item: "item", seller, reserve, opened
              opening
        """,
    ),
    (
        "SELECT b.item FROM bid b, opening a, closed c WHERE b.price = c.at AND b.item = a.item",
        """
        Project item
          Join inner [price=expression]
            Join inner [item=a.item]
              bid
              Project a.item: "item", seller, reserve, opened
                opening
            Project c.item, at, expression: CAST("at" AS DOUBLE)
              Project c.item: "item", at
                closed
        """,
    ),
    (
        "SELECT x.item FROM bid x, bid y WHERE x.item = y.item",
        """
        Project item
          Join inner [item=y.item]
            bid
            Project y.item: "item", y.price: "price", y.bidder: "bidder"
              bid
        """,
    ),
    (
        "SELECT item, COUNT(*) AS n, SUM(price), MAX(price + 1) FROM bid GROUP BY item",
        """
        Project item, n: "count", sum(price): "sum", max(price + 1): "max"
          Aggregate [item] count=COUNT(*), sum=SUM(price), max=MAX(expression)
            Project item, price, expression: "price" + 1
              bid
        """,
    ),
    (
        "SELECT COUNT(*) FROM bid",
        """
        Project count(*): "count"
          Aggregate [] count=COUNT(*)
            bid
        """,
    ),
    (
        "SELECT item FROM bid GROUP BY item",
        """
        Distinct
          Project item
            bid
        """,
    ),
    (
        "SELECT upper(bidder) AS b, COUNT(DISTINCT item) FILTER (WHERE price > 1) AS n FROM bid "
        "GROUP BY upper(bidder) HAVING COUNT(*) > 2 AND b <> 'X'",
        """
        Project b: "expression", n: "count"
          Filter "count_2" > 2 AND "expression" <> 'X'
            Aggregate [expression] count=COUNT(DISTINCT item) if expression_2, count_2=COUNT(*)
              Project item, expression: UPPER("bidder"), expression_2: "price" > 1
                bid
        """,
    ),
    (
        "SELECT DISTINCT item FROM bid",
        """
        Distinct
          Project item
            bid
        """,
    ),
    (
        "SELECT item FROM bid UNION ALL SELECT item FROM closed",
        """
        Union
          Project item
            bid
          Project item
            closed
        """,
    ),
    (
        "SELECT item FROM bid UNION SELECT at FROM closed",
        """
        Distinct
          Union
            Project item: CAST("item" AS BIGINT)
              Project item
                bid
            Project item: "at"
              closed
        """,
    ),
    (
        "SELECT item FROM bid EXCEPT SELECT item FROM closed",
        """
        SetOperation except
          Project item
            bid
          Project item
            closed
        """,
    ),
    (
        "SELECT item FROM bid EXCEPT ALL SELECT item FROM closed",
        """
        SetOperation except all
          Project item
            bid
          Project item
            closed
        """,
    ),
    (
        "SELECT item FROM bid INTERSECT ALL SELECT item FROM closed",
        """
        SetOperation intersect all
          Project item
            bid
          Project item
            closed
        """,
    ),
    (
        "WITH q AS (SELECT item FROM bid) SELECT * FROM q JOIN q r USING (item)",
        """
        Project item
          Join inner [item=r.item]
            Project item
              bid
            Project r.item: "item"
              bid
        """,
    ),
    (
        "SELECT * FROM bid WHERE price = (SELECT MAX(price) FROM bid)",
        """
        Join semi [price=max]
          bid
          Aggregate [] max=MAX(price)
            bid
        """,
    ),
    (
        "SELECT * FROM bid WHERE price > (SELECT MAX(price) FROM bid)",
        """
        Join semi [] if "l.price" > "r.max"
          bid
          Aggregate [] max=MAX(price)
            bid
        """,
    ),
    (
        "SELECT * FROM bid WHERE price > ALL (SELECT price FROM bid)",
        """
        Join anti [] if NOT ("l.price" > "r.max" AND "r.known" = "r.rows") IS TRUE
          bid
          Aggregate [] max=MAX(sub.price), rows=COUNT(*), known=COUNT(sub.price)
            Project sub.price: "price"
              bid
        """,
    ),
    (
        "SELECT * FROM closed WHERE at >= ALL (SELECT item FROM closed)",
        """
        Join anti [] if "l.at" < "r.max"
          closed
          Aggregate [] max=MAX(sub.item)
            Project sub.item: "item"
              closed
        """,
    ),
    (
        "SELECT * FROM bid WHERE price < ANY (SELECT reserve FROM auction)",
        """
        Join semi [] if "l.price" < "r.max"
          bid
          Aggregate [] max=MAX(reserve)
            Project reserve
              auction
        """,
    ),
    (
        "SELECT * FROM bid WHERE item IN (SELECT item FROM closed)",
        """
        Join semi [item=sub.item]
          bid
          Project sub.item: "item"
            closed
        """,
    ),
    (
        "SELECT * FROM closed WHERE item NOT IN (SELECT item FROM closed)",
        """
        Join anti [item=sub.item]
          closed
          Project sub.item: "item"
            closed
        """,
    ),
    (
        "SELECT * FROM bid WHERE item NOT IN (SELECT item FROM auction)",
        """
        Join anti [] if "l.item" IS NULL
          Join anti []
            Join anti [item=sub.item]
              bid
              Project sub.item: "item"
                auction
            Aggregate [] rows=COUNT(*)
              Filter "sub.item" IS NULL
                Project sub.item: "item"
                  auction
          Aggregate [] rows_2=COUNT(*)
            Project sub.item: "item"
              auction
        """,
    ),
    (
        "SELECT * FROM bid WHERE EXISTS (SELECT 1 FROM closed)",
        """
        Join semi []
          bid
          Aggregate [] rows=COUNT(*)
            Project value: 1
              closed
        """,
    ),
    (
        "SELECT * FROM bid WHERE NOT EXISTS (SELECT 1 FROM closed WHERE closed.item = bid.item AND at > price)",
        """
        Join anti [item=sub.item] if "r.at" > "l.price"
          bid
          Project sub.item: "item", at
            closed
        """,
    ),
    (
        "SELECT item, (SELECT COUNT(*) FROM closed) AS n FROM bid",
        """
        Project item, n: COALESCE("count", CAST(0 AS BIGINT))
          Join left []
            bid
            Aggregate [] count=COUNT(*)
              closed
        """,
    ),
    (
        "SELECT * FROM bid WHERE price > (SELECT AVG(price) FROM bid b WHERE b.item = bid.item)",
        """
        Join semi [item=sub.item] if "l.price" > "r.avg"
          bid
          Aggregate [sub.item] avg=AVG(sub.price)
            Project sub.item: "item", sub.price: "price", sub.bidder: "bidder"
              bid
        """,
    ),
]


@pytest.mark.parametrize(("sql", "expected"), SHAPES, ids=[sql for sql, _ in SHAPES])
def test_a_query_becomes_this_plan(shape: Callable[[str], str], sql: str, expected: str):
    assert shape(sql) == dedent(expected).strip()
