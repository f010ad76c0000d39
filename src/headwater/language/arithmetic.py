"""Arithmetic on numbers: the types that Spark computes in, where DuckDB would take others.

To DuckDB a constant has the narrowest type that fits where it stands; to Spark it is an INT (or a BIGINT), so that
``TINYINT + 1`` is an INT. FLOAT meets integers and decimals in DOUBLE, and ``DIV`` gives a BIGINT.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.expressions.duckdb import to_duckdb
from headwater.expressions.functions.operators import is_whole_constant
from headwater.expressions.types import is_numeric
from headwater.language.scope import Bound

_NARROW = (pa.int8(), pa.int16())
_WORD_DIGITS = 18
"""DuckDB multiplies DECIMALs of so many digits to one of no more, and stops where that overflows."""


def meeting(values: Sequence[Bound]) -> list[Bound]:
    """Numbers that come together: TINYINTs and SMALLINTs that meet a constant are INTs, FLOATs that meet others DOUBLEs."""
    kinds = [v.type for v in values if not pa.types.is_null(v.type)]
    if pa.float32() in kinds and not all(pa.types.is_float32(t) for t in kinds):
        return [v.cast(pa.float64()) if pa.types.is_float32(v.type) else v for v in values]
    if not any(is_whole_constant(v.expression) for v in values):
        return list(values)
    return [v.cast(pa.int32()) if v.type in _NARROW and not is_whole_constant(v.expression) else v for v in values]


def spark_operands(operator: str, operands: Sequence[Bound]) -> list[Bound]:
    """The operands in the types that Spark computes in; what is no number stays as it is."""
    if not all(is_numeric(o.type) for o in operands):
        return list(operands)
    operands = meeting(operands)
    kinds = [o.type for o in operands]
    if operator == "/" and pa.float32() in kinds:
        return [o.cast(pa.float64()) for o in operands]
    if operator == "*" and any(pa.types.is_decimal(t) for t in kinds):
        return _factors(operands)
    return operands


def _factors(operands: Sequence[Bound]) -> list[Bound]:
    """Two DECIMALs: one of them so long that the product is too."""
    digits = [_digits(o) for o in operands]
    if len(digits) != 2 or not all(d and d[0] <= _WORD_DIGITS for d in digits):
        return list(operands)
    (left, scale), (right, _) = digits
    if left + right <= _WORD_DIGITS:
        return list(operands)
    return [operands[0].cast(pa.decimal128(max(left, _WORD_DIGITS + 1), scale)), operands[1]]


def _digits(operand: Bound) -> tuple[int, int]:
    """Digits in all, and after the point, of the DECIMAL that an operand is."""
    if is_whole_constant(operand.expression):
        return len(to_duckdb(operand.expression).removeprefix("-")), 0
    if pa.types.is_decimal(operand.type):
        return operand.type.precision, operand.type.scale
    return {8: (3, 0), 16: (5, 0), 32: (10, 0), 64: (19, 0)}.get(operand.type.bit_width, (0, 0))


def divides_whole(operands: Sequence[Bound]) -> bool:
    """Does DIV take them? Integers and DECIMALs; Spark refuses others."""
    kinds = [o.type for o in operands]
    if all(pa.types.is_integer(t) or pa.types.is_null(t) for t in kinds):
        return True
    return all(pa.types.is_integer(t) or pa.types.is_decimal(t) for t in kinds)
