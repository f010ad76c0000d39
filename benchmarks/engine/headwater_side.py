"""Headwater itself, as its users run it: whatever the benchmark asks of the engine is asked here, through the public API."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyarrow import parquet

import headwater
from benchmarks.engine.answers import digest
from benchmarks.engine.cases import Case
from benchmarks.engine.competitor import PARALLELISM, Competitor, Measured, Skipped
from benchmarks.engine.data import Data
from headwater import sinks
from headwater.backends.spark.session import SessionHandle, open_session
from headwater.engine import Engine, connect
from headwater.settings import SMALL_TICK

_COLUMNS = {
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, ts TIMESTAMP",
    "auction": "id BIGINT, seller BIGINT, ts TIMESTAMP, expires TIMESTAMP",
}
TICK_ROWS = 5_000_000
"""So many bids per tick: as many as Headwater takes by itself when it is behind."""
_OPTIONS = {"parquet": "", "csv": ", header => false"}


class Connect(Protocol):
    """Makes engines."""

    def __call__(self, checkpoint: Path, *, small_tick: int = SMALL_TICK) -> Engine: ...


class WarmSpark:
    """Keeps one Spark running between engines: starting Java is not what is measured. Started when first used."""

    def __init__(self) -> None:
        self._session: SessionHandle | None = None

    def connect(self, checkpoint: Path, *, small_tick: int = SMALL_TICK) -> Engine:
        if self._session is None:
            self._session = open_session(f"local[{PARALLELISM}]", shards=PARALLELISM)
        spark = self._session.spark
        return connect(spark=spark, shards=PARALLELISM, checkpoint=checkpoint, small_tick=small_tick)

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None


class HeadwaterSide(Competitor):
    """On Spark, two shards, every tick committed to disk."""

    name = "Headwater"

    def __init__(self, scratch: Path, connect: Connect) -> None:
        self._scratch, self._connect = scratch, connect

    def versions(self) -> str:
        return f"Headwater {headwater.__version__}, {PARALLELISM} shards on local[{PARALLELISM}]"

    def run(
        self, case: Case, data: Data, fmt: str, *, answer: Path | None = None, limit: float = 3600
    ) -> Measured | Skipped:
        """``limit`` is not kept: what runs in this process cannot be given up."""
        try:
            seconds = self._seconds(case, data, fmt, answer)
        except Exception as problem:  # whatever it is, the others go on
            return Skipped(str(problem).partition("\n")[0])
        found = digest(case, data, answer, fmt="parquet", intervals=True) if answer else None
        return Measured(data.rows(case.streams), seconds, found)

    def _seconds(self, case: Case, data: Data, fmt: str, answer: Path | None) -> float:
        with (
            tempfile.TemporaryDirectory(dir=self._scratch, prefix="headwater-") as checkpoint,
            self._connect(Path(checkpoint)) as engine,
        ):
            for stream in case.streams:
                engine.sql(_declared(stream, data, fmt))
            query = engine.sql(case.headwater)
            began = time.perf_counter()
            query.start(sinks.parquet(answer) if answer else sinks.noop())
            engine.run_to_end()
            return time.perf_counter() - began


def _declared(stream: str, data: Data, fmt: str) -> str:
    """The two streams go through time in step, as they would if they came now."""
    a_tick = TICK_ROWS * data.rows((stream,)) // data.bids
    source = f"{fmt}('{data.folder(stream, fmt)}', rows_per_tick => {a_tick}{_OPTIONS[fmt]})"
    return f"CREATE STREAM {stream} ({_COLUMNS[stream]}) SOURCE {source} ORDERED BY ts DISORDER 2 SECONDS"


class Ticking:
    """Queries that are fed a batch at a time, one tick each.

    In the driver, batches are pushed. For Spark jobs they come as files: the time that Spark takes to find them counts.
    """

    def __init__(
        self, connect: Connect, scratch: Path, queries: Sequence[str], streams: Sequence[str], *, job: bool
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=scratch, prefix="ticks-"))
        self._job, self._files = job, 0
        self._engine = connect(self._folder / "checkpoint", small_tick=0 if job else SMALL_TICK)
        try:
            for stream in streams:
                (self._folder / stream).mkdir()
                source = f"SOURCE parquet('{self._folder / stream}')" if job else ""
                self._engine.sql(f"CREATE STREAM {stream} ({_COLUMNS[stream]}) {source} ORDERED BY ts IN ORDER")
            with self._engine.held():
                for number, query in enumerate(queries):
                    self._engine.sql(query, name=f"q{number}").start(sinks.noop())
        except BaseException:
            self.close()
            raise

    def tick(self, batches: Mapping[str, pa.Table]) -> float:
        """Seconds until the answer is delivered."""
        if self._job:
            for stream, rows in batches.items():
                parquet.write_table(rows, self._folder / stream / f".{self._files}.parquet")
            began = time.perf_counter()
            for stream in batches:
                written = self._folder / stream / f".{self._files}.parquet"
                written.rename(written.with_name(f"{self._files:06}.parquet"))
            self._files += 1
            self._engine.run_to_end(end_streams=False)
            return time.perf_counter() - began
        began = time.perf_counter()
        *others, last = batches
        for stream in others:
            self._engine.push(stream, batches[stream], wait=False)
        self._engine.push(last, batches[last])
        return time.perf_counter() - began

    def close(self) -> None:
        self._engine.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Ticking:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
