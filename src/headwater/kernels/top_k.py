"""Which rows of a partition are number lo + 1 to hi in its order, followed through time.

The rows at hand have slots, numbered in their order, partition after partition. How many copies of each are valid is kept
in a Fenwick tree (a tree of partial sums: "which row is number i" and "what number has this row" take O(log slots)), so
that an endpoint costs O(log slots), plus as much for each row that it brings into sight, hides or renumbers.

Of a partition with many rows only the first may be at hand (``partial``): up to the slot ``bound``, and at least ``hi``
copies. What lies beyond is left alone; where so many rows leave that it would come into sight the partition is ``short``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_END = np.int64(2**63 - 1)  # the end of time


@njit(cache=True, inline="always")
def _before(tree, slot):
    """How many copies the slots before this one have."""
    total = np.int64(0)
    while slot > 0:
        total += tree[slot]
        slot -= slot & -slot
    return total


@njit(cache=True, inline="always")
def _find(tree, number):
    """The slot of the copy with this number (from 1); the number of slots if there are not so many."""
    size = len(tree) - 1
    step = np.int64(1)
    while step <= size >> 1:
        step <<= 1
    at = np.int64(0)
    while step > 0:
        if at + step <= size and tree[at + step] < number:
            at += step
            number -= tree[at]
        step >>= 1
    return at


@njit(cache=True)
def _plant(tree, count):
    """Fill the tree with the counts; returns their sum."""
    total = np.int64(0)
    tree[:] = 0
    for i in range(1, len(tree)):
        copies = max(count[i - 1], np.int64(0))
        total += copies
        tree[i] += copies
        above = i + (i & -i)
        if above < len(tree):
            tree[above] += tree[i]
    return total


@njit(cache=True, inline="always")
def _change(tree, count, slot, weight):
    """Add the weight to the slot's count; returns by how much the copies change (there are never less than none)."""
    old = max(count[slot], np.int64(0))
    count[slot] += weight
    change = max(count[slot], np.int64(0)) - old
    if change != 0:
        at = slot + 1
        while at < len(tree):
            tree[at] += change
            at += at & -at
    return change


@njit(cache=True)
def _take_instant(at, stop, time, slot, weight, first, bound, tree, count, changed):
    """Let the endpoints of one instant count; returns the next endpoint, how many slots changed, and the copies by."""
    t, touched, moved = time[at], 0, np.int64(0)
    while at < stop and time[at] == t:
        if slot[at] >= 0 and slot[at] <= bound and weight[at] != 0:
            moved += _change(tree, count, slot[at] - first, weight[at])
            changed[touched] = slot[at] - first
            touched += 1
        at += 1
    return at, touched, moved


@njit(cache=True, inline="always")
def _in_sight(before, copies, lo, hi):
    """How many of the copies after the first ``before`` are among number lo + 1 to hi."""
    return max(min(before + copies, hi) - max(before, lo), np.int64(0))


@njit(cache=True)
def _put(table, n, a, b, c, d, e):
    """One more column of five numbers; returns the table, which may have grown, and the next place."""
    if n == table.shape[1]:
        larger = np.empty((table.shape[0], 2 * n + 16), np.int64)
        larger[:, :n] = table
        table = larger
    table[0, n], table[1, n], table[2, n], table[3, n], table[4, n] = a, b, c, d, e
    return table, n + 1


# -- rows without numbers: how many copies of each are in sight ------------------------------------------------------


@njit(cache=True)
def _load_rows(begin, end, first, slot, copies, entry_since, lo, hi, shown, since):
    p = np.int64(0)
    for e in range(begin, end):
        shown[slot[e] - first] = _in_sight(p, copies[e], lo, hi)
        since[slot[e] - first] = entry_since[e]
        p += copies[e]


@njit(cache=True)
def _show(out, n, x, before, copies, first, lo, hi, shown, since, t, quiet):
    """Close what was shown of slot x if another number of its copies is in sight now."""
    now = _in_sight(before, copies, lo, hi)
    if now != shown[x]:
        if shown[x] > 0 and t >= quiet:
            out, n = _put(out, n, first + x, np.int64(0), since[x], t, shown[x])
        shown[x] = now
        since[x] = t if now > 0 else _END
    return out, n


