"""An independent judge: at every instant, DuckDB runs the plain relational query over the snapshots.

All instants of a bounded horizon, of many inputs of one plan, are one query: the instant is one more column, and a key
of every join, grouping and set operation. Windows follow their logical definitions (Krämer 8.17-8.19, 17.1, 17.2), no
interval is ever computed, and nothing is shared with the operators.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from functools import cache, singledispatchmethod

import duckdb
import numpy as np
import pyarrow as pa

from headwater.algebra.nodes import (
    Aggregate,
    Await,
    Coalesce,
    Constant,
    Distinct,
    Dstream,
    Filter,
    Frames,
    FromPositiveNegative,
    Granularity,
    HopWindow,
    Istream,
    Join,
    JoinKind,
    Plan,
    PreAggregate,
    Project,
    RowWindow,
    Sample,
    SessionWindow,
    SetKind,
    SetOperation,
    Source,
    Split,
    Stamp,
    TimeWindow,
    TopK,
    ToPositiveNegative,
    Union,
    Unnest,
)
from headwater.expressions.duckdb import to_duckdb
from headwater.expressions.printing import quoted
from headwater.expressions.user_functions import Registry
from headwater.model.delta import Delta
from headwater.model.functions import UserFunction
from headwater.model.history import History
from headwater.model.time import INFINITY
from headwater.testing.oracle_text import call_text, duckdb_type, framed_call, part_text, sort_text
from headwater.testing.shape import extent, grows_for_ever, sources

Inputs = Mapping[str, Delta]
"""The whole of every source stream, as one delta each."""


def expected_history(plan: Plan, inputs: Inputs) -> History:
    """What the plan must answer over these inputs."""
    return expected_histories(plan, [inputs])[0]


def expected_histories(plan: Plan, cases: Sequence[Inputs]) -> list[History]:
    """What the plan must answer over each of several inputs, in one query.

    Instants range over [0, H], where H lies beyond everything that can change; the last stands for all later ones.
    """
    names = [source.name for source in sources(plan)]
    lasting = {n for n in names if any((case[n].end == INFINITY).any() for case in cases)}
    if grows_for_ever(plan, lasting):
        raise ValueError("a window over rows that stay for ever grows for ever: no finite history tells the answer")
    horizon = max((_last_endpoint(case[n]) for case in cases for n in names), default=0) + extent(plan) + 1
    query = _Query(horizon, len(cases))
    top = query.add(plan)
    connection = _connection()
    for source in sources(plan):
        connection.register(f"source {source.name}", _table(source, [case[source.name] for case in cases]))
    for name, constant in query.constants.items():
        connection.register(name, constant)
    _registry().add([function for node in plan.walk() for function in _functions(node)])
    columns = ", ".join(_quoted(plan.schema.names))
    text = f"{query.text()} SELECT _t, {columns}, count(*) AS _n FROM {top} GROUP BY ALL ORDER BY _t"
    return _histories(plan, connection.sql(text).to_arrow_table(), horizon, len(cases))


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for setting in ("threads = 1", "error_on_division_by_zero = false", "TimeZone = 'UTC'"):
        connection.execute(f"SET {setting}").fetchall()
    return connection


@cache
def _registry() -> Registry:
    return Registry(_connection())


@atexit.register
def _close() -> None:
    """Before the interpreter goes: DuckDB reports functions of connections that are still open as leaks."""
    if _registry.cache_info().currsize:
        _connection().close()
        _registry.cache_clear()
        _connection.cache_clear()


def _functions(node: Plan) -> list[UserFunction]:
    """The functions of users that a node calls."""
    match node:
        case Filter(predicate=predicate):
            return list(predicate.functions)
        case Project(expressions=expressions):
            return [function for _, scalar in expressions for function in scalar.functions]
        case Join(residual=residual) if residual is not None:
            return list(residual.functions)
    return []


def _last_endpoint(delta: Delta) -> int:
    times = np.concatenate([delta.start, delta.end])
    if (times < 0).any():
        raise ValueError("the oracle's instants begin at 0")
    return int(times[times < INFINITY].max(initial=0))


def _table(source: Source, deltas: Sequence[Delta]) -> pa.Table:
    """All cases of one source: payload, interval, weight and the number of the case."""
    whole = Delta.concat(source.schema, deltas)
    case = np.repeat(np.arange(len(deltas)), [len(d) for d in deltas])
    table = pa.Table.from_batches([whole.to_batch()])
    return table.append_column("_case", pa.array(case))


def _histories(plan: Plan, answer: pa.Table, horizon: int, cases: int) -> list[History]:
    stride = horizon + 1
    when = answer.column("_t").to_numpy()
    counts = answer.column("_n").to_numpy().astype(np.int64)
    payload = [
        answer.column(f.name).cast(f.type).combine_chunks() if len(answer) else pa.array([], f.type)
        for f in plan.schema
    ]
    bounds = np.searchsorted(when, np.arange(cases + 1) * stride)
    histories = []
    for case in range(cases):
        low, high = int(bounds[case]), int(bounds[case + 1])
        start = when[low:high] - case * stride
        end = np.where(start == horizon, INFINITY, start + 1)
        columns = [c.slice(low, high - low) for c in payload]
        histories.append(History.of(plan.schema, [Delta(plan.schema, columns, start, end, counts[low:high])]))
    return histories


class _Query:
    """Collects one common table expression per node. ``_t`` = number of the case * stride + instant."""

    def __init__(self, horizon: int, cases: int) -> None:
        self.horizon, self.stride = horizon, horizon + 1
        self._names: dict[Plan, str] = {}
        self.constants: dict[str, pa.Table] = {}
        every = f"FROM range({cases}) c(c), range({self.stride}) t(t)"
        self._parts = [f"instants AS (SELECT c * {self.stride} + t AS _t, c AS _run, t AS _now {every})"]

    def text(self) -> str:
        return "WITH " + ",\n".join(self._parts)

    def add(self, plan: Plan) -> str:
        """The name of the node's table of rows, one per copy and instant."""
        if plan not in self._names:
            below = [self.add(child) for child in plan.inputs]
            body = self._sql(plan, *below)
            self._names[plan] = f"node{len(self._names)}"
            self._parts.append(f"{self._names[plan]} AS ({body})")
        return self._names[plan]

    @singledispatchmethod
    def _sql(self, plan: Plan, *below: str) -> str:
        raise NotImplementedError(f"the oracle does not know {type(plan).__name__}")

    @_sql.register
    def _(self, plan: Source) -> str:
        columns = _columns(plan)
        copies = (
            f'SELECT i._t, {columns}, sum(_weight) AS _n FROM "source {plan.name}" s'
            " JOIN instants i ON i._run = s._case AND s._start <= i._now AND i._now < s._end GROUP BY ALL"
        )
        return f"SELECT _t, {columns} FROM ({copies}), range(_n::BIGINT)"

    @_sql.register
    def _(self, plan: Constant) -> str:
        name = f"constant {len(self.constants)}"
        columns = [pa.array([row[i] for row in plan.rows], f.type) for i, f in enumerate(plan.schema)]
        self.constants[name] = pa.table(columns, names=list(plan.schema.names))
        return f"SELECT i._t, {_columns(plan)} FROM instants i, {quoted(name)}"

    @_sql.register
    def _(self, plan: Filter, below: str) -> str:
        return f"SELECT * FROM {below} WHERE {to_duckdb(plan.predicate)}"

    @_sql.register
    def _(self, plan: Project, below: str) -> str:
        values = [f"CAST({to_duckdb(e)} AS {duckdb_type(e.type)}) AS {quoted(n)}" for n, e in plan.expressions]
        return f"SELECT {', '.join(['_t', *values])} FROM {below}"

    @_sql.register
    def _(self, plan: Union, *below: str) -> str:
        pairs = zip(plan.inputs, below, strict=True)
        return " UNION ALL ".join(_renamed(child, plan, table) for child, table in pairs)

    @_sql.register
    def _(self, plan: Unnest, below: str) -> str:
        array = quoted(plan.array)
        pairs = [(array, plan.item)]
        if plan.place is not None:
            pairs.append((f"range(1, len({array}) + 1)", plan.place))
        if plan.outer:
            pairs = [(f"CASE WHEN len({array}) > 0 THEN {listed} ELSE [NULL] END", name) for listed, name in pairs]
        made = [f"unnest({listed}) AS {quoted(name)}" for listed, name in pairs]
        kept = [name for name in plan.input.schema.names if name != plan.array]
        return f"SELECT {', '.join(['_t', *_quoted(kept), *made])} FROM {below}"

    @_sql.register
    def _(self, plan: Distinct, below: str) -> str:
        return f"SELECT DISTINCT * FROM {below}"

    @_sql.register
    def _(self, plan: Join, left: str, right: str) -> str:
        tests = ["l._t = r._t", *(f'"l.{a}" = "r.{b}"' for a, b in plan.keys)]
        if plan.residual is not None:
            tests.append(f"({to_duckdb(plan.residual)})")
        sides = [_side(plan.left, left, "l"), _side(plan.right, right, "r")]
        chosen = [f'"l.{n}" AS {quoted(n)}' for n in plan.left.schema.names]
        if plan.kind in (JoinKind.SEMI, JoinKind.ANTI):
            when = "l._t AS _t"
        else:
            when = "coalesce(l._t, r._t) AS _t"
            chosen += [f'"r.{n}" AS {quoted(n)}' for n in plan.right.schema.names]
        how = f"{plan.kind.value.upper()} JOIN"
        return f"SELECT {', '.join([when, *chosen])} FROM {sides[0]} {how} {sides[1]} ON {' AND '.join(tests)}"

    @_sql.register
    def _(self, plan: SetOperation, left: str, right: str) -> str:
        other = _renamed(plan.right, plan.left, right)
        if plan.kind is SetKind.MAX_UNION:
            return f"FROM {left} UNION ALL ({other} EXCEPT ALL FROM {left})"
        if plan.kind is SetKind.STRICT_DIFFERENCE:
            same = " AND ".join(f"a.{n} IS NOT DISTINCT FROM b.{n}" for n in ["_t", *_quoted(plan.schema.names)])
            return f"SELECT * FROM {left} a WHERE NOT EXISTS (SELECT 1 FROM ({other}) b WHERE {same})"
        return f"FROM {left} {plan.kind.value.upper()} ({other})"

    @_sql.register
    def _(self, plan: Aggregate, below: str) -> str:
        keys = ["_t", *_quoted(plan.keys)]
        schema = plan.input.schema
        values = [f"CAST({call_text(c, schema)} AS {duckdb_type(c.type)}) AS {quoted(c.output)}" for c in plan.calls]
        return f"SELECT {', '.join(keys + values)} FROM {below} GROUP BY {', '.join(keys)}"

    @_sql.register
    def _(self, plan: PreAggregate, below: str) -> str:
        # Row by row, as if nothing were put together: the aggregation above must not see the difference.
        parts = [f"{part_text(c)} AS {quoted(c.output)}" for c in plan.calls]
        return f"SELECT {', '.join(['_t', *_quoted(plan.keys), *parts])} FROM {below}"

    @_sql.register
    def _(self, plan: Await, below: str, other: str) -> str:
        return f"FROM {below}"

    @_sql.register
    def _(self, plan: TimeWindow, below: str) -> str:
        # 17.1 (8.17 with slide 1): with K = floor((t+1)/a)*a, what was valid in [max(K-w, 0), K-1]; nothing before a-1.
        k = f"(i._now + 1) // {plan.slide} * {plan.slide}"
        first = "0" if plan.unbounded else f"greatest({k} - {plan.size}, 0)"
        return (
            f"SELECT i._t, {_columns(plan)} FROM {below} b JOIN instants i ON i._run = b._t // {self.stride}"
            f" AND i._now >= {plan.slide - 1} AND b._t % {self.stride} BETWEEN {first} AND {k} - 1"
        )

    @_sql.register
    def _(self, plan: RowWindow, below: str) -> str:
        # 17.2 (8.18 with slide 1) in each group (8.19): with n rows so far and K = floor(n/A)*A, rows K-N+1 to K.
        case = f"_t // {self.stride}"
        group = ", ".join([case, *_quoted(plan.partition)])
        order = ", ".join(["_t", *(f"{sort_text(quoted(f.name), f.type)} ASC NULLS FIRST" for f in plan.schema)])
        numbered = (
            f"SELECT *, {case} AS _c, dense_rank() OVER (ORDER BY {group}) AS _g,"
            f" row_number() OVER (PARTITION BY {group} ORDER BY {order}) AS _k FROM {below}"
        )
        tops = (
            f"SELECT i._t, _g, count(*) // {plan.slide} * {plan.slide} AS _top FROM ({numbered}) n"
            " JOIN instants i ON i._run = n._c AND n._t <= i._t GROUP BY i._t, _g"
        )
        return (
            f"SELECT m._t, {_columns(plan)} FROM ({tops}) m JOIN ({numbered}) n"
            f" ON m._g = n._g AND n._k > m._top - {plan.rows} AND n._k <= m._top"
        )

    @_sql.register
    def _(self, plan: Frames, below: str) -> str:
        group = ", ".join([f"_t // {self.stride}", *_quoted(plan.partition)])
        order = ", ".join(["_t", *(f"{sort_text(quoted(f.name), f.type)} ASC NULLS FIRST" for f in plan.input.schema)])
        values = [f"{framed_call(c, group, order)} AS {quoted(c.output)}" for c in plan.calls]
        return f"SELECT _t, {', '.join([_columns(plan.input), *values])} FROM {below}"

    @_sql.register
    def _(self, plan: TopK, below: str) -> str:
        fields = {f.name: f.type for f in plan.input.schema}
        ways = [(k.column, "DESC" if k.descending else "ASC", "FIRST" if k.nulls_first else "LAST") for k in plan.order]
        ways += [(name, "ASC", "FIRST") for name in fields]
        order = ", ".join(f"{sort_text(quoted(c), fields[c])} {way} NULLS {nulls}" for c, way, nulls in ways)
        group = ", ".join(["_t", *_quoted(plan.partition)])
        numbered = f"SELECT *, row_number() OVER (PARTITION BY {group} ORDER BY {order}) AS _k FROM {below}"
        number = f", _k::INTEGER AS {quoted(plan.rank)}" if plan.rank is not None else ""
        return (
            f"SELECT _t, {_columns(plan.input)}{number} FROM ({numbered})"
            f" WHERE _k > {plan.offset} AND _k - {plan.offset} <= {plan.limit}"
        )

    @_sql.register
    def _(self, plan: HopWindow, below: str) -> str:
        # At each instant the one window that ended last is reported, with what was valid in it, while it is shown.
        late = f"(i._now - {plan.offset + plan.size})"
        since = f"(({late} % {plan.slide} + {plan.slide}) % {plan.slide})"
        end = f"(i._now - {since})"
        start = f"({end} - {plan.size})"
        return (
            f"SELECT i._t, {_columns(plan.input)}, {_instant(start, plan.time)} AS {quoted(plan.start)},"
            f" {_instant(end, plan.time)} AS {quoted(plan.end)} FROM {below} b"
            f" JOIN instants i ON i._run = b._t // {self.stride}"
            f" AND {start} <= b._t % {self.stride} AND b._t % {self.stride} < {end} AND {since} < {plan.shown}"
        )

    @_sql.register
    def _(self, plan: SessionWindow, below: str) -> str:
        # A row begins a session unless another one precedes it by at most the gap; rows of an instant are peers.
        group = ", ".join([f"_t // {self.stride}", *_quoted(plan.partition)])
        begun = (
            f"SELECT *, coalesce(_t - lag(_t) OVER (PARTITION BY {group} ORDER BY _t) > {plan.gap}, true)::INT AS _new"
            f" FROM {below}"
        )
        numbered = f"SELECT *, sum(_new) OVER (PARTITION BY {group} ORDER BY _t) AS _session FROM ({begun})"
        ends = f"OVER (PARTITION BY {group}, _session)"
        found = f"SELECT *, min(_t) {ends} AS _first, max(_t) {ends} + {plan.gap} AS _last FROM ({numbered})"
        first, last = f"_first % {self.stride}", f"(_last - _t // {self.stride} * {self.stride})"
        return (
            f"SELECT i._t, {_columns(plan.input)}, {_instant(first, plan.time)} AS {quoted(plan.start)},"
            f" {_instant('_end', plan.time)} AS {quoted(plan.end)} FROM (SELECT *, {last} AS _end FROM ({found})) b"
            f" JOIN instants i ON i._run = b._t // {self.stride} AND i._now >= _end"
        )

    @_sql.register
    def _(self, plan: Granularity, below: str) -> str:
        # Alg. 24, the dense form: until the next granule, what was valid at the last one; nothing before the first.
        first = plan.offset % plan.granule
        late = f"(i._now - {first}) % {plan.granule}"
        return (
            f"SELECT i._t, {_columns(plan)} FROM {below} b"
            f" JOIN instants i ON i._now >= {first} AND b._t = i._t - {late}"
        )

    @_sql.register
    def _(self, plan: Sample, below: str) -> str:
        return f"SELECT * FROM {below} WHERE _t % {self.stride} % {plan.period} = {plan.offset % plan.period}"

    @_sql.register
    def _(self, plan: Stamp, below: str) -> str:
        return f"SELECT *, CAST(_t % {self.stride} AS BIGINT) AS {quoted(plan.column)} FROM {below}"

    @_sql.register(Split)
    @_sql.register(Coalesce)
    def _(self, plan: Split | Coalesce, below: str) -> str:
        return f"FROM {below}"

    @_sql.register
    def _(self, plan: Istream, below: str) -> str:
        return f"FROM {below} EXCEPT ALL {self._one_later(plan, below)}"

    @_sql.register
    def _(self, plan: Dstream, below: str) -> str:
        return f"{self._one_later(plan, below)} EXCEPT ALL FROM {below}"

    def _one_later(self, plan: Plan, below: str) -> str:
        return f"SELECT _t + 1 AS _t, {_columns(plan)} FROM {below} WHERE _t % {self.stride} < {self.horizon}"

    @_sql.register
    def _(self, plan: ToPositiveNegative, below: str) -> str:
        sign, columns = quoted(plan.sign), _columns(plan.input)
        arrivals = f"FROM {below} EXCEPT ALL {self._one_later(plan.input, below)}"
        departures = f"{self._one_later(plan.input, below)} EXCEPT ALL FROM {below}"
        return (
            f"SELECT _t, {columns}, 1::INTEGER AS {sign} FROM ({arrivals})"
            f" UNION ALL SELECT _t, {columns}, -1::INTEGER FROM ({departures})"
        )

    @_sql.register
    def _(self, plan: FromPositiveNegative, below: str) -> str:
        columns = _columns(plan)
        copies = (
            f"SELECT i._t, {columns}, sum({quoted(plan.sign)}) AS _n FROM {below} b"
            f" JOIN instants i ON i._run = b._t // {self.stride} AND b._t <= i._t GROUP BY ALL"
        )
        return f"SELECT _t, {columns} FROM ({copies}), range(_n::BIGINT)"


def _instant(value: str, type_: pa.DataType) -> str:
    """A number of instants as a value."""
    value = f"CAST({value} AS BIGINT)"
    return f"make_timestamp({value})" if pa.types.is_timestamp(type_) else value


def _side(plan: Plan, table: str, side: str) -> str:
    """The table as one side of a join, with the names that a residual uses."""
    columns = [f'{quoted(n)} AS "{side}.{n}"' for n in plan.schema.names]
    return f"(SELECT {', '.join(['_t', *columns])} FROM {table}) {side}"


def _renamed(plan: Plan, like: Plan, table: str) -> str:
    """The table with its columns in order, under the names of another node of the same types."""
    pairs = zip(_quoted(plan.schema.names), _quoted(like.schema.names), strict=True)
    return f"SELECT {', '.join(['_t', *(f'{a} AS {b}' for a, b in pairs)])} FROM {table}"


def _columns(plan: Plan) -> str:
    return ", ".join(_quoted(plan.schema.names))


def _quoted(names: Sequence[str]) -> list[str]:
    return [quoted(n) for n in names]
