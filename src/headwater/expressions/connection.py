"""DuckDB, which computes expressions: one connection per thread of a process, and what it says of a text.

It computes with the values that it is given: nothing here reads a file, a table or the network.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.expressions.printing import quoted
from headwater.expressions.user_functions import Registry
from headwater.model.functions import UserFunction
from headwater.model.types import INTERVAL, SPELLINGS, duckdb_name

_SETTINGS = (
    "SET threads = 1",  # rows keep their order, and ticks run in parallel by shards
    "SET error_on_division_by_zero = false",  # NULL, as in Spark without ANSI mode: one row must not stop a stream
    "SET TimeZone = 'UTC'",
    # Expressions compute with the values they are given: no files, no network, no extensions, no variables of Python's.
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)

_local = threading.local()
_opened: list[duckdb.DuckDBPyConnection] = []


def connection() -> duckdb.DuckDBPyConnection:
    """The connection of this thread of this process (a forked child must not use its parent's)."""
    if getattr(_local, "process", None) != os.getpid():
        _local.process, _local.connection, _local.attempting = os.getpid(), _open(), None
        _local.registry = Registry(_local.connection)
    return _local.connection


def attempting() -> duckdb.DuckDBPyConnection:
    """One on which ``TRY`` holds for all that stands in it: parts that occur twice are not computed ahead, outside of it.

    It knows no functions of users.
    """
    connection()
    if _local.attempting is None:
        _local.attempting = _open("SET disabled_optimizers = 'common_subexpressions'")
    return _local.attempting


def _open(*more: str) -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    _opened.append(opened)
    for setting in (*more, *_SETTINGS):
        opened.execute(setting).fetchall()  # an unread result blocks the connection
    return opened


def register(functions: Sequence[UserFunction]) -> None:
    """Make functions of users known to the connection of this thread."""
    if functions:
        connection()
        _local.registry.add(functions)


def taken_failure() -> HeadwaterError | None:
    """Why a function of users failed, if one has since this was last asked."""
    connection()
    failure, _local.registry.failure = _local.registry.failure, None
    return failure


@atexit.register
def _close() -> None:
    """Before the interpreter goes: DuckDB reports connections that are still open as leaks."""
    for opened in _opened:
        opened.close()
    _opened.clear()
    _local.__dict__.clear()


# -- types ------------------------------------------------------------------------------------------------------------

_TYPES: dict[str, pa.DataType] = {spelling.duckdb.lower(): type_ for type_, spelling in SPELLINGS.items()}
_WIDENED: dict[str, pa.DataType] = {
    # The model has no unsigned and no 128-bit integers: the next wider one holds the values that occur.
    "utinyint": pa.int16(),
    "usmallint": pa.int32(),
    "uinteger": pa.int64(),
    "ubigint": pa.int64(),
    "hugeint": pa.int64(),
    "uhugeint": pa.int64(),
}


@lru_cache(maxsize=4096)
def infer(sql: str, columns: tuple[tuple[str, pa.DataType], ...]) -> tuple[pa.DataType, bool]:
    """The type of DuckDB's text over columns, and whether DuckDB's own is another one (then a cast is needed).

    Raises ``duckdb.Error`` when the text has no type, and ``KeyError`` when the model does not have it.
    """
    empty = ", ".join(f"CAST(NULL AS {duckdb_name(t)}) AS {quoted(name)}" for name, t in columns) or "1 AS one"
    (found,) = connection().sql(f"SELECT {sql} FROM (SELECT {empty})").types
    return _from_duckdb(found)


def _from_duckdb(found: Any) -> tuple[pa.DataType, bool]:
    kind = found.id
    if kind == "decimal":
        parameters = dict(found.children)
        return pa.decimal128(parameters["precision"], parameters["scale"]), False
    if kind in ("list", "array"):
        item, inexact = _from_duckdb(found.children[0][1])
        return pa.list_(item), inexact or kind == "array"
    if kind == "struct":
        fields = [(name, *_from_duckdb(child)) for name, child in found.children]
        return pa.struct([(name, t) for name, t, _ in fields]), any(inexact for *_, inexact in fields)
    if kind == "interval":
        return INTERVAL, False
    if str(found).strip('"') == "NULL":
        return pa.null(), False
    return (_WIDENED[kind], True) if kind in _WIDENED else (_TYPES[kind], False)
