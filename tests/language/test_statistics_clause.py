"""STATISTICS of a stream: what may be declared. Mistakes in SQL are in ``mistakes.test``."""

from __future__ import annotations

import pytest

from headwater.errors import InputError
from headwater.language.binder import bind_script
from headwater.language.catalog import Stream
from headwater.language.statistics_clause import check_statistics
from headwater.model.schema import Schema

BID = Stream("bid", Schema.of(auction="BIGINT", price="DOUBLE", at="INT"), time="at")


def declared(script: str) -> dict[str, float]:
    (stream,) = bind_script(script).catalog
    assert isinstance(stream, Stream)
    return dict(stream.statistics)


def test_figures_stand_beside_other_clauses_in_any_order():
    columns = "CREATE STREAM s (k BIGINT, t STRING NOT NULL, at INT)"
    figures = "STATISTICS (rate => 0.5, Distinct(K) => 20_000, nulls(k) = 1e-2, bytes(t) => 40, nulls(t) => 0)"
    figures = figures.replace("20_000", "20000")
    known = {"rate": 0.5, "distinct(k)": 20000.0, "nulls(k)": 0.01, "bytes(t)": 40.0, "nulls(t)": 0.0}
    assert declared(f"{columns} {figures} ORDERED BY at DISORDER 2;") == known
    assert declared(f"{columns} ORDERED BY at DISORDER 2 {figures};") == known
    assert declared(f"{columns} ORDERED BY at;") == {}


def test_of_a_table_the_rows_can_be_known():
    assert declared("CREATE TABLE r (k BIGINT PRIMARY KEY, x INT) STATISTICS (rows => 1000000);") == {"rows": 1e6}


def test_the_same_from_python():
    assert check_statistics({"rate": 5, "distinct( AUCTION )": 7}, BID) == (("rate", 5.0), ("distinct(auction)", 7.0))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rat": 1}, 'there is no statistic "rat"'),
        ({"distinct(bidder)": 1}, 'column "bidder" does not exist'),
        ({"nulls(price)": -0.5}, "nulls cannot be -0.5"),
        ({"rate": float("inf")}, "rate cannot be inf"),
        ({"rate": "fast"}, "rate cannot be 'fast'"),
        ({"rows": 3}, "are valid for one instant"),
    ],
)
def test_mistakes_in_python(given: dict[str, float], message: str):
    with pytest.raises(InputError, match=message) as caught:
        check_statistics(given, BID)
    assert 'the statistics of stream "bid"' in str(caught.value)
    assert caught.value.hint
