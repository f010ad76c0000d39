"""Queries come, go on after a restart, change their level, get their answers, and go."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from headwater.language.consistency import STRONG, Consistency
from headwater.language.emission import Emission
from headwater.model.time import BEGINNING
from headwater.runtime import points
from headwater.runtime.change_level import check_change, check_form, with_carried
from headwater.runtime.committed import Committed
from headwater.runtime.deployment import Deployment, Running
from headwater.runtime.executor import Executor, TickResult
from headwater.runtime.lineage import began_strong
from headwater.runtime.plan_keys import another_query
from headwater.runtime.waiting import Waiting
from headwater.runtime.wider_states import graphs_of, widened


class Queries:
    """All queries that run, and those of the checkpoint that wait to be started again."""

    def __init__(self, committed: Committed, deployment: Deployment, executor: Executor) -> None:
        self._committed, self._deployment, self._executor = committed, deployment, executor
        self._awaited = dict.fromkeys(committed.manifest.queries)
        self._waiting: dict[str, Waiting] = {}
        """By query that runs: what waits for the end of its sink's interval."""
        deployment.keep_as_text(committed.manifest.relations)

    @property
    def awaited(self) -> tuple[str, ...]:
        """Queries of the checkpoint that must be started again, or dropped, before anything runs."""
        return tuple(self._awaited)

    def start(self, query: Running) -> None:
        """Let a query run from the next tick on, or go on if the checkpoint has it."""
        with self._committed.lock:
            self._deployment.check_new(query.name)
            manifest = self._committed.manifest
            kept, query.asked = manifest.queries.get(query.name), query.level
            if kept is not None:
                self._resume(query, kept)
            else:
                query.since = manifest.tick
            query.output = evolve(query.output, origin=manifest.origin)
            self._open_sink(query, kept)
            self._deployment.add(query)
            self._awaited.pop(query.name, None)
            self._hold()
            if kept is not None and query.asked != Consistency.from_manifest(kept["asked"]):
                self.change_level(query.name, query.asked)

    def _resume(self, query: Running, kept: dict[str, Any]) -> None:
        """Go on where the checkpoint has it, with the level that it had last, unless another is asked for now."""
        level, asked = Consistency.from_manifest(kept["level"]), Consistency.from_manifest(kept["asked"])
        form = Emission.from_manifest(kept["emission"])
        output = evolve(query.output, speculative=kept["speculative"], emission=form, settled=level == STRONG)
        past: dict[str, Any] = {name: kept[name] for name in ("since", "frontier", "closed", "lineage")}
        past |= {"consistency": level, "output": output}
        if query.asked not in (None, asked):
            check_change(output, query.sink, level, query.level)
        before, after, why = graphs_of(evolve(query, **past), kept)
        certain = query.level == level == STRONG and began_strong(kept["lineage"])
        check_form(query.output, form, same=before is not None, strong=certain)
        if before is None:
            raise another_query(query.name, query.reads, kept, why)
        manifest = self._committed.manifest
        manifest.records = widened(before, after, manifest.records, self._committed.store)
        for name, value in past.items():
            setattr(query, name, value)

    def _open_sink(self, query: Running, kept: dict[str, Any] | None) -> None:
        """The last tick's answer may not have arrived before a crash: then it comes again, in the form that it had.

        So does what waited to be delivered together with it.
        """
        manifest, checkpoint = self._committed.manifest, self._committed.checkpoint
        waiting = self._waiting[query.name] = Waiting(checkpoint.folder if checkpoint else None, query.name)
        waiting.go_back_to(manifest.tick)
        if kept is None:
            waiting.forget()
        staged = query.output.speculative if kept is None else kept.get("staged", query.output.speculative)
        query.sink.open(evolve(query.output, speculative=staged))
        if checkpoint is not None:
            checkpoint.check_sink(manifest.tick, query.sink, waiting)
        if kept is not None and (query.name in manifest.outputs or waiting.parts):
            points.passed(points.AGAIN_IN_A_SINK + query.name)
            parts = waiting.up_to(manifest.tick, manifest.outputs.get(query.name, []))
            query.sink.deliver(manifest.tick, parts, query.closed)
            waiting.went_out(manifest.tick)
        if staged != query.output.speculative:
            query.sink.change(query.output)

    def change_level(self, name: str, consistency: Consistency) -> None:
        """Let a query go on with another level of consistency from the next tick on."""
        with self._committed.lock:
            manifest, query = self._committed.manifest, self._deployment[name]
            self._deliver_waiting(query)  # in the form that it has
            before = manifest.queries.get(name, {})
            staged = before.get("staged", query.output.speculative)  # how the last tick's answer is kept
            taken = self._deployment.change_level(name, consistency, manifest.tick)
            manifest.records = with_carried(manifest.records, taken)
            self._executor.carry(taken.keys)
            manifest.queries[name] = query.to_manifest(self._deployment.key_of(name)) | {"staged": staged}
            self._committed.commit_again()

    def stop(self, name: str) -> None:
        """Let a query end; what only it used is freed."""
        with self._committed.lock:
            manifest = self._committed.manifest
            if name in self._deployment:
                self._deliver_waiting(self._deployment[name])
                query = self._deployment.remove(name)
                query.sink.close()
            self._awaited.pop(name, None)
            manifest.outputs.pop(name, None)
            if manifest.queries.pop(name, None) is not None:
                self._committed.commit_again()
            checkpoint = self._committed.checkpoint
            waiting = self._waiting.pop(name, None) or Waiting(checkpoint.folder if checkpoint else None, name)
            waiting.forget()
            self._hold()

    def advance(self, result: TickResult) -> None:
        """How far the answers are after a tick."""
        for query in self._deployment:
            query.frontier = max(query.frontier, result.known.get(query.name, BEGINNING))
            query.closed = max(query.closed, result.frontiers.get(query.name, BEGINNING))
            query.rows += sum(part.rows for part in result.staged.get(query.name, ()))

    def to_manifest(self) -> dict[str, dict[str, Any]]:
        """What must be known to start them again; also of those that wait for it."""
        kept = self._committed.manifest.queries
        waiting = {name: kept[name] for name in kept if name in self._awaited}
        return waiting | {q.name: q.to_manifest(self._deployment.key_of(q.name)) for q in self._deployment}

    def deliver(self, now: int) -> None:
        """The last tick's answers go to the sinks, or wait for the end of the interval in which they go together."""
        manifest = self._committed.manifest
        for query in self._deployment:
            points.passed(points.IN_A_SINK + query.name)
            parts = manifest.outputs.get(query.name, [])
            if query.sink.every:
                self._waiting[query.name].put(manifest.tick, parts, now)
            else:
                query.sink.deliver(manifest.tick, parts, query.closed)
        self._hold()

    def deliver_together(self, now: int | None = None) -> None:
        """Deliver what waits: where its interval is over at this instant of the wall clock; without one, all of it."""
        with self._committed.lock:
            waiting = [q for q in self._deployment if self._waiting[q.name].since is not None]
            due = [q for q in waiting if now is None or self._waiting[q.name].is_due(now, q.sink.every)]
            for query in due:
                self._deliver_waiting(query)
            if due:
                self._hold()

    def _deliver_waiting(self, query: Running) -> None:
        """All that waits of a query's answers, as one tick: the last that is committed."""
        waiting, tick = self._waiting[query.name], self._committed.manifest.tick
        if waiting.since is None:
            return
        points.passed(points.TOGETHER_IN_A_SINK + query.name)
        query.sink.deliver(tick, waiting.parts, query.closed)
        points.passed(points.AFTER_TOGETHER + query.name)
        waiting.went_out(tick)

    def _hold(self) -> None:
        """Staged files that wait must not be tidied away; those of queries that are not started yet neither."""
        checkpoint = self._committed.checkpoint
        if checkpoint is not None and not self._awaited:
            held = set().union(*(waiting.ticks for waiting in self._waiting.values()))
            checkpoint.hold(held, self._committed.manifest.tick)

    def close(self, *, deliver: bool = True) -> None:
        """``deliver``: what waits, too; after a failure it waits for another engine."""
        try:
            if deliver:
                self.deliver_together()
        finally:
            for query in self._deployment:
                query.sink.close()
