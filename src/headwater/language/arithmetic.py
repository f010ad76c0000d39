"""Arithmetic on numbers: the types that Spark computes in, where DuckDB would take others.

To DuckDB a constant has the narrowest type that fits where it stands; to Spark it is an INT (or a BIGINT), so that
``TINYINT + 1`` is an INT. FLOAT meets integers and decimals in DOUBLE, and ``DIV`` gives a BIGINT.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from headwater.language.rendering import Template
from headwater.language.scope import Bound
from headwater.language.types import duckdb_name, is_numeric

_NARROW = (pa.int8(), pa.int16())
_MOST_DIGITS = 38
_WORD_DIGITS = 18
"""DuckDB multiplies DECIMALs of so many digits to one of no more, and stops where that overflows."""

ARITHMETIC = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.IntDiv,
    exp.Mod,
    exp.BitwiseAnd,
    exp.BitwiseOr,
    exp.BitwiseXor,
    exp.BitwiseNot,
)


def is_whole_constant(node: exp.Expr) -> bool:
    """Is it an integer as written, perhaps with a sign or in parentheses?"""
    while isinstance(node, (exp.Paren, exp.Neg)):
        node = node.this
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()


def meeting(values: Sequence[Bound]) -> list[Bound]:
    """Numbers that come together: TINYINTs and SMALLINTs that meet a constant are INTs, FLOATs that meet others DOUBLEs."""
    kinds = [v.type for v in values if not pa.types.is_null(v.type)]
    if pa.float32() in kinds and not all(pa.types.is_float32(t) for t in kinds):
        return [as_type(v, pa.float64()) if pa.types.is_float32(v.type) else v for v in values]
    if not any(is_whole_constant(v.node) for v in values):
        return list(values)
    return [as_type(v, pa.int32()) if v.type in _NARROW and not is_whole_constant(v.node) else v for v in values]


def spark_operands(operator: type[exp.Expr], operands: Sequence[Bound]) -> list[Bound]:
    """The operands in the types that Spark computes in; what is no number stays as it is."""
    if not all(is_numeric(o.type) for o in operands):
        return list(operands)
    operands = meeting(operands)
    kinds = [o.type for o in operands]
    if operator is exp.Div and pa.float32() in kinds:
        return [as_type(o, pa.float64()) for o in operands]
    if operator is exp.Mul and any(pa.types.is_decimal(t) for t in kinds):
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
    return [as_type(operands[0], pa.decimal128(max(left, _WORD_DIGITS + 1), scale)), operands[1]]


def _digits(operand: Bound) -> tuple[int, int]:
    """Digits in all, and after the point, of the DECIMAL that an operand is."""
    if is_whole_constant(operand.node):
        return len(operand.sql.strip("(-) ")), 0
    if pa.types.is_decimal(operand.type):
        return operand.type.precision, operand.type.scale
    return {8: (3, 0), 16: (5, 0), 32: (10, 0), 64: (19, 0)}.get(operand.type.bit_width, (0, 0))


def whole_quotient(operands: Sequence[Bound]) -> Template | None:
    """``DIV``: of integers or DECIMALs, towards zero, a BIGINT; None for others, which Spark refuses."""
    kinds = [o.type for o in operands]
    nodes = [o.node for o in operands]
    if all(pa.types.is_integer(t) or pa.types.is_null(t) for t in kinds):
        left = "{0}" if pa.types.is_int64(kinds[0]) and not is_whole_constant(nodes[0]) else "CAST({0} AS BIGINT)"
        return Template(this=f"({left} // {{1}})", expressions=nodes)
    if not all(pa.types.is_integer(t) or pa.types.is_decimal(t) for t in kinds):
        return None
    scale = max(t.scale for t in kinds if pa.types.is_decimal(t))
    dividend, divisor = (_unscaled(i, scale) for i in range(2))
    return Template(this=f"CAST({dividend} // NULLIF({divisor}, 0) AS BIGINT)", expressions=nodes)


def _unscaled(operand: int, scale: int) -> str:
    """All digits of a DECIMAL as one integer: exact, where a quotient of DECIMALs would be a DOUBLE."""
    value = f"CAST({{{operand}}} AS DECIMAL({_MOST_DIGITS},{scale}))"
    return f"CAST(REPLACE(CAST({value} AS VARCHAR), '.', '') AS HUGEINT)"


def remainder(operands: Sequence[Bound]) -> Template:
    """NULL where there is none; for a DOUBLE DuckDB gives NaN, and of the least integer by -1 it refuses 0."""
    divisor = "NULLIF({1}, 0)"
    if all(pa.types.is_integer(o.type) for o in operands):
        divisor = "CASE {1} WHEN 0 THEN NULL WHEN -1 THEN 1 ELSE {1} END"
    return Template(this=f"({{0}} % {divisor})", expressions=[o.node for o in operands])


def as_type(value: Bound, type_: pa.DataType) -> Bound:
    return value.cast(type_, duckdb_name(type_))
