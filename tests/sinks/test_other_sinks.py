"""The terminal, a function, and nowhere."""

from __future__ import annotations

import io
import subprocess
import sys

import pyarrow as pa
import pytest
from attrs import evolve

from headwater.errors import HeadwaterError
from headwater.model.time import INFINITY
from headwater.sinks import console, foreach, noop, spark
from headwater.sinks.base import Guarantee
from headwater.sinks.parts import stage_table

# -- console ----------------------------------------------------------------------------------------------------------


def printed(output, stage, *ticks, **options) -> str:
    text = io.StringIO()
    sink = console(file=text, **options)
    sink.open(output)
    for number, (frontier, *shards) in enumerate(ticks):
        sink.deliver(number, stage(sink, number, *shards), frontier)
    return text.getvalue()


def test_a_tick_is_a_table(counts, stage):
    said = printed(counts, stage, (4, [(7, 1, 0, 5)], [(8, 1, 0, INFINITY)]))
    assert "hot: tick 0, 2 rows, final before 4" in said
    assert "│       7 │ 1 │      0 │        5 │" in said
    assert "│       8 │ 1 │      0 │ infinity │" in said


def test_a_tick_is_lines(counts, stage):
    changes = evolve(counts, speculative=True, timestamps=True)
    second = [(7, 1, 0, INFINITY, -1), (7, 1, 0, 5), (8, 1, 0, 5, -1), (9, 1, 0, 5, -1), (9, 1, 0, INFINITY)]
    said = printed(changes, stage, (0, [(7, 1, 0, INFINITY)]), (0, second), form="lines")
    lines = [line for line in said.splitlines() if not line.startswith("hot")]
    assert lines[0] == "  + auction=7 n=1 [1970-01-01 00:00:00, infinity)"
    assert sorted(lines[1:]) == [
        "  - auction=8 n=1 [1970-01-01 00:00:00, 1970-01-01 00:00:00.000005)",
        "  ~ auction=7 n=1 [1970-01-01 00:00:00, infinity) -> 1970-01-01 00:00:00.000005",
        "  ~ auction=9 n=1 [1970-01-01 00:00:00, 1970-01-01 00:00:00.000005) -> infinity",
    ]


def test_rows_are_bounded_and_counted(counts, stage):
    many = [(i, 1, 0, 5) for i in range(30)]
    said = printed(counts, stage, (4, many, many), rows=3, form="lines")
    assert said.count("auction=") == 3
    assert "60 rows" in said
    assert "… and 57 more" in said


def test_a_tick_without_rows_prints_nothing(counts, stage):
    assert printed(counts, stage, (4,)) == ""


@pytest.mark.parametrize("options", [{"form": "pie"}, {"rows": 0}])
def test_console_options_are_checked(options: dict):
    with pytest.raises(HeadwaterError):
        console(**options)


# -- foreach ----------------------------------------------------------------------------------------------------------


def test_a_function_gets_every_tick_that_has_rows(counts, stage):
    got: list[tuple[int, list[dict]]] = []
    sink = foreach(lambda table, tick: got.append((tick, table.to_pylist())))
    sink.open(counts)
    parts = stage(sink, 5, [(7, 1, 0, 5)], [(8, 1, 0, 6)])
    for tick, given in ((5, parts), (5, parts), (6, [])):
        sink.deliver(tick, given, 1)
    assert [(tick, len(rows)) for tick, rows in got] == [(5, 2)]
    assert got[0][1][0] == {"auction": 7, "n": 1, "_start": 0, "_end": 5}
    assert sink.guarantee is Guarantee.AT_LEAST_ONCE


def test_large_parts_go_by_file(counts, stage, tmp_path):
    got: list[pa.Table] = []
    sink = foreach(lambda table, tick: got.append(table))
    sink.open(counts)
    parts = stage(sink, 0, [(i, 1, 0, 5) for i in range(5000)])
    assert parts[0].path is not None
    sink.deliver(0, parts, 1)
    assert got[0].num_rows == 5000
    (tmp_path / "checkpoint" / "staging").joinpath(parts[0].path).unlink()
    with pytest.raises(HeadwaterError, match="is missing: rows of a committed tick"):
        sink.deliver(1, parts, 1)


def test_without_a_checkpoint_large_parts_stay_in_memory(counts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    part = stage_table(pa.table({"x": range(50_000)}), "")
    assert (part.rows, part.path) == (50_000, None)
    assert not list(tmp_path.iterdir())


def test_a_function_that_fails_gets_the_tick_again(counts, stage):
    calls: list[int] = []

    def once_bad(table: pa.Table, tick: int) -> None:
        calls.append(tick)
        if len(calls) == 1:
            raise OSError("no line")

    sink = foreach(once_bad)
    sink.open(counts)
    parts = stage(sink, 0, [(7, 1, 0, 5)])
    with pytest.raises(OSError, match="no line"):
        sink.deliver(0, parts, 1)
    sink.deliver(0, parts, 1)
    assert calls == [0, 0]
    assert sink.describe()["function"].endswith("once_bad")


# -- noop and the rest ------------------------------------------------------------------------------------------------


def test_noop_counts_and_drops(counts, stage):
    sink = noop()
    sink.open(counts)
    parts = stage(sink, 0, [(7, 1, 0, 5, 3)], [(8, 1, 0, 5)])
    assert all(part.data is None and part.path is None for part in parts)
    sink.deliver(0, parts, 9)
    sink.deliver(0, parts, 9)
    assert (sink.rows, sink.ticks, sink.frontier) == (4, 1, 9)


def test_spark_is_asked_for_where_there_is_none(counts):
    with pytest.raises(HeadwaterError, match="this engine runs without it"):
        spark(print).open(counts)


def test_naming_the_sinks_is_cheap_and_does_not_hide_them():
    code = """
import sys, headwater.sinks as sinks
assert not {"pyarrow", "pyspark", "rich", "duckdb", "deltalake"} & set(sys.modules)
for make in (sinks.console, sinks.memory, sinks.noop):
    make()
sinks.parquet("a"), sinks.csv("a"), sinks.json("a"), sinks.delta("a"), sinks.foreach(print), sinks.spark(print)
assert all(callable(getattr(sinks, name)) for name in sinks.__all__), sinks.__all__
assert "pyspark" not in sys.modules and "deltalake" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
