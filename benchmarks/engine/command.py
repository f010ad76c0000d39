"""`headwater bench engine` from its options to what it prints."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from attrs import frozen
from rich.console import Console

from benchmarks.engine import data as frozen_rows
from benchmarks.engine import latency, report
from benchmarks.engine.cases import CASES
from benchmarks.engine.comparison import compare
from benchmarks.engine.competitor import Competitor
from benchmarks.engine.duckdb_side import DuckDBSide
from benchmarks.engine.flink_side import FlinkSide
from benchmarks.engine.headwater_side import HeadwaterSide, Ticking, WarmSpark
from benchmarks.engine.spark_side import SparkSide
from headwater.errors import InputError

ROWS = 10_000_000
CHECKED_ROWS = 500_000
"""Answers are compared on so many bids: 100 s, so that windows of a minute fill and move on."""
ENGINES = ("headwater", "spark", "flink", "duckdb")


@frozen
class Options:
    """What was asked for."""

    rows: int = ROWS
    repeat: int = 3
    limit: float = 60.0
    cases: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    cache: Path | None = None
    markdown: bool = False
    command: str = "headwater bench engine"


def run(options: Options, out: Console, progress: Console) -> None:
    """The comparison: what is found goes to ``out``, what happens meanwhile to ``progress``."""
    cases = _chosen("query", [case.name for case in CASES], options.cases)
    engines = _chosen("engine", ENGINES, options.engines)
    cache = options.cache or frozen_rows.cache_folder()
    data = frozen_rows.frozen_data(options.rows, cache)
    small = frozen_rows.frozen_data(min(options.rows, CHECKED_ROWS), cache)
    progress.print(data.summary)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=cache, prefix="scratch-")))
        competitors = [_open(engine, scratch, cache, stack) for engine in engines]
        found = compare(
            competitors,
            [case for case in CASES if case.name in cases],
            data,
            small,
            repeat=options.repeat,
            limit=options.limit,
            say=_teller(progress),
        )
    if options.markdown:
        out.print(report.as_markdown(found, options.command), markup=False, highlight=False, soft_wrap=True)
    else:
        out.print(report.as_table(found))


def run_latency(options: Options, out: Console, progress: Console) -> None:
    """Tick times, of Headwater alone; ``rows`` is the largest state."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-bench-")))
        connect = _warm(stack).connect

        def open_(queries: Sequence[str], streams: Sequence[str], *, job: bool) -> Ticking:
            return Ticking(connect, scratch, queries, streams, job=job)

        tables = latency.run(open_, largest=options.rows, say=_teller(progress))
    if options.markdown:
        out.print(latency.as_markdown(tables, options.command), markup=False, highlight=False, soft_wrap=True)
    else:
        out.print(*tables)


def _teller(console: Console) -> Callable[[str], None]:
    """Says it as it is: messages of other engines are full of brackets."""
    return lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)


def _open(engine: str, scratch: Path, cache: Path, stack: ExitStack) -> Competitor:
    makers: dict[str, Callable[[], Competitor]] = {
        "headwater": lambda: HeadwaterSide(scratch, _warm(stack).connect),
        "spark": lambda: SparkSide(scratch),
        "flink": lambda: FlinkSide(cache),
        "duckdb": DuckDBSide,
    }
    competitor = makers[engine]()
    stack.callback(competitor.close)
    return competitor


def _warm(stack: ExitStack) -> WarmSpark:
    spark = WarmSpark()
    stack.callback(spark.close)
    return spark


def _chosen(what: str, known: Sequence[str], asked: Sequence[str]) -> Sequence[str]:
    for name in asked:
        if name not in known:
            raise InputError(
                "UNKNOWN_NAME",
                f'the benchmark has no {what} "{name}"',
                hint=f"There are {', '.join(known)}.",
            )
    return asked or known
