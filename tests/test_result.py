"""Rows that a user asked for, in whatever form."""

from __future__ import annotations

import doctest
import importlib.util

import duckdb
import pyarrow as pa
import pytest

import headwater.result
import headwater.sinks
from headwater.errors import HeadwaterError
from headwater.result import Result

TABLE = pa.table({"x": [2**60 + 1, None], "t": ["<b>", "a\nb"], "ok": [True, None]})


def test_the_examples_are_right():
    for module in (headwater.result, headwater.sinks):
        assert doctest.testmod(module, extraglobs={"pa": pa}).failed == 0


def test_arrow_readers_read_it_as_it_is():
    result = Result(TABLE)
    assert pa.table(result) == TABLE == result.to_arrow()
    rows = duckdb.sql("SELECT COUNT(*), MAX(x) FROM result").fetchall()
    assert rows == [(2, 2**60 + 1)]


def test_pandas_keeps_large_numbers_beside_null():
    frame = Result(TABLE).to_pandas()
    assert frame["x"].iloc[0] == 2**60 + 1
    assert frame["x"].isna().tolist() == frame["ok"].isna().tolist() == [False, True]


def test_polars_is_optional():
    if importlib.util.find_spec("polars"):
        assert Result(TABLE).to_polars().shape == (2, 3)
        return
    with pytest.raises(HeadwaterError, match="pip install polars"):
        Result(TABLE).to_polars()


def test_rows_are_dictionaries():
    assert Result(TABLE).rows()[1] == {"x": None, "t": "a\nb", "ok": None}
    assert len(Result(TABLE)) == 2
    assert Result(TABLE).columns == ("x", "t", "ok")


def test_only_the_first_rows_are_shown():
    shown = repr(Result(pa.table({"n": range(1234), "long": ["x" * 99] * 1234})))
    assert shown.splitlines()[-1] == "1,234 rows, the first 10 shown"
    assert len(shown.splitlines()) == 13
    assert max(map(len, shown.splitlines())) < 60
    assert repr(Result(pa.table({"n": pa.array([], pa.int64())}))).splitlines()[-1] == "0 rows"
    assert repr(Result(pa.table({}))) == "0 rows"


def test_html_is_escaped():
    html = Result(TABLE)._repr_html_()
    assert "<td>&lt;b&gt;</td>" in html
    assert html.endswith("<p>2 rows</p>")
