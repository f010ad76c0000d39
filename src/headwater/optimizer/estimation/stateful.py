"""Estimates of the operators that sweep the endpoints of rows, key by key, and of those that count or rank rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from headwater.algebra import nodes as n
from headwater.model.time import INFINITY
from headwater.optimizer.estimation import characteristics as of
from headwater.optimizer.estimation import resources
from headwater.optimizer.estimation.characteristics import Characteristics
from headwater.optimizer.estimation.estimates import STATELESS, Column, Estimate, State
from headwater.optimizer.estimation.multiplicities import combined
from headwater.optimizer.estimation.stateless import above, instants_of, lasting, output_column

SHOWN_OPEN = 3.0
"""A segment below another operator is shown open-ended, taken back and shown closed: three rows of deltas."""
_COUNTS = 2
"""Totals of a row in a set operation: how often it is in either input."""
_UNKNOWN_OPEN = 1_000.0
"""Elements between their signs where nothing is known of their distance."""
_RANKED_TWICE = 2.5
"""Rows that a top-k keeps for each that is alive: its end to come, the row in its order, and some that have left it."""
_STEP_BYTES = 24.0
"""A step of the staircase of a group's extremes."""


def count_sweep(
    inputs: Iterable[tuple[Characteristics, float]],
    columns: Mapping[str, Column],
    values: float,
    result: float,
    ahead: float = 0.0,
) -> tuple[State, float]:
    """State and cost of a sweep whose key is the whole row: the streams with their churn, and the rate of the output."""
    listed = list(inputs)
    keys = of.occupied(sum([s.alive for s, _ in listed]), values)
    born = sum([of.distinct(s, values).rate for s, _ in listed])
    every = list(columns.values())
    state = resources.sweep_state(
        [s for s, _ in listed],
        keys,
        resources.key_bytes(every),
        _COUNTS,
        bounded=all(c.bounded for c in every),
        ahead=ahead,
    )
    changes = sum([s.rate * churn for s, churn in listed])
    return state, resources.sweep_cost(changes, born, result, state.rows, resources.key_cost(every))


def _swept(
    inputs: tuple[Estimate, ...], stream: Characteristics, columns: Mapping[str, Column], values: float
) -> Estimate:
    parts = [(i.stream, i.churn) for i in inputs]
    ahead = sum(i.ahead for i in inputs)
    state, cost = count_sweep(parts, inputs[0].columns, values, stream.rate, ahead)
    return above(inputs, stream, columns, cost=cost, state=state, churn=SHOWN_OPEN, final=False)


# -- whole rows as keys -----------------------------------------------------------------------------------------------


def distinct(plan: n.Distinct, below: Estimate) -> Estimate:
    values = below.values()
    return _swept((below,), of.distinct(below.stream, values), below.columns, values)


def coalesced(plan: n.Coalesce, below: Estimate) -> Estimate:
    values = below.values()
    return _swept((below,), of.coalesced(below.stream, values, plan.longest), below.columns, values)


def set_operation(plan: n.SetOperation, left: Estimate, right: Estimate) -> Estimate:
    stream = combined(left.stream, right.stream, left.values(), right.values(), plan.kind)
    columns = {
        name: _of_both(plan.kind, a, b)
        for (name, a), b in zip(left.columns.items(), right.columns.values(), strict=True)
    }
    return _swept((left, right), stream, columns, max(left.values(), right.values()))


def _of_both(kind: n.SetKind, a: Column, b: Column) -> Column:
    if kind in (n.SetKind.INTERSECT, n.SetKind.INTERSECT_ALL):
        return a._replace(distinct=min(a.distinct, b.distinct), bounded=a.bounded or b.bounded)
    if kind == n.SetKind.MAX_UNION:
        return a._replace(distinct=max(a.distinct, b.distinct), bounded=a.bounded and b.bounded, present=None)
    return a


def changes(plan: n.Istream | n.Dstream, below: Estimate) -> Estimate:
    """Ours: what starts, or what ends, one instant each."""
    stream = of.instants(below.stream)
    if isinstance(plan, n.Dstream) and below.stream.endless:
        stream = Characteristics(0.0, 0.0, stream.granule)
    return _swept((below,), stream, below.columns, below.values())._replace(churn=1.0)


def signed(plan: n.ToPositiveNegative, below: Estimate) -> Estimate:
    """25.5: d is the distance of the positive elements, l the way from there to the negative one."""
    stream = of.instants(below.stream)
    if not below.stream.endless:
        stream = of.united(stream, stream)
    columns = {**below.columns, plan.sign: Column(2.0, 0.0, 4.0, True)}
    return _swept((below,), stream, columns, below.values())._replace(churn=1.0, signed=below.alive)


