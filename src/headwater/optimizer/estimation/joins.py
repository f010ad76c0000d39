"""Estimates of joins: inner, outer, semi and anti."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from headwater.algebra import nodes as n
from headwater.optimizer.estimation import characteristics as of
from headwater.optimizer.estimation import resources
from headwater.optimizer.estimation.characteristics import Characteristics
from headwater.optimizer.estimation.estimates import STATELESS, Column, Estimate
from headwater.optimizer.estimation.selectivity import selectivity, terms
from headwater.optimizer.estimation.stateful import SHOWN_OPEN, count_sweep
from headwater.optimizer.estimation.stateless import above


class _Match(NamedTuple):
    """How likely two rows match."""

    keys: float
    """The chance that all keys of a pair are equal."""
    residual: float
    """The chance that the residual is true for such a pair."""
    terms: int | None
    """Of the residual, if there is one."""
    shares: tuple[float, float]
    """The part of each side's rows whose key the other side has at all, if the fewer values are among the more."""

    @property
    def pair(self) -> float:
        return self.keys * self.residual


def key_selectivity(left: Column, right: Column) -> float:
    """1/max(n1, n2) of the pairs without NULLs: the values of one side are among those of the other (Golab 5.3.1)."""
    return (1 - left.nulls) * (1 - right.nulls) / max(left.distinct, right.distinct, 1.0)


def _matching(plan: n.Join, left: Estimate, right: Estimate) -> _Match:
    pairs = [(left.columns[a], right.columns[b]) for a, b in plan.keys]
    keys = math.prod([key_selectivity(a, b) for a, b in pairs])
    shares = (
        math.prod([(1 - a.nulls) * min(1.0, b.distinct / a.distinct) for a, b in pairs]),
        math.prod([(1 - b.nulls) * min(1.0, a.distinct / b.distinct) for a, b in pairs]),
    )
    if plan.residual is None:
        return _Match(keys, 1.0, None, shares)
    sides = {"l.": left.columns, "r.": right.columns}

    def lookup(name: str) -> Column | None:
        columns = sides.get(name[:2])
        return columns.get(name[2:]) if columns is not None else None

    return _Match(keys, selectivity(plan.residual, lookup), terms(plan.residual), shares)


def joined(plan: n.Join, left: Estimate, right: Estimate) -> Estimate:
    match = _matching(plan, left, right)
    if plan.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI):
        return _half(plan, left, right, match)
    stream = of.joined(left.stream, right.stream, match.pair)
    widths = left.row_bytes, right.row_bytes
    state = resources.join_state(left.stream, right.stream, *widths, ahead=left.ahead + right.ahead)
    churn = max(left.churn, right.churn)
    pairs = stream.rate / match.residual * churn if match.residual else 0.0
    changes = left.changes + right.changes
    cost = resources.join_cost(changes, pairs, stream.rate * churn, state.rows, sum(widths), match.terms)
    columns = _pair_columns(plan, left, right)
    inputs = (left, right)
    together = _met_together(plan, left, right, stream, match, columns)
    if plan.kind == n.JoinKind.INNER:
        ahead = stream.alive * max(i.ahead / i.alive if i.alive else 0.0 for i in inputs)
        return above(
            inputs, stream, columns, cost=cost, state=state, selectivity=match.pair, together=together, ahead=ahead
        )
    padded = []
    outer = {n.JoinKind.LEFT: (0,), n.JoinKind.RIGHT: (1,)}.get(plan.kind, (0, 1))
    for side in outer:
        mine, other = inputs[side], inputs[1 - side]
        alone = of.unmatched(mine.stream, other.stream, match.pair, match.shares[side])
        kept, more = count_sweep([(mine.stream, mine.churn), (stream, churn)], mine.columns, mine.values(), alone.rate)
        padded.append(alone)
        state, cost = state.plus(kept), cost + more
    whole = of.united(stream, *padded)
    columns = _padded_columns(columns, left, right, outer, whole, padded)
    return above(
        inputs,
        whole,
        columns,
        cost=cost,
        state=state,
        selectivity=match.pair,
        churn=SHOWN_OPEN,
        together=together,
        final=False,
    )


