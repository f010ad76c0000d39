"""The bids and auctions that all engines read: made once, the same on every machine, kept as parquet and as CSV.

5,000 bids per second of event time, 2 % of them up to 2 s behind. An auction opens every 3 ms and closes 20 to 60 s later;
the first 40,000 have opened before the first bid. A bid goes with 30 % to one of 300 hot auctions (others every 10 s), else
to one of the 40,000 opened last, that is of the last two minutes: about half of all bids come too late for their auction.

Times are whole milliseconds, as Flink knows no finer event time; prices are whole cents, so that sums have no order.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from attrs import frozen
from pyarrow import parquet

from headwater.errors import InputError
from headwater.model.arrays import Int64Array

VERSION = 1
RATE = 5
"""Bids a millisecond."""
DISORDER = 2_000
OPEN_BEFORE = 40_000
OPENS_EVERY = 3
BEGIN = 1_767_225_720_000
"""The time of the first bid: 2026-01-01 00:02:00 UTC, in ms since the epoch."""
STREAMS = ("bid", "auction")
FORMATS = ("parquet", "csv")
_FILE_ROWS = 250_000
_FEWEST_FILES = 8
_META = "data.json"

_TIME = pa.timestamp("ms")
BID = pa.schema([("auction", pa.int64()), ("bidder", pa.int64()), ("price", pa.int64()), ("ts", _TIME)])
AUCTION = pa.schema([("id", pa.int64()), ("seller", pa.int64()), ("ts", _TIME), ("expires", _TIME)])


def make_bids(rows: int, *, seed: int = 7) -> pa.Table:
    """In arrival order."""
    rng = np.random.default_rng(seed)
    event = np.sort(rng.integers(0, max(rows // RATE, 1), rows))
    opened = OPEN_BEFORE + event // OPENS_EVERY
    turn = event // 10_000
    hot = opened - 1 - (turn * 7919 + rng.integers(0, 300, rows)) % 20_000
    usual = opened - 1 - rng.integers(0, OPEN_BEFORE, rows)
    auction = np.where(rng.random(rows) < 0.3, hot, usual)
    bidder = rng.integers(0, 200_000, rows)
    price = rng.integers(1, 200, rows) * rng.integers(1, 200, rows)  # many small ones, and no two machines differ
    late = rng.random(rows) < 0.02
    arrival = event + np.where(late, rng.integers(0, DISORDER, rows), 0)
    order = np.argsort(arrival, kind="stable")
    return pa.table([auction[order], bidder[order], price[order], _times(event[order])], schema=BID)


def make_auctions(bids: int, *, seed: int = 8) -> pa.Table:
    """Those that open before the first bid or while so many bids come, in the order of opening."""
    rng = np.random.default_rng(seed)
    number = np.arange(OPEN_BEFORE + bids // RATE // OPENS_EVERY)
    opens = (number - OPEN_BEFORE) * OPENS_EVERY
    closes = opens + rng.integers(20_000, 60_000, len(number))
    return pa.table(
        [number, rng.integers(0, 50_000, len(number)), _times(opens), _times(closes)],
        schema=AUCTION,
    )


def _times(milliseconds: Int64Array) -> pa.Array:
    return pa.array(milliseconds + BEGIN).cast(_TIME)


def checksum(*tables: pa.Table) -> str:
    """Of all values in their order: equal on every machine, or the rows are not the same."""
    sum_ = 0
    for table in tables:
        for column in table.columns:
            values = column.cast(pa.int64()).to_numpy()
            sum_ = zlib.crc32(np.ascontiguousarray(values, dtype="<i8").tobytes(), sum_)
    return f"{sum_:08x}"


@frozen
class Data:
    """A folder of frozen rows: file k of the auctions holds what opens before or during file k of the bids."""

    root: Path
    bids: int
    auctions: int
    files: int
    checksum: str
    until: int
    """The newest bid, in ms since the epoch."""

    @property
    def summary(self) -> str:
        return f"{self.bids:,} bids and {self.auctions:,} auctions in {self.files} files, checksum {self.checksum}"

    def folder(self, stream: str, fmt: str) -> Path:
        return self.root / fmt / stream

    def paths(self, stream: str, fmt: str) -> list[Path]:
        return sorted(self.folder(stream, fmt).iterdir())

    def rows(self, streams: tuple[str, ...]) -> int:
        """How many rows a query of these streams reads."""
        return (self.bids if "bid" in streams else 0) + (self.auctions if "auction" in streams else 0)

    def prefix(self, files: int) -> Data:
        """The first files of every stream, as a folder of its own (links, no copies)."""
        if files >= self.files:
            return self
        root = self.root.with_name(f"{self.root.name}-first-{files}")
        if not (root / _META).exists():
            _build(root, lambda folder: self._link_first(files, folder))
        return _load(root)

    def _link_first(self, files: int, folder: Path) -> Data:
        counts = dict.fromkeys(STREAMS, 0)
        until = 0
        for stream in STREAMS:
            for fmt in FORMATS:
                (folder / fmt / stream).mkdir(parents=True)
                for path in self.paths(stream, fmt)[:files]:
                    os.link(path, folder / fmt / stream / path.name)
            for path in sorted((folder / "parquet" / stream).iterdir()):
                table = parquet.read_table(path, columns=["ts"])
                counts[stream] += len(table)
                if stream == "bid":
                    until = max(until, int(table.column("ts").cast(pa.int64()).to_numpy().max()) // 1_000)
        return Data(folder, counts["bid"], counts["auction"], files, self.checksum, until)

    def dealt(self, stream: str, hands: int) -> Path:
        """The CSV rows of a stream dealt out in turn to so many files, each still in order of arrival.

        Flink gives each of its parallel readers one whole file at a time and keeps a watermark per file: files that
        follow each other in time would be read side by side, and the rows of the earlier one be late.
        """
        folder = self.root / f"dealt-{hands}" / stream
        if folder.exists():
            return folder
        partial = Path(tempfile.mkdtemp(dir=self.root, prefix=".dealt-"))
        try:
            self._deal(stream, hands, partial)
            folder.parent.mkdir(exist_ok=True)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return folder

    def _deal(self, stream: str, hands: int, folder: Path) -> None:
        outs = [(folder / f"{hand}.csv").open("wb") for hand in range(hands)]
        turn = 0
        for path in self.paths(stream, "csv"):
            lines = path.read_bytes().splitlines(keepends=True)
            for hand, out in enumerate(outs):
                out.writelines(lines[(hand - turn) % hands :: hands])
            turn = (turn + len(lines)) % hands
        for out in outs:
            out.close()


def cache_folder() -> Path:
    """Where benchmarks keep what is made only once."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater" / "bench"


