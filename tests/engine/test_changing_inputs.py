"""Streams that revise themselves: changelogs read again, change events of databases, rows without a time."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater import sinks
from headwater.clock.wall import VirtualClock
from headwater.errors import InputError, StreamError
from headwater.sinks.diverted import read_diverted

EPOCH = datetime(1970, 1, 1)


def engine(**options: Any) -> hw.Engine:
    return hw.connect(runner="inprocess", shards=2, **options)


def history(run: hw.Run) -> list[tuple[Any, ...]]:
    """Snapshots are what counts: equal rows that meet are one."""
    rows = [tuple(row.values()) for row in run.history().rows()]
    changes: dict[tuple, dict[Any, int]] = {}
    for *row, start, end in rows:
        its = changes.setdefault(tuple(row), {})
        its[start] = its.get(start, 0) + 1
        its[end] = its.get(end, 0) - 1
    kept = [(row, at, n) for row, its in changes.items() for at, n in its.items() if n]
    return sorted(kept, key=str)


def in_order(run: hw.Run) -> list[tuple[Any, ...]]:
    """The rows with their intervals, by start."""
    return sorted((tuple(row.values()) for row in run.history().rows()), key=lambda row: row[-2])


def instant(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


# -- our own changelogs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("sink", "numbers"), [("parquet", True), ("parquet", False), ("json", True), ("json", False), ("csv", True)]
)
def test_the_changelog_of_a_query_is_a_stream_again(sink: str, numbers: bool, seed: int, tmp_path: Path):
    chance, type_ = random.Random(seed), "BIGINT" if numbers else "TIMESTAMP"
    query = "SELECT k, COUNT(*) AS n, MAX(v) AS top FROM reading WINDOW(RANGE 10{}) GROUP BY k CONSISTENCY MIDDLE"
    with engine() as e:
        e.sql(
            f"CREATE STREAM reading (k INT, v INT, at {type_}) ORDERED BY at DISORDER 20{'' if numbers else ' MICROSECONDS'}"
        )
        text = query.format("" if numbers else " MICROSECONDS")
        written = e.sql(text, name="written").start(getattr(sinks, sink)(tmp_path / "log"))
        kept = e.sql(text, name="kept").start()
        for base in range(0, 100, 10):
            e.push("reading", [reading(chance, base, numbers) for _ in range(6)])
        e.run_to_end()
        expected = history(kept)
        assert written.progress.rows_out > 0
    option = ", instants => 'numbers'" if numbers else ""
    with engine() as e:
        e.sql(
            "CREATE STREAM log (k INT, n BIGINT, top INT) "
            f"SOURCE {sink}('{tmp_path}/log', changes => 'headwater'{option}, rows_per_tick => 7)"
        )
        again = e.sql("SELECT * FROM log", name="again").start()
        counted = e.sql("SELECT SUM(n) AS rows FROM log", name="counted").start()
        e.run_to_end()
        assert history(again) == expected
        assert history(counted)
    assert "adjust" in ops(tmp_path / "log", sink), "nothing was revised: the test shows nothing"


def reading(chance: random.Random, base: int, numbers: bool) -> dict:
    at = base + chance.randrange(0, 25)
    return {
        "k": chance.randrange(3),
        "v": chance.randrange(9),
        "at": at if numbers else EPOCH + timedelta(microseconds=at),
    }


def ops(folder: Path, kind: str) -> set[str]:
    read = {"parquet": "read_parquet", "json": "read_json", "csv": "read_csv"}[kind]
    return {op for (op,) in duckdb.sql(f"SELECT DISTINCT _op FROM {read}('{folder}/*.{kind}')").fetchall()}


def test_final_answers_are_a_stream_again(tmp_path: Path):
    with engine() as e:
        e.sql("CREATE STREAM s (x INT, at INT) ORDERED BY at IN ORDER")
        e.sql("SELECT x FROM s WINDOW(RANGE 5)").start(sinks.parquet(tmp_path / "out"))
        e.push("s", [{"x": 1, "at": 1}, {"x": 2, "at": 4}])
        e.run_to_end()
    with engine() as e:
        e.sql(
            f"CREATE STREAM t (x INT) SOURCE parquet('{tmp_path}/out', changes => 'headwater', instants => 'numbers')"
        )
        run = e.sql("SELECT COUNT(*) AS n FROM t").start()
        e.run_to_end()
        assert in_order(run) == [(1, 1, 4), (2, 4, 6), (1, 6, 9)]


def test_stable_points_make_answers_final():
    with engine() as e:
        e.sql("CREATE STREAM s (x INT) SOURCE push(changes => 'headwater', instants => 'numbers')")
        run = e.sql("SELECT COUNT(*) AS n FROM s").start()
        e.push(
            "s",
            [{"_op": "insert", "x": 1, "_start": 1, "_end": None}, {"_op": "insert", "x": 2, "_start": 3, "_end": 5}],
        )
        assert run.history().rows() == []
        e.push(
            "s", [{"_op": "adjust", "x": 1, "_start": 1, "_end": None, "_new_end": 9}, {"_op": "stable", "_start": 7}]
        )
        assert in_order(run) == [(1, 1, 3), (2, 3, 5), (1, 5, None)], "the end of the last is not final yet"
        e.push("s", [{"_op": "delete", "x": 2, "_start": 3, "_end": 5}], wait=True)
        assert e.progress().late_rows == 1, "what is final is not changed"


def test_files_without_changes_where_they_are_declared(tmp_path: Path):
    pq.write_table(pa.table({"x": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    with engine() as e:
        e.sql(f"CREATE STREAM s (x INT) SOURCE parquet('{tmp_path}', changes => 'headwater')")
        e.sql("SELECT * FROM s").start()
        with pytest.raises(StreamError, match='BAD_ROW: stream "s" cannot take a row: column "_start" missing'):
            e.run_to_end()


def test_files_with_changes_where_none_are_declared(tmp_path: Path):
    pq.write_table(pa.table({"x": pa.array([1], pa.int32()), "_start": [5]}), tmp_path / "a.parquet")
    with engine() as e:
        e.sql(f"CREATE STREAM s (x INT) SOURCE parquet('{tmp_path}')")
        e.sql("SELECT * FROM s").start()
        with pytest.raises(StreamError, match="CHANGES_UNDECLARED"):
            e.run_to_end()


# -- change events ----------------------------------------------------------------------------------------------------


class Shop:
    """A table with a random life, and what its database's log tells of it."""

    def __init__(self, chance: random.Random, events: int) -> None:
        self.events: list[dict] = []
        self.rows: list[tuple[int, str, int, int, int | None]] = []
        """(id, name, price, from, until), in milliseconds."""
        alive: dict[int, tuple[str, int, int]] = {}
        at = 1
        for number in range(events):
            at += chance.choice([0, 1, 1, 3])
            id_ = chance.randrange(5)
            before = alive.pop(id_, None)
            after = None
            if before is None or chance.random() < 0.7:
                after = alive[id_] = (chance.choice("ab"), chance.randrange(4), at)
            if before is not None and before[2] < at:
                self.rows.append((id_, *before, at))
            op = "d" if after is None else "c" if before is None else "u"
            images = {"before": image(id_, before), "after": image(id_, after)}
            self.events.append({"op": op, **images, "ts_ms": at, "source": {"lsn": number}})
        self.rows += [(id_, *row, None) for id_, row in alive.items()]


