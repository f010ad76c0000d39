"""The public face: ``connect()`` gives an ``Engine``, which declares streams, makes queries and runs them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.algebra.nodes import Plan, Source
from headwater.backends.spark.native_parts import marked
from headwater.clock.guarantees import notices_of_query
from headwater.clock.wall import VirtualClock, WallClock
from headwater.created_functions import CreatesFunctions
from headwater.errors import HeadwaterError, InputError
from headwater.language.binder import bind_script
from headwater.language.catalog import Catalog, Derived, Kind, Stream
from headwater.language.introspection import Answer, Explain
from headwater.language.notices import Notice
from headwater.language.script import Query as BoundQuery
from headwater.language.script import Script
from headwater.language.system_views import Known, comes_with, have_unit
from headwater.query import Query, Run
from headwater.query import Script as QueryScript
from headwater.result import Result
from headwater.runtime.core import SMALL_TICK, Core
from headwater.runtime.deployment import Running
from headwater.runtime.explain import explain
from headwater.runtime.inputs import Inputs
from headwater.runtime.planning import runnable
from headwater.runtime.progress import EngineProgress, engine_progress
from headwater.runtime.progress_bar import ProgressBar
from headwater.runtime.shown_queries import with_states
from headwater.runtime.shown_streams import with_counts
from headwater.runtime.system_views import with_view_rows
from headwater.runtime.when_shown import notices_of_form
from headwater.settings import MOST_SHARDS, Settings
from headwater.sinks.base import Output, Sink
from headwater.sinks.diverted import read_diverted
from headwater.sinks.tables import instant_of
from headwater.sources.base import Malformed
from headwater.sources.memory import as_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.backends.spark.session import SessionHandle

log = logging.getLogger("headwater")


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
        More settings of Spark's.
    small_tick
        Up to so many rows a tick runs in the driver instead of as a Spark job.
    keep
        So many manifests stay in the checkpoint.
    sync
        Wait for the disk at every commit: survives a loss of power, not only of the process.
    clock
        The wall clock to go by; the system's if nothing is said. ``VirtualClock`` is moved by hand.
    python_functions
        May SQL run Python by CREATE FUNCTION? False: for texts of people who must not; no statement switches it on again.
    """
    if runner not in ("spark", "inprocess"):
        raise InputError("UNKNOWN_RUNNER", f'there is no runner "{runner}"', hint='There are "spark" and "inprocess".')
    for what, given, least, most in (("shards", shards, 1, MOST_SHARDS), ("keep", keep, 1, 10**6)):
        if given is not None and not least <= given <= most:
            raise InputError("OUT_OF_RANGE", f"{what} cannot be {given}", hint=f"It is from {least:,} to {most:,}.")
    if runner == "inprocess":
        durable = checkpoint is not None
        core = Core(shards=shards or 1, checkpoint=checkpoint, durable=durable, keep=keep, sync=sync, wall=clock)
        return Engine(core, None, python_functions=python_functions)
    from headwater.backends.spark.job import SparkExecutor
    from headwater.backends.spark.session import open_session

    session = open_session(master, spark, shards=shards, config=config)
    try:
        core = Core(
            shards=session.shards, checkpoint=checkpoint, small_tick=small_tick, keep=keep, sync=sync, wall=clock
        )
        assert core.checkpoint is not None
        core.use(SparkExecutor(session, exchange=core.checkpoint.exchange))
    except BaseException:
        session.stop()
        raise
    return Engine(core, session, python_functions=python_functions)


