"""``headwater run`` in this process: what starts, where answers go, how it ends, and what is refused."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

BIDS = "1,9.5,3\n2,4.0,5\n1,11.0,7\n"
STREAM = (
    "CREATE STREAM bid (auction INT, price DOUBLE, at INT) "
    "SOURCE csv('{path}', header => false) ORDERED BY at IN ORDER;"
)
COUNTS = "CREATE STREAM counts AS SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 10) GROUP BY auction;"
DEAR = "SELECT auction, price FROM bid WHERE price > 9;"
COUNTED = [
    {"auction": 1, "n": 1, "_start": 13, "_end": 17},
    {"auction": 1, "n": 1, "_start": 3, "_end": 7},
    {"auction": 1, "n": 2, "_start": 7, "_end": 13},
    {"auction": 2, "n": 1, "_start": 5, "_end": 15},
]
DEAREST = [
    {"auction": 1, "price": 9.5, "_start": 3, "_end": 4},
    {"auction": 1, "price": 11.0, "_start": 7, "_end": 8},
]


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """``script(*statements, path)``: the script beside a folder ``bids`` with one file."""
    (tmp_path / "bids").mkdir()
    (tmp_path / "bids" / "1.csv").write_text(BIDS)

    def write(*statements: str, path: str = "bids/1.csv") -> Path:
        place = tmp_path / "script.sql"
        place.write_text("\n".join([STREAM.replace("{path}", path), *statements]))
        return place

    return write


@pytest.fixture
def run(command: Callable) -> Callable:
    return lambda place, *options: command("run", place, "--runner", "inprocess", *options)


def rows(table: pa.Table) -> list[dict]:
    return sorted(table.to_pylist(), key=str)


# -- where answers go -------------------------------------------------------------------------------------------------


def test_every_named_query_and_the_last_select_run_and_print_lines(script: Callable, run: Callable):
    outcome = run(script(COUNTS, "SELECT 1 AS one FROM bid;", DEAR))
    assert outcome.status == 0
    found = {name: [] for name in ("counts", "query")}
    for line in outcome.lines:
        found[line.pop("_query")].append(line)
    assert sorted(found["counts"], key=str) == COUNTED
    assert sorted(found["query"], key=lambda r: r["_start"]) == DEAREST
    assert outcome.err == "3 rows in; out: counts 4, query 2\n"


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_files_go_to_a_folder_a_query(script: Callable, run: Callable, tmp_path: Path, form: str):
    from pyarrow import csv, json

    outcome = run(script(COUNTS, DEAR), "--once", "--output", tmp_path / "out", "--format", form)
    assert (outcome.status, outcome.out) == (0, "")
    read = {"parquet": pq.read_table, "csv": csv.read_csv, "json": json.read_json}[form]
    tables = [read(path) for path in sorted((tmp_path / "out" / "counts").glob(f"tick-*.{form}"))]
    assert rows(pa.concat_tables(tables)) == COUNTED
    assert list((tmp_path / "out" / "query").glob(f"*.{form}"))


def test_the_terminal_shows_tables_if_asked(script: Callable, run: Callable):
    outcome = run(script(COUNTS), "--format", "table")
    assert "counts: tick " in outcome.out
    assert "│" in outcome.out


def test_answers_may_only_be_counted(script: Callable, run: Callable):
    outcome = run(script(COUNTS), "--sink", "noop")
    assert (outcome.out, outcome.err) == ("", "3 rows in; out: counts 4\n")


def test_views_are_names_only(script: Callable, run: Callable):
    outcome = run(script("CREATE VIEW dear AS SELECT * FROM bid WHERE price > 9;", "SELECT auction FROM dear;"))
    assert {line["_query"] for line in outcome.lines} == {"query"}


def test_speculative_queries_print_a_changelog(script: Callable, run: Callable):
    outcome = run(script("SELECT auction FROM bid CONSISTENCY MIDDLE;"))
    assert {line["_op"] for line in outcome.lines} == {"insert"}


def test_notices_and_answers_are_on_standard_error(script: Callable, run: Callable):
    outcome = run(script("SHOW STREAMS;", "SELECT COUNT(*) AS n FROM bid WINDOW(RANGE UNBOUNDED);"))
    assert outcome.status == 0
    assert "stream  columns" in outcome.err
    assert "notice: " in outcome.err


# -- going on ---------------------------------------------------------------------------------------------------------


def test_the_next_run_goes_on_from_the_checkpoint(script: Callable, run: Callable, tmp_path: Path):
    place = script(COUNTS, path="bids")
    options = ("--once", "--checkpoint", tmp_path / "kept", "--output", tmp_path / "out")
    first = run(place, *options)
    assert first.err == "3 rows in; out: counts 0; the streams stay open for the next run\n"
    (tmp_path / "bids" / "2.csv").write_text("3,1.0,40\n")
    second = run(place, *options, "--shards", 2)
    assert second.err == "4 rows in; out: counts 4; the streams stay open for the next run\n"
    tables = [pq.read_table(path) for path in sorted((tmp_path / "out" / "counts").glob("*.parquet"))]
    assert rows(pa.concat_tables(tables)) == COUNTED


def test_a_query_of_the_checkpoint_must_come_back_or_be_dropped(script: Callable, run: Callable, tmp_path: Path):
    kept = ("--once", "--checkpoint", tmp_path / "kept")
    assert run(script(COUNTS, DEAR, path="bids"), *kept).status == 0
    refused = run(script(DEAR, path="bids"), *kept)
    assert refused.status == 2
    assert refused.err.startswith("QUERIES_MISSING: the checkpoint has queries that the script does not have: counts\n")
    assert "--drop counts" in refused.err
    assert run(script(DEAR, path="bids"), *kept, "--drop", "counts").status == 0
    assert run(script(DEAR, path="bids"), *kept).status == 0
    unknown = run(script(DEAR, path="bids"), *kept, "--drop", "counts")
    assert unknown.err.startswith('UNKNOWN_QUERY: the checkpoint has no query "counts" to drop')


def test_it_ends_after_its_seconds(script: Callable, run: Callable):
    outcome = run(script(COUNTS, path="bids"), "--seconds", "0.5")
    assert outcome.status == 0
    notice, hint, said, done = outcome.err.splitlines()
    assert notice.startswith("notice: TIMEOUT_NEEDED: the last rows wait for newer ones when the streams fall silent")
    assert hint.strip() == "hint:   Declare TIMEOUT on one of the streams to make them final."
    assert said == "running 1 query for 0.5 seconds; Ctrl-C ends it"
    assert re.fullmatch(r"[03] rows in; out: counts 0", done)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_between_two_ticks(script: Callable, tmp_path: Path, end: signal.Signals):
    place = script("SELECT auction FROM bid CONSISTENCY MIDDLE;", path="bids")
    main = "from headwater.cli.main import main; main()"
    options = ["run", str(place), "--runner", "inprocess", "--checkpoint", str(tmp_path / "kept")]
    source = Path(__file__).resolve().parents[2] / "src"
    process = subprocess.Popen(
        [sys.executable, "-c", main, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], 120)
    assert ready, "it never answered"
    process.send_signal(end)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 0
    assert told.splitlines()[-2:] == [
        "running 1 query; Ctrl-C ends it",
        "3 rows in; out: query 3; the same command goes on from here",
    ]


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["SELECT nothing FROM bid;"], 'UNKNOWN_COLUMN: column "nothing" does not exist\n'),
        ([], "NO_QUERY: the script has no query\n  hint:   Add a SELECT, or CREATE STREAM name AS SELECT …\n"),
        (
            ["CREATE STREAM s (x INT);", "SELECT x FROM s;"],
            'NO_SOURCE: stream "s" has no source, so nothing would ever come\n'
            "  hint:   Declare one: SOURCE parquet('folder'). Recorded streams run with headwater replay.\n",
        ),
        (
            ["CREATE STREAM query AS SELECT auction FROM bid;", "SELECT price FROM bid;"],
            'DUPLICATE_NAME: two queries are called "query"\n  hint:   Give the stream another name.\n',
        ),
    ],
)
def test_a_mistake_in_the_script_is_one_message(script: Callable, run: Callable, statements: list[str], message: str):
    outcome = run(script(*statements))
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(message)


def test_a_folder_that_is_not_there_is_said_before_anything_starts(script: Callable, run: Callable):
    outcome = run(script(DEAR, path="nowhere"))
    assert outcome.status == 2
    assert outcome.err.startswith('NO_SUCH_FOLDER: source csv of stream "bid": ')


def test_a_malformed_row_stops_it_with_one_message(script: Callable, run: Callable, tmp_path: Path):
    (tmp_path / "bids" / "1.csv").write_text("1,9.5,3\n1,cheap,4\n")
    outcome = run(script(DEAR))
    assert outcome.status == 2
    assert outcome.err.startswith('BAD_ROW: stream "bid"')
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "csv"], 'WRONG_FORMAT: the terminal cannot show the format "csv"\n'),
        (["--output", "out", "--format", "table"], 'WRONG_FORMAT: files cannot have the format "table"\n'),
    ],
)
def test_formats_fit_where_answers_go(script: Callable, run: Callable, options: list[str], message: str):
    outcome = run(script(DEAR), *options)
    assert outcome.status == 2
    assert outcome.err.startswith(message)


def test_a_script_that_is_not_there(run: Callable, tmp_path: Path):
    outcome = run(tmp_path / "none.sql")
    assert outcome.status == 2
    assert outcome.err.startswith("UNREADABLE: ")
