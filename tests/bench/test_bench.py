"""The benchmarks run, and what they measure is right; how fast it is, no test says."""

from __future__ import annotations

from inspect import isabstract
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from benchmarks import drift, files, kernels, planner, state
from benchmarks.cases import CASES, ticks
from benchmarks.data import make_auctions, make_bids
from headwater.cli import main
from headwater.operators.base import Operator
from headwater.operators.rows.constant import ConstantOperator
from headwater.state.store import FileStore, MemoryStore

BIDS, AUCTIONS = make_bids(30_000), make_auctions(30_000)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_every_operator_and_its_query_can_be_measured(case):
    assert kernels.measure(case, BIDS, AUCTIONS, 10_000)[0] > 0
    theirs = kernels.measure_duckdb(case, BIDS, AUCTIONS)
    assert (theirs is None) == (case.sql is None)


def test_every_stateful_operator_is_measured():
    ours = [kind for kind in below(Operator) if kind.__module__.startswith("headwater.")]  # tests have some, too
    stateful = {kind for kind in ours if kind.new_state is not Operator.new_state and not isabstract(kind)}
    bases = {kind for kind in stateful if kind.__subclasses__() and kind.__name__.startswith(("_", "Sweep", "Pool"))}
    kept_by_nobody = {ConstantOperator}  # rows that it was made with
    assert stateful - bases - kept_by_nobody == {type(case.make()) for case in CASES}


def below(kind: type) -> set[type]:
    return {found for sub in kind.__subclasses__() for found in (sub, *below(sub))}


def test_the_join_finds_as_many_pairs_as_duckdb():
    case = next(c for c in CASES if c.title == "window join")
    operator = case.make()
    kept = operator.new_state(MemoryStore())
    ours = sum(len(operator.step(kept, *tick).delta) for tick in ticks(case, BIDS, AUCTIONS, 7_000))
    reached = int(BIDS.time.max())
    with duckdb.connect() as connection:
        open_by_then = AUCTIONS.time <= reached
        tables = {
            "bid": pa.table({"auction": BIDS.auction, "price": BIDS.price, "ts": BIDS.time}),
            "auction": pa.table(
                {n: c[open_by_then] for n, c in zip(("auction", "seller", "ts"), AUCTIONS, strict=True)}
            ),
        }
        for name, table in tables.items():
            connection.register(name, table)
        assert ours == len(connection.sql(case.sql).fetchall())


@pytest.mark.parametrize("case", state.CASES, ids=lambda case: case.title)
def test_ticks_can_be_measured_as_state_grows(case, tmp_path):
    for store in (MemoryStore(), FileStore(tmp_path)):
        median, worst, kept = state.measure(case, 20_000, store)
        assert 0 < median <= worst
        assert 8 < kept.bytes / 20_000 < 120


def test_a_folder_of_many_files(tmp_path: Path):
    (tmp_path / "few").mkdir()
    few, many = (files.measure(tmp_path / name, count) for name, count in (("few", 10), ("", 1000)))
    assert many[-1] < few[-1] + 500, "what is remembered of files is no part of the offset"


def test_a_sliding_sum_does_not_drift():
    sizes, worst = drift.run_drift(600_000)
    assert worst < 1e-9
    assert max(sizes) < 1.5 * np.median(sizes)


@pytest.mark.slow
def test_a_sliding_sum_over_ten_million_elements_stays_flat_and_exact():
    sizes, worst = drift.run_drift(10_000_000)
    assert worst < 1e-9
    half = len(sizes) // 2
    assert max(sizes[half:]) <= 1.1 * max(sizes[:half])


def test_planning_can_be_measured():
    table = planner.run(1)
    assert [str(cell) for cell in table.columns[0].cells] == list(planner.QUERIES)


def test_the_largest_query_of_the_corpus_is_smaller_than_the_one_that_is_measured():
    corpus = Path(__file__).parents[1] / "queries"
    queries = [q for path in corpus.glob("*.test") for q in path.read_text(encoding="utf-8").split("\n----")]
    largest = max(len(q[q.rfind("\n[") :]) for q in queries)
    assert largest < len(planner.QUERIES["largest"])


def test_an_installed_package_says_where_the_benchmarks_are(monkeypatch, tmp_path):
    monkeypatch.setattr(main, "__file__", str(tmp_path / "site-packages/headwater/cli/main.py"))
    done = CliRunner().invoke(main.app, ["bench", "kernels", "--rows", "100000"])
    assert done.exit_code == main.USER_ERROR
    assert "run bin/headwater bench in a checkout" in done.output