class Engine(CreatesFunctions):
    """Streams, queries, and the dataflow that runs them. Close it when done, or use it in a ``with`` statement."""

    def __init__(self, core: Core, session: SessionHandle | None, *, python_functions: bool = True) -> None:
        self._core, self._session = core, session
        self._inputs = Inputs(core, session)
        self._loop = self._inputs.loop
        core.drained = self._inputs.taken_until
        if isinstance(core.wall, VirtualClock):
            core.wall.subscribe(self._loop.wake)
        self._catalog, self._settings = Catalog(python_functions=python_functions), Settings()
        self._runs: dict[str, Run] = {}
        self._closed, self._asked = False, time.monotonic()
        self._lock = threading.RLock()

    # -- declaring ---------------------------------------------------------------------------------------------------

    def sql(self, text: str, *, name: str | None = None) -> Any:
        """Run statements. A SELECT or CREATE STREAM … AS gives a ``Query``; SHOW, DESCRIBE and EXPLAIN give text.

        Of several statements the last one's result is returned; other statements have none. A mistake changes nothing.
        """
        with self._lock:
            return self._answer(self._bound(text, Path.cwd()), name)

    def script(self, text: str, *, folder: str | Path = ".") -> QueryScript:
        """Run the statements of a script and give all of its queries, to be started. Its paths begin in the folder."""
        with self._lock:
            script = self._bound(text, Path(folder).absolute())
            answers = tuple(self._told(answer, script.settings) for answer in script.answers)
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
    ) -> None:
        """Make a streaming DataFrame of Spark's a stream, ordered by one of its columns.

        ``disorder``: how much older than the newest a row may be (``"2 seconds"``, or a plain number for a numeric time;
        None: that is learned from the rows); ``partition``: a column whose values have a clock each; ``malformed``:
        ``"fail"`` or ``"divert"``; ``changes``: how rows tell of changes, ``"headwater"`` or ``"debezium"``, with a ``key``.
        """
        from headwater.sources.dataframe import DataFrameSource, declared

        source = DataFrameSource(frame, malformed=malformed)
        stream = declared(
            name, source.schema, time=time, disorder=disorder, changes=changes, key=key, malformed=malformed
        )
        with self._lock:
            if self._catalog.get(name) is not None:
                raise InputError("DUPLICATE_NAME", f'there is a stream "{name}" already', hint="DROP it first.")
            self._catalog.add(stream)
            self._inputs.take(stream, source, partition=partition)

    def push(self, stream: str, rows: Any, *, frontier: datetime | int | None = None, wait: bool = True) -> None:
        """Bring rows of a stream that was declared without a SOURCE: an Arrow table or batch, or a list of dictionaries.

        ``frontier`` promises that nothing before it comes any more. Returns when the tick is delivered, unless told not to.
        Rows that are not what is declared are an error, and nothing of the push is taken; unless the stream keeps them
        apart: ``SOURCE push(malformed => 'divert')``.
        """
        self._check_open()
        entry = self._catalog.get(stream)
        if not isinstance(entry, Stream) or self._catalog.gets_late_rows(entry):
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

            sink = memory()
        plan, parts = marked(runnable(query.plan, query.settings), self._inputs.row_streams())
        if self._session is not None:
            sink.spark = self._session.spark
        with self._lock, self._loop.held():
            name = name or (query.name if query.named else self._free_name(query.name))
            form, timestamps = query.form_in(sink), have_unit(self._catalog, _streams(plan))
            output = Output(name, plan.schema, query.speculative, timestamps, emission=form)
            running = Running(name, plan, sink, output, since=0, parts=parts, consistency=query.consistency)
            self._core.start(running)
            self._inputs.start(plan, self._catalog)
            run = self._runs[name] = Run(query, running, self._core, stop=lambda: self.drop(name))
        self._loop.start()
        run.notices = (*self._notices_of(plan), *notices_of_form(plan, output))
        for notice in run.notices:
            log.info('query "%s": %s', name, notice)
        return run

    def _notices_of(self, plan: Plan) -> tuple[Notice, ...]:
        """What may keep its answers from becoming final."""
        return tuple(
            notices_of_query(self._core.times.clock.rules, _streams(plan), together=self._core.deployment.together)
        )

    def drop(self, name: str) -> None:
        """Stop a query, or give up one that the checkpoint has and that is not started again."""
        with self._loop.held():
            run = self._runs.pop(name, None)
            if run is not None:
                run.remember()
            self._core.stop(name)
            self._inputs.stop_unused()

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
        self._loop.start()
        with self._bar() if progress else nullcontext():
            self._drain()
            if end_streams:
                with self._loop.held():
                    self._core.tick(ended=self._inputs.read())

    def wait(self, seconds: float | None = None) -> None:
        """Let everything run for so long, or for ever. Raises what stops it: a source or a tick that failed."""
        self._check_open()
        self._loop.start()
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            self._raise_failure()
            if time.monotonic() - self._asked > 1:  # asking Spark has a price
                self._asked = time.monotonic()
                self._raise_failed_source()
            self._loop.pause()
        self._raise_failure()

    def progress(self) -> EngineProgress:
        """How everything that runs is doing: rates, lags, state, the time of ticks."""
        return engine_progress(self._core)

    def diverted(self, stream: str) -> Result:
        """The late or malformed rows that no query took, with the tick of each: ``diverted("bid_late")``.

        They are kept under the checkpoint; without one, as long as the engine lives.
        """
        self._check_open()
        return read_diverted(self._core.aside, stream)

    @property
    def finite(self) -> bool:
        """Will all sources that are read end by themselves?"""
        return self._inputs.finite

    @property
    def awaited(self) -> tuple[str, ...]:
        """Queries of the checkpoint that must be started again, or dropped, before anything runs."""
        return self._core.awaited

    @property
    def runs(self) -> dict[str, Run]:
        """What runs, by name."""
        return dict(self._runs)

    def close(self) -> None:
        """End everything; with a checkpoint, another engine can go on from here."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._loop.stop()  # first: the tick that runs is finished, and what it covers is committed
        self._inputs.stop()
        self._core.close()
        if self._session is not None:
            self._session.stop()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _bound(self, text: str, folder: Path) -> Script:
        catalog = self._catalog.copy()
        running = [run.bound for run in self._runs.values()]
        script = bind_script(text, catalog, self._settings, running=running, awaited=self._core.awaited)
        ended = [*script.ended, *(run.name for run in self._runs.values() if self._is_undefined(run, catalog))]
        self._check_dropped(catalog, [run for run in self._runs.values() if run.name not in ended])
        runs = {name: run for name, run in self._runs.items() if name not in ended}
        levels = {
            name: script.altered[which] for name, run in runs.items() for which in run.names & script.altered.keys()
        }
        for name, level in levels.items():
            self._core.deployment.check_level(name, level)
        for name in dict.fromkeys(ended):
            self.drop(name)
        self._inputs.open(catalog, folder)
        for name, level in levels.items():
            self._runs[name].set_consistency(level)
        self._catalog, self._settings, self._core.step_bytes = catalog, script.settings, int(script.settings.step_bytes)
        for notice in script.notices:
            log.info("%s", notice)
        return script

    def _is_undefined(self, run: Run, catalog: Catalog) -> bool:
        """Has the stream that it was started from been dropped?"""
        defined = run.query.defined_by
        return defined is not None and catalog.get(defined) is None

    def _free_name(self, name: str) -> str:
        """For a SELECT that was given none: ``query``, ``query_2``, …"""
        taken = {
            known.casefold() for known in (*self._runs, *(e.name for e in self._catalog if isinstance(e, Derived)))
        }
        numbered = (f"{name}_{number}" for number in count(2))
        return next(chosen for chosen in chain([name], numbered) if chosen.casefold() not in taken)

    def _query(self, found: BoundQuery, script: Script, name: str | None = None) -> Query:
        """A SELECT without a name gets one when it starts."""
        bare = found is script.result
        known = (found.plan, found.consistency, script.settings, script.notices, self, found.emission)
        defined_by, named = None if bare else found.name, name is not None or not bare
        return Query(name or found.name, *known, uses=found.uses, defined_by=defined_by, named=named)

    def _answer(self, script: Script, name: str | None) -> Any:
        found: BoundQuery | None = script.result or (script.named[-1] if script.named else None)
        if found is not None:
            return self._query(found, script, name)
        return self._told(script.answers[-1], script.settings) if script.answers else None

    def _told(self, answer: Answer | Explain, settings: Settings) -> str:
        if isinstance(answer, Explain):
            return self.explain(answer, settings)
        views = {e.name.casefold() for e in self._catalog if e.kind is Kind.VIEW}
        known = Known(self._core.times.clock, self._core.manifest.counts)
        answer = with_counts(with_view_rows(answer, known), self._core)
        return str(with_states(answer, self._core, views=views, failed=self._loop.error is not None))

    def _check_dropped(self, catalog: Catalog, runs: Sequence[Run]) -> None:
        """What runs must not lose its streams."""
        for run in runs:
            for name in [comes_with(self._catalog, name) for name in _streams(run.query.plan)]:
                known = self._catalog.get(name)
                if known is not None and catalog.get(name) is not known:
                    raise InputError(
                        "STREAM_IN_USE",
                        f'stream "{name}" cannot be dropped: query "{run.name}" reads it',
                        hint="Stop the query first.",
                    )

    def explain(self, request: Explain, settings: Settings) -> str:
        """The text that answers an EXPLAIN, as this engine would run it; see ``Query.explain``."""
        streams = self._inputs.spark_streams(runnable(request.plan, settings))
        return explain(request, settings, streams=streams, clock=self._core.times.clock)

    def _drain(self) -> None:
        self._check_awaited()
        with self._loop.held():
            for feed in self._inputs.feeds:
                feed.look_again()
        for feed in self._inputs.feeds:
            while not feed.drained():
                self._raise_failure()
                self._loop.pause()
        self._loop.settle()
        self._raise_failure()

    def _bar(self) -> ProgressBar:
        return ProgressBar(self._core, self._inputs.expected_rows())

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

    def _raise_failure(self) -> None:
        if self._loop.error is not None:
            raise self._loop.error

    def _raise_failed_source(self) -> None:
        for problem in self._inputs.failures():
            raise problem


def _streams(plan: Plan) -> list[str]:
    """What a plan reads, each once."""
    return list(dict.fromkeys(node.name for node in plan.walk() if isinstance(node, Source)))