def _pair_columns(plan: n.Join, left: Estimate, right: Estimate) -> dict[str, Column]:
    """Of matching rows: both keys have the values of the side that has fewer."""
    columns = {**left.columns, **right.columns}
    for a, b in plan.keys:
        x, y = left.columns[a], right.columns[b]
        least = min(x.distinct, y.distinct)
        fewer = {"distinct": least, "nulls": 0.0, "bounded": x.bounded or y.bounded}
        fewer["present"] = least * x.presence(left.alive) * y.presence(right.alive)  # alive on both sides
        columns[a], columns[b] = x._replace(**fewer), y._replace(**fewer)
    return columns


def _met_together(
    plan: n.Join,
    left: Estimate,
    right: Estimate,
    stream: Characteristics,
    match: _Match,
    columns: dict[str, Column],
) -> float:
    """How many pairs an arrival makes that makes any. They differ in the columns of the other side, but not in the keys."""
    inputs = (left, right)
    causes = [
        mine.rate / mine.together * of.match_chance(other.stream, match.pair, share)
        for mine, other, share in zip(inputs, inputs[::-1], match.shares, strict=True)
    ]
    if not sum(causes) or stream.rate <= sum(causes):  # what hardly ever meets underflows to nothing
        return 1.0
    keys = {name for pair in plan.keys for name in pair}
    for side, other in zip(inputs, causes[::-1], strict=True):
        part = other / sum(causes)
        for name, column in side.columns.items():
            if name not in keys:
                columns[name] = column.varying(part + (1 - part) * column.varies)
    return stream.rate / sum(causes)


def _padded_columns(
    columns: Mapping[str, Column],
    left: Estimate,
    right: Estimate,
    outer: tuple[int, ...],
    whole: Characteristics,
    padded: list[Characteristics],
) -> dict[str, Column]:
    """A side that is padded has NULL in the part of the rows that have no match."""
    result = dict(columns)
    for side, alone in zip(outer, padded, strict=True):
        share = alone.rate / whole.rate if whole.rate else 0.0
        for name in (right, left)[side].columns:
            column = result[name]
            result[name] = column._replace(nulls=1 - (1 - column.nulls) * (1 - share))
        for name, column in (left, right)[side].columns.items():
            result[name] = result[name]._replace(distinct=column.distinct, bounded=column.bounded, present=None)
    return result


def _half(plan: n.Join, left: Estimate, right: Estimate, match: _Match) -> Estimate:
    """Semi and anti. By keys alone the join is with the right side's distinct keys; a residual needs the whole rows, and
    then, as in an anti-join always, each left row counts how many pairs it has.
    """
    semi = plan.kind == n.JoinKind.SEMI
    shown = of.matched if semi else of.unmatched
    stream = shown(left.stream, right.stream, match.pair, match.shares[0])
    by_keys = bool(plan.keys) and plan.residual is None
    other, churn, width = right.stream, right.churn, right.row_bytes
    state, cost = STATELESS, 0.0
    if by_keys:
        keys = {b: right.columns[b] for _, b in plan.keys}
        values = right.values(keys)
        other, churn, width = of.distinct(other, values), SHOWN_OPEN, sum(c.bytes for c in keys.values())
        state, cost = count_sweep([(right.stream, right.churn)], keys, values, other.rate)
    pairs = of.joined(left.stream, other, match.pair)
    kept = resources.join_state(left.stream, other, left.row_bytes, width, ahead=left.ahead + right.ahead)
    of_keys = pairs.rate / match.residual * max(left.churn, churn) if match.residual else 0.0
    changes = left.changes + other.rate * churn
    cost += resources.join_cost(
        changes, of_keys, pairs.rate * max(left.churn, churn), kept.rows, left.row_bytes, match.terms
    )
    state = state.plus(kept)
    if not (semi and by_keys):
        inputs = [(left.stream, left.churn), (pairs, max(left.churn, churn))]
        counts, more = count_sweep(inputs, left.columns, left.values(), stream.rate)
        state, cost = state.plus(counts), cost + more
    columns = _half_columns(plan, left, right) if semi else left.columns
    return above(
        (left, right), stream, columns, cost=cost, state=state, selectivity=match.pair, churn=SHOWN_OPEN, final=False
    )


def _half_columns(plan: n.Join, left: Estimate, right: Estimate) -> dict[str, Column]:
    both = _pair_columns(plan, left, right)
    return {name: both[name] for name in left.columns}