def unsigned(plan: n.FromPositiveNegative, below: Estimate) -> Estimate:
    columns = {name: c for name, c in below.columns.items() if name != plan.sign}
    alive = _UNKNOWN_OPEN if below.signed is None else below.signed
    stream = Characteristics(below.rate / 2, alive, below.stream.granule)
    values = math.prod([c.distinct for c in columns.values()])
    state, cost = count_sweep([(stream, 2 * below.churn)], columns, values, stream.rate)
    return above((below,), stream, columns, cost=cost, state=state, churn=SHOWN_OPEN, final=False)


# -- groups -----------------------------------------------------------------------------------------------------------


def aggregate(plan: n.Aggregate, below: Estimate) -> Estimate:
    groups = below.values(plan.keys)
    keys = [below.columns[k] for k in plan.keys]
    varies = max([k.varies for k in keys], default=0.0)
    touched = 1 + varies * (of.touched(below.together, groups) - 1)
    there = below.present(plan.keys)
    stream = of.grouped(below.stream, groups, touched / below.together, there)
    needs = [_call(call, below, groups) for call in plan.calls]
    state = resources.sweep_state(
        [below.stream],
        there,
        resources.key_bytes(keys),
        1 + 2 * len(plan.calls),
        values=sum(c.argument is not None for c in plan.calls),
        bounded=below.bounded(plan.keys),
        ahead=below.ahead,
    ).plus(*(s for s, _, _ in needs))
    cost = resources.sweep_cost(
        below.changes,
        of.distinct(below.stream, groups).rate,
        stream.rate,
        state.rows,
        resources.key_cost(keys),
        sum(values for _, values, _ in needs),
    )
    columns = {k: below.columns[k] for k in plan.keys}
    columns |= {call.output: _result(call, below, there) for call in plan.calls}
    cost += sum(more for _, _, more in needs)
    together = of.touched(below.together, groups)
    return above((below,), stream, columns, cost=cost, state=state, churn=SHOWN_OPEN, together=together, final=False)


def _call(call: n.AggregateCall, below: Estimate, groups: float) -> tuple[State, float, float]:
    """What one aggregate keeps besides its totals, what it adds to the cost of a row, and what it costs besides."""
    if call.distinct and call.argument is not None and not call.is_deaf:
        return _distinct_call(call, call.argument, below, groups)
    if call.built_in is not None and call.built_in.totals is not None:
        return State(), call.built_in.totals * resources.TOTAL, 0.0
    argument = below.columns[call.argument] if call.argument is not None else None
    if call.is_extreme and below.final and argument is not None and argument.is_word:
        there = of.occupied(below.alive, groups)
        # The values above all later ones: of m in random order about ln m + 0.58.
        steps = there * (math.log(max(1.0, below.alive / there)) + 0.58) if there else 0.0
        return State(steps, steps * _STEP_BYTES), resources.EXTREME, 0.0
    rows = below.alive * resources.BUCKET_SLACK
    size = resources.JOIN_BYTES + (argument.bytes if argument is not None else 0.0)
    return State(rows, rows * size, below.stream.grows), resources.HOLISTIC, 0.0


def _distinct_call(call: n.AggregateCall, argument: str, below: Estimate, groups: float) -> tuple[State, float, float]:
    """A DISTINCT argument comes through a sweep of its own, and its rows are one more input of the aggregation."""
    column = below.columns[argument]
    pairs = of.distinct(below.stream, groups * column.distinct)
    keys = {"group": Column(groups, 0.0, 8.0, is_word=False), argument: column}
    state, cost = count_sweep([(below.stream, below.churn)], keys, groups * column.distinct, pairs.rate)
    ends = resources.sweep_state([pairs], 0.0, 0.0, 0, values=1)
    cost += pairs.rate * SHOWN_OPEN * resources.SWEEP_ROW + below.arrivals * resources.TICK
    totals = None if call.built_in is None else call.built_in.totals
    return state.plus(ends), resources.HOLISTIC if totals is None else totals * resources.TOTAL, cost


def _result(call: n.AggregateCall, below: Estimate, there: float) -> Column:
    """Ours: a count varies around its mean as a Poisson variable does; an extreme is one of the values."""
    if call.built_in is not None and call.built_in.counts:
        mean = below.alive / there if there else 1.0
        return output_column(call.type, 1 + 4 * math.sqrt(mean))
    if call.is_extreme and call.argument is not None:
        return output_column(call.type, below.columns[call.argument].distinct)
    return output_column(call.type)


# -- rows by number ---------------------------------------------------------------------------------------------------