@njit(cache=True)
def _settle_rows(out, n, tree, count, total, first, lo, hi, shown, since, edges, changed, t, quiet):
    """After the changes at t: only these rows, and those over which the edges of what is in sight have moved, differ."""
    for x in changed:
        copies = max(count[x], np.int64(0))
        out, n = _show(out, n, x, _before(tree, x), copies, first, lo, hi, shown, since, t, quiet)
    for side in range(2):
        edge = _find(tree, lo + 1) if side == 0 else _find(tree, min(hi, total))
        before = _before(tree, min(edge, edges[side]))
        x, last = _find(tree, before + 1), min(max(edge, edges[side]), len(count) - 1)
        while x <= last:
            out, n = _show(out, n, x, before, count[x], first, lo, hi, shown, since, t, quiet)
            before += count[x]
            x = _find(tree, before + 1)
        edges[side] = edge
    return out, n


# -- rows with numbers: which row has each number --------------------------------------------------------------------


@njit(cache=True)
def _load_numbers(begin, end, first, slot, copies, entry_since, lo, hi, row, since):
    """The slots of the numbers in sight, and since when they have them; returns how many numbers there are."""
    p, i = np.int64(0), np.int64(0)
    for e in range(begin, end):
        for _ in range(_in_sight(p, copies[e], lo, hi)):
            row[i], since[i] = slot[e] - first, entry_since[e]
            i += 1
        p += copies[e]
    return i


@njit(cache=True)
def _settle_numbers(out, n, tree, count, total, first, lo, hi, row, since, had, change, changed, t, quiet):
    """After the changes at t: from the first changed row on, up to the last one where as many come as go.

    Returns also how many numbers there are now.
    """
    has = _in_sight(np.int64(0), total, lo, hi)
    i = max(_before(tree, changed.min()) - lo, np.int64(0))
    last = changed.max()
    x = _find(tree, lo + i + 1)
    left = _before(tree, x) + count[x] - lo - i if i < has else np.int64(0)
    while i < has and (change != 0 or x <= last):
        if i >= had or row[i] != x:
            if i < had and t >= quiet:
                out, n = _put(out, n, first + row[i], lo + i + 1, since[i], t, np.int64(1))
            row[i], since[i] = x, t
        i += 1
        left -= 1
        if left == 0 and i < has:
            x = _find(tree, lo + i + 1)
            left = count[x]
    if t >= quiet:
        for j in range(has, had):
            out, n = _put(out, n, first + row[j], lo + j + 1, since[j], t, np.int64(1))
    return out, n, has


# -- what is kept of a partition -------------------------------------------------------------------------------------


@njit(cache=True)
def _keep(kept, m, tree, count, total, first, lo, hi, ranked, since, partial, bound, slack):
    """The partition's first rows as (slot, copies, since), and whether these are not all of them.

    With numbers, each copy in sight by itself. The last entry of a partial one is its bound, maybe without copies.
    """
    cut = hi < _END >> 1 and total - hi > 2 * slack
    enough = hi + slack if cut else _END
    p, x, last = np.int64(0), _find(tree, np.int64(1)), np.int64(-1)
    while x < len(count) and p < enough:
        seen = _in_sight(p, count[x], lo, hi)
        if not ranked:
            kept, m = _put(kept, m, first + x, count[x], since[x] if seen > 0 else _END, 0, 0)
        else:
            hidden = min(count[x], max(lo - p, np.int64(0)))
            if hidden > 0:
                kept, m = _put(kept, m, first + x, hidden, _END, 0, 0)
            for i in range(seen):
                kept, m = _put(kept, m, first + x, np.int64(1), since[p + hidden - lo + i], 0, 0)
            if count[x] > hidden + seen:
                kept, m = _put(kept, m, first + x, count[x] - hidden - seen, _END, 0, 0)
        p += count[x]
        last = x
        x = _find(tree, p + 1)
    if x < len(count):
        return kept, m, True
    if partial and first + last != bound:
        kept, m = _put(kept, m, bound, np.int64(0), _END, 0, 0)
    return kept, m, partial


