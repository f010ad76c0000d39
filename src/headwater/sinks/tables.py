"""The answer of a tick as the tables that users see: final rows, or a changelog."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa

from headwater.errors import InputError, StreamError
from headwater.kernels.sort import sort_by_key_time
from headwater.model.arrays import Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import identify
from headwater.model.schema import END, START
from headwater.model.time import BEGINNING, INFINITY, render
from headwater.sinks.base import Output

OP, NEW_END, TICK = "_op", "_new_end", "_tick"
INSERT, ADJUST = "insert", "adjust"

TIMESTAMP = pa.timestamp("us")
_EPOCH = datetime(1970, 1, 1)
_MICROSECONDS = 1_000_000


def _microseconds(instant: datetime) -> int:
    passed = instant - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * _MICROSECONDS + passed.microseconds


FIRST_TIMESTAMP, LAST_TIMESTAMP = _microseconds(datetime.min), _microseconds(datetime.max)
"""Years 1 to 9999: what Spark, Python and SQL agree to call a TIMESTAMP."""


# -- schemas ----------------------------------------------------------------------------------------------------------


def instant_type(output: Output) -> pa.DataType:
    return TIMESTAMP if output.timestamps else pa.int64()


def arrow_schema(output: Output) -> pa.Schema:
    """What a sink delivers: final rows, or a changelog where the answer may be repaired."""
    instant = instant_type(output)
    payload = [pa.field(f.name, f.type, f.nullable) for f in output.schema]
    start, end = pa.field(START, instant, nullable=False), pa.field(END, instant)
    if not output.changelog:
        return pa.schema([*payload, start, end])
    op, tick = pa.field(OP, pa.string(), nullable=False), pa.field(TICK, pa.int64(), nullable=False)
    return pa.schema([op, *payload, start, end, pa.field(NEW_END, instant), tick])


def check_names(output: Output) -> None:
    """A column of the query's own must not have the name of one that the sink adds, and no name may come twice."""
    names = [name.lower() for name in arrow_schema(output).names]
    for name in output.schema.names:
        if names.count(name.lower()) > 1:
            raise InputError(
                "COLUMN_NAME",
                f'column "{name}" of "{output.query}" would be in the output twice',
                detail=f"The output has the columns {', '.join(arrow_schema(output).names)}.",
                hint="Give it another name with AS.",
            )


# -- conversions ------------------------------------------------------------------------------------------------------


def to_table(output: Output, delta: Delta, tick: int, *, any_year: bool = False) -> pa.Table:
    """A consolidated delta as the output's table; ``any_year``: also times that others could not read."""
    if output.changelog:
        return changelog(output, delta, tick, any_year=any_year)
    return final_rows(output, delta, any_year=any_year)


def final_rows(output: Output, delta: Delta, *, any_year: bool = False) -> pa.Table:
    """One row for each copy that a delta of a final answer adds, with its lifetime."""
    assert not len(delta) or delta.weight.min() > 0, f"the final answer of {output.query} takes rows back"
    rows = _copies(delta.weight)
    columns, start, end = delta.columns, delta.start, delta.end
    if rows is not None:
        columns, start, end = _taken(columns, rows), start[rows], end[rows]
    times = [_instants(output, t, any_year=any_year) for t in (start, end)]
    return _table(arrow_schema(output), [*columns, *times])


def changelog(output: Output, delta: Delta, tick: int, *, any_year: bool = False) -> pa.Table:
    """The changes of a delta, as ``Delta.to_elements`` tells them.

    What goes and what comes of one row and start is one change of its end, in the order of the ends; what goes alone is
    adjusted to its start, what comes alone is an insert.
    """
    rows = _copies(np.abs(delta.weight))
    rows = np.arange(len(delta)) if rows is None else rows
    gone, come, new_end = _pairs(delta, rows)
    rows = np.concatenate([gone, come])
    is_adjust = np.arange(len(rows)) < len(gone)
    op = pa.DictionaryArray.from_arrays(pa.array(is_adjust.astype(np.int8)), pa.array([INSERT, ADJUST]))
    unused = np.full(len(come), INFINITY, np.int64)  # an insert has no other end, and infinity is NULL
    start, end = delta.start[rows], delta.end[rows]
    ends = np.concatenate([new_end, unused])
    times = [_instants(output, t, any_year=any_year) for t in (start, end, ends)]
    ticks = pa.array(np.full(len(rows), tick, np.int64))
    return _table(arrow_schema(output), [op.cast(pa.string()), *_taken(delta.columns, rows), *times, ticks])


