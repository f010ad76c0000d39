"""Notices are seen: as warnings in Python, at the user's line."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw

FOR_EVER = "SELECT item, COUNT(*) AS n FROM bid [RANGE UNBOUNDED] GROUP BY item"


@pytest.fixture
def engine() -> Iterator[hw.Engine]:
    with hw.connect(runner="inprocess") as engine:
        engine.sql("CREATE STREAM bid (item STRING, price INT, at INT) ORDERED BY at IN ORDER TIMEOUT 1 SECOND")
        yield engine


def test_a_notice_is_a_warning_at_the_line_of_the_call(engine: hw.Engine):
    with pytest.warns(hw.HeadwaterNotice, match="UNBOUNDED_STATE") as seen:
        engine.sql(FOR_EVER)
    assert [Path(warning.filename).name for warning in seen] == ["test_notices.py"]
    with pytest.warns(hw.HeadwaterNotice, match="UNBOUNDED_STATE") as seen:
        engine.script(FOR_EVER)
    assert [Path(warning.filename).name for warning in seen] == ["test_notices.py"]


def test_a_query_without_notices_is_silent(engine: hw.Engine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.sql("SELECT item, COUNT(*) AS n FROM bid [RANGE 5] GROUP BY item").start()


def test_what_is_known_when_a_query_starts_is_seen_too(engine: hw.Engine):
    engine.sql("CREATE STREAM sold (item STRING, at INT) ORDERED BY at")
    query = engine.sql("SELECT item FROM sold")
    with pytest.warns(hw.HeadwaterNotice, match='WARMUP: nothing of stream "sold" is final before') as seen:
        run = query.start()
    assert [str(warning.message) for warning in seen] == [str(notice) for notice in run.notices]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert query.start().notices == run.notices  # which are about the stream, and have been said


def test_of_several_selects_one_is_returned_and_the_others_are_not_dropped_silently(engine: hw.Engine):
    text = "SELECT item FROM bid; SELECT price FROM bid"
    with pytest.warns(hw.HeadwaterNotice, match="SEVERAL_QUERIES: of 2 SELECTs"):
        query = engine.sql(text)
    assert query.schema.names == ("price",)
    both = engine.script(text)
    assert [(q.name, q.schema.names) for q in both.queries] == [("query_1", ("item",)), ("query", ("price",))]
    runs = [q.start() for q in both.queries]
    engine.push("bid", [{"item": "lamp", "price": 20, "at": 1}], frontier=5)
    assert [run.name for run in runs] == ["query_1", "query"]
    assert [run.snapshot(at=1).rows() for run in runs] == [[{"item": "lamp"}], [{"price": 20}]]


def test_a_script_in_a_terminal_sees_it_once_with_its_line(tmp_path: Path):
    script = tmp_path / "program.py"
    script.write_text(
        "import headwater as hw\n"
        "engine = hw.connect(runner='inprocess')\n"
        "engine.sql('CREATE STREAM bid (item STRING, at INT) ORDERED BY at')\n"
        "for _ in range(3):\n"
        "    engine.sql('SELECT COUNT(*) AS n FROM bid [RANGE UNBOUNDED]')\n"
        "engine.close()\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stderr.count("UNBOUNDED_STATE") == 1
    assert "program.py:5: HeadwaterNotice: notice: UNBOUNDED_STATE" in done.stderr
