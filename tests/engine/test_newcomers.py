"""A query that starts later sees what is in a table: what holds is handed over, then it sees what everybody does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.testing.cases import fresh, scaled

SECOND = 1_000_000
CITIES = "SELECT city, COUNT(*) AS n FROM customer GROUP BY city"
KEYED, KEYLESS = "id INT PRIMARY KEY, city STRING", "id INT, city STRING"


def declare(engine: hw.Engine, columns: str = KEYED) -> None:
    engine.sql(f"CREATE TABLE customer ({columns}) SOURCE push(changes => 'debezium') DISORDER 2 SECONDS")


def created(key: int, city: str, second: int) -> dict[str, Any]:
    return {"op": "c", "after": {"id": key, "city": city}, "ts_ms": second * 1000}


def moved(key: int, old: str, new: str, second: int) -> dict[str, Any]:
    return {"op": "u", "before": {"id": key, "city": old}, "after": {"id": key, "city": new}, "ts_ms": second * 1000}


def deleted(key: int, city: str, second: int) -> dict[str, Any]:
    return {"op": "d", "before": {"id": key, "city": city}, "ts_ms": second * 1000}


def at(run: hw.Run, second: float) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in run.snapshot(at=int(second * SECOND)).rows())


@pytest.mark.parametrize("columns", [KEYED, KEYLESS])
@pytest.mark.parametrize("level", ["STRONG", "MIDDLE"])
def test_a_newcomer_sees_what_the_table_holds(columns: str, level: str):
    with hw.connect(runner="inprocess", shards=2) as engine:
        declare(engine, columns)
        old = engine.sql(f"{CITIES} CONSISTENCY {level}", name="old").start()
        engine.push("customer", [created(1, "Bern", 1), created(2, "Bern", 2), created(3, "Rome", 3)])
        engine.push("customer", [moved(2, "Bern", "Rome", 10)])
        new = engine.sql(f"{CITIES} CONSISTENCY {level}", name="new").start()
        rows = engine.sql("SELECT id, city FROM customer", name="rows").start()
        engine.push("customer", [deleted(3, "Rome", 20), created(4, "Bern", 21)])
        engine.run_to_end()
        for second in (8, 10, 15, 20, 21, 30):
            assert at(new, second) == at(old, second)
        assert at(new, 15) == [("Bern", 1), ("Rome", 2)]
        assert at(rows, 30) == [(1, "Bern"), (2, "Rome"), (4, "Bern")]
        starts = {row["id"]: row["_start"].second for row in rows.history().rows() if row["id"] != 2}
        assert starts == {1: 1, 3: 3, 4: 21}  # since when they hold, not since when the query runs


def test_a_table_that_was_filled_before_any_query_is_not_empty():
    with hw.connect(runner="inprocess", shards=2) as engine:
        declare(engine)
        engine.push("customer", [created(1, "Bern", 1), created(2, "Rome", 2)])
        first = engine.sql(CITIES).start()
        engine.push("customer", [deleted(2, "Rome", 9)])
        engine.run_to_end()
        assert at(first, 5) == [("Bern", 1), ("Rome", 1)]
        assert at(first, 9) == [("Bern", 1)]


def test_nothing_need_come_for_the_table_to_be_seen():
    with hw.connect(runner="inprocess", shards=2) as engine:
        declare(engine)
        engine.push("customer", [created(1, "Bern", 1), created(2, "Bern", 9)])
        new = engine.sql(f"{CITIES} CONSISTENCY MIDDLE").start()
        engine.run_to_end(end_streams=False)
        assert at(new, 9) == [("Bern", 2)]


def test_a_table_is_still_there_when_its_stream_has_ended():
    with hw.connect(runner="inprocess", shards=2) as engine:
        declare(engine)
        engine.push("customer", [created(1, "Bern", 1), created(2, "Rome", 2), deleted(2, "Rome", 3)])
        engine.sql(CITIES, name="first").start()
        engine.run_to_end()
        second = engine.sql(CITIES, name="second").start()
        engine.run_to_end()
        assert at(second, 100) == [("Bern", 1)]


def test_purchases_meet_customers_that_came_before_the_query():
    with hw.connect(runner="inprocess", shards=2) as engine:
        declare(engine)
        engine.sql("CREATE STREAM purchase (customer INT, at TIMESTAMP) ORDERED BY at DISORDER 2 SECONDS")
        engine.push("customer", [created(1, "Bern", 1)])
        engine.push("purchase", [{"customer": 1, "at": "1970-01-01T00:00:02"}])
        run = engine.sql("SELECT c.city FROM purchase p JOIN customer c ON p.customer = c.id").start()
        engine.push("purchase", [{"customer": 1, "at": "1970-01-01T00:00:05"}])
        engine.run_to_end()
        assert [(r["city"], r["_start"].second) for r in run.history().rows()] == [("Bern", 5)]


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1), (2, 2)])
@pytest.mark.parametrize("columns", [KEYED, KEYLESS])
def test_what_stands_survives_restarts(columns: str, before: int, after: int, tmp_path: Path):
    """Also while no query reads it, and when nobody declares it for a while."""
    with hw.connect(runner="inprocess", shards=before, checkpoint=tmp_path) as engine:
        declare(engine, columns)
        run = engine.sql(CITIES, name="gone").start()
        engine.push("customer", [created(i, "Bern", i) for i in range(1, 9)])
        run.stop()
        engine.push("customer", [moved(1, "Bern", "Rome", 10), deleted(2, "Bern", 11)])
    with hw.connect(runner="inprocess", shards=after, checkpoint=tmp_path) as engine:
        engine.sql("CREATE STREAM other (x INT, at INT) ORDERED BY at IN ORDER")
        engine.push("other", [{"x": 1, "at": 1}])  # a tick, with so many shards
    with hw.connect(runner="inprocess", shards=before, checkpoint=tmp_path) as engine:
        declare(engine, columns)
        new = engine.sql(CITIES, name="new").start()
        engine.push("customer", [created(20, "Rome", 20)])
        engine.run_to_end()
        assert at(new, 20) == [("Bern", 6), ("Rome", 2)]


def test_what_is_handed_over_comes_once(tmp_path: Path):
    for tick in range(3):
        with hw.connect(runner="inprocess", shards=2, checkpoint=tmp_path / "checkpoint") as engine:
            declare(engine)
            if not tick:
                engine.push("customer", [created(1, "Bern", 1)])
            engine.sql(CITIES, name="new").start(hw.sinks.parquet(tmp_path / "answers"))
            engine.push("customer", [created(10 + tick, "Rome", 10 + tick)])
            if tick == 2:
                other = engine.sql("SELECT id FROM customer", name="other").start()
                engine.run_to_end()
                assert at(other, 60) == [(1,), (10,), (11,), (12,)]
    found = [pq.read_table(file).to_pylist() for file in (tmp_path / "answers").glob("*.parquet")]
    counted = sorted((row["city"], row["n"], row["_start"].second) for rows in found for row in rows)
    assert counted == [("Bern", 1, 1), ("Rome", 1, 10), ("Rome", 2, 11), ("Rome", 3, 12)]


def test_a_dropped_table_leaves_nothing_behind(tmp_path: Path):
    with hw.connect(runner="inprocess", shards=2, checkpoint=tmp_path) as engine:
        declare(engine)
        engine.push("customer", [created(1, "Bern", 1)])
        engine.sql("DROP TABLE customer")
        declare(engine)
        run = engine.sql(CITIES).start()
        engine.push("customer", [created(2, "Rome", 1)])
        engine.run_to_end()
        assert at(run, 60) == [("Rome", 1)]


# -- random tables ----------------------------------------------------------------------------------------------------

QUERIES = {
    "rows": "SELECT id, city FROM customer",
    "filtered": "SELECT city FROM customer WHERE id > 2",
    "cities": CITIES,
    "pairs": "SELECT a.id, b.id AS other FROM customer a JOIN customer b ON a.city = b.city WHERE a.id < b.id",
    "alone": "SELECT DISTINCT city FROM customer",
}


def random_events(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """A table of six keys, told with disorder of up to two seconds."""
    held: dict[int, str] = {}
    events = []
    for second in range(1, count + 1):
        key, city = chance.randrange(6), chance.choice(["Bern", "Rome", "Oslo"])
        if key not in held:
            events.append(created(key, city, second))
            held[key] = city
        elif chance.random() < 0.5:
            events.append(deleted(key, held.pop(key), second))
        else:
            events.append(moved(key, held[key], city, second))
            held[key] = city
    late = [(event["ts_ms"] + chance.choice([0, 0, 1500]), i) for i, event in enumerate(events)]
    return [events[i] for _, i in sorted(late)]


def check_newcomers(seed: int, columns: str) -> None:
    """From its start on the answer of a newcomer is that of a query that was always there."""
    chance = random.Random(seed)
    events = random_events(chance, 24)
    level = chance.choice(["STRONG", "MIDDLE"])
    shards = chance.randint(1, 3)
    with hw.connect(runner="inprocess", shards=shards) as engine:
        declare(engine, columns)
        always = {n: engine.sql(f"{q} CONSISTENCY {level}", name=n).start() for n, q in QUERIES.items()}
        newcomers: list[tuple[int, str, hw.Run]] = []
        while events:
            size = chance.randint(1, 6)
            engine.push("customer", events[:size])
            events = events[size:]
            name = chance.choice(list(QUERIES))
            run = engine.sql(f"{QUERIES[name]} CONSISTENCY {level}", name=f"{name} {len(newcomers)}").start()
            newcomers.append((engine._core.times.frontier("customer"), name, run))
        engine.run_to_end()
        for frontier, name, run in newcomers:
            for half in range(2, 60):
                if half * SECOND // 2 >= frontier:
                    assert at(run, half / 2) == at(always[name], half / 2), f"seed {seed}: {run.name} at {half / 2}"


@pytest.mark.parametrize("columns", [KEYED, KEYLESS])
def test_newcomers_answer_as_if_they_had_always_been_there(columns: str):
    for seed in range(scaled(2)):
        check_newcomers(seed, columns)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [KEYED, KEYLESS])
def test_many_newcomers(columns: str):
    for seed in range(100, 100 + scaled(40)):
        check_newcomers(fresh(seed), columns)


# -- what is kept -----------------------------------------------------------------------------------------------------


def kept_rows(engine: hw.Engine) -> int:
    records = engine._core.manifest.records.values()
    return sum(record["rows"] for its in records for record in its.values())


@pytest.mark.parametrize("columns", [KEYED, KEYLESS])
@pytest.mark.parametrize("level", ["STRONG", "MIDDLE"])
def test_deleted_keys_are_forgotten(columns: str, level: str):
    """200 keys are created and deleted in each tick."""
    with hw.connect(runner="inprocess", shards=2) as engine:
        declare(engine, columns)
        engine.sql(f"{CITIES} CONSISTENCY {level}").start()
        engine.push("customer", [created(-1, "Oslo", 1)])
        sizes = []
        for tick in range(1, 13):
            keys = range(200 * tick, 200 * tick + 200)
            events = [created(key, "Bern", 10 * tick) for key in keys]
            events += [deleted(key, "Bern", 10 * tick + 5) for key in keys]
            engine.push("customer", events)
            sizes.append(kept_rows(engine))
        assert max(sizes[4:]) <= max(sizes[:4]), sizes
