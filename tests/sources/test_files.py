"""Files that arrive in a folder: every row once, however they are cut and whenever they come."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from base64 import b64decode
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import InputError
from headwater.model.schema import Field, Schema
from headwater.sources import line_blocks
from headwater.sources.csv_files import CsvFormat
from headwater.sources.file_formats import FileFormat
from headwater.sources.file_position import HOUR
from headwater.sources.files import FileSource
from headwater.sources.json_files import JsonFormat
from headwater.sources.parquet_files import ParquetFormat

SCHEMA = Schema.of(x="BIGINT", y="STRING")
FORMATS: list[FileFormat] = [ParquetFormat(), CsvFormat(), JsonFormat()]


def write(path: Path, rows: list[int], *, modified: int | None = None, groups: int = 7) -> None:
    table = pa.table({"y": [f"row {x}" for x in rows], "x": pa.array(rows, pa.int64()), "z": [None] * len(rows)})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=groups)
    elif path.suffix == ".csv":
        path.write_text("y,x,z\n" + "".join(f"row {x},{x},\n" for x in rows))
    else:
        path.write_text("".join(json.dumps({"y": f"row {x}", "x": x}) + "\n" for x in rows))
    if modified is not None:
        os.utime(path, (modified, modified))


def read(source: FileSource, splits) -> list[int]:
    assert source.reader is not None
    reader = pickle.loads(pickle.dumps(source.reader))
    found = []
    for split in json.loads(json.dumps(list(splits))):
        for piece in reader.read(split):
            assert piece.bad is None
            rows = piece.rows.select(["x", "y"]).to_pylist()
            assert all(r["y"] == f"row {r['x']}" for r in rows)
            found += [r["x"] for r in rows]
    return found


def polled(source: FileSource, rows: int, offset=None):
    """All there is now, poll by poll."""
    found = []
    while True:
        splits, offset, *_ = source.poll(offset, rows)
        offset = json.loads(json.dumps(offset))
        if not splits:
            return found, offset
        found.append(read(source, splits))


@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.name)
def test_files_are_read_once_in_the_order_they_came(tmp_path: Path, format_: FileFormat):
    source = FileSource(str(tmp_path), SCHEMA, format_)
    assert source.poll(None, 10).splits == []
    write(tmp_path / f"b.{format_.name}", [1, 2], modified=1000)
    write(tmp_path / f"a.{format_.name}", [3], modified=2000)
    write(tmp_path / f".hidden.{format_.name}", [9])
    write(tmp_path / f"_SUCCESS.{format_.name}", [9])
    found, offset = polled(source, 1000)
    assert found == [[1, 2, 3]]
    write(tmp_path / f"c.{format_.name}", [4], modified=2000)
    write(tmp_path / f"late.{format_.name}", [5], modified=1500)
    found, offset = polled(source, 1000, offset)
    assert found == [[5, 4]]
    assert polled(source, 1000, offset)[0] == []


@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.name)
def test_a_backlog_comes_in_ticks_of_bounded_size(tmp_path: Path, format_: FileFormat, monkeypatch):
    monkeypatch.setattr(line_blocks, "_STEP", 64)
    for i in range(6):
        write(tmp_path / f"{i}.{format_.name}", list(range(100 * i, 100 * i + 100)), modified=1000 + i)
    source = FileSource(str(tmp_path), SCHEMA, format_)
    ticks, _ = polled(source, 40)
    assert [x for tick in ticks for x in tick] == list(range(600))
    assert max(map(len, ticks)) <= 50
    assert len(ticks) <= 24


@pytest.mark.parametrize("format_", FORMATS, ids=lambda f: f.name)
def test_a_file_that_turns_up_too_late_is_not_found(tmp_path: Path, format_: FileFormat):
    source = FileSource(str(tmp_path), SCHEMA, format_, max_age=HOUR)
    write(tmp_path / f"a.{format_.name}", [1], modified=100_000)
    _, offset = polled(source, 10)
    write(tmp_path / f"old.{format_.name}", [2], modified=100_000 - 3601)
    write(tmp_path / f"older.{format_.name}", [3], modified=100_000 - 3599)
    found, offset = polled(source, 10, offset)
    assert found == [[3]]
    write(tmp_path / f"b.{format_.name}", [4], modified=200_000)
    _, offset = polled(source, 10, offset)
    assert len(b64decode(offset["seen"]["names"])) == 8, "one name is remembered"


def test_one_file_and_globs(tmp_path: Path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    write(tmp_path / "one" / "a.csv", [1], modified=1000)
    write(tmp_path / "two" / "a.csv", [2], modified=2000)
    write(tmp_path / "two" / "b.json", [3], modified=3000)
    for path, rows in [("one/a.csv", [1]), ("*/*.csv", [1, 2]), ("{one,two}/?.csv", [1, 2]), ("t*/*.csv", [2])]:
        source = FileSource(str(tmp_path / path), SCHEMA, CsvFormat(), follow=False)
        found = source.poll(None, 100)
        assert read(source, found.splits) == rows
        assert found.finished


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.one_of(st.integers(0, 10**12), st.none()), max_size=60),
    st.integers(1, 40),
    st.booleans(),
    st.sampled_from(["csv", "json"]),
)
def test_cuts_at_any_byte_lose_no_line_and_double_none(tmp_path_factory, rows, size, newline, kind):
    """None is an empty line."""
    folder = tmp_path_factory.mktemp("cuts")
    line = {"csv": "row {0},{0}", "json": '{{"y":"row {0}","x":{0}}}'}[kind]
    text = "\r\n".join("" if x is None else line.format(x) for x in rows) + ("\n" if newline else "")
    path = folder / "f"
    path.write_text(text, newline="")
    format_ = CsvFormat(header=False) if kind == "csv" else JsonFormat()
    source = FileSource(str(path), Schema.of(y="STRING", x="BIGINT"), format_)
    whole = {"path": str(path), "length": len(text)}
    cuts = [{**whole, "start": a, "end": min(a + size, len(text))} for a in range(0, len(text), size)]
    expected = [x for x in rows if x is not None]
    assert read(source, cuts) == expected
    assert read(source, [whole]) == expected


def test_large_files_are_cut_so_that_several_tasks_read_them(tmp_path: Path):
    write(tmp_path / "a.parquet", list(range(2_000)), groups=500)
    format_ = ParquetFormat()
    whole = {"path": str(tmp_path / "a.parquet"), "length": 1}
    assert [(p["start"], p["end"], p["rows"]) for p in format_.cut(whole, 1_000)] == [(0, 2, 1000), (2, 4, 1000)]
    assert [p["rows"] for p in format_.cut(whole, 1)] == [500] * 4
    part = {**whole, "start": 1, "end": 3}
    assert [(p["start"], p["end"], p["rows"]) for p in format_.cut(part, 500)] == [(1, 2, 500), (2, 3, 500)]
    write(tmp_path / "a.csv", list(range(2_000)))
    length = (tmp_path / "a.csv").stat().st_size
    monkey = CsvFormat().cut({"path": str(tmp_path / "a.csv"), "length": length * 1000}, 100_000)
    assert len(monkey) > 5
    again = CsvFormat().cut(monkey[1], 50_000)
    assert (again[0]["start"], again[-1]["end"]) == (monkey[1]["start"], monkey[1]["end"]), "a part stays within itself"


def test_compressed_files(tmp_path: Path):
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("x,y\n" + "".join(f"{x},row {x}\n" for x in range(1000)))
    source = FileSource(str(tmp_path), SCHEMA, CsvFormat())
    assert read(source, source.poll(None, 10_000).splits) == list(range(1000))
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("x,y\n1,a\ntwo,b\n")
    pieces = [p for s in source.poll(None, 10).splits for p in source.reader.read(s)]
    assert pieces[0].bad.line.to_pylist() == [3]


def test_bad_lines_are_numbered_as_in_the_file_whatever_the_cut(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{'?' if i % 7 == 3 else i},row\n" for i in range(200)))
    source = FileSource(str(path), SCHEMA, CsvFormat(), malformed="divert")
    found = []
    for start in range(0, path.stat().st_size, 111):
        split = {"path": str(path), "length": path.stat().st_size, "start": start, "end": start + 111}
        for piece in source.reader.read(split):
            found += [] if piece.bad is None else piece.bad.line.to_pylist()
    assert found == [i + 2 for i in range(200) if i % 7 == 3]


def test_a_file_without_a_column_that_must_be_there_or_without_all_is_one_bad_row(tmp_path: Path):
    needed = Schema((Field("x", pa.int64(), nullable=False), Field("y", pa.string())))
    (tmp_path / "a.csv").write_text("a,y\n1,2\n3,4\n")
    pq.write_table(pa.table({"y": ["a"]}), tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_text("something else")
    (tmp_path / "d.csv").write_text("1,2\n3,4\n")
    pq.write_table(pa.table({"z": ["a"]}), tmp_path / "e.parquet")
    for name, format_, reason in [
        ("a.csv", CsvFormat(), 'column "x" missing; the columns are a, y'),
        ("b.parquet", ParquetFormat(), 'column "x" missing; the columns are y'),
        ("d.csv", CsvFormat(), 'columns "x", "y" missing; the columns are 1, 2'),
        ("e.parquet", ParquetFormat(), 'columns "x", "y" missing; the columns are z'),
        ("c.parquet", ParquetFormat(), "this is no parquet file: "),
    ]:
        source = FileSource(str(tmp_path / name), needed if name < "c" else SCHEMA, format_)
        (piece,) = source.reader.read({"path": str(tmp_path / name), "length": 5})
        assert piece.rows.num_rows == 0
        assert piece.bad.reason[0].as_py().startswith(reason)
        assert piece.bad.where[0].as_py().endswith(name)


def test_empty_files_have_no_rows(tmp_path: Path):
    for name, format_ in [("a.csv", CsvFormat()), ("b.csv", CsvFormat()), ("c.json", JsonFormat())]:
        (tmp_path / name).write_text("x,y\n" if name == "b.csv" else "")
        source = FileSource(str(tmp_path / name), SCHEMA, format_)
        assert read(source, source.poll(None, 10).splits) == []


def test_a_file_that_is_gone_is_an_error(tmp_path: Path):
    source = FileSource(str(tmp_path), SCHEMA, ParquetFormat())
    with pytest.raises(InputError, match="UNREADABLE: could not read"):
        list(source.reader.read({"path": str(tmp_path / "gone"), "length": 1}))


# -- compressed files -------------------------------------------------------------------------------------------------

ROWS = "".join(f'{{"x":{i},"y":"row {i}"}}\n' for i in range(50_000)).encode()
PACKED = gzip.compress(ROWS)
DAMAGED = {
    "none": b"y,x\na,1\n",
    "cut": PACKED[: len(PACKED) // 2],
    "wrong sum": PACKED[:-8] + b"12345678",
}


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_compressed_file_that_cannot_be_unpacked_is_a_bad_row_behind_those_before_it(
    content: bytes, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(line_blocks, "BLOCK_BYTES", 10_000)
    (tmp_path / f"a.{form}.gz").write_bytes(content)
    format_ = CsvFormat(header=False, delimiter="\t") if form == "csv" else JsonFormat()
    schema = Schema.of(line="STRING") if form == "csv" else SCHEMA
    source = FileSource(str(tmp_path), schema, format_, malformed="divert")
    assert source.reader is not None
    pieces = [piece for split in source.poll(None, 10**6).splits for piece in source.reader.read(split)]
    rows = sum(piece.rows.num_rows for piece in pieces)
    assert rows == 0 if content == DAMAGED["none"] else 0 < rows < 50_000
    (bad,) = [piece.bad for piece in pieces if piece.bad is not None]
    assert bad.reason[0].as_py().startswith("the file is damaged, or not compressed as its name says: ")
    assert bad.where[0].as_py() == str(tmp_path / f"a.{form}.gz")
