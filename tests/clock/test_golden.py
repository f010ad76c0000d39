"""The worked examples of the heartbeat digest, G1 to G15, and systems in which every value is a brute-force maximum."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest
from attrs import evolve
from tests.clock.worlds import heartbeats, rules_from, rules_of_sql, seen, seen_of, trace

from headwater.clock.bounds import RowBound
from headwater.clock.clock import Clock

VECTORS = json.loads((Path(__file__).parent / "golden.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])
def test_the_heartbeats_are_those_of_the_vector(vector):
    matrix = {tuple(map(int, key.split(","))): bounds for key, bounds in vector["B"].items()}
    rules = rules_from(matrix, vector["L"], ordered=vector["fifo"], timeout=vector["timeout"])
    expected = vector["tau_after_each_instant"]
    found = trace(Clock.of(rules), vector["arrivals"], len(expected), together=[rules.streams.keys()])
    assert found == expected
    assert [min(values) for values in found] == vector["query"]


def test_the_set_of_bounds_never_goes_back():
    clock = Clock.of(rules_from({(0, 0): [(0, 5), (10, 0)]}, [0]))
    found = [tau for (tau,) in trace(clock, [(0, 0, 100), (9, 0, 200)], 21)]
    assert found == [95] * 9 + [195] * 10 + [200] * 2


SEQUENCE = [0, 0, 0, 1, 2, 2, 2, 3, 3, 3, 4]


@pytest.mark.parametrize(
    ("in_order", "rows", "final_at"),
    [
        (True, None, [3, 4, 7, 10]),
        (False, 3, [3, 6, 7, 10]),
        (True, 3, [3, 4, 7, 10]),
        (False, 2, [2, 5, 6, 9]),
        (True, 2, [2, 4, 6, 9]),
    ],
)
def test_rows_of_equal_time_are_final_when_enough_have_come(in_order, rows, final_at):
    bounds = () if rows is None else (RowBound(rows, 0),)
    clock = Clock.of(rules_from({(0, 0): [(0, 1)] if in_order else []}, [0], ordered=True, rows=bounds))
    found: dict[int, int] = {}
    for position, ts in enumerate(SEQUENCE):
        clock = clock.after(seen([(0, ts)], clock), position)
        for value in range(4):
            if value < clock.frontier("s0"):
                found.setdefault(value, position)
    assert [found[value] for value in range(4)] == final_at


def test_the_counter_in_sql():
    rules = rules_of_sql("""
        CREATE STREAM s0 (t BIGINT) ORDERED BY t LATENCY 1 MICROSECOND
          TOKENS FROM c TAKING BETWEEN 2 MICROSECONDS AND 5 MICROSECONDS;
        CREATE STREAM s1 (t BIGINT) ORDERED BY t LATENCY 1 MICROSECOND
          TOKENS FROM c TAKING BETWEEN 1 MICROSECOND AND 3 MICROSECONDS;
        CREATE STREAM s2 (t BIGINT) ORDERED BY t LATENCY 1 MICROSECOND
          TOKENS FROM c TAKING BETWEEN 4 MICROSECONDS AND 10 MICROSECONDS;
    """)
    delays = {(int(i[1]), int(j[1])): bounds for (i, j), bounds in rules.bounds.items()}
    expected = {(0, 1): 1, (0, 2): 8, (1, 0): 4, (1, 2): 9, (2, 0): 1, (2, 1): 0}
    assert delays == {entry: ((delay, 0),) for entry, delay in expected.items()}
    assert all(r.own == ((0, 0),) for r in rules.streams.values())
    assert all(rows == (RowBound(1, 0),) for rows in rules.row_bounds.values())
    vector = next(deepcopy(v) for v in VECTORS if v["name"].startswith("global counter"))
    expected = vector["tau_after_each_instant"]
    assert trace(Clock.of(evolve(rules, row_bounds={})), vector["arrivals"], 20) == expected
    # At 6 comes a row of s0 that was sent after token 2 was: the next token of s0 is newer, one instant sooner.
    expected[7] = [2, 2, -1]
    assert trace(Clock.of(rules), vector["arrivals"], 20) == expected


def test_the_sensors_in_sql():
    rules = rules_of_sql("""
        CREATE STREAM s0 (t BIGINT) ORDERED BY t CLOCK DEVIATION 2 IN DOMAIN d;
        CREATE STREAM s1 (t BIGINT) ORDERED BY t CLOCK DEVIATION 1 IN DOMAIN d;
        CREATE STREAM s2 (t BIGINT) ORDERED BY t CLOCK DEVIATION 3 IN DOMAIN D;
    """)
    assert [r.own for r in rules.streams.values()] == [((0, 3),), ((0, 2),), ((0, 4),)]
    lags = {("s0", "s1"): 4, ("s0", "s2"): 6, ("s1", "s2"): 5}
    expected = {entry: ((0, lag),) for (i, j), lag in lags.items() for entry in ((i, j), (j, i))}
    assert rules.bounds == expected
    found = trace(Clock.of(rules), [(0, 0, 100), (1, 1, 103), (2, 2, 99)], 4)
    assert found == [[97, 96, 94], [99, 101, 98], [99, 101, 98], [99, 101, 98]]


def test_rows_that_look_late_are_no_reason_to_say_more():
    """G14: sound, and by a hair not maximal where bounds are between rows (digest E3)."""
    rules = rules_from({(0, 1): [(0, 0)], (1, 2): [(1, 1)], (0, 2): [(2, 3)]}, [1, 2, 1])
    found = trace(Clock.of(rules), [(3, 0, 6), (4, 2, 4), (5, 1, 2)], 9)
    assert [tau[2] for tau in found] == [-1] * 6 + [3] * 3
    assert [tau[1] for tau in found] == [-1] * 5 + [6] * 4


CHAIN = """
    CREATE STREAM s0 (t BIGINT) ORDERED BY t DISORDER 100;
    CREATE STREAM s1 (t BIGINT) ORDERED BY t LAGS s0 BY AT MOST 0 AFTER 1 MICROSECOND {mark};
    CREATE STREAM s2 (t BIGINT) ORDERED BY t LAGS s0 BY AT MOST 2 AFTER 1 MICROSECOND
      LAGS s1 BY AT MOST 0 AFTER 1 MICROSECOND {mark};
"""


def test_chains_count_only_if_the_bounds_are_said_to_be_transitive():
    """G15: a row 8 is legal on s2 under bounds between rows, and late under those between clocks."""
    literal, clocks = (rules_of_sql(CHAIN.format(mark=mark)) for mark in ("", "TRANSITIVE"))
    assert literal.bounds["s0", "s2"] == ((1, 3),)
    assert clocks.bounds["s0", "s2"] == ((1, 3), (2, 2))
    for rules, late in ((literal, False), (clocks, True)):
        clock = Clock.of(rules).after({"s0": [seen_of([10])]}, 0)
        for now in (1, 2, 3, 4):
            clock = clock.after({}, now)
        assert (clock.frontier("s2") > 8) is late
        assert heartbeats(clock)[2] == (8 if late else 7)
