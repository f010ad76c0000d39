"""From the strong form of an aggregate to the speculative one, where MIN and MAX were computed from staircases.

A staircase has what can still become the extreme of the rows that began before the frontier, and those are final. So its
steps stand for all of them, as rows that end when the steps do; the others never show again. The fingerprints, by which the
speculative form sees where the values of a group change, follow from the endpoints that are still to come: what all live
rows add to one is what their ends will take away. A row that never ends adds nothing to it, and never takes anything away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.model.arrays import Int64Array
from headwater.model.identity import Identity
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.aggregates.measures import Measure, fingerprints
from headwater.operators.words import from_words
from headwater.state.columns import Columns
from headwater.state.latest import Found, LatestWins
from headwater.state.store import MemoryStore

if TYPE_CHECKING:
    from headwater.operators.aggregates.aggregate import AggregateState

UNTIL = "until"
"""The column of an endpoint that says where its row ends: staircases ask for it."""


def without_staircases(
    old: AggregateState,
    new: AggregateState,
    was: Sequence[Measure],
    now: Sequence[Measure],
    type_of: Callable[[Measure], pa.DataType],
) -> None:
    """Fill a new state of the measures ``now`` with what an old one of the measures ``was`` keeps."""
    new.frontier, new.tau = old.frontier, old.tau
    new.endpoints.frontier = old.endpoints.frontier
    new.kept.take_over(old.kept, {j: was.index(m) for j, m in enumerate(now) if m in was})
    parts = old.endpoints.between(old.endpoints.frontier, INFINITY)
    waiting = Columns.concat(parts) if parts else Columns()
    added: dict[Measure, Int64Array] = {}
    for j, measure in enumerate(now):
        if measure in was:
            continue
        type_ = type_of(measure)
        extremes = [(i, m) for i, m in enumerate(was) if m.is_extreme and m.counted == measure.counted]
        for i, _ in extremes:
            key, end, words = old.staircases[i].steps()
            values = from_words(words, np.zeros(len(words), np.bool_), type_)
            start, one = np.full(len(end), BEGINNING, np.int64), np.ones(len(end), np.int64)
            new.kept.append(j, key, start, end, one, values)
        if parts:
            valid, values = _values(waiting, extremes[0][1], type_)
            _keep_begun(new, j, waiting, valid, values)
            waiting |= {measure.valid_name: valid, measure.value_names[0]: fingerprints(values)}
            added[measure] = _taken_away(waiting, measure)
    _put_totals(old, new, was, now, waiting, added)
    if parts:
        used = {name for m in now for name in (m.valid_name, *m.value_names)}
        unused = {UNTIL} | {name for m in was for name in (m.valid_name, *m.value_names)} - used
        new.endpoints.append(waiting.without(*unused))


def _values(waiting: Columns, extreme: Measure, type_: pa.DataType) -> tuple[np.ndarray, pa.Array]:
    """Which endpoints take part, and the values of their rows."""
    valid = np.ascontiguousarray(waiting[extreme.valid_name])
    return valid, from_words(np.ascontiguousarray(waiting[extreme.value_names[0]]), valid == 0, type_)


def _keep_begun(new: AggregateState, measure: int, waiting: Columns, valid: np.ndarray, values: pa.Array) -> None:
    """The rows that have not begun at the frontier, by the endpoints at which they will."""
    begins = np.flatnonzero((valid != 0) & (waiting[UNTIL] > waiting.time))
    rows = waiting.only(("time", UNTIL, "weight")).take(begins)
    key, begun = waiting.key.take(begins), values.take(pa.array(begins))
    new.kept.append(measure, key, rows.time, rows.array(UNTIL), rows.weight, begun)


def _taken_away(waiting: Columns, measure: Measure) -> Int64Array:
    """By how much each endpoint lowers the fingerprint; those of rows that begin and never end do not count."""
    change = waiting.weight * waiting[measure.valid_name] * waiting[measure.value_names[0]]
    return np.where(waiting[UNTIL] == INFINITY, 0, -change)


def _put_totals(
    old: AggregateState,
    new: AggregateState,
    was: Sequence[Measure],
    now: Sequence[Measure],
    waiting: Columns,
    added: dict[Measure, Int64Array],
) -> None:
    """The totals at the frontier, in the order of the new measures."""
    key, columns = old.base.live()
    if len(key.low) == 0:
        return
    record = columns["record"]
    places = np.cumsum([0, *(m.words for m in was)])
    words: list[Int64Array] = []
    for measure in now:
        if measure in was:
            at = places[was.index(measure)]
            words += [record[:, at + w] for w in range(measure.words)]
        else:
            words.append(_sums(key, waiting, added[measure]) if added else np.zeros(len(key.low), np.int64))
    payload = {name: column for name, column in columns.items() if name.startswith("key.")}
    nobody, living = np.full(len(key.low), -1, np.int64), np.zeros(len(key.low), np.bool_)
    new.base.put(key, np.stack([*words, record[:, -1]], axis=1), payload, living, Found(nobody, nobody))


def _sums(key: Identity, waiting: Columns, amounts: Int64Array) -> Int64Array:
    """The sum of the endpoints' amounts for each key."""
    index, nobody = LatestWins(MemoryStore()), np.full(len(key.low), -1, np.int64)
    numbers = np.arange(len(key.low))[:, None]
    index.put(key, numbers, {}, np.zeros(len(key.low), np.bool_), Found(nobody, nobody))
    found = index.find(waiting.key)
    known = np.flatnonzero(found.segment >= 0)
    total = np.zeros(len(key.low), np.int64)
    np.add.at(total, index.records(found, 1)[known, 0], amounts[known])
    return total
