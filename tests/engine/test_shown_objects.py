"""What users see: names in ``dir``, objects that show themselves, tracebacks that end at their line."""

from __future__ import annotations

import pickle
import subprocess
import sys
import traceback
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.result import Listing, Result, Text


@pytest.fixture
def engine():
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM bid (auction INT, at INT) ORDERED BY at DISORDER 2")
        yield engine


def test_dir_shows_the_interface_and_nothing_else():
    assert dir(hw) == sorted([*hw.__all__, "__version__"])
    assert all(getattr(hw, name) is not None for name in dir(hw))


def test_show_and_describe_are_tables_of_texts(engine: hw.Engine):
    shown = engine.sql("SHOW STREAMS")
    assert isinstance(shown, str)
    assert isinstance(shown, Listing)
    assert repr(shown) == str(shown)
    assert str(shown).splitlines()[0].startswith("stream")
    assert [row["stream"] for row in shown.rows()] == ["bid"]
    assert shown.to_arrow().column("stream").to_pylist() == ["bid"]
    assert "<td>auction INT, at INT</td>" in shown._repr_html_()
    assert engine.sql("SHOW VIEWS").to_arrow().num_rows == 0
    again = pickle.loads(pickle.dumps(shown))
    assert (again, again.rows()) == (shown, shown.rows())
    assert [row["column"] for row in engine.sql("DESCRIBE bid").rows()] == ["auction", "at"]


def test_a_plan_is_a_text_that_shows_itself(engine: hw.Engine):
    for plan in (engine.sql("EXPLAIN SELECT auction FROM bid"), engine.sql("SELECT auction FROM bid").explain()):
        assert isinstance(plan, Text)
        assert repr(plan) == str(plan)
        assert plan._repr_html_().startswith("<pre>")


def test_what_users_hold_says_what_it_is(engine: hw.Engine):
    query = engine.sql("SELECT auction FROM bid")
    assert repr(query) == "<Query query (auction INT): .start() lets it run, .explain() says how>"
    run = query.start()
    assert repr(run) == "<Run query: running, 0 rows, nothing is final yet>"
    engine.push("bid", [{"auction": 1, "at": 3}, {"auction": 1, "at": 9}])
    assert repr(run) == "<Run query: running, 2 rows, final before 7>"
    assert repr(engine) == "<Engine in process: 1 streams and tables, 1 of 1 queries run>"
    run.stop()
    assert repr(run) == "<Run query: stopped, 2 rows, final before 7>"
    engine.close()
    assert repr(engine) == "<Engine in process: 1 streams and tables, closed>"


def frames_of(problem: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(problem.__traceback__)]


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have left one."""
    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda _: None))


@pytest.mark.usefixtures("no_session")
def test_a_mistake_ends_at_the_users_line(engine: hw.Engine):
    here = "test_a_mistake_ends_at_the_users_line"
    query = engine.sql("SELECT auction FROM bid")
    mistakes = [
        lambda: engine.sql("SELECT nothing FROM bid"),
        lambda: engine.push("bid", [{"wrong": 1}]),
        lambda: hw.connect(runner="none"),
        lambda: query.start(name="q").set_consistency("WEAKER"),
        lambda: Result(pa.table({})).to_spark(),
    ]
    for mistake in mistakes:
        with pytest.raises(hw.HeadwaterError) as caught:
            mistake()
        assert frames_of(caught.value) == [here, "<lambda>", "called"]
        assert caught.value.__cause__ is None
        assert caught.value._render_traceback_() == str(caught.value).splitlines()


def test_what_a_function_of_the_user_raised_stays_the_cause(engine: hw.Engine):
    def broken(x: pa.Array) -> pa.Array:
        raise ZeroDivisionError("mine")

    engine.create_function("broken", broken, {"x": "INT"}, "INT")
    engine.sql("SELECT broken(auction) AS b FROM bid").start()
    with pytest.raises(hw.HeadwaterError) as caught:
        engine.push("bid", [{"auction": 1, "at": 3}])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "broken" in frames_of(caught.value.__cause__)


def test_a_script_prints_its_own_line_and_the_message():
    program = "import headwater as hw\nengine = hw.connect(runner='inprocess')\nengine.sql('SELECT x FROM nowhere')\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.count("File ") == 2
    assert 'UNKNOWN_STREAM: stream "nowhere" does not exist' in done.stderr


@pytest.mark.usefixtures("no_session")
def test_to_spark_needs_a_session_somewhere():
    with pytest.raises(hw.InputError, match="to_spark"):
        Result(pa.table({"x": [1]})).to_spark()


def test_polars_has_what_the_answer_has(engine: hw.Engine):
    polars = pytest.importorskip("polars")
    engine.sql(
        "CREATE STREAM t (ts TIMESTAMP, d DECIMAL(10,2), l ARRAY<INT>, s STRUCT<a: INT>, n BIGINT) ORDERED BY ts"
    )
    run = engine.sql("SELECT * FROM t").start()
    full = {"ts": datetime(2024, 1, 1, 8), "d": Decimal("1.50"), "l": [1, None], "s": {"a": 1}, "n": 2**60 + 1}
    empty = {**dict.fromkeys(full), "ts": datetime(2024, 1, 1, 9)}
    engine.push("t", [full, empty])
    engine.run_to_end()
    frame = run.history().to_polars().sort("ts")
    assert frame.select(list(full)).to_dicts() == [full, {**empty}]
    assert frame.schema["ts"] == polars.Datetime("us")
    assert frame.schema["d"] == polars.Decimal(10, 2)
    assert frame.schema["l"] == polars.List(polars.Int32)
    assert frame["n"].null_count() == 1
    engine.push(
        "bid", polars.DataFrame({"auction": [1], "at": [3]}, schema={"auction": polars.Int32, "at": polars.Int32})
    )