@njit(cache=True)
def _still_open(out, n, first, lo, ranked, has, row, shown, since):
    """What is in sight at the end, shown for ever."""
    if ranked:
        for i in range(has):
            out, n = _put(out, n, first + row[i], lo + i + 1, since[i], _END, np.int64(1))
    else:
        for x in range(len(shown)):
            if shown[x] > 0:
                out, n = _put(out, n, first + x, np.int64(0), since[x], _END, shown[x])
    return out, n


@njit(cache=True)
def _most_numbers(groups, k, weight, total, lo, hi):
    """No more numbers than these are ever in sight."""
    for at in range(groups[k], groups[k + 1]):
        total += max(weight[at], np.int64(0))
    return _in_sight(np.int64(0), total, lo, hi)


@njit(cache=True, nogil=True)
def sweep_top(
    first,
    copies,
    entries,
    entry_slot,
    entry_copies,
    entry_since,
    partial,
    bound,
    slack,
    groups,
    time,
    slot,
    weight,
    quiet,
    lo,
    hi,
    ranked,
    horizon,
    store,
    show_open,
):
    """Segments (slot, number or 0, start, end, weight), what is kept as of the horizon, and which partitions are short.

    Partition k has the slots first[k] to first[k + 1], of which ``copies`` were valid before the first endpoint, and the
    endpoints groups[k] to groups[k + 1], by time (slot -1: of a row beyond the bound). ``entries`` say where its entries
    begin: its first rows as they were kept, in order. Segments that end before quiet[k] are left out; those that are
    open at the end are shown for ever, or not at all. What is kept: offsets, (slot, copies, since, -, -), partial.
    """
    keys = len(first) - 1
    short, part = np.zeros(keys, np.bool_), np.zeros(keys, np.bool_)
    kept_offsets = np.zeros(keys + 1, np.int64)
    out, kept = np.empty((5, 2 * len(time) + 16), np.int64), np.empty((5, 2 * len(copies) + 16), np.int64)
    counts, changed = copies.copy(), np.empty(len(time), np.int64)
    trees, edges = np.empty(len(copies) + 1, np.int64), np.zeros(2, np.int64)
    n = m = 0
    for k in range(keys):
        begin, mark = first[k], n
        count = counts[begin : first[k + 1]]
        tree = trees[: len(count) + 1]
        total = _plant(tree, count)
        numbers = _most_numbers(groups, k, weight, total, lo, hi) if ranked else np.int64(0)
        row, shown = np.empty(numbers, np.int64), np.zeros(0 if ranked else len(count), np.int64)
        since = np.full(numbers if ranked else len(count), _END)
        has = np.int64(0)
        base = (entries[k], entries[k + 1], begin, entry_slot, entry_copies, entry_since, lo, hi)
        if ranked:
            has = _load_numbers(*base, row, since)
        else:
            _load_rows(*base, shown, since)
            edges[0], edges[1] = _find(tree, lo + 1), _find(tree, min(hi, total))
        keeping = store
        at, stop = groups[k], groups[k + 1]
        while at < stop:
            t = time[at]
            if keeping and t >= horizon:
                kept, m, part[k] = _keep(
                    kept, m, tree, count, total, begin, lo, hi, ranked, since, partial[k], bound[k], slack[k]
                )
                keeping = False
            at, touched, moved = _take_instant(at, stop, time, slot, weight, begin, bound[k], tree, count, changed)
            if touched == 0:
                continue
            total += moved
            if partial[k] and total < hi:
                short[k] = True
                break
            if ranked:
                out, n, has = _settle_numbers(
                    out, n, tree, count, total, begin, lo, hi, row, since, has, moved, changed[:touched], t, quiet[k]
                )
            else:
                out, n = _settle_rows(
                    out, n, tree, count, total, begin, lo, hi, shown, since, edges, changed[:touched], t, quiet[k]
                )
        if short[k]:
            n, m = mark, kept_offsets[k]
        else:
            if keeping:
                kept, m, part[k] = _keep(
                    kept, m, tree, count, total, begin, lo, hi, ranked, since, partial[k], bound[k], slack[k]
                )
            if show_open:
                out, n = _still_open(out, n, begin, lo, ranked, has, row, shown, since)
        kept_offsets[k + 1] = m
    return out[:, :n].copy(), kept_offsets, kept[:3, :m].copy(), part, short
