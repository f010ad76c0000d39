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
from typing import IO

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


def test_every_named_query_and_every_select_run_and_print_lines(script: Callable, run: Callable):
    outcome = run(script(COUNTS, "SELECT 1 AS one FROM bid;", DEAR))
    assert outcome.status == 0
    found = {name: [] for name in ("counts", "query_1", "query")}
    for line in outcome.lines:
        found[line.pop("_query")].append(line)
    assert sorted(found["counts"], key=str) == COUNTED
    assert sorted(found["query"], key=lambda r: r["_start"]) == DEAREST
    assert [line["one"] for line in found["query_1"]] == [1, 1, 1]
    assert outcome.err == "3 rows in; out: counts 4, query_1 3, query 2\n"


def test_a_query_without_streams_is_answered_and_ends(tmp_path: Path, run: Callable):
    (tmp_path / "one.sql").write_text("SELECT 1 + 1 AS x")
    outcome = run(tmp_path / "one.sql")
    assert outcome.lines == [{"_query": "query", "x": 2, "_start": "1970-01-01T00:00:00", "_end": None}]
    assert outcome.err == "0 rows in; out: query 1\n"


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


def test_a_query_of_any_name_writes_inside_of_the_output(script: Callable, run: Callable, tmp_path: Path):
    names = ["../outside", f"{tmp_path}/absolute", "a/b", ".."]
    queries = [f"CREATE STREAM `{name}` AS SELECT auction FROM bid;" for name in names]
    assert run(script(*queries), "--output", tmp_path / "in" / "out").status == 0
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "absolute").exists()
    assert [p.name for p in (tmp_path / "in").iterdir()] == ["out"]
    folders = list((tmp_path / "in" / "out").iterdir())
    assert len(folders) == len(names)
    assert [len(pq.read_table(folder)) for folder in folders] == [3] * len(names)


def test_a_script_of_views_alone_runs_nothing(script: Callable, run: Callable, replay: Callable):
    view = "CREATE VIEW dear AS SELECT * FROM bid WHERE price > 9;"
    hint = "A view is only a name: add SELECT * FROM dear; or make it a STREAM."
    said = f"NO_QUERY: the script has no query\n  hint:   {hint}\n"
    assert (run(script(view)).status, run(script(view)).err) == (2, said)
    bids = "CREATE STREAM bid (auction INT, price DOUBLE, at INT); "
    line = {"stream": "bid", "kind": "insert", "at": 1, "row": {"auction": 1, "price": 10.0, "at": 1}}
    assert (replay(bids + view, [line]).status, replay(bids + view, [line]).err) == (2, said)
    both = replay(f"{bids}{view} CREATE STREAM all AS SELECT auction FROM bid;", [line])
    assert {found["stream"] for found in both.lines} == {"all"}


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
    assert second.err == "1 row in; out: counts 4; the streams stay open for the next run\n"
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


def test_a_query_that_changed_is_refused_or_begun_anew(script: Callable, run: Callable, tmp_path: Path):
    kept = ("--once", "--checkpoint", tmp_path / "kept")
    assert run(script(COUNTS, path="bids"), *kept).status == 0
    changed = script(COUNTS.replace("COUNT(*)", "COUNT(*) + 1"), path="bids")
    refused = run(changed, *kept)
    assert refused.status == 2
    assert refused.err.startswith(
        'QUERY_CHANGED: query "counts" is not the one that the checkpoint has under this name'
    )
    assert "Where it had" in refused.err
    assert "--restart-query counts" in refused.err
    assert run(changed, *kept, "--restart-query", "counts").status == 0
    assert run(changed, *kept).status == 0
    unknown = run(changed, *kept, "--restart-query", "count")
    assert unknown.err.startswith('UNKNOWN_QUERY: the checkpoint has no query "count" to restart')


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
    options = ["run", str(place), "--runner", "inprocess", "--checkpoint", str(tmp_path / "kept")]
    process = subprocess.Popen(
        _command(options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()
    )
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], 120)
    assert ready, "it never answered"
    process.send_signal(end)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 0
    assert told.splitlines()[-2:] == [
        "running 1 query; Ctrl-C ends it",
        "3 rows in; out: query 3; tick 1 is committed: the same command goes on from here",
    ]


@pytest.mark.parametrize("said", ["run", "explain"])
def test_what_cannot_be_written_is_one_message(script: Callable, said: str):
    place = script("SELECT auction FROM bid;")
    options = ["run", str(place), "--runner", "inprocess"] if said == "run" else ["explain", "--rules"]
    with open("/dev/full", "w") as full:
        ended = _ended(options, full)
    assert ended.returncode == 2
    assert ended.stderr == "UNWRITABLE: could not write its output, or what it keeps: No space left on device\n"


@pytest.mark.parametrize("said", ["run", "explain"])
def test_that_nobody_reads_is_not_worth_a_message(script: Callable, said: str):
    place = script("SELECT auction FROM bid;")
    options = ["run", str(place), "--runner", "inprocess"] if said == "run" else ["explain", "--rules"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        ended = _ended(options, gone)
    assert ended.returncode in (0, 1)
    assert ended.stderr == ""


def _ended(options: list[str], stdout: IO[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(options), check=False, stdout=stdout, stderr=subprocess.PIPE, text=True, env=_environment()
    )


def _command(options: list[str]) -> list[str]:
    return [sys.executable, "-c", "from headwater.cli.main import main; main()", *options]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}


def test_the_number_of_shards_has_a_limit(script: Callable, run: Callable):
    outcome = run(script("SELECT auction FROM bid;"), "--shards", "99999999999999999999")
    assert outcome.status == 2
    assert "4096" in outcome.err


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


def test_the_end_tells_which_bounds_rows_were_late_by_and_what_was_forgotten(run: Callable, tmp_path: Path):
    (tmp_path / "in").mkdir()
    for n, at in enumerate((100, 80, 4)):
        pq.write_table(pa.table({"at": pa.array([at], pa.int32())}), tmp_path / "in" / f"{n}.parquet")
    (tmp_path / "script.sql").write_text("""
        CREATE STREAM s (at INT) SOURCE parquet('in', rows_per_tick => 1) ORDERED BY at DISORDER 50;
        CREATE STREAM weak AS SELECT COUNT(*) AS n FROM s WINDOW(RANGE 5) CONSISTENCY WEAK;""")
    outcome = run(tmp_path / "script.sql", "--once", "--output", tmp_path / "out")
    assert outcome.status == 0
    assert "late in s: 1 by DISORDER 50\n" in outcome.err
    assert "forgotten by weak: 1 that came too far behind\n" in outcome.err
