"""``headwater demo``: eight queries over the streams of an auction house."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import pytest
from rich.console import Console

import headwater as hw
from headwater.cli.demo import demo_script, queries_of
from headwater.cli.demo_screen import Screen, _cell, waiting
from headwater.language.binder import bind_script
from headwater.language.catalog import Stream
from headwater.language.consistency import MIDDLE

QUERIES = ("activity", "hottest", "sold", "bidders", "ignored", "newcomers", "sellers", "channels")
ROOT = Path(__file__).resolve().parents[2]


def finite(*, rows_per_tick: int) -> str:
    """The demo's script over events that are all there at once."""
    text = demo_script(1000, datetime.now(UTC))
    more = f"events => 12000, paced => false, rows_per_tick => {rows_per_tick}"
    return text.replace("disorder =>", f"{more}, disorder =>")


def test_the_script_has_queries_of_many_kinds():
    script = bind_script(demo_script(700, datetime(2026, 1, 1, tzinfo=UTC)))
    assert tuple(q.name for q in script.named) == QUERIES
    assert script.notices == ()
    assert [q.name for q in script.named if q.consistency == MIDDLE] == ["sellers", "channels"]
    assert [dict(s.source.options)["rate"] for s in script.catalog if isinstance(s, Stream) and s.source] == [700] * 3


def test_the_example_asks_the_same_queries():
    def queries(text: str) -> str:
        return text[text.index("-- A sliding aggregate") :]

    example = (ROOT / "examples" / "nexmark" / "queries.sql").read_text(encoding="utf-8")
    assert queries(example) == queries(files("headwater.cli").joinpath("demo.sql").read_text(encoding="utf-8"))


def test_it_runs_and_sums_up(command: Callable):
    outcome = command("demo", "--seconds", "3", "--rate", "500", "--runner", "inprocess")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("Eight continuous queries over 500 events per second")
    for name in QUERIES:
        assert re.search(rf"^  {name} +[\d,]+ rows out", outcome.out, re.MULTILINE), name
        assert f"│ {name} " in outcome.out
    assert re.search(r"^rows in +[1-9][\d,]* \([\d,.]+/s\), [\d,]+ more were late", outcome.out, re.MULTILINE)
    assert re.search(r"^state +[1-9][\d,]* rows in ", outcome.out, re.MULTILINE)
    assert re.search(r"^median tick +\d", outcome.out, re.MULTILINE)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50), (240, 60)])
def test_every_query_has_a_table_that_fits_the_terminal(width: int, height: int):
    with hw.connect(runner="inprocess") as engine:
        queries = engine.script(finite(rows_per_tick=4000)).queries
        with engine.held():
            runs = [query.start(hw.sinks.memory(keep="1 second")) for query in queries]
        engine.run_to_end(end_streams=False)
        console = Console(width=width, height=height, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
        console.print(Screen(engine, runs).tables(width, height, 7))
        text = console.export_text()
    assert len(text.splitlines()) <= height
    assert "7 s left" in text
    for name in QUERIES:
        assert f"─ {name} " in text
    assert "─ 0 rows now" not in text


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50), (240, 60)])
def test_while_it_waits_it_shows_the_queries(width: int, height: int):
    queries = queries_of(demo_script(1000, datetime.now(UTC)))
    assert tuple(queries) == QUERIES
    console = Console(width=width, height=height, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(waiting(queries, "Spark starts: 3 s so far", width, height))
    text = console.export_text()
    assert len(text.splitlines()) <= height
    assert text.startswith("Spark starts: 3 s so far")
    assert all(f"─ {name} " in text for name in QUERIES)
    assert "SELECT auction, COUNT(*) AS bids" in text


def test_numbers_that_tell_things_apart_are_no_amounts():
    with hw.connect(runner="inprocess") as engine:
        queries = engine.script(finite(rows_per_tick=4000)).queries
        with engine.held():
            runs = [query.start(hw.sinks.memory(keep="1 second")) for query in queries]
        engine.run_to_end(end_streams=False)
        console = Console(width=240, height=60, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
        console.print(Screen(engine, runs).tables(240, 60, 7))
        text = console.export_text()
        auctions = {row["auction"] for run in runs if run.name == "activity" for row in run.snapshot().rows()}
    assert any(str(auction) in text for auction in auctions)
    assert (_cell("auction", 12_345), _cell("price", 12_345)) == ("12345", "12,345")


def test_rows_that_come_too_late_are_kept_apart():
    with hw.connect(runner="inprocess") as engine:
        queries = engine.script(finite(rows_per_tick=200)).queries
        with engine.held():
            for query in queries:
                query.start(hw.sinks.noop())
        engine.run_to_end()
        now = engine.progress()
    assert now.late_rows > 0
    assert now.rows + now.late_rows == 12_000


@pytest.mark.slow
def test_it_leaves_no_process_behind():
    """Its own process group would be joined by whatever it starts; workers of Spark's make groups, but not sessions."""
    main = "from headwater.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", main, "demo", "--seconds", "5", "--rate", "1000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert re.search(r"^rows in +[1-9]", out, re.MULTILINE)
    assert processes_of_session(process.pid) == []


def processes_of_session(session: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(entry.name))
    return found
