"""Every query of the corpus gives the same history on Spark as its file says, which in process and the judges agree on.

All cases run at once, in one graph: a tick of Spark's costs about the same for one query and for hundreds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headwater.backends.spark.job import SparkExecutor
from headwater.backends.spark.session import SessionHandle
from headwater.backends.spark.ship import modules

QUERIES = Path(__file__).parent.parent / "queries"
sys.path.insert(0, str(QUERIES))

from query_together import differences, parts  # noqa: E402


def check(session: SessionHandle, folder: Path, *, shards: int, batch: int | None, speculative: bool = False) -> None:
    modules(session.spark, [QUERIES])  # functions of the users' are there
    executor = SparkExecutor(session)
    cases = list(parts(batch=batch, speculative=speculative))
    assert differences(cases, shards=shards, executor=executor, folder=folder) == []


def test_two_shards(session: SessionHandle, tmp_path: Path):
    check(session, tmp_path, shards=2, batch=20)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [None, 6])
def test_five_shards(batch: int | None, session: SessionHandle, tmp_path: Path):
    check(session, tmp_path, shards=5, batch=batch)


@pytest.mark.slow
def test_at_once_and_repaired(session: SessionHandle, tmp_path: Path):
    check(session, tmp_path, shards=2, batch=4, speculative=True)
