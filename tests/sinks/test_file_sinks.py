"""Files: exactly once, whatever happens in between."""

from __future__ import annotations

import json as plain_json
import math
import pickle
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve
from pyarrow import fs

from headwater.errors import HeadwaterError
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.model.types import parse_sql_type
from headwater.sinks import csv, json, parquet
from headwater.sinks.base import Guarantee, Output, Staged
from headwater.sinks.folder import Folder

FIRST, SECOND = [(7, 1, 0, 5), (8, 1, 0, 6)], [(9, 2, 1, INFINITY)]


def delivered(folder: Path) -> list[tuple]:
    table = pq.read_table(folder)  # skips names with an underscore, as Spark and DuckDB do
    return sorted(zip(*(c.to_pylist() for c in table.columns), strict=True))


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("*") if p.is_file())


def opened(folder: Path, output: Output):
    sink = parquet(folder)
    sink.open(output)
    return sink


def test_parts_become_files_that_are_named_by_tick(tmp_path: Path, counts, stage):
    sink = opened(tmp_path / "out", counts)
    sink.deliver(12, stage(sink, 12, FIRST, SECOND), 3)
    assert names(tmp_path / "out") == ["_headwater.json", "tick-00000012-0000.parquet", "tick-00000012-0001.parquet"]
    assert delivered(tmp_path / "out") == [(7, 1, 0, 5), (8, 1, 0, 6), (9, 2, 1, None)]
    record = plain_json.loads((tmp_path / "out" / "_headwater.json").read_text())
    assert (record["last_tick"], record["frontier"], record["query"]) == (12, 3, "hot")
    assert sink.guarantee is Guarantee.EXACTLY_ONCE


def test_a_tick_that_comes_twice_is_there_once(tmp_path: Path, counts, stage):
    sink = opened(tmp_path / "out", counts)
    parts = stage(sink, 1, FIRST, SECOND)
    for _ in range(2):
        sink.deliver(1, parts, 3)
    again = opened(tmp_path / "out", counts)  # and after a restart
    again.deliver(1, parts, 3)
    assert len(delivered(tmp_path / "out")) == 3


def test_a_crash_between_two_files_loses_nothing(tmp_path: Path, counts, stage, monkeypatch: pytest.MonkeyPatch):
    sink = opened(tmp_path / "out", counts)
    parts = stage(sink, 1, FIRST, SECOND)
    moves: list[str] = []
    move = Folder.move

    def fails_second(self: Folder, old: str, new: str) -> None:
        moves.append(new)
        if len(moves) == 2:
            raise KeyboardInterrupt
        move(self, old, new)

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "move", fails_second)
        with pytest.raises(KeyboardInterrupt):
            sink.deliver(1, parts, 3)
    assert len(delivered(tmp_path / "out")) == 2
    again = opened(tmp_path / "out", counts)
    again.deliver(1, parts, 3)
    assert len(delivered(tmp_path / "out")) == 3
    assert not list((tmp_path / "out" / "_staged").iterdir())


def test_a_crash_before_the_record_loses_nothing(tmp_path: Path, counts, stage, monkeypatch: pytest.MonkeyPatch):
    sink = opened(tmp_path / "out", counts)
    parts = stage(sink, 1, FIRST)

    def crash(self: Folder, name: str, data: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "replace", crash)
        with pytest.raises(KeyboardInterrupt):
            sink.deliver(1, parts, 3)
    again = opened(tmp_path / "out", counts)
    again.deliver(1, parts, 3)
    again.deliver(2, stage(again, 2, SECOND), 4)
    assert len(delivered(tmp_path / "out")) == 3


