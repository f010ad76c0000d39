"""The public face: ``connect()`` gives an ``Engine``, which declares streams, makes queries and runs them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from headwater.backends.explain import explain
from headwater.backends.local import LocalBackend
from headwater.clock.wall import VirtualClock, WallClock
from headwater.created_functions import CreatesFunctions
from headwater.errors import HeadwaterError, InputError
from headwater.language.catalog import Kind, Stream
from headwater.language.introspection import Answer, Explain
from headwater.language.notices import Notice, show_notices
from headwater.language.script import Query as BoundQuery
from headwater.language.script import Script
from headwater.model.durations import wall_time_in
from headwater.optimizer.plan_query import plan_query
from headwater.public import public, public_methods
from headwater.query import Query, Run
from headwater.query import Script as QueryScript
from headwater.result import Result, Text
from headwater.runs import Runs
from headwater.runtime.core import Core
from headwater.runtime.inputs import Inputs
from headwater.runtime.views.progress import EngineProgress, engine_progress
from headwater.runtime.views.progress_bar import ProgressBar
from headwater.settings import MOST_SHARDS, SMALL_TICK, Settings
from headwater.sinks.base import Output, Sink
from headwater.sinks.diverted import read_diverted
from headwater.sinks.tables import instant_of
from headwater.sources.base import Malformed
from headwater.sources.memory import as_table
from headwater.statements import Statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@public
def connect(
    master: str | None = None,
    *,
    spark: SparkSession | None = None,
    runner: str = "spark",
    checkpoint: str | Path | None = None,
    shards: int | None = None,
    config: Mapping[str, str] | None = None,
    small_tick: int = SMALL_TICK,
    keep: int = 3,
    sync: bool = False,
    clock: WallClock | None = None,
    every: str | float | timedelta = 0,
    python_functions: bool = True,
) -> Engine:
    """An engine: on local Spark, on a cluster, on a session of yours, or in this process alone.

    Parameters
    ----------
    master
        Spark's master URL; ``local[*]`` if nothing is said.
    spark
        A session to run on, instead of one of our own.
    runner
        ``"spark"``, or ``"inprocess"``: the same operators without a JVM.
    checkpoint
        The folder that keeps state between runs; without one, nothing outlives the engine.
    shards
        Into how many parts keys are split; as many as Spark has cores if nothing is said.
    config
        More Spark settings.
    small_tick
        A tick of up to so many rows runs in the driver instead of as a Spark job.
    keep
        So many manifests stay in the checkpoint.
    sync
        Wait for the disk at every commit: survives a loss of power, not only of the process.
    clock
        The wall clock to go by; the system's if nothing is said. ``VirtualClock`` is moved by hand.
    every
        At least so long are the starts of two ticks apart: ``"1 second"``, a number of seconds, or a timedelta. Rows that
        come meanwhile are one tick. 0: a tick begins as soon as there are rows.
    python_functions
        May SQL run Python by CREATE FUNCTION? False: for texts of people who must not; no statement switches it on again.
    """
    if runner not in ("spark", "inprocess"):
        raise InputError("UNKNOWN_RUNNER", f'there is no runner "{runner}"', hint='There are "spark" and "inprocess".')
    for what, given, least, most in (("shards", shards, 1, MOST_SHARDS), ("keep", keep, 1, 10**6)):
        if given is not None and not least <= given <= most:
            raise InputError("OUT_OF_RANGE", f"{what} cannot be {given}", hint=f"It is from {least:,} to {most:,}.")
    shared: dict[str, Any] = {
        "every": wall_time_in(every, what="the tick interval"),
        "python_functions": python_functions,
    }
    kept: dict[str, Any] = {"checkpoint": checkpoint, "keep": keep, "sync": sync, "wall": clock}
    if runner == "inprocess":
        backend = LocalBackend()
        core = Core(shards=shards or 1, executor=backend.executor, durable=checkpoint is not None, **kept)
        return Engine(core, backend, **shared)
    from headwater.backends.spark.backend import SparkBackend
    from headwater.backends.spark.session import open_session

    session = open_session(master, spark, shards=shards, config=config)
    try:
        backend = SparkBackend(session, small_tick=small_tick)
        core = Core(shards=session.shards, executor=backend.executor, **kept)
    except BaseException:
        session.stop()
        raise
    return Engine(core, backend, **shared)


@public_methods
class Engine(CreatesFunctions):
    """Streams, queries, and the dataflow that runs them. Close it when done, or use it in a ``with`` statement."""

    def __init__(self, core: Core, backend: LocalBackend, *, every: int = 0, python_functions: bool = True) -> None:
        self._core, self._backend = core, backend
        self._inputs = Inputs(core, backend, every=every)
        self._runs = Runs(core, self._inputs, backend)
        self._statements = Statements(core, self._inputs, self._runs, python_functions=python_functions)
        self._loop, self._closed, self._lock = self._inputs.loop, False, threading.RLock()
        self._told: set[Notice] = set()
        """Notices of queries that have started: they are about streams, and would be the same for each."""
        if isinstance(core.wall, VirtualClock):
            core.wall.subscribe(self._loop.wake)

    # -- declaring ---------------------------------------------------------------------------------------------------

    def sql(self, text: str, *, name: str | None = None) -> Any:
        """Run statements. A SELECT, CREATE STREAM … AS or CREATE SINK gives a ``Query``, which is to be started; SHOW,
        DESCRIBE and EXPLAIN give text that shows itself as a table (``rows()`` has its rows).

        Of several statements the last one's result is returned; other statements have none. A mistake changes nothing.
        Notices are shown as Python's warnings of the category ``HeadwaterNotice``.
        """
        with self._lock:
            script = self._statements.run(text, Path.cwd(), drop=self.drop)
            if len(script.selects) > 1:
                script = evolve(script, notices=(*script.notices, _one_of(len(script.selects))))
            show_notices(script.notices)
            made: BoundQuery | None = script.result or (script.named[-1] if script.named else None)
            if made is not None:
                return self._query(made, script, name)
            return self._answer_text(script.answers[-1], script.settings) if script.answers else None

    def script(self, text: str, *, folder: str | Path = ".") -> QueryScript:
        """Run the statements of a script and give all of its queries, to be started. Its paths begin in the folder."""
        with self._lock:
            script = self._statements.run(text, Path(folder).absolute(), drop=self.drop)
            show_notices(script.notices)
            answers = tuple(self._answer_text(answer, script.settings) for answer in script.answers)
            return QueryScript(tuple(self._query(q, script) for q in script.queries), answers, script.notices)

    def register(
        self,
        name: str,
        frame: DataFrame,
        *,
        time: str | None = None,
        disorder: str | int | None = None,
        partition: str | None = None,
        malformed: Malformed = "fail",
        changes: str | None = None,
        key: Sequence[str] = (),
        statistics: Mapping[str, float] | None = None,
    ) -> None:
        """Make a streaming DataFrame a stream, ordered by one of its columns.

        ``time``: that column, or what the time is computed as, as in ORDERED BY (``"timestamp_millis(ts)"``); ``disorder``:
        how much older than the newest a row may be (``"2 seconds"``, or a plain number for a numeric time; None: that is
        learned from the rows); ``partition``: a column whose values have a clock each; ``malformed``: ``"fail"`` or
        ``"divert"``; ``changes``: how rows tell of changes, ``"headwater"`` or ``"debezium"``, with a ``key``;
        ``statistics``: what is known of the rows, as in SQL (``{"rate": 5000, "distinct(auction)": 20000}``).
        """
        from headwater.sources.dataframe import DataFrameSource, declared

        source = DataFrameSource(frame, malformed=malformed)
        stream = declared(
            name,
            source.schema,
            time=time,
            disorder=disorder,
            changes=changes,
            key=key,
            malformed=malformed,
            statistics=statistics,
        )
        with self._lock:
            catalog = self._statements.catalog
            if catalog.get(name) is not None:
                raise InputError("DUPLICATE_NAME", f'there is a stream "{name}" already', hint="DROP it first.")
            catalog.add(stream)
            self._inputs.take(stream, source, partition=partition)

    def push(self, stream: str, rows: Any, *, frontier: datetime | int | None = None, wait: bool = True) -> None:
        """Bring rows of a stream that was declared without a SOURCE: an Arrow table or batch, or a list of dictionaries.

        ``frontier`` promises that nothing before it comes any more. Returns when the tick is delivered, unless told not to.
        Rows that are not what is declared are an error, and nothing of the push is taken; unless the stream keeps them
        apart: ``SOURCE push(malformed => 'divert')``.
        """
        self._check_open()
        catalog = self._statements.catalog
        entry = catalog.get(stream)
        if not isinstance(entry, Stream) or catalog.gets_late_rows(entry):
            raise InputError(
                "CANNOT_PUSH",
                f'"{stream}" is no stream to push into',
                hint="Declare it without a SOURCE: CREATE STREAM name (…) ORDERED BY column.",
            )
        about = Output(entry.name, entry.schema, speculative=False, timestamps=entry.has_unit)
        promise = None if frontier is None else instant_of(about, frontier)
        table = as_table(rows, entry.brought, entry.optional)
        with self._lock:
            delivery = self._inputs.pushed(entry, table, promise=promise, check=not wait)
        delivery.urgent = wait
        self._loop.start()
        self._loop.submit(delivery)
        if wait:
            delivery.done.wait()
            if delivery.error is not None:
                raise delivery.error

    # -- running -----------------------------------------------------------------------------------------------------

    def start(self, query: Query, sink: Sink | None = None, *, name: str | None = None) -> Run:
        """Let a query run; see ``Query.start``."""
        self._check_open()
        if sink is None:
            from headwater.sinks import memory

            sink = memory() if query.make_sink is None else query.make_sink()
        with self._lock:
            run = self._runs.start(query, sink, self._statements.catalog, name)
        self._loop.start()
        self._statements.started.add(query.defined_by)
        if not query.plan.streams:  # its answer needs no rows: it is there when this returns
            self._loop.settle()
        show_notices(notice for notice in run.notices if notice not in self._told)
        self._told |= set(run.notices)
        return run

    def drop(self, name: str) -> None:
        """Stop a query, or give up one that the checkpoint has and that is not started again."""
        self._runs.drop(name)

    @contextmanager
    def held(self) -> Iterator[None]:
        """No tick runs inside: queries that are started here begin together, and share what they have in common."""
        with self._loop.held():
            yield

    def run_to_end(self, *, end_streams: bool = True, progress: bool = False) -> None:
        """Wait until everything that the sources have now is answered.

        Then the streams end, so that all answers become final; ``end_streams=False`` leaves them open.
        ``progress`` shows a bar on standard error meanwhile.
        """
        self._check_open()
        show_notices(self._statements.not_started())
        self._loop.start()
        bar = ProgressBar(self._core.picture, self._inputs.expected_rows()) if progress else nullcontext()
        with bar:
            self._check_awaited()
            self._inputs.drain()
            if end_streams:
                with self._loop.held():
                    self._core.tick(ended=self._inputs.read())
            with self._loop.held():
                self._core.queries.deliver_together()

    def wait(self, seconds: float | None = None) -> None:
        """Let everything run for so long, or for ever. Raises what stops it: a source or a tick that failed."""
        self._check_open()
        show_notices(self._statements.not_started())
        self._loop.start()
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            self._inputs.raise_failure()
            self._loop.pause()
        self._loop.raise_failure()

    def progress(self) -> EngineProgress:
        """How everything that runs is doing: rates, lags, state, the time of ticks."""
        return engine_progress(self._core.picture())

    def diverted(self, stream: str) -> Result:
        """The late or malformed rows that no query took, with the tick of each: ``diverted("bid_late")``.

        They are kept under the checkpoint; without one, as long as the engine lives.
        """
        self._check_open()
        return read_diverted(self._core.committed.aside, stream)

    @property
    def finite(self) -> bool:
        """Will all sources that are read end by themselves? Queries over constants alone read none."""
        return self._inputs.finite or (bool(self._runs.by_name) and not any(r.query.plan.streams for r in self._runs))

    @property
    def awaited(self) -> tuple[str, ...]:
        """Queries of the checkpoint that must be started again, or dropped, before anything runs."""
        return self._core.awaited

    @property
    def runs(self) -> dict[str, Run]:
        """What runs, by name."""
        return dict(self._runs.by_name)

    def close(self) -> None:
        """End everything; with a checkpoint, another engine can go on from here."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._loop.finish_pushed()
        self._loop.stop()  # first: the tick that runs is finished, and what it covers is committed
        self._inputs.stop()
        try:
            self._core.close(deliver=self._loop.error is None)
        finally:
            self._backend.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def explain(self, request: Explain, settings: Settings) -> Text:
        """The text that answers an EXPLAIN, as this engine would run it; see ``Query.explain``."""
        known = self._runs.known_statistics(request, self._statements.catalog)
        plan = plan_query(request.plan, settings, statistics=known).plan
        streams = self._backend.native_streams(self._inputs, plan)
        return Text(explain(request, settings, statistics=known, streams=streams, clock=self._core.times.clock))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _query(self, bound: BoundQuery, script: Script, name: str | None = None) -> Query:
        """A SELECT without a name gets one when it starts."""
        bare = any(bound is select for select in script.selects)
        known = (bound.plan, bound.consistency, script.settings, script.notices, self, bound.emission)
        defined_by, named = None if bare else bound.name, name is not None or not bare
        sink = None if bound.target is None else self._statements.sink_maker(bound.name)
        return Query(name or bound.name, *known, uses=bound.uses, defined_by=defined_by, named=named, make_sink=sink)

    def __repr__(self) -> str:
        streams = len(self._statements.catalog.names(Kind.STREAM, Kind.TABLE))
        running = sum(run.running for run in self._runs)
        state = "closed" if self._closed else f"{running} of {len(list(self._runs))} queries run"
        return f"<Engine {self._backend}: {streams} streams and tables, {state}>"

    def _answer_text(self, answer: Answer | Explain, settings: Settings) -> Text:
        return self.explain(answer, settings) if isinstance(answer, Explain) else self._statements.shown(answer)

    def _check_open(self) -> None:
        if self._closed:
            raise HeadwaterError("CLOSED", "the engine is closed", hint="connect() makes another one.")

    def _check_awaited(self) -> None:
        awaited = self._core.awaited
        if awaited:
            names = ", ".join(f'"{name}"' for name in awaited)
            raise InputError(
                "QUERIES_AWAITED",
                f"nothing runs until the queries of the checkpoint are started again: {names}",
                hint=f'Start them under their names, or give them up: engine.drop("{awaited[0]}").',
            )


def _one_of(many: int) -> Notice:
    """For a text with several SELECTs where one query is returned."""
    message = f"of {many} SELECTs, engine.sql returns the last one; the others do not run"
    return Notice("SEVERAL_QUERIES", message, "engine.script(text).queries has all of them, to be started.")
