"""What random queries must show: one answer, whatever the optimizer does, and it is DuckDB's to the same text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import duckdb
import pyarrow as pa

from headwater.algebra.nodes import Plan
from headwater.algebra.plan_text import print_plan
from headwater.errors import HeadwaterError
from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.history import History, freeze
from headwater.optimizer.plan_query import plan_query
from headwater.settings import Settings
from headwater.testing.checks import CheckError, check_cases
from headwater.testing.choices import Dice
from headwater.testing.equivalence import as_read
from headwater.testing.generate import Case, Streams, streams, whole
from headwater.testing.oracle import expected_histories
from headwater.testing.random_sql import RandomSql, Windowed, random_sql
from headwater.testing.shape import sources

Inputs = dict[str, Delta]


def check_random_sql(seed: int, *, streams_a_query: int = 2) -> RandomSql:
    """Make the query of the seed and check it; raises ``CheckError`` with all there is to know."""
    sql = random_sql(Dice(seed, 1))
    plan = bound(sql)
    given = [streams(Dice(seed, 2, i), plan) for i in range(streams_a_query)]
    inputs = [{s.name: whole(s.schema, its[s.name]) for s in sources(plan)} for its in given]
    try:
        expected = expected_histories(plan, inputs)
        for one, history in zip(inputs, expected, strict=True):
            _check_relational(sql, one, history)
        for name, other in variants(plan):
            _check_variant(name, other, inputs, expected)
        _check_run(plan, given, seed)
    except (CheckError, HeadwaterError, duckdb.Error) as failure:
        raise CheckError(f"seed {seed}\n{sql.script}\n\n{print_plan(plan)}\n\n{failure}") from failure
    return sql


def bound(sql: RandomSql) -> Plan:
    """The plan of the query as it is written."""
    result = bind_script(sql.script).result
    assert result is not None
    return result.plan


def variants(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """The plan optimized, and optimized without each of the rules that took part; each different plan once."""
    best = plan_query(plan, Settings())
    seen = {plan, best.plan}
    yield "optimized", best.plan
    for rule in dict.fromkeys(f.rule for f in best.firings):
        other = plan_query(plan, Settings(without_rules=rule)).plan
        if other not in seen:
            seen.add(other)
            yield f"without {rule}", other


def _check_variant(name: str, plan: Plan, inputs: Sequence[Inputs], expected: Sequence[History]) -> None:
    needed = [{s.name: one[s.name].select(s.schema) for s in sources(plan)} for one in inputs]
    for found, right in zip(expected_histories(plan, needed), expected, strict=True):
        if found != right:
            raise CheckError(f"{name}:\n{print_plan(plan)}\ngives {found}\ninstead of {right}")


def _check_run(plan: Plan, given: Sequence[Streams], seed: int) -> None:
    """The operators, over the plan as it is written and over the optimized one."""
    for its in (plan, plan_query(plan, Settings()).plan):
        check_cases([Case(its, as_read(one, plan, its), seed + i) for i, one in enumerate(given)])


# -- DuckDB ---------------------------------------------------------------------------------------------------------


def _check_relational(sql: RandomSql, inputs: Inputs, history: History) -> None:
    shown = {w: _windowed(sql, w, inputs) for w in sql.windowed}
    last = max(_last(h) for h in (*shown.values(), history))
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1").fetchall()
        for instant in range(last + 1):
            for windowed, its in shown.items():
                connection.register(windowed.table, _snapshot(its, instant))
            expected = Counter(freeze(row) for row in connection.execute(sql.relational).fetchall())
            if history.snapshot(instant) != expected:
                raise CheckError(f"at {instant} DuckDB says {expected}, the plan {history.snapshot(instant)}")


def _windowed(sql: RandomSql, windowed: Windowed, inputs: Inputs) -> History:
    """What a stream shows through its window."""
    declared = "\n".join(s.declaration() for s in sql.streams)
    result = bind_script(f"{declared}\nSELECT * FROM {windowed.text}").result
    assert result is not None
    return expected_histories(result.plan, [{windowed.stream: inputs[windowed.stream]}])[0]


def _last(history: History) -> int:
    """The last instant at which something changes."""
    return int(history.start.max(initial=0))


def _snapshot(history: History, instant: int) -> pa.Table:
    delta = history.until(instant + 1).delta()
    valid = (delta.start <= instant) & (delta.end > instant)
    copies = [i for i in range(len(delta)) if valid[i] for _ in range(int(delta.weight[i]))]
    return pa.table(
        {f.name: c.take(pa.array(copies, pa.int64())) for f, c in zip(history.schema, delta.columns, strict=True)}
    )
