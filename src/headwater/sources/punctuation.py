"""What a source says of its own time in a column: up to where it is done, and when it sent a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.time import BEGINNING
from headwater.sources.columns import valid
from headwater.sources.timed import instants


class Heartbeats:
    """The column of HEARTBEAT FROM SOURCE in some rows.

    A heartbeat h says that nothing at or before h comes any more (Srivastava & Widom 2). A row with a heartbeat and no
    time is nothing else.
    """

    def __init__(self, beats: pa.Array, name: str, timeless: BoolArray, partition: pa.Array | None = None) -> None:
        """``timeless``: the rows that came without a time, not those with one that cannot be read. ``partition``: whose
        heartbeats they are, where a column says so."""
        self._partition = None if partition is None else partition_names(partition)
        self.given: BoolArray = valid(beats)
        self.alone: BoolArray = self.given & timeless
        """Rows that are heartbeats only."""
        whole = pc.fill_null(beats, pa.scalar(0, beats.type)) if beats.null_count else beats
        self.at, self.reasons = instants(whole, name)
        """Where there is a heartbeat."""

    def decreasing(self) -> BoolArray:
        """Which of them are before an earlier one: a source does not take its word back."""
        found = np.zeros(len(self.at), np.bool_)
        for _, its in self._speakers(self.given):
            found |= backward(self.at, its)
        return found

    def promises(self, which: BoolArray) -> dict[str, int]:
        """From where on rows still come, by who says so: a partition of itself, "" of the whole stream."""
        return {name: int(self.at[its].max()) + 1 for name, its in self._speakers(which)}

    def _speakers(self, which: BoolArray) -> Iterator[tuple[str, BoolArray]]:
        if self._partition is None:
            if which.any():
                yield "", which
            return
        coded = self._partition.dictionary_encode()
        codes = coded.indices.to_numpy()
        for code in np.unique(codes[which]):
            yield coded.dictionary[int(code)].as_py(), which & (codes == code)


def partition_names(column: pa.Array) -> pa.Array:
    """What partitions are called that a column tells apart."""
    return pc.fill_null(column.cast(pa.string()), "")


def backward(times: Int64Array, which: BoolArray) -> BoolArray:
    """Which of these are before an earlier one of them."""
    found = np.zeros(len(times), np.bool_)
    at = np.flatnonzero(which)
    if len(at) > 1:
        found[at] = times[at] < np.maximum.accumulate(times[at])
    return found


def latest(columns: Sequence[pa.Array]) -> int:
    """The largest wall-clock time in some columns of them; unknown if one is: that row may have been sent last."""
    times = pa.chunked_array(columns)
    if times.null_count or not len(times):
        return BEGINNING
    return int(times.cast(pa.int64()).to_numpy().max())
