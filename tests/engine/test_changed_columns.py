"""A declaration may get other columns: queries that do not read them go on with their state, others are refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.errors import InputError

PLAIN = "k INT, v INT, at INT"
QUERIES = {
    "counted": "SELECT k, COUNT(*) AS n FROM s WINDOW(RANGE 10) GROUP BY k",
    "largest": "SELECT MAX(v) AS v FROM s WINDOW(RANGE 10 SLIDE 5) WHERE k > 0",
    "pairs": "SELECT a.k, b.v FROM s WINDOW(RANGE 10) a JOIN s WINDOW(RANGE 10) b ON a.k = b.k WHERE a.v < b.v",
    "distinct": "SELECT DISTINCT v FROM s WINDOW(RANGE 10)",
    "rows": "SELECT k, v FROM s WHERE v > 1",
}
ROWS = [{"k": 1, "v": 5, "at": 1}, {"k": 2, "v": 3, "at": 2}, {"k": 1, "v": 2, "at": 4}, {"k": 2, "v": 9, "at": 6}]


def run(folder: Path, columns: str, rows: list[dict], *, end: bool = False) -> dict[str, list[tuple]]:
    with hw.connect(runner="inprocess", shards=2, checkpoint=folder / "checkpoint") as engine:
        engine.sql(f"CREATE STREAM s ({columns}) ORDERED BY at IN ORDER")
        with engine.held():
            for name, sql in QUERIES.items():
                engine.sql(sql, name=name).start(hw.sinks.parquet(folder / name))
        engine.push("s", rows)
        if end:
            engine.run_to_end()
    found = {}
    for name in QUERIES:
        files = [pq.read_table(file).to_pylist() for file in (folder / name).glob("*.parquet")]
        found[name] = sorted(tuple(row.values()) for part in files for row in part)
    return found


@pytest.mark.parametrize(
    "columns",
    [
        "k INT, v INT, at INT, extra STRING",
        "extra STRING, k INT, v INT, at INT",
        "at INT, v INT, k INT",
        "k INT, other DOUBLE, v INT, extra STRING, at INT",
    ],
)
def test_columns_that_no_query_reads_do_not_matter(columns: str, tmp_path: Path):
    expected = run(tmp_path / "undisturbed", PLAIN, ROWS, end=True)
    run(tmp_path / "changed", PLAIN, ROWS[:2])
    run(tmp_path / "changed", columns, [ROWS[2] | {"extra": "new"} if "extra" in columns else ROWS[2]])
    assert run(tmp_path / "changed", PLAIN, ROWS[3:], end=True) == expected
    assert all(expected.values())


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("k SMALLINT, v INT, at INT", 'Column "k" of "s" was INT and is SMALLINT now.'),
        ("k STRING, v INT, at INT", 'Column "k" of "s" was INT and is STRING now.'),
    ],
)
def test_a_real_difference_is_refused(columns: str, told: str, tmp_path: Path):
    run(tmp_path, PLAIN, ROWS[:2])
    with hw.connect(runner="inprocess", shards=2, checkpoint=tmp_path / "checkpoint") as engine:
        engine.sql(f"CREATE STREAM s ({columns}) ORDERED BY at IN ORDER")
        with pytest.raises(InputError, match="QUERY_CHANGED") as caught:
            engine.sql(QUERIES["counted"], name="counted").start(hw.sinks.noop())
    assert caught.value.detail == told
    assert caught.value.hint.startswith(
        'To go on, declare "k" of "s" as INT again; to begin anew, start it under another'
    )
    assert 'engine.drop("counted")' in caught.value.hint
    run(tmp_path, PLAIN, ROWS[2:])  # nothing was lost


@pytest.mark.parametrize(
    ("time", "told"), [("other DISORDER 2", '"other", a number'), ("day DISORDER 2 DAYS", '"day", a TIMESTAMP')]
)
def test_another_time_is_refused(time: str, told: str, tmp_path: Path):
    """It went on with the frontier of the old one: either nothing became final, or every row was late."""
    columns = f"{PLAIN}, other INT, day DATE"
    run(tmp_path, columns, ROWS[:2])
    with hw.connect(runner="inprocess", shards=2, checkpoint=tmp_path / "checkpoint") as engine:
        engine.sql(f"CREATE STREAM s ({columns}) ORDERED BY {time}")
        query = QUERIES["counted"]
        query = re.sub(r"RANGE (\d+)", r"RANGE \1 MICROSECONDS", query) if "DAYS" in time else query
        with pytest.raises(InputError, match="STREAM_CHANGED") as caught:
            engine.sql(query, name="counted").start(hw.sinks.noop())
    assert caught.value.detail == f'It was told by "at", a number, and is told by {told} now.'
    run(tmp_path, columns, ROWS[2:])


def test_files_get_another_column(tmp_path: Path):
    """Of a folder, whose files have it from some time on."""
    (tmp_path / "in").mkdir()
    for i, declared in enumerate(("k INT, at INT", "k INT, at INT, extra STRING")):
        rows = [{"k": 1, "at": 10 * i + j} | ({"extra": "x"} if i else {}) for j in range(3)]
        types = {"k": pa.int32(), "at": pa.int32()} | ({"extra": pa.string()} if i else {})
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(types)), tmp_path / "in" / f"{i}.parquet")
        with hw.connect(runner="inprocess", checkpoint=tmp_path / "checkpoint") as engine:
            engine.sql(f"CREATE STREAM s ({declared}) SOURCE parquet('{tmp_path}/in') ORDERED BY at IN ORDER")
            counted = engine.sql("SELECT COUNT(*) AS n FROM s WINDOW(RANGE 20)", name="counted").start()
            engine.run_to_end(end_streams=i == 1)
    assert [row["n"] for row in counted.snapshot(at=12).rows()] == [6]


# -- tables ------------------------------------------------------------------------------------------------------------

KEYED = "CREATE TABLE t ({}) SOURCE push(changes => 'debezium')", "id INT PRIMARY KEY, city STRING"
CHANGED = "CREATE TABLE t ({}) SOURCE push(changes => 'headwater', instants => 'numbers'{})"
TABLES = {
    "keyed": KEYED,
    "ordered": (CHANGED.format("{}", ""), "id INT, city STRING"),
    "checked": (CHANGED.format("{}", ", checked => true"), "id INT, city STRING"),
    "unordered": (CHANGED.format("{}", ", ordered => false"), "id INT, city STRING"),
}
CITIES = [(1, "Bern", 1), (2, "Ulm", 2), (1, "Basel", 4), (3, "Graz", 5), (2, None, 6), (4, "Wien", 7)]
"""(key, city from now on or None, time)"""


def events(kind: str, first: int, last: int, more: dict) -> list[dict]:
    """The changes from one to another in the form of a kind of table."""
    found, cities = [], {}
    for i, (key, city, at) in enumerate(CITIES[:last]):
        if kind == "signed":
            before, after = cities.get(key), city and {"id": key, "city": city}
            cities[key] = after
            op = "d" if after is None else "c" if before is None else "u"
            event = [{"op": op, "before": before, "after": after, "ts_ms": at}]
        elif kind == "keyed":
            op = "d" if city is None else "c"
            after = None if city is None else {"id": key, "city": city} | (more if i >= first else {})
            event = [{"op": op, "before": {"id": key}, "after": after, "ts_ms": at}]
        else:
            was = cities.pop(key, None)
            gone = [] if was is None else [was | {"_weight": -1, "_end": None}, was | {"_weight": 1, "_end": at}]
            event = [{name: v for name, v in row.items() if v is not None} for row in gone]
            if city is not None:
                cities[key] = {"id": key, "city": city, "_start": at} | (more if i >= first else {})
                event.append(cities[key] | {"_weight": 1})
        found += event if i >= first else []
    return found


def run_table(folder: Path, kind: str, columns: str, rows: list[dict], *, shards: int, late: bool, end: bool) -> tuple:
    """What two queries say of all time, of which one may begin later; and what a third one says of the end."""
    declare = TABLES[kind][0]
    with hw.connect(runner="inprocess", shards=shards, checkpoint=folder / "checkpoint") as engine:
        engine.sql(declare.format(columns))
        with engine.held():
            for name in ("early", "late") if late else ("early",):
                engine.sql("SELECT id, city FROM t", name=name).start(hw.sinks.parquet(folder / name))
        for row in rows:
            engine.push("t", [row])
        if not end:
            return ()
        whole = engine.sql("SELECT * FROM t", name="whole").start()
        engine.run_to_end()
        stands = sorted(tuple(map(str, row.values())) for row in whole.history().rows() if row["_end"] is None)
    files = [pq.read_table(file).to_pylist() for n in ("early", "late") for file in (folder / n).glob("*.parquet")]
    return sorted(str(row) for part in files for row in part), stands


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_that_holds_rows_gets_columns(kind: str, tmp_path: Path):
    """Others that may be NULL, in any order: its rows are read with NULL, and queries go on."""
    plain = TABLES[kind][1]
    more = f"age INT, {', '.join(reversed(plain.split(', ')))}, extra STRING"
    runs = {}
    for name, columns in (("undisturbed", plain), ("changed", more)):
        steps = [(0, 2, plain, False), (2, 3, plain, True), (3, 5, columns, True), (5, 6, columns, True)]
        for first, last, declared, late in steps:
            values = {} if declared == plain else {"age": 7, "extra": "x"}
            rows = events(kind, first, last, values)
            shards = 2 if first != 5 else 3
            runs[name] = run_table(tmp_path / name, kind, declared, rows, shards=shards, late=late, end=last == 6)
    assert runs["changed"][0] == runs["undisturbed"][0] != []
    assert len(runs["changed"][1]) == len(runs["undisturbed"][1]) == 3
    assert {row[0] for row in runs["changed"][1]} == {"None", "7"}


@pytest.mark.parametrize("kind", [*TABLES, "signed"])
@pytest.mark.parametrize("more", ["", "age INT, "])
def test_a_table_that_holds_rows_gets_wider_columns(
    kind: str, more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if kind == "signed":
        monkeypatch.setitem(TABLES, kind, (KEYED[0], "id INT, city STRING"))
        more = ""
    plain, wide = (
        f"{first}{TABLES[kind][1].replace('INT', type_)}" for first, type_ in (("", "INT"), (more, "BIGINT"))
    )
    monkeypatch.setattr(sys.modules[__name__], "CITIES", [*CITIES, (2**40, "Linz", 8), (1, None, 9)])
    runs = {}
    for name, columns in (("wide", wide), ("changed", plain)):
        steps = [(0, 2, columns, 2), (2, 4, columns, 2), (4, 7, wide, 3), (7, 8, wide, 1)]
        for first, last, declared, shards in steps:
            rows, late = events(kind, first, last, {}), first > 0
            runs[name] = run_table(tmp_path / name, kind, declared, rows, shards=shards, late=late, end=last == 8)
    assert runs["changed"] == runs["wide"]
    assert len(runs["wide"][1]) == 3


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("keyed", "id INT PRIMARY KEY, city STRING, age INT NOT NULL"),
        ("keyed", "id INT PRIMARY KEY"),
        ("keyed", "id STRING PRIMARY KEY, city STRING"),
        ("keyed", "id INT, city STRING PRIMARY KEY"),
        ("signed", "id INT, city STRING, age INT"),
    ],
)
def test_other_changes_of_a_table_that_holds_rows_are_refused(kind: str, columns: str, tmp_path: Path):
    declare, plain = KEYED[0], KEYED[1] if kind == "keyed" else "id INT, city STRING"
    with hw.connect(runner="inprocess", checkpoint=tmp_path) as engine:
        engine.sql(declare.format(plain))
        engine.push("t", [{"op": "c", "after": {"id": 1, "city": "Bern"}, "ts_ms": 1}])
    with hw.connect(runner="inprocess", checkpoint=tmp_path) as engine:
        with pytest.raises(InputError, match='STREAM_CHANGED: "t" is declared otherwise') as caught:
            engine.sql(declare.format(columns))
        assert "DROP it then" in caught.value.hint
    with hw.connect(runner="inprocess", checkpoint=tmp_path) as engine:
        engine.sql(declare.format(plain))  # nothing was lost
        stands = engine.sql("SELECT * FROM t").start()
        engine.run_to_end()
        assert [row["city"] for row in stands.history().rows()] == ["Bern"]


def test_changes_that_wait_for_their_row_wait_on_under_another_declaration(tmp_path: Path):
    declare, plain = TABLES["unordered"]
    row = {"id": 1, "city": "Bern", "_start": 1}
    ended = [row | {"_weight": -1}, row | {"_weight": 1, "_end": 5}]
    for columns, rows in ((plain, [ended]), (f"{plain}, age INT", []), (f"age INT, {plain}", [[row | {"_weight": 1}]])):
        with hw.connect(runner="inprocess", shards=2, checkpoint=tmp_path) as engine:
            engine.sql(declare.format(columns))
            told = engine.sql("SELECT id FROM t", name="told").start(hw.sinks.memory())
            for its in rows:
                engine.push("t", its)
            engine.run_to_end(end_streams="age INT, id" in columns)
    assert [(row["id"], row["_start"], row["_end"]) for row in told.history().rows()] == [(1, 1, 5)]
