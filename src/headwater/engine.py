"""The public face: ``connect()`` gives an ``Engine``, which declares streams, makes queries and runs them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.algebra.nodes import Plan, Source
from headwater.clock.guarantees import notices_of_query
from headwater.clock.wall import VirtualClock, WallClock
from headwater.errors import HeadwaterError, InputError
from headwater.language.binder import bind_script
from headwater.language.catalog import Catalog, Derived, Kind, Stream
from headwater.language.introspection import Answer, Explain
from headwater.language.notices import Notice
from headwater.language.script import Query as BoundQuery
from headwater.language.script import Script
from headwater.model.schema import Schema
from headwater.query import Query, Run
from headwater.query import Script as QueryScript
from headwater.runtime.core import SMALL_TICK, Core, Delivery
from headwater.runtime.deployment import Running
from headwater.runtime.explain import explain
from headwater.runtime.feeds import Feed, PolledFeed, PushedFeed
from headwater.runtime.loop import Loop
from headwater.runtime.planning import runnable
from headwater.runtime.progress import EngineProgress, engine_progress
from headwater.runtime.progress_bar import ProgressBar
from headwater.runtime.reading import StreamTask
from headwater.runtime.shown_streams import with_counts
from headwater.runtime.spark.native_parts import is_stateless, marked
from headwater.settings import Settings
from headwater.sinks.base import Output, Sink
from headwater.sources.base import Malformed
from headwater.sources.base import Source as StreamSource
from headwater.sources.memory import PushedSource, as_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.runtime.spark.session import SessionHandle

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
    """
    if runner not in ("spark", "inprocess"):
        raise InputError("UNKNOWN_RUNNER", f'there is no runner "{runner}"', hint='There are "spark" and "inprocess".')
    if runner == "inprocess":
        durable = checkpoint is not None
        core = Core(shards=shards or 1, checkpoint=checkpoint, durable=durable, keep=keep, sync=sync, wall=clock)
        return Engine(core, None)
    from headwater.runtime.spark.job import SparkExecutor
    from headwater.runtime.spark.session import open_session

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
    return Engine(core, session)


