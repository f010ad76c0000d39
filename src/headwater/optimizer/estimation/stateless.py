"""Estimates of the leaves of a plan, and of the operators that keep nothing: filters, projections, unions, windows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pyarrow as pa

from headwater.algebra import nodes as n
from headwater.expressions.nodes import Expression, Literal
from headwater.expressions.rewrite import plain_column
from headwater.expressions.text import to_text
from headwater.model.schema import Field
from headwater.model.time import INFINITY
from headwater.optimizer.estimation import characteristics as of
from headwater.optimizer.estimation import resources
from headwater.optimizer.estimation.characteristics import Characteristics
from headwater.optimizer.estimation.estimates import STATELESS, Column, Estimate, State
from headwater.optimizer.estimation.selectivity import kept, terms
from headwater.optimizer.estimation.statistics import (
    HORIZON,
    NO_COLUMN,
    NULLS,
    ColumnStatistics,
    Statistics,
    facts,
)


def above(
    inputs: tuple[Estimate, ...],
    stream: Characteristics,
    columns: Mapping[str, Column],
    *,
    cost: float,
    state: State = STATELESS,
    selectivity: float = 1.0,
    churn: float | None = None,
    together: float | None = None,
    ahead: float = 0.0,
    final: bool | None = None,
    signed: float | None = None,
) -> Estimate:
    """A node over its inputs; every operator also takes its step whenever there is something to do."""
    arrivals = sum([i.arrivals for i in inputs])
    return Estimate(
        stream,
        columns,
        max([i.horizon for i in inputs]),
        arrivals,
        state,
        cost + arrivals * resources.TICK,
        selectivity,
        max([i.churn for i in inputs]) if churn is None else churn,
        max([i.together for i in inputs]) if together is None else together,
        ahead,
        all([i.final for i in inputs]) if final is None else final,  # noqa: C419 - faster, and this is called often
        signed,
    )


def instants_of(below: Estimate) -> tuple[Characteristics, float]:
    """The input as windows count it, one element per instant (12.3.2), and what it costs to cut it so."""
    if below.stream.lifetime <= 1:
        return below.stream, 0.0
    cut = of.split(below.stream, 1.0)
    return cut, resources.split_cost(below.changes, cut.rate * below.churn) + below.arrivals * resources.TICK


def lasting(columns: Mapping[str, Column]) -> Mapping[str, Column]:
    """The columns of elements that live longer now: more of the values may be alive."""
    if all(c.present is None for c in columns.values()):
        return columns
    return {name: c._replace(present=None) for name, c in columns.items()}


# -- leaves -----------------------------------------------------------------------------------------------------------


def source(plan: n.Source, statistics: Statistics) -> Estimate:
    known = statistics.of(plan.name)
    columns = {f.name: _source_column(f, known.columns.get(f.name, NO_COLUMN)) for f in plan.columns.fields}
    stream, horizon = statistics.characteristics(plan)
    return Estimate(stream, columns, horizon, stream.rate, final=not plan.revisable, shares=known.shares)


def _source_column(field: Field, known: ColumnStatistics) -> Column:
    of_type = facts(field.type)
    nulls = known.nulls
    if nulls is None:
        nulls = NULLS if field.nullable else 0.0
    return Column(
        of_type.distinct if known.distinct is None else max(1.0, known.distinct),
        nulls,
        of_type.bytes if known.bytes is None else known.bytes,
        of_type.bounded or (known.distinct is not None and known.bounded),
        of_type.is_word,
    )


def constant(plan: n.Constant, statistics: Statistics) -> Estimate:
    """A relation that never changes (17.4): nothing comes, everything stays."""
    rows = len(plan.rows)
    columns = {}
    for i, field in enumerate(plan.columns):
        values = [row[i] for row in plan.rows]
        distinct = len({repr(v) for v in values})
        nulls = sum(v is None for v in values) / max(1, rows)
        of_type = facts(field.type)
        columns[field.name] = Column(max(1.0, distinct), nulls, of_type.bytes, True, of_type.is_word)
    return Estimate(Characteristics(0.0, float(rows), math.inf, endless=True), columns, HORIZON, 0.0, final=True)


# -- filters, projections, unions -------------------------------------------------------------------------------------


def filtered(plan: n.Filter, below: Estimate) -> Estimate:
    expected, columns = kept(plan.predicate, below.columns)
    selectivity = below.shares.get(to_text(plan.predicate), expected)
    stream = of.filtered(below.stream, selectivity)
    cost = resources.filter_cost(below.changes, stream.rate * below.churn, terms(plan.predicate), below.row_bytes)
    signed = None if below.signed is None else below.signed * selectivity
    return above(
        (below,),
        stream,
        columns,
        cost=cost,
        selectivity=selectivity,
        together=max(1.0, below.together * selectivity),
        ahead=below.ahead * selectivity,
        signed=signed,
    )


def projected(plan: n.Project, below: Estimate) -> Estimate:
    columns: dict[str, Column] = {}
    computed = 0
    for name, scalar in plan.expressions:
        plain = _plain(scalar, below.columns)
        computed += plain is None
        columns[name] = _computed(scalar, below.columns) if plain is None else plain
    cost = resources.map_cost(below.changes, len(columns), computed)
    return above((below,), below.stream, columns, cost=cost, ahead=below.ahead, signed=below.signed)


def _plain(scalar: Expression, columns: Mapping[str, Column]) -> Column | None:
    """The column, if the expression is nothing else."""
    name = plain_column(scalar)
    return None if name is None else columns.get(name)


def _computed(scalar: Expression, columns: Mapping[str, Column]) -> Column:
    """Ours: as many values as the columns have together, at most."""
    read = [columns[name] for name in scalar.columns if name in columns]
    of_type = facts(scalar.type)
    if not read:
        nulls = 1.0 if any(isinstance(e, Literal) and e.text is None for e in (scalar, *scalar.arguments)) else 0.0
        return Column(1.0, nulls, of_type.bytes, True, of_type.is_word)
    distinct, bounded = math.prod([c.distinct for c in read]), all(c.bounded for c in read)
    if of_type.bounded:
        distinct, bounded = min(distinct, of_type.distinct), True
    nulls = 1 - math.prod([1 - c.nulls for c in read])
    return Column(distinct, nulls, of_type.bytes, bounded, of_type.is_word)


_ITEMS = 3.0
"""How many items an array has, where nobody knows."""


def unnested(plan: n.Unnest, below: Estimate) -> Estimate:
    """Ours: so many copies of each row; as many values of items as an item's type has."""
    stream = of.filtered(below.stream, _ITEMS)  # kept more than once
    columns = {name: c for name, c in below.columns.items() if name != plan.array}
    columns[plan.item] = output_column(plan.schema.field(plan.item).type)
    if plan.place is not None:
        columns[plan.place] = output_column(pa.int64(), _ITEMS)
    cost = resources.split_cost(below.changes, stream.rate * below.churn)
    signed = None if below.signed is None else below.signed * _ITEMS
    together, ahead = below.together * _ITEMS, below.ahead * _ITEMS
    return above((below,), stream, columns, cost=cost, together=together, ahead=ahead, signed=signed)


