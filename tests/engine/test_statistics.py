"""Statistics reach the cost model: declared, measured and kept in the checkpoint, read in footers, or guessed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.algebra.plan_text import print_plan
from headwater.errors import InputError
from headwater.language.binder import bind_script
from headwater.model.schema import Schema
from headwater.optimizer.plan_query import plan_query
from headwater.runtime.known_statistics import declared_statistics
from headwater.settings import Settings
from headwater.sources.dataframe import declared
from headwater.state.sealed import seal, unseal

STREAMS = """
CREATE STREAM bid (auction BIGINT, price INT, at INT) ORDERED BY at DISORDER 2 {bid};
CREATE STREAM auction (id BIGINT, seller BIGINT, at INT) ORDERED BY at DISORDER 2 {auction};
CREATE STREAM person (pid BIGINT, city STRING, at INT) ORDERED BY at DISORDER 2 {person};
"""
GUESSED = {"bid": "", "auction": "", "person": ""}
DECLARED = {
    "bid": "STATISTICS (rate => 5000, distinct(auction) => 20000)",
    "auction": "STATISTICS (rate => 10, distinct(id) => 20000, distinct(seller) => 500)",
    "person": "STATISTICS (rate => 2, distinct(pid) => 100000)",
}
OFFERS = """SELECT b.price, p.city FROM bid [RANGE 5] b, auction [RANGE 5] a, person [RANGE 5] p
            WHERE b.auction = a.id AND a.seller = p.pid"""
FIRST = "Inner join on auction = id "
"""The join of a plan that is made of guesses comes first; with figures, last."""


@contextmanager
def engine(folder: Path | None, declared: dict[str, str]) -> Iterator[Any]:
    with hw.connect(runner="inprocess", checkpoint=folder) as made:
        made.sql(STREAMS.format(**declared))
        yield made


def bring(made: Any, begin: int, end: int) -> None:
    """Many bids of many auctions, a few auctions of few sellers, fewer persons."""
    for at in range(begin, end):
        bids = [{"auction": (at * 97 + i * 31) % 1000, "price": i % 10, "at": at} for i in range(200)]
        made.push("bid", bids, wait=False)
        made.push("auction", [{"id": at * 10 + i, "seller": i, "at": at} for i in range(10)], wait=False)
        made.push("person", [{"pid": at * 2 + i, "city": "x", "at": at} for i in range(2)])


def depth(text: str, node: str) -> int:
    return next(line.index(node) for line in text.splitlines() if node in line)


def joins_bids_last(text: str) -> bool:
    return depth(text, FIRST) < depth(text, "Inner join on seller = pid ")


def test_declared_figures_change_the_order_of_joins():
    with engine(None, GUESSED) as made:
        guessed = made.sql(f"EXPLAIN {OFFERS}")
    with engine(None, DECLARED) as made:
        declared = made.sql(f"EXPLAIN {OFFERS}")
    assert not joins_bids_last(guessed)
    assert joins_bids_last(declared)
    assert "Figures of bid, auction, person: guessed." in guessed
    assert "Figures of bid: rate 5 k/instant, distinct(auction) 20 k (declared); others guessed." in declared


def test_the_same_text_with_the_same_figures_gives_the_same_plan():
    plans = set()
    for _ in range(2):
        script = bind_script(f"{STREAMS.format(**DECLARED)} {OFFERS}")
        assert script.result is not None
        known = declared_statistics(list(script.catalog))  # type: ignore[arg-type]
        plans.add(print_plan(plan_query(script.result.plan, Settings(), statistics=known).logical))
    assert len(plans) == 1


def test_what_is_measured_outlives_the_engine_and_plans_later_queries(tmp_path: Path):
    with engine(tmp_path, GUESSED) as made:
        run = made.sql(OFFERS, name="offers").start()
        made.sql("SELECT price FROM bid WHERE price < 3", name="cheap").start()
        bring(made, 0, 10)
        plan = run._running.plan
    with engine(tmp_path, GUESSED) as made:
        text = made.sql(f"EXPLAIN {OFFERS.replace('b.price', 'b.auction')}")
        assert "Figures of bid: rate" in text
        assert "(measured); others guessed." in text
        assert joins_bids_last(text)
        cheap = made.sql("EXPLAIN SELECT price FROM bid WHERE price < 3 FORMAT JSON")
        known = json.loads(cheap)["statistics"]["bid"]
        assert known["rate"][1] == "measured"
        assert 180 < known["rate"][0] < 250
        assert 500 < known["distinct(auction)"][0] < 2000
        assert known['share("price" < 3)'] == [0.3, "measured"]
        # What runs goes on as it is: the checkpoint has what its plan was made with.
        made.sql("SELECT price FROM bid WHERE price < 3", name="cheap").start()
        again = made.sql(OFFERS, name="offers").start()
        assert again._running.plan == plan
        assert not joins_bids_last(made.sql("EXPLAIN offers"))
        bring(made, 10, 12)
        assert again.since == 0


def test_a_query_goes_on_although_other_figures_are_declared(tmp_path: Path):
    with engine(tmp_path, DECLARED) as made:
        plan = made.sql(OFFERS, name="offers").start()._running.plan
        bring(made, 0, 3)
    with engine(tmp_path, GUESSED) as made:
        assert joins_bids_last(made.sql(OFFERS, name="offers").explain())  # as it will be when it goes on
        run = made.sql(OFFERS, name="offers").start()
        assert run._running.plan == plan
        made.drop("offers")
    with engine(tmp_path, GUESSED) as made:
        made._core.manifest.measured.clear()  # now nothing is known
        assert not joins_bids_last(made.sql(OFFERS, name="offers").explain())


def test_a_manifest_without_figures_is_read(tmp_path: Path):
    with engine(tmp_path, GUESSED) as made:
        made.sql(OFFERS, name="offers").start()
        bring(made, 0, 3)
    for path in (tmp_path / "manifests").glob("*.json"):
        kept = unseal(path.read_bytes())
        del kept["measured"]
        for query in kept["queries"].values():
            del query["statistics"]
        path.write_bytes(seal(kept))
    with engine(tmp_path, DECLARED) as made:
        run = made.sql(OFFERS, name="offers").start()
        bring(made, 3, 5)
        assert run.since == 0


def test_declared_figures_count_more_than_measured_ones_and_these_more_than_footers(tmp_path: Path):
    begin = datetime(2026, 1, 1)
    times = [begin + timedelta(seconds=i / 50) for i in range(1000)]
    (tmp_path / "data").mkdir()
    pq.write_table(
        pa.table({"k": [i % 40 for i in range(1000)], "ts": pa.array(times, pa.timestamp("us"))}),
        tmp_path / "data" / "a.parquet",
    )
    source = f"SOURCE parquet('{tmp_path}/data', follow => false)"
    script = f"CREATE STREAM s (k BIGINT, ts TIMESTAMP) {source} ORDERED BY ts DISORDER 1 SECOND"
    query = "EXPLAIN SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k"
    with hw.connect(runner="inprocess", checkpoint=tmp_path / "checkpoint") as made:
        made.sql(f"{script};")
        assert "Figures of s: rate 50.1/s, distinct(k) 40, nulls(k) 0 (in footers); others guessed." in made.sql(query)
        made.sql("SELECT k FROM s", name="q").start()
        made.run_to_end()
        assert "(measured)" in made.sql(query)
        assert "(in footers)" not in made.sql(query)
    with hw.connect(runner="inprocess", checkpoint=tmp_path / "checkpoint") as made:
        made.sql(f"{script} STATISTICS (distinct(k) => 99);")
        text = made.sql(query)
        assert "Figures of s: distinct(k) 99 (declared); rate 50" in text
        assert "(measured)" in text


def test_of_a_table_the_rows_that_stand_in_it_are_measured():
    with hw.connect(runner="inprocess") as made:
        made.sql("CREATE TABLE stock (item INT PRIMARY KEY, n INT); CREATE STREAM s (k INT, at INT) ORDERED BY at;")
        query = "SELECT s.k, stock.n FROM s [RANGE 5], stock WHERE s.k = stock.item"
        made.sql(query, name="known").start()
        made.push("stock", [{"item": i, "n": 1, "_start": 0} for i in range(300)])
        assert "rows 300" in made.sql(f"EXPLAIN {query}")


def test_a_dataframe_is_registered_with_figures():
    columns = Schema.of(k="BIGINT", ts="TIMESTAMP")
    stream = declared("s", columns, time="ts", statistics={"rate": 2000, "distinct(k)": 7})
    known = declared_statistics([stream]).of("s")
    assert known.rate == pytest.approx(2000 / 1e6)
    assert known.columns["k"].distinct == 7
    with pytest.raises(InputError, match='column "kk" does not exist'):
        declared("s", columns, time="ts", statistics={"nulls(kk)": 0.5})


def test_what_is_dropped_is_forgotten():
    with engine(None, GUESSED) as made:
        run = made.sql(OFFERS).start()
        bring(made, 0, 3)
        assert "bid" in made._core.manifest.measured
        run.stop()
        made.sql("DROP STREAM bid")
        assert "bid" not in made._core.manifest.measured
