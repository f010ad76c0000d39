"""An answer in memory: snapshots, history, forgetting."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import numpy as np
import pytest
from attrs import evolve

from headwater.errors import HeadwaterError
from headwater.language.emission import ON_START
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.sinks import memory
from headwater.sinks.base import Guarantee, Output


def opened(output: Output, **options):
    sink = memory(**options)
    sink.open(output)
    return sink


def rows(result) -> list[tuple]:
    return sorted(tuple(row.values()) for row in result.rows())


def test_a_snapshot_has_the_rows_valid_at_an_instant(counts, stage):
    sink = opened(counts)
    sink.deliver(0, stage(sink, 0, [(7, 1, 0, 5), (7, 2, 5, INFINITY)], [(9, 1, 3, 6, 2)]), 6)
    assert rows(sink.snapshot(at=4)) == [(7, 1), (9, 1), (9, 1)]
    assert rows(sink.snapshot()) == rows(sink.snapshot(at=5)) == [(7, 2), (9, 1), (9, 1)]
    assert sink.latest == 5
    assert rows(sink.snapshot(at=0)) == [(7, 1)]


def test_what_is_not_final_cannot_be_asked_for(counts, stage):
    sink = opened(evolve(counts, emission=ON_START))
    assert len(sink.snapshot()) == 0
    with pytest.raises(HeadwaterError, match="at 0 is not final yet"):
        sink.snapshot(at=0)
    sink.deliver(0, stage(sink, 0, [(7, 1, 0, 5)]), 5)
    with pytest.raises(HeadwaterError, match="It is final before 5"):
        sink.snapshot(at=5)


def test_a_frontier_alone_moves_the_latest_instant(counts, stage):
    sink = opened(counts)
    sink.deliver(0, stage(sink, 0, [(7, 1, 0, 5), (7, 2, 5, 9)]), 5)
    assert rows(sink.snapshot()) == [(7, 1)]
    sink.deliver(1, [], 7)
    assert rows(sink.snapshot()) == [(7, 2)]


def test_when_the_input_has_ended_the_latest_is_the_last_start(counts, stage):
    sink = opened(counts)
    sink.deliver(0, stage(sink, 0, [(7, 1, 0, 5), (7, 2, 5, 9)]), INFINITY)
    assert sink.latest == 5
    assert rows(sink.snapshot(at=100)) == []


def test_a_tick_that_comes_twice_is_kept_once(counts, stage):
    sink = opened(counts)
    parts = stage(sink, 3, [(7, 1, 0, 5)])
    sink.deliver(3, parts, 2)
    sink.deliver(3, parts, 2)
    assert rows(sink.snapshot(at=1)) == [(7, 1)]
    assert sink.guarantee is Guarantee.EXACTLY_ONCE


def test_repairs_are_applied(counts, stage):
    sink = opened(evolve(counts, speculative=True))
    sink.deliver(0, stage(sink, 0, [(7, 1, 0, INFINITY)]), 0)
    assert rows(sink.snapshot()) == [(7, 1)]
    sink.deliver(1, stage(sink, 1, [(7, 1, 0, INFINITY, -1), (7, 1, 0, 4), (7, 2, 4, INFINITY)]), 0)
    assert rows(sink.snapshot()) == [(7, 2)]
    assert rows(sink.snapshot(at=3)) == [(7, 1)]
    assert rows(sink.history()) == [(7, 1, 0, 4), (7, 2, 4, None)]


def test_a_repair_of_what_came_before_a_restart_shows_the_new_row(counts, stage):
    sink = opened(evolve(counts, speculative=True))
    sink.deliver(8, stage(sink, 8, [(7, 1, 0, INFINITY, -1), (7, 1, 0, 4)]), 0)
    assert rows(sink.history()) == [(7, 1, 0, 4)]


def test_timestamps_are_asked_for_as_times(counts, stage):
    sink = opened(evolve(counts, timestamps=True))
    sink.deliver(0, stage(sink, 0, [(7, 1, 0, 60_000_000)]), INFINITY)
    assert rows(sink.snapshot(at="1970-01-01 00:00:59")) == [(7, 1)]
    assert rows(sink.snapshot(at=datetime(1970, 1, 1, 0, 1))) == []
    assert sink.table().to_pylist()[0]["_end"] == datetime(1970, 1, 1, 0, 1)


def test_random_changes_give_the_same_snapshots_as_all_of_them_at_once(counts):
    random = np.random.default_rng(5)
    sink = opened(evolve(counts, speculative=True))
    known: Counter = Counter()
    stager = sink.stager()
    for tick in range(120):
        changes = []
        for _ in range(int(random.integers(0, 9))):
            row = (int(random.integers(4)), int(random.integers(3)), start := int(random.integers(50)), start + 9)
            gone = known[row] > 0 and random.random() < 0.5
            known[row] += -1 if gone else 1
            changes.append((row[:2], *row[2:], -1 if gone else 1))
        delta = Delta.from_rows(counts.schema, changes).consolidate()
        sink.deliver(tick, [stager.stage(tick, 0, delta, "")] if len(delta) else [], 0)
    expected = [row for row, n in known.items() for _ in range(n)]
    assert sorted(tuple(row.values()) for row in sink.table().to_pylist()) == sorted(expected)
    for at in range(0, 60, 7):
        assert rows(sink.snapshot(at=at)) == sorted((a, n) for a, n, s, e in expected if s <= at < e)
    assert len(sink._kept.chunks) < 10


def test_the_history_does_not_tell_how_it_was_cut(counts, stage):
    sink = opened(counts)
    sink.deliver(0, stage(sink, 0, [(7, 1, 0, 5), (7, 1, 3, 4)]), 5)
    sink.deliver(1, stage(sink, 1, [(7, 1, 5, 9)]), 9)
    assert rows(sink.history()) == [(7, 1, 0, 3), (7, 1, 3, 4), (7, 1, 3, 4), (7, 1, 4, 9)]
    assert sink.table().num_rows == 3


def test_what_ended_long_ago_is_forgotten(counts, stage):
    sink = opened(counts, keep=100)
    for tick in range(200):
        at = 10 * tick
        sink.deliver(tick, stage(sink, tick, [(i, tick, at, at + 10) for i in range(10)]), at + 10)
    assert len(sink) < 500
    assert min(sink.table().column("_end").to_pylist()) == 2000 - 1 - 100 + 1
    assert len(sink.snapshot(at=1900)) == 10
    with pytest.raises(HeadwaterError, match=r"(?s)at 1898 is forgotten.*It is kept from 1899 on"):
        sink.snapshot(at=1898)


def test_rows_that_are_still_valid_are_never_forgotten(counts, stage):
    sink = opened(counts, keep=0)
    sink.deliver(0, stage(sink, 0, [(1, 1, 0, INFINITY)]), 1)
    sink.deliver(1, stage(sink, 1, [(2, 1, 10, 11)] * 50), 1000)
    assert rows(sink.snapshot()) == [(1, 1)]


@pytest.mark.parametrize(
    ("keep", "instants"),
    [("10 minutes", 600_000_000), ("1 hour 30 MINUTES", 5_400_000_000), (timedelta(seconds=2), 2_000_000), (5, 5)],
)
def test_how_long_to_keep_is_a_time(counts, keep, instants: int):
    assert opened(evolve(counts, timestamps=True), keep=keep)._keep == instants


@pytest.mark.parametrize(
    ("keep", "timestamps"),
    [("soon", True), ("10 parsecs", True), ("1 hour", False), (-1, True), ("", True), (True, True)],
)
def test_how_long_to_keep_must_make_sense(counts, keep, timestamps: bool):
    with pytest.raises(HeadwaterError, match="no length of time for keep"):
        opened(evolve(counts, timestamps=timestamps), keep=keep)


def test_a_sink_that_no_query_uses_says_so():
    with pytest.raises(HeadwaterError, match="no query writes into this memory yet"):
        memory().snapshot()


def test_large_parts_do_not_need_their_files_any_more(counts, stage, tmp_path):
    sink = opened(Output("texts", Schema.of(t="STRING"), timestamps=False))
    delta = Delta.from_rows(sink.output.schema, [((f"text {i}" * 10,), i, i + 1, 1) for i in range(2000)])
    part = sink.stager().stage(0, 0, delta, str(tmp_path))
    assert part.path is not None
    sink.deliver(0, [part], INFINITY)
    for file in tmp_path.iterdir():
        file.write_bytes(b"")
    assert rows(sink.snapshot(at=7)) == [("text 7" * 10,)]
