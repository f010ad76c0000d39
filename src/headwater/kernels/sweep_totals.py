"""Running totals of each key over its endpoints in time: counts, exact sums, sums of squares, fingerprints.

One pass finds the instants of each key, one pass a measure follows its totals, the last one cuts the segments. Totals are
int64 words (float words as their bits). Integer sums have 128 bits, float sums two floats (double-double), so that
millions of insertions and expiries leave no drift.

Every array of words has first the totals of each key at the outset, then those after each instant.
"""

from __future__ import annotations

import numpy as np
from numba import njit

COUNT, INTEGER, WIDE, FLOAT, SQUARES, FINGERPRINT, LEAST, MOST, PRODUCTS = range(9)
"""What a measure keeps. Words: COUNT n; INTEGER low, high; WIDE low, high, top; FLOAT sum, rest, special; SQUARES and
PRODUCTS (of two columns) sum, rest, tail, huge; FINGERPRINT hash of the multiset; LEAST and MOST the extreme value."""

WORDS = (1, 2, 3, 3, 4, 1, 1, 1, 4)

_END = np.int64(2**63 - 1)  # the end of time
_NAN, _PLUS, _MINUS = 1 << 42, 1 << 21, 1 << 1  # how one word counts NaN, +infinity and -infinity
SCALED = 1
"""The bit of that word that is set while a float sum is kept times ``DOWN``, lest it overflow."""
DOWN = 2.0**-64
LARGE = 2.0**958
"""So many smaller values as there can be do not overflow; larger ones are rare."""
_SMALL_AGAIN = 2.0**890  # times 2^64: what a scaled sum is when large values have left
_HUGE = 2.0**450  # the square of a sum of a billion smaller values does not overflow
_MANY = 24  # so many ties are sorted by insertion


@njit(cache=True, nogil=True)
def find_instants(groups, time):
    """The distinct (key, time) of sorted endpoints: where each begins, its time, and the first one of each key."""
    n, keys = len(time), len(groups) - 1
    bounds, instants = np.empty(n + 1, np.int64), np.empty(n, np.int64)
    first = np.empty(keys + 1, np.int64)
    m = 0
    for k in range(keys):
        first[k] = m
        last = np.int64(0)
        for at in range(groups[k], groups[k + 1]):
            t = time[at]
            if at == groups[k] or t != last:
                bounds[m], instants[m] = at, t
                m += 1
                last = t
    first[keys] = m
    bounds[m] = n
    return bounds[: m + 1], instants[:m], first


@njit(cache=True, nogil=True)
def follow_count(bounds, first, weight, valid, counts, changed):
    """counts: the sum of the weights of valid endpoints."""
    keys = len(first) - 1
    for k in range(keys):
        c = counts[k]
        for i in range(first[k], first[k + 1]):
            before = c
            for p in range(bounds[i], bounds[i + 1]):
                c += weight[p] * valid[p]
            counts[keys + i] = c
            if c != before:
                changed[i] = 1


@njit(cache=True, nogil=True)
def follow_fingerprint(bounds, first, weight, valid, values, prints, changed):
    """The wrapping sum of weight times hash: equal multisets have equal sums."""
    keys = len(first) - 1
    for k in range(keys):
        c = prints[k]
        for i in range(first[k], first[k + 1]):
            before = c
            for p in range(bounds[i], bounds[i + 1]):
                c += weight[p] * valid[p] * values[p]
            prints[keys + i] = c
            if c != before:
                changed[i] = 1


