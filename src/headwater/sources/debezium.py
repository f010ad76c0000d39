"""Change events as databases' logs tell them (Debezium): the row before and after a change, and what kind of change it is.

Without a key every event becomes signed images: +1 of the row after, -1 of the row before. With a key an event becomes the
new state of its key, or that it is gone. The plan makes rows of either that are valid from their change until the next
(``language/changes.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from headwater.language.changes import CHANGED
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.identity import identify
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.sources.columns import coalesce, is_equal, is_other, joined, nulls, places_in, shortened, valid, where
from headwater.sources.conform import UnfitError, conform, convert, first_reasons
from headwater.sources.timed import Decoded, arrow_schema, at_instants, instants

_COMES, _UPDATE, _DELETE = ("c", "r"), "u", "d"
_BIGINT = pa.int64()
_MOST_MILLISECONDS = (INFINITY - 1) // 1_000


@frozen
class Events:
    """How the change events of one stream are read. Picklable."""

    row: Schema
    """The columns of the table."""
    carried: Schema
    """What is made of an event."""
    key: tuple[str, ...]
    time: str
    """A column of the row, or ``CHANGED``: the event's own time."""

    def decode(self, batch: pa.RecordBatch) -> Decoded:
        """Raises ``UnfitError`` where the columns of a change event are not there."""
        event = _envelope(batch)
        op = _Ops(event)
        before, after = self._image(event, "before"), self._image(event, "after")
        needs_before = op.deletes if self.key else op.deletes | op.updates
        reasons = op.reasons
        for image, needed in ((after, ~op.deletes), (before, needs_before)):
            reasons = _refused(reasons, needed & ~image.given, f'the event has no "{image.name}"')
            if image.reasons is not None:
                used = needed if image is after or not self.key else needed | image.given
                reasons = _refused(reasons, valid(image.reasons) & used, image.reasons)
        start, wrong = self._times(event, after, op)
        if wrong is not None:
            reasons = wrong if reasons is None else coalesce(reasons, wrong)
        good = np.ones(len(start), np.bool_) if reasons is None else nulls(reasons)
        make = self._states if self.key else self._signed
        rows, place = make(event, op, before, after, good)
        return Decoded(at_instants(rows, start[place]), reasons)

    def _image(self, event: dict[str, pa.Array], name: str) -> _Image:
        """One of the two images; of what was before, a key alone is enough where there is one."""
        rows, column = len(event["op"]), event.get(name)
        if column is None or not pa.types.is_struct(column.type):
            nothing = [pa.nulls(rows, f.type) for f in self.row]
            return _Image(name, pa.RecordBatch.from_arrays(nothing, schema=arrow_schema(self.row)), _none(rows), None)
        names = [column.type.field(i).name for i in range(column.type.num_fields)]
        parts = pa.RecordBatch.from_arrays(column.flatten(), names=names)
        schema = self.row
        if name == "before" and self.key:
            folded = {n.casefold() for n in names}
            missing = [f for f in self.row if f.name not in self.key and f.name.casefold() not in folded]
            for field in missing:
                parts = parts.append_column(field.name, pa.nulls(rows, field.type))
            schema = Schema(tuple(f if f.name in self.key else Field(f.name, f.type) for f in self.row))
        try:
            found, reasons = conform(parts, schema, required={*self.key, self.time})
        except UnfitError as problem:
            raise UnfitError(f'"{name}": {problem}') from None
        return _Image(name, found, valid(column), reasons)

    def image_columns(self, batch: pa.RecordBatch) -> list[str]:
        """Those that rows have after their change; the declared ones where there is none."""
        column = _envelope(batch).get("after")
        if column is None or not pa.types.is_struct(column.type):
            return list(self.row.names)
        return [column.type.field(i).name for i in range(column.type.num_fields)]

    # -- times -------------------------------------------------------------------------------------------------------

    def _times(self, event: dict[str, pa.Array], after: _Image, op: _Ops) -> tuple[Int64Array, pa.Array | None]:
        if self.time == CHANGED:
            return _event_times(event)
        start, reasons = instants(after.rows.column(self.time), self.time)
        if reasons is not None:
            reasons = where(op.deletes, pa.scalar(None, pa.string()), reasons)
        if not op.deletes.any():
            return start, reasons
        # The row that is gone says nothing of when: its own time is that of its last change.
        if pa.types.is_integer(after.rows.column(self.time).type):
            said = f'a deletion has no time in "{self.time}"'
            return start, _refused(reasons, op.deletes, said)
        gone, wrong = _event_times(event)
        if wrong is not None:
            reasons = _refused(reasons, valid(wrong) & op.deletes, wrong)
        return np.where(op.deletes, gone, start), reasons

    # -- what becomes of an event ------------------------------------------------------------------------------------

    def _signed(
        self, event: dict[str, pa.Array], op: _Ops, before: _Image, after: _Image, good: BoolArray
    ) -> tuple[pa.RecordBatch, Int64Array]:
        gone, come = np.flatnonzero(good & (op.deletes | op.updates)), np.flatnonzero(good & ~op.deletes)
        place = np.concatenate([gone, come])
        sign = np.repeat(np.array([-1, 1], np.int32), [len(gone), len(come)])
        parts = before.rows.take(pa.array(gone)), after.rows.take(pa.array(come))
        columns = [pa.concat_arrays([a, b]) for a, b in zip(*(p.columns for p in parts), strict=True)]
        rows = pa.RecordBatch.from_arrays([*columns, pa.array(sign)], schema=arrow_schema(self.carried))
        return rows, place

    def _states(
        self, event: dict[str, pa.Array], op: _Ops, before: _Image, after: _Image, good: BoolArray
    ) -> tuple[pa.RecordBatch, Int64Array]:
        """A change of the key is a deletion under the old one."""
        moved = good & ~op.deletes & before.given & after.given & _differ(before.rows, after.rows, self.key)
        gone, come = np.flatnonzero((good & op.deletes) | moved), np.flatnonzero(good & ~op.deletes)
        # In the order of the events; a key that moves leaves its old place first.
        place = np.concatenate([gone, come])
        order = np.argsort(place, kind="stable")
        parts = before.rows.take(pa.array(gone)), after.rows.take(pa.array(come))
        columns = [pa.concat_arrays([a, b]) for a, b in zip(*(p.columns for p in parts), strict=True)]
        sequence = _sequence(event)[place]
        deleted = np.repeat(np.array([True, False]), [len(gone), len(come)])
        whole = [pa.array(sequence), *columns, pa.array(deleted)]
        rows = pa.RecordBatch.from_arrays(whole, schema=arrow_schema(self.carried)).take(pa.array(order))
        place = place[order]
        times = self._times(event, after, op)[0][place]
        last = _last_of_each([*(rows.column(k) for k in self.key), pa.array(times), pa.array(sequence[order])])
        return rows.take(pa.array(last)), place[last]