def image(id_: int, row: tuple | None) -> dict | None:
    return None if row is None else {"id": id_, "name": row[0], "price": row[1]}


QUERIES = [
    "SELECT id, name, price FROM item",
    "SELECT name, COUNT(*) AS n, SUM(price) AS total FROM item GROUP BY name",
    "SELECT a.id, b.id AS other FROM item a JOIN item b ON a.price = b.price AND a.id < b.id",
    "SELECT id, price FROM item WHERE price > 1",
    "SELECT DISTINCT name FROM item",
]


@pytest.mark.parametrize("consistency", ["STRONG", "MIDDLE"])
@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
@pytest.mark.parametrize("seed", range(2))
def test_change_events_make_a_changing_table(seed: int, key: str, consistency: str):
    """Whatever the order in which they come; against the intervals that the model of the shop has."""
    chance = random.Random(seed)
    shop = Shop(chance, 60)
    events = list(shop.events)
    for i in range(0, len(events) - 4, 4):
        part = events[i : i + 4]
        chance.shuffle(part)
        events[i : i + 4] = part
    if key:  # then nobody needs to know what was before
        events = [{**event, "before": event["before"] if event["op"] == "d" else None} for event in events]
    with engine() as e:
        declared = f"item (id INT{key}, name STRING, price INT)"
        e.sql(f"CREATE TABLE {declared} SOURCE push(changes => 'debezium') DISORDER 30 MILLISECONDS")
        runs = [e.sql(f"{q} CONSISTENCY {consistency}", name=f"q{i}").start() for i, q in enumerate(QUERIES)]
        for i in range(0, len(events), 7):
            e.push("item", events[i : i + 7])
        e.run_to_end()
        found = [history(run) for run in runs]
    assert found == expected(shop)


