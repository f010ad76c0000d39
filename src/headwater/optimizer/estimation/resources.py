"""What operators take: bytes of state (M_op) and time for one instant of application time (C_op), Krämer 22.4.

His formulas sum the steps of his algorithms: C = rate in * (steps for an element) + rate out * (steps for a result). Ours
have the same terms with the steps of our operators, which sort and sweep whole ticks, so that many of his constants are
measured as one. All constants stand in this file: nanoseconds per row on one core, from ``benchmarks/RESULTS.md`` (the
stateful operators) and from runs of single operators over ticks of 20,000 rows. Only their proportions matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from headwater.optimizer.estimation.characteristics import Characteristics
from headwater.optimizer.estimation.estimates import Column, State

# -- time, in nanoseconds per row -------------------------------------------------------------------------------------

TICK = 10.0
"""For every element that the sources bring: about 100 microseconds to step an operator, once in 10,000 elements."""
EXPRESSION = 40.0
"""C_P, C_F: a column computed by DuckDB, with the way there and back."""
FURTHER = 15.0
"""Each further column of the same projection."""
TERM = 5.0
"""Each comparison of a predicate."""
COPY = 20.0
"""C_O of a filter: a row that is kept is copied, with each of its bytes."""
BYTE = 1.0
PASS = 2.0
"""C_C, C_O of what hands on columns as they are: projections of columns, unions."""
INTERVAL = 4.0
"""C_S: new ends for an interval."""
ROUNDING = 15.0
PIECE = 30.0
"""A piece that a split makes."""
JOIN_ROW = 90.0
"""C_insert + C_probe + C_purge of a row: hash, sort, write, look up, and expire with its bucket."""
PAIR = 10.0
"""C_F + C_O: a pair of rows with the same key, gathered from both sides, with each of its bytes."""
SWEEP_ROW = 120.0
"""C_insert + C_probe + C_purge of a row in a sweep: two endpoints, sorted by key and time, added to the key's totals."""
RESULT = 15.0
"""C_E + C_O: a segment of a sweep's answer."""
WIDE_KEY = 70.0
"""A key that does not fit into a word is hashed to 128 bits and its columns are kept …"""
WIDE_COLUMN = 60.0
"""… each of them."""
NEW_KEY = 200.0
"""A key that comes and goes: its totals are written and forgotten."""
TOTAL = 45.0
"""A SUM, AVG or variance, in double-double or in 128 bits. A COUNT is in the sweep."""
EXTREME = 145.0
"""A MIN or MAX by staircases, over a stream that is never revised."""
HOLISTIC = 700.0
"""An aggregate that looks at the rows of its group: MEDIAN, ARRAY_AGG, MIN and MAX over what may be revised."""
ROW_WINDOW_ROW = 250.0
"""A row that is numbered and queued in its partition, with each of its bytes."""
TOP_ROW = 400.0
"""Ours to guess from HOLISTIC: a row that is ranked among the others of its partition."""

# -- memory, in bytes -------------------------------------------------------------------------------------------------

JOIN_BYTES = 20.0
"""Hash, expiry and directory of a row besides its columns."""
END_BYTES = 16.0
"""An endpoint to come: its time and its key's hash."""
VALUE_BYTES = 9.0
"""What an endpoint carries for an aggregate: the value, and whether it counts."""
KEY_BYTES = 24.0
"""Hash, directory and the start of the open segment of a key."""
WORD = 8.0
QUEUE_BYTES = 16.0
BUCKET_SLACK = 1.125
"""Rows expire in whole buckets, about four at a time: on average half a bucket is no longer needed."""

_NEAR = 100_000.0
_FARTHER = 0.8
_JOIN_FARTHER = 0.1


def far(rows: float, farther: float = _FARTHER) -> float:
    """C_L, ours: what becomes slower as the state outgrows the caches (``bench state``): ten times the rows, 0.8 more."""
    return 1 + farther * math.log10(rows / _NEAR) if rows > _NEAR else 1.0


# -- stateless: M = 0 -------------------------------------------------------------------------------------------------


def filter_cost(rate: float, result: float, terms: int, row_bytes: float) -> float:
    """(22.14): the predicate for every element, the output for those that pass."""
    return rate * (EXPRESSION + TERM * terms) + result * (COPY + BYTE * row_bytes)


