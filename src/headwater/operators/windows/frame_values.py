"""What functions say of frames of rows: totals, extremes, and the values of single rows.

Frames that begin with their partition go on from what is kept of the rows that have left (``running``); the others look at
the rows themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.expressions.aggregates import AGGREGATES
from headwater.kernels import frames as kernel
from headwater.kernels import sweep_totals as totals
from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.order import canonical_ranks
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.aggregates.measures import Measure, TotalsAt, needed_measures, value_of
from headwater.operators.words import fits_word, to_words
from headwater.state.columns import Column, Columns, concat_column


@frozen
class FrameCall:
    """One function over rows from ``first`` rows before each row (INFINITY: all) to ``last`` before it, or to its peers."""

    function: str
    output: str
    type: pa.DataType
    argument: str | None = None
    filter: str | None = None
    first: int = INFINITY
    last: int = 0
    peers: bool = False
    nth: int = 0

    @property
    def running(self) -> bool:
        """Does its frame begin with the partition?"""
        return self.first == INFINITY

    @property
    def reach(self) -> int:
        """How many rows before a row it needs as they are."""
        return self.last if self.running else self.first

    @property
    def is_extreme(self) -> bool:
        known = AGGREGATES.get(self.function)
        return known is not None and known.is_extreme

    @property
    def is_value(self) -> bool:
        """Is it the value of one row of the frame?"""
        return self.function in ("LAST_VALUE", "NTH_VALUE")


class Sequences(NamedTuple):
    """The rows of some partitions, one after another and each in order, with what was before them."""

    rows: Delta
    groups: Int64Array
    passed: Int64Array
    """How many rows of each partition came before those that are here."""
    running: Columns
    """What is kept of these."""


class Frames(NamedTuple):
    """For some rows of the sequences: their partition, and their frame [start, stop) as far as it is here."""

    owner: Int64Array
    start: Int64Array
    stop: Int64Array


class Totals:
    """A call whose value follows from totals."""

    def __init__(self, call: FrameCall, schema: Schema, number: int) -> None:
        self.call, self._type = call, pa.int64() if call.argument is None else schema.field(call.argument).type
        if call.argument is None:
            self._measures: tuple[Measure, ...] = (Measure(totals.COUNT, "", None, call.filter),)
        else:
            self._measures = needed_measures(call.function, call.argument, self._type, call.filter, 0, staircase=False)
        self._words = sum(m.words for m in self._measures)
        self._names = [f"word.{number}.{w}" for w in range(self._words)]

    @property
    def encoding(self) -> tuple[int, ...]:
        """How its totals are kept."""
        return tuple(m.kind for m in self._measures)

    def kept(self) -> dict[str, Column]:
        return {name: np.empty(0, np.int64) for name in self._names} if self.call.running else {}

    def follow(self, sequences: Sequences) -> Int64Array:
        """The totals after each row: of its partition; or of all rows, to be subtracted from one another."""
        rows, groups = sequences.rows, sequences.groups
        if not self.call.running:
            groups = np.array([0, len(rows)])
        keys = len(groups) - 1
        words = np.zeros((self._words, keys + len(rows)), np.int64)
        if self.call.running:
            for word, name in zip(words, self._names, strict=True):
                word[:keys] = sequences.running[name]
        walk = np.arange(len(rows) + 1), groups, np.ones(len(rows), np.int64)
        changed, at = np.zeros(len(rows), np.uint8), 0
        for measure in self._measures:
            if measure.encoding != "float" or self.call.running:
                values = measure.values(rows) if measure.value_names else ()
                part = words[at : at + measure.words]
                measure.follow(walk, measure.takes_part(rows), values, words[0], part, changed)
            at += measure.words
        return words

    def value(self, words: Int64Array, sequences: Sequences, frames: Frames) -> pa.Array:
        if self.call.running:
            found, places = words, _running_places(sequences, frames)
        else:
            found, places = self._differences(words, sequences, frames), np.arange(len(frames.start))
        return value_of(
            self.call.function, self.call.type, self._type, self._measures[-1].kind, TotalsAt(found, places)
        )

    def passed(self, words: Int64Array, sequences: Sequences, frames: Frames) -> dict[str, Column]:
        places = _running_places(sequences, frames)
        return {name: word[places] for name, word in zip(self._names, words, strict=True)}

    def _differences(self, words: Int64Array, sequences: Sequences, frames: Frames) -> Int64Array:
        rows, (_, start, stop) = sequences.rows, frames
        out, at = np.zeros((self._words, len(start)), np.int64), 0
        for measure in self._measures:
            place = slice(at, at + measure.words)
            if measure.encoding == "float":
                valid, values = measure.takes_part(rows), measure.values(rows)[0].view(np.float64)
                sums, last = out[place].view(np.float64), out[at + measure.words - 1]
                if measure.kind == totals.FLOAT:
                    kernel.fold_floats(start, stop, valid, values, sums[0], sums[1], last)
                else:
                    kernel.fold_squares(start, stop, valid, values, sums[0], sums[1], sums[2], last)
            else:
                out[place] = _subtracted(words[place][:, stop], words[place][:, start])
            at += measure.words
        return out


class Extreme:
    """A call that is the least or the largest of the values."""

    def __init__(self, call: FrameCall, schema: Schema, number: int) -> None:
        assert call.argument is not None
        self.call, self._argument = call, call.argument
        self._type, self._name = schema.field(call.argument).type, f"value.{number}"
        self._taken = Measure(totals.COUNT, "", call.argument, call.filter)
        self._most = AGGREGATES[call.function].sees == "most"

    encoding = ()

    def kept(self) -> dict[str, Column]:
        return {self._name: pa.array([], self._type)} if self.call.running else {}

    def follow(self, sequences: Sequences) -> Int64Array:
        """Where the extreme so far is, after each row."""
        if not self.call.running:
            return np.empty(0, np.int64)
        column, groups = self._column(sequences), sequences.groups
        kept = sequences.running.arrow(self._name).is_valid().to_numpy(zero_copy_only=False)
        valid = np.concatenate([self._taken.takes_part(sequences.rows), kept.view(np.uint8)])
        places = np.empty(len(column), np.int64)
        kernel.follow_extremes(groups, _codes(column), valid, self._most, places)
        return places

    def value(self, places: Int64Array, sequences: Sequences, frames: Frames) -> pa.Array:
        if self.call.running:
            found = places[_running_places(sequences, frames)]
        else:
            found, rows = np.empty(len(frames.start), np.int64), sequences.rows
            codes = _codes(rows.column(self._argument))
            kernel.find_extremes(frames.start, frames.stop, codes, self._taken.takes_part(rows), self._most, found)
        return _taken(self._column(sequences), found).cast(self.call.type)

    def passed(self, places: Int64Array, sequences: Sequences, frames: Frames) -> dict[str, Column]:
        return {self._name: _taken(self._column(sequences), places[_running_places(sequences, frames)])}

    def _column(self, sequences: Sequences) -> pa.Array:
        return _with_kept(sequences, self._argument, self._name if self.call.running else None)


class Value:
    """A call that is the value of one row: the last of the frame, or the one of a number."""

    def __init__(self, call: FrameCall, schema: Schema, number: int) -> None:
        assert call.argument is not None
        self.call, self._argument = call, call.argument
        self._type, self._name = schema.field(call.argument).type, f"value.{number}"
        self._keeps = call.running and bool(call.nth)

    encoding = ()

    def kept(self) -> dict[str, Column]:
        return {self._name: pa.array([], self._type)} if self._keeps else {}

    def follow(self, sequences: Sequences) -> Int64Array:
        return np.empty(0, np.int64)

    def value(self, places: Int64Array, sequences: Sequences, frames: Frames) -> pa.Array:
        owner, start, stop = frames
        if not self.call.nth:
            found = np.where(stop > start, stop - 1, -1)
        elif not self.call.running:
            found = np.where(start + self.call.nth <= stop, start + self.call.nth - 1, -1)
        else:
            found = start + self.call.nth - 1 - sequences.passed[owner]  # from where the partition begins
            found = np.where(found >= stop, -1, np.where(found < start, len(sequences.rows) + owner, found))
        return _taken(_with_kept(sequences, self._argument, self._name if self._keeps else None), found)

    def passed(self, places: Int64Array, sequences: Sequences, frames: Frames) -> dict[str, Column]:
        return {self._name: self.value(places, sequences, frames)} if self._keeps else {}


def computed(call: FrameCall, schema: Schema, number: int) -> Totals | Extreme | Value:
    """How a call is computed; the number tells apart what is kept for the calls of one operator."""
    kind = Value if call.is_value else Extreme if call.is_extreme else Totals
    return kind(call, schema, number)


def kept_columns(calls: Sequence[Totals | Extreme | Value]) -> Mapping[str, Column]:
    """Examples of what is kept of the rows that have left."""
    return {name: column for call in calls for name, column in call.kept().items()}


def _running_places(sequences: Sequences, frames: Frames) -> Int64Array:
    """Where totals are found that begin with the partition: behind one for each partition, one for each row."""
    begun = frames.stop > sequences.groups[frames.owner]
    return np.where(begun, len(sequences.groups) - 2 + frames.stop, frames.owner)


def _with_kept(sequences: Sequences, argument: str, kept: str | None) -> pa.Array:
    column = sequences.rows.column(argument)
    return column if kept is None else concat_column([column, sequences.running[kept]])


def _taken(column: pa.Array, places: Int64Array) -> pa.Array:
    """The values at these places; NULL where they are negative."""
    none = places < 0
    return column.take(pa.array(places, mask=none if none.any() else None))


def _codes(column: pa.Array) -> Int64Array:
    """Words in the order of the values; NULLs are arbitrary."""
    return to_words(column) if fits_word(column.type) else canonical_ranks([column])


def _subtracted(left: Int64Array, right: Int64Array) -> Int64Array:
    """Numbers of several words, the lowest first, less others."""
    out = np.empty_like(left)
    borrow = np.zeros(left.shape[1], np.uint64)
    for word, a, b in zip(out, left.view(np.uint64), right.view(np.uint64), strict=True):
        word[:] = (a - b - borrow).view(np.int64)
        borrow = ((a < b) | ((a == b) & (borrow > 0))).astype(np.uint64)
    return out
