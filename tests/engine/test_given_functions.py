"""Functions that are given to an engine as objects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headwater as hw
from headwater.errors import HeadwaterError
from headwater.model.given_functions import give

STREAM = "CREATE STREAM s (x BIGINT, at INT) ORDERED BY at IN ORDER"


class Product:
    def init(self, x: int) -> int:
        return x

    def merge(self, state: int, x: int) -> int:
        return state * x

    def eval(self, state: int) -> int:
        return state


class Scaled(Product):
    def __init__(self, factor: int) -> None:
        self.factor = factor

    def eval(self, state: int) -> int:
        return state * self.factor


def times(n: int) -> Callable[[pa.Array], pa.Array]:
    return lambda x: pc.multiply(x, n)


def answer(engine: hw.Engine, select: str) -> list[Any]:
    run = engine.sql(f"SELECT {select} AS y FROM s WINDOW(RANGE 5)").start()
    engine.push("s", [{"x": 3, "at": 1}, {"x": 4, "at": 1}], frontier=99)
    found = sorted(row["y"] for row in run.snapshot(at=1).rows())
    run.stop()
    return found


@pytest.fixture
def engine():
    with hw.connect(runner="inprocess", python_functions=False) as engine:  # the program may what its SQL may not
        engine.sql(STREAM)
        yield engine


def test_functions_of_all_kinds_are_taken(engine: hw.Engine):
    types = {"x": "BIGINT"}, pa.int64()
    engine.create_function("tripled", times(3), *types)
    engine.create_function("product", Product, *types)
    engine.create_function("scaled", Scaled(10), *types)
    engine.create_function("total", pc.sum, *types, aggregate=True)
    assert answer(engine, "tripled(x)") == [9, 12]
    with hw.connect(runner="inprocess") as other, pytest.raises(HeadwaterError, match='"tripled" does not exist'):
        other.sql(f"{STREAM}; SELECT tripled(x) AS y FROM s")
    with pytest.raises(HeadwaterError, match="switched off"):
        engine.sql("CREATE FUNCTION g(x BIGINT) RETURNS BIGINT AS 'math:sqrt'")


@pytest.mark.parametrize(
    ("given", "expected"),
    [(Product, 12), (Scaled(10), 120), (Scaled(2), 24), (pc.sum, 7)],
)
def test_aggregates(engine: hw.Engine, given: Any, expected: int):
    engine.create_function("a", given, {"x": "BIGINT"}, "BIGINT", aggregate=True)
    assert answer(engine, "a(x)") == [expected]


def test_a_function_that_is_defined_anew_is_another_one(engine: hw.Engine):
    for n in (2, 3):
        engine.create_function("f", times(n), {"x": "BIGINT"}, "BIGINT")
        assert engine.sql(f"SELECT f({n}) AS y FROM s") is not None
        assert give(times(n)) == give(times(n)), "the same code is the same function, also after a restart"
    assert give(times(2)) != give(times(3))
    assert answer(engine, "f(x)") == [9, 12]
    with pytest.raises(HeadwaterError, match="exists already"):
        engine.create_function("f", times(2), {"x": "BIGINT"}, "BIGINT", replace=False)


def test_a_function_of_the_program_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.modules["__main__"], "quadrupled", times(4), raising=False)
    with hw.connect(runner="inprocess") as engine:
        engine.sql(f"{STREAM}; CREATE FUNCTION q(x BIGINT) RETURNS BIGINT AS '__main__:quadrupled'")
        assert answer(engine, "q(x)") == [12, 16]
        with pytest.raises(HeadwaterError, match='has no "quintupled"'):
            engine.sql("CREATE FUNCTION r(x BIGINT) RETURNS BIGINT AS '__main__:quintupled'")


def test_a_class_that_wants_arguments_is_told_as_such(engine: hw.Engine):
    for make in (
        lambda: engine.create_function("scaled", Scaled, {"x": "BIGINT"}, "BIGINT"),
        lambda: hw.connect(runner="inprocess").sql(
            f"CREATE AGGREGATE FUNCTION scaled(x BIGINT) RETURNS BIGINT AS '{__name__}:Scaled'"
        ),
    ):
        with pytest.raises(HeadwaterError) as told:
            make()
        assert told.value.code == "UNKNOWN_FUNCTION_PATH"
        assert "factor" in told.value.detail
        assert "called without arguments" in told.value.hint


def test_an_aggregate_of_several_arguments_given_as_an_object():
    class Vwap:
        def init(self, price, volume):
            return price * volume, volume

        def merge(self, state, price, volume):
            return state[0] + price * volume, state[1] + volume

        def inverse(self, state, price, volume):
            return state[0] - price * volume, state[1] - volume

        def eval(self, state):
            return state[0] / state[1]

    def vwap(prices, volumes):
        return pc.sum(pc.multiply(prices, volumes)).as_py() / pc.sum(volumes).as_py()

    types = {"price": "DOUBLE", "volume": "DOUBLE"}
    engine = hw.connect(runner="inprocess")
    try:
        engine.create_function("vwap", Vwap, types, "DOUBLE")
        engine.create_function("vwap_of", vwap, types, "DOUBLE", aggregate=True)
        engine.sql("CREATE STREAM trade (item STRING, price DOUBLE, volume INT, at INT) ORDERED BY at")
        query = "SELECT vwap(price, volume) AS a, vwap_of(DISTINCT price, volume) AS b FROM trade WINDOW(RANGE 3)"
        run = engine.sql(query).start()
        trades = [("a", 10.0, 1, 1), ("b", 20.0, 3, 2), ("b", 20.0, 3, 2), ("c", None, 5, 2), ("d", 6.0, 2, 4)]
        names = ("item", "price", "volume", "at")
        engine.push("trade", [dict(zip(names, trade, strict=True)) for trade in trades], frontier=9)
        assert run.snapshot(at=2).rows() == [{"a": 130 / 7, "b": 70 / 4}]
        assert run.snapshot(at=4).rows() == [{"a": 132 / 8, "b": 72 / 5}]
    finally:
        engine.close()
