"""Which formula estimates which node: leaves from statistics, others from the estimates of their inputs."""

from __future__ import annotations

from collections.abc import Callable

from headwater.algebra import nodes as n
from headwater.optimizer.estimation import joins, stateful, stateless
from headwater.optimizer.estimation.estimates import Estimate

ESTIMATIONS: dict[type[n.Plan], Callable[..., Estimate]] = {
    n.Source: stateless.source,
    n.Constant: stateless.constant,
    n.Filter: stateless.filtered,
    n.Project: stateless.projected,
    n.Union: stateless.united,
    n.Unnest: stateless.unnested,
    n.Join: joins.joined,
    n.Distinct: stateful.distinct,
    n.SetOperation: stateful.set_operation,
    n.Aggregate: stateful.aggregate,
    n.PreAggregate: stateless.pre_aggregated,
    n.Await: stateless.awaited,
    n.TopK: stateful.top,
    n.HopWindow: stateless.hop_window,
    n.SessionWindow: stateful.session_window,
    n.Frames: stateful.frames,
    n.TimeWindow: stateless.time_window,
    n.RowWindow: stateful.row_window,
    n.Granularity: stateless.rounded,
    n.Split: stateless.split,
    n.Sample: stateless.sampled,
    n.Stamp: stateless.stamped,
    n.Coalesce: stateful.coalesced,
    n.Istream: stateful.changes,
    n.Dstream: stateful.changes,
    n.ToPositiveNegative: stateful.signed,
    n.FromPositiveNegative: stateful.unsigned,
}
"""By kind of node: ``f(plan, statistics)`` of a leaf, ``f(plan, *estimates)`` of any other."""
