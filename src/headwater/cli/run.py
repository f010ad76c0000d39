"""``headwater run``: the queries of a script, until they are stopped or their input ends."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import frozen

from headwater.cli.terminal import interruptible, is_terminal, messages, say
from headwater.errors import HeadwaterError, InputError
from headwater.language.binder import bind_script
from headwater.language.catalog import Catalog, Stream
from headwater.language.script import Script, no_query
from headwater.model.durations import wall_time_in
from headwater.runtime.replay import read_script
from headwater.sinks.connectors import check_targets
from headwater.sources.connectors import make_source
from headwater.state.folder_names import folder_name

if TYPE_CHECKING:
    from headwater.engine import Engine
    from headwater.query import Query
    from headwater.sinks.base import Sink

FILES, LINES, TABLE = ("parquet", "csv", "json"), "json", "table"
FILES_EVERY = "1 second"
"""Files of ``--output`` have the answers of so long, unless ticks have an interval: ten ticks a second are common."""


@frozen
class Options:
    """What the command was asked for."""

    script: Path
    checkpoint: str | None = None
    output: Path | None = None
    """A folder: one inside for each query. None: the terminal."""
    discard: bool = False
    """Compute and count, keep nothing."""
    format: str | None = None
    seconds: float | None = None
    once: bool = False
    runner: str = "spark"
    shards: int | None = None
    master: str | None = None
    drop: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    every: str = "0"
    """The least time between the starts of two ticks."""
    verbose: bool = False
    python_functions: bool = True


class _OutputClosed(HeadwaterError):  # noqa: N818 - not a failure
    """Nobody reads standard output any more."""

    def __init__(self) -> None:
        super().__init__("OUTPUT_CLOSED", "nobody reads the output any more")


def run(options: Options) -> None:
    """Run the script; whatever is wrong with it is said before anything starts."""
    if options.seconds is not None and math.isnan(options.seconds):
        raise InputError("WRONG_OPTION", "--seconds cannot be nan", hint="It is a number of seconds.")
    wall_time_in(options.every, what="--every")
    text = read_script(options.script)
    _check(bind_script(text, Catalog(python_functions=options.python_functions)), options)
    make_sink = _sinks(options)
    with messages(verbose=options.verbose):
        engine = _connect(options)
        with interruptible() as interrupts:
            try:
                _run(engine, text, options, make_sink)
            except _OutputClosed:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains at its end
            finally:
                interrupts.closing = True
                _close(engine)


def _connect(options: Options) -> Engine:
    from headwater.engine import connect

    settings: dict[str, Any] = {
        "checkpoint": options.checkpoint,
        "shards": options.shards,
        "every": options.every,
        "python_functions": options.python_functions,
    }
    if options.runner == "inprocess":
        return connect(runner="inprocess", **settings)
    say(f"starting Spark on {options.master or 'this machine'} …")
    return connect(options.master, **settings)


def _close(engine: Engine) -> None:
    from headwater.backends.spark.farewell import end_spark

    engine.close()
    end_spark()


def _run(engine: Engine, text: str, options: Options, make_sink: Callable[[str], Sink]) -> None:
    found = engine.script(text, folder=options.script.resolve().parent)
    for answer in found.answers:
        say(f"{answer}\n")
    for notice in found.notices:
        say(str(notice))
    done = _Done(engine)
    _start(engine, found.queries, options, make_sink)
    try:
        if options.once or (engine.finite and options.seconds is None):
            ends = engine.finite or options.checkpoint is None
            engine.run_to_end(progress=is_terminal(stderr=True), end_streams=ends)
            done.say("" if ends else "; the streams stay open for the next run")
        else:
            limit = "" if options.seconds is None else f" for {options.seconds:g} seconds"
            many = len(found.queries)
            for notice in dict.fromkeys(notice for run in engine.runs.values() for notice in run.notices):
                say(str(notice))
            say(f"running {many} {'query' if many == 1 else 'queries'}{limit}; Ctrl-C ends it")
            engine.wait(options.seconds)
            done.say()
    except KeyboardInterrupt:
        engine.close()  # the tick that runs is finished first: what is told is what is committed
        kept = f"; tick {engine.progress().tick:,} is committed: the same command goes on from here"
        done.say(kept if options.checkpoint else "")


def _start(engine: Engine, queries: tuple[Query, ...], options: Options, make_sink: Callable[[str], Sink]) -> None:
    with engine.held():
        for name in dict.fromkeys((*options.drop, *options.restart)):
            if name not in engine.awaited:
                raise InputError(
                    "UNKNOWN_QUERY",
                    f'the checkpoint has no query "{name}" to {"drop" if name in options.drop else "restart"}',
                    hint=f"It has {', '.join(engine.awaited)}." if engine.awaited else "",
                )
            engine.drop(name)
        for query in queries:
            query.start(None if query.make_sink is not None else make_sink(query.name))
        if engine.awaited:
            raise InputError(
                "QUERIES_MISSING",
                f"the checkpoint has queries that the script does not have: {', '.join(engine.awaited)}",
                detail="Nothing runs without them: they would miss what comes meanwhile.",
                hint=f"Put them back, or give up what they know: --drop {' --drop '.join(engine.awaited)}",
            )


class _Done:
    """Says in the end what this run has done; a checkpoint counts from its own beginning."""

    def __init__(self, engine: Engine) -> None:
        """To be made before anything runs."""
        self._engine, self._before = engine, engine.progress()

    def say(self, more: str = "") -> None:
        now, before = self._engine.progress(), self._before
        out = ", ".join(f"{q.query} {q.rows_out:,}" for q in now.queries)
        rows, late, bad = (getattr(now, what) - getattr(before, what) for what in ("rows", "late_rows", "bad_rows"))
        apart = "".join(f", {n:,} {what}" for n, what in ((late, "late"), (bad, "malformed")) if n)
        say(f"{rows:,} {'row' if rows == 1 else 'rows'} in{apart}; out: {out}{more}")
        for line in now.lost(since=before):
            say(line)


# -- before anything starts -------------------------------------------------------------------------------------------


def _check(script: Script, options: Options) -> None:
    queries = script.queries
    if not queries:
        raise no_query(script)
    names = [q.name.casefold() for q in queries]
    for name in names:
        if names.count(name) > 1:
            raise InputError("DUPLICATE_NAME", f'two queries are called "{name}"', hint="Give the stream another name.")
    folder = options.script.resolve().parent
    check_targets((query.name, query.target, folder) for query in queries if query.target is not None)
    for name in dict.fromkeys(name for query in queries for name in query.plan.streams):
        stream = script.catalog.get(name)
        if isinstance(stream, Stream) and stream.late_rows_of is None:
            _check_source(stream, folder)


def _check_source(stream: Stream, folder: Path) -> None:
    if stream.source is None:
        raise InputError(
            "NO_SOURCE",
            f'stream "{stream.name}" has no source, so nothing would ever come',
            hint="Declare one: SOURCE parquet('folder'). Recorded streams run with headwater replay.",
        )
    make_source(stream, base_folder=folder)


# -- where answers go -------------------------------------------------------------------------------------------------


def _sinks(options: Options) -> Callable[[str], Sink]:
    """What makes the sink of each query."""
    from headwater import sinks

    if options.output is not None:
        form = options.format or FILES[0]
        if form not in FILES:
            raise InputError("WRONG_FORMAT", f'files cannot have the format "{form}"', hint=f"Write {_either(FILES)}.")
        make, output = {"parquet": sinks.parquet, "csv": sinks.csv, "json": sinks.json}[form], options.output
        every = 0 if wall_time_in(options.every, what="--every") else FILES_EVERY
        return lambda name: make(output / folder_name(name), every=every)
    if options.discard:
        return lambda name: sinks.noop()
    form = options.format or (TABLE if is_terminal() else LINES)
    if form == TABLE:
        return lambda name: sinks.console()
    if form != LINES:
        raise InputError(
            "WRONG_FORMAT",
            f'the terminal cannot show the format "{form}"',
            hint=f"Write {_either((TABLE, LINES))}, or name a folder with --output.",
        )
    lock = threading.Lock()
    return lambda name: sinks.foreach(lambda table, tick: _print_lines(name, table, lock))


def _print_lines(name: str, table: pa.Table, lock: threading.Lock) -> None:
    """Every row as a JSON object with the query's name."""
    from headwater.sinks.file_formats import JsonFormat

    names = pa.DictionaryArray.from_arrays(pa.nulls(table.num_rows, pa.int8()).fill_null(0), pa.array([name]))
    written = pa.BufferOutputStream()
    JsonFormat().write(table.add_column(0, pa.field("_query", pa.string()), names.cast(pa.string())), written)
    try:
        with lock:
            sys.stdout.write(written.getvalue().to_pybytes().decode())
            sys.stdout.flush()
    except BrokenPipeError:
        raise _OutputClosed from None


def _either(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
