"""DuckDB, which answers once, over all rows: no stream, but a limit to what can be reached."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb

from benchmarks.engine.answers import connect, digest_view
from benchmarks.engine.cases import Case
from benchmarks.engine.competitor import PARALLELISM, Competitor, Measured, Skipped
from benchmarks.engine.data import Data


class DuckDBSide(Competitor):
    """Reads the files, answers and keeps the answer in memory."""

    name = "DuckDB"

    def versions(self) -> str:
        return f"DuckDB {duckdb.__version__}, {PARALLELISM} threads"

    def run(
        self, case: Case, data: Data, fmt: str, *, answer: Path | None = None, limit: float = 3600
    ) -> Measured | Skipped:
        with connect(data, fmt, threads=PARALLELISM) as connection:
            began = time.perf_counter()
            try:
                connection.execute(f"CREATE TEMP TABLE answer AS {case.duckdb}")
            except duckdb.OutOfMemoryException as problem:
                return Skipped(str(problem).partition("\n")[0])
            seconds = time.perf_counter() - began
            digest = None
            if answer is not None:
                digest = digest_view(case, data, connection, intervals=case.duckdb_intervals)
            return Measured(data.rows(case.streams), seconds, digest)
