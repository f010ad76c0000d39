"""Folders with many files: nothing is lost, nothing comes twice, and what is old costs nothing."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

import headwater as hw
from headwater.model.schema import Schema
from headwater.runtime.checkpoint import Checkpoint
from headwater.sources import file_listing
from headwater.sources.csv_files import CsvFormat
from headwater.sources.file_listing import Listing
from headwater.sources.files import FileSource
from headwater.state.store import FileStore

SCHEMA = Schema.of(x="BIGINT")
MINUTE = 60


def bring(folder: Path, name: str, number: int, modified: int) -> None:
    hidden = folder / f"_{name}"
    hidden.write_text(f"x\n{number}\n")
    os.utime(hidden, (modified, modified))
    hidden.rename(folder / name)


def numbers(source: FileSource, splits: object) -> list[int]:
    assert source.reader is not None
    return [r["x"] for split in splits for piece in source.reader.read(split) for r in piece.rows.to_pylist()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("pattern", ["", "*.csv", "*/*.csv"])
@pytest.mark.parametrize("seed", range(3))
def test_every_file_is_read_once_whenever_it_comes(seed: int, pattern: str, durable: bool, tmp_path: Path):
    """In no order of times, many of one time, some of them deleted afterwards, with restarts, and steps that fail."""
    dice = random.Random(seed)
    (tmp_path / "in" / "deep").mkdir(parents=True)
    folder = tmp_path / "in" / ("deep" if pattern.startswith("*/") else "")

    def opened() -> FileSource:
        source = FileSource(str(tmp_path / "in" / pattern), SCHEMA, CsvFormat(), max_age=10 * MINUTE * 1_000_000)
        if durable:
            source.remember_in(FileStore(tmp_path / "segments"))
        return source

    source, offset, found, count, now = opened(), None, [], 0, 1_000_000
    for _ in range(40):
        now += dice.choice([0, 0, 1, MINUTE])
        for _ in range(dice.randrange(4)):
            bring(folder, f"{dice.random()}.csv", count, now - dice.choice([0, 0, 1, 9 * MINUTE]))
            count += 1
        if dice.random() < 0.2:
            source = opened()
        polled = source.poll(offset, dice.choice([1, 2, 1000]))
        if polled.splits and dice.random() < 0.8:  # otherwise the tick failed: they come again
            offset = json.loads(json.dumps(polled.offset))
            found += numbers(source, polled.splits)
    source.look_again()  # a busy machine may have taken long to list it
    while (polled := source.poll(offset, 5)).splits:
        offset = polled.offset
        found += numbers(source, polled.splits)
    assert sorted(found) == list(range(count))


def test_what_is_remembered_of_files_is_no_part_of_the_manifest(tmp_path: Path):
    (tmp_path / "in").mkdir()
    for i in range(500):
        bring(tmp_path / "in", f"{i}.csv", i, 1_000_000 + i)
    declared = f"CREATE STREAM s (x BIGINT) SOURCE csv('{tmp_path}/in') ORDERED BY x DISORDER 1000"
    total = 0
    for run in range(3):
        with hw.connect(runner="inprocess", checkpoint=tmp_path / "kept") as engine:
            engine.sql(declared)
            engine.sql("SELECT COUNT(*) AS n FROM s", name="q").start(hw.sinks.noop())
            engine.run_to_end(end_streams=False)
            total = 500 + run
            assert sum(engine._core.manifest.counts["s"].values()) == total
            bring(tmp_path / "in", f"more {run}.csv", run, 1_000_000)
    manifest = max((tmp_path / "kept" / "manifests").iterdir())
    assert manifest.stat().st_size < 4_000
    kept = Checkpoint(tmp_path / "kept")
    named = {name for tick in kept.ticks() for name in kept.read(tick).segments()}
    assert {p.stem for p in (tmp_path / "kept" / "segments").iterdir()} == named


def test_files_that_are_too_old_are_forgotten(tmp_path: Path):
    source = FileSource(str(tmp_path), SCHEMA, CsvFormat(), max_age=MINUTE * 1_000_000)
    offset = None
    for i in range(10):
        bring(tmp_path, f"{i}.csv", i, 1_000_000 + i * 31)
        offset = source.poll(offset, 10).offset
    assert source._position is not None
    assert len(source._position._known) <= 3


def test_files_that_come_too_late_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    source = FileSource(str(tmp_path), SCHEMA, CsvFormat(), max_age=MINUTE * 1_000_000)
    bring(tmp_path, "new.csv", 1, 1_000_000)
    offset = source.poll(None, 10).offset
    assert not caplog.messages
    bring(tmp_path, "old.csv", 2, 999_000)
    source.look_again()
    assert numbers(source, source.poll(offset, 10).splits) == []
    (said,) = caplog.messages
    assert f"1 files that came into {tmp_path} just now are passed over, {tmp_path / 'old.csv'} for one" in said


class _Looks:
    """Counts how often folders are listed, at times of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listed, self.now = 0, 1000.0
        self._scan = os.scandir
        self._folder_time = int(self.now * 1e9)
        monkeypatch.setattr(file_listing.os, "scandir", self._scanned)
        monkeypatch.setattr(file_listing.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(file_listing.time, "time_ns", lambda: int(self.now * 1e9))

    def _scanned(self, folder: str):
        self.listed += 1
        return self._scan(folder)


def test_a_folder_that_does_not_change_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    looks, listing = _Looks(monkeypatch), Listing(str(tmp_path))
    bring(tmp_path, "a.csv", 1, 900)
    os.utime(tmp_path, (1000, 1000))
    assert [f.path for f in listing.look() or ()] == [f"{tmp_path}/a.csv"]
    looks.now += 3
    assert listing.look() == []
    assert looks.listed == 2, "too soon to believe its time"
    for _ in range(50):
        looks.now += 0.1
        assert listing.look() == []
    assert looks.listed == 2
    bring(tmp_path, "b.csv", 2, 500)
    os.utime(tmp_path, (1007, 1007))
    assert [f.path for f in listing.look() or ()] == [f"{tmp_path}/b.csv"]
    os.utime(tmp_path, (1007, 1007))
    looks.now += 11
    assert listing.look() == []
    assert looks.listed == 4, "now and then it is listed all the same"


def test_what_takes_long_to_list_is_listed_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As an object store, which has no time of its own either."""
    looks = _Looks(monkeypatch)
    listed: list[float] = []

    def slowly(path: str) -> list[file_listing.FoundFile]:
        listed.append(looks.now)
        looks.now += 0.5
        return [file_listing.FoundFile(f"{path}/{len(listed)}", 1, len(listed))]

    monkeypatch.setattr(file_listing, "list_files", slowly)
    listing = Listing(f"{tmp_path}/*/*.csv")
    came = []
    for _ in range(200):
        looks.now += 0.1
        new = listing.look()
        came += new or []
    assert len(came) == len(listed) <= 6
    listing.look_again()
    assert listing.look(), "who asks for all there is gets it"
