"""The tick interval with streaming DataFrames: their batches wait and are one tick, and a drain does not wait."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import headwater as hw
from headwater.backends.spark.session import SessionHandle
from headwater.clock.wall import VirtualClock

SECOND = 1_000_000


def bring(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"at": pa.array([number], pa.int64())}), folder / f"_{number}.parquet")
    (folder / f"_{number}.parquet").rename(folder / f"{number}.parquet")


def test_batches_of_two_frames_are_one_tick(session: SessionHandle, tmp_path: Path):
    clock, sinks = VirtualClock(1_000 * SECOND), {name: hw.sinks.noop() for name in "ab"}
    options = {"checkpoint": tmp_path / "checkpoint", "clock": clock, "every": "1 hour"}
    for name in sinks:
        bring(tmp_path / name, 1)
    with hw.connect(spark=session.spark, **options) as engine:
        with engine.held():
            for name, sink in sinks.items():
                frame = session.spark.readStream.schema("at BIGINT").parquet(str(tmp_path / name))
                engine.register(name, frame, time="at", disorder=0)
                engine.sql(f"SELECT at FROM {name}", name=f"of_{name}").start(sink)
        engine.run_to_end(end_streams=False)
        assert [sink.rows for sink in sinks.values()] == [1, 1]
        before = engine._core.manifest.tick
        for name in sinks:
            bring(tmp_path / name, 2)
        while len(engine._loop._waiting) < 2:  # both wait for the interval to be over
            engine._inputs.raise_failure()
            engine._loop.pause()
        assert engine._core.manifest.tick == before
        clock.advance(3600 * SECOND)
        while engine._core.manifest.tick == before:
            engine._inputs.raise_failure()
            engine._loop.pause()
        engine.run_to_end(end_streams=False)
        assert engine._core.manifest.tick == before + 1
        assert [sink.rows for sink in sinks.values()] == [2, 2]