def test_attempts_that_are_never_delivered_are_swept_away(tmp_path: Path, counts, stage):
    sink = opened(tmp_path / "out", counts)
    stage(sink, 1, FIRST)  # a task that failed later, or a crash before the commit
    later = stage(sink, 2, SECOND)  # may be committed: stays until its tick is delivered
    sink.deliver(1, stage(sink, 1, FIRST), 3)
    staged = tmp_path / "out" / "_staged"
    assert [p.name for p in staged.iterdir()] == [Path(later[0].path).name]
    again = opened(tmp_path / "out", counts)
    again.deliver(2, later, 4)
    assert not list(staged.iterdir())
    assert len(delivered(tmp_path / "out")) == 3


def test_a_restart_keeps_what_is_committed_but_not_delivered(tmp_path: Path, counts, stage):
    sink = opened(tmp_path / "out", counts)
    sink.deliver(4, stage(sink, 4, FIRST), 3)
    straggler, committed = stage(sink, 4, FIRST), stage(sink, 5, SECOND)
    again = opened(tmp_path / "out", counts)
    assert not Path(straggler[0].path).exists()
    again.deliver(5, committed, 4)
    assert len(delivered(tmp_path / "out")) == 3


def test_a_staged_file_that_is_gone_is_named(tmp_path: Path, counts, stage):
    sink = opened(tmp_path / "out", counts)
    parts = stage(sink, 1, FIRST)
    Path(parts[0].path).unlink()
    with pytest.raises(HeadwaterError, match="is missing: rows of a committed tick") as caught:
        sink.deliver(1, parts, 3)
    assert parts[0].path in str(caught.value)


def test_a_tick_without_rows_moves_the_frontier_only(tmp_path: Path, counts, stage):
    sink = opened(tmp_path / "out", counts)
    sink.deliver(1, [], 10)
    assert names(tmp_path / "out") == ["_headwater.json"]
    assert plain_json.loads((tmp_path / "out" / "_headwater.json").read_text())["frontier"] == 10


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"query": "cold"}, 'holds the answers of "hot"'),
        ({"origin": "elsewhere"}, "computed under another checkpoint"),
        ({"schema": Schema.of(auction="BIGINT", n="INT")}, 'holds rows with other columns than "hot" has'),
        ({"speculative": True}, "other columns"),
    ],
)
def test_a_folder_of_another_query_is_refused(tmp_path: Path, counts, other: dict, said: str):
    opened(tmp_path / "out", counts)
    with pytest.raises(HeadwaterError, match=said) as caught:
        opened(tmp_path / "out", evolve(counts, **other))
    assert caught.value.code == "FOLDER_OF_ANOTHER"


def test_a_folder_of_another_format_is_refused(tmp_path: Path, counts):
    opened(tmp_path / "out", counts)
    with pytest.raises(HeadwaterError, match="holds parquet files"):
        csv(tmp_path / "out").open(counts)


def test_a_folder_with_files_of_others_is_refused(tmp_path: Path, counts):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(HeadwaterError, match=r"(?s)already has files.*notes.txt"):
        opened(tmp_path, counts)


def test_a_damaged_record_is_an_error(tmp_path: Path, counts):
    opened(tmp_path / "out", counts)
    (tmp_path / "out" / "_headwater.json").write_text("{")
    with pytest.raises(HeadwaterError, match="cannot be read"):
        opened(tmp_path / "out", counts)


def test_any_bit_of_a_record_that_changes_is_seen(tmp_path: Path, counts):
    opened(tmp_path / "out", counts).deliver(7, [], 3)
    path = tmp_path / "out" / "_headwater.json"
    whole = path.read_bytes()
    changed = [whole[:n] + bytes([whole[n] ^ 1 << n % 8]) + whole[n + 1 :] for n in range(len(whole))]
    for data in [whole[:100], whole.replace(b": 7", b": 8"), whole + b"\n", *changed]:
        path.write_bytes(data)
        with pytest.raises(HeadwaterError, match=f'^SINK_DAMAGED: "{path}" cannot be read'):
            opened(tmp_path / "out", counts)
    path.write_bytes(whole)
    assert opened(tmp_path / "out", counts).last_tick == 7


