"""Which operators compute which node: one function per kind, in one table.

A window stands on a split unless its input is known to consist of chronons (Krämer 12.3.2). What is ``final`` is never
taken back: of an operator that holds back what is open, whatever its inputs do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from attrs import asdict, evolve

from headwater.algebra import nodes as n
from headwater.algebra.properties import is_chronon, properties
from headwater.expressions.rewrite import column
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.aggregates.aggregate import AggregateOperator, Call
from headwater.operators.aggregates.pre_aggregate import PreAggregateOperator
from headwater.operators.base import Operator
from headwater.operators.joins.join import JoinOperator
from headwater.operators.joins.outer_join import OuterJoinOperator, SemiJoinOperator
from headwater.operators.ranking.sort_order import SortColumn
from headwater.operators.ranking.top_k import TopKOperator
from headwater.operators.rows.constant import ConstantOperator
from headwater.operators.rows.filter import FilterOperator
from headwater.operators.rows.granularity import GranularityOperator
from headwater.operators.rows.project import ProjectOperator
from headwater.operators.rows.sample import SampleOperator
from headwater.operators.rows.split import SplitOperator
from headwater.operators.rows.stamp import StampOperator
from headwater.operators.rows.union import UnionOperator
from headwater.operators.rows.unnest import UnnestOperator
from headwater.operators.sweeps.changes import ChangesOperator, FromSignedOperator
from headwater.operators.sweeps.count_sweep import CountSweepOperator
from headwater.operators.waiting.align import AlignOperator
from headwater.operators.waiting.await_other import AwaitOperator
from headwater.operators.windows.frame_values import FrameCall
from headwater.operators.windows.frames import FramesOperator
from headwater.operators.windows.hop_window import HopWindowOperator
from headwater.operators.windows.row_window import RowWindowOperator
from headwater.operators.windows.session_window import SessionWindowOperator
from headwater.operators.windows.time_window import TimeWindowOperator
from headwater.runtime.forms import Lowered
from headwater.runtime.lasting_rows import counted_instants, counts_segments
from headwater.runtime.plan_facts import delay_of, shows_windows


class Site(Protocol):
    """Where a node is built: for whom, and how operators are added."""

    @property
    def speculative(self) -> bool: ...
    @property
    def hold(self) -> bool: ...
    @property
    def adopted(self) -> bool: ...
    def add(self, operator: Operator, *inputs: Lowered, final: bool | None = None) -> Lowered: ...
    def opened_align(self, schema: Schema, below: Lowered) -> Lowered: ...
    def read_source(self, plan: n.Source) -> Lowered: ...


Build = Callable[[Site, Any, list[Lowered]], Lowered]


class Builder(NamedTuple):
    """How a node is lowered."""

    build: Build
    passes: bool
    """Does it hand on what comes, so that who holds back for it stands below?"""
    holds: bool
    """Is there a form of it that holds back what is open?"""


BUILDERS: dict[type[n.Plan], Builder] = {}
"""By kind of node."""


def _builds(*kinds: type[n.Plan], passes: bool = False, holds: bool = True) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        BUILDERS.update(dict.fromkeys(kinds, Builder(build, passes, holds)))
        return build

    return register


# -- rows -----------------------------------------------------------------------------------------------------------


@_builds(n.Source, holds=False)
def _source(site: Site, plan: n.Source, inputs: list[Lowered]) -> Lowered:
    return site.read_source(plan)


@_builds(n.Constant, holds=False)
def _constant(site: Site, plan: n.Constant, inputs: list[Lowered]) -> Lowered:
    return site.add(ConstantOperator(plan.schema, plan.rows), final=True)


@_builds(n.Filter, passes=True)
def _filter(site: Site, plan: n.Filter, inputs: list[Lowered]) -> Lowered:
    return site.add(FilterOperator(plan.schema, plan.predicate), *inputs)


@_builds(n.Project, passes=True)
def _project(site: Site, plan: n.Project, inputs: list[Lowered]) -> Lowered:
    return site.add(ProjectOperator(plan.input.schema, plan.schema, plan.scalars), *inputs)


@_builds(n.Union, passes=True)
def _union(site: Site, plan: n.Union, inputs: list[Lowered]) -> Lowered:
    return site.add(UnionOperator(plan.schema, len(inputs)), *inputs)


@_builds(n.Unnest, passes=True)
def _unnest(site: Site, plan: n.Unnest, inputs: list[Lowered]) -> Lowered:
    place = plan.place is not None
    operator = UnnestOperator(plan.input.schema, plan.schema, plan.array, place=place, outer=plan.outer)
    return site.add(operator, *inputs)


# -- joins and sets -------------------------------------------------------------------------------------------------


@_builds(n.Join)
def _join(site: Site, plan: n.Join, inputs: list[Lowered]) -> Lowered:
    shapes = (plan.left.schema, plan.right.schema, plan.keys, plan.residual)
    form = {"revisable": not all(i.final for i in inputs)}
    if plan.kind == n.JoinKind.INNER:
        return site.add(JoinOperator(*shapes, **form), *inputs)
    kind = SemiJoinOperator if plan.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI) else OuterJoinOperator
    operator = kind(*shapes, kind=plan.kind.value, speculative=site.speculative, hold=site.hold, **form)
    return site.add(operator, *inputs, final=not operator.retracts)


@_builds(n.Distinct)
def _distinct(site: Site, plan: n.Distinct, inputs: list[Lowered]) -> Lowered:
    once = properties(plan).begins_once
    operator = _sweep(site, plan.schema, "distinct", once=once)
    return site.add(operator, *inputs, final=(site.hold or once) and not site.speculative)


@_builds(n.Coalesce)
def _coalesce(site: Site, plan: n.Coalesce, inputs: list[Lowered]) -> Lowered:
    return site.add(_sweep(site, plan.schema, "coalesce", longest=plan.longest), *inputs, final=_is_final(site))


@_builds(n.SetOperation)
def _set_operation(site: Site, plan: n.SetOperation, inputs: list[Lowered]) -> Lowered:
    return site.add(_sweep(site, plan.schema, plan.kind.value), *inputs, final=_is_final(site))


def _sweep(site: Site, schema: Schema, kind: str, **form: Any) -> Operator:
    return CountSweepOperator(schema, kind, speculative=site.speculative, hold=site.hold, **form)


def _is_final(site: Site) -> bool:
    return site.hold and not site.speculative


# -- groups and order -----------------------------------------------------------------------------------------------


@_builds(n.Aggregate)
def _aggregate(site: Site, plan: n.Aggregate, inputs: list[Lowered]) -> Lowered:
    """DISTINCT arguments come through inputs of their own, already without duplicates."""
    (input_,) = inputs
    below, once = plan.input.schema, properties(plan).begins_once
    schemas, ports = [below], [input_]
    calls: list[Call] = []
    for call in plan.calls:
        plain = Call(call.function, call.output, call.type, call.argument, call.filter, 0, call.parameters)
        if call.distinct and call.argument is not None and not call.is_deaf:
            names = tuple(dict.fromkeys((*plan.keys, call.argument)))
            schemas.append(below.select(names))
            ports.append(_distinct_argument(site, input_, below, schemas[-1], call.filter, once=once))
            plain = evolve(plain, filter=None, port=len(ports) - 1)
        calls.append(plain)
    revisable = not all(port.final for port in ports)
    form = {"speculative": site.speculative, "hold": site.hold, "revisable": revisable, "once": once}
    operator = AggregateOperator(schemas, plan.keys, calls, **form)
    return site.add(operator, *ports, final=(site.hold or once) and not site.speculative)


def _distinct_argument(
    site: Site, input_: Lowered, below: Schema, schema: Schema, condition: str | None, *, once: bool
) -> Lowered:
    if condition is not None:
        input_ = site.add(FilterOperator(below, column(below.field(condition))), input_)
    narrow = site.add(ProjectOperator(below, schema, [column(f) for f in schema]), input_)
    distinct = CountSweepOperator(schema, "distinct", speculative=site.speculative, hold=False, once=once)
    return site.add(distinct, narrow, final=False)


@_builds(n.PreAggregate, passes=True)
def _pre_aggregate(site: Site, plan: n.PreAggregate, inputs: list[Lowered]) -> Lowered:
    parts = [Call(c.function, c.output, c.type, c.argument, c.filter) for c in plan.calls]
    return site.add(PreAggregateOperator(plan.input.schema, plan.keys, parts), *inputs)


@_builds(n.TopK)
def _top_k(site: Site, plan: n.TopK, inputs: list[Lowered]) -> Lowered:
    """An offset alone needs no order of all rows: what is left without the first ones."""
    (input_,) = inputs
    rest = plan.limit == INFINITY and plan.rank is None
    if rest and not plan.offset:
        return input_
    order = [SortColumn(key.column, key.descending, key.nulls_first) for key in plan.order]
    limit, offset = (plan.offset, 0) if rest else (plan.limit, plan.offset)
    shapes = (plan.input.schema, order, limit, offset, plan.partition, plan.rank)
    first = TopKOperator(*shapes, speculative=site.speculative, hold=site.hold and not rest)
    if not rest:
        return site.add(first, input_, final=_is_final(site))
    others = _sweep(site, plan.schema, "except all")
    return site.add(others, input_, site.add(first, input_, final=False), final=_is_final(site))


# -- windows and instants -------------------------------------------------------------------------------------------


@_builds(n.TimeWindow, passes=True)
def _time_window(site: Site, plan: n.TimeWindow, inputs: list[Lowered]) -> Lowered:
    return site.add(TimeWindowOperator(plan.schema, plan.size, plan.slide), _chronons(site, plan, inputs))


@_builds(n.RowWindow)
def _row_window(site: Site, plan: n.RowWindow, inputs: list[Lowered]) -> Lowered:
    form = {"speculative": site.speculative, "hold": site.hold}
    operator = RowWindowOperator(plan.schema, plan.rows, plan.slide, plan.partition, **form)
    if not counts_segments(plan):
        return site.add(operator, _chronons(site, plan, inputs), final=_is_final(site))
    (input_,) = inputs
    for below in counted_instants(plan, speculative=site.speculative):
        input_ = site.add(below, input_, final=False)
    return site.add(operator, input_, final=_is_final(site))


@_builds(n.HopWindow, passes=True)
def _hop_window(site: Site, plan: n.HopWindow, inputs: list[Lowered]) -> Lowered:
    names = {"start": plan.start, "end": plan.end, "time": plan.time}
    steps = (plan.size, plan.slide, plan.offset)
    operator = HopWindowOperator(plan.input.schema, *steps, **names, lifetime=plan.lifetime)
    return site.add(operator, _chronons(site, plan, inputs))


@_builds(n.SessionWindow, holds=False)
def _session_window(site: Site, plan: n.SessionWindow, inputs: list[Lowered]) -> Lowered:
    """A final session has no open end: it need not be held back, and is never taken back."""
    names = {"start": plan.start, "end": plan.end, "time": plan.time}
    form = {"speculative": site.speculative}
    operator = SessionWindowOperator(plan.input.schema, plan.gap, plan.partition, **names, **form)
    return site.add(operator, _chronons(site, plan, inputs), final=not site.speculative)


@_builds(n.Frames, holds=False)
def _frames(site: Site, plan: n.Frames, inputs: list[Lowered]) -> Lowered:
    """A row is shown for its own instant: it has no open end."""
    calls = [FrameCall(**asdict(call)) for call in plan.calls]
    operator = FramesOperator(plan.input.schema, calls, plan.partition, speculative=site.speculative)
    return site.add(operator, _chronons(site, plan, inputs), final=not site.speculative)


@_builds(n.Stamp, passes=True)
def _stamp(site: Site, plan: n.Stamp, inputs: list[Lowered]) -> Lowered:
    return site.add(StampOperator(plan.input.schema, plan.column), _chronons(site, plan, inputs))


def _chronons(site: Site, plan: n.Plan, inputs: list[Lowered]) -> Lowered:
    """The input of a node that counts single instants."""
    (below,), (input_,) = plan.inputs, inputs
    return input_ if is_chronon(below) else site.add(SplitOperator(below.schema, 1, for_window=True), input_)


@_builds(n.Granularity, passes=True)
def _granularity(site: Site, plan: n.Granularity, inputs: list[Lowered]) -> Lowered:
    early = _is_final(site) or (shows_windows(plan) and not site.speculative)
    if early and not inputs[0].final:  # waiting above it would last until the next granule
        inputs = [site.add(AlignOperator(plan.schema), *inputs, final=True)]
    elif site.adopted:
        inputs = [site.opened_align(plan.schema, inputs[0])]
    return site.add(GranularityOperator(plan.schema, plan.granule, plan.offset), *inputs)


@_builds(n.Sample)
def _sample(site: Site, plan: n.Sample, inputs: list[Lowered]) -> Lowered:
    form = {"speculative": site.speculative, "delay": delay_of(plan.input)}
    return site.add(SampleOperator(plan.schema, plan.period, plan.offset, **form), *inputs, final=not site.speculative)


@_builds(n.Split, passes=True)
def _split(site: Site, plan: n.Split, inputs: list[Lowered]) -> Lowered:
    return site.add(SplitOperator(plan.schema, plan.length, for_window=False), *inputs)


# -- changes, and waiting -------------------------------------------------------------------------------------------


@_builds(n.Istream, n.Dstream)
def _changes(site: Site, plan: n.Istream | n.Dstream, inputs: list[Lowered]) -> Lowered:
    operator = ChangesOperator(plan.schema, plan.words[0], speculative=site.speculative)
    return site.add(operator, *inputs, final=not site.speculative)


@_builds(n.ToPositiveNegative)
def _signed(site: Site, plan: n.ToPositiveNegative, inputs: list[Lowered]) -> Lowered:
    operator = ChangesOperator(plan.input.schema, "signed", sign=plan.sign, speculative=site.speculative)
    return site.add(operator, *inputs, final=not site.speculative)


@_builds(n.FromPositiveNegative)
def _unsigned(site: Site, plan: n.FromPositiveNegative, inputs: list[Lowered]) -> Lowered:
    operator = FromSignedOperator(plan.input.schema, plan.sign, speculative=site.speculative, hold=site.hold)
    return site.add(operator, *inputs, final=_is_final(site))


@_builds(n.Await, passes=True)
def _await(site: Site, plan: n.Await, inputs: list[Lowered]) -> Lowered:
    operator = AwaitOperator(plan.schema, plan.by or plan.schema.names, plan.awaited, opened=site.adopted)
    return site.add(operator, *inputs, final=inputs[0].final)
