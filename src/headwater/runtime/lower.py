"""From the logical algebra to operators: the one place that knows both.

Equal sub-plans become one node, whichever query they belong to. A window stands on a split unless its input is known to
consist of chronons (Krämer 12.3.2).

A strong query needs only its last stateful operators to hold back what is open. Those below them show it open-ended once
its start is final, so that time advances through the plan (a group that is never touched again would hold back everything
above it). An answer that could still be taken back is held by an align operator at the root. A query whose rows go out with
an open end (EMIT ON START) has no operators that hold back, and an align that goes by the starts where it needs one.

A query of any other level has the speculative form of every operator. Below its first operators that remember something
stand the two that make its level (CEDR A.3): one closes the past behind what is remembered, one lets rows wait. They take
the routing of whoever reads them, since it is all the same to them. What is below them serves all queries.

A query that was strong first and is another one now has speculative operators in the shape of its strong plan, each of
which knows the strong form whose state it takes over (``change_level``).
"""

from __future__ import annotations

import hashlib

from attrs import evolve

from headwater.algebra import nodes as n
from headwater.algebra.properties import begins_once, is_chronon
from headwater.language.changes import DELETED, SIGN, carried_columns
from headwater.language.consistency import MIDDLE, STRONG, Consistency
from headwater.language.durations import shown_duration
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.aggregates.aggregate import AggregateOperator, Call
from headwater.operators.aggregates.pre_aggregate import PreAggregateOperator
from headwater.operators.base import EVERY_COLUMN, Operator
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
from headwater.operators.sweeps.changes import ChangesOperator, FromSignedOperator
from headwater.operators.sweeps.count_sweep import CountSweepOperator
from headwater.operators.tables.check_changes import CheckChangesOperator
from headwater.operators.tables.keyed_table import KeyedTableOperator
from headwater.operators.tables.repair import RepairOperator
from headwater.operators.tables.standing_rows import HandOverOperator, Standing, StandingRowsOperator
from headwater.operators.waiting.align import AlignOperator
from headwater.operators.waiting.align_starts import AlignStartsOperator
from headwater.operators.waiting.await_other import AwaitOperator
from headwater.operators.waiting.block import BlockOperator
from headwater.operators.waiting.finalize import FinalizeOperator
from headwater.operators.waiting.settle import SettleOperator
from headwater.operators.waiting.settle_starts import SettleStartsOperator
from headwater.operators.windows.hop_window import HopWindowOperator
from headwater.operators.windows.row_window import RowWindowOperator
from headwater.operators.windows.session_window import SessionWindowOperator
from headwater.operators.windows.time_window import TimeWindowOperator
from headwater.runtime.forms import ANY_FORM, Form, Lowered
from headwater.runtime.graph import Graph, Node, Wait
from headwater.runtime.lasting_rows import counted_instants, counts_segments
from headwater.runtime.lineage import strong_since
from headwater.runtime.plan_facts import delay_of, is_revisable, remembers_nothing, shows_windows
from headwater.runtime.plan_keys import key_text

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
    n.Await,
)
_ROW_BY_ROW = (FilterOperator, ProjectOperator, UnionOperator)
"""They leave the times of rows as they are."""
_NEVER_HOLD = (n.Source, n.Constant, n.SessionWindow)
_UNTOUCHED_BY_DUPLICATES = ("MIN", "MAX")
_Align = AlignOperator | AlignStartsOperator