def map_cost(rate: float, columns: int, computed: int) -> float:
    """(22.15). Columns that are handed on are not copied."""
    return rate * ((EXPRESSION + FURTHER * (computed - 1) if computed else 0.0) + (columns - computed) * 0.1 + PASS)


def union_cost(result: float) -> float:
    """(22.17)"""
    return result * PASS


def window_cost(rate: float) -> float:
    """(22.48)"""
    return rate * INTERVAL


def granularity_cost(rate: float, result: float) -> float:
    """(22.46)"""
    return rate * ROUNDING + result * PASS


def split_cost(rate: float, pieces: float) -> float:
    """(22.42-44), without a state: elements that end are cut at once."""
    return rate * INTERVAL + (pieces * PIECE if pieces > rate else 0.0)


# -- joins ------------------------------------------------------------------------------------------------------------


def join_state(
    left: Characteristics, right: Characteristics, left_bytes: float, right_bytes: float, *, ahead: float = 0.0
) -> State:
    """(22.18). Ours: frontiers come with every tick, so nothing waits for elements of the other side, but for its bucket;
    and nothing of a side is kept if nothing comes on the other any more. ``ahead``: rows that start only later.
    """
    rows = size = 0.0
    for side, other, bytes_ in ((left, right, left_bytes), (right, left, right_bytes)):
        kept = side.alive * (1.0 if side.endless else BUCKET_SLACK) if other.rate else 0.0
        rows, size = rows + kept, size + kept * (bytes_ + JOIN_BYTES)
    size += ahead * (max(left_bytes, right_bytes) + JOIN_BYTES)
    grows = (left.grows and right.rate > 0) or (right.grows and left.rate > 0)
    return State(rows + ahead, size, grows)


def join_cost(
    rates: float, pairs: float, results: float, kept: float, pair_bytes: float, terms: int | None = None
) -> float:
    """(22.19-23) with the removals of each side at its own rate (errata E3).

    ``rates``: of both inputs; ``pairs``: of equal keys, which are all that a bucket holds here (#B is the number of keys);
    ``results``: those that satisfy the residual too, if there is one, with so many terms.
    """
    cost = rates * JOIN_ROW * far(kept, _JOIN_FARTHER) + results * (PAIR + BYTE * pair_bytes)
    return cost if terms is None else cost + pairs * (PAIR + EXPRESSION + TERM * terms)


# -- sweeps -----------------------------------------------------------------------------------------------------------


def key_cost(columns: Sequence[Column]) -> float:
    """C_H, C_G: what it takes to know the key of a row."""
    return 0.0 if _is_narrow(columns) else WIDE_KEY + WIDE_COLUMN * len(columns)


def key_bytes(columns: Sequence[Column]) -> float:
    """s_g beyond the hash: the columns of a key that cannot be had back from it."""
    return 0.0 if _is_narrow(columns) else WORD + sum([c.bytes for c in columns])


def _is_narrow(columns: Sequence[Column]) -> bool:
    return not columns or (len(columns) == 1 and columns[0].is_word)


def sweep_cost(changes: float, born: float, result: float, kept: float, key: float, values: float = 0.0) -> float:
    """(22.24-29) and (22.30-39): a row by its endpoints and its key, a key by its birth, a result by its output.

    C_update is not multiplied by K here: a sweep adds an endpoint once, it does not walk over partial aggregates.
    """
    return changes * ((SWEEP_ROW + key) * far(kept) + values) + born * NEW_KEY + result * RESULT


def sweep_state(
    inputs: Iterable[Characteristics],
    keys: float,
    key: float,
    totals: int,
    *,
    values: int = 0,
    bounded: bool = True,
    ahead: float = 0.0,
) -> State:
    """(22.24), (22.35): an end to come for every element alive, and the totals of every key that has one.

    Ours: every end is kept by itself, so K is the number of elements alive; what never ends has no end to keep. ``bounded``:
    is the number of keys limited? Else keys of elements that never end become more and more. ``ahead``: elements that
    start only later have both ends to come.
    """
    streams = list(inputs)
    ends = sum(s.alive for s in streams if not s.endless)
    ends += 2 * ahead
    size = ends * (END_BYTES + key + values * VALUE_BYTES) + keys * (KEY_BYTES + key + totals * WORD)
    return State(ends + keys, size, not bounded and any(s.grows for s in streams))
