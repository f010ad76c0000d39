"""A unit test of the query in query.sql, for pytest or by itself: which rows come in, and when which rows hold."""

from pathlib import Path

import pytest

from headwater.testing.queries import check_query

QUERY = Path("query.sql").read_text()


def test_visits_count_for_five_minutes():
    # home at minutes 1 and 3, cart at 3; then the answer: home is 1 from minute 1 to 3, 2 until 6, 1 until 8.
    check_query(
        QUERY,
        {"visit": "home @1, home @3, cart @3"},
        "home/1 1-3, home/2 3-6, home/1 6-8, cart/1 3-8",
        unit="minute",
    )


def test_nothing_comes_of_nothing():
    check_query(QUERY, {"visit": ""}, "")


def test_a_wrong_answer_is_told():
    with pytest.raises(AssertionError, match="answered: home/1 1-6"):
        check_query(QUERY, {"visit": "home @1"}, "home/1 1-5", unit="minute")


if __name__ == "__main__":
    for test in (test_visits_count_for_five_minutes, test_nothing_comes_of_nothing, test_a_wrong_answer_is_told):
        test()
    print("3 passed")