def row_window(plan: n.RowWindow, below: Estimate) -> Estimate:
    """(22.49-56): the rows of every partition's window are kept."""
    chronons, cost = instants_of(below)
    partitions = below.values(plan.partition)
    if plan.rows == INFINITY:
        stream = of.unbounded_window(chronons, below.horizon)
    else:
        stream = of.row_window(chronons, plan.rows, partitions, plan.slide)
    keys = [below.columns[k] for k in plan.partition]
    state = State(stream.alive, stream.alive * (below.row_bytes + resources.QUEUE_BYTES), stream.grows)
    cost += chronons.rate * below.churn * _queued(below, keys) * resources.far(state.rows)
    columns = lasting(below.columns)
    return above((below,), stream, columns, cost=cost, state=state, churn=SHOWN_OPEN, final=False)


def _queued(below: Estimate, keys: list[Column]) -> float:
    """The cost of a row that waits in a queue of its partition."""
    return resources.ROW_WINDOW_ROW + resources.BYTE * below.row_bytes + resources.key_cost(keys)


def top(plan: n.TopK, below: Estimate) -> Estimate:
    """The endpoints of all rows are kept, and the rows that come first."""
    if plan.limit == INFINITY and plan.rank is None and not plan.offset:
        return below._replace(state=STATELESS, cost=0.0)  # all rows: there is nothing to do
    partitions, ranked = below.values(plan.partition), plan.rank is not None
    last = math.inf if plan.limit == INFINITY else float(plan.offset + plan.limit)
    stream = of.topmost(below.stream, last, partitions, ranked=ranked)
    skipped = of.topmost(below.stream, plan.offset, partitions) if plan.offset else None
    if skipped is not None:
        stream = stream._replace(alive=max(0.0, stream.alive - skipped.alive))
    rows = below.alive * _RANKED_TWICE
    state = State(rows, rows * (below.row_bytes + resources.JOIN_BYTES), below.stream.grows)
    keys = [below.columns[k] for k in plan.partition]
    cost = below.changes * (resources.TOP_ROW + resources.key_cost(keys)) * resources.far(rows)
    cost += stream.rate * resources.RESULT
    columns = dict(below.columns)
    if plan.rank is not None:
        columns[plan.rank] = Column(min(last, max(1.0, below.alive)), 0.0, 4.0, plan.limit != INFINITY)
    elif plan.limit == INFINITY and skipped is not None:  # all rows except the first
        kept, more = count_sweep(
            [(below.stream, below.churn), (skipped, SHOWN_OPEN)], below.columns, below.values(), stream.rate
        )
        state, cost = state.plus(kept), cost + more
    return above((below,), stream, columns, cost=cost, state=state, churn=SHOWN_OPEN, final=False)


def frames(plan: n.Frames, below: Estimate) -> Estimate:
    """Ours: each row for its instant, once; as many rows of every partition are kept as the longest frame has."""
    chronons, cost = instants_of(below)
    partitions = below.values(plan.partition)
    longest = max(1, *(call.reach for call in plan.calls))
    keys = [below.columns[k] for k in plan.partition]
    rows = of.row_window(chronons, longest, partitions, 1).alive
    read = sum(below.columns[name].bytes for name in plan.names()[0])
    size = read + resources.QUEUE_BYTES
    running = sum(call.first == INFINITY for call in plan.calls)
    groups = below.present(plan.partition) if running else 0.0
    state = State(rows + groups, rows * size + groups * (resources.key_bytes(keys) + 16.0 * running))
    each = _queued(below, keys) + resources.TOTAL * len(plan.calls)
    cost += chronons.rate * below.churn * each * resources.far(state.rows)
    columns = {**below.columns, **{call.output: output_column(call.type) for call in plan.calls}}
    stream = of.instants(chronons)
    return above((below,), stream, columns, cost=cost, state=state, churn=1.0, final=True)


def session_window(plan: n.SessionWindow, below: Estimate) -> Estimate:
    """Ours: a row waits until its session ends, and is then valid for ever."""
    chronons, cost = instants_of(below)
    partitions = max(1.0, below.values(plan.partition))
    wait = min(of.session_wait(chronons.rate / partitions, plan.gap), below.horizon)
    stream = of.unbounded_window(chronons, below.horizon)
    sessions = stream.alive / math.exp(min(chronons.rate / partitions * plan.gap, 600.0))
    ends = dict.fromkeys((plan.start, plan.end), Column(max(1.0, sessions), 0.0, 8.0))
    keys = [below.columns[k] for k in plan.partition]
    rows = chronons.rate * wait
    state = State(rows, rows * (below.row_bytes + resources.QUEUE_BYTES))
    cost += chronons.rate * below.churn * _queued(below, keys) * resources.far(rows)
    columns = {**lasting(below.columns), **ends}
    return above((below,), stream, columns, cost=cost, state=state, churn=1.0, final=True)
