"""The ``headwater`` command. What a command needs is imported when it runs, so that help comes at once."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from headwater import __version__
from headwater.settings import MOST_SHARDS

app = typer.Typer(
    name="headwater",
    help="Continuous SQL queries over data streams, with exact temporal semantics.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

USER_ERROR = 2


class RunnerName(StrEnum):
    INPROCESS = "inprocess"
    SPARK = "spark"


class Consistency(StrEnum):
    STRONG = "strong"
    MIDDLE = "middle"


class Emit(StrEnum):
    CLOSE = "close"
    START = "start"


Shards = Annotated[
    int | None, typer.Option("--shards", min=1, max=MOST_SHARDS, help="Into how many parts keys are split.")
]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headwater {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...


PythonFunctions = Annotated[
    bool,
    typer.Option("--python-functions/--no-python-functions", help="May the script run Python code by CREATE FUNCTION?"),
]


@app.command("replay")
def _replay(
    script: Annotated[Path, typer.Argument(help="SQL script that declares its streams without a source.")],
    recording: Annotated[Path, typer.Option("--input", help="Recorded elements, one JSON object per line.")],
    runner: Annotated[RunnerName, typer.Option("--runner", help="Where the plan runs.")] = RunnerName.INPROCESS,
    consistency: Annotated[
        Consistency | None,
        typer.Option(
            "--consistency",
            help="Only final results, or results at once with repairs; if not given: what the query says, else strong.",
        ),
    ] = None,
    emit: Annotated[
        Emit | None,
        typer.Option(
            "--emit",
            help="Final elements with both ends, or as soon as they begin; if not given: what the query says, else close.",
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            min=1,
            help="A tick every so many elements, if there are no tick lines; if not given: one for all.",
        ),
    ] = None,
    open_ended: Annotated[bool, typer.Option("--open", help="Do not end the streams after the last line.")] = False,
    output: Annotated[Path | None, typer.Option("--output", help="File for the result, instead of stdout.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Print what was valid when, not the elements.")] = False,
    shards: Shards = None,
    python_functions: PythonFunctions = True,
) -> None:
    """Run a script over recorded streams, deterministically and without a wall clock.

    The script's SELECTs run: the result of the last one is the stream "query", those before it are "query_1",
    "query_2", … A script without a SELECT runs every CREATE STREAM name AS …, each under its own name.

    Input and output have one line per element: {"stream":"s","kind":"insert","start":1,"end":8,"row":{"x":"c"}} with
    "end":null for infinity and "at":5 for [5,6);
    {"stream":"s","kind":"adjust","start":1,"end":8,"new_end":5,"row":{…}};
    {"stream":"s","kind":"stable","at":11}; and {"kind":"tick"} in the input.
    """
    from headwater.errors import HeadwaterError

    options = {
        "consistency": consistency.value if consistency else None,
        "emit": emit.value if emit else None,
        "batch": batch,
        "open_ended": open_ended,
        "history": history,
        "runner": runner.value,
        "shards": shards,
    }
    try:
        _run_replay(script, recording, output, options, python_functions=python_functions)
    except HeadwaterError as problem:
        _fail(str(problem))


def _run_replay(
    script: Path, recording: Path, output: Path | None, options: dict[str, Any], *, python_functions: bool
) -> None:
    from headwater.backends.explain import shown
    from headwater.cli.replay import replayed
    from headwater.runtime.replay import load_script, notices_of_replay

    bound = load_script(script, python_functions=python_functions)
    for answer in bound.answers:  # stdout is for elements
        typer.echo(f"{shown(answer, bound.settings)}\n", err=True)
    text = "".join(f"{line}\n" for line in replayed(bound, recording, **options))
    if output is None:
        sys.stdout.write(text)
    else:
        _write_whole(output, text)
    for notice in (*bound.notices, *notices_of_replay(bound)):
        typer.echo(str(notice), err=True)


@app.command("demo")
def _demo(
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="How long it runs, after Spark has started.")] = 20,
    rate: Annotated[int, typer.Option("--rate", min=1, help="Events per second, of all three streams.")] = 5000,
    runner: Annotated[RunnerName, typer.Option("--runner", help="Where it runs.")] = RunnerName.SPARK,
) -> None:
    """Watch eight continuous queries over the streams of an auction house, with disorder, live in the terminal."""
    from rich.console import Console

    from headwater.cli import demo
    from headwater.errors import HeadwaterError

    try:
        demo.run(Console(), seconds=seconds, rate=rate, runner=runner.value)
    except HeadwaterError as problem:
        _fail(str(problem))


class SinkName(StrEnum):
    CONSOLE = "console"
    NOOP = "noop"


class OutputFormat(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    TABLE = "table"


@app.command("run")
def _run(
    script: Annotated[Path, typer.Argument(help="SQL script whose streams have a SOURCE.")],
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", help="Folder (or URI) that keeps the state: the next run goes on from there."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder for the answers, with one inside for each query.")
    ] = None,
    sink: Annotated[
        SinkName, typer.Option("--sink", help="Without --output: print the answers, or only count them.")
    ] = SinkName.CONSOLE,
    form: Annotated[
        OutputFormat | None,
        typer.Option(
            "--format",
            help="parquet (default), csv or json files; in the terminal table, or json: every row as a line "
            "(default where standard output is no terminal).",
        ),
    ] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", min=0, help="Stop after so long.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Answer everything that is there now, then end.")] = False,
    runner: Annotated[RunnerName, typer.Option("--runner", help="Where it runs.")] = RunnerName.SPARK,
    shards: Shards = None,
    master: Annotated[str | None, typer.Option("--master", help="Spark's master; if not given: this machine.")] = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", help="Give up this query of the checkpoint; may come repeatedly.")
    ] = None,
    restart_query: Annotated[
        list[str] | None,
        typer.Option("--restart-query", help="Begin this query of the checkpoint anew; may come repeatedly."),
    ] = None,
    every: Annotated[
        str,
        typer.Option(
            "--every",
            help="At least so long between the starts of two ticks: 500ms, 1s, '1 minute'. 0: none is put off.",
        ),
    ] = "0",
    verbose: Annotated[bool, typer.Option("--verbose", help="Say every ten seconds how it goes.")] = False,
    python_functions: PythonFunctions = True,
) -> None:
    """Run the queries of a script: every CREATE STREAM name AS …, and every SELECT.

    The last SELECT is called "query", those before it "query_1", "query_2", …

    It runs until Ctrl-C, or until all its sources have ended. In the terminal a final row shows as soon as it is known,
    and its end when that is (EMIT ON START). In files, and as JSON lines for other programs, every row comes once, with
    _start and _end (EMIT ON CLOSE). A query can choose: EMIT ON START, ON CLOSE or EVERY 1 MINUTE. Answers of a query
    with CONSISTENCY MIDDLE come as a changelog.
    """
    from headwater.cli import run
    from headwater.errors import HeadwaterError

    options = run.Options(
        script=script,
        checkpoint=checkpoint,
        output=output,
        discard=sink is SinkName.NOOP,
        format=form.value if form else None,
        seconds=seconds,
        once=once,
        runner=runner.value,
        shards=shards,
        master=master,
        drop=tuple(drop or ()),
        restart=tuple(restart_query or ()),
        every=every,
        verbose=verbose,
        python_functions=python_functions,
    )
    try:
        run.run(options)
    except HeadwaterError as problem:
        _fail(str(problem))


class StateFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


@app.command("state")
def _state(
    checkpoint: Annotated[str, typer.Argument(help="Folder (or URI) of a checkpoint; it may be in use.")],
    form: Annotated[StateFormat, typer.Option("--format", help="How it is shown.")] = StateFormat.TABLE,
) -> None:
    """Show what a checkpoint keeps: streams, queries, operators and their state, from its manifests alone."""
    from headwater.cli.state import state_text
    from headwater.errors import HeadwaterError

    try:
        typer.echo(state_text(checkpoint, form.value))
    except HeadwaterError as problem:
        _fail(str(problem))


@app.command("compact")
def _compact(
    folders: Annotated[
        list[str], typer.Argument(help="Folders of Parquet answers, or Delta tables; they may be in use.")
    ],
) -> None:
    """Make few files of many small ones, in folders that sinks write into. No row is lost or there twice afterwards."""
    from headwater.cli.compact import compact
    from headwater.errors import HeadwaterError

    try:
        for folder in folders:
            typer.echo(compact(folder))
    except HeadwaterError as problem:
        _fail(str(problem))


class PlanLevel(StrEnum):
    LOGICAL = "logical"
    OPTIMIZED = "optimized"
    PHYSICAL = "physical"


class Format(StrEnum):
    TREE = "tree"
    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"


@app.command("explain")
def _explain(
    script: Annotated[Path | None, typer.Argument(help="SQL script; not needed with --rules.")] = None,
    level: Annotated[
        PlanLevel, typer.Option("--level", help="The plan as written, as optimized, or the operators that run.")
    ] = PlanLevel.OPTIMIZED,
    form: Annotated[Format, typer.Option("--format", help="How it is shown.")] = Format.TREE,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also columns, properties and the rules used.")] = False,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules of the optimizer.")] = False,
    python_functions: PythonFunctions = True,
) -> None:
    """Show how a script's queries run.

    The script's EXPLAIN statements are answered; if it has none, its SELECTs are explained, or every
    CREATE STREAM name AS … Notices go to standard error.
    """
    from headwater.cli import explain
    from headwater.errors import HeadwaterError
    from headwater.runtime.replay import load_script

    try:
        if rules:
            typer.echo(explain.rules_text())
        elif script is None:
            _fail(
                "USAGE: there is no script to explain\n  hint:   headwater explain script.sql, or headwater explain --rules."
            )
        else:
            bound = load_script(script, python_functions=python_functions)
            typer.echo(explain.script_text(bound, level.value, form.value, verbose=verbose))
            for notice in bound.notices:
                typer.echo(str(notice), err=True)
    except HeadwaterError as problem:
        _fail(str(problem))


@app.command(
    "bench",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False},
)
def _bench(context: typer.Context) -> None:
    """Measure Headwater on this machine (from a checkout of the repository)."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / "benchmarks" / "command.py").is_file():
        _fail(
            "UNKNOWN_NAME: the benchmarks are not installed with the package\n"
            "  hint:   They are in the repository: run bin/headwater bench in a checkout."
        )
    sys.path.insert(0, str(checkout))
    from benchmarks import command
    from headwater.errors import HeadwaterError

    try:
        typer.main.get_command(command.app).main(args=context.args, prog_name="headwater bench", standalone_mode=False)
    except HeadwaterError as problem:
        _fail(str(problem))


def _write_whole(path: Path, text: str) -> None:
    """All of the file or nothing of it."""
    from headwater.errors import InputError

    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as problem:
        partial.unlink(missing_ok=True)
        raise InputError("UNWRITABLE", f'could not write "{path}": {problem.strerror}') from problem


def _fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(USER_ERROR)


def main() -> None:
    """The entry point. What cannot be written is a message; that nobody reads any more is not worth one."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _forsake_stdout()
        sys.exit(0)
    except OSError as problem:
        _forsake_stdout()
        where = f' "{problem.filename}"' if problem.filename else " its output, or what it keeps"
        typer.echo(f"UNWRITABLE: could not write{where}: {problem.strerror or problem}", err=True)
        sys.exit(USER_ERROR)


def _forsake_stdout() -> None:
    """Or Python complains of it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
