"""The time clauses of CREATE STREAM: what each comes to, and how streams depend on each other by them."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from headwater.errors import SqlError
from headwater.language import time_clauses as c
from headwater.language.binder import bind_script
from headwater.language.catalog import Catalog, Connector, Stream

SECOND = 1_000_000
COLUMNS = "(id INT, v DOUBLE, ts TIMESTAMP(6), sent_at TIMESTAMP, hb TIMESTAMP(6))"
PRESS = "CREATE STREAM press (p DOUBLE, ts TIMESTAMP) ORDERED BY ts;\n"


def stream(script: str, name: str = "temps") -> Stream:
    found = bind_script(script).catalog.get(name)
    assert isinstance(found, Stream)
    return found


def clauses(text: str, columns: str = COLUMNS, time: str = "TIMESTAMP BY ts") -> tuple[c.Clause, ...]:
    return stream(f"{PRESS} CREATE STREAM temps {columns} {time} {text}").clauses


# -- what each comes to -----------------------------------------------------------------------------------------------

CLAUSES = [
    ("STRICTLY INCREASING", c.StrictlyIncreasing()),
    ("IN ORDER", c.Disorder(0)),
    ("DISORDER 2 SECONDS", c.Disorder(2 * SECOND)),
    ("DISORDER 0 SECONDS AFTER 10 SECONDS", c.Disorder(0, 10 * SECOND)),
    ("DISORDER INTERVAL '2' SECONDS", c.Disorder(2 * SECOND)),
    ("DISORDER INTERVAL '2 seconds'", c.Disorder(2 * SECOND)),
    ("DISORDER 1.5 MILLISECONDS", c.Disorder(1_500)),
    ("DISORDER 0", c.Disorder(0)),
    ("ROWS PER TIMESTAMP AT MOST 3", c.RowsPerTimestamp(3)),
    ("ORDERED TRANSPORT", c.OrderedTransport()),
    ("LATENCY 500 MILLISECONDS", c.Latency(0, SECOND // 2)),
    ("LATENCY BETWEEN 20 AND 500 MILLISECONDS", c.Latency(20_000, 500_000)),
    ("LATENCY BETWEEN 20 MILLISECONDS AND 1 SECOND", c.Latency(20_000, SECOND)),
    ("SENT AT sent_at", c.SentAt("sent_at")),
    ("LAGS press BY AT MOST 5 SECONDS", c.Lag("press", 5 * SECOND)),
    ("LAGS press BY AT MOST 5 SECONDS AFTER 1 SECOND", c.Lag("press", 5 * SECOND, SECOND)),
    ("SKEW BOUND TO press 5 SECONDS AFTER 1 SECOND", c.Lag("press", 5 * SECOND, SECOND)),
    ("SKEW BETWEEN press AND temps 5 SECONDS", c.Skew("temps", "press", 5 * SECOND)),
    ("SKEW BETWEEN temps AND press 5 SECONDS AFTER 1 SECOND", c.Skew("temps", "press", 5 * SECOND, SECOND)),
    ("PARTITION SKEW 3 SECONDS", c.PartitionSkew(3 * SECOND)),
    ("PARTITION SKEW 0 SECONDS AFTER 1 MINUTE", c.PartitionSkew(0, 60 * SECOND)),
    ("TIMEOUT 30 SECONDS", c.Timeout(30 * SECOND)),
    ("IDLE AFTER 1 MINUTE", c.IdleAfter(60 * SECOND)),
    ("LATE ROWS DROP", c.LateRows(c.LatePolicy.DROP)),
    ("LATE ROWS ADJUST", c.LateRows(c.LatePolicy.ADJUST)),
    ("LATE ROWS ERROR", c.LateRows(c.LatePolicy.ERROR)),
    ("LATE ROWS DIVERT INTO temps_late", c.LateRows(c.LatePolicy.DIVERT, "temps_late")),
    ("CLOCK DEVIATION 2 SECONDS IN DOMAIN sensors", c.ClockDeviation("sensors", 2 * SECOND)),
    (
        "CLOCK DEVIATION 2 SECONDS MINIMUM RATE 0.5 IN DOMAIN sensors",
        c.ClockDeviation("sensors", 2 * SECOND, Decimal("0.5")),
    ),
    ("TOKENS FROM counter TAKING BETWEEN 1 AND 5 SECONDS", c.Tokens("counter", SECOND, 5 * SECOND)),
    ("HEARTBEAT FROM SOURCE (hb)", c.HeartbeatFromSource("hb")),
    ("HEARTBEAT FROM SOURCE hb", c.HeartbeatFromSource("hb")),
    ("HEARTBEAT ESTIMATED", c.HeartbeatEstimated()),
    (
        "HEARTBEAT ESTIMATED (WINDOW 1000 ROWS, ALPHA 0.5, MARGIN 0.2, HORIZON 5 SECONDS, INITIAL 1 SECOND,"
        " WARMUP 500 ROWS)",
        c.HeartbeatEstimated(
            window_rows=1000, margin=0.2, horizon=5 * SECOND, initial=SECOND, warmup_rows=500, alpha=0.5
        ),
    ),
    ("HEARTBEAT ESTIMATED (WINDOW 1 SECOND)", c.HeartbeatEstimated(window_time=SECOND)),
    ("HEARTBEAT ESTIMATED (LATE BUDGET 0.1 %)", c.HeartbeatEstimated(late_budget=0.001)),
    ("HEARTBEAT ESTIMATED (LATE BUDGET 0.001)", c.HeartbeatEstimated(late_budget=0.001)),
    ("WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS", c.Watermark("ts", 10 * SECOND)),
    ("WATERMARK FOR ts AS ts - INTERVAL '10' SECOND", c.Watermark("ts", 10 * SECOND)),
    ("WATERMARK FOR ts AS ts", c.Watermark("ts", 0)),
    ("WATERMARK ts DELAY OF INTERVAL 10 SECONDS", c.Watermark("ts", 10 * SECOND)),
]


@pytest.mark.parametrize(("text", "clause"), CLAUSES, ids=[text for text, _ in CLAUSES])
def test_a_clause(text: str, clause: c.Clause):
    assert clauses(text) == (clause,)


@pytest.mark.parametrize("clause", dict.fromkeys(clause for _, clause in CLAUSES), ids=str)
def test_a_clause_printed_is_the_clause(clause: c.Clause):
    assert clauses(clause.sql(unit=True)) == (clause,)


def test_transitive_goes_with_a_bound_to_another_stream():
    assert clauses("TRANSITIVE LAGS press BY AT MOST 1 SECOND") == (c.Transitive(), c.Lag("press", SECOND))


SECTION_14 = [
    "FROM kafka('temps', brokers => 'a:9092')",
    "TIMESTAMP BY ts",
    "DISORDER 2 SECONDS",
    "DISORDER 0 SECONDS AFTER 10 SECONDS",
    "ORDERED TRANSPORT",
    "LATENCY 500 MILLISECONDS",
    "SENT AT sent_at",
    "LAGS press BY AT MOST 5 SECONDS AFTER 1 SECOND",
    "PARTITION SKEW 3 SECONDS",
    "TIMEOUT 30 SECONDS",
    "LATE ROWS DIVERT INTO temps_late",
]


@pytest.mark.parametrize("seed", range(8))
def test_clauses_come_in_any_order(seed: int):
    shuffled = random.Random(seed).sample(SECTION_14, len(SECTION_14))
    found = stream(f"{PRESS} CREATE STREAM temps {COLUMNS} {' '.join(shuffled)}")
    assert found.time == "ts"
    assert found.source == Connector("kafka", ("temps",), (("brokers", "a:9092"),))
    assert set(found.clauses) == {
        c.Disorder(2 * SECOND),
        c.Disorder(0, 10 * SECOND),
        c.OrderedTransport(),
        c.Latency(0, SECOND // 2),
        c.SentAt("sent_at"),
        c.Lag("press", 5 * SECOND, SECOND),
        c.PartitionSkew(3 * SECOND),
        c.Timeout(30 * SECOND),
        c.LateRows(c.LatePolicy.DIVERT, "temps_late"),
    }
    assert len(found.clauses) == 9


def test_time_may_be_a_plain_number():
    found = stream("CREATE STREAM temps (n BIGINT) ORDERED BY n DISORDER 5 AFTER 10 SECONDS LATE ROWS DROP")
    assert found.clauses[0] == c.Disorder(5, 10 * SECOND)
    assert not found.has_unit
    assert found.clauses[0].sql(unit=False) == "DISORDER 5 AFTER 10 SECONDS"


def test_a_watermark_among_the_columns_names_the_time_column():
    found = stream(
        "CREATE STREAM temps (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) LATE ROWS DROP"
    )
    assert found.time == "ts"
    assert found.clauses == (c.Watermark("ts", 5 * SECOND), c.LateRows(c.LatePolicy.DROP))
    assert found.schema.names == ("id", "ts")


def test_clauses_do_not_change_the_plan():
    plain, promising = (
        f"{PRESS} CREATE STREAM temps {COLUMNS} {text}" for text in ("ORDERED BY ts", "ORDERED BY ts DISORDER 1 DAY")
    )
    assert stream(plain).plan == stream(promising).plan


def test_a_table_has_a_time_too():
    found = stream("CREATE TABLE temps (id INT PRIMARY KEY, ts TIMESTAMP) ORDERED BY ts IN ORDER")
    assert (found.time, found.key, found.clauses) == ("ts", ("id",), (c.Disorder(0),))


# -- other streams ----------------------------------------------------------------------------------------------------


def test_two_streams_may_name_each_other():
    script = """CREATE STREAM a (ts TIMESTAMP) ORDERED BY ts LAGS b BY AT MOST 5 SECONDS;
                CREATE STREAM b (ts TIMESTAMP) ORDERED BY ts LAGS a BY AT MOST 3 SECONDS;"""
    assert stream(script, "a").clauses == (c.Lag("b", 5 * SECOND),)
    assert stream(script, "b").clauses == (c.Lag("a", 3 * SECOND),)


def test_a_bound_lapses_with_its_stream():
    script = bind_script(
        f"{PRESS} CREATE STREAM temps {COLUMNS} ORDERED BY ts LAGS press BY AT MOST 1 SECOND IN ORDER;DROP STREAM press"
    )
    assert script.catalog.get("temps").clauses == (c.Disorder(0),)
    assert [str(n) for n in script.notices] == [
        'notice: LAPSED_BOUND: the bounds of stream "temps" to "press" are gone with it'
    ]


def test_late_rows_get_a_stream_of_their_own_that_goes_with_it():
    text = f"CREATE STREAM temps {COLUMNS} ORDERED BY ts LATE ROWS DIVERT INTO lost;"
    script = bind_script(f"{text} SELECT id FROM lost")
    lost = script.catalog.get("lost")
    assert (lost.schema, lost.late_rows_of) == (script.catalog.get("temps").schema, "temps")
    assert bind_script(f"{text} DROP STREAM temps").catalog.names() == []
    replaced = bind_script(
        f"{text} CREATE OR REPLACE STREAM temps (ts TIMESTAMP) ORDERED BY ts LATE ROWS DIVERT INTO lost"
    )
    assert replaced.catalog.get("lost").schema.names == ("ts",)


def test_late_rows_may_go_into_a_stream_that_is_there():
    columns = "(id INT, ts TIMESTAMP)"
    script = bind_script(
        f"CREATE STREAM lost {columns}; CREATE STREAM a {columns} ORDERED BY ts LATE ROWS DIVERT INTO lost;"
        f"CREATE STREAM b {columns} ORDERED BY ts LATE ROWS DIVERT INTO LOST; DROP STREAM a"
    )
    assert script.catalog.names() == ["lost", "b"]
    with pytest.raises(SqlError, match='stream "lost" is used by "b"'):
        bind_script("DROP STREAM lost", script.catalog)


def test_a_reference_may_be_to_a_stream_of_an_earlier_script():
    catalog = Catalog()
    bind_script(PRESS, catalog)
    bind_script(f"CREATE STREAM temps {COLUMNS} ORDERED BY ts LAGS PRESS BY AT MOST 1 SECOND", catalog)
    assert catalog.get("temps").clauses == (c.Lag("PRESS", SECOND),)


def test_a_short_timeout_is_noticed():
    text = f"CREATE STREAM temps {COLUMNS} ORDERED BY ts DISORDER 0 SECONDS AFTER 10 SECONDS LATENCY 5 SECONDS"
    (notice,) = bind_script(f"{text} TIMEOUT 14 SECONDS").notices
    assert notice.code == "SHORT_TIMEOUT"
    assert bind_script(f"{text} TIMEOUT 15 SECONDS").notices == ()