def united(plan: n.Union, *inputs: Estimate) -> Estimate:
    """The values of one side are taken to be among those of the others (as Golab does for joins, 5.3.1)."""
    stream = of.united(*(i.stream for i in inputs))
    shares = [i.rate / stream.rate if stream.rate else 1 / len(inputs) for i in inputs]
    columns = {
        name: Column(
            max([c.distinct for c in sides]),
            sum([c.nulls * share for c, share in zip(sides, shares, strict=True)]),
            sum([c.bytes * share for c, share in zip(sides, shares, strict=True)]),
            all(c.bounded for c in sides),
            sides[0].is_word,
        )
        for name, *sides in zip(inputs[0].columns, *(i.columns.values() for i in inputs), strict=True)
    }
    cost = resources.union_cost(sum([i.changes for i in inputs]))
    return above(inputs, stream, columns, cost=cost, ahead=sum([i.ahead for i in inputs]))


def pre_aggregated(plan: n.PreAggregate, below: Estimate) -> Estimate:
    """Ours: of the rows that begin together, in one granule of time, one per group is left."""
    groups, granule = max(1.0, below.values(plan.keys)), below.stream.granule
    share = min(1.0, of.occupied(below.rate * granule, groups) / (below.rate * granule)) if below.rate else 1.0
    stream = of.filtered(below.stream, share)
    keys = [below.columns[name] for name in plan.keys]
    columns = dict(zip(plan.keys, keys, strict=True))
    columns |= {call.output: output_column(call.type) for call in plan.calls}
    cost = below.changes * (resources.TERM * (1 + len(plan.calls)) + resources.key_cost(keys))
    together = max(1.0, below.together * share)
    return above(
        (below,), stream, columns, cost=cost + stream.rate * resources.COPY, together=together, ahead=below.ahead
    )