def expected(shop: Shop) -> list:
    with engine() as e:
        e.sql("CREATE TABLE item (id INT, name STRING, price INT)")
        runs = [e.sql(q, name=f"q{i}").start() for i, q in enumerate(QUERIES)]
        names = ("id", "name", "price")
        rows = [
            {
                **dict(zip(names, row, strict=True)),
                "_start": instant(start),
                "_end": None if end is None else instant(end),
            }
            for *row, start, end in shop.rows
        ]
        e.push("item", rows)
        e.run_to_end()
        return [history(run) for run in runs]


@pytest.mark.parametrize("seed", range(2))
def test_snapshots_of_the_table_are_those_of_a_database(seed: int):
    shop = Shop(random.Random(seed), 80)
    with engine() as e:
        e.sql("CREATE TABLE item (id INT PRIMARY KEY, name STRING, price INT) SOURCE push(changes => 'debezium')")
        run = e.sql("SELECT id, name, price FROM item").start()
        totals = e.sql("SELECT name, SUM(price) AS total FROM item GROUP BY name", name="totals").start()
        e.push("item", shop.events)
        e.run_to_end()
        database = duckdb.connect()
        database.execute("CREATE TABLE item (id INT PRIMARY KEY, name TEXT, price INT)")
        for event, after in zip(shop.events, [*shop.events[1:], None], strict=True):
            apply(database, event)
            if after is None or after["ts_ms"] > event["ts_ms"]:
                at = instant(event["ts_ms"])
                assert rows_of(run.snapshot(at=at)) == sorted(database.sql("FROM item").fetchall())
                grouped = database.sql("SELECT name, SUM(price) FROM item GROUP BY name").fetchall()
                assert rows_of(totals.snapshot(at=at)) == sorted(grouped)


def rows_of(snapshot: Any) -> list[tuple]:
    return sorted(tuple(row.values()) for row in snapshot.rows())


def apply(database: Any, event: dict) -> None:
    if event["op"] == "d":
        database.execute("DELETE FROM item WHERE id = ?", [event["before"]["id"]])
    else:
        database.execute("INSERT OR REPLACE INTO item VALUES (?, ?, ?)", list(event["after"].values()))


