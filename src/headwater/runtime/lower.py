"""From the logical algebra to operators: the one place that knows both.

Equal sub-plans become one node, whichever query they belong to. A window stands on a split unless its input is known to
consist of chronons (Krämer 12.3.2).

A strong query needs only its last stateful operators to hold back what is open. Those below them show it open-ended once
its start is final, so that time advances through the plan (a group that is never touched again would hold back everything
above it). An answer that could still be taken back is held by an align operator at the root.
"""

from __future__ import annotations

import hashlib

from attrs import evolve, frozen

from headwater.algebra import nodes as n
from headwater.algebra.plan_text import print_plan
from headwater.algebra.properties import is_chronon
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.aggregate import AggregateOperator, Call
from headwater.operators.align import AlignOperator
from headwater.operators.base import Operator
from headwater.operators.changes import ChangesOperator, FromSignedOperator
from headwater.operators.constant import ConstantOperator
from headwater.operators.count_sweep import CountSweepOperator
from headwater.operators.filter import FilterOperator
from headwater.operators.granularity import GranularityOperator
from headwater.operators.hop_window import HopWindowOperator
from headwater.operators.join import JoinOperator
from headwater.operators.outer_join import OuterJoinOperator, SemiJoinOperator
from headwater.operators.pre_aggregate import PreAggregateOperator
from headwater.operators.project import ProjectOperator
from headwater.operators.row_window import RowWindowOperator
from headwater.operators.sample import SampleOperator
from headwater.operators.session_window import SessionWindowOperator
from headwater.operators.since import SinceOperator
from headwater.operators.sort_order import SortColumn
from headwater.operators.split import SplitOperator
from headwater.operators.stamp import StampOperator
from headwater.operators.time_window import TimeWindowOperator
from headwater.operators.top_k import TopKOperator
from headwater.operators.union import UnionOperator
from headwater.runtime.graph import Graph

_PASS_THROUGH = (
    n.Filter,
    n.Project,
    n.PreAggregate,
    n.Union,
    n.TimeWindow,
    n.HopWindow,
    n.Granularity,
    n.Split,
    n.Stamp,
)
_NEVER_HOLD = (n.Source, n.Constant, n.SessionWindow)
_UNTOUCHED_BY_DUPLICATES = ("MIN", "MAX")


@frozen
class _Lowered:
    """A node, and whether its output is never taken back."""

    node: int
    final: bool


@frozen
class _Form:
    """For whom a part of a plan is made: what it shows, and since when it has seen its streams.

    Operators that remember serve only queries that began together: one that began later would get retractions of rows
    that it has never seen.
    """

    speculative: bool = False
    since: int = 0
    hold: bool = False


_ANY_FORM = _Form()


