"""Streams with a time column and no window under operators that put rows together: a notice, with the text to write."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from random import Random

import pytest

from headwater.language.binder import bind_script
from headwater.runtime.replay import replay

STREAMS = """
CREATE STREAM bid (auction INT, bidder STRING, price INT, ts TIMESTAMP) ORDERED BY ts;
CREATE STREAM ask (auction INT, price INT, ts TIMESTAMP) ORDERED BY ts;
CREATE STREAM tick (x INT, at INT) ORDERED BY at;
CREATE STREAM lasting (auction INT, price INT);
CREATE TABLE item (auction INT PRIMARY KEY, name STRING);
CREATE TABLE rate (x INT, euros INT) AS VALUES (1, 2), (3, 4);
CREATE VIEW dear AS SELECT * FROM bid WHERE price > 5;
"""

ONE_BID = 'rows of stream "bid" are valid for one instant each, so '
GROUPS = "groups hold only rows of the same time"
MEET = "only rows of the same time meet"
RANKED = "only rows of the same time are ranked"
COMPARED = "only rows of the same time are compared"

SURPRISING = {
    "SELECT auction, COUNT(*) AS n FROM bid GROUP BY auction": (ONE_BID + GROUPS, "FROM bid [RANGE 1 MINUTE] "),
    "SELECT COUNT(*) AS n FROM bid b WHERE price > 3": (
        ONE_BID + GROUPS,
        "FROM bid [RANGE 1 MINUTE] b ",
    ),
    "SELECT SUM(x) AS n FROM tick": (
        'rows of stream "tick" are valid for one instant each, so ' + GROUPS,
        "FROM tick [RANGE 10] ",
    ),
    "SELECT COUNT(*) AS n FROM dear": (
        'rows of stream "dear" are valid for one instant each, so ' + GROUPS,
        "FROM dear [RANGE 1 MINUTE] ",
    ),
    "SELECT COUNT(*) AS n FROM (SELECT price FROM bid)": (ONE_BID + GROUPS, "FROM bid [RANGE UNBOUNDED] "),
    "WITH w AS (SELECT price FROM bid) SELECT COUNT(*) AS n FROM w": (ONE_BID + GROUPS, "FROM bid [RANGE 1 MINUTE] "),
    "SELECT date_trunc('hour', ts) AS h, COUNT(*) AS n FROM bid GROUP BY h": (ONE_BID + GROUPS, "TUMBLE"),
    "SELECT i.name, COUNT(*) AS n FROM bid b JOIN item i ON b.auction = i.auction GROUP BY i.name": (
        ONE_BID + GROUPS,
        "FROM bid [RANGE 1 MINUTE] b ",
    ),
    "SELECT DISTINCT auction FROM bid": (ONE_BID + COMPARED, "FROM bid [RANGE UNBOUNDED] for all so far"),
    "SELECT auction FROM bid UNION SELECT auction FROM ask": (
        'rows of streams "bid" and "ask" are valid for one instant each, so ' + COMPARED,
        "FROM bid [RANGE 1 MINUTE] and ask [RANGE 1 MINUTE]",
    ),
    "SELECT auction FROM bid EXCEPT SELECT auction FROM ask": (
        'rows of streams "bid" and "ask" are valid for one instant each, so ' + COMPARED,
        "FROM bid [RANGE 1 MINUTE] and ask [RANGE 1 MINUTE]",
    ),
    "SELECT price FROM bid ORDER BY price LIMIT 3": (ONE_BID + RANKED, "FROM bid [RANGE 1 MINUTE]"),
    "SELECT price, RANK() OVER (ORDER BY price) AS r FROM bid": (ONE_BID + RANKED, "FROM bid [RANGE 1 MINUTE]"),
    "SELECT b.price FROM bid b JOIN ask a ON b.auction = a.auction": (
        'rows of streams "bid" and "ask" are valid for one instant each, so ' + MEET,
        "FROM bid [RANGE 1 MINUTE] b and ask [RANGE 1 MINUTE] a",
    ),
    "SELECT price FROM bid WHERE auction IN (SELECT auction FROM ask)": (
        'rows of streams "bid" and "ask" are valid for one instant each, so ' + MEET,
        "FROM bid [RANGE 1 MINUTE] and ask [RANGE 1 MINUTE]",
    ),
    "SELECT price FROM bid b WHERE NOT EXISTS (SELECT 1 FROM ask a WHERE a.auction = b.auction)": (
        'rows of streams "bid" and "ask" are valid for one instant each, so ' + MEET,
        "FROM bid [RANGE 1 MINUTE] b and ask [RANGE 1 MINUTE] a",
    ),
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY ts DESC) AS r FROM bid) WHERE r = 1": (
        ONE_BID + RANKED,
        "For the last row of each auction write FROM bid [PARTITION BY auction ROWS 1]",
    ),
    "SELECT * FROM bid QUALIFY ROW_NUMBER() OVER (PARTITION BY auction, bidder ORDER BY ts) = 1": (
        ONE_BID + RANKED,
        "For the first row of each auction, bidder write FROM bid [RANGE UNBOUNDED]",
    ),
}


def noticed(text: str) -> list[tuple[str, str]]:
    found = bind_script(STREAMS + text).notices
    return [(notice.message, notice.hint) for notice in found if notice.code == "ONE_INSTANT"]


@pytest.mark.parametrize("text", SURPRISING)
def test_there_is_one_notice_with_the_text_to_write(text: str):
    message, written = SURPRISING[text]
    ((told, hint),) = noticed(text)
    assert told == message
    assert written in hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT price + 1 AS p FROM bid WHERE price > 3",
        "SELECT price FROM bid UNION ALL SELECT price FROM ask",
        "SELECT auction, COUNT(*) AS n FROM bid [RANGE 1 MINUTE] GROUP BY auction",
        "SELECT auction, COUNT(*) AS n FROM bid [RANGE UNBOUNDED] GROUP BY auction",
        "SELECT auction, COUNT(*) AS n FROM bid [ROWS 5] GROUP BY auction",
        "SELECT auction, COUNT(*) AS n FROM bid [NOW] GROUP BY auction",
        "SELECT x, COUNT(*) AS n FROM tick [RANGE 1] GROUP BY x",
        "SELECT ts, COUNT(*) AS n FROM bid GROUP BY ts",
        "SELECT ts AS t, auction, COUNT(*) AS n FROM (SELECT ts, auction FROM bid) GROUP BY 1, 2",
        "SELECT DISTINCT ts, auction FROM bid",
        "SELECT b.price FROM bid b JOIN ask a ON b.auction = a.auction AND a.ts = b.ts",
        "SELECT window_end, COUNT(*) AS n FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), 1 MINUTE) GROUP BY window_end",
        "SELECT COUNT(*) AS n FROM HOP(TABLE bid, DESCRIPTOR(ts), 1 MINUTE, 2 MINUTES)",
        "SELECT window.end, COUNT(*) AS n FROM bid GROUP BY window(ts, '1 minute')",
        "SELECT auction, COUNT(*) AS n FROM bid WINDOW(PARTITION BY auction SESSION 1 MINUTE) GROUP BY auction, window_end",
        "SELECT b.price, i.name FROM bid b JOIN item i ON b.auction = i.auction",
        "SELECT b.price, i.name FROM bid b LEFT JOIN item i ON b.auction = i.auction",
        "SELECT price FROM bid WHERE auction IN (SELECT auction FROM item)",
        "SELECT price FROM bid b WHERE price > (SELECT COUNT(*) FROM item i WHERE i.auction < b.auction)",
        "SELECT price FROM bid b WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.auction < b.auction)",
        "SELECT x FROM tick WHERE x IN (SELECT x FROM rate)",
        "SELECT x FROM tick WHERE x IN (1, 2)",
        "SELECT price FROM bid WHERE price > (SELECT AVG(price) FROM ask [RANGE 1 HOUR])",
        "SELECT b.price FROM bid b JOIN ask [RANGE 1 HOUR] a ON b.auction = a.auction",
        "SELECT auction, COUNT(*) AS n FROM lasting GROUP BY auction",
        "SELECT DISTINCT auction FROM lasting",
        "SELECT COUNT(*) AS n FROM item",
        "SELECT COUNT(*) AS n FROM ISTREAM((SELECT auction FROM bid [RANGE 1 MINUTE])) [RANGE 1 HOUR]",
        "SELECT SUM(n) AS s FROM (SELECT COUNT(*) AS n FROM bid [RANGE 1 MINUTE SLIDE 1 MINUTE INTERNAL]) [ROWS 3]",
        "SELECT MAX(n) AS m FROM (SELECT auction, COUNT(*) AS n FROM bid [RANGE 1 MINUTE] GROUP BY auction)",
        "SELECT price FROM bid ORDER BY price",
    ],
)
def test_what_is_meant_is_no_notice(text: str):
    assert noticed(text) == []


def test_what_is_defined_with_a_notice_is_used_without_one():
    told = noticed("CREATE STREAM hot AS SELECT auction, COUNT(*) AS n FROM bid GROUP BY auction; SELECT n FROM hot;")
    assert [message for message, _ in told] == [ONE_BID + GROUPS]


# -- the texts mean what the query meant ------------------------------------------------------------------------------

SECOND = 10**6


def recorded(tmp_path: Path, text: str, rows: dict[str, list[dict]]) -> list[dict]:
    """The history of the answer; times are given in seconds."""
    lines = [
        {
            "stream": stream,
            "kind": "insert",
            "at": row["ts"] * SECOND,
            "row": row | {"ts": f"1970-01-01T00:00:{row['ts']:02}"},
        }
        for stream, its in rows.items()
        for row in its
    ]
    recording = tmp_path / "events.jsonl"
    recording.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return [json.loads(line) for line in replay(bind_script(STREAMS + text), recording, history=True)]


INTERVALS = [
    ("b.ts BETWEEN a.ts - INTERVAL '10' SECONDS AND a.ts + INTERVAL '5' SECONDS", -10, 5, "bid [RANGE 11 SECONDS] b"),
    ("a.ts BETWEEN b.ts AND b.ts + INTERVAL '10' SECONDS", -10, 0, "bid [RANGE 11 SECONDS] b and a,"),
    ("b.ts >= a.ts AND b.ts <= a.ts + INTERVAL '1' MINUTE", 0, 60, "b and ask [RANGE 61 SECONDS] a"),
    ("b.ts + INTERVAL '3' SECONDS > a.ts AND b.ts - INTERVAL '2' SECONDS < a.ts", -2.5, 1.5, "RANGE 3001 MILLISECONDS"),
    (
        "a.ts BETWEEN b.ts - INTERVAL '20' SECONDS AND b.ts - INTERVAL '10' SECONDS",
        10,
        20,
        "b and ask [RANGE 21 SECONDS] a",
    ),
]


@pytest.mark.parametrize(("condition", "low", "high", "written"), INTERVALS)
def test_an_interval_join_over_bare_streams_gets_its_windows(
    tmp_path: Path, condition: str, low: float, high: float, written: str
):
    select = "SELECT b.price AS b, a.price AS a FROM {} JOIN {} ON a.auction = b.auction AND " + condition
    ((_, hint),) = noticed(select.format("bid b", "ask a"))
    assert hint.startswith("For an interval join write FROM ")
    assert written in hint
    items = hint.removeprefix("For an interval join write FROM ").split(", with")[0].split(" and ")
    windowed = [
        f"{stream} {item}" if item in "ab" else item for stream, item in zip(("bid", "ask"), items, strict=True)
    ]
    text = select.format(*windowed)
    assert noticed(text) == []
    random = Random(7)
    bids, asks = (
        [{"auction": random.randrange(2), "price": i, "ts": random.randrange(0, 60)} for i in range(25)]
        for _ in range(2)
    )
    rows = {"bid": [bid | {"bidder": "x"} for bid in bids], "ask": asks}
    pairs = {
        json.dumps({"b": b["price"], "a": a["price"]})
        for b, a in product(bids, asks)
        if b["auction"] == a["auction"] and low <= b["ts"] - a["ts"] <= high
    }
    assert {json.dumps(line["row"]) for line in recorded(tmp_path, text, rows)} == pairs


def test_the_same_stream_twice_and_plain_numbers():
    ((_, hint),) = noticed("SELECT m.x FROM tick m JOIN tick k ON k.at <= m.at + 5 AND k.at >= m.at")
    assert hint == "For an interval join write FROM tick [RANGE 6] m and k, with the condition on times as it is."


@pytest.mark.parametrize("order", ["DESC", "ASC"])
def test_deduplication_with_the_window_of_the_notice_keeps_the_last_or_the_first(tmp_path: Path, order: str):
    ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY ts {}) AS r FROM {}"
    dedup = f"SELECT auction, price FROM ({ranked}) WHERE r = 1"
    ((_, hint),) = noticed(dedup.format(order, "bid"))
    window = hint.split("write FROM ")[1].removesuffix(".").split(";")[0]
    text = dedup.format(order, window)
    assert noticed(text) == []
    rows = [{"auction": i % 3, "bidder": "x", "price": i, "ts": i} for i in range(10)]
    found = recorded(tmp_path, text, {"bid": rows})
    at_last = {line["row"]["auction"]: line["row"]["price"] for line in found if line["end"] is None}
    assert at_last == ({0: 9, 1: 7, 2: 8} if order == "DESC" else {0: 0, 1: 1, 2: 2})