def test_a_record_of_before_there_were_checksums(tmp_path: Path, counts):
    opened(tmp_path / "out", counts)
    path = tmp_path / "out" / "_headwater.json"
    record = plain_json.loads(path.read_text()) | {"version": 1}
    del record["checksum"]
    path.write_text(plain_json.dumps(record))
    with pytest.raises(HeadwaterError, match=r"SINK_VERSION: .* in version 1 of the layout, this is version 2"):
        opened(tmp_path / "out", counts)


def test_a_place_that_cannot_be_written_is_an_error_at_once(tmp_path: Path, counts):
    (tmp_path / "file").write_text("")
    with pytest.raises(HeadwaterError, match="could not be written"):
        opened(tmp_path / "file" / "out", counts)
    with pytest.raises(HeadwaterError, match="cannot be opened as a folder"):
        parquet("nowhere://bucket/out").open(counts)


def test_a_uri_is_as_good_as_a_path(tmp_path: Path, counts, stage):
    sink = parquet(f"file://{tmp_path}/out")
    sink.open(counts)
    parts = stage(sink, 1, FIRST)
    sink.deliver(1, parts, 3)
    sink.deliver(1, parts, 3)
    assert len(delivered(tmp_path / "out")) == 2


def test_any_file_system_of_pyarrow_will_do(tmp_path: Path, counts, stage):
    (tmp_path / "store").mkdir()
    sink = parquet("out")
    sink.folder = Folder("out", fs.SubTreeFileSystem(str(tmp_path / "store"), fs.LocalFileSystem()))
    sink.open(counts)
    parts = stage(sink, 1, FIRST)
    stage(sink, 1, FIRST)
    sink.open(counts)
    for _ in range(2):
        sink.deliver(1, parts, 3)
    assert len(delivered(tmp_path / "store" / "out")) == 2
    assert not list((tmp_path / "store" / "out" / "_staged").iterdir())