class Engine:
    """Streams, queries, and the dataflow that runs them. Close it when done, or use it in a ``with`` statement."""

    def __init__(self, core: Core, session: SessionHandle | None) -> None:
        self._core, self._session = core, session
        self._loop = Loop(core, self._polled)
        core.drained = self._taken_until
        if isinstance(core.wall, VirtualClock):
            core.wall.subscribe(self._loop.wake)
        self._catalog, self._settings = Catalog(), Settings()
        self._sources: dict[str, StreamSource] = {}
        self._taken_in: dict[str, Stream] = {}
        """What was declared of the streams whose rows are taken: another one of the same name is another stream."""
        self._feeds: dict[str, Feed] = {}
        self._runs: dict[str, Run] = {}
        self._closed = False
        self._asked = time.monotonic()
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
            views = {q.name for q in script.named if (e := script.catalog.get(q.name)) and e.kind is Kind.VIEW}
            found = [q for q in script.named if q.name not in views]
            found += [script.result] if script.result is not None else []
            answers = tuple(self._told(answer, script.settings) for answer in script.answers)
            return QueryScript(tuple(self._query(q, script) for q in found), answers, script.notices)

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
            self._take_in(stream, source, partition)

    def push(self, stream: str, rows: Any, *, frontier: int | None = None, wait: bool = True) -> None:
        """Bring rows of a stream that was declared without a SOURCE: an Arrow table or batch, or a list of dictionaries.

        ``frontier`` promises that nothing before it comes any more. Returns when the tick is delivered, unless told not to.
        """
        entry = self._catalog.get(stream)
        source = self._sources.get(entry.name, PushedSource(Schema(()))) if isinstance(entry, Stream) else None
        if not isinstance(entry, Stream) or not isinstance(source, PushedSource) or self._gets_late_rows(entry):
            raise InputError(
                "CANNOT_PUSH",
                f'"{stream}" is no stream to push into',
                hint="Declare it without a SOURCE: CREATE STREAM name (…) ORDERED BY column.",
            )
        with self._lock:
            feed = self._feeds.get(entry.name)
            if not isinstance(feed, PushedFeed):
                self._taken_in[entry.name] = entry
                self._core.add_stream(StreamTask.of(entry, source))
                feed = self._feeds[entry.name] = PushedFeed(entry.name)
        table = as_table(rows, entry.brought, entry.optional)
        self._submit(feed.delivery(table, promise=frontier), wait=wait)

    # -- running -----------------------------------------------------------------------------------------------------

    def start(self, query: Query, sink: Sink | None = None, *, name: str | None = None) -> Run:
        """Let a query run; see ``Query.start``."""
        self._check_open()
        if sink is None:
            from headwater.sinks import memory

            sink = memory()
        name = name or query.name
        speculative = query.speculative
        plan, parts = marked(runnable(query.plan, query.settings), self._row_streams())
        output = Output(name, plan.schema, speculative, self._has_timestamps(plan))
        if self._session is not None:
            sink.spark = self._session.spark
        with self._loop.held():
            self._core.start(Running(name, plan, sink, output, since=0, parts=parts, consistency=query.consistency))
            self._feed(plan)
        self._loop.start()
        run = Run(query, name, sink, self._core, timestamps=output.timestamps, stop=lambda: self.drop(name))
        self._runs[name] = run
        run.notices = self._notices_of(plan)
        for notice in run.notices:
            log.info('query "%s": %s', name, notice)
        return run

    def _notices_of(self, plan: Plan) -> tuple[Notice, ...]:
        """What may keep its answers from becoming final."""
        names = list(dict.fromkeys(node.name for node in plan.walk() if isinstance(node, Source)))
        return tuple(notices_of_query(self._core.times.clock.rules, names, together=self._core.deployment.together))

    def drop(self, name: str) -> None:
        """Stop a query, or give up one that the checkpoint has and that is not started again."""
        with self._loop.held():
            self._core.stop(name)
            self._runs.pop(name, None)
            self._stop_unused()

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
                    self._core.tick(ended=self._read_streams())

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

    @property
    def finite(self) -> bool:
        """Will all sources that are read end by themselves?"""
        return bool(self._feeds) and all(n in self._sources and self._sources[n].finite for n in self._feeds)

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
        for feed in self._feeds.values():
            feed.stop()
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
        script = bind_script(text, catalog, self._settings)
        derived = [name for name in self._runs if isinstance(self._catalog.get(name), Derived)]
        dropped = [name for name in derived if catalog.get(name) is None]
        self._check_dropped(catalog, [run for run in self._runs.values() if run.name not in dropped])
        levels = {name: level for name, level in script.altered.items() if name in self._runs}
        for name, level in levels.items():
            self._core.deployment.check_level(name, level)
        for name in dropped:
            self.drop(name)
        self._open_sources(catalog, folder)
        for name, level in levels.items():
            self._runs[name].set_consistency(level)
        self._catalog, self._settings = catalog, script.settings
        for notice in script.notices:
            log.info("%s", notice)
        return script

    def _query(self, found: BoundQuery, script: Script, name: str | None = None) -> Query:
        return Query(name or found.name, found.plan, found.consistency, script.settings, script.notices, self)

    def _answer(self, script: Script, name: str | None) -> Any:
        found: BoundQuery | None = script.result or (script.named[-1] if script.named else None)
        if found is not None:
            return self._query(found, script, name)
        return self._told(script.answers[-1], script.settings) if script.answers else None

    def _told(self, answer: Answer | Explain, settings: Settings) -> str:
        return self.explain(answer, settings) if isinstance(answer, Explain) else str(with_counts(answer, self._core))

    def _check_dropped(self, catalog: Catalog, runs: Sequence[Run]) -> None:
        """What runs must not lose its streams."""
        for run in runs:
            for node in run.query.plan.walk():
                known = self._catalog.get(node.name) if isinstance(node, Source) else None
                if isinstance(node, Source) and known is not None and catalog.get(node.name) is not known:
                    raise InputError(
                        "STREAM_IN_USE",
                        f'stream "{node.name}" cannot be dropped: query "{run.name}" reads it',
                        hint="Stop the query first.",
                    )

    def _open_sources(self, catalog: Catalog, folder: Path) -> None:
        from headwater.sources.connectors import make_source

        declared = [e for e in catalog if isinstance(e, Stream) and e.source is not None]
        new = [e for e in declared if self._taken_in.get(e.name) is not e]
        sources = [make_source(entry, base_folder=folder) for entry in new]
        for name in [n for n, known in self._taken_in.items() if catalog.get(n) is not known]:
            self._forget_stream(name)
        for entry, source in zip(new, sources, strict=True):
            self._take_in(entry, source, None)

    def _forget_stream(self, name: str) -> None:
        with self._loop.held():
            self._taken_in.pop(name)
            self._sources.pop(name, None)
            feed = self._feeds.pop(name, None)
            if feed is not None:
                feed.stop()
            self._core.drop_stream(name)

    def _take_in(self, stream: Stream, source: StreamSource, partition: str | None) -> None:
        self._taken_in[stream.name] = stream
        self._sources[stream.name] = source
        self._core.add_stream(StreamTask.of(stream, source, partition=partition))

    def _feed(self, plan: Plan) -> None:
        """Start the sources that a plan reads."""
        parents = {child: t.stream for t in self._core.streams.values() for child in (t.late, t.bad)}
        for node in plan.walk():
            if not isinstance(node, Source):
                continue
            name = parents.get(node.name, node.name)
            if name in self._feeds or name not in self._sources:
                continue
            self._feeds[name] = self._new_feed(name, self._sources[name])
            self._feeds[name].start()

    def _new_feed(self, name: str, source: StreamSource) -> Feed:
        if isinstance(source, PushedSource):
            return PushedFeed(name)
        if self._session is None:
            return PolledFeed(name, source, self._core)
        from headwater.runtime.spark.feed import SparkFeed

        return SparkFeed(name, source, self._session, self._core, self._loop)

    def _polled(self) -> list[Delivery]:
        found = [feed.poll() for feed in list(self._feeds.values()) if isinstance(feed, PolledFeed)]
        return [delivery for delivery in found if delivery is not None]

    def _taken_until(self) -> dict[str, int]:
        return {name: feed.taken_until() for name, feed in list(self._feeds.items())}

    def _stop_unused(self) -> None:
        used = self._read_streams()
        for name in [n for n in self._feeds if n not in used and n in self._sources]:
            self._feeds.pop(name).stop()

    def explain(self, request: Explain, settings: Settings) -> str:
        """The text that answers an EXPLAIN, as this engine would run it; see ``Query.explain``."""
        streams = self._spark_streams(runnable(request.plan, settings))
        return explain(request, settings, streams=streams, clock=self._core.times.clock)

    def _spark_streams(self, plan: Plan) -> list[str]:
        """Streams with whose rows Spark can compute by itself, for this plan."""
        files = [n for n, source in self._sources.items() if source.suits_spark and self._is_plain(n)]
        whole = self._session is not None and is_stateless(plan)
        return [*self._row_streams(), *(files if whole else [])]

    def _row_streams(self) -> list[str]:
        """Streams whose rows Spark has as rows of their columns, so that it can compute with them."""
        if self._session is None:
            return []
        rows = [n for n, source in self._sources.items() if source.reader is None and source.parser is None]
        return [n for n in rows if self._is_plain(n) and not isinstance(self._sources[n], PushedSource)]

    def _is_plain(self, stream: str) -> bool:
        return stream in self._core.streams and self._core.streams[stream].intake.is_plain

    def _read_streams(self) -> set[str]:
        """What queries read, and the streams whose late or malformed rows they read."""
        read = set(self._core.deployment.layout.graph.sources)
        return read | {t.stream for t in self._core.streams.values() if {t.late, t.bad} & read}

    def _gets_late_rows(self, entry: Stream) -> bool:
        return entry.late_rows_of is not None or any(
            isinstance(e, Stream) and (e.diverts_into or "").casefold() == entry.name.casefold() for e in self._catalog
        )

    def _drain(self) -> None:
        self._check_awaited()
        with self._loop.held():
            for feed in self._feeds.values():
                feed.look_again()
        for feed in list(self._feeds.values()):
            while not feed.drained():
                self._raise_failure()
                self._loop.pause()
        self._loop.settle()
        self._raise_failure()

    def _bar(self) -> ProgressBar:
        expected = [self._sources[name].expected_rows() for name in self._feeds if name in self._sources]
        known = all(rows is not None for rows in expected)
        return ProgressBar(self._core, sum(rows or 0 for rows in expected) if known else None)

    def _submit(self, delivery: Delivery, *, wait: bool) -> None:
        self._check_open()
        self._loop.start()
        self._loop.submit(delivery)
        if wait:
            delivery.done.wait()
            if delivery.error is not None:
                raise delivery.error

    def _has_timestamps(self, plan: Plan) -> bool:
        """Are the instants of its streams microseconds?"""
        names = {node.name for node in plan.walk() if isinstance(node, Source)}
        streams = [entry for name in names if isinstance(entry := self._catalog.get(name), Stream)]
        parents = [self._catalog.get(s.late_rows_of) if s.late_rows_of is not None else s for s in streams]
        return all(stream.has_unit for stream in parents if isinstance(stream, Stream))

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
        failures = (feed.failure() for feed in list(self._feeds.values()) if hasattr(feed, "failure"))
        for problem in filter(None, failures):
            raise problem
