"""Plans as short text, for tests that look at their shape."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.algebra import nodes as n
from headwater.expressions.rewrite import plain_column
from headwater.expressions.text import to_text
from headwater.language.binder import bind_script
from headwater.model.time import INFINITY

STREAMS = """
CREATE STREAM bid (item INT, price DOUBLE, bidder STRING);
CREATE STREAM auction (item INT, seller STRING, reserve DECIMAL(10,2), opened TIMESTAMP) ORDERED BY opened;
CREATE STREAM closed (item INT NOT NULL, at BIGINT NOT NULL) ORDERED BY at;
CREATE STREAM opening (item INT, seller STRING, reserve DECIMAL(10,2), opened BIGINT) ORDERED BY opened;
"""


def outline(plan: n.Plan, depth: int = 0) -> str:
    """One line per node, inputs indented below it."""
    lines = [f"{'  ' * depth}{_line(plan)}".rstrip(), *(outline(child, depth + 1) for child in plan.inputs)]
    return "\n".join(lines)


def _line(plan: n.Plan) -> str:
    name = type(plan).__name__
    match plan:
        case n.Source():
            return plan.name
        case n.Project():
            return (
                f"{name} {', '.join(c if plain_column(e) == c else f'{c}: {to_text(e)}' for c, e in plan.expressions)}"
            )
        case n.Filter():
            return f"{name} {to_text(plan.predicate)}"
        case n.Join():
            keys = " ".join(f"{a}={b}" for a, b in plan.keys)
            residual = f" if {to_text(plan.residual)}" if plan.residual else ""
            return f"{name} {plan.kind.value} [{keys}]{residual}"
        case n.Aggregate():
            return f"{name} [{' '.join(plan.keys)}] {', '.join(map(_call, plan.calls))}"
        case n.TimeWindow():
            size = "unbounded" if plan.size == INFINITY else plan.size
            return f"{name} {size}{'' if plan.slide == 1 else f' slide {plan.slide}'}"
        case n.RowWindow():
            slide = "" if plan.slide == 1 else f" slide {plan.slide}"
            return f"{name} {plan.rows}{slide} [{' '.join(plan.partition)}]"
        case n.TopK():
            rows = "all" if plan.limit == INFINITY else plan.limit
            offset = f" after {plan.offset}" if plan.offset else ""
            by = f" of each [{' '.join(plan.partition)}]" if plan.partition else ""
            rank = f" as {plan.rank}" if plan.rank else ""
            return f"{name} {rows}{offset}{by} [{', '.join(map(_sort_key, plan.order))}]{rank}"
        case n.HopWindow():
            offset = f" offset {plan.offset}" if plan.offset else ""
            return f"{name} {plan.size} slide {plan.slide}{offset} {plan.start} {plan.end} {plan.time}"
        case n.SessionWindow():
            return f"{name} {plan.gap} [{' '.join(plan.partition)}] {plan.start} {plan.end} {plan.time}"
        case n.Constant():
            return f"{name} [{' '.join(plan.schema.names)}] {' '.join(map(str, plan.rows))}"
        case n.SetOperation():
            return f"{name} {plan.kind.value}"
        case n.Granularity():
            return f"{name} {plan.granule}{f' offset {plan.offset}' if plan.offset else ''}"
        case n.Sample():
            return f"{name} {plan.period} offset {plan.offset}"
        case n.Stamp():
            return f"{name} {plan.column}"
        case n.Split():
            return f"{name} {plan.length}"
    return name


def _sort_key(key: n.SortKey) -> str:
    nulls = "" if key.nulls_first != key.descending else f" nulls {'first' if key.nulls_first else 'last'}"
    return f"{key.column}{' desc' if key.descending else ''}{nulls}"


def _call(call: n.AggregateCall) -> str:
    distinct = "DISTINCT " if call.distinct else ""
    condition = f" if {call.filter}" if call.filter else ""
    return f"{call.output}={call.function}({distinct}{call.argument or '*'}){condition}"


@pytest.fixture
def shape() -> Callable[[str], str]:
    """The outline of the plan of a query over ``STREAMS``."""

    def bound(sql: str) -> str:
        script = bind_script(STREAMS + sql)
        query = script.result or script.named[-1]
        return outline(query.plan)

    return bound
