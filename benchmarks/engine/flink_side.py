"""Flink: SQL on its table API, in an environment and a process of its own."""

from __future__ import annotations

from pathlib import Path

from benchmarks.engine import flink_env
from benchmarks.engine.answers import digest
from benchmarks.engine.cases import FLINK_VIEW, Cannot, Case
from benchmarks.engine.competitor import PARALLELISM, Competitor, Measured, Skipped
from benchmarks.engine.data import AUCTION, BID, Data
from benchmarks.engine.worker import Worker, WorkerFailedError
from headwater.backends.spark.java import find_java
from headwater.errors import HeadwaterError

_RUNNER = Path(__file__).with_name("flink_runner.py")
_START_SECONDS = 60
"""A job takes some seconds to come up, which do not count."""


class FlinkSide(Competitor):
    """Its distribution for Python reads no parquet, so it gets CSV only."""

    name = "Flink"
    formats = ("csv",)

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._worker: Worker | None = None
        self._version = ""
        self._missing = ""

    def versions(self) -> str:
        self._start()
        return f"{self._version}, parallelism {PARALLELISM}" if self._worker else f"no Flink: {self._missing}"

    def _start(self) -> None:
        if self._worker or self._missing:
            return
        try:
            python = flink_env.flink_python(self._cache)
            java = {"JAVA_HOME": str(find_java().home)}
            self._worker = Worker([str(python), str(_RUNNER)], environment=java)
            self._version = self._worker.start()
        except (flink_env.NoFlinkError, WorkerFailedError, HeadwaterError, OSError) as problem:
            self._worker, self._missing = None, str(problem).partition("\n")[0]

    def run(
        self, case: Case, data: Data, fmt: str, *, answer: Path | None = None, limit: float = 3600
    ) -> Measured | Skipped:
        if isinstance(case.flink, Cannot):
            return Skipped(case.flink.reason, cannot=True)
        self._start()
        if self._worker is None:
            return Skipped(self._missing)
        request = {
            "tables": [_table(stream, data) for stream in ("bid", "auction")],
            "views": [FLINK_VIEW],
            "query": case.flink,
            "parallelism": PARALLELISM,
            "revises": case.flink_revises,
            "answer": str(answer) if answer else None,
        }
        try:
            said = self._worker.ask(request, limit + _START_SECONDS)
        except WorkerFailedError as problem:
            return Skipped(str(problem))
        if "error" in said:
            return Skipped(said["error"])
        found = digest(case, data, answer, fmt="csv", intervals=False) if answer else None
        return Measured(data.rows(case.streams), said["seconds"], found)

    def close(self) -> None:
        if self._worker:
            self._worker.close()


def _table(stream: str, data: Data) -> dict[str, object]:
    schema = BID if stream == "bid" else AUCTION
    time = schema.field("ts").type
    columns = [(f.name, "TIMESTAMP(3)" if f.type == time else "BIGINT") for f in schema]
    return {"name": stream, "columns": columns, "time": "ts", "folder": str(data.dealt(stream, PARALLELISM))}