def test_change_events_from_files_and_malformed_ones(tmp_path: Path):
    lines = [
        {"op": "c", "before": None, "after": {"id": 1, "v": "a"}, "ts_ms": 1},
        {"op": "u", "before": None, "after": {"id": 1, "v": "b"}, "ts_ms": 2},
        {"op": "d", "before": {"id": 1, "v": "a"}, "after": None, "ts_ms": 3},
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with engine(checkpoint=tmp_path / "checkpoint") as e:
        e.sql(
            f"CREATE TABLE t (id INT, v STRING) SOURCE json('{tmp_path}/in', changes => 'debezium', malformed => 'divert')"
        )
        run = e.sql("SELECT * FROM t").start()
        e.run_to_end()
        assert in_order(run) == [(1, "a", instant(1), instant(3))]
    (bad,) = read_diverted(tmp_path / "checkpoint", "t_bad").rows()
    assert bad["reason"] == 'the event has no "before"'


# -- rows without a time ----------------------------------------------------------------------------------------------


def test_rows_without_a_time_are_stamped_when_they_come():
    clock = VirtualClock(now=1_000_000)
    with engine(clock=clock) as e:
        e.sql("CREATE STREAM s (x INT, _arrived TIMESTAMP) SOURCE push()")
        run = e.sql("SELECT COUNT(*) AS n, MAX(_arrived) AS last FROM s WINDOW(RANGE 10 SECONDS)").start()
        e.push("s", [{"x": 1}])
        clock.advance(2_000_000)
        e.push("s", [{"x": 2}, {"x": 3}])
        e.run_to_end()
        rows = sorted((tuple(r.values()) for r in run.history().rows()), key=lambda row: row[2])
    assert [n for n, *_ in rows] == [1, 3, 2]
    assert all(row[1] == row[2] for row in rows[:2]), "a row is valid from when it came"
    assert rows[1][2] - rows[0][2] >= timedelta(seconds=2)


def test_files_without_a_time_are_streams_too(tmp_path: Path):
    pq.write_table(pa.table({"x": pa.array([1, 2], pa.int32())}), tmp_path / "a.parquet")
    with engine() as e:
        e.sql(f"CREATE STREAM s (x INT) SOURCE parquet('{tmp_path}')")
        run = e.sql("SELECT SUM(x) AS total FROM s WINDOW(RANGE 1 HOUR)").start()
        e.run_to_end()
        assert [row["total"] for row in run.history().rows()] == [3]


def test_any_source_can_be_stamped_on_arrival():
    with engine() as e:
        e.sql(
            "CREATE STREAM bid (price BIGINT, _arrived TIMESTAMP) SOURCE nexmark('bid', events => 100, paced => false)"
        )
        run = e.sql("SELECT COUNT(*) AS n, COUNT(DISTINCT _arrived) AS ticks FROM bid WINDOW(RANGE 1 HOUR)").start()
        e.run_to_end()
        assert [tuple(row.values())[:2] for row in run.history().rows()] == [(92, 1)]


# -- heartbeats of the source, and late rows --------------------------------------------------------------------------


def test_the_source_says_itself_how_far_it_is():
    with engine() as e:
        e.sql("CREATE STREAM s (x INT, at INT, done INT) ORDERED BY at DISORDER 1000 HEARTBEAT FROM SOURCE (done)")
        run = e.sql("SELECT COUNT(*) AS n FROM s WINDOW(RANGE 5)").start()
        e.push("s", [{"x": 1, "at": 10}, {"x": 2, "at": 12}])
        assert run.history().rows() == []
        e.push("s", [{"done": 20}])
        assert in_order(run) == [(1, 10, 12), (2, 12, 15), (1, 15, 17)]
        e.push("s", [{"x": 3, "at": 20}, {"x": 4, "at": 21}])
        assert e.progress().late_rows == 1


def test_a_row_that_is_adjusted_keeps_its_original_time():
    with engine() as e:
        e.sql("CREATE STREAM s (x INT, at INT, _original_ts INT) ORDERED BY at IN ORDER LATE ROWS ADJUST")
        run = e.sql("SELECT * FROM s").start()
        e.push("s", [{"x": 1, "at": 10}])
        e.push("s", [{"x": 2, "at": 4}])
        e.run_to_end()
        found = [tuple(r.values())[:3] for r in run.history().rows()]
    assert sorted(found, key=str) == [(1, 10, None), (2, 10, 4)]


def test_streams_are_shown_with_what_came_of_them(tmp_path: Path):
    with engine(checkpoint=tmp_path) as e:
        e.sql("CREATE STREAM s (x INT, at INT) SOURCE push(malformed => 'divert') ORDERED BY at IN ORDER")
        e.sql("CREATE STREAM idle (x INT, at INT) ORDERED BY at IN ORDER")
        e.sql("SELECT * FROM s").start()
        e.push("s", [{"x": 1, "at": 10}, {"x": 1, "at": 1_200}])
        e.push("s", [{"x": 1, "at": 5}, {"x": 1, "at": None}])
        head, _, idle, shown = e.sql("SHOW STREAMS").splitlines()
        assert head.split()[-7:] == ["rows", "late", "malformed", "final", "before", "late", "by"]
        assert shown.split()[-8:] == ["2", "1", "1", "1,200", "1", "by", "IN", "ORDER"]
        assert idle.split()[-5:] == ["0", "0", "0", "-", "-"]
        e.run_to_end()
        assert "the end" in e.sql("SHOW STREAMS LIKE 's'")


def test_only_some_streams_are_pushed_into(tmp_path: Path):
    with engine() as e:
        e.sql(f"CREATE STREAM s (x INT) SOURCE parquet('{tmp_path}')")
        with pytest.raises(InputError, match="CANNOT_PUSH"):
            e.push("s", [{"x": 1}])


# -- changes of what is not there -------------------------------------------------------------------------------------

GONE = {"_op": "delete", "x": 2, "_start": 2, "_end": 9}


def changing(e: hw.Engine, options: str = "") -> hw.Run:
    e.sql(f"CREATE STREAM s (x INT) SOURCE push(changes => 'headwater', instants => 'numbers'{options})")
    return e.sql("SELECT COUNT(*) AS n FROM s").start()


def test_a_change_of_what_is_not_there_is_a_mistake():
    with engine() as e:
        changing(e)
        e.push("s", [{"_op": "insert", "x": 1, "_start": 1, "_end": None}])
        with pytest.raises(StreamError) as caught:
            e.push("s", [GONE])
    message = 'UNKNOWN_RETRACTION: stream "s" changes a row that is not there: (x=2) in [2, 9)'
    assert str(caught.value).startswith(message)


def test_it_may_be_left_out_instead():
    with engine() as e:
        run = changing(e, ", malformed => 'divert'")
        e.push("s", [{"_op": "insert", "x": 1, "_start": 1, "_end": None}, GONE])
        e.push("s", [{"_op": "stable", "_start": 20}])
        e.run_to_end()
        assert in_order(run) == [(1, 1, None)]


def test_a_query_that_begins_later_is_not_told_of_what_came_before():
    with engine() as e:
        e.sql("CREATE STREAM s (x INT) SOURCE push(changes => 'headwater', instants => 'numbers')")
        e.push("s", [{"_op": "insert", "x": 2, "_start": 2, "_end": 9}])
        run = e.sql("SELECT x FROM s").start()
        e.push("s", [GONE, {"_op": "insert", "x": 3, "_start": 4, "_end": 5}])
        e.run_to_end()
        assert in_order(run) == [(3, 4, 5)]


@pytest.mark.parametrize("consistency", ["STRONG", "MIDDLE"])
@pytest.mark.parametrize("seed", range(3))
def test_changes_in_any_order_come_to_the_same(seed: int, consistency: str):
    chance = random.Random(seed)
    elements, final = [], []
    for x in range(12):
        start, end = chance.randrange(20), None
        elements.append({"_op": "insert", "x": x % 4, "_start": start, "_end": end})
        for _ in range(chance.randrange(3)):
            shorter = start + chance.randrange(0, 30 if end is None else end - start + 1)
            if shorter == end:
                continue
            elements.append({"_op": "adjust", "x": x % 4, "_start": start, "_end": end, "_new_end": shorter})
            end = shorter
            if end == start:
                break
        final += [{"_op": "insert", "x": x % 4, "_start": start, "_end": end}] if end != start else []
    chance.shuffle(elements)
    found = []
    for rows, cut in ((final, 100), (elements, 3)):
        with engine() as e:
            e.sql(
                "CREATE STREAM s (x INT) SOURCE push(changes => 'headwater', instants => 'numbers', ordered => false)"
            )
            run = e.sql(f"SELECT x, COUNT(*) AS n FROM s GROUP BY x CONSISTENCY {consistency}").start()
            for i in range(0, len(rows), cut):
                e.push("s", rows[i : i + cut])
            e.run_to_end()
            found.append(history(run))
    assert found[0] == found[1]


def test_late_change_events_go_into_their_stream(tmp_path: Path):
    """Whole: with the sign of what they would have done."""
    with engine(checkpoint=tmp_path) as e:
        e.sql(
            "CREATE TABLE t (id INT, v STRING) SOURCE push(changes => 'debezium') "
            "DISORDER 1 SECOND LATE ROWS DIVERT INTO missed"
        )
        run = e.sql("SELECT * FROM t").start()
        missed = e.sql("SELECT id, v, _sign FROM missed", name="missed_rows").start()
        e.push("t", [{"op": "c", "after": {"id": 1, "v": "a"}, "ts_ms": 5_000}])
        late = {"op": "u", "before": {"id": 1, "v": "a"}, "after": {"id": 1, "v": "b"}, "ts_ms": 3_000}
        e.push("t", [late, {"op": "d", "before": {"id": 1, "v": "a"}, "ts_ms": 6_000}])
        e.run_to_end()
        assert in_order(run) == [(1, "a", instant(5_000), instant(6_000))]
        assert sorted(row[:3] for row in in_order(missed)) == [(1, "a", -1), (1, "b", 1)]


def test_counts_make_answers_final_whatever_the_order():
    """CEDR table 5: the chain of x = 0 is put together, and after four changes nothing before 8 comes any more."""
    with engine() as e:
        option = "changes => 'headwater', instants => 'numbers', ordered => false, counted => true"
        e.sql(f"CREATE STREAM s (x INT) SOURCE push({option})")
        run = e.sql("SELECT x FROM s").start()
        for end, new_end in ((10, 8), (6, 4), (8, 6)):
            e.push("s", [{"_op": "adjust", "x": 0, "_start": 0, "_end": end, "_new_end": new_end}])
        e.push("s", [{"_op": "insert", "x": 0, "_start": 0, "_end": 10}])
        e.push("s", [{"_op": "cti", "_start": 0, "_end": 8, "_count": 4}])
        assert in_order(run) == []
        e.push("s", [{"_op": "insert", "x": 1, "_start": 1, "_end": 5}])
        assert in_order(run) == [(0, 0, 4), (1, 1, 5)]
        assert run.frontier == 8
