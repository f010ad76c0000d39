"""Late and malformed rows that no query takes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headwater.sinks.diverted import deliver_diverted, diverted_streams, read_diverted
from headwater.sinks.parts import stage_table


def test_what_is_diverted_can_be_read_back(tmp_path: Path):
    staging = str(tmp_path / "staging")
    parts = [stage_table(pa.table({"x": [1, 2]}), staging), stage_table(pa.table({"x": [3]}), staging)]
    deliver_diverted(tmp_path, "bid_late", 12, parts)
    deliver_diverted(tmp_path, "bid_late", 2, parts[1:])
    deliver_diverted(tmp_path, "bid_late", 12, parts)
    deliver_diverted(tmp_path, "bid_late", 13, [])
    found = read_diverted(tmp_path, "bid_late")
    assert [tuple(row.values()) for row in found.rows()] == [(3, 2), (1, 12), (2, 12), (3, 12)]
    assert found.columns == ("x", "_tick")
    assert sorted(p.name for p in (tmp_path / "diverted" / "bid_late").iterdir()) == [
        "tick-00000002.parquet",
        "tick-00000012.parquet",
    ]
    assert diverted_streams(tmp_path) == ["bid_late"]


def test_large_parts_come_from_their_files(tmp_path: Path):
    parts = [stage_table(pa.table({"x": range(50_000)}), str(tmp_path / "staging"))]
    assert parts[0].path is not None
    deliver_diverted(tmp_path, "bid_bad", 0, parts)
    assert len(read_diverted(tmp_path, "bid_bad")) == 50_000


def test_a_crash_while_writing_leaves_nothing_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    parts = [stage_table(pa.table({"x": [1]}), str(tmp_path / "staging"))]

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("headwater.sinks.folder.Folder.move", crash)
        with pytest.raises(KeyboardInterrupt):
            deliver_diverted(tmp_path, "s_late", 0, parts)
    assert len(read_diverted(tmp_path, "s_late")) == 0
    deliver_diverted(tmp_path, "s_late", 0, parts)
    assert len(read_diverted(tmp_path, "s_late")) == 1


@pytest.mark.parametrize("name", ["../up", "a/b", "..", "été 1"])
def test_the_name_of_a_stream_may_hold_anything(tmp_path: Path, name: str):
    checkpoint = tmp_path / "checkpoint"
    deliver_diverted(checkpoint, name, 0, [stage_table(pa.table({"x": [1]}), str(tmp_path / "staging"))])
    assert len(read_diverted(checkpoint, name)) == 1
    assert diverted_streams(checkpoint) == [name]
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint"]


def test_columns_that_came_later_are_null_before(tmp_path: Path):
    for tick, table in enumerate([pa.table({"x": [1]}), pa.table({"x": [2], "y": ["a"]})]):
        deliver_diverted(tmp_path, "s", tick, [stage_table(table, "")])
    assert read_diverted(tmp_path, "s").to_arrow().column("y").to_pylist() == [None, "a"]


def test_nothing_diverted_is_no_rows(tmp_path: Path):
    assert len(read_diverted(tmp_path, "s")) == 0
    assert diverted_streams(tmp_path) == []