def awaited(plan: n.Await, below: Estimate, other: Estimate) -> Estimate:
    """The rows as they are. How long they wait depends on how far apart streams are, which nothing here tells."""
    cost = resources.union_cost(below.changes)
    return above((below, other), below.stream, below.columns, cost=cost, ahead=below.ahead, final=below.final)


# -- windows and intervals --------------------------------------------------------------------------------------------


def time_window(plan: n.TimeWindow, below: Estimate) -> Estimate:
    chronons, cost = instants_of(below)
    if plan.size == INFINITY:
        stream = of.unbounded_window(chronons, below.horizon)
    else:
        stream = of.time_window(chronons, plan.size, plan.slide)
    cost += resources.window_cost(chronons.rate * below.churn)
    return above((below,), stream, lasting(below.columns), cost=cost, ahead=stream.rate * (plan.slide - 1) / 2)


def hop_window(plan: n.HopWindow, below: Estimate) -> Estimate:
    """All that is valid at an instant belongs to one window: its ends have one value."""
    chronons, cost = instants_of(below)
    stream = of.hop_window(chronons, plan.size, plan.slide, plan.shown)
    ends = dict.fromkeys((plan.start, plan.end), Column(1.0, 0.0, 8.0, True))
    cost += resources.split_cost(chronons.rate * below.churn, stream.rate * below.churn)
    columns = {**lasting(below.columns), **ends}
    return above((below,), stream, columns, cost=cost, ahead=stream.rate * plan.size / 2)


def rounded(plan: n.Granularity, below: Estimate) -> Estimate:
    stream = of.rounded(below.stream, plan.granule)
    cost = resources.granularity_cost(below.changes, stream.rate * below.churn)
    ahead = below.ahead + stream.rate * (plan.granule - 1) / 2
    return above((below,), stream, below.columns, cost=cost, ahead=ahead)


def split(plan: n.Split, below: Estimate) -> Estimate:
    """The state (22.40) holds only what never ends."""
    stream = of.split(below.stream, plan.length)
    cost = resources.split_cost(below.changes, stream.rate * below.churn)
    endless = below.stream.endless
    size = below.alive * (below.row_bytes + resources.END_BYTES)
    state = State(below.alive, size, below.stream.grows) if endless else STATELESS
    return above((below,), stream, below.columns, cost=cost, state=state)


def sampled(plan: n.Sample, below: Estimate) -> Estimate:
    """Every row that is alive waits for the next instant at which it is seen."""
    stream = of.sampled(below.stream, plan.period)
    cost = resources.split_cost(below.changes, stream.rate)
    state = State(below.alive, below.alive * (below.row_bytes + resources.END_BYTES), below.stream.grows)
    return above((below,), stream, below.columns, cost=cost, state=state, churn=1.0)


def stamped(plan: n.Stamp, below: Estimate) -> Estimate:
    chronons, cost = instants_of(below)
    cost += resources.window_cost(chronons.rate * below.churn)
    return above((below,), chronons, {**below.columns, plan.column: output_column(pa.int64())}, cost=cost)


def output_column(type_: pa.DataType, distinct: float | None = None, nulls: float = 0.0) -> Column:
    """A column that an operator makes."""
    of_type = facts(type_)
    values = of_type.distinct if distinct is None else max(1.0, distinct)
    return Column(values, nulls, of_type.bytes, of_type.bounded, of_type.is_word)
