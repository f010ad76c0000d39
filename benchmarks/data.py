"""The bids and auctions that every benchmark runs on: skewed keys, disorder, keys that come and go.

5,000 bids per second of event time, 2 % of them late by up to 2 s. An auction opens every 15th bid or so; a bid goes with
30 % to one of 300 hot auctions (others every 10 s), else to one of the 40,000 opened last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headwater.model.arrays import Float64Array, Int64Array

SECOND = 1_000_000
RATE = 5_000
DISORDER = 2 * SECOND
WINDOW = 60 * SECOND


class Bids(NamedTuple):
    """Columns in arrival order."""

    auction: Int64Array
    bidder: Int64Array
    price: Float64Array
    time: Int64Array


class Auctions(NamedTuple):
    """Columns in arrival order, one per auction."""

    auction: Int64Array
    seller: Int64Array
    time: Int64Array


def make_bids(rows: int, *, seed: int = 7) -> Bids:
    rng = np.random.default_rng(seed)
    event = np.sort(rng.integers(0, rows * SECOND // RATE, rows))
    late = rng.random(rows) < 0.02
    newest = 40_000 + event * RATE // (15 * SECOND)  # number of auctions opened by then
    turn = event // (10 * SECOND)
    hot = newest - 1 - (turn * 7919 + rng.integers(0, 300, rows)) % 20_000
    usual = newest - 1 - rng.integers(0, 40_000, rows)
    auction = np.where(rng.random(rows) < 0.3, hot, usual)
    bidder = rng.integers(0, 200_000, rows)
    price = np.round(rng.gamma(2.0, 50.0, rows), 2)
    arrival = event + np.where(late, rng.integers(0, DISORDER, rows), 0)
    order = np.argsort(arrival, kind="stable")
    return Bids(auction[order], bidder[order], price[order], event[order])


def make_auctions(bids: int, *, seed: int = 8) -> Auctions:
    """The auctions that open while so many bids come (the first 40,000 are open already, at time 0 and before)."""
    rng = np.random.default_rng(seed)
    number = np.arange(40_000 + bids // 15)
    time = np.maximum((number - 40_000) * 15 * SECOND // RATE, 0)
    return Auctions(number, rng.integers(0, 50_000, len(number)), time)