@njit(cache=True, inline="always")
def _times(x, y):
    """x * y as a lower and an upper word, all unsigned."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b, c, d = x & mask, x >> half, y & mask, y >> half
    middle = b * c + (a * c >> half)
    carry = (middle & mask) + a * d
    return x * y, b * d + (middle >> half) + (carry >> half)


@njit(cache=True, inline="always")
def add_integer(low, high, x, w):
    """(low, high) += w * x: all 128 bits of it."""
    one, none = np.uint64(1), np.uint64(0)
    size, top = np.uint64(-x if x < 0 else x), none  # -x wraps to the right size for the least of all
    if w != 1 and w != -1:
        size, top = _times(size, np.uint64(abs(w)))
    if (x < 0) == (w < 0):
        low += size
        high += top + (one if low < size else none)
    else:
        high -= top + (one if low < size else none)
        low -= size
    return low, high


@njit(cache=True, nogil=True)
def follow_integer(bounds, first, weight, valid, values, lows, highs, changed):
    """128-bit sums of weight times value."""
    keys = len(first) - 1
    for k in range(keys):
        low, high = np.uint64(lows[k]), np.uint64(highs[k])
        for i in range(first[k], first[k + 1]):
            before_low, before_high = low, high
            for p in range(bounds[i], bounds[i + 1]):
                if valid[p] != 0:
                    low, high = add_integer(low, high, values[p], weight[p])
            lows[keys + i], highs[keys + i] = np.int64(low), np.int64(high)
            if low != before_low or high != before_high:
                changed[i] = 1


@njit(cache=True, inline="always")
def add_wide(low, high, top, lower, upper, w):
    """(low, high, top) += w * (lower, upper): all 192 bits of it."""
    one, none = np.uint64(1), np.uint64(0)
    x, y = np.uint64(lower), np.uint64(upper)
    negative = upper < 0
    if negative:
        x, y = ~x + one, ~y + (one if x == none else none)
    times = np.uint64(abs(w))
    x, carry = _times(x, times)
    y, z = _times(y, times)
    y += carry
    z += one if y < carry else none
    if negative == (w < 0):
        low += x
        carry = one if low < x else none
        high += carry
        z += one if high < carry else none
        high += y
        top += z + (one if high < y else none)
    else:
        carry = one if low < x else none
        low -= x
        z += one if high < carry else none
        high -= carry
        z += one if high < y else none
        high -= y
        top -= z
    return low, high, top


@njit(cache=True, nogil=True)
def follow_wide(bounds, first, weight, valid, values, uppers, lows, highs, tops, changed):
    """192-bit sums of weight times 128-bit value: no sum of decimals can leave them unnoticed."""
    keys = len(first) - 1
    for k in range(keys):
        low, high, top = np.uint64(lows[k]), np.uint64(highs[k]), np.uint64(tops[k])
        for i in range(first[k], first[k + 1]):
            before_low, before_high, before_top = low, high, top
            for p in range(bounds[i], bounds[i + 1]):
                if valid[p] != 0:
                    low, high, top = add_wide(low, high, top, values[p], uppers[p], weight[p])
            lows[keys + i], highs[keys + i], tops[keys + i] = np.int64(low), np.int64(high), np.int64(top)
            if low != before_low or high != before_high or top != before_top:
                changed[i] = 1


@njit(cache=True, inline="always")
def add_double(total, rest, x):
    """(total, rest) += x: error-free up to the last rounding of the rest (Knuth's two-sum)."""
    t = total + x
    z = t - total
    error = (total - (t - z)) + (x - z)
    rest += error
    s = t + rest
    return s, rest - (s - t)


@njit(cache=True, inline="always")
def product_error(a, b, p):
    """a * b - p exactly (Dekker), or 0 where that overflows."""
    c = 134217729.0 * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = 134217729.0 * b
    b_high = c - (c - b)
    b_low = b - b_high
    error = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
    return error if np.isfinite(error) else 0.0


@njit(cache=True, nogil=True)
def arrange_ties(bounds, weight, valid, values):
    """The three columns with the endpoints of each instant in the order of (value, weight).

    Sums that are computed a second time, to be taken back, must round as they did the first time.
    """
    weight, valid, values = weight.copy(), valid.copy(), values.copy()
    for i in range(len(bounds) - 1):
        begin, stop = bounds[i], bounds[i + 1]
        if stop - begin > _MANY:
            order = np.argsort(weight[begin:stop], kind="mergesort")
            order = order[np.argsort(values[begin:stop][order], kind="mergesort")]
            weight[begin:stop] = weight[begin:stop][order]
            valid[begin:stop] = valid[begin:stop][order]
            values[begin:stop] = values[begin:stop][order]
            continue
        for j in range(begin + 1, stop):
            w, v, x = weight[j], valid[j], values[j]
            at = j
            while at > begin and (values[at - 1] > x or (values[at - 1] == x and weight[at - 1] > w)):
                weight[at], valid[at], values[at] = weight[at - 1], valid[at - 1], values[at - 1]
                at -= 1
            weight[at], valid[at], values[at] = w, v, x
    return weight, valid, values


@njit(cache=True, nogil=True)
def follow_float(bounds, first, weight, valid, values, counts, sums, rests, specials, changed):
    """Double-double sums of weight times value; scaled down while there are values that they could overflow with.

    Tiny values keep all their digits so. NaN and infinities are only counted, so that they can leave again.
    """
    keys = len(first) - 1
    for k in range(keys):
        total, rest, special = sums[k], rests[k], specials[k]
        scaled = special & SCALED != 0
        for i in range(first[k], first[k + 1]):
            before, before_rest, before_special = total, rest, special
            for p in range(bounds[i], bounds[i + 1]):
                if valid[p] == 0:
                    continue
                x, w = values[p], weight[p]
                if scaled or not abs(x) < LARGE:
                    if np.isnan(x):
                        special += w * _NAN
                        continue
                    if np.isinf(x):
                        special += w * (_PLUS if x > 0 else _MINUS)
                        continue
                    if not scaled:
                        total, rest, special, scaled = total * DOWN, rest * DOWN, special + SCALED, True
                    x *= DOWN
                if w == 1:
                    total, rest = add_double(total, rest, x)
                elif w == -1:
                    total, rest = add_double(total, rest, -x)
                else:
                    y = x * w
                    total, rest = add_double(total, rest, y)
                    total, rest = add_double(total, rest, product_error(x, np.float64(w), y))
            if counts[keys + i] == 0:  # nothing left: exactly zero
                total, rest = 0.0, 0.0
            if scaled and abs(total) < _SMALL_AGAIN:
                total, rest, special, scaled = total / DOWN, rest / DOWN, special - SCALED, False
            sums[keys + i], rests[keys + i], specials[keys + i] = total, rest, special
            if total != before or rest != before_rest or special != before_special:
                changed[i] = 1


@njit(cache=True, inline="always")
def _two_sum(a, b):
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


@njit(cache=True, inline="always")
def add_exactly(total, rest, tail, x):
    """(total, rest, tail) += x with three times the digits of a float."""
    total, error = _two_sum(total, x)
    rest, error = _two_sum(rest, error)
    tail += error
    total, error = _two_sum(total, rest)
    rest, tail = _two_sum(error, tail)
    return total, rest, tail


@njit(cache=True, inline="always")
def add_product(total, rest, tail, a, b):
    p = a * b
    total, rest, tail = add_exactly(total, rest, tail, p)
    return add_exactly(total, rest, tail, product_error(a, b, p))


@njit(cache=True, nogil=True)
def follow_squares(bounds, first, weight, valid, values, counts, sums, rests, tails, huge, changed):
    """Triple-float sums of weight times squared value; values whose square overflows, or is none, are only counted.

    A variance is the small difference of large numbers, hence the digits.
    """
    keys = len(first) - 1
    for k in range(keys):
        total, rest, tail, over = sums[k], rests[k], tails[k], huge[k]
        for i in range(first[k], first[k + 1]):
            before, before_rest, before_over = total, rest, over
            for p in range(bounds[i], bounds[i + 1]):
                if valid[p] == 0:
                    continue
                x, w = values[p], np.float64(weight[p])
                if not abs(x) < _HUGE:
                    over += weight[p]
                    continue
                square = x * x
                total, rest, tail = add_product(total, rest, tail, square, w)
                total, rest, tail = add_product(total, rest, tail, product_error(x, x, square), w)
            if counts[keys + i] == 0:
                total, rest, tail = 0.0, 0.0, 0.0
            sums[keys + i], rests[keys + i], tails[keys + i], huge[keys + i] = total, rest, tail, over
            if total != before or rest != before_rest or over != before_over:
                changed[i] = 1


@njit(cache=True, nogil=True)
def follow_products(bounds, first, weight, valid, values, others, counts, sums, rests, tails, huge, changed):
    """The same of products of two values: follow_squares is that of a value with itself."""
    keys = len(first) - 1
    for k in range(keys):
        total, rest, tail, over = sums[k], rests[k], tails[k], huge[k]
        for i in range(first[k], first[k + 1]):
            before, before_rest, before_over = total, rest, over
            for p in range(bounds[i], bounds[i + 1]):
                if valid[p] == 0:
                    continue
                x, y, w = values[p], others[p], np.float64(weight[p])
                if not (abs(x) < _HUGE and abs(y) < _HUGE):
                    over += weight[p]
                    continue
                product = x * y
                total, rest, tail = add_product(total, rest, tail, product, w)
                total, rest, tail = add_product(total, rest, tail, product_error(x, y, product), w)
            if counts[keys + i] == 0:
                total, rest, tail = 0.0, 0.0, 0.0
            sums[keys + i], rests[keys + i], tails[keys + i], huge[keys + i] = total, rest, tail, over
            if total != before or rest != before_rest or over != before_over:
                changed[i] = 1


@njit(cache=True, nogil=True)
def product_spreads(count, sums, rests, other_sums, other_rests, products, product_rests, product_tails):
    """n * Sxy - Sx * Sy from n, Sx, Sy and Sxy; where a sum is scaled down, products have overflowed and nobody asks."""
    out = np.empty(len(count), np.float64)
    for i in range(len(count)):
        n, x, x_rest, y, y_rest = count[i], sums[i], rests[i], other_sums[i], other_rests[i]
        total, rest, tail = add_product(0.0, 0.0, 0.0, n, products[i])
        total, rest, tail = add_product(total, rest, tail, -x, y)
        total, rest, tail = add_product(total, rest, tail, n, product_rests[i])
        total, rest, tail = add_product(total, rest, tail, -x, y_rest)
        total, rest, tail = add_product(total, rest, tail, -x_rest, y)
        total, rest, tail = add_product(total, rest, tail, n, product_tails[i])
        total, rest, tail = add_product(total, rest, tail, -x_rest, y_rest)
        out[i] = total
    return out


@njit(cache=True, nogil=True)
def squared_spreads(count, sums, rests, squares, square_rests, square_tails):
    """n * S2 - S1 * S1 from n, S1 and S2; where S1 is scaled down, squares have overflowed and nobody asks."""
    out = np.empty(len(count), np.float64)
    for i in range(len(count)):
        n, sum_, rest_ = count[i], sums[i], rests[i]
        total, rest, tail = add_product(0.0, 0.0, 0.0, n, squares[i])
        total, rest, tail = add_product(total, rest, tail, -sum_, sum_)
        total, rest, tail = add_product(total, rest, tail, n, square_rests[i])
        total, rest, tail = add_product(total, rest, tail, -2.0 * sum_, rest_)
        total, rest, tail = add_product(total, rest, tail, n, square_tails[i])
        total, rest, tail = add_product(total, rest, tail, -rest_, rest_)
        out[i] = max(total, 0.0)
    return out


@njit(cache=True, nogil=True)
def cut_segments(instants, first, counts, changed, since, horizon, show_open):
    """Segments (key index, start, end, which totals hold there) by (key, start), and each key's totals at the horizon.

    A segment ends at the next instant at which some total changes; the last one is shown until the end of time, or not at
    all; where the count is zero there is none. since becomes that after the last instant before the horizon.
    """
    keys = len(first) - 1
    room = len(instants) + keys if show_open else len(instants)
    key, start, end, source = (
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )
    at_horizon = np.empty(keys, np.int64)
    out = 0
    for k in range(keys):
        begun, last = since[k], k
        at_horizon[k] = k
        for i in range(first[k], first[k + 1]):
            if changed[i] != 0:
                if counts[last] > 0:
                    key[out], start[out], end[out], source[out] = k, begun, instants[i], last
                    out += 1
                begun = instants[i]
            last = keys + i
            if instants[i] < horizon:
                at_horizon[k], since[k] = last, begun
        if show_open and counts[last] > 0:
            key[out], start[out], end[out], source[out] = k, begun, _END, last
            out += 1
    return key[:out], start[:out], end[:out], source[:out], at_horizon


@njit(cache=True, nogil=True)
def pick_totals(words, places, totals):
    """totals[v, k] = words[v, places[k]]"""
    for v in range(words.shape[0]):
        for k in range(len(places)):
            totals[v, k] = words[v, places[k]]
