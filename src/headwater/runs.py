"""The queries of an engine that run: started with their sinks and sources, and dropped with what only they used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, count

from headwater.algebra.nodes import Plan
from headwater.algebra.plan_data import from_json, identity
from headwater.backends.local import LocalBackend
from headwater.backends.spark.native_parts import SparkRows
from headwater.clock.guarantees import notices_of_query
from headwater.errors import StateError
from headwater.language.catalog import Catalog, Derived
from headwater.language.introspection import Explain
from headwater.language.system_views import have_unit
from headwater.optimizer.cost import Statistics
from headwater.optimizer.physical.native_parts import Marked, mark
from headwater.optimizer.plan_query import plan_query
from headwater.query import Query, Run
from headwater.runtime.core import Core
from headwater.runtime.deployment import Running
from headwater.runtime.inputs import Inputs
from headwater.runtime.known_statistics import known_statistics
from headwater.runtime.when_shown import notices_of_form
from headwater.sinks.base import Output, Sink


class Runs:
    """What runs, by name."""

    def __init__(self, core: Core, inputs: Inputs, backend: LocalBackend) -> None:
        self._core, self._inputs, self._backend = core, inputs, backend
        self.by_name: dict[str, Run] = {}

    def __iter__(self) -> Iterator[Run]:
        return iter(list(self.by_name.values()))

    def start(self, query: Query, sink: Sink, catalog: Catalog, name: str | None) -> Run:
        """From the next tick on; without a name, a query that was given none gets one that is free."""
        sink.spark = self._backend.spark
        name = name or (query.name if query.named else self._free_name(query.name, catalog))
        known, native = self._known(query.plan, name, catalog), SparkRows(self._backend.row_streams(self._inputs))
        written = identity(query.plan, {})  # with its streams as they are declared
        made = self._kept_plan(name, written, native)
        if made is None:
            made = plan_query(query.plan, query.settings, statistics=known, native=native)
        plan = made.plan
        with self._inputs.loop.held():
            form, timestamps = query.form_in(sink), have_unit(catalog, plan.streams)
            output = Output(name, plan.schema, query.speculative, timestamps, emission=form)
            running = Running(name, plan, sink, output, since=0, consistency=query.consistency)
            running.parts, running.statistics, running.written = made.parts, known, written
            self._core.queries.start(running)
            self._inputs.start(plan, catalog)
            run = self.by_name[name] = Run(query, running, self._core, stop=lambda: self.drop(name))
        rules, together = self._core.times.clock.rules, self._core.deployment.together
        slow = notices_of_query(rules, plan.streams, together=together)
        run.notices = (*slow, *notices_of_form(plan, output))
        return run

    def drop(self, name: str) -> None:
        """Stop a query, or give up one that the checkpoint has and that is not started again."""
        with self._inputs.loop.held():
            run = self.by_name.pop(name, None)
            if run is not None:
                run.remember()
            self._core.queries.stop(name)
            self._inputs.stop_unused()

    def _kept_plan(self, name: str, written: str, native: SparkRows) -> Marked | None:
        """The plan with which the checkpoint has the query, if that was written as it is now: it goes on with its state,
        though a newer version of the package might plan it otherwise."""
        kept = self._core.manifest.queries.get(name)
        if kept is None or not kept.get("plan") or kept.get("written") != written:
            return None
        try:
            plan = from_json(kept["plan"])
        except StateError:  # of a version that had other nodes
            return None
        return Marked(plan, mark(plan, native).parts)

    def known_statistics(self, request: Explain, catalog: Catalog) -> Statistics:
        """What the plan of an EXPLAIN is made with."""
        run = self.by_name.get(request.name)
        is_kept = request.name in self._core.awaited or (run is not None and run.query.plan == request.plan)
        return self._known(request.plan, request.name if is_kept else None, catalog)

    def _known(self, plan: Plan, name: str | None, catalog: Catalog) -> Statistics:
        """What a plan is made with: a query that the checkpoint has goes on with what it began with, so with its plan."""
        kept = self._core.manifest.queries.get(name) if name is not None else None
        if kept is not None:
            return Statistics.from_manifest(kept.get("statistics", {}))
        return known_statistics(plan, catalog, self._core, self._inputs.figures)

    def _free_name(self, name: str, catalog: Iterable[object]) -> str:
        """For a SELECT that was given none: ``query``, ``query_2``, …"""
        known = (*self.by_name, *(entry.name for entry in catalog if isinstance(entry, Derived)))
        taken = {other.casefold() for other in known}
        numbered = (f"{name}_{number}" for number in count(2))
        return next(chosen for chosen in chain([name], numbered) if chosen.casefold() not in taken)
