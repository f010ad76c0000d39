"""How sub-queries are unnested: by a plain join where that is enough, else over the values of the outer columns."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

SHAPES = [
    # Marks: what is joined has no duplicates, so the rows keep their multiplicities.
    (
        "SELECT item FROM bid WHERE price > 5 OR EXISTS (SELECT 1 FROM closed WHERE closed.item = bid.item)",
        """
        Project item
          Filter "price" > 5 OR "found" IS NOT NULL
            Join left [item=sub.item]
              bid
              Project sub.item, found: TRUE
                Distinct
                  Project sub.item: "item"
                    closed
        """,
    ),
    (
        "SELECT item, item IN (SELECT item FROM auction WHERE auction.seller = bid.bidder) AS own FROM bid",
        """
        Project item, own: CASE WHEN "found" IS NOT NULL THEN TRUE WHEN "item" IS NULL AND "rows" IS NOT NULL \
OR "known" < "rows" THEN NULL ELSE FALSE END
          Join left [bidder=seller_2]
            Join left [bidder=seller item=sub.item]
              bid
              Project seller, sub.item, found: TRUE
                Distinct
                  Project seller, sub.item: "item"
                    auction
            Project seller_2: "seller", rows, known
              Aggregate [seller] rows=COUNT(*), known=COUNT(sub.item)
                Project sub.item: "item", seller, reserve, opened
                  auction
        """,
    ),
    (
        "SELECT item, EXISTS (SELECT 1 FROM closed WHERE closed.at < bid.price) AS late FROM bid",
        """
        Project item, late: "mark" IS NOT NULL
          Join left [price=value]
            bid
            Project value, mark: TRUE
              Join semi [] if "r.at" < "l.value"
                Distinct
                  Project value: "price"
                    bid
                Project sub.item: "item", at
                  closed
        """,
    ),
    # Over the values of outer columns. A condition that NULL cannot meet leaves a plain key, else it is wrapped.
    (
        "SELECT item, (SELECT MAX(at) FROM closed WHERE closed.item < bid.item) AS last FROM bid",
        """
        Project item, last: "max(at)"
          Join left [item=outer.item]
            bid
            Project max(at): "max", outer.item
              Aggregate [outer.item] max=MAX(at)
                Join inner [] if "l.item" < "r.outer.item"
                  closed
                  Distinct
                    Project outer.item: "item"
                      bid
        """,
    ),
    (
        "SELECT item, (SELECT MAX(at) FROM closed WHERE closed.item < bid.item OR bid.price = 0) AS last FROM bid",
        """
        Project item, last: "max(at)"
          Join left [expression=expression_3 expression_2=expression_4]
            Project item, price, bidder, expression: NAMED_STRUCT('value', "item"), \
expression_2: NAMED_STRUCT('value', "price")
              bid
            Project max(at), outer.item, outer.price, expression_3: NAMED_STRUCT('value', "outer.item"), \
expression_4: NAMED_STRUCT('value', "outer.price")
              Project max(at): "max", outer.item, outer.price
                Aggregate [outer.item outer.price] max=MAX(at)
                  Join inner [] if "l.item" < "r.outer.item" OR "r.outer.price" = 0
                    closed
                    Distinct
                      Project outer.item: "item", outer.price: "price"
                        bid
        """,
    ),
    (
        "SELECT item FROM bid WHERE price = (SELECT price FROM bid b WHERE b.item = bid.item ORDER BY price DESC LIMIT 1)",
        """
        Project item
          Join semi [item=outer.item price=sub.price]
            bid
            Project sub.price: "price", outer.item
              TopK 1 of each [outer.item] [price desc]
                Project price, outer.item
                  Join inner [item=outer.item]
                    bid
                    Distinct
                      Project outer.item: "item"
                        bid
        """,
    ),
    (
        "SELECT item FROM closed WHERE item IN (SELECT item FROM bid EXCEPT SELECT item FROM opening WHERE opened IS NULL "
        "AND opening.item > closed.at)",
        """
        Project item
          Join semi [at=outer.at item=sub.item]
            closed
            Project sub.item: "item", outer.at
              SetOperation except
                Project item, outer.at
                  Join inner []
                    bid
                    Distinct
                      Project outer.at: "at"
                        closed
                Project item, outer.at
                  Join inner [] if "l.item" > "r.outer.at"
                    Filter "opened" IS NULL
                      opening
                    Distinct
                      Project outer.at: "at"
                        closed
        """,
    ),
    # Values of one row that name outer columns are computed above the join.
    (
        "SELECT item, (SELECT bid.price - MAX(at) FROM closed WHERE closed.item = bid.item) AS d FROM bid",
        """
        Project item, d: CASE WHEN "found" IS NOT NULL THEN "price" - "max" END
          Join left [item=sub.item]
            bid
            Project sub.item, max, found: TRUE
              Aggregate [sub.item] max=MAX(at)
                Project sub.item: "item", at
                  closed
        """,
    ),
    # Rows of several columns.
    (
        "SELECT item FROM closed WHERE (item, at) = (SELECT MAX(item), MIN(at) FROM closed)",
        """
        Project item
          Join semi [item=max at=min]
            closed
            Aggregate [] max=MAX(item), min=MIN(at)
              closed
        """,
    ),
    (
        "SELECT item FROM closed WHERE (item, at) NOT IN (SELECT item, item * 2 FROM bid)",
        """
        Project item
          Join anti [] if NOT ("l.item" = "r.sub.item") IS FALSE AND NOT ("l.at" = "r.value") IS FALSE
            closed
            Project sub.item: "item", value: "item" * 2
              bid
        """,
    ),
]


@pytest.mark.parametrize(("sql", "expected"), SHAPES, ids=[sql for sql, _ in SHAPES])
def test_a_sub_query_is_unnested_like_this(shape: Callable[[str], str], sql: str, expected: str):
    assert shape(sql) == dedent(expected).strip()


def test_the_plan_grows_with_the_number_of_sub_queries_only(shape: Callable[[str], str]):
    def lines(number: int) -> int:
        tests = (
            f"(item IN (SELECT item FROM closed WHERE closed.at < bid.price + {i}) OR bidder = 'b{i}')"
            for i in range(number)
        )
        return shape(f"SELECT item FROM bid WHERE {' AND '.join(tests)}").count("\n")

    assert lines(6) - lines(4) == lines(4) - lines(2)
