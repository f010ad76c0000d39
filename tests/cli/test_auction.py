"""The auction example, end to end: every answer of Krämer's queries over the small data set (spec/algebra.md 15.2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "auction"
SCRIPT = (EXAMPLE / "queries.sql").read_text()
EVENTS = (EXAMPLE / "events.jsonl").read_text().splitlines()
INF = None

CLOSING = [
    (20, 21, (1007, "s1", 15.0)),
    (25, 26, (4000, "s3", 3.0)),
    (30, 31, (3000, "s1", 9.0)),
    (400, 401, (1020, "s2", 8.0)),
]
ANSWERS = {
    "selection": [
        (3, 4, (1007, 12.0, "p1")),
        (6, 7, (1020, 6.0, "p2")),
        (8, 9, (1007, 15.0, "p3")),
        (14, 15, (1020, 8.0, "p3")),
    ],
    "short_auctions": [(20, 21, (1007, "s1", 10.0)), (25, 26, (4000, "s3", 3.0)), (30, 31, (3000, "s1", 7.0))],
    "highest_bid": [(3, 8, (1007, 12.0)), (8, 18, (1007, 15.0)), (18, 22, (3000, 9.0)), (22, 24, (1020, 8.0))],
    "closing_price": CLOSING,
    "closing_price_early": CLOSING,
    "hot_item": [(3, 63, (1007,)), (6, 8, (1020,)), (14, 74, (1020,)), (66, 68, (1007,)), (66, 72, (3000,))],
    "average_selling_price": [
        (20, 30, ("s1", 15.0)),
        (25, INF, ("s3", 3.0)),
        (30, INF, ("s1", 12.0)),
        (400, INF, ("s2", 8.0)),
    ],
    "highest_bid_tumbling": [(9, 19, (1007, 15.0)), (19, 29, (3000, 9.0))],
    "new_users": [(0, 1, ("s1", "Ann")), (5, 6, ("s2", "Bob")), (10, 11, ("s1", "Ann")), (15, 16, ("s3", "Cid"))],
}


def answers(lines: list[dict]) -> dict[str, list[tuple]]:
    found: dict[str, list[tuple]] = {name: [] for name in ANSWERS}
    for line in lines:
        assert line["count"] == 1
        if line["stream"] in found:
            found[line["stream"]].append((line["start"], line["end"], tuple(line["row"].values())))
    return found


@pytest.mark.parametrize("consistency", ["strong", "middle"])
@pytest.mark.parametrize("batch", [None, 1, 2, 7, 100])
def test_every_query_gives_the_printed_answer(replay: Callable, consistency: str, batch: int | None):
    options = [] if batch is None else ["--batch", str(batch)]
    outcome = replay(SCRIPT, EVENTS, "--history", "--consistency", consistency, *options)
    assert outcome.err == ""
    assert outcome.status == 0
    assert answers(outcome.lines) == ANSWERS


@pytest.mark.parametrize("batch", [1, 4])
def test_strong_results_are_never_taken_back(replay: Callable, batch: int):
    outcome = replay(SCRIPT, EVENTS, "--batch", str(batch))
    assert {line["kind"] for line in outcome.lines} == {"insert", "stable"}


def test_results_do_not_depend_on_the_order_of_arrival(replay: Callable):
    stable = [line for line in EVENTS if '"stable"' in line]
    arrived = [line for line in EVENTS if line not in stable]
    outcome = replay(SCRIPT, [*reversed(arrived), *stable], "--history", "--batch", "3", "--consistency", "middle")
    assert answers(outcome.lines) == ANSWERS


def test_a_select_gives_only_its_own_result(replay: Callable):
    outcome = replay(f"{SCRIPT}\nSELECT item_id FROM hot_item WHERE item_id > 2000", EVENTS, "--history")
    assert outcome.lines == [{"stream": "query", "start": 66, "end": 72, "count": 1, "row": {"item_id": 3000}}]


def test_the_queries_as_they_are_printed(replay: Callable):
    """Names, brackets, stray commas and all; time in units, so the data set is stretched to microseconds."""
    script = """
    CREATE STREAM OpenAuction(itemID INT, sellerID STRING, start_price REAL);
    CREATE STREAM Bid(itemID INT, bid_price REAL, bidderID STRING);
    CREATE STREAM Person(id STRING, name STRING);
    CREATE STREAM HighestBid AS
      SELECT itemID, bid_price
      FROM Bid WINDOW(RANGE 10 MINUTES),
      WHERE bid_price = (SELECT MAX(bid_price)
                         FROM Bid WINDOW(RANGE 10 MINUTES));
    CREATE STREAM HotItem AS
      SELECT itemID
      FROM (SELECT B1.itemID AS itemID, COUNT(*) AS num
            FROM Bid [RANGE 60 MINUTES] B1
            GROUP BY B1.itemID)
      WHERE num >= ALL (SELECT COUNT(*)
                        FROM Bid [RANGE 60 MINUTES] B2
                        GROUP BY B2.itemID);
    CREATE STREAM NewPersonStream AS
      SELECT P.id, P.name
      FROM Istream(Person) P;
    CREATE STREAM NewUsers AS
      SELECT DISTINCT(P.id, P.name)
      FROM SELECT P.id, P.name
           FROM NewPersonStream WINDOW(RANGE 12 HOURS) P, OpenAuction O
           WHERE P.id = O.sellerID;
    """
    names = {"open_auction": "OpenAuction", "bid": "Bid", "person": "Person"}
    columns = {"item_id": "itemID", "seller_id": "sellerID", "bidder_id": "bidderID"}
    minute = 60_000_000
    lines = []
    for entry in map(json.loads, EVENTS):
        if entry["kind"] == "insert" and entry["stream"] in names:
            start = entry.get("at", entry.get("start")) * minute
            lines.append(
                {
                    "stream": names[entry["stream"]],
                    "kind": "insert",
                    "start": start,
                    "end": start + 1 if "at" in entry else None,
                    "row": {columns.get(k, k): v for k, v in entry["row"].items()},
                }
            )
    outcome = replay(script, lines, "--history")
    found = {(line["stream"], line["start"] / minute, tuple(line["row"].values())) for line in outcome.lines}
    expected = {("HighestBid", s, r) for s, _, r in ANSWERS["highest_bid"]}
    expected |= {("HotItem", s, r) for s, _, r in ANSWERS["hot_item"]}
    expected |= {("NewUsers", s, r) for s, _, r in ANSWERS["new_users"]}
    expected |= {("NewPersonStream", t, r) for t, r in [(0, ("s1", "Ann")), (2, ("s2", "Bob")), (4, ("s3", "Cid"))]}
    assert found == expected