class Lowering:
    """Grows a graph plan by plan."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[tuple[n.Plan, Form], Lowered] = {}
        self._aligned: dict[tuple[int, tuple[str, ...], Form], Lowered] = {}
        self._roots: dict[tuple[n.Plan, Form, bool], int] = {}
        self._kept: dict[n.Source, Lowered] = {}
        self._texts: dict[n.Plan, str] = {}
        self._form, self._speculative, self._made = ANY_FORM, False, ("", 0)
        self._level, self._unit = ANY_FORM, False
        self._before: dict[str, Operator] = {}
        """By role: the operators of the strong form of the plan, for a query that began with them."""

    def node_of(self, plan: n.Plan) -> int:
        """The node of a part without state, which is the same for all queries."""
        return self._known[plan, ANY_FORM].node

    def add_query(
        self,
        name: str,
        plan: n.Plan,
        *,
        consistency: Consistency = STRONG,
        since: int = 0,
        lineage: str = "",
        opens: bool = False,
    ) -> None:
        """``since``: the tick before which the query had seen nothing. ``lineage``: the levels it had before this one.

        ``opens``: rows go out with an open end, as soon as their start is final.
        """
        strong = consistency == STRONG
        form = Form(not strong or bool(lineage), since, hold=not opens)
        if not strong:
            form = evolve(form, block=consistency.block, remember=consistency.remember, wall=consistency.wall)
        self._level = form = evolve(form, lineage=lineage)
        self._unit = consistency.unit
        self._before = {}
        if (plan, form, strong) not in self._roots:  # equal queries are one, with one state
            self._roots[plan, form, strong] = self._root(plan, form, strong=strong)
        self._graph.queries[name] = self._roots[plan, form, strong]

    def _root(self, plan: n.Plan, form: Form, *, strong: bool) -> int:
        """The node of a whole plan, with what its level needs above it."""
        if form.adopted:
            self._before = _strong_operators(plan, form.since, opens=not form.hold)
        root = self._lower(plan, form)
        align = AlignOperator if form.hold else AlignStartsOperator
        if not form.speculative and not (root.final if form.hold else root.settled):
            self._begin(plan, Form(since=form.since))
            root = self._add(align(plan.schema), root, final=form.hold)
        elif form.adopted:
            self._begin(plan, evolve(form, hold=False))
            root = self._opened_align(plan.schema, root, align)
        if root.raw:
            root = self._wait(root, plan.schema.names)
        if strong_since(form.lineage, now=strong):
            self._begin(plan, evolve(form, hold=False))
            whole = isinstance(plan, n.TimeWindow) and isinstance(plan.input, n.Sample)  # EMIT EVERY
            settle = SettleOperator if form.hold else SettleStartsOperator
            root = self._put(settle(plan.schema, opened=not strong, whole=whole), root)
        return root.node

    def _lower(self, plan: n.Plan, form: Form) -> Lowered:
        if isinstance(plan, n.Await) and form.speculative and not form.adopted:
            return self._lower(plan.input, form)  # what is shown at once waits for nobody
        inside = evolve(form, hold=(form.hold and isinstance(plan, _PASS_THROUGH)) or shows_windows(plan))
        if remembers_nothing(plan, late=form.since > 0):
            form = ANY_FORM
        elif remembers_nothing(plan, repaired=True):
            form = Form(
                since=form.since if is_revisable(plan) else 0
            )  # what queries see since then is one for all levels
        elif (form.speculative and not form.adopted) or isinstance(plan, _NEVER_HOLD):
            form = evolve(form, hold=False)
        if (plan, form) not in self._known:
            inputs = [self._lower(child, inside) for child in plan.inputs]
            self._begin(plan, form)
            self._known[plan, form] = self._build(plan, inputs, hold=form.hold)
        return self._known[plan, form]

    def _begin(self, plan: n.Plan, form: Form) -> None:
        """What is added now belongs to this part of a plan."""
        if plan not in self._texts:
            self._texts[plan] = key_text(plan)
        self._form, self._speculative, self._made = form, form.speculative, (self._texts[plan], 0)

    def _keys(self, what: str) -> dict[str, str]:
        names = self._next_keys(what)
        text, count = self._made
        self._made = text, count + 1
        return names

    def _next_keys(self, what: str) -> dict[str, str]:
        text, count = self._made
        forms = {"key": self._form, "role": self._form.role}
        return {name: _hash(f"{what}|{count}|{form}|{text}") for name, form in forms.items()}

    def _opened_align(self, schema: Schema, below: Lowered, align: type[_Align] = AlignOperator) -> Lowered:
        """Where the strong form of the plan had an align, in which rows may wait, they must come out of it."""
        if self._next_keys(align.name)["role"] not in self._before:
            return below
        return self._add(align(schema, opened=True), below)

    def _add(self, operator: Operator, *inputs: Lowered, final: bool | None = None) -> Lowered:
        routing = operator.routing()
        passes = all(columns is None for columns in routing)
        raw = bool(inputs) and passes and all(i.raw for i in inputs)
        if not raw:
            below = (self._graph.nodes[i.node].schema.names for i in inputs)
            inputs = tuple(
                self._wait(i, names if by is None or by == EVERY_COLUMN else by) if i.raw else i
                for i, by, names in zip(inputs, routing, below, strict=True)
            )
        return self._put(operator, *inputs, final=final, raw=raw)

    def _put(
        self,
        operator: Operator,
        *inputs: Lowered,
        final: bool | None = None,
        raw: bool = False,
        standing: int | None = None,
    ) -> Lowered:
        passes = all(columns is None for columns in operator.routing())
        stateless = self._form == ANY_FORM and passes and all(self._graph.nodes[i.node].stateless for i in inputs)
        about = {"stateless": stateless, "speculative": self._speculative}
        wait = Wait(self._form.block, self._form.wall)
        below, names = (i.node for i in inputs), self._keys(operator.name)
        before = self._before.get(names["role"]) if self._form.adopted else None
        node = self._graph.add(operator, *below, **about, wait=wait, before=before, standing=standing, **names)
        final = all(i.final for i in inputs) if final is None else final
        passes_on = isinstance(operator, _ROW_BY_ROW) and all(i.settled for i in inputs)
        return Lowered(node, final, raw, final or operator.settles or passes_on)

    def _wait(self, below: Lowered, by: tuple[str, ...]) -> Lowered:
        """What a level adds below the first operators that remember something; nothing for strong and middle ones."""
        form = evolve(self._level, hold=False)
        if not (form.speculative and form.waits):
            return evolve(below, raw=False)
        known = below.node, by, form
        if known not in self._aligned:
            under = self._graph.nodes[below.node]
            schema = under.schema
            if form.remember < INFINITY or form.lineage:
                remember = FinalizeOperator(schema, by, revisable=not below.final, remember=self._shown(form.remember))
                below = self._add_wait(remember, below, under, form, Wait(form.remember, form.wall))
            if form.block or form.lineage:
                block = BlockOperator(schema, by, self._shown(form.block), opened=not form.block)
                below = self._add_wait(block, below, under, form, Wait(form.block, form.wall))
            self._aligned[known] = evolve(below, raw=False)
        return self._aligned[known]

    def _shown(self, length: int) -> str:
        return shown_duration(length, unit=self._unit) + (" BY WALL CLOCK" if self._level.wall else "")

    def _add_wait(
        self, operator: BlockOperator | FinalizeOperator, below: Lowered, under: Node, form: Form, wait: Wait
    ) -> Lowered:
        """Its key says over what part of a plan it stands, not for whom: other queries may come and go."""
        what = f"{operator.name}|{operator.routing()}"
        names = {"key": _hash(f"{what}|{form}|{under.key}"), "role": _hash(f"{what}|{form.role}|{under.role}")}
        return evolve(below, node=self._graph.add(operator, below.node, speculative=True, wait=wait, **names))

    def _build(self, plan: n.Plan, inputs: list[Lowered], *, hold: bool) -> Lowered:
        schema, speculative = plan.schema, self._speculative
        final = hold and not speculative  # then it emits only final rows, whatever its inputs do
        match plan:
            case n.Source():
                return self._source(plan)
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
                once = begins_once(plan)
                operator = CountSweepOperator(schema, "distinct", speculative=speculative, hold=hold, once=once)
                return self._add(operator, *inputs, final=final or (once and not speculative))
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
            case n.Await(other=other, by=by):
                awaited = ", ".join(node.name for node in other.walk() if isinstance(node, n.Source))
                operator = AwaitOperator(schema, by or schema.names, awaited, opened=self._form.adopted)
                return self._add(operator, *inputs, final=inputs[0].final)
            case n.TopK():
                return self._top_k(plan, inputs[0], hold=hold)
            case n.TimeWindow(size=size, slide=slide):
                chronons = self._chronons(plan.input, inputs[0])
                return self._add(TimeWindowOperator(schema, size, slide), chronons)
            case n.RowWindow(rows=rows, slide=slide, partition=partition):
                operator = RowWindowOperator(schema, rows, slide, partition, speculative=speculative, hold=hold)
                return self._add(operator, self._counted_instants(plan, inputs[0]), final=final)
            case n.HopWindow():
                return self._hop_window(plan, inputs[0])
            case n.SessionWindow():
                return self._session_window(plan, inputs[0])
            case n.Granularity(granule=granule, offset=offset):
                early = final or (shows_windows(plan) and not speculative)
                if early and not inputs[0].final:  # waiting above it would last until the next granule
                    inputs = [self._add(AlignOperator(schema), *inputs, final=True)]
                elif self._form.adopted:
                    inputs = [self._opened_align(schema, inputs[0])]
                return self._add(GranularityOperator(schema, granule, offset), *inputs)
            case n.Sample(period=period, offset=offset):
                operator = SampleOperator(schema, period, offset, speculative=speculative, delay=delay_of(plan.input))
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

    def add_relation(self, plan: n.Source) -> None:
        """Keep what the relation holds, whoever reads it."""
        if plan.name not in self._graph.relations:
            self._graph.relations[plan.name] = self._standing(plan).node

    def add_late_reader(self, plan: n.Source, since: int) -> None:
        """The relation as queries read it that began with this tick."""
        self._lower(plan, Form(since=since))

    def _standing(self, plan: n.Source) -> Lowered:
        """The relation, by an operator that knows the rows that stand in it."""
        read = self._lower(plan, ANY_FORM)
        if isinstance(self._graph.nodes[read.node].operator, Standing):
            return read
        if plan not in self._kept:
            self._begin(plan, ANY_FORM)
            self._kept[plan] = self._put(StandingRowsOperator(plan.schema), read, raw=True)
        return self._kept[plan]

    def _source(self, plan: n.Source) -> Lowered:
        """Change events become rows, and changes that come in any order are put in order, for all queries. One that began
        later gets the rows first that stand in a relation; of a stream it sees what comes."""
        if self._form.since:
            form = Form(since=self._form.since)
            early = self._standing(plan)
            self._begin(plan, form)
            (by,) = _operator(self._graph, early).routing()
            assert by is not None
            return self._put(HandOverOperator(plan.schema, by), early, raw=True, standing=early.node)
        names = self._keys("source")
        if plan.events:
            carried = carried_columns(plan.schema, plan.key)
            read = Lowered(self._graph.add_source(plan.name, carried, **names), True, raw=True)
            return self._table(plan, read, carried)
        source = self._graph.add_source(plan.name, plan.schema, **names)
        read = Lowered(source, not plan.revisable, raw=True, settled=not plan.revisable)
        if plan.checked:
            return self._put(CheckChangesOperator(plan.schema, plan.name), read, raw=True)
        return self._put(RepairOperator(plan.schema), read, raw=True) if plan.unordered else read

    def _table(self, plan: n.Source, read: Lowered, events: Schema) -> Lowered:
        """The rows that events tell of. Signed images open and close rows (Krämer 17.3); with a key the last event of each
        tells what is there, so that no image of what was before is needed."""
        if plan.key:
            operator: Operator = KeyedTableOperator(events, plan.schema, plan.key, DELETED)
        else:
            operator = FromSignedOperator(events, SIGN, speculative=True)
        self._speculative = True  # it shows what it knows, and changes it: for all levels alike
        return self._put(operator, read, final=False, raw=True)

    def _hop_window(self, plan: n.HopWindow, input_: Lowered) -> Lowered:
        names = {"start": plan.start, "end": plan.end, "time": plan.time}
        steps = (plan.size, plan.slide, plan.offset)
        operator = HopWindowOperator(plan.input.schema, *steps, **names, lifetime=plan.lifetime)
        return self._add(operator, self._chronons(plan.input, input_))

    def _session_window(self, plan: n.SessionWindow, input_: Lowered) -> Lowered:
        """A final session has no open end: it need not be held back, and is never taken back."""
        names = {"start": plan.start, "end": plan.end, "time": plan.time}
        speculative = self._speculative
        operator = SessionWindowOperator(plan.input.schema, plan.gap, plan.partition, **names, speculative=speculative)
        return self._add(operator, self._chronons(plan.input, input_), final=not speculative)

    def _chronons(self, below: n.Plan, input_: Lowered) -> Lowered:
        if is_chronon(below):
            return input_
        return self._add(SplitOperator(below.schema, 1, for_window=True), input_)

    def _counted_instants(self, plan: n.RowWindow, input_: Lowered) -> Lowered:
        if not counts_segments(plan):
            return self._chronons(plan.input, input_)
        for operator in counted_instants(plan, speculative=self._speculative):
            input_ = self._add(operator, input_, final=False)
        return input_

    def _join(self, plan: n.Join, inputs: list[Lowered], *, hold: bool) -> Lowered:
        residual = plan.residual.sql if plan.residual is not None else None
        shapes = (plan.left.schema, plan.right.schema, plan.keys, residual)
        functions = plan.residual.functions if plan.residual is not None else ()
        form = {"functions": functions, "revisable": not all(i.final for i in inputs)}
        if plan.kind == n.JoinKind.INNER:
            return self._add(JoinOperator(*shapes, **form), *inputs)
        kind = SemiJoinOperator if plan.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI) else OuterJoinOperator
        operator = kind(*shapes, kind=plan.kind.value, speculative=self._speculative, hold=hold, **form)
        return self._add(operator, *inputs, final=not operator.retracts)

    def _aggregate(self, plan: n.Aggregate, input_: Lowered, *, hold: bool) -> Lowered:
        """DISTINCT arguments come through inputs of their own, already without duplicates."""
        below, once = plan.input.schema, begins_once(plan)
        schemas, ports = [below], [input_]
        calls: list[Call] = []
        for call in plan.calls:
            plain = Call(call.function, call.output, call.type, call.argument, call.filter, 0, call.parameters)
            if call.distinct and call.argument is not None and call.function not in _UNTOUCHED_BY_DUPLICATES:
                names = tuple(dict.fromkeys((*plan.keys, call.argument)))
                schemas.append(below.select(names))
                ports.append(self._distinct_argument(input_, below, schemas[-1], call.filter, once=once))
                plain = evolve(plain, filter=None, port=len(ports) - 1)
            calls.append(plain)
        revisable = not all(port.final for port in ports)
        form = {"speculative": self._speculative, "hold": hold, "revisable": revisable, "once": once}
        operator = AggregateOperator(schemas, plan.keys, calls, **form)
        return self._add(operator, *ports, final=(hold or once) and not self._speculative)

    def _top_k(self, plan: n.TopK, input_: Lowered, *, hold: bool) -> Lowered:
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

    def _distinct_argument(
        self, input_: Lowered, below: Schema, schema: Schema, condition: str | None, *, once: bool
    ) -> Lowered:
        if condition is not None:
            input_ = self._add(FilterOperator(below, f'"{condition}"'), input_)
        columns = [f'"{name}"' for name in schema.names]
        narrow = self._add(ProjectOperator(below, schema, columns), input_)
        distinct = CountSweepOperator(schema, "distinct", speculative=self._speculative, hold=False, once=once)
        return self._add(distinct, narrow, final=False)


def _strong_operators(plan: n.Plan, since: int, *, opens: bool) -> dict[str, Operator]:
    """By role: what a strong query of this plan is made of."""
    graph = Graph()
    Lowering(graph).add_query("", plan, since=since, opens=opens)
    return {node.role: node.operator for node in graph.nodes if node.operator is not None}


def _operator(graph: Graph, lowered: Lowered) -> Operator:
    found = graph.nodes[lowered.node].operator
    assert found is not None
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def lower(
    plans: dict[str, n.Plan],
    *,
    speculative: bool = False,
    consistency: Consistency | None = None,
    opens: bool = False,
) -> Graph:
    """One graph for all the plans."""
    graph = Graph()
    lowering = Lowering(graph)
    level = consistency or (MIDDLE if speculative else STRONG)
    for name, plan in plans.items():
        lowering.add_query(name, plan, consistency=level, opens=opens)
    return graph
