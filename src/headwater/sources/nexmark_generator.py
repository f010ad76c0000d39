"""NEXMark: an auction house. Every event is a pure function of the seed and its number.

Of 50 events in a row one is a new person, three are new auctions and 46 are bids (Tucker et al., NEXMark, with the
proportions and hot keys of the Apache Beam suite). Bids refer only to auctions and persons with smaller event numbers.
Everything is drawn by hashing the event's number, so any range of events can be made anywhere, at once and again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.model.arrays import Int64Array, UInt64Array
from headwater.model.schema import Field, Schema
from headwater.model.types import sql_type
from headwater.sources.columns import joined, lower

PERSONS, AUCTIONS, BIDS = 1, 3, 46
CYCLE = PERSONS + AUCTIONS + BIDS
FIRST_ID = 1000
HOT_GROUP = 100
"""Hot items and people change after so many new ones."""
ACTIVE_PERSONS = 1000
AUCTIONS_IN_FLIGHT = 100
CATEGORIES = 5

_PLACES = {"person": (0, PERSONS), "auction": (PERSONS, AUCTIONS), "bid": (PERSONS + AUCTIONS, BIDS)}
_FIRST_NAMES = pa.array(
    ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
)
_LAST_NAMES = pa.array(["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"])
_CITIES = pa.array(
    ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"]
)
_STATES = pa.array(["AZ", "CA", "CA", "ID", "OR", "OR", "WA", "WA", "WA", "WY"])
_CHANNELS = pa.array(["apple", "google", "facebook", "baidu"])


def _schema(**columns: str) -> Schema:
    """``!`` marks NOT NULL."""
    return Schema(tuple(Field(n, sql_type(t.rstrip("!")), not t.endswith("!")) for n, t in columns.items()))


NEXMARK_SCHEMAS: dict[str, Schema] = {
    "person": _schema(
        id="BIGINT!",
        name="STRING!",
        email="STRING!",
        credit_card="STRING!",
        city="STRING!",
        state="STRING!",
        ts="TIMESTAMP!",
    ),
    "auction": _schema(
        id="BIGINT!",
        item="STRING!",
        initial_bid="BIGINT!",
        reserve="BIGINT!",
        seller="BIGINT!",
        category="BIGINT!",
        expires="TIMESTAMP!",
        ts="TIMESTAMP!",
    ),
    "bid": _schema(auction="BIGINT!", bidder="BIGINT!", price="BIGINT!", channel="STRING!", ts="TIMESTAMP!"),
}
"""The columns of the three streams. Prices are in cents; an auction takes bids from ``ts`` until it ``expires``."""


@frozen
class NexmarkGenerator:
    """One of the three streams.

    An event happens at ``start + number / rate`` and arrives in the *slot* of its number, or, if it is delayed, in a later
    one, at most ``disorder`` of event time later. So a slot may hold no event or several, and every event is in one slot.
    """

    kind: str
    rate: int = 10_000
    """Events of all three kinds for each second of event time."""
    seed: int = 1
    disorder: int = 0
    """Microseconds."""
    start: int = 0
    """The time of event 0, in microseconds since the epoch."""
    events: int | None = None
    """How many there are in all."""
    delayed: float = 0.1
    """The share of events that are delayed at all."""

    @property
    def longest_delay(self) -> int:
        """In slots: events within ``disorder`` of event time."""
        return self.disorder * self.rate // 1_000_000

    @property
    def slots(self) -> int | None:
        """All events are in the slots before this one; None: they never end."""
        return None if self.events is None else self.events + self.longest_delay

    def count(self, first: int, last: int) -> int:
        """How many events of this kind have numbers in ``[first, last)``."""
        return self._ordinal(last) - self._ordinal(first)

    def batch(self, first: int, last: int, columns: Schema | None = None) -> pa.RecordBatch:
        """The events that arrive in the slots ``[first, last)``, in the order of arrival; some columns or all of them."""
        number = self._arriving(first, last)
        schema = columns or NEXMARK_SCHEMAS[self.kind]
        makers = _MAKERS[self.kind]
        names = [f.name for f in schema]
        return pa.RecordBatch.from_arrays([_arrow(makers[name](self, number)) for name in names], names=names)

    def _ordinal(self, number: int) -> int:
        """How many events of this kind come before the event of that number."""
        offset, size = _PLACES[self.kind]
        return number // CYCLE * size + min(max(number % CYCLE - offset, 0), size)

    def _arriving(self, first: int, last: int) -> Int64Array:
        offset, size = _PLACES[self.kind]
        last_number = last if self.events is None else min(last, self.events)
        low, high = self._ordinal(max(first - self.longest_delay, 0)), self._ordinal(max(last_number, 0))
        ordinal = np.arange(low, max(low, high), dtype=np.int64)
        number = ordinal // size * CYCLE + (offset + ordinal % size)
        if self.longest_delay == 0:
            return number
        slot = number + self._delay(number)
        here = np.flatnonzero((slot >= first) & (slot < last))
        return number[here[np.argsort(slot[here], kind="stable")]]

    def _delay(self, number: Int64Array) -> Int64Array:
        """Most come at once; of the others each delay is as likely."""
        drawn = self.hashed(number, 1)
        chosen = (drawn & np.uint64(0xFFFF)) < np.uint64(int(self.delayed * 0x10000))
        return np.where(chosen, _below(drawn, self.longest_delay + 1), 0)

    # -- what events hold --------------------------------------------------------------------------------------------

    def hashed(self, number: Int64Array, salt: int) -> UInt64Array:
        """64 random bits an event (splitmix64 of its number), independent ones for each salt."""
        origin = _mix_one((self.seed * 0x9E3779B97F4A7C15 + salt * 0xD1B54A32D192ED03) & _MASK)
        x = number.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x += np.uint64(origin)
        x ^= x >> np.uint64(30)
        x *= np.uint64(0xBF58476D1CE4E5B9)
        x ^= x >> np.uint64(27)
        x *= np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        return x

    def time(self, number: Int64Array) -> Int64Array:
        return self.start + number * 1_000_000 // self.rate

    def price(self, number: Int64Array, salt: int) -> Int64Array:
        """Between 1 and 10 million, each order of magnitude as likely, in cents."""
        drawn = self.hashed(number, salt)
        step = (drawn & np.uint64(1023)).view(np.int64)
        low = _PRICES.take(step)
        return low + _below(drawn, _PRICES.take(step + 1) - low)

    def auction_bid_for(self, number: Int64Array) -> Int64Array:
        """Half of the bids go to the hot auction, the others to one of those opened last."""
        drawn = self.hashed(number, 2)
        newest = number // CYCLE * AUCTIONS + np.minimum(number % CYCLE - PERSONS, AUCTIONS - 1)
        hot = newest // HOT_GROUP * HOT_GROUP
        oldest = np.maximum(newest - AUCTIONS_IN_FLIGHT, 0)
        usual = oldest + _below(drawn, newest - oldest + 1)
        return FIRST_ID + np.where(drawn & np.uint64(1), hot, usual)

    def person(self, number: Int64Array, salt: int, *, hot_place: int) -> Int64Array:
        """Three of four times the hot person of the moment, else somebody active."""
        drawn = self.hashed(number, salt)
        newest = number // CYCLE
        hot = np.minimum(newest // HOT_GROUP * HOT_GROUP + hot_place, newest)
        active = np.minimum(newest, ACTIVE_PERSONS)
        usual = newest - active + _below(drawn, active + 1)
        return FIRST_ID + np.where(drawn & np.uint64(3), hot, usual)

    def expiry(self, number: Int64Array) -> Int64Array:
        """Open for up to twice as long as it takes until it is no longer among the last ones."""
        horizon = AUCTIONS_IN_FLIGHT * CYCLE * 1_000_000 // (AUCTIONS * self.rate)
        return self.time(number) + 1 + _below(self.hashed(number, 8), max(2 * horizon, 1))

    def word(self, number: Int64Array, salt: int, words: pa.Array) -> pa.Array:
        return words.take(pa.array(_below(self.hashed(number, salt), len(words))))


_MASK = 2**64 - 1
_PRICES = np.array([round(100 * 10 ** (6 * i / 1024)) for i in range(1025)], np.int64)


def _mix_one(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _below(drawn: UInt64Array, bound: int | Int64Array) -> Int64Array:
    """A whole number from 0 up to the bound (exclusive, below 2^31), from the upper half of the bits."""
    most = np.uint64(bound) if isinstance(bound, int) else bound.view(np.uint64)
    return (((drawn >> np.uint64(32)) * most) >> np.uint64(32)).view(np.int64)


def _arrow(values: np.ndarray | pa.Array) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values)


def _times(instants: Int64Array) -> pa.Array:
    return pa.array(instants).cast(pa.timestamp("us"))


def _name(g: NexmarkGenerator, number: Int64Array) -> pa.Array:
    return joined(g.word(number, 10, _FIRST_NAMES), g.word(number, 11, _LAST_NAMES), separator=" ")


def _email(g: NexmarkGenerator, number: Int64Array) -> pa.Array:
    names = joined(g.word(number, 10, _FIRST_NAMES), g.word(number, 11, _LAST_NAMES), separator=".")
    return joined(lower(names), pa.array(number // CYCLE).cast(pa.string()), "@example.com")


def _card(g: NexmarkGenerator, number: Int64Array) -> pa.Array:
    parts = [pa.array(1000 + _below(g.hashed(number, salt), 9000)).cast(pa.string()) for salt in (12, 13, 14, 15)]
    return joined(*parts, separator=" ")


def _item(_: NexmarkGenerator, number: Int64Array) -> pa.Array:
    return joined("item", pa.array(_auction(number)).cast(pa.string()), separator="-")


def _auction(number: Int64Array) -> Int64Array:
    return FIRST_ID + number // CYCLE * AUCTIONS + number % CYCLE - PERSONS


Maker = Callable[[NexmarkGenerator, Int64Array], "np.ndarray | pa.Array"]

_MAKERS: dict[str, dict[str, Maker]] = {
    "person": {
        "id": lambda g, n: FIRST_ID + n // CYCLE,
        "name": _name,
        "email": _email,
        "credit_card": _card,
        "city": lambda g, n: g.word(n, 16, _CITIES),
        "state": lambda g, n: g.word(n, 16, _STATES),
        "ts": lambda g, n: _times(g.time(n)),
    },
    "auction": {
        "id": lambda g, n: _auction(n),
        "item": _item,
        "initial_bid": lambda g, n: g.price(n, 5),
        "reserve": lambda g, n: g.price(n, 5) + g.price(n, 6),
        "seller": lambda g, n: g.person(n, 7, hot_place=0),
        "category": lambda g, n: 10 + _below(g.hashed(n, 9), CATEGORIES),
        "expires": lambda g, n: _times(g.expiry(n)),
        "ts": lambda g, n: _times(g.time(n)),
    },
    "bid": {
        "auction": lambda g, n: g.auction_bid_for(n),
        "bidder": lambda g, n: g.person(n, 3, hot_place=1),
        "price": lambda g, n: g.price(n, 4),
        "channel": lambda g, n: g.word(n, 17, _CHANNELS),
        "ts": lambda g, n: _times(g.time(n)),
    },
}
