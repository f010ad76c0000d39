"""Windows over aggregates (Golab 3.4) and over granularities (Krämer 20.5)."""

from __future__ import annotations

import pytest

from headwater.errors import SqlError
from headwater.language.binder import bind_script

STREAMS = """
CREATE STREAM n (x INT, at INT) ORDERED BY at;
CREATE STREAM t (x INT, ts TIMESTAMP) ORDERED BY ts;
CREATE STREAM u (x INT);
CREATE STREAM h AS SELECT x, COUNT(*) AS c FROM n [RANGE 5] GROUP BY x;
"""


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(p) AS s FROM (SELECT SUM(x) AS p FROM n [RANGE 2 SLIDE 2]) [ROWS 2]",
        "SELECT SUM(p) AS s FROM (SELECT SUM(x) AS p FROM t [RANGE 2 SECONDS]) [RANGE 3 SECONDS]",
        "SELECT SUM(p) AS s FROM (SELECT x, SUM(x) + 1 AS p FROM u [RANGE 3] GROUP BY x HAVING COUNT(*) > 1) [RANGE 3]",
        "SELECT * FROM h [PARTITION BY x ROWS 1]",
        "SELECT * FROM h [RANGE UNBOUNDED]",
        "SELECT COUNT(*) AS n FROM (SELECT COUNT(*) AS c FROM TUMBLE(TABLE n, DESCRIPTOR(at), 5)) [ROWS 2]",
    ],
)
def test_an_aggregate_that_is_windowed_again_is_refused(text: str):
    with pytest.raises(SqlError, match="cannot be windowed again") as caught:
        bind_script(STREAMS + text)
    assert caught.value.code == "EXTERNAL_AGGREGATE"
    assert "INTERNAL" in caught.value.hint
    assert "FROM ISTREAM((SELECT …)) [" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(p) AS s FROM (SELECT SUM(x) AS p FROM n [RANGE 2 SLIDE 2 INTERNAL]) [ROWS 2]",
        "SELECT SUM(p) AS s FROM ISTREAM((SELECT SUM(x) AS p FROM n [RANGE 2 SLIDE 2])) [ROWS 2]",
        "SELECT SUM(Wstream(SUM(x))[ROWS 2]) AS s FROM n [RANGE 2 SLIDE 2]",
        "SELECT SUM(p) AS s FROM (SELECT window_end, SUM(x) AS p FROM TUMBLE(TABLE n, DESCRIPTOR(at), 5) "
        "GROUP BY window_end) [ROWS 2]",
        "SELECT SUM(p) AS s FROM (SELECT window.end AS e, SUM(x) AS p FROM n GROUP BY window(at, 5)) [ROWS 2]",
        "SELECT SUM(p) AS s FROM (SELECT at, SUM(x) AS p FROM n GROUP BY at) [RANGE 5]",
        "SELECT SUM(p) AS s FROM (SELECT x, SUM(x) AS p FROM u GROUP BY x) [RANGE 2]",
        "SELECT SUM(c) AS s FROM h",
        "SELECT * FROM h [NOW]",
        "SELECT x FROM (SELECT x FROM n [RANGE 2]) [ROWS 2]",
    ],
)
def test_results_that_come_once_are_windowed(text: str):
    bind_script(STREAMS + text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("SELECT x FROM (SELECT x FROM n [RANGE 2] GRANULARITY(4)) GRANULARITY(6)", "GRANULARITY(8)"),
        ("SELECT x FROM (SELECT x FROM n [RANGE 2] GRANULARITY(4)) GRANULARITY(2)", "GRANULARITY(4)"),
        ("SELECT x FROM (SELECT x FROM n GRANULARITY(4)) [RANGE 6]", "RANGE 8, or GRANULARITY(4) after the window"),
        ("SELECT x FROM (SELECT x FROM n GRANULARITY(4)) [RANGE 8 SLIDE 2]", "SLIDE 4, or"),
        (
            "SELECT x FROM (SELECT x FROM t GRANULARITY(10 SECONDS)) GRANULARITY(15 SECONDS)",
            "GRANULARITY(20 SECONDS)",
        ),
    ],
)
def test_granularity_only_gets_coarser(text: str, written: str):
    (notice,) = bind_script(STREAMS + text).notices
    assert notice.code == "GRANULARITY"
    assert f"Write {written}" in notice.hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x FROM (SELECT x FROM n [RANGE 2] GRANULARITY(4)) GRANULARITY(8)",
        "SELECT x FROM (SELECT x FROM n GRANULARITY(4)) [RANGE 8 SLIDE 4]",
        "SELECT x FROM (SELECT x FROM n GRANULARITY(4)) [RANGE 6] GRANULARITY(8)",
        "SELECT x FROM (SELECT x FROM n GRANULARITY(4)) [ROWS 6]",
        "SELECT x FROM n [RANGE 6] GRANULARITY(4)",
    ],
)
def test_multiples_are_no_notice(text: str):
    assert bind_script(STREAMS + text).notices == ()
