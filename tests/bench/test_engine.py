"""The comparison with other engines: its data is frozen, its answers are compared, its tables say what was found."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet
import pytest
from rich.console import Console

from benchmarks.engine import flink_env, latency, report
from benchmarks.engine.answers import digest
from benchmarks.engine.cases import CASES, Cannot
from benchmarks.engine.comparison import compare
from benchmarks.engine.competitor import Competitor, Digest, Measured, Skipped
from benchmarks.engine.data import BID, frozen_data, make_bids
from benchmarks.engine.duckdb_side import DuckDBSide
from benchmarks.engine.flink_runner import _reason
from benchmarks.engine.headwater_side import HeadwaterSide, Ticking
from benchmarks.engine.worker import Worker, WorkerFailedError
from headwater.engine import connect
from headwater.errors import InputError

ROWS = 400_000
"""80 s of bids: windows of a minute fill and move on."""


def in_process(checkpoint, *, small_tick=0):
    return connect(runner="inprocess", shards=2, checkpoint=checkpoint)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def data(cache):
    return frozen_data(ROWS, cache)


# -- data -------------------------------------------------------------------------------------------------------------


def test_the_rows_are_the_same_on_every_machine(data):
    assert data.checksum == "bac9f016"
    assert (data.bids, data.auctions, data.files) == (ROWS, 40_000 + ROWS // 15, 8)


def test_bids_are_late_by_less_than_two_seconds_and_few_of_them_are():
    time = make_bids(ROWS).column("ts").cast(pa.int64()).to_numpy()
    behind = np.maximum.accumulate(time) - time
    assert 1_500 < behind.max() < 2_000
    assert 0.015 < (behind > 0).mean() < 0.025


def test_about_half_of_the_bids_come_while_their_auction_is_open(data):
    case = next(c for c in CASES if c.name == "join")
    found = DuckDBSide().run(case, data, "parquet", answer=Path("unused"))
    everything = DuckDBSide().run(CASES[0], data, "parquet", answer=Path("unused"))
    assert 0.4 < found.answer_digest.rows / everything.answer_digest.rows < 0.6


def test_parquet_and_csv_have_the_same_rows_in_the_same_order(data):
    names = arrow_csv.ReadOptions(column_names=BID.names)
    types = arrow_csv.ConvertOptions(column_types=BID)
    for one, other in zip(data.paths("bid", "parquet"), data.paths("bid", "csv"), strict=True):
        read = arrow_csv.read_csv(other, read_options=names, convert_options=types)
        assert parquet.read_table(one).cast(BID).equals(read)
        assert one.stat().st_mtime == other.stat().st_mtime


def test_files_get_younger_from_one_to_the_next(data):
    ages = [path.stat().st_mtime for path in data.paths("auction", "csv")]
    assert ages == sorted(set(ages))


def test_the_first_files_are_a_folder_of_their_own(data):
    first = data.prefix(3)
    assert (first.bids, first.files) == (3 * ROWS // 8, 3)
    assert len(first.paths("auction", "csv")) == 3
    assert data.prefix(8) == data
    newest = (
        parquet.read_table(first.folder("bid", "parquet"), columns=["ts"]).column(0).cast(pa.int64()).to_numpy().max()
    )
    assert first.until == newest // 1_000


def test_rows_are_dealt_out_in_turn_and_stay_in_order(data):
    first = data.prefix(2)
    lines = b"".join(path.read_bytes() for path in first.paths("bid", "csv")).splitlines()
    dealt = [path.read_bytes().splitlines() for path in sorted(first.dealt("bid", 2).iterdir())]
    assert dealt == [lines[0::2], lines[1::2]]


def test_a_cache_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="UNWRITABLE"):
        frozen_data(10_000, tmp_path / "file")


# -- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_headwater_answers_as_duckdb_does(case, data, tmp_path):
    ours = HeadwaterSide(tmp_path, in_process).run(case, data, "parquet", answer=tmp_path / "answer")
    theirs = DuckDBSide().run(case, data, "csv", answer=tmp_path)
    assert isinstance(ours, Measured), ours
    assert ours.answer_digest == theirs.answer_digest
    assert ours.answer_digest.rows > 0
    assert ours.rows == theirs.rows == data.rows(case.streams)


def test_headwater_reads_the_csv_files_as_well(data, tmp_path):
    side = HeadwaterSide(tmp_path, in_process)
    answers = [side.run(CASES[1], data, fmt, answer=tmp_path / fmt).answer_digest for fmt in side.formats]
    assert answers[0] == answers[1]


def test_a_digest_sees_a_row_that_is_missing_or_another(data, tmp_path):
    case = CASES[1]
    right = pa.table({"auction": [1, 2, 2], "price": [5, 6, 6], "ts": pa.array([BID_TIME] * 3, pa.timestamp("us"))})
    found = set()
    for k, table in enumerate((right, right.slice(1), right.set_column(1, "price", pa.array([5, 6, 7])))):
        (tmp_path / str(k)).mkdir()
        parquet.write_table(table, tmp_path / str(k) / "a.parquet")
        found.add(digest(case, data, tmp_path / str(k), fmt="parquet", intervals=False))
    assert len(found) == 3
    assert {d.rows for d in found} == {2, 3}


BID_TIME = 1_767_225_720_000_000


def test_an_answer_that_is_not_there_is_told(data, tmp_path):
    with pytest.raises(InputError, match="NO_ANSWER"):
        digest(CASES[0], data, tmp_path, fmt="parquet", intervals=False)


# -- the comparison ---------------------------------------------------------------------------------------------------


_ANSWER = Digest(7, 1)


class Pretended(Competitor):
    """Takes a fixed time a row."""

    def __init__(self, name, a_second, log, *, formats=("parquet", "csv"), answer=_ANSWER, fails=()):
        self.name, self.formats = name, formats
        self._a_second, self._log, self._answer, self._fails = a_second, log, answer, fails

    def versions(self):
        return f"{self.name} 1"

    def run(self, case, data, fmt, *, answer=None, limit=3600):
        if isinstance(self._answer, Skipped):
            return self._answer
        if answer is not None:
            return Measured(data.rows(case.streams), 1.0, self._answer)
        if fmt in self._fails:
            return Skipped("it fell over")
        self._log.append((self.name, fmt, data.files))
        self._a_second *= 1.1  # every run is faster than the one before
        return Measured(data.rows(case.streams), data.rows(case.streams) / self._a_second)


def found(data, *competitors, **options):
    return compare(competitors, [CASES[0]], data, data, **options)


def test_engines_take_turns_and_slow_ones_get_fewer_rows(data):
    log: list = []
    fast, slow = Pretended("Headwater", 4_000_000, log), Pretended("Flink", 20_000, log, formats=("csv",))
    comparison = found(data, fast, slow, repeat=2, limit=10)
    pilots = [("Headwater", "parquet", 2), ("Headwater", "csv", 2), ("Flink", "csv", 2)]
    a_round = [("Headwater", "parquet", 8), ("Headwater", "csv", 8), ("Flink", "csv", 4)]
    assert log == pilots + a_round * 2
    best = comparison.lines[0].best["Flink", "csv"]
    assert best.rows == ROWS // 2
    assert best.rate == pytest.approx(20 * 1.1**3)
    row = next(report.rows(comparison))
    assert row[3] == "27 (0.2 M)"
    assert "2 equal" in row


def test_what_an_engine_cannot_do_is_in_the_table_with_its_words(data):
    cannot = Pretended("Spark", 1, [], answer=Skipped("[NOT_SUPPORTED] no such window", cannot=True))
    falls = Pretended("DuckDB", 1_000_000, [], fails=("csv",))
    comparison = found(data, Pretended("Headwater", 1_000_000, []), cannot, falls, repeat=1)
    text = report.as_markdown(comparison, "headwater bench engine")
    assert "| cannot | cannot |" in text
    assert "Spark cannot: [NOT\\_SUPPORTED] no such window" in text
    assert "DuckDB failed with csv: it fell over" in text


def test_an_answer_that_could_not_be_written_down_does_not_keep_an_engine_from_being_measured(data, monkeypatch):
    slow = Pretended("Flink", 1_000_000, [], formats=("csv",))
    run = slow.run
    monkeypatch.setattr(slow, "run", lambda *a, answer=None, **o: Skipped("too slow") if answer else run(*a, **o))
    comparison = found(data, Pretended("Headwater", 1_000_000, []), slow, repeat=1)
    assert comparison.lines[0].rate("Flink", "csv") > 0
    assert "not compared" in next(report.rows(comparison))
    assert any("Flink failed: too slow" in note for note in report.notes(comparison))


def test_answers_that_differ_cannot_be_overlooked(data):
    other = Pretended("DuckDB", 1_000_000, [], answer=Digest(7, 2))
    comparison = found(data, Pretended("Headwater", 1_000_000, []), other, repeat=1)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(report.as_table(comparison))
    shown = console.export_text()
    assert "DIFFER" in shown
    assert "ANSWERS DIFFER: Headwater 7 rows" in shown


def test_every_case_is_told_for_every_engine():
    for case in CASES:
        for query in (case.flink, case.spark):
            assert query.reason if isinstance(query, Cannot) else "SELECT" in query
    assert len({case.name for case in CASES}) == len(CASES)


# -- other processes --------------------------------------------------------------------------------------------------

_ECHO = 'import sys; print(\'{"ready": "echo"}\', flush=True)\nfor line in sys.stdin: print(line.strip(), flush=True)'
_MUTE = 'import sys; print(\'{"ready": "mute"}\', flush=True); sys.stdin.read()'
_DIES = "import sys; print('{\"ready\": \"dies\"}', flush=True); sys.stdin.readline(); sys.exit('no more memory')"


def test_a_worker_answers_and_ends():
    worker = Worker([sys.executable, "-c", _ECHO])
    assert worker.start() == "echo"
    assert worker.ask({"a": "ü"}, 60) == {"a": "ü"}
    process = worker._process
    worker.close()
    assert process.returncode == 0


def test_a_worker_that_takes_too_long_is_killed_and_started_again():
    worker = Worker([sys.executable, "-c", _MUTE])
    worker.start()
    with pytest.raises(WorkerFailedError, match="within 0 s"):
        worker.ask({}, 0.01)
    with pytest.raises(WorkerFailedError, match="within 0 s"):
        worker.ask({}, 0.01)
    worker.close()


def test_a_worker_that_ends_says_why():
    worker = Worker([sys.executable, "-c", _DIES])
    with pytest.raises(WorkerFailedError, match="no more memory"):
        worker.ask({}, 60)
    worker.close()


def test_an_error_of_java_is_told_without_its_stack():
    text = "An error occurred while calling o1.\n: org.a.B: outer\n\tat c.d(E.java)\nCaused by: f.G: inner\n\tat h.i(J.java)"
    assert _reason(Exception(text)) == "f.G: inner"


def test_a_flink_that_cannot_be_installed_leaves_nothing(tmp_path, monkeypatch):
    def refuse(command, purpose):
        if "pip" in command:
            raise flink_env.NoFlinkError(f"could not {purpose}: no network")

    monkeypatch.setattr(flink_env, "_run", refuse)
    with pytest.raises(flink_env.NoFlinkError, match="could not install Flink"):
        flink_env.flink_python(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_python_that_flink_does_not_know_is_not_used(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(flink_env.NoFlinkError, match=r"runs on Python 3\.9, 3\.10, 3\.11, 3\.12"):
        flink_env._interpreter()


# -- ticks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", [False, True], ids=["pushed", "files"])
def test_ticks_can_be_measured_for_any_number_of_stages_and_queries(job, tmp_path):
    def open_(queries, streams, *, job):
        return Ticking(in_process, tmp_path, queries, streams, job=job)

    for queries in ([latency.staged(4)], latency.alike(3), latency.unlike(3)):
        measured = latency.small_ticks(open_, queries, job=job, ticks=3)
        assert 0 < measured.median <= measured.worst
    for case in latency.GROWING:
        assert latency.grown_ticks(open_, case, 20_000, job=job, ticks=2).median > 0
    assert list(tmp_path.iterdir()) == []


def test_the_state_grows_to_what_was_asked_for(tmp_path):
    case = latency.GROWING[0]
    rows = latency.Rows(case.streams, 100, 1_000)
    with Ticking(in_process, tmp_path, [case.query.format(live=5_000)], case.streams, job=False) as ticking:
        for _ in range(4):
            ticking.tick(rows.take(5_000))
        kept = ticking._engine.runs["q0"].progress.state_rows
    assert 5_000 <= kept <= 12_000


class Instant:
    """Ticks that take one millisecond per query."""

    def __init__(self, queries, streams, *, job):
        self._seconds = len(queries) / 1_000

    def tick(self, batches):
        return self._seconds

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_the_tables_of_ticks_say_how_they_grow():
    tables = latency.run(Instant, largest=100_000, ticks=2)
    text = latency.as_markdown(tables, "headwater bench engine --latency")
    assert "| alike | in the driver | 1 (1) | 10 (10) | 50 (50) | 50.0x |" in text
    assert "| join | as a Spark job | 1 (1) | 1.00x |" in text
