"""Which types go together."""

from __future__ import annotations

import pyarrow as pa

from headwater.expressions.connection import infer


def is_numeric(type_: pa.DataType) -> bool:
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def is_temporal(type_: pa.DataType) -> bool:
    return pa.types.is_date32(type_) or pa.types.is_timestamp(type_)


def is_nested(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_struct(type_)


def comparable(left: pa.DataType, right: pa.DataType) -> bool:
    """True when values of the two types can be compared without an explicit cast."""
    return common_type(left, right) is not None


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both without loss of meaning; None if there is none."""
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if is_numeric(left) and is_numeric(right):
        return _wider(left, right)
    if is_temporal(left) and is_temporal(right):
        return pa.timestamp("us")
    if pa.types.is_list(left) and pa.types.is_list(right):
        item = common_type(left.value_type, right.value_type)
        return None if item is None else pa.list_(item)
    return None


def _wider(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return pa.float64()  # a FLOAT has 24 bits only, too few for the other side
    return infer("COALESCE(l, r)", (("l", left), ("r", right)))[0]
