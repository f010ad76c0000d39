"""Which queries run, and the one graph that computes them all.

The graph is made anew when a query comes or goes, between two ticks. A node that is in the old and in the new graph has the
same key, so it keeps its state; what only a stopped query used is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from attrs import Factory, define

from headwater.algebra.nodes import Plan, Source
from headwater.algebra.plan_data import from_json, to_json
from headwater.errors import InputError
from headwater.language.consistency import MIDDLE, STRONG, Consistency
from headwater.model.delta import Delta
from headwater.model.time import BEGINNING
from headwater.operators.rows.constant import ConstantOperator
from headwater.optimizer.cost import Statistics
from headwater.runtime.change_level import Carried, carried, changed_output, check_change
from headwater.runtime.graph import Graph
from headwater.runtime.layout import Layout, cut
from headwater.runtime.lineage import lineage_after
from headwater.runtime.lower import Lowering
from headwater.runtime.plan_keys import read_columns
from headwater.runtime.reading import StreamTask
from headwater.runtime.stage import Records
from headwater.sinks.base import Output, Sink, Stager

_MOST_PLAN_TEXT = 100_000


@define(eq=False, slots=False)
class Running:
    """A query that runs."""

    name: str
    plan: Plan
    sink: Sink
    output: Output
    since: int
    """The tick before which it had seen nothing."""
    frontier: int = BEGINNING
    """How far its answer is final: known, if not delivered."""
    closed: int = BEGINNING
    """How far it is delivered: all rows that start before this. With EMIT ON CLOSE rows that wait hold it back."""
    rows: int = 0
    """Rows it has answered since it was started here."""
    consistency: Consistency | None = None
    asked: Consistency | None = None
    """The level that it was started with."""
    lineage: str = ""
    """The levels of consistency that it had before, and until when."""
    parts: tuple[Plan, ...] = ()
    """The parts of its plan that need not be left to Python, where its rows come from elsewhere."""
    written: str = ""
    """A name for the query as it was written, over its streams as they were declared, before it was planned."""
    statistics: Statistics = Factory(Statistics)
    """What was known of its streams when its plan was made: with the same it is made again."""

    @property
    def level(self) -> Consistency:
        """How far it may run ahead of what is certain."""
        return self.consistency or (MIDDLE if self.output.speculative else STRONG)

    @cached_property
    def reads(self) -> dict[str, dict[str, str]]:
        """By stream: the columns that it reads, and their types."""
        return read_columns(self.plan)

    @cached_property
    def plan_text(self) -> str:
        """What it computes of columns of which types, for a restart after these have become wider; nothing if that is long:
        it is in every manifest."""
        text = to_json(self.plan)
        return text if len(text) <= _MOST_PLAN_TEXT else ""

    def to_manifest(self, key: str) -> dict[str, Any]:
        about = {"speculative": self.output.speculative, "consistency": str(self.level)}
        about |= {"level": self.level.to_manifest(), "lineage": self.lineage}
        about |= {"asked": (self.asked or self.level).to_manifest()}
        about |= {"emission": self.output.emission.to_manifest()}
        about |= {"reads": self.reads, "plan": self.plan_text, "written": self.written}
        about |= {"statistics": self.statistics.to_manifest()}
        return {"key": key, "since": self.since, "frontier": self.frontier, "closed": self.closed} | about


class Deployment:
    """All queries that run together."""

    def __init__(self) -> None:
        self._running: dict[str, Running] = {}
        self.relations: dict[str, Source] = {}
        """By stream: relations whose rows are kept for queries to come, also while none reads them."""
        self.layout: Layout = cut(Graph())
        self.stagers: dict[str, Stager] = {}
        self.node_of: Callable[[Plan], int] = Lowering(self.layout.graph).node_of
        """The node of a part of a plan that remembers nothing."""
        self.together: tuple[frozenset[str], ...] = ()
        """The streams that each query reads."""
        self._described: dict[str, Any] | None = None

    def __iter__(self):
        return iter(self._running.values())

    def __contains__(self, name: str) -> bool:
        return name in self._running

    def __getitem__(self, name: str) -> Running:
        return self._running[name]

    def check_new(self, name: str) -> None:
        """Is there no query of that name yet?"""
        same = next((known for known in self._running if known.casefold() == name.casefold()), None)
        if same is not None:
            raise InputError(
                "QUERY_RUNS",
                f'a query "{same}" runs already',
                hint="Stop it first, or give this one another name: start(sink, name=…).",
            )

    def add(self, query: Running) -> None:
        self.check_new(query.name)
        self._running[query.name] = query
        self._rebuild()

    def remove(self, name: str) -> Running:
        query = self._running.pop(name)
        self._rebuild()
        return query

    def check_level(self, name: str, consistency: Consistency) -> None:
        """Raises ``InputError`` if the query cannot go on with this level."""
        query = self._running[name]
        check_change(query.output, query.sink, query.level, consistency)

    def change_level(self, name: str, consistency: Consistency, tick: int) -> Carried:
        """Let a query go on with another level after this tick: which operators take over whose state."""
        self.check_level(name, consistency)
        query = self._running[name]
        if query.level == consistency:
            return Carried({})
        before = self.layout.graph
        query.lineage = lineage_after(query.lineage, query.level, tick)
        query.consistency = consistency
        query.output = changed_output(query.output, query.lineage, consistency)
        query.sink.change(query.output)
        self._rebuild()
        return carried(before, self.layout.graph, name)

    def keep(self, relation: Plan) -> None:
        """From now on what stands in it is kept, if it is a relation: rows of a stream come and are gone."""
        assert isinstance(relation, Source)
        if relation.revisable and self.relations.get(relation.name) != relation:
            self.relations[relation.name] = relation
            self._rebuild()

    def keep_as_text(self, relations: Mapping[str, str]) -> None:
        """As a checkpoint has them."""
        for text in relations.values():
            self.keep(from_json(text))

    def relations_as_text(self) -> dict[str, str]:
        return {name: to_json(relation) for name, relation in self.relations.items()}

    def forget(self, stream: str) -> set[str]:
        """What stands in it is of no use any more: the keys of the states that had it."""
        if self.relations.pop(stream, None) is None:
            return set()
        before = self.layout.graph.nodes
        self._rebuild()
        return {node.key for node in before} - {node.key for node in self.layout.graph.nodes}

    def has_newcomers(self, records: Records) -> bool:
        """Has a query begun that has not got yet what stands in its relations, or that is over constants alone?"""
        begun = [node.key for node in self.layout.graph.nodes if node.standing is not None]
        if any(key not in records.get(0, {}) for key in begun):
            return True
        return not all(self.together) and bool(self.new_constants(records))

    def _rebuild(self) -> None:
        graph = Graph()
        self.node_of = _lower(graph, self._running.values(), self.relations.values()).node_of
        self.layout, self._described = cut(graph), None
        self.together = tuple(frozenset(query.plan.streams) for query in self._running.values())
        self.stagers = {query.name: query.sink.stager() for query in self._running.values()}

    def key_of(self, name: str) -> str:
        """What the state of its last operator is called: equal for equal queries that began together."""
        return root_key(self.layout.graph, name)

    def described(self, streams: Mapping[str, StreamTask]) -> dict[str, Any]:
        """What the keys of operators stand for, and which times are TIMESTAMPs: for those who look at a checkpoint.

        By what streams are placed in time must stay the same.
        """
        if self._described is None:
            self._described = _described(self.layout)
        timestamps = {name: task.timestamps for name, task in streams.items()}
        timestamps |= {task.late: task.timestamps for task in streams.values()}
        queries = {query.name: query.output.timestamps for query in self._running.values()}
        times = {name: task.placed_by for name, task in streams.items()}
        return {"operators": self._described, "streams": timestamps, "queries": queries, "times": times}

    def new_constants(self, sent: Records) -> dict[str, Delta]:
        """The constants of queries that have not begun yet, by node key."""
        found: dict[str, Delta] = {}
        for i in self.layout.constants:
            node = self.layout.graph.nodes[i]
            if isinstance(node.operator, ConstantOperator) and node.key not in sent.get(0, {}):
                found[node.key] = node.operator.rows_as_delta()
        return found


def graph_if(query: Running) -> Graph:
    """What it would be made of alone: its operators have the same keys whoever else runs."""
    graph = Graph()
    _lower(graph, [query], ())
    return graph


def root_key(graph: Graph, query: str) -> str:
    return graph.nodes[graph.queries[query]].key


def _described(layout: Layout) -> dict[str, Any]:
    """The operators behind level 0, by key."""
    graph = layout.graph
    found: dict[str, Any] = {}
    for query in graph.queries:
        for node in (graph.nodes[i] for i in sorted(graph.below(query)) if layout.level_of[i] > 0):
            if node.operator is not None:
                entry = found.setdefault(node.key, {"operator": node.operator.name, "queries": []})
                entry["queries"].append(query)
    for i in graph.relations.values():
        operator = graph.nodes[i].operator
        if operator is not None:
            found.setdefault(graph.nodes[i].key, {"operator": operator.name, "queries": []})
    return found


def _lower(graph: Graph, queries: Iterable[Running], relations: Iterable[Source]) -> Lowering:
    lowering = Lowering(graph)
    for relation in relations:
        lowering.add_relation(relation)
    for query in queries:
        for source in query.plan.walk():
            if isinstance(source, Source) and source.revisable:
                lowering.add_relation(source)
        level, past = query.level, {"since": query.since, "lineage": query.lineage}
        lowering.add_query(query.name, query.plan, consistency=level, opens=query.output.opens, **past)
    return lowering