def test_a_relative_path_means_the_same_folder_in_tasks(tmp_path: Path, counts, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    sink = opened(Path("out"), counts)
    stager = pickle.dumps(sink.stager())
    (tmp_path / "task").mkdir()
    monkeypatch.chdir(tmp_path / "task")
    part = pickle.loads(stager).stage(1, 0, Delta.from_rows(counts.schema, [((1, 1), 0, 2, 1)]), "unused")
    assert Path(part.path).parent == tmp_path / "out" / "_staged"


def test_a_changelog_goes_to_files_too(tmp_path: Path, counts, stage):
    sink = opened(tmp_path / "out", evolve(counts, speculative=True, timestamps=True))
    sink.deliver(1, stage(sink, 1, [(7, 1, 0, INFINITY)]), 0)
    sink.deliver(2, stage(sink, 2, [(7, 1, 0, INFINITY, -1), (7, 1, 0, 5_000_000, 1), (7, 2, 5_000_000, INFINITY)]), 0)
    rows = duckdb.sql(
        f"SELECT _tick, _op, n, _new_end::VARCHAR FROM '{tmp_path}/out/*.parquet' ORDER BY ALL"
    ).fetchall()
    assert rows == [(1, "insert", 1, None), (2, "adjust", 1, "1970-01-01 00:00:05"), (2, "insert", 2, None)]


@pytest.mark.parametrize("compression", ["snappy", "zstd", "lz4", "none"])
def test_parquet_is_compressed_as_asked(tmp_path: Path, counts, stage, compression: str):
    sink = parquet(tmp_path, compression=compression)
    sink.open(counts)
    sink.deliver(0, stage(sink, 0, FIRST), 0)
    column = pq.ParquetFile(tmp_path / "tick-00000000-0000.parquet").metadata.row_group(0).column(0)
    assert column.compression == {"none": "UNCOMPRESSED"}.get(compression, compression.upper())


def test_an_unknown_compression_is_refused():
    with pytest.raises(HeadwaterError, match='no compression "zip"'):
        parquet("out", compression="zip")


# -- text ---------------------------------------------------------------------------------------------------------------

TYPES = {
    "i": "BIGINT",
    "f": "DOUBLE",
    "t": "STRING",
    "d": "DECIMAL(20,2)",
    "at": "TIMESTAMP",
    "day": "DATE",
    "b": "BOOLEAN",
}
NESTED = {"raw": "BINARY", "many": "ARRAY<DOUBLE>", "inside": "STRUCT<a: DECIMAL(9,1), b: ARRAY<TIMESTAMP>>"}


def wide(types: dict[str, str]) -> Output:
    schema = Schema.of(**{name: parse_sql_type(text) for name, text in types.items()})
    return Output("wide", schema, timestamps=True)


def written(sink, output: Output, rows: list[tuple], folder: Path) -> str:
    sink.open(output)
    delta = Delta.from_rows(output.schema, [(row, 0, 1_500_000, 1) for row in rows])
    part: Staged = pickle.loads(pickle.dumps(sink.stager())).stage(3, 0, delta, str(folder))
    sink.deliver(3, [part], 0)
    return next(folder.glob("tick-*")).read_text()


PLAIN_ROWS = [
    (2**60, 0.1, 'a "b",\nc', Decimal("12345678901234567.89"), 1_500_000, 0, True),
    (None,) * 7,
    (1, math.inf, "", Decimal("0.10"), 0, 1, False),
]


def test_csv_tells_null_from_an_empty_text(tmp_path: Path):
    text = written(csv(tmp_path), wide(TYPES), PLAIN_ROWS, tmp_path)
    assert text.splitlines()[0] == '"i","f","t","d","at","day","b","_start","_end"'
    assert text.splitlines()[-2] == ",,,,,,,1970-01-01 00:00:00.000000,1970-01-01 00:00:01.500000"
    assert ',"",' in text.splitlines()[-1]
    back = duckdb.sql(f"SELECT i, t, d::VARCHAR FROM read_csv('{tmp_path}/*.csv', all_varchar=true)").fetchall()
    assert back[0] == (str(2**60), 'a "b",\nc', "12345678901234567.89")


@pytest.mark.parametrize("name", NESTED)
def test_csv_refuses_what_it_cannot_hold(tmp_path: Path, name: str):
    with pytest.raises(HeadwaterError, match=f'column "{name}" is .*, which a CSV file cannot hold'):
        csv(tmp_path).open(wide({name: NESTED[name]}))


def test_json_is_an_object_a_line(tmp_path: Path):
    nested = [
        (b"\x00\xff", [1.5, math.nan, None], {"a": Decimal("1.5"), "b": [0, None]}),
        (None, None, None),
        (b"", [], {"a": None, "b": None}),
    ]
    rows = [(*plain, *more) for plain, more in zip(PLAIN_ROWS, nested, strict=True)]
    lines = written(json(tmp_path), wide({**TYPES, **NESTED}), rows, tmp_path).splitlines()
    first, second, third = (plain_json.loads(line, parse_constant=pytest.fail) for line in lines)
    assert first == {
        "i": 2**60,
        "f": 0.1,
        "t": 'a "b",\nc',
        "d": "12345678901234567.89",
        "at": "1970-01-01T00:00:01.5",
        "day": "1970-01-01",
        "b": True,
        "raw": "AP8=",
        "many": [1.5, "NaN", None],
        "inside": {"a": "1.5", "b": ["1970-01-01T00:00:00", None]},
        "_start": "1970-01-01T00:00:00",
        "_end": "1970-01-01T00:00:01.5",
    }
    assert {name: second[name] for name in (*TYPES, *NESTED)} == dict.fromkeys((*TYPES, *NESTED))
    assert (third["f"], third["t"], third["many"], third["inside"]) == ("Infinity", "", [], {"a": None, "b": None})


def test_json_names_may_hold_anything(tmp_path: Path):
    output = Output("wide", Schema.of(**{'it\'s "x"': pa.int64()}), timestamps=False)
    assert plain_json.loads(written(json(tmp_path), output, [(5,)], tmp_path))['it\'s "x"'] == 5
