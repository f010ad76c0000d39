"""Answers of different engines made comparable, by DuckDB: read, turned into rows, digested."""

from __future__ import annotations

from pathlib import Path

import duckdb

from benchmarks.engine.cases import Case
from benchmarks.engine.competitor import Digest
from benchmarks.engine.data import AUCTION, BID, Data
from headwater.errors import InputError

_TIMES = ("window_end", "ts", "expires")
"""Columns that are times; all others are whole numbers."""


def connect(data: Data, fmt: str, *, threads: int = 2) -> duckdb.DuckDBPyConnection:
    """DuckDB with the streams as views on their files."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {threads}")
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    for stream, schema in (("bid", BID), ("auction", AUCTION)):
        place = data.folder(stream, fmt)
        if fmt == "parquet":
            source = f"SELECT * FROM read_parquet('{place}/*.parquet')"
        else:
            columns = ", ".join(f"'{f.name}': '{_type(f.name)}'" for f in schema)
            source = f"SELECT * FROM read_csv('{place}/*.csv', header = false, columns = {{{columns}}})"
        times = [f.name for f in schema if f.name in _TIMES]
        plain = ", ".join(f"{name}::TIMESTAMP AS {name}" for name in times)
        connection.execute(f"CREATE VIEW {stream} AS SELECT * REPLACE ({plain}) FROM ({source})")
    return connection


def digest(case: Case, data: Data, folder: Path, *, fmt: str, intervals: bool) -> Digest:
    """Of an answer written as files: ``parquet`` with its columns, or ``csv`` with those of the case in their order."""
    connection = connect(data, "parquet")
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and _is_data(path.relative_to(folder), fmt)]
    if not files:
        raise InputError("NO_ANSWER", f'there is no answer in "{folder}"')
    if fmt == "csv":
        columns = ", ".join(f"'{name}': '{_type(name)}'" for name in case.columns)
        read = f"read_csv({[str(path) for path in files]}, header = false, columns = {{{columns}}})"
    else:
        read = f"read_parquet({[str(path) for path in files]})"
    connection.execute(f"CREATE VIEW answer AS SELECT * FROM {read}")
    return digest_view(case, data, connection, intervals=intervals)


def _type(name: str) -> str:
    return "TIMESTAMP" if name in _TIMES else "BIGINT"


def _is_data(path: Path, fmt: str) -> bool:
    hidden = any(part.startswith(("_", ".")) for part in path.parts)
    return not hidden and (fmt == "csv" or path.suffix == ".parquet")


def digest_view(case: Case, data: Data, connection: duckdb.DuckDBPyConnection, *, intervals: bool) -> Digest:
    """Of the relation ``answer``. Only what all engines have told by the end of the data counts.

    Spark ends 2 s before the newest bid: it has no way to say that nothing more comes.
    """
    horizon = (data.until - 5_000) // 10_000 * 10_000
    rows = case.intervals if intervals else "SELECT * FROM answer"
    values = ", ".join(f"epoch_ms({c}::TIMESTAMP)" if c in _TIMES else f"{c}::BIGINT" for c in case.columns)
    found = connection.execute(
        f"SELECT count(*), coalesce(sum(hash({values})::HUGEINT), 0) FROM ({rows}) "
        f"WHERE epoch_ms({case.time}::TIMESTAMP) <= {horizon} AND {case.compared}"
    ).fetchone()
    assert found is not None
    return Digest(int(found[0]), int(found[1]))
