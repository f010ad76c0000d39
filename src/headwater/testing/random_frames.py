"""Random queries with OVER (… ORDER BY ts …) as text, judged by DuckDB's own OVER on everything that was ever in the stream.

DuckDB leaves the order of rows of one instant open, so its text orders them by all their columns where that matters.
"""

from __future__ import annotations

from collections import Counter

import duckdb
import pyarrow as pa
from attrs import evolve, frozen

from headwater.algebra.nodes import Plan, Source
from headwater.errors import HeadwaterError
from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.element import Adjust, Insert
from headwater.model.history import History, freeze
from headwater.optimizer.plan_query import plan_query
from headwater.settings import Settings
from headwater.testing.checks import CheckError, check_cases
from headwater.testing.choices import Choices, Dice
from headwater.testing.equivalence import as_read
from headwater.testing.generate import Case, Element, stream, whole
from headwater.testing.oracle import expected_histories

STREAM = "CREATE STREAM s (k STRING, x INT, y DOUBLE, b BOOLEAN, ts BIGINT NOT NULL) ORDERED BY ts;"
_TIES = "ts, k NULLS FIRST, x NULLS FIRST, y NULLS FIRST, b NULLS FIRST"
_PARTITIONS = ("PARTITION BY k ", "", "PARTITION BY k, b ", "PARTITION BY x % 2 ", "PARTITION BY k IS NULL ")
_ROWS = ("ROWS 2 PRECEDING", "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING", "ROWS UNBOUNDED PRECEDING")
_ROWS += (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND CURRENT ROW",
    "ROWS 5 PRECEDING",
)
_RANGES = (
    "RANGE 3 PRECEDING",
    "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
)
_RANGES += ("", "RANGE UNBOUNDED PRECEDING", "RANGE 6 PRECEDING")
_TYPES = {"k": "VARCHAR", "x": "INTEGER", "y": "DOUBLE", "b": "BOOLEAN"}


@frozen
class FramedSql:
    """A query over the stream, and the same for DuckDB, with the instant of each row as ``_t``."""

    query: str
    duckdb: str
    kept: int
    """How many columns come before those of the calls."""


def framed_sql(choices: Choices) -> FramedSql:
    """A select list of one to four calls; perhaps a filter below, or a named window."""
    calls = [_call(choices) for _ in range(choices.integer(1, 4))]
    where = choices.pick(["", "", " WHERE x > 0 OR k IS NULL", " WHERE b IS NOT TRUE"])
    kept = choices.pick(["k, x", "x", "k, ts", "y"])
    texts = [", ".join([kept, *(f"{call[side]} AS c{i}" for i, call in enumerate(calls))]) for side in (0, 1)]
    return FramedSql(
        f"SELECT {texts[0]} FROM s{where}", f"SELECT ts AS _t, {texts[1]} FROM s{where}", kept.count(",") + 1
    )


def _call(c: Choices) -> tuple[str, str]:
    partition = c.pick(_PARTITIONS)
    column = c.pick(["x", "y", "k", "b"])
    if c.chance(25):
        many, default = c.pick([1, 2, 0, 5]), c.pick(["", "", ", NULL"])
        if column == "x" and not default:
            default = c.pick(["", ", -1", ", x + 1"])
        call = f"LAG({column}, {many}{default})"
        return f"{call} OVER ({partition}ORDER BY ts)", f"{call} OVER ({partition}ORDER BY {_TIES})"
    rows = c.chance(55)
    frame = c.pick(_ROWS) if rows else c.pick(_RANGES)
    if c.chance(30):
        return _value(c, column, partition, frame, rows=rows)
    functions = ["MIN", "MAX", "COUNT"] + (["SUM", "AVG"] if column in "xy" else [])
    name = c.pick(functions)
    distinct = "DISTINCT " if not rows and name == "COUNT" and c.chance(30) else ""
    argument = c.pick(["*", column]) if name == "COUNT" and not distinct else column
    condition = c.pick(["", "", " FILTER (WHERE b)", " FILTER (WHERE x > 1)"])
    call = f"{name}({distinct}{argument}){condition} OVER"
    order = _TIES if rows else "ts"
    return f"{call} ({partition}ORDER BY ts {frame})", f"{call} ({partition}ORDER BY {order} {frame})"


