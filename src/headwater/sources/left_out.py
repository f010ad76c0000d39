"""Columns that nobody wants need not be read, unless one of their values could make a row malformed."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa

from headwater.model.schema import Schema
from headwater.model.wider_types import holds_all_of
from headwater.sources.conform import find_column


def can_leave_out(
    there: pa.Schema,
    declared: Schema,
    wanted: Collection[str] | None,
    *,
    is_never_null: Callable[[int], bool] = lambda place: False,
) -> dict[str, str]:
    """The declared columns that may be left out, with the names that they have in the data.

    ``is_never_null``: is the column of the data at that place known to have no NULL?
    """
    if wanted is None:
        return {}
    found: dict[str, str] = {}
    for field in (f for f in declared if f.name not in wanted):
        place = find_column(field.name, there.names)
        certain = place >= 0 and _is_certain(there.field(place).type, field.type)
        if certain and (field.nullable or is_never_null(place)):
            found[field.name] = there.field(place).name
    return found


def _is_certain(type_: pa.DataType, declared: pa.DataType) -> bool:
    """Is every value of the one type one of the other?"""
    if pa.types.is_dictionary(type_):
        return _is_certain(type_.value_type, declared)
    if pa.types.is_timestamp(type_) and pa.types.is_timestamp(declared):
        return type_.unit == declared.unit
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.types.is_string(declared)
    return holds_all_of(declared, type_)
