"""Delta tables: a tick and its number are committed together."""

from __future__ import annotations

import builtins
from pathlib import Path

import pyarrow as pa
import pytest
from attrs import evolve

from headwater.errors import HeadwaterError
from headwater.model.schema import Schema
from headwater.model.types import parse_sql_type
from headwater.sinks import delta
from headwater.sinks.base import Guarantee, Output

deltalake = pytest.importorskip("deltalake")


def opened(place: Path, output: Output, **options):
    sink = delta(place, **options)
    sink.open(output)
    return sink


def stored(place: Path) -> list[tuple]:
    table = deltalake.DeltaTable(place).to_pyarrow_table()
    return sorted(zip(*(c.to_pylist() for c in table.columns), strict=True))


def test_the_table_is_there_before_the_first_row(tmp_path: Path, counts):
    opened(tmp_path / "t", evolve(counts, timestamps=True))
    schema = pa.schema(deltalake.DeltaTable(tmp_path / "t").schema().to_arrow())
    assert schema.names == ["auction", "n", "_start", "_end"]
    assert schema.field("_end").type == pa.timestamp("us")


def test_each_tick_is_one_commit_and_comes_once(tmp_path: Path, counts, stage):
    sink = opened(tmp_path / "t", counts)
    parts = stage(sink, 3, [(7, 1, 0, 5)], [(8, 1, 0, 6)])
    sink.deliver(3, parts, 1)
    sink.deliver(3, parts, 1)
    again = opened(tmp_path / "t", counts)  # another process
    again.deliver(3, parts, 1)
    again.deliver(4, stage(again, 4, [(9, 1, 0, 5)]), 1)
    again.deliver(5, [], 2)
    assert stored(tmp_path / "t") == [(7, 1, 0, 5), (8, 1, 0, 6), (9, 1, 0, 5)]
    assert deltalake.DeltaTable(tmp_path / "t").version() == 2
    assert sink.guarantee is Guarantee.EXACTLY_ONCE


def test_a_crash_after_the_commit_is_noticed(tmp_path: Path, counts, stage, monkeypatch: pytest.MonkeyPatch):
    sink = opened(tmp_path / "t", counts)
    parts = stage(sink, 3, [(7, 1, 0, 5)])
    write = deltalake.write_deltalake

    def crash_after(*given, **options):
        write(*given, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(deltalake, "write_deltalake", crash_after)
        with pytest.raises(KeyboardInterrupt):
            sink.deliver(3, parts, 1)
    opened(tmp_path / "t", counts).deliver(3, parts, 1)
    assert stored(tmp_path / "t") == [(7, 1, 0, 5)]


def test_two_queries_may_share_a_table(tmp_path: Path, counts, stage):
    for output in (counts, evolve(counts, query="cold"), evolve(counts, origin="elsewhere")):
        sink = opened(tmp_path / "t", output)
        sink.deliver(3, stage(sink, 3, [(7, 1, 0, 5)]), 1)
    assert len(stored(tmp_path / "t")) == 3


def test_a_table_may_be_partitioned(tmp_path: Path, counts, stage):
    sink = opened(tmp_path / "t", counts, partition_by=["n"])
    sink.deliver(0, stage(sink, 0, [(7, 1, 0, 5), (7, 2, 0, 5)]), 1)
    assert {p.name for p in (tmp_path / "t").glob("n=*")} == {"n=1", "n=2"}
    opened(tmp_path / "t", counts, partition_by=["n"])
    with pytest.raises(HeadwaterError, match='cannot partition by "m"'):
        opened(tmp_path / "u", counts, partition_by=["m"])


def test_a_table_with_other_columns_is_refused(tmp_path: Path, counts):
    opened(tmp_path / "t", counts)
    opened(tmp_path / "t", counts)
    with pytest.raises(HeadwaterError, match=r'(?s)has other columns than "hot".*_op STRING'):
        opened(tmp_path / "t", evolve(counts, speculative=True))


def test_nested_columns_are_the_same_when_the_table_is_opened_again(tmp_path: Path):
    schema = Schema.of(a=parse_sql_type("ARRAY<STRUCT<b: INT>>"), c="BINARY", d=parse_sql_type("DECIMAL(10,2)"))
    for _ in range(2):
        opened(tmp_path / "t", Output("nested", schema))


def test_a_missing_package_is_told(tmp_path: Path, counts, monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def without(name: str, *rest, **options):
        if name == "deltalake":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(HeadwaterError) as caught:
        opened(tmp_path / "t", counts)
    assert "pip install 'headwater[delta]'" in str(caught.value)