class Lowering:
    """Grows a graph plan by plan."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[tuple[n.Plan, _Form], _Lowered] = {}
        self._texts: dict[n.Plan, str] = {}
        self._form, self._speculative, self._made = _ANY_FORM, False, ("", 0)

    def node_of(self, plan: n.Plan) -> int:
        """The node of a part without state, which is the same for all queries."""
        return self._known[plan, _ANY_FORM].node

    def add_query(self, name: str, plan: n.Plan, *, speculative: bool = False, since: int = 0) -> None:
        """``since``: the tick before which the query had seen nothing."""
        root = self._lower(plan, _Form(speculative, since, hold=True))
        if not speculative and not root.final:
            self._begin(plan, _Form(speculative, since))
            root = self._add(AlignOperator(plan.schema), root, final=True)
        self._graph.queries[name] = root.node

    def _lower(self, plan: n.Plan, form: _Form) -> _Lowered:
        inside = evolve(form, hold=form.hold and isinstance(plan, _PASS_THROUGH))
        if _remembers_nothing(plan, late=form.since > 0):
            form = _ANY_FORM
        elif isinstance(plan, n.Source):
            form = _Form(since=form.since)
        elif form.speculative or isinstance(plan, _NEVER_HOLD):
            form = evolve(form, hold=False)
        if (plan, form) not in self._known:
            inputs = [self._lower(child, inside) for child in plan.inputs]
            if isinstance(plan, n.Source) and form.since:
                inputs = [self._lower(plan, _ANY_FORM)]
            self._begin(plan, form)
            self._known[plan, form] = self._build(plan, inputs, hold=form.hold)
        return self._known[plan, form]

    def _begin(self, plan: n.Plan, form: _Form) -> None:
        """What is added now belongs to this part of a plan."""
        if plan not in self._texts:
            self._texts[plan] = print_plan(plan)
        self._form, self._speculative, self._made = form, form.speculative, (self._texts[plan], 0)

    def _key(self, what: str) -> str:
        text, count = self._made
        self._made = text, count + 1
        return hashlib.sha256(f"{what}|{count}|{self._form}|{text}".encode()).hexdigest()[:24]

    def _add(self, operator: Operator, *inputs: _Lowered, final: bool | None = None) -> _Lowered:
        about = {"stateless": self._form == _ANY_FORM, "speculative": self._speculative}
        node = self._graph.add(operator, *(i.node for i in inputs), key=self._key(operator.name), **about)
        return _Lowered(node, all(i.final for i in inputs) if final is None else final)

    def _build(self, plan: n.Plan, inputs: list[_Lowered], *, hold: bool) -> _Lowered:
        schema, speculative = plan.schema, self._speculative
        final = hold and not speculative  # then it emits only final rows, whatever its inputs do
        match plan:
            case n.Source() if inputs:
                return self._add(SinceOperator(schema), *inputs)
            case n.Source(name=name, revisable=revisable):
                return _Lowered(self._graph.add_source(name, schema, self._key("source")), not revisable)
            case n.Constant(rows=rows):
                return self._add(ConstantOperator(schema, rows), final=True)
            case n.Filter(predicate=predicate):
                return self._add(FilterOperator(schema, predicate.sql, predicate.functions), *inputs)
            case n.Project(input=below, expressions=expressions):
                sqls = [scalar.sql for _, scalar in expressions]
                functions = [f for _, scalar in expressions for f in scalar.functions]
                return self._add(ProjectOperator(below.schema, schema, sqls, functions), *inputs)
            case n.Union():
                return self._add(UnionOperator(schema), *inputs)
            case n.Join():
                return self._join(plan, inputs, hold=hold)
            case n.Distinct():
                return self._add(
                    CountSweepOperator(schema, "distinct", speculative=speculative, hold=hold), *inputs, final=final
                )
            case n.Coalesce(longest=longest):
                operator = CountSweepOperator(schema, "coalesce", longest=longest, speculative=speculative, hold=hold)
                return self._add(operator, *inputs, final=final)
            case n.SetOperation(kind=kind):
                return self._add(
                    CountSweepOperator(schema, kind.value, speculative=speculative, hold=hold), *inputs, final=final
                )
            case n.Aggregate():
                return self._aggregate(plan, inputs[0], hold=hold)
            case n.PreAggregate(input=below, keys=keys, calls=calls):
                parts = [Call(c.function, c.output, c.type, c.argument, c.filter) for c in calls]
                return self._add(PreAggregateOperator(below.schema, keys, parts), *inputs)
            case n.TopK():
                return self._top_k(plan, inputs[0], hold=hold)
            case n.TimeWindow(size=size, slide=slide):
                chronons = self._chronons(plan.input, inputs[0])
                return self._add(TimeWindowOperator(schema, size, slide), chronons)
            case n.RowWindow(rows=rows, slide=slide, partition=partition):
                chronons = self._chronons(plan.input, inputs[0])
                operator = RowWindowOperator(schema, rows, slide, partition, speculative=speculative, hold=hold)
                return self._add(operator, chronons, final=final)
            case n.HopWindow():
                return self._hop_window(plan, inputs[0])
            case n.SessionWindow():
                return self._session_window(plan, inputs[0])
            case n.Granularity(granule=granule, offset=offset):
                return self._add(GranularityOperator(schema, granule, offset), *inputs)
            case n.Sample(period=period, offset=offset):
                operator = SampleOperator(schema, period, offset, speculative=speculative)
                return self._add(operator, *inputs, final=not speculative)
            case n.Stamp(input=below, column=column):
                return self._add(StampOperator(below.schema, column), self._chronons(below, inputs[0]))
            case n.Split(length=length):
                return self._add(SplitOperator(schema, length, for_window=False), *inputs)
            case n.Istream() | n.Dstream():
                kind = "istream" if isinstance(plan, n.Istream) else "dstream"
                return self._add(ChangesOperator(schema, kind, speculative=speculative), *inputs, final=not speculative)
            case n.ToPositiveNegative(input=below, sign=sign):
                operator = ChangesOperator(below.schema, "signed", sign=sign, speculative=speculative)
                return self._add(operator, *inputs, final=not speculative)
            case n.FromPositiveNegative(input=below, sign=sign):
                return self._add(
                    FromSignedOperator(below.schema, sign, speculative=speculative, hold=hold), *inputs, final=final
                )
        raise TypeError(f"no operator for {type(plan).__name__}")

    def _hop_window(self, plan: n.HopWindow, input_: _Lowered) -> _Lowered:
        names = {"start": plan.start, "end": plan.end, "time": plan.time}
        operator = HopWindowOperator(plan.input.schema, plan.size, plan.slide, plan.offset, **names)
        return self._add(operator, self._chronons(plan.input, input_))

    def _session_window(self, plan: n.SessionWindow, input_: _Lowered) -> _Lowered:
        """A final session has no open end: it need not be held back, and is never taken back."""
        names = {"start": plan.start, "end": plan.end, "time": plan.time}
        speculative = self._speculative
        operator = SessionWindowOperator(plan.input.schema, plan.gap, plan.partition, **names, speculative=speculative)
        return self._add(operator, self._chronons(plan.input, input_), final=not speculative)

    def _chronons(self, below: n.Plan, input_: _Lowered) -> _Lowered:
        if is_chronon(below):
            return input_
        return self._add(SplitOperator(below.schema, 1, for_window=True), input_)

    def _join(self, plan: n.Join, inputs: list[_Lowered], *, hold: bool) -> _Lowered:
        residual = plan.residual.sql if plan.residual is not None else None
        shapes = (plan.left.schema, plan.right.schema, plan.keys, residual)
        functions = plan.residual.functions if plan.residual is not None else ()
        form = {"functions": functions, "revisable": not all(i.final for i in inputs)}
        if plan.kind == n.JoinKind.INNER:
            return self._add(JoinOperator(*shapes, **form), *inputs)
        kind = SemiJoinOperator if plan.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI) else OuterJoinOperator
        operator = kind(*shapes, kind=plan.kind.value, speculative=self._speculative, hold=hold, **form)
        return self._add(operator, *inputs, final=not operator.retracts)

    def _aggregate(self, plan: n.Aggregate, input_: _Lowered, *, hold: bool) -> _Lowered:
        """DISTINCT arguments come through inputs of their own, already without duplicates."""
        below = plan.input.schema
        schemas, ports = [below], [input_]
        calls: list[Call] = []
        for call in plan.calls:
            plain = Call(call.function, call.output, call.type, call.argument, call.filter, 0, call.parameters)
            if call.distinct and call.argument is not None and call.function not in _UNTOUCHED_BY_DUPLICATES:
                names = tuple(dict.fromkeys((*plan.keys, call.argument)))
                schemas.append(below.select(names))
                ports.append(self._distinct_argument(input_, below, schemas[-1], call.filter))
                plain = evolve(plain, filter=None, port=len(ports) - 1)
            calls.append(plain)
        revisable = not all(port.final for port in ports)
        operator = AggregateOperator(
            schemas, plan.keys, calls, speculative=self._speculative, hold=hold, revisable=revisable
        )
        return self._add(operator, *ports, final=hold and not self._speculative)

    def _top_k(self, plan: n.TopK, input_: _Lowered, *, hold: bool) -> _Lowered:
        """An offset alone needs no order of all rows: what is left without the first ones."""
        rest = plan.limit == INFINITY and plan.rank is None
        if rest and not plan.offset:
            return input_
        order = [SortColumn(key.column, key.descending, key.nulls_first) for key in plan.order]
        limit, offset = (plan.offset, 0) if rest else (plan.limit, plan.offset)
        shapes = (plan.input.schema, order, limit, offset, plan.partition, plan.rank)
        final, last = hold and not self._speculative, hold and not rest
        first = TopKOperator(*shapes, speculative=self._speculative, hold=last)
        if not rest:
            return self._add(first, input_, final=final)
        others = CountSweepOperator(plan.schema, "except all", speculative=self._speculative, hold=hold)
        return self._add(others, input_, self._add(first, input_, final=False), final=final)

    def _distinct_argument(self, input_: _Lowered, below: Schema, schema: Schema, condition: str | None) -> _Lowered:
        if condition is not None:
            input_ = self._add(FilterOperator(below, f'"{condition}"'), input_)
        columns = [f'"{name}"' for name in schema.names]
        narrow = self._add(ProjectOperator(below, schema, columns), input_)
        distinct = CountSweepOperator(schema, "distinct", speculative=self._speculative, hold=False)
        return self._add(distinct, narrow, final=False)


def _remembers_nothing(plan: n.Plan, *, late: bool = False) -> bool:
    """Is every operator of it stateless? Then it serves all queries, whenever they began.

    Late: one that begins among rows that may change must remember which of them it has seen.
    """
    match plan:
        case n.Source(revisable=revisable):
            return not (late and revisable)
        case n.Filter() | n.Project() | n.Union() | n.Granularity() | n.PreAggregate():
            return all(_remembers_nothing(child, late=late) for child in plan.inputs)
        case n.TimeWindow(input=below) | n.HopWindow(input=below) | n.Stamp(input=below):
            return is_chronon(below) and _remembers_nothing(below, late=late)
    return False


def lower(plans: dict[str, n.Plan], *, speculative: bool = False) -> Graph:
    """One graph for all the plans."""
    graph = Graph()
    lowering = Lowering(graph)
    for name, plan in plans.items():
        lowering.add_query(name, plan, speculative=speculative)
    return graph
