"""How the rows of a stream say that earlier ones change.

``headwater``: a row is an element of ours, with ``_op``, ``_start``, ``_end`` and ``_new_end``, as our changelogs have them.
``debezium``: a row is an event with the row ``before`` and ``after`` a change, valid from there until the next one.
"""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa
from attrs import frozen

from headwater.model.schema import END, START, WEIGHT, Field, Schema

OP, NEW_END, COUNT = "_op", "_new_end", "_count"
"""What a row does to its stream, its other end, and how many events an interval has."""
SIGN, SEQUENCE, DELETED = "_sign", "_sequence", "_deleted"
"""What the rows of change events carry besides the columns of their table."""
CHANGED = "_changed"
"""Stands for the time column where the time of a change is the event's own: no column of the table."""
ARRIVED, ORIGINAL = "_arrived", "_original_ts"
"""Columns that the engine fills in where a stream declares them: when a row came, and its time before it was adjusted."""
TIMESTAMP = pa.timestamp("us")


class ChangeFormat(StrEnum):
    HEADWATER = "headwater"
    DEBEZIUM = "debezium"


@frozen
class Changes:
    """What is declared of a stream that revises itself."""

    format: ChangeFormat
    ordered: bool = True
    """Does every change come after the one that it changes? Else chains are put together as their parts come."""
    checked: bool = True
    """Is it checked that a change finds what it changes? Only where they are ordered."""
    lenient: bool = False
    """Are changes that do not left out, instead of being an error?"""
    counted: bool = False
    """Does the source say how many events there are in an interval of time (external CTIs, CEDR A.1)?"""


def element_columns(*, timestamps: bool) -> Schema:
    """The columns that make a row an element. All may be missing, but for ``_start``."""
    instant = TIMESTAMP if timestamps else pa.int64()
    return Schema(
        (
            Field(OP, pa.string()),
            Field(START, instant),
            Field(END, instant),
            Field(NEW_END, instant),
            Field(WEIGHT, pa.int64()),
            Field(COUNT, pa.int64()),
        )
    )


def envelope(row: Schema) -> Schema:
    """A change event: bare, or inside of ``payload`` with its schema beside it (Kafka Connect's JSON converter)."""
    image = pa.struct([(f.name, f.type) for f in row])
    place = pa.struct([(name, pa.int64()) for name in ("ts_ms", "ts_us", "lsn", "pos")])
    event = {
        "before": image,
        "after": image,
        "op": pa.string(),
        "ts_ms": pa.int64(),
        "ts_us": pa.int64(),
        "source": place,
    }
    return Schema.of(**event, payload=pa.struct(list(event.items())))


def carried_columns(row: Schema, key: tuple[str, ...]) -> Schema:
    """What the rows of change events carry: signed images, or the last state of each key."""
    if not key:
        return Schema((*row.fields, Field(SIGN, pa.int32(), nullable=False)))
    # First the place in the log: of several changes of a key at one instant the last one counts.
    hidden = Field(SEQUENCE, pa.int64(), nullable=False), Field(DELETED, pa.bool_(), nullable=False)
    images = (f if f.name in key else Field(f.name, f.type) for f in row)
    return Schema((hidden[0], *images, hidden[1]))