def frozen_data(rows: int, cache: Path) -> Data:
    """The data of that many bids: from the cache, or made now."""
    root = cache / f"bids-{rows}-v{VERSION}"
    if not (root / _META).exists():
        _build(root, lambda folder: _make(rows, folder))
    return _load(root)


def _build(root: Path, make) -> None:
    """A folder that is there whole or not at all."""
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(root, ignore_errors=True)
        partial = Path(tempfile.mkdtemp(dir=root.parent, prefix=f".{root.name}-"))
        try:
            made = make(partial)
            kept = {"bids": made.bids, "auctions": made.auctions, "files": made.files}
            meta = kept | {"checksum": made.checksum, "until": made.until}
            (partial / _META).write_text(json.dumps(meta), encoding="utf-8")
            partial.rename(root)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as problem:
        raise InputError(
            "UNWRITABLE", f'could not write the data of the benchmark under "{root.parent}": {problem.strerror}'
        ) from problem


def _load(root: Path) -> Data:
    return Data(root, **json.loads((root / _META).read_text(encoding="utf-8")))


def _make(rows: int, folder: Path) -> Data:
    bids, auctions = make_bids(rows), make_auctions(rows)
    parts = _parts(bids, auctions)
    for k, tables in enumerate(parts):
        for stream, table in zip(STREAMS, tables, strict=True):
            _write(table, folder, stream, k)
    until = int(bids.column("ts").cast(pa.int64()).to_numpy().max())
    return Data(folder, len(bids), len(auctions), len(parts), checksum(bids, auctions), until)


def _parts(bids: pa.Table, auctions: pa.Table) -> list[tuple[pa.Table, pa.Table]]:
    """Both streams cut into files that cover the same time."""
    size = min(_FILE_ROWS, -(-len(bids) // _FEWEST_FILES))
    opens = auctions.column("ts").cast(pa.int64()).to_numpy()
    parts, done = [], 0
    for at in range(0, len(bids), size):
        part = bids.slice(at, size)
        last = at + size >= len(bids)
        newest = int(part.column("ts").cast(pa.int64()).to_numpy().max())
        until = len(auctions) if last else int(np.searchsorted(opens, newest, side="right"))
        parts.append((part, auctions.slice(done, until - done)))
        done = until
    return parts


def _write(table: pa.Table, folder: Path, stream: str, k: int) -> None:
    as_csv = arrow_csv.WriteOptions(include_header=False, quoting_style="none")
    for fmt in FORMATS:
        path = folder / fmt / stream / f"{k:04}.{fmt}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if fmt == "parquet":
            parquet.write_table(_microseconds(table), path)
        else:
            arrow_csv.write_csv(table, path, write_options=as_csv)
        # Engines take files in the order of their age.
        age = BEGIN // 1_000 + k
        os.utime(path, (age, age))


def _microseconds(table: pa.Table) -> pa.Table:
    """As Spark and Headwater store a TIMESTAMP."""
    fields = [f.with_type(pa.timestamp("us", tz="UTC")) if f.type == _TIME else f for f in table.schema]
    return table.cast(pa.schema(fields))
