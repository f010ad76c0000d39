"""Native Spark Structured Streaming: Spark SQL over its file source, in a process of its own."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.engine.answers import digest
from benchmarks.engine.cases import Cannot, Case
from benchmarks.engine.competitor import PARALLELISM, Competitor, Measured, Skipped
from benchmarks.engine.data import AUCTION, BID, Data
from benchmarks.engine.worker import Worker, WorkerFailedError

BATCH_ROWS = 1_000_000
"""Rows a micro-batch, about: large, as throughput is what is measured."""
_FINDING_BENCHMARKS = {
    "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
}
"""The environment of a process that imports them: they are not installed."""


class SparkSide(Competitor):
    """AvailableNow over the files, watermark 2 s, RocksDB, noop sink."""

    name = "Spark"

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._worker = Worker([sys.executable, "-m", "benchmarks.engine.spark_runner"], environment=_FINDING_BENCHMARKS)
        self._version = ""
        self._missing = ""

    def versions(self) -> str:
        self._start()
        return f"{self._version}, local[{PARALLELISM}], RocksDB" if self._version else f"no Spark: {self._missing}"

    def _start(self) -> None:
        if self._version or self._missing:
            return
        try:
            self._version = self._worker.start()
        except (WorkerFailedError, OSError) as problem:
            self._missing = str(problem)

    def run(
        self, case: Case, data: Data, fmt: str, *, answer: Path | None = None, limit: float = 3600
    ) -> Measured | Skipped:
        if isinstance(case.spark, Cannot):
            return Skipped(case.spark.reason, cannot=True)
        self._start()
        if not self._version:
            return Skipped(self._missing)
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix="spark-") as checkpoint:
            request = {
                "tables": [_table(stream, data, fmt) for stream in ("bid", "auction")],
                "format": fmt,
                "files": max(BATCH_ROWS * data.files // data.bids, PARALLELISM),
                "query": case.spark,
                "checkpoint": checkpoint,
                "answer": str(answer) if answer else None,
            }
            try:
                said = self._worker.ask(request, limit)
            except WorkerFailedError as problem:
                return Skipped(str(problem))
        if "error" in said:
            return Skipped(said["error"], cannot=said["cannot"])
        found = digest(case, data, answer, fmt="parquet", intervals=False) if answer else None
        return Measured(data.rows(case.streams), said["seconds"], found)

    def close(self) -> None:
        self._worker.close()


def _table(stream: str, data: Data, fmt: str) -> dict[str, str]:
    schema = BID if stream == "bid" else AUCTION
    time = schema.field("ts").type
    columns = ", ".join(f"{f.name} {'TIMESTAMP' if f.type == time else 'BIGINT'}" for f in schema)
    return {"name": stream, "schema": columns, "folder": str(data.folder(stream, fmt))}