def _value(c: Choices, column: str, partition: str, frame: str, *, rows: bool) -> tuple[str, str]:
    """The rows of one instant are in the frame of each of them where it is one of RANGE."""
    name = c.pick([f"LAST_VALUE({column})", f"FIRST_VALUE({column})", f"NTH_VALUE({column}, 2)"])
    if rows:
        return f"{name} OVER ({partition}ORDER BY ts {frame})", f"{name} OVER ({partition}ORDER BY {_TIES} {frame})"
    whole_ = f"ORDER BY {_TIES} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    if name.startswith("LAST"):
        by = f"{partition.strip()}, ts" if partition else "PARTITION BY ts"
        return f"{name} OVER ({partition}ORDER BY ts {frame})", f"{name} OVER ({by} {whole_})"
    least = 1 if name.startswith("FIRST") else 2
    known = f"COUNT(*) OVER ({partition}ORDER BY ts) >= {least}"
    return f"{name} OVER ({partition}ORDER BY ts)", f"CASE WHEN {known} THEN {name} OVER ({partition}{whole_}) END"


def check_framed_sql(seed: int, *, streams: int = 3) -> None:
    """Make the query of the seed and check it; raises ``CheckError`` with all there is to know."""
    sql = framed_sql(Dice(seed, 1))
    result = bind_script(f"{STREAM}\n{sql.query}").result
    assert result is not None
    plan = _revisable(result.plan) if seed % 2 else result.plan
    (source,) = {node for node in plan.walk() if isinstance(node, Source)}
    given = [_timed(stream(Dice(seed, 2, i), source), source) for i in range(streams)]
    try:
        inputs = [{"s": whole(source.schema, one)} for one in given]
        for one, history in zip(inputs, expected_histories(plan, inputs), strict=True):
            _check(sql, one["s"], history)
        for its in dict.fromkeys((plan, plan_query(plan, Settings()).plan)):
            check_cases([Case(its, as_read({"s": one}, plan, its), seed + i) for i, one in enumerate(given)])
    except (CheckError, HeadwaterError, duckdb.Error) as failure:
        raise CheckError(f"seed {seed}\n{STREAM}\n{sql.query}\n\n{failure}") from failure


def _revisable(plan: Plan) -> Plan:
    if isinstance(plan, Source):
        return evolve(plan, revisable=True)
    return plan.with_inputs(*map(_revisable, plan.inputs))


def _timed(elements: list[Element], source: Source) -> list[Element]:
    """The same with the instants of the rows in their time column."""
    place = source.schema.index("ts")

    def timed(element: Element) -> Element:
        if not isinstance(element, (Insert, Adjust)):
            return element
        row = tuple(element.start if i == place else v for i, v in enumerate(element.row))
        return evolve(element, row=row)

    return [timed(element) for element in elements]


def _check(sql: FramedSql, delta: Delta, history: History) -> None:
    """Rows that are equal in every column may have their frames either way round, so each call is looked at by itself."""
    delta = delta.consolidate()
    copies = [i for i in range(len(delta)) for _ in range(int(delta.weight[i]))]
    chosen = pa.array(copies, pa.int64())
    table = pa.table({f.name: c.take(chosen) for f, c in zip(delta.schema, delta.columns, strict=True)})
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1").fetchall()
        connection.register("s", table)
        expected = [(row[0], *freeze(row[1:])) for row in connection.execute(sql.duckdb).fetchall()]
    found = [
        (t, *freeze(row)) for row, start, end, n in history.rows() for t in range(start, end) for _ in range(int(n))
    ]
    for call in range(len(history.schema) - sql.kept):
        places = [*range(1 + sql.kept), 1 + sql.kept + call]
        theirs, ours = (Counter(tuple(row[i] for i in places) for row in rows) for rows in (expected, found))
        if theirs != ours:
            told = f"DuckDB says of call {call}\n{sql.duckdb}\n{theirs - ours}\nand not {ours - theirs}"
            raise CheckError(f"{told}\nover {table.to_pylist()}")
