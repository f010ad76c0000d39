"""Of a source only the columns are read that queries want; what becomes of late and malformed rows does not depend on it."""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.errors import HeadwaterError
from headwater.model.schema import Schema
from headwater.sources.memory import MemorySource
from headwater.sources.nexmark import NexmarkSource
from headwater.sources.nexmark_generator import NEXMARK_SCHEMAS, NexmarkGenerator

WIDE = 30
COLUMNS = ", ".join(["at BIGINT", *(f"c{i} BIGINT" for i in range(WIDE - 1))])


def write_wide(folder: Path, name: str, first: int, rows: int = 10) -> None:
    folder.mkdir(exist_ok=True)
    at = pa.array(range(first, first + rows), pa.int64())
    hidden = folder / f".{name}.parquet"
    pq.write_table(pa.table({"at": at} | {f"c{i}": at for i in range(WIDE - 1)}), hidden)
    hidden.rename(folder / f"{name}.parquet")  # whole at once: the folder may be watched


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns that are read of each file."""
    found: list[list[str]] = []
    whole = pq.ParquetFile.iter_batches

    def counted(self: pq.ParquetFile, size: int, groups: range, columns: list[str], **options: Any) -> Any:
        found.append(columns)
        return whole(self, size, groups, columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    return found


def declare(engine: hw.Engine, folder: Path, more: str = "") -> None:
    engine.sql(f"CREATE STREAM s ({COLUMNS}) SOURCE parquet('{folder}'{more}) ORDERED BY at IN ORDER")


def test_two_of_thirty_columns(tmp_path: Path, read: list[list[str]]):
    write_wide(tmp_path / "in", "0", 0)
    with hw.connect(runner="inprocess") as engine:
        declare(engine, tmp_path / "in", ", follow => false")
        run = engine.sql("SELECT at, c7 FROM s WHERE c7 > 3").start()
        engine.run_to_end()
        assert sorted(row["c7"] for row in run.history().rows()) == [4, 5, 6, 7, 8, 9]
    assert read == [["at", "c7"]]


def test_the_time_is_read_for_whoever_only_counts(tmp_path: Path, read: list[list[str]]):
    write_wide(tmp_path / "in", "0", 0)
    with hw.connect(runner="inprocess") as engine:
        declare(engine, tmp_path / "in", ", follow => false")
        run = engine.sql("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]").start()
        engine.run_to_end()
        assert [row["n"] for row in run.history().rows()] == [10]
    ((*columns,),) = read
    assert "at" in columns
    assert len(columns) <= 2


def test_queries_come_and_go(tmp_path: Path, read: list[list[str]]):
    folder = tmp_path / "in"
    folder.mkdir()
    with hw.connect(runner="inprocess") as engine:
        declare(engine, folder)
        one = engine.sql("SELECT c1 FROM s", name="one").start()
        write_wide(folder, "0", 0)
        engine.run_to_end(end_streams=False)
        two = engine.sql("SELECT c2, SUM(c3) AS n FROM s [RANGE 5] GROUP BY c2", name="two").start()
        write_wide(folder, "1", 10)
        engine.run_to_end(end_streams=False)
        engine.drop("one")
        write_wide(folder, "2", 20)
        engine.run_to_end()
        assert len(one.history().rows()) == 20
        assert len(two.history().rows()) == 20
    assert read == [["at", "c1"], ["at", "c1", "c2", "c3"], ["at", "c2", "c3"]]


def test_the_rule_can_be_switched_off(tmp_path: Path, read: list[list[str]]):
    write_wide(tmp_path / "in", "0", 0)
    with hw.connect(runner="inprocess") as engine:
        declare(engine, tmp_path / "in", ", follow => false")
        engine.sql("SET without_rules = 'prune_columns'; SELECT c1 FROM s").start()
        engine.run_to_end()
    assert [len(columns) for columns in read] == [WIDE]


def test_explain_says_what_is_read():
    with hw.connect(runner="inprocess") as engine:
        engine.sql(f"CREATE STREAM s ({COLUMNS}) ORDERED BY at IN ORDER")
        text = engine.sql("EXPLAIN PHYSICAL VERBOSE SELECT c3 FROM s WHERE c5 > 1")
    assert "reads c3, c5" in text
    assert "prune_columns x1" in text


# -- late and malformed -----------------------------------------------------------------------------------------------

DECLARED = "at BIGINT, k INT, name STRING, must INT NOT NULL, price DECIMAL(8, 2)"


def write_rows(path: Path, rows: list[dict[str, Any]], format_: str, schema: pa.Schema) -> None:
    table = pa.Table.from_pylist(rows, schema)
    if format_ == "parquet":
        pq.write_table(table, path.with_suffix(".parquet"), row_group_size=2)
    elif format_ == "csv":
        pc.write_csv(table, path.with_suffix(".csv"))
    else:
        path.with_suffix(".json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_odd(folder: Path, format_: str, seed: int) -> None:
    """Files in some of which columns have other types, are missing, or have values that are no such thing."""
    rng = random.Random(seed)
    folder.mkdir()
    for number in range(6):
        fields = {"at": pa.int64(), "k": pa.int64(), "name": pa.string(), "must": pa.int32(), "price": pa.string()}
        large = rng.random() < 0.5
        if not large:
            fields["k"] = pa.int32()
        if rng.random() < 0.2:
            del fields[rng.choice(["k", "name", "must", "price"])]
        rows = [
            {
                "at": None if rng.random() < 0.02 else 10 * number + i - (15 if rng.random() < 0.1 else 0),
                "k": rng.choice([1, 2, None, 2**40 if large and rng.random() < 0.3 else 3]),
                "name": rng.choice(["a", "b", None]),
                "must": None if rng.random() < 0.05 else i,
                "price": "much" if rng.random() < 0.03 else "1.25",
            }
            for i in range(10)
        ]
        schema = pa.schema(list(fields.items()))
        write_rows(folder / str(number), [{n: row[n] for n in fields} for row in rows], format_, schema)


QUERIES = {
    "one column": ["SELECT k FROM s"],
    "a sum": ["SELECT name, COUNT(*) AS n FROM s [RANGE 20 SLIDE 10] GROUP BY name"],
    "late rows, too": ["SELECT must FROM s", "SELECT name FROM s_late", "SELECT price, k FROM s_late"],
    "only late rows": ["SELECT k FROM s_late"],
    "malformed ones, too": ["SELECT at FROM s", "SELECT reason, row FROM s_bad"],
}


def outcome(folder: Path, format_: str, queries: list[str], clauses: str, rules: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    malformed = "fail" if "ERROR" in clauses else "divert"
    source = f"{format_}('{folder}', follow => false, rows_per_tick => 10, malformed => '{malformed}')"
    try:
        with hw.connect(runner="inprocess") as engine:
            engine.sql(f"SET without_rules = '{rules}'; CREATE STREAM s ({DECLARED}) SOURCE {source} {clauses}")
            with engine.held():  # otherwise the first rows may come before the last query
                runs = [engine.sql(query).start() for query in queries]
            engine.run_to_end()
            found["histories"] = [sorted(map(str, run.history().rows())) for run in runs]
            found["counts"] = engine.sql("SHOW STREAMS")
            for stream in ("s_late", "s_bad"):
                found[stream] = sorted(map(str, engine.diverted(stream).rows()))
    except HeadwaterError as problem:
        found["error"] = str(problem)
    return found


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
@pytest.mark.parametrize("name", QUERIES)
def test_late_and_malformed_rows_are_what_they_are(
    name: str, format_: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    clauses = "ORDERED BY at DISORDER 2"
    for seed in range(2 if format_ == "parquet" else 1):
        folder = tmp_path / f"{seed}"
        write_odd(folder, format_, seed)
        caplog.clear()
        narrow = outcome(folder, format_, QUERIES[name], clauses, "")
        told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        caplog.clear()
        assert narrow == outcome(folder, format_, QUERIES[name], clauses, "prune_columns")
        assert told == [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert narrow["histories"][0]


@pytest.mark.parametrize("policy", ["ERROR", "ADJUST", "DROP"])
def test_whatever_becomes_of_late_rows(policy: str, tmp_path: Path):
    clauses = f"ORDERED BY at DISORDER 2 LATE ROWS {policy}"
    for seed in range(2):
        folder = tmp_path / f"{seed}"
        write_odd(folder, "parquet", seed)
        narrow = outcome(folder, "parquet", ["SELECT at, k FROM s"], clauses, "")
        assert narrow == outcome(folder, "parquet", ["SELECT at, k FROM s"], clauses, "prune_columns")
        assert ("error" in narrow) is (policy == "ERROR")


def test_a_file_with_a_late_row_is_read_once_more(tmp_path: Path, read: list[list[str]]):
    for number, first in enumerate((100, 0, 200)):
        write_wide(tmp_path / "in", str(number), first)
    with hw.connect(runner="inprocess") as engine:
        declare(engine, tmp_path / "in", ", follow => false, rows_per_tick => 10")
        engine.sql("SELECT c1 FROM s").start()
        engine.run_to_end()
        assert len(engine.diverted("s_late").rows()[0]) == WIDE + 1
    assert list(map(len, read)) == [2, 2, WIDE, 2]


# -- readers ----------------------------------------------------------------------------------------------------------


def test_what_was_pushed_into_a_folder_is_read_by_columns():
    source = MemorySource(Schema.of(x="BIGINT", y="INT", ts="BIGINT"))
    source.push([{"x": 1, "y": 2, "ts": 10}])
    (split,) = source.poll(None, 1000).splits
    (piece,) = source.reader.read(split, {"ts"})
    assert piece.rows.to_pylist() == [{"ts": 10}]
    assert piece.left_out == {"x", "y"}


def test_a_generator_makes_what_is_wanted():
    schema = NEXMARK_SCHEMAS["bid"]
    source = NexmarkSource(NexmarkGenerator("bid", events=1000), schema, paced=False)
    (split,) = source.poll(None, 1000).splits
    (whole,) = source.reader.read(split)
    (piece,) = source.reader.read(split, {"price"})
    assert piece.rows.schema.names == ["price"]
    assert piece.rows.column(0) == whole.rows.column("price")
    assert whole.left_out == set()


# -- what queries have in common --------------------------------------------------------------------------------------

TOTAL = "SELECT k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k"
SHARING = {
    "total": TOTAL,
    "beside": f"SELECT t.total, u.w FROM ({TOTAL}) t JOIN s [RANGE 10] u ON t.k = u.k",
    "whole": f"SET without_rules = 'prune_columns'; {TOTAL}",
    "filtered": "SELECT k, SUM(v) AS total FROM s [RANGE 10] WHERE w > 1 GROUP BY k",
}


def answers(names: list[str]) -> dict[str, list[str]]:
    with hw.connect(runner="inprocess", shards=2) as engine:
        engine.sql("CREATE STREAM s (at BIGINT, k INT, v INT, w INT) ORDERED BY at IN ORDER")
        runs = {name: engine.sql(SHARING[name], name=name).start() for name in names}
        keys = [node.key for node in engine._core.deployment.layout.graph.nodes]
        assert len(set(keys)) == len(keys), "two operators would have one state"
        for at in range(20):
            engine.push("s", [{"at": at, "k": at % 3, "v": at, "w": at % 4}])
        engine.run_to_end()
        return {name: sorted(map(str, run.history().rows())) for name, run in runs.items()}


def test_a_part_that_queries_have_in_common_has_one_state_whatever_else_they_read():
    alone = {name: found for each in SHARING for name, found in answers([each]).items()}
    assert alone["total"]
    assert answers(list(SHARING)) == alone
    assert answers(list(reversed(SHARING))) == alone
