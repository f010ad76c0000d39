"""`headwater bench`: which benchmark, with its options."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table


class Bench(StrEnum):
    KERNELS = "kernels"
    STATE = "state"
    DRIFT = "drift"
    FILES = "files"
    PLANNER = "planner"
    ENGINE = "engine"
    TIME = "time"
    CONSISTENCY = "consistency"


app = typer.Typer(name="headwater bench", add_completion=False, pretty_exceptions_enable=False)


@app.command()
def bench(
    what: Annotated[
        Bench,
        typer.Argument(
            help="kernels: rows per second and operator; state: ticks as it grows; drift: a long sum; "
            "planner: text to plan; files: a folder as it fills; "
            "engine: all of it, beside Spark, Flink and DuckDB; time: how soon rows are final, simulated; "
            "consistency: what each level costs and brings."
        ),
    ],
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows", min=100_000, help="Input rows (kernels, drift, engine) or largest state (state, latency)."
        ),
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="engine: runs of each, the best counts.")] = 3,
    limit: Annotated[
        float, typer.Option("--limit", min=1, help="engine: seconds per run; what takes longer gets fewer rows.")
    ] = 60,
    query: Annotated[list[str] | None, typer.Option("--query", help="engine: only these, by name.")] = None,
    engine: Annotated[list[str] | None, typer.Option("--engine", help="engine: only these, by name.")] = None,
    cache: Annotated[Path | None, typer.Option("--cache", help="engine: folder for the data and for Flink.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="engine, time, consistency: as Markdown.")] = False,
    latency: Annotated[bool, typer.Option("--latency", help="engine: the time of a tick, of Headwater alone.")] = False,
) -> None:
    """Measure Headwater on this machine; one run, one table."""
    out = Console(width=150)
    said = " ".join(["headwater", *sys.argv[1:]])
    if what is Bench.TIME:
        from benchmarks.time import command as simulations

        simulations.run(out, markdown=markdown, command=said)
    elif what is Bench.CONSISTENCY:
        from benchmarks.consistency import command as levels

        levels.run(out, markdown=markdown, command=said)
    elif what is Bench.ENGINE:
        from benchmarks.engine import command

        asked = command.Options(
            rows or command.ROWS, repeat, limit, tuple(query or ()), tuple(engine or ()), cache, markdown, said
        )
        (command.run_latency if latency else command.run)(asked, out, Console(stderr=True))
    else:
        out.print(_table(what, rows))


def _table(what: Bench, rows: int | None) -> Table:
    if what is Bench.KERNELS:
        from benchmarks import kernels

        return kernels.run(rows or 1_000_000)
    if what is Bench.PLANNER:
        from benchmarks import planner

        return planner.run()
    if what is Bench.DRIFT:
        from benchmarks import drift

        return drift.run(rows or 10_000_000)
    if what is Bench.FILES:
        from benchmarks import files

        return files.run()
    from benchmarks import state

    return state.run(tuple(size for size in state.LIVE if size <= (rows or state.LIVE[-1])))