def _pairs(delta: Delta, rows: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The rows that go, those that come alone, and the new end of each that goes. A row of weight n is listed n times."""
    negative = delta.weight[rows] < 0
    if not negative.any():
        return rows[:0], rows, rows[:0]
    low, high = identify([*delta.columns, pa.array(delta.start)], len(delta))
    low, high = low[rows], high[rows] if len(high) else high
    order, bounds = sort_by_key_time(low, high, delta.end[rows])
    rows, negative = rows[order], negative[order]
    # Within a group the ends are in order, so the k-th that goes becomes the k-th that comes.
    before_gone, before_come = _before(negative), _before(~negative)
    group = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    gone, come = np.flatnonzero(negative), np.flatnonzero(~negative)
    gone_group, come_group = group[gone], group[come]
    rank = before_gone[gone] - before_gone[bounds[gone_group]]
    alone = before_come[come] - before_come[bounds[come_group]] >= _inside(before_gone, bounds)[come_group]
    new_end = delta.start[rows[gone]]
    paired = rank < _inside(before_come, bounds)[gone_group]
    partners = come[before_come[bounds[gone_group[paired]]] + rank[paired]]
    new_end[paired] = delta.end[rows[partners]]
    return rows[gone], rows[come[alone]], new_end


def _before(mask: np.ndarray) -> Int64Array:
    """How many are set before each place, and in all."""
    return np.concatenate([[0], np.cumsum(mask)])


def _inside(before: Int64Array, bounds: Int64Array) -> Int64Array:
    return before[bounds[1:]] - before[bounds[:-1]]


def _copies(count: Int64Array) -> Int64Array | None:
    """Each row's number as often as it counts; None when all count once."""
    return None if (count == 1).all() else np.repeat(np.arange(len(count)), count)


def _taken(columns: Sequence[pa.Array], rows: Int64Array) -> list[pa.Array]:
    where = pa.array(rows)
    return [column.take(where) for column in columns]


def _table(schema: pa.Schema, columns: Sequence[pa.Array]) -> pa.Table:
    # A column may come as a type that means the same (a dictionary, a large string): the types are the declared ones.
    given = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(given, schema=schema)


# -- instants ---------------------------------------------------------------------------------------------------------


def _instants(output: Output, instants: Int64Array, *, any_year: bool) -> pa.Array:
    """The instants as a column; the end of time is NULL. ``any_year``: nobody else must be able to read them."""
    endless = instants == INFINITY
    mask = endless if endless.any() else None
    if output.timestamps and not any_year:
        _check_range(output, instants, endless)
    numbers = pa.array(instants, mask=mask)
    return numbers.view(TIMESTAMP) if output.timestamps else numbers


def _check_range(output: Output, instants: Int64Array, endless: np.ndarray) -> None:
    wrong = (instants < FIRST_TIMESTAMP) | ((instants > LAST_TIMESTAMP) & ~endless)
    if wrong.any():
        raise StreamError(
            "INSTANT_RANGE",
            f'a row of "{output.query}" begins or ends at instant {instants[np.argmax(wrong)]}, which is no TIMESTAMP',
            detail="TIMESTAMPs are microseconds since 1970, from the year 1 to the year 9999.",
            hint="Look for a time column in another unit, or for a window of thousands of years.",
        )


def instant_of(output: Output, at: object) -> int:
    """An instant as the user gives it: a number, or for TIMESTAMPs a datetime or its text (without a zone: as stored)."""
    if isinstance(at, int | np.integer) and not isinstance(at, bool) and BEGINNING <= at <= INFINITY:
        return int(at)
    if not output.timestamps:
        raise InputError(
            "NOT_AN_INSTANT", f'"{at}" is no instant of "{output.query}"', hint="Its instants are numbers."
        )
    moment = at.astype("datetime64[us]").item() if isinstance(at, np.datetime64) else at
    try:
        moment = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        raise InputError("NOT_AN_INSTANT", f'"{at}" is no instant', hint='Write it as "2030-12-31 23:59:00".')
    if moment.tzinfo is not None:
        moment = moment.replace(tzinfo=None) - (moment.utcoffset() or moment - moment)
    return _microseconds(moment)


def render_instant(output: Output, instant: int) -> str:
    """As a person reads it."""
    return render(instant, timestamps=output.timestamps)
