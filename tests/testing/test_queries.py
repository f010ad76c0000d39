"""Unit tests of queries: a right answer passes, any other is told with both."""

from __future__ import annotations

import doctest

import pytest

from headwater.errors import InputError
from headwater.testing import queries
from headwater.testing.queries import check_query

TWO = """
    CREATE STREAM bid (item STRING, price INT);
    CREATE STREAM high AS SELECT item FROM bid WHERE price > 15;
    CREATE STREAM best AS SELECT MAX(price) AS best FROM bid WINDOW(RANGE 4);
"""


def test_the_examples_hold():
    assert doctest.testmod(queries).failed == 0


def test_several_queries_are_answered_by_name():
    check_query(TWO, {"bid": "lamp/20 @1, vase/10 @3"}, {"high": "lamp @1", "best": "20 1-5, 10 5-7"})


def test_a_wrong_answer_is_told_by_query():
    with pytest.raises(AssertionError, match=r"answered: high: lamp 1-2; best: 20 1-5"):
        check_query(TWO, {"bid": "lamp/20 @1"}, {"high": "lamp @1", "best": "20 1-4"})


def test_rows_may_be_revised_and_null():
    check_query(
        "CREATE STREAM s (x INT, y STRING); SELECT y, SUM(x) AS total FROM s GROUP BY y",
        {"s": "1/a 0-, null/a 2-6, 1/a 0->8, ~9"},
        "a/1 0-8",
    )


def test_a_row_that_is_missing_or_too_many_is_found():
    script = "CREATE STREAM s (x STRING); SELECT x FROM s"
    check_query(script, {"s": "a*2 1-3"}, "a*2 1-3")
    for wrong in ("a 1-3", "a*3 1-3", "", "a*2 1-3, b 1-3"):
        with pytest.raises(AssertionError):
            check_query(script, {"s": "a*2 1-3"}, wrong)


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(InputError, match='stream "bids" is not declared'):
        check_query(TWO, {"bids": "lamp/20 @1"}, "")
    with pytest.raises(InputError, match="the script has high, best"):
        check_query(TWO, {"bid": "lamp/20 @1"}, "lamp @1")
