"""NEXMark and rate: the same rows whatever the cuts, streams that fit together, and a bounded disorder."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import InputError
from headwater.model.schema import Schema
from headwater.sources.intake import Intake
from headwater.sources.nexmark import NexmarkSource
from headwater.sources.nexmark_generator import NEXMARK_SCHEMAS, NexmarkGenerator
from headwater.sources.rate import RateSource

SECOND = 1_000_000
KINDS = ["person", "auction", "bid"]


def everything(generator: NexmarkGenerator) -> pa.RecordBatch:
    assert generator.slots is not None
    return generator.batch(0, generator.slots)


def column(batch: pa.RecordBatch, name: str) -> np.ndarray:
    return batch.column(name).cast(pa.int64()).to_numpy()


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(KINDS),
    st.integers(0, 2**40),
    st.sampled_from([0, 1, SECOND // 10, 3 * SECOND]),
    st.lists(st.integers(0, 3_000), max_size=6),
    st.sampled_from([1, 999, 1_000, 10_000]),
)
def test_any_cuts_give_the_same_rows_in_the_same_order(kind, seed, disorder, cuts, rate):
    generator = NexmarkGenerator(kind, rate, seed, disorder, events=2_000)
    whole = everything(generator)
    edges = sorted({0, generator.slots, *(c for c in cuts if c < generator.slots)})
    parts = [generator.batch(a, b) for a, b in pairwise(edges)]
    assert (
        pa.Table.from_batches(parts, whole.schema).combine_chunks() == pa.Table.from_batches([whole]).combine_chunks()
    )
    assert whole.num_rows == generator.count(0, 2_000) == {"person": 40, "auction": 120, "bid": 1840}[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_late_by_up_to_the_disorder_and_never_more(kind: str):
    disorder = SECOND // 2
    generator = NexmarkGenerator(kind, 1_000, 3, disorder, events=50_000)
    times = column(everything(generator), "ts")
    behind = np.maximum.accumulate(times) - times
    assert disorder * 0.8 < behind.max() <= disorder
    assert 0.03 < (behind > 0).mean() < 0.2


def test_the_three_streams_fit_together():
    persons, auctions, bids = (everything(NexmarkGenerator(k, 10_000, 7, events=100_000)) for k in KINDS)
    opened = dict(zip(column(auctions, "id").tolist(), column(auctions, "ts").tolist(), strict=True))
    joined = dict(zip(column(persons, "id").tolist(), column(persons, "ts").tolist(), strict=True))
    assert len(opened) == 6_000
    assert len(joined) == 2_000
    bid_times = column(bids, "ts")
    assert all(opened[a] < t for a, t in zip(column(bids, "auction").tolist(), bid_times.tolist(), strict=True))
    assert all(joined[p] < t for p, t in zip(column(bids, "bidder").tolist(), bid_times.tolist(), strict=True))
    assert all(joined[p] < t for p, t in zip(column(auctions, "seller").tolist(), opened.values(), strict=True))


def test_bids_are_skewed_and_some_come_after_the_auction_has_closed():
    auctions, bids = (everything(NexmarkGenerator(k, 10_000, 7, events=200_000)) for k in ("auction", "bid"))
    expires = dict(zip(column(auctions, "id").tolist(), column(auctions, "expires").tolist(), strict=True))
    closed = np.array([expires[a] for a in column(bids, "auction").tolist()]) <= column(bids, "ts")
    assert 0.05 < closed.mean() < 0.6
    _, counts = np.unique(column(bids, "auction"), return_counts=True)
    assert counts.max() > 20 * np.median(counts)
    prices = column(bids, "price")
    assert prices.min() >= 100
    assert 90_000 < np.median(prices) < 110_000


def test_seeds_differ_and_columns_have_their_types():
    for kind in KINDS:
        batch = NexmarkGenerator(kind, events=5_000).batch(0, 5_000)
        assert [f.type for f in batch.schema] == list(NEXMARK_SCHEMAS[kind].types)
        assert all(c.null_count == 0 for c in batch.columns)
        assert batch != NexmarkGenerator(kind, events=5_000, seed=2).batch(0, 5_000)


def test_the_source_follows_the_wall_clock_and_stops():
    now = [50 * SECOND]
    generator = NexmarkGenerator("bid", 1_000, events=5_000)
    source = NexmarkSource(generator, Schema.of(price="DOUBLE", TS="TIMESTAMP"), wall_clock=lambda: now[0])
    first = source.poll(None, 10**6)
    assert first.splits == []
    now[0] += 2 * SECOND
    second = source.poll(json.loads(json.dumps(first.offset)), 10**6)
    assert [(s["from"], s["to"]) for s in second.splits] == [(0, 2_000)]
    assert source.split_rows(second.splits[0]) == 1_840
    now[0] += 100 * SECOND
    third = source.poll(second.offset, 920)
    assert [(s["from"], s["to"]) for s in third.splits] == [(2_000, 3_000)]
    assert not third.finished
    last = source.poll(third.offset, 10**6)
    assert last.finished
    assert source.poll(last.offset, 10).splits == []
    assert source.poll(second.offset, 920) == third, "the same again"


def test_unpaced_everything_is_due_and_rows_have_the_declared_types():
    schema = Schema.of(price="DOUBLE", TS="TIMESTAMP")
    source = NexmarkSource(NexmarkGenerator("bid", start=7, events=500_000), schema, paced=False)
    splits = source.poll(None, 10**9).splits
    assert [s["to"] for s in splits] == [250_000, 500_000]
    reader = pickle.loads(pickle.dumps(source)).reader
    intake = Intake("b", schema, "TS")
    deltas = [intake.take(piece, 0).delta for split in splits for piece in reader.read(split)]
    assert sum(map(len, deltas)) == 460_000
    assert deltas[0].start[0] == 7 + 4 * 100


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (Schema.of(prise="BIGINT"), 'nexmark has no column "prise" in "bid"'),
        (Schema.of(price="TIMESTAMP"), 'nexmark cannot fill column "price" of "bid"'),
    ],
)
def test_columns_that_nexmark_does_not_have(schema: Schema, message: str):
    with pytest.raises(InputError, match=message):
        NexmarkSource(NexmarkGenerator("bid"), schema)


def test_rate_counts_from_when_it_was_first_read():
    now = [100 * SECOND]
    source = RateSource(rows_per_second=10, rows=25, wall_clock=lambda: now[0])
    offset = source.poll(None, 100).offset
    now[0] += SECOND
    polled = source.poll(offset, 100)
    (piece,) = source.reader.read(polled.splits[0])
    assert piece.rows.column("value").to_pylist() == list(range(10))
    assert column(piece.rows, "timestamp").tolist() == [100 * SECOND + i * SECOND // 10 for i in range(10)]
    now[0] += 9 * SECOND
    assert source.poll(polled.offset, 100).finished


def test_sources_that_run_since_one_moment_keep_pace_whenever_they_start():
    now = {"us": 100 * SECOND}
    sources = [
        NexmarkSource(
            NexmarkGenerator(kind, 1_000, 1),
            NEXMARK_SCHEMAS[kind],
            wall_clock=lambda: now["us"],
            since=90 * SECOND,
        )
        for kind in KINDS
    ]
    first = sources[0].poll(None, 1_000_000)
    assert (first.splits, first.offset["next"]) == ([], 10_000)
    now["us"] += 3 * SECOND
    late = [source.poll(None, 1_000_000).offset["next"] for source in sources[1:]]
    now["us"] += SECOND
    assert late == [13_000, 13_000]
    assert sources[0].poll(first.offset, 1_000_000).offset["next"] == 14_000


def test_what_is_not_paced_begins_with_the_first_event():
    source = NexmarkSource(NexmarkGenerator("bid", 1_000, 1), NEXMARK_SCHEMAS["bid"], paced=False, since=1)
    assert source.poll(None, 0).offset["next"] == 0
