"""The session: made or taken up, with the settings of ticks and without changing the user's."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest

import headwater
from headwater.backends.spark import session as session_module
from headwater.backends.spark import ship
from headwater.backends.spark.session import open_session, tick_settings
from headwater.errors import HeadwaterError


def describe_worker(batches):
    import os
    import sys

    import pyarrow as pa

    import headwater

    for batch in batches:
        known = {"MALLOC_TOP_PAD_", "PYTHONPATH"} & set(os.environ)
        answer = [batch.num_rows], [sys.executable], [headwater.__file__], [",".join(sorted(known))]
        yield pa.RecordBatch.from_arrays([pa.array(a) for a in answer], ["rows", "python", "package", "variables"])


SCHEMA = "rows long, python string, package string, variables string"


def test_a_batch_crosses_whole_into_the_interpreter_of_the_driver(spark):
    found = spark.range(250_000, numPartitions=2).mapInArrow(describe_worker, SCHEMA).toArrow().to_pylist()
    assert found == [
        {
            "rows": 125_000,
            "python": sys.executable,
            "package": headwater.__file__,
            "variables": "MALLOC_TOP_PAD_,PYTHONPATH",
        }
    ] * len(found)
    assert len(found) == 2


def test_the_environment_of_the_process_is_as_before(session):
    assert session.local
    assert session.shards == 2
    assert os.environ.get("PYSPARK_PYTHON") != sys.executable


def test_a_given_session_keeps_its_settings(session):
    theirs = session.spark.newSession()
    theirs.conf.set("spark.sql.adaptive.enabled", "true")
    theirs.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    theirs.createDataFrame([(1,)], "a int").createOrReplaceTempView("theirs")
    with open_session(spark=theirs, shards=5, config={"spark.sql.ansi.enabled": "false"}) as handle:
        assert handle.shards == 5
        ours = handle.spark
        assert {name: ours.conf.get(name) for name in tick_settings(5)} == tick_settings(5)
        assert ours.conf.get("spark.sql.ansi.enabled") == "false"
    assert theirs.conf.get("spark.sql.adaptive.enabled") == "true"
    assert theirs.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert theirs.table("theirs").count() == 1


def test_a_running_spark_is_taken_up_and_outlives_its_second_user(session, spark):
    second = open_session()
    assert second.spark.sparkContext is spark.sparkContext
    second.stop()
    second.stop()
    assert spark.range(3).count() == 3


def test_a_session_that_is_not_ours_is_never_stopped(spark, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_module, "_handles", {})
    with open_session(spark=spark) as handle:
        assert not handle.owned
    assert spark.range(3).count() == 3


def test_workers_of_a_given_session_run_the_interpreter_of_the_driver(spark, monkeypatch: pytest.MonkeyPatch):
    context = spark.sparkContext
    monkeypatch.setattr(session_module, "_handles", {})
    monkeypatch.setattr(context, "pythonExec", "python-that-is-not-there")
    monkeypatch.setattr(context, "environment", {})
    with open_session(spark=spark) as handle:
        found = handle.spark.range(2, numPartitions=1).mapInArrow(describe_worker, SCHEMA).toArrow().to_pylist()
    assert [row["python"] for row in found] == [sys.executable]


def test_another_session_gets_the_settings_of_a_tick(session):
    other = session.prepare(session.spark.newSession())
    assert other.conf.get("spark.sql.shuffle.partitions") == "2"
    assert other.conf.get("spark.sql.adaptive.enabled") == "false"


def test_one_process_has_one_spark(session):
    with pytest.raises(HeadwaterError) as caught:
        open_session("local[7]")
    assert str(caught.value) == (
        'SPARK_RUNNING: cannot start Spark on "local[7]": it runs on "local[2]" in this process\n'
        "  detail: A process has one Spark at most.\n"
        "  hint:   Stop that one first, or leave the master out to use it."
    )


def test_what_cannot_be_used_is_refused(session):
    with pytest.raises(HeadwaterError, match="BAD_SHARDS: cannot split keys into 0 shards"):
        open_session(shards=0)
    with pytest.raises(HeadwaterError, match="CONNECT_SESSION: cannot run on a session of Spark Connect"):
        open_session(spark=object())  # type: ignore[arg-type]


def test_missing_packages_are_named(spark, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ship, "REQUIRED", ("numpy", "numbaa", "duckbd"))
    with pytest.raises(HeadwaterError) as caught:
        ship.provide_package(spark)
    python = spark.sparkContext.pythonExec
    assert str(caught.value) == (
        "WORKER_PACKAGES: the Python of Spark's workers lacks duckbd, numbaa\n"
        f'  detail: It is "{python}" of this machine.\n'
        f"  hint:   Wherever tasks run: {python} -m pip install duckbd numbaa"
    )


def test_a_python_that_is_not_there_is_named(spark, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python3")
    with pytest.raises(HeadwaterError, match='WORKER_PYTHON: there is no "/nowhere/python3"'):
        ship.provide_package(spark)


def test_modules_of_the_user_are_found_by_the_workers(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spark.sparkContext, "environment", dict(spark.sparkContext.environment))
    (tmp_path / "users_own_module.py").write_text("FACTOR = 21\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()

    def multiply(batches):
        import pyarrow as pa
        from users_own_module import FACTOR

        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([FACTOR * batch.num_rows])], ["id"])

    ship.modules(spark, [tmp_path])
    ship.modules(spark, [tmp_path / "users_own_module.py"])
    assert spark.range(2, numPartitions=1).mapInArrow(multiply, "id long").toArrow()["id"].to_pylist() == [42]
    with pytest.raises(HeadwaterError, match="NO_MODULES: there is no folder or file"):
        ship.modules(spark, [tmp_path / "nothing"])
