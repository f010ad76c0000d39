"""Small files of answers become one: all rows once, whatever cuts it off, and whoever follows the folder."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import headwater as hw
from headwater.cli.main import app
from headwater.errors import InputError
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.sinks import compaction, joining
from headwater.sinks.base import Output
from headwater.sinks.compaction import compact_folder
from headwater.sinks.file_sink import FileSink
from headwater.sinks.folder import Folder

COLUMNS = Schema.of(x="BIGINT")
OUTPUT = Output("q", COLUMNS, timestamps=False)


def sink_in(folder: Path, **options: Any) -> FileSink:
    sink = hw.sinks.parquet(folder, **options)
    sink.grace = 0.0
    sink.open(OUTPUT)
    return sink


def deliver(sink: FileSink, tick: int, rows: int = 2) -> None:
    """Two rows that follow one another, or more that nothing makes small."""
    dice = random.Random(tick)
    values = [1000 * tick + i for i in range(rows)] if rows == 2 else [dice.getrandbits(60) for _ in range(rows)]
    found = [((x,), tick, tick + 1, 1) for x in values]
    part = sink.stager().stage(tick, 0, Delta.from_rows(COLUMNS, found), "")
    assert part.path is not None
    os.utime(part.path, ns=(10**18 + tick * 10**9,) * 2)
    sink.deliver(tick, [part], frontier=tick)


def filled(folder: Path, ticks: int = 6, **options: Any) -> FileSink:
    sink = sink_in(folder, **options)
    for tick in range(1, ticks + 1):
        deliver(sink, tick)
    return sink


def values(folder: Path) -> list[int]:
    """As anybody reads the folder."""
    return sorted(ds.dataset(folder, format="parquet").to_table()["x"].to_pylist())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("tick-*"))


def expected(ticks: int) -> list[int]:
    return [1000 * tick + i for tick in range(1, ticks + 1) for i in range(2)]


def test_small_files_become_one_that_has_the_name_and_the_time_of_the_last(tmp_path: Path):
    filled(tmp_path)
    time_of_last = (tmp_path / names(tmp_path)[-1]).stat().st_mtime_ns
    assert compact_folder(Folder(tmp_path)) == (6, 1)
    assert names(tmp_path) == ["tick-00000006-0000.parquet"]
    assert (tmp_path / names(tmp_path)[0]).stat().st_mtime_ns == time_of_last
    assert values(tmp_path) == expected(6)
    assert compact_folder(Folder(tmp_path)) == (1, 1)


def test_it_goes_on_with_what_is_compacted_already(tmp_path: Path):
    sink = filled(tmp_path)
    compact_folder(Folder(tmp_path))
    deliver(sink, 7)
    assert compact_folder(Folder(tmp_path)) == (2, 1)
    assert values(tmp_path) == expected(7)


def test_the_sink_does_it_by_itself(tmp_path: Path):
    sink = filled(tmp_path, 40, compact=8)
    assert len(names(tmp_path)) <= 8 + 4
    assert values(tmp_path) == expected(40)
    deliver(sink, 40)
    assert values(tmp_path) == expected(40), "what is delivered again is known"


def test_a_row_is_written_again_a_few_times_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written: list[int] = []
    compact = compaction._compact
    monkeypatch.setattr(
        compaction,
        "_compact",
        lambda folder, files: (
            written.append(sum(pq.read_metadata(tmp_path / file.name).num_rows for file in files)),
            compact(folder, files),
        ),
    )
    sink = sink_in(tmp_path, compact=4)
    for tick in range(1, 129):
        deliver(sink, tick, rows=500)
    assert written
    assert sum(written) <= 6 * 128 * 500
    assert len(values(tmp_path)) == 128 * 500


def test_files_that_came_just_now_stay(tmp_path: Path):
    filled(tmp_path)
    os.utime(tmp_path / "tick-00000006-0000.parquet", (time.time(), time.time()))
    assert compact_folder(Folder(tmp_path), grace=60) == (5, 1)
    assert names(tmp_path) == ["tick-00000005-0000.parquet", "tick-00000006-0000.parquet"]


def test_large_files_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    filled(tmp_path)
    size = (tmp_path / names(tmp_path)[0]).stat().st_size
    monkeypatch.setattr(compaction, "SMALL", 2 * size + 10)
    assert compact_folder(Folder(tmp_path)) == (6, 3)
    assert values(tmp_path) == expected(6)


def test_compression_and_wider_columns_are_kept(tmp_path: Path):
    filled(tmp_path, compression="zstd")
    pq.write_table(
        pa.table({"x": pa.array([1000, 1001], pa.int32()), "_start": [1, 1], "_end": [2, 2]}),
        tmp_path / "tick-00000001-0000.parquet",
    )
    os.utime(tmp_path / "tick-00000001-0000.parquet", (1, 1))
    compact_folder(Folder(tmp_path))
    assert values(tmp_path) == expected(6)
    file = pq.ParquetFile(tmp_path / "tick-00000006-0000.parquet")
    assert file.schema_arrow.field("x").type == pa.int64()
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


# -- cut off ----------------------------------------------------------------------------------------------------------


class _CutOffError(Exception):
    pass


@pytest.mark.parametrize("moment", range(9))
def test_cut_off_anywhere_and_repaired_when_the_sink_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
):
    filled(tmp_path)
    left = moment

    def cut(method: Any) -> Any:
        def called(self: Folder, *args: Any, **options: Any) -> Any:
            nonlocal left
            if left == 0:
                raise _CutOffError
            left -= 1
            return method(self, *args, **options)

        return called

    with monkeypatch.context() as patched:
        for name in ("move", "delete", "replace", "writing"):
            patched.setattr(Folder, name, cut(getattr(Folder, name)))
        with pytest.raises(_CutOffError):
            compact_folder(Folder(tmp_path))
    sink = sink_in(tmp_path)
    assert values(tmp_path) == expected(6)
    assert not (tmp_path / "_compacting.json").exists()
    assert list((tmp_path / "_staged").iterdir()) == []
    deliver(sink, 7)
    compact_folder(Folder(tmp_path))
    assert values(tmp_path) == expected(7)


def test_only_one_at_a_time(tmp_path: Path):
    filled(tmp_path)
    with compaction._locked(Folder(tmp_path)) as mine:
        assert mine
        assert compact_folder(Folder(tmp_path)) == (0, 0)
    assert len(names(tmp_path)) == 6


def test_a_record_of_the_step_that_is_damaged_or_leads_elsewhere_is_refused(tmp_path: Path):
    from headwater.state.sealed import seal

    filled(tmp_path)
    (tmp_path / "_compacting.json").write_text("{")
    with pytest.raises(hw.HeadwaterError, match="cannot be read"):
        compact_folder(Folder(tmp_path))
    (tmp_path / "_compacting.json").write_bytes(seal({"staged": "a", "into": "b", "gone": ["../c"]}))
    with pytest.raises(hw.HeadwaterError, match="names files elsewhere"):
        compact_folder(Folder(tmp_path))


# -- whoever follows the folder ---------------------------------------------------------------------------------------


class Follower:
    """Another engine over the folder, which takes answers for rows."""

    def __init__(self, folder: Path, checkpoint: Path) -> None:
        self.engine = hw.connect(runner="inprocess", checkpoint=checkpoint)
        self.engine.sql(f"""CREATE STREAM a (x BIGINT) SOURCE parquet('{folder}')
            ORDERED BY x DISORDER 10000""")
        self.got: list[int] = []
        self.engine.sql("SELECT x FROM a", name="q").start(
            hw.sinks.foreach(lambda table, tick: self.got.extend(table["x"].to_pylist()))
        )

    def read(self) -> list[int]:
        self.engine.run_to_end(end_streams=False)
        return sorted(self.got)

    def close(self) -> list[int]:
        self.engine.close()
        return self.got


@pytest.mark.parametrize("read_before", [0, 1, 3, 5, 6])
@pytest.mark.parametrize("restart", [False, True])
def test_a_follower_reads_every_row_once(tmp_path: Path, read_before: int, restart: bool):
    answers, checkpoint = tmp_path / "answers", tmp_path / "checkpoint"
    sink = sink_in(answers)
    follower = Follower(answers, checkpoint)
    for tick in range(1, read_before + 1):
        deliver(sink, tick)
        follower.read()
    with follower.engine.held():
        for tick in range(read_before + 1, 7):
            deliver(sink, tick)
        if not restart:
            compact_folder(Folder(answers))
        else:
            before = follower.close()
    if restart:
        compact_folder(Folder(answers))
        follower = Follower(answers, checkpoint)
        seen = set(follower.got)  # of the last tick, at least once
        follower.got[:0] = [x for x in before if x not in seen]
    assert follower.read() == expected(6)
    with follower.engine.held():
        deliver(sink, 7)
        compact_folder(Folder(answers))
    assert follower.read() == expected(7)
    follower.close()


def test_a_follower_by_answers_knows_how_far_they_go(tmp_path: Path):
    answers = tmp_path / "answers"
    sink = sink_in(answers)
    engine = hw.connect(runner="inprocess")
    engine.sql(f"""CREATE STREAM a (x BIGINT)
        SOURCE parquet('{answers}', changes => 'headwater', instants => 'numbers')""")
    with engine:
        run = engine.sql("SELECT COUNT(*) AS n FROM a").start()
        for tick in range(1, 4):
            deliver(sink, tick)
        engine.run_to_end(end_streams=False)
        with engine.held():
            for tick in range(4, 9):
                deliver(sink, tick)
            compact_folder(Folder(answers))
        engine.run_to_end(end_streams=False)
        assert [row["n"] for row in run.history().rows()] == [2]
        assert run.frontier == 8


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path):
    filled(tmp_path / "a")
    told = CliRunner().invoke(app, ["compact", str(tmp_path / "a")])
    assert told.exit_code == 0
    assert told.output.strip() == f"{tmp_path}/a: 6 small files are 1 now"
    assert values(tmp_path / "a") == expected(6)


def test_the_command_makes_delta_tables_compact(tmp_path: Path):
    import deltalake

    sink = hw.sinks.delta(tmp_path / "t")
    sink.open(OUTPUT)
    for tick in range(1, 7):
        part = sink.stager().stage(tick, 0, Delta.from_rows(COLUMNS, [((tick,), tick, tick + 1, 1)]), "")
        sink.deliver(tick, [part], frontier=tick)
    told = CliRunner().invoke(app, ["compact", str(tmp_path / "t")])
    assert told.output.strip() == f"{tmp_path}/t: 6 files are 1 now"
    assert sorted(deltalake.DeltaTable(str(tmp_path / "t")).to_pyarrow_table()["x"].to_pylist()) == [1, 2, 3, 4, 5, 6]


def test_a_delta_table_that_compacts_itself_remembers_its_ticks(tmp_path: Path):
    import deltalake

    def open_sink() -> Any:
        sink = hw.sinks.delta(tmp_path, compact=4)
        sink.open(OUTPUT)
        return sink

    sink = open_sink()
    for tick in range(1, 10):
        part = sink.stager().stage(tick, 0, Delta.from_rows(COLUMNS, [((tick,), tick, tick + 1, 1)]), "")
        sink.deliver(tick, [part], frontier=tick)
        sink = open_sink() if tick == 8 else sink
        sink.deliver(tick, [part], frontier=tick)
    table = deltalake.DeltaTable(str(tmp_path))
    assert len(table.file_uris()) <= 4
    assert sorted(table.to_pyarrow_table()["x"].to_pylist()) == list(range(1, 10))


def test_what_cannot_become_fewer(tmp_path: Path):
    with pytest.raises(InputError, match="no folder of answers"):
        compact_folder(Folder(tmp_path))
    hw.sinks.csv(tmp_path / "c").open(OUTPUT)
    with pytest.raises(InputError, match="holds csv files"):
        compact_folder(Folder(tmp_path / "c"))
    with pytest.raises(InputError, match="only a file system of this machine"):
        compact_folder(Folder("s3://bucket/answers"))
    for wrong in (1, -1, True, "64"):
        with pytest.raises(InputError, match="compact cannot be"):
            hw.sinks.parquet(tmp_path, compact=wrong)


def test_a_joined_delivery_leaves_large_parts_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("headwater.sinks.file_sink.SMALL", 3_000)
    assert joining.SMALL > 3_000
    sink = sink_in(tmp_path, every=60)
    dice = random.Random(1)
    rows = [((dice.getrandbits(60),), 1, 2, 1) for _ in range(5000)]
    parts = [
        sink.stager().stage(1, shard, Delta.from_rows(COLUMNS, rows[: 5000 if shard % 2 else 2]), "")
        for shard in range(4)
    ]
    moves = 0

    def move(self: Folder, old: str, new: str) -> None:
        nonlocal moves
        moves += 1
        if moves == 3:
            raise _CutOffError
        moved(self, old, new)

    moved = Folder.move
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "move", move)
        with pytest.raises(_CutOffError):
            sink.deliver(3, parts, frontier=1)
    sink = sink_in(tmp_path, every=60)
    sink.deliver(3, parts, frontier=1)
    assert names(tmp_path) == [f"tick-00000003-000{i}.parquet" for i in range(3)]
    assert len(values(tmp_path)) == 10_004
    assert list((tmp_path / "_staged").iterdir()) == []
