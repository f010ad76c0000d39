"""The streams whose rows are taken, and how far time has come in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwater.clock.clock import Clock
from headwater.clock.times import Times
from headwater.clock.wall import SystemClock, WallClock
from headwater.language.catalog import Stream
from headwater.model.time import BEGINNING, INFINITY
from headwater.runtime.changed_relation import check_time, redeclare
from headwater.runtime.committed import Committed
from headwater.runtime.deployment import Deployment
from headwater.runtime.reading import StreamTask
from headwater.runtime.tick import Tick


class Streams:
    """How the rows of each stream are taken in, and the clock of all of them."""

    def __init__(self, committed: Committed, deployment: Deployment, wall: WallClock | None) -> None:
        self._committed, self._deployment = committed, deployment
        self.tasks: dict[str, StreamTask] = {}
        self.times = Times(committed.manifest.clock)
        self.wall: WallClock = wall or SystemClock()
        if self.times.clock.now is not None:
            self.wall.not_before(self.times.clock.now)
        self.taken_until: Callable[[], Mapping[str, int]] = dict
        """By stream: the instant of the wall clock by which all that had arrived was taken; left out: now."""
        self._newest_before: Mapping[str, Mapping[int, int]] = {}
        """As the last tick was told."""

    def add(self, task: StreamTask) -> None:
        """Begin to take rows of a stream; its clock goes on where it was."""
        with self._committed.lock:
            check_time(task, self._committed.manifest)
            self.tasks[task.stream] = task
            declared = task.declared or Stream(task.stream, task.intake.schema, time=task.intake.time)
            self.times.add(declared)
            before = self._deployment.relations.get(task.stream)
            redeclare(self._committed.manifest, before, declared.plan, self._committed.store)
            self._deployment.keep(declared.plan)

    def drop(self, stream: str) -> None:
        """Forget it, also after a crash."""
        with self._committed.lock:
            self.tasks.pop(stream, None)
            self.times.drop(stream)
            states = self._deployment.forget(stream)
            self._committed.manifest.clock = self.times.to_manifest()
            self._committed.forget_stream(stream, states)

    def ticked(self, tick: Tick, clock: Clock) -> None:
        """A tick was committed: this is the clock after it."""
        self.times.ticked(clock)
        self._newest_before = dict(tick.newest_before)

    def follows(self) -> dict[str, str]:
        """Streams of late or malformed rows, and whose rows these are; not where the name is that of another stream."""
        tasks = self.tasks.values()
        return {child: t.stream for t in tasks for child in (t.late, t.bad) if child not in self.tasks}

    def newest_before(self, now: int) -> dict[str, dict[int, int]]:
        """How far the streams had been seen, as long ago as queries let their rows wait by the wall clock."""
        graph, clock = self._deployment.layout.graph, self.times.clock
        lengths = {node.delay for node in graph.nodes if node.wall and node.delay < INFINITY}
        if not lengths:
            return {}
        return {name: {n: clock.newest_at(name, now - n) for n in lengths} for name in self.tasks}

    def would_move(self) -> bool:
        """Would time go on in one of the streams that queries read if a tick came now, without rows?"""
        follows = self.follows()
        names = {follows.get(name, name) for name in self._deployment.layout.graph.read} & self.tasks.keys()
        if not names:
            return False
        now, together = self.wall.now(), self._deployment.together
        moves = self.times.would_move(names, now, self.taken_until(), together)
        return moves or self.newest_before(now) != self._newest_before

    def are_ended(self, streams: frozenset[str]) -> bool:
        """Are these at their end already?"""
        kept = self._committed.manifest.frontiers
        own = streams - self.follows().keys()  # the others end with those they follow
        ends = (self.times.frontier(s) if s in self.tasks else kept.get(s, BEGINNING) for s in own)
        return all(end == INFINITY for end in ends)
