"""What a user holds: a query, and a query that runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from headwater.errors import HeadwaterError, InputError
from headwater.language.binder import level_of
from headwater.language.consistency import STRONG, Consistency
from headwater.language.emission import ON_CLOSE, Emission
from headwater.language.introspection import Explain, ExplainFormat, ExplainLevel
from headwater.language.notices import Notice
from headwater.language.script import Query as BoundQuery
from headwater.model.schema import Schema
from headwater.public import public_methods
from headwater.result import Result, Text
from headwater.runtime.views.amounts import moment
from headwater.runtime.views.progress import QueryProgress, moment_text, query_progress
from headwater.settings import Settings
from headwater.sinks.base import Sink

if TYPE_CHECKING:
    from headwater.algebra.nodes import Plan
    from headwater.engine import Engine
    from headwater.runtime.core import Core
    from headwater.runtime.deployment import Running


@public_methods
@define(eq=False, repr=False)
class Query:
    """A query that can be explained and started. ``engine.sql`` makes them."""

    name: str
    plan: Plan = field(repr=False)
    consistency: Consistency | None
    settings: Settings = field(repr=False)
    notices: tuple[Notice, ...] = field(repr=False)
    _engine: Engine = field(repr=False)
    emission: Emission | None = None
    """When its rows go out (EMIT …); None: as it suits the sink."""
    uses: frozenset[str] = field(default=frozenset(), repr=False)
    """The folded names of the streams and functions that it uses."""
    defined_by: str | None = field(default=None, repr=False)
    """The stream whose definition it is."""
    named: bool = field(default=True, repr=False)
    """Was it given its name? Else it gets one that is free when it starts: ``query``, ``query_2``, …"""
    make_sink: Callable[[], Sink] | None = field(default=None, repr=False)
    """What makes the sink that it goes to if ``start`` is given none: that of CREATE SINK; None: memory."""

    def __repr__(self) -> str:
        level = f", CONSISTENCY {self.consistency}" if self.consistency is not None else ""
        return f"<Query {self.name} {self.schema}{level}: .start() lets it run, .explain() says how>"

    @property
    def schema(self) -> Schema:
        """The columns of its answer."""
        return self.plan.schema

    @property
    def speculative(self) -> bool:
        """Does it answer before everything is certain, and repair that later? Otherwise (STRONG) only what is final."""
        return (self.consistency or STRONG) != STRONG

    def form_in(self, sink: Sink) -> Emission:
        """In which form its answers go to the sink; ``InputError`` if that cannot take them so."""
        return ON_CLOSE if self.speculative and self.emission is None else sink.form_of(self.emission)

    def explain(self, level: str = "optimized", *, format: str = "tree", verbose: bool = False) -> Text:
        """How it runs: ``level`` is logical, optimized or physical; ``format`` tree, text, json or mermaid."""
        request = Explain(
            self.name,
            self.plan,
            ExplainLevel(level.lower()),
            ExplainFormat(format.lower()),
            verbose,
            self.consistency,
            emission=self.emission,
        )
        return self._engine.explain(request, self.settings)

    def start(self, sink: Sink | None = None, *, name: str | None = None) -> Run:
        """Let it run, from the next tick on; its answers go to the sink.

        If none is given, they go where CREATE SINK says, or into memory.

        A query of the checkpoint with this name and the same plan goes on where it was. A new one answers from what
        comes after its start: ``run.since``.
        """
        return self._engine.start(self, sink, name=name)


@frozen
class Script:
    """What the statements of a script brought."""

    queries: tuple[Query, ...]
    """Every CREATE STREAM, TABLE or SINK … AS, then every SELECT: ``query_1``, …, and ``query``, the last one."""
    answers: tuple[Text, ...]
    """What SHOW, DESCRIBE and EXPLAIN say."""
    notices: tuple[Notice, ...]


@public_methods
class Run:
    """A query that runs. When it has ended, it still tells what was known last."""

    def __init__(self, query: Query, running: Running, core: Core, *, stop: Callable[[], None]):
        self.query, self.name, self.sink = query, running.name, running.sink
        self._running, self._core, self._stop = running, core, stop
        self._last: QueryProgress | None = None
        """How it was doing when it ended."""
        self.notices: tuple[Notice, ...] = ()
        """What may keep its answers from becoming final, as far as that follows from what is declared."""

    @property
    def running(self) -> bool:
        """Does it run? Not when it was stopped or dropped, or another one has its name."""
        return self.name in self._core.deployment and self._core.deployment[self.name] is self._running

    @property
    def names(self) -> frozenset[str]:
        """Under which ALTER QUERY finds it: its own, and that of the stream whose definition it is."""
        return frozenset({self.name, self.query.defined_by or self.name})

    @property
    def bound(self) -> BoundQuery:
        """What SQL is told of it."""
        return BoundQuery(self.name, self.query.plan, self.consistency, self.query.uses, self.query.emission)

    @property
    def since(self) -> int:
        """The tick after which its answers count; 0: from the beginning."""
        return self._running.since

    @property
    def frontier(self) -> datetime | int | None:
        """Nothing of its answer before this changes any more; None: nothing is final yet, or everything is."""
        return moment(self._running.frontier, timestamps=self._running.output.timestamps)

    @property
    def lag(self) -> timedelta | int:
        """How far its final answer is behind the newest row of its streams, in application time."""
        return self.progress.lag

    @property
    def progress(self) -> QueryProgress:
        """Lag, rates, state and how long ticks take, as they are now; or were when it ended."""
        if self._last is not None:
            return self._last
        try:
            return query_progress(self._core.picture(), self.name)
        except KeyError:
            if self._last is None:
                raise
            return self._last  # it has ended meanwhile

    def remember(self) -> None:
        """It is about to end: from now on this is the last that is known of it."""
        self._last = self.progress

    def snapshot(self, at: Any = None) -> Result:
        """The rows that are valid at an instant; without one, at the latest that is final. Needs the memory sink."""
        return self._memory("snapshot").snapshot(at=at)

    def history(self) -> Result:
        """All rows with their lifetimes. Needs the memory sink."""
        return self._memory("history").history()

    @property
    def emission(self) -> Emission | None:
        """In which form its rows go out; None: at once, as they may be repaired (every level but STRONG, without EVERY)."""
        form = self._running.output.emission
        return form if form.period or self.consistency == STRONG else None

    @property
    def consistency(self) -> Consistency:
        """The level of consistency that it has now."""
        return self._running.level

    def set_consistency(self, level: str | Consistency) -> None:
        """Let it go on with another level from the next tick on: ``"MIDDLE"``, ``"BLOCK 5 SECONDS REMEMBER 1 MINUTE"``, …

        The sink of a query that was STRONG from its beginning gets a changelog from then on. Files and Delta tables cannot
        go on with one: there the change is an ``InputError``.
        """
        if not self.running:
            raise InputError("NOT_RUNNING", f'query "{self.name}" has ended', hint="Start it again: query.start().")
        self._core.queries.change_level(self.name, level_of(level))

    def stop(self) -> None:
        """Let it end; what only this query used is freed."""
        if self.running:
            self._stop()

    def _memory(self, asked: str) -> Any:
        if not hasattr(self.sink, "snapshot"):
            raise InputError(
                "NO_MEMORY",
                f'query "{self.name}" keeps no {asked}: its answers go elsewhere',
                hint="Start it with hw.sinks.memory().",
            )
        return self.sink

    def __repr__(self) -> str:
        try:
            told = self.progress
        except (HeadwaterError, KeyError):  # nothing is known of it any more
            return f"<Run {self.name}: stopped>"
        final = "nothing is final yet" if told.frontier is None else f"final before {moment_text(told.frontier)}"
        return f"<Run {self.name}: {'running' if self.running else 'stopped'}, {told.rows_out:,} rows, {final}>"
