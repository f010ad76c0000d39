"""Lengths have the unit that the time of the streams has, and a query reads streams of one kind of time."""

from __future__ import annotations

import re

import pytest

from headwater.errors import SqlError
from headwater.language.binder import bind_script

STREAMS = """
CREATE STREAM n (x INT, at INT) ORDERED BY at;
CREATE STREAM t (x INT, ts TIMESTAMP) ORDERED BY ts DISORDER 0 LATE ROWS DIVERT INTO t_late;
CREATE STREAM d (x INT, day DATE) ORDERED BY day;
CREATE STREAM u (x INT);
CREATE TABLE r (x INT);
"""

OVER_TIMESTAMPS = {
    "SELECT x FROM t [RANGE 5]": "RANGE 5 SECONDS",
    "SELECT x FROM t [RANGE 1]": "RANGE 1 SECOND",
    "SELECT x FROM d [RANGE 7]": "RANGE 7 SECONDS",
    "SELECT x FROM t_late [RANGE 7]": "RANGE 7 SECONDS",
    "SELECT x FROM t [RANGE 5 SECONDS SLIDE 2]": "SLIDE 2 SECONDS",
    "SELECT x FROM t [RANGE MIN 2, MAX 5 SECONDS]": "MIN 2 SECONDS",
    "SELECT x FROM t [RANGE 5 SECONDS] GRANULARITY(4)": "GRANULARITY(4 SECONDS)",
    "SELECT x FROM t WINDOW(PARTITION BY x SESSION 3)": "SESSION 3 SECONDS",
    "SELECT x FROM ISTREAM((SELECT x FROM t [RANGE 2 SECONDS])) [RANGE 3]": "RANGE 3 SECONDS",
    "SELECT x FROM TUMBLE(TABLE t, DESCRIPTOR(ts), 5)": "5 SECONDS",
    "SELECT x FROM HOP(TABLE t, DESCRIPTOR(ts), 5, 10 SECONDS)": "5 SECONDS",
    "SELECT x FROM SESSION(TABLE t, DESCRIPTOR(ts), 5)": "5 SECONDS",
    "SELECT COUNT(*) AS n FROM t GROUP BY window(ts, 5)": "'5 SECONDS'",
    "SELECT x FROM t CONSISTENCY BLOCK 2 REMEMBER 5 SECONDS": "BLOCK 2 SECONDS",
    "SELECT x FROM t EMIT EVERY 2": "EMIT EVERY 2 SECONDS",
    "CREATE STREAM v (ts TIMESTAMP) ORDERED BY ts DISORDER 2": "DISORDER 2 SECONDS",
    "CREATE STREAM v (ts TIMESTAMP) ORDERED BY ts LAGS t BY AT MOST 2": "2 SECONDS",
}


@pytest.mark.parametrize(("text", "written"), OVER_TIMESTAMPS.items(), ids=OVER_TIMESTAMPS)
def test_timestamps_are_counted_with_a_unit(text: str, written: str):
    with pytest.raises(SqlError, match="needs a unit") as caught:
        bind_script(STREAMS + text)
    assert caught.value.code == "TIME_UNIT"
    assert caught.value.hint == f"For example: {written}."


@pytest.mark.parametrize("text", OVER_TIMESTAMPS, ids=OVER_TIMESTAMPS)
def test_what_the_hint_says_can_be_written(text: str):
    with pytest.raises(SqlError) as caught:
        bind_script(STREAMS + text)
    at = caught.value.column - 1
    written = "'{} SECONDS'" if caught.value.hint.endswith("'.") else "{} SECONDS"
    mended = text[:at] + re.sub(r"\d+", lambda found: written.format(found[0]), text[at:], count=1)
    bind_script(STREAMS + mended)


OVER_NUMBERS = {
    "SELECT x FROM n [RANGE 1 MINUTE]": "RANGE 60",
    "SELECT x FROM n [RANGE 10 SLIDE 5 SECONDS]": "SLIDE 5",
    "SELECT x FROM n WINDOW(PARTITION BY x SESSION 3 HOURS)": "SESSION 10800",
    "SELECT x FROM TUMBLE(TABLE n, DESCRIPTOR(at), INTERVAL '5' SECONDS)": "5",
    "SELECT COUNT(*) AS n FROM n GROUP BY window(at, '10 minutes')": "600",
    "SELECT x FROM n CONSISTENCY BLOCK 2 SECONDS REMEMBER 5": "BLOCK 2",
    "CREATE STREAM v (at BIGINT) ORDERED BY at DISORDER 2 SECONDS": "DISORDER 2",
}


@pytest.mark.parametrize(("text", "written"), OVER_NUMBERS.items(), ids=OVER_NUMBERS)
def test_plain_numbers_are_counted_without_one(text: str, written: str):
    with pytest.raises(SqlError, match="takes no unit") as caught:
        bind_script(STREAMS + text)
    assert caught.value.code == "TIME_UNIT"
    assert caught.value.hint.startswith(f"Write {written} if they count seconds, ")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x FROM u [RANGE 5]",
        "SELECT x FROM u [RANGE 5 SECONDS]",
        "SELECT x FROM u WINDOW(SESSION 5 SECONDS)",
        "SELECT x FROM r [RANGE 5]",
        "SELECT x FROM u CONSISTENCY BLOCK 2 REMEMBER 5",
        "SELECT x FROM t [ROWS 5]",
        "SELECT x FROM t [NOW]",
        "SELECT x FROM n [RANGE UNBOUNDED]",
        "SELECT x FROM t CONSISTENCY WEAK REMEMBER 5 SECONDS BY WALL CLOCK",
        "SELECT x FROM n CONSISTENCY WEAK REMEMBER 5 SECONDS BY WALL CLOCK",
        "SELECT x FROM HOP(TABLE t, DESCRIPTOR(ts), 1 SECOND, 2 SECONDS, 0)",
        "SELECT u.x FROM u [RANGE 5] JOIN n [RANGE 5] ON u.x = n.x JOIN r ON r.x = u.x",
        "SELECT u.x FROM u [RANGE 5 SECONDS] JOIN t [RANGE 5 SECONDS] ON u.x = t.x JOIN r ON r.x = u.x",
        "SELECT t.x FROM t [RANGE 1 DAY] JOIN d [RANGE 1 DAY] ON d.x = t.x",
        "SELECT t.x FROM t JOIN (VALUES (1)) AS v(x) ON t.x = v.x",
    ],
)
def test_what_has_no_time_column_goes_with_both(text: str):
    bind_script(STREAMS + text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT t.x FROM t [RANGE 1 MINUTE] JOIN n [RANGE 5] ON t.x = n.x",
        "SELECT x FROM t UNION ALL SELECT x FROM n",
        "SELECT x FROM n WHERE EXISTS (SELECT 1 FROM d WHERE d.x = n.x)",
        "CREATE STREAM v AS SELECT x FROM n; SELECT x FROM t_late EXCEPT SELECT x FROM v",
    ],
)
def test_streams_of_two_kinds_of_time_are_in_no_query(text: str):
    with pytest.raises(SqlError, match='has TIMESTAMPs, and "n" counts time in plain numbers') as caught:
        bind_script(STREAMS + text)
    assert caught.value.code == "TIME_UNIT"
    assert "ORDERED BY timestamp_millis(at)" in caught.value.hint
    bind_script(
        STREAMS.replace("at INT) ORDERED BY at", "at BIGINT) ORDERED BY timestamp_millis(at)")
        + text.replace("[RANGE 5]", "")
    )