class _Image(NamedTuple):
    name: str
    rows: pa.RecordBatch
    given: BoolArray
    reasons: pa.Array | None


class _Ops:
    """What kind of change each event is."""

    def __init__(self, event: dict[str, pa.Array]) -> None:
        column, _ = convert(event["op"], Field("op", pa.string()))
        self.reasons = _refused(None, nulls(column), 'the event has no "op"')
        unknown = nulls(places_in(column, pa.array([*_COMES, _UPDATE, _DELETE]))) & valid(column)
        if unknown.any():
            said = joined('the event has the "op" ', shortened(column), ", which is none of c, r, u and d")
            self.reasons = _refused(self.reasons, unknown, said)
        self.updates: BoolArray = is_equal(column, _UPDATE)
        self.deletes: BoolArray = is_equal(column, _DELETE)


def _none(rows: int) -> BoolArray:
    return np.zeros(rows, np.bool_)


def _refused(reasons: pa.Array | None, failed: BoolArray, reason: pa.Array | str) -> pa.Array | None:
    return first_reasons(reasons, failed, reason) if failed.any() else reasons


def _envelope(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """The parts of the events by name; with a schema beside them (Kafka Connect) they are inside of ``payload``."""
    event = dict(zip(batch.schema.names, batch.columns, strict=True))
    bare = event.get("op")
    wrapped = event.get("payload")
    if (bare is None or bare.null_count == len(bare)) and wrapped is not None and pa.types.is_struct(wrapped.type):
        names = [wrapped.type.field(i).name for i in range(wrapped.type.num_fields)]
        event = dict(zip(names, wrapped.flatten(), strict=True))
    missing = [name for name in ("op", "before", "after") if name not in event]
    if "op" in missing:
        columns = ", ".join(f'"{m}"' for m in missing)
        raise UnfitError(f"these are no change events: {columns} missing; the columns are {', '.join(event)}")
    return event


def _event_times(event: dict[str, pa.Array]) -> tuple[Int64Array, pa.Array | None]:
    """When the database made the change; else when the event was made of it. In microseconds."""
    rows = len(event["op"])
    found, beyond = pa.nulls(rows, _BIGINT), _none(rows)
    for name, scale in (("source.ts_us", 1), ("source.ts_ms", 1_000), ("ts_us", 1), ("ts_ms", 1_000)):
        column = _number(event, name)
        if column is None or found.null_count == 0:
            continue
        values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        far = np.abs(values) > _MOST_MILLISECONDS if scale > 1 else (values <= BEGINNING) | (values >= INFINITY - 1)
        used = nulls(found) & valid(column)
        beyond |= used & far
        found = coalesce(found, pa.array(np.where(far, 0, values) * scale, mask=nulls(column)))
    reasons = _refused(None, nulls(found), "the event has no time: no ts_ms or ts_us of its own or of its source")
    reasons = _refused(reasons, beyond, "the time of the event is out of range")
    return pc.fill_null(found, 0).to_numpy(zero_copy_only=False), reasons


def _number(event: dict[str, pa.Array], name: str) -> pa.Array | None:
    """A number of the event, or of its source; None where there is none."""
    outer, _, inner = name.rpartition(".")
    if not outer:
        column = event.get(name)
    else:
        place = event.get(outer)
        known = place is not None and pa.types.is_struct(place.type) and place.type.get_field_index(inner) >= 0
        column = place.flatten()[place.type.get_field_index(inner)] if known and place is not None else None
    if column is None or pa.types.is_null(column.type):
        return None
    numbers, failed = convert(column, Field(name, _BIGINT))
    if failed is not None and failed.any():
        raise UnfitError(f'"{name}" is no whole number')
    return numbers


def _sequence(event: dict[str, pa.Array]) -> Int64Array:
    """The place of each event in the database's log, where it tells: it orders changes of one key at one instant."""
    for name in ("source.lsn", "source.pos"):
        column = _number(event, name)
        if column is not None:
            return pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return np.zeros(len(event["op"]), np.int64)


def _differ(left: pa.RecordBatch, right: pa.RecordBatch, key: Sequence[str]) -> BoolArray:
    """Is the key another one? A NULL is none."""
    found = _none(left.num_rows)
    for name in key:
        found |= is_other(left.column(name), right.column(name))
    return found


def _last_of_each(columns: Sequence[pa.Array]) -> Int64Array:
    """The last of the rows that agree in the columns, in the order in which they came."""
    rows = len(columns[0])
    low, high = identify(columns, rows)
    parts = np.stack([low, high], 1) if len(high) else low[:, None]
    _, first = np.unique(parts[::-1], axis=0, return_index=True)
    return np.sort(rows - 1 - first)
