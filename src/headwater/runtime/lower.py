"""From the logical algebra to operators: a graph of all queries (``builders`` has the operators of each node).

Equal sub-plans become one node, whichever query they belong to.

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

from attrs import evolve

from headwater.algebra import nodes as n
from headwater.algebra.plan_data import digest
from headwater.language.changes import DELETED, SIGN, carried_columns
from headwater.language.consistency import MIDDLE, STRONG, Consistency
from headwater.language.durations import shown_duration
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.base import EVERY_COLUMN, Operator
from headwater.operators.rows.filter import FilterOperator
from headwater.operators.rows.project import ProjectOperator
from headwater.operators.rows.union import UnionOperator
from headwater.operators.sweeps.changes import FromSignedOperator
from headwater.operators.tables.check_changes import CheckChangesOperator
from headwater.operators.tables.keyed_table import KeyedTableOperator
from headwater.operators.tables.repair import RepairOperator
from headwater.operators.tables.standing_rows import HandOverOperator, Standing, StandingRowsOperator
from headwater.operators.waiting.align import AlignOperator
from headwater.operators.waiting.align_starts import AlignStartsOperator
from headwater.operators.waiting.block import BlockOperator
from headwater.operators.waiting.finalize import FinalizeOperator
from headwater.operators.waiting.settle import SettleOperator
from headwater.operators.waiting.settle_starts import SettleStartsOperator
from headwater.runtime.builders import BUILDERS
from headwater.runtime.forms import ANY_FORM, Form, Lowered
from headwater.runtime.graph import Graph, Node, Wait
from headwater.runtime.lineage import strong_since
from headwater.runtime.plan_facts import is_revisable, remembers_nothing, shows_windows
from headwater.runtime.plan_keys import plan_key

_ROW_BY_ROW = (FilterOperator, ProjectOperator, UnionOperator)
"""They leave the times of rows as they are."""
_Align = AlignOperator | AlignStartsOperator
_Name = tuple[type[n.Plan], str]


class Lowering:
    """Grows a graph plan by plan."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[tuple[_Name, Form], Lowered] = {}
        self._aligned: dict[tuple[int, tuple[str, ...], Form], Lowered] = {}
        self._roots: dict[tuple[_Name, Form, bool], int] = {}
        self._kept: dict[n.Source, Lowered] = {}
        self._texts: dict[n.Plan, str] = {}
        self._identities: dict[n.Plan, str] = {}
        self._form, self._speculative, self._made = ANY_FORM, False, ("", 0)
        self._level, self._unit = ANY_FORM, False
        self._before: dict[str, Operator] = {}
        """By role: the operators of the strong form of the plan, for a query that began with them."""

    @property
    def speculative(self) -> bool:
        """Does what is built now show all that it knows?"""
        return self._speculative

    @property
    def hold(self) -> bool:
        """Does what is built now hold back what is open?"""
        return self._form.hold

    @property
    def adopted(self) -> bool:
        """Does what is built now take over the states of strong operators?"""
        return self._form.adopted

    def node_of(self, plan: n.Plan) -> int:
        """The node of a part without state, which is the same for all queries."""
        return self._known[self._name(plan), ANY_FORM].node

    def _name(self, plan: n.Plan) -> _Name:
        """What the states of a part are called by. Parts that differ in what else is read of a stream have one name: they
        are one part."""
        if plan not in self._texts:
            self._texts[plan] = plan_key(plan, self._identities)
        return type(plan), self._texts[plan]

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
        root = (self._name(plan), form, strong)
        if root not in self._roots:  # equal queries are one, with one state
            self._roots[root] = self._root(plan, form, strong=strong)
        self._graph.queries[name] = self._roots[root]

    def _root(self, plan: n.Plan, form: Form, *, strong: bool) -> int:
        """The node of a whole plan, with what its level needs above it."""
        if form.adopted:
            self._before = _strong_operators(plan, form.since, opens=not form.hold)
        root = self._lower(plan, form)
        align = AlignOperator if form.hold else AlignStartsOperator
        if not form.speculative and not (root.final if form.hold else root.settled):
            self._begin(plan, Form(since=form.since))
            root = self.add(align(plan.schema), root, final=form.hold)
        elif form.adopted:
            self._begin(plan, evolve(form, hold=False))
            root = self.opened_align(plan.schema, root, align)
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
        builder = BUILDERS[type(plan)]
        inside = evolve(form, hold=(form.hold and builder.passes) or shows_windows(plan))
        if remembers_nothing(plan, late=form.since > 0):
            form = ANY_FORM
        elif remembers_nothing(plan, repaired=True):
            form = Form(
                since=form.since if is_revisable(plan) else 0
            )  # what queries see since then is one for all levels
        elif (form.speculative and not form.adopted) or not builder.holds:
            form = evolve(form, hold=False)
        part = self._name(plan), form
        if part not in self._known:
            inputs = [self._lower(child, inside) for child in plan.inputs]
            self._begin(plan, form)
            self._known[part] = builder.build(self, plan, inputs)
        return self._known[part]

    def _begin(self, plan: n.Plan, form: Form) -> None:
        """What is added now belongs to this part of a plan."""
        self._form, self._speculative, self._made = form, form.speculative, (self._name(plan)[1], 0)

    def _keys(self, what: str) -> dict[str, str]:
        names = self._next_keys(what)
        text, count = self._made
        self._made = text, count + 1
        return names

    def _next_keys(self, what: str) -> dict[str, str]:
        text, count = self._made
        forms = {"key": self._form, "role": self._form.role}
        return {name: digest([what, count, form.to_data(), text]) for name, form in forms.items()}

    def opened_align(self, schema: Schema, below: Lowered, align: type[_Align] = AlignOperator) -> Lowered:
        """Where the strong form of the plan had an align, in which rows may wait, they must come out of it."""
        if self._next_keys(align.name)["role"] not in self._before:
            return below
        return self.add(align(schema, opened=True), below)

    def add(self, operator: Operator, *inputs: Lowered, final: bool | None = None) -> Lowered:
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
        names = {
            "key": digest([what, form.to_data(), under.key]),
            "role": digest([what, form.role.to_data(), under.role]),
        }
        return evolve(below, node=self._graph.add(operator, below.node, speculative=True, wait=wait, **names))

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

    def read_source(self, plan: n.Source) -> Lowered:
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


def _strong_operators(plan: n.Plan, since: int, *, opens: bool) -> dict[str, Operator]:
    """By role: what a strong query of this plan is made of."""
    graph = Graph()
    Lowering(graph).add_query("", plan, since=since, opens=opens)
    return {node.role: node.operator for node in graph.nodes if node.operator is not None}


def _operator(graph: Graph, lowered: Lowered) -> Operator:
    found = graph.nodes[lowered.node].operator
    assert found is not None
    return found


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
