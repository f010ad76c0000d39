"""Relations that never change: VALUES, computed when the script is bound."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa
from attrs import frozen
from sqlglot import exp

from headwater.algebra.nodes import Constant
from headwater.expressions.connection import connection, register
from headwater.expressions.duckdb import to_duckdb
from headwater.expressions.types import common_type, is_nested
from headwater.language.casts import string_constant
from headwater.language.expressions import ExpressionBinder, check_column_type
from headwater.language.scope import Bound, Scope
from headwater.language.text import error_on
from headwater.language.types import shown
from headwater.model.schema import Field, Schema
from headwater.model.types import duckdb_name

Rows = tuple[tuple[object, ...], ...]


@frozen(eq=False)
class _Cell:
    """One value: as written, and as a value of its column."""

    written: Bound
    field: Field

    @property
    def text(self) -> str:
        return to_duckdb(self.written.expression)

    @property
    def assigned(self) -> str:
        return (
            self.text
            if self.written.type == self.field.type
            else f"CAST({self.text} AS {duckdb_name(self.field.type)})"
        )


def bind_values(
    text: str, rows: Sequence[exp.Expr], fields: Sequence[Field] | None = None, *, place: exp.Expr | None = None
) -> Constant:
    """The rows of VALUES; their columns are as declared, or ``col1``, ``col2``, … of the common types (Spark)."""
    if not rows:
        hint = "For example: VALUES (1, 'a'), (2, 'b')."
        raise error_on(text, place, "SYNTAX", "VALUES needs at least one row", hint=hint)
    binder = ExpressionBinder(Scope(text, ()), "VALUES")
    written = [[binder.bind(cell) for cell in _expressions(row)] for row in rows]
    if fields is None and not written[0]:
        raise error_on(text, place, "SYNTAX", "a row of VALUES needs at least one value")
    _check_lengths(text, rows, written, fields)
    for row in written:
        for bound in row:
            check_column_type(binder, bound)
    if fields is None:
        types = [_common(text, [row[i] for row in written]) for i in range(len(written[0]))]
        nullable = [any(row[i].nullable for row in written) for i in range(len(types))]
        fields = [Field(f"col{i + 1}", t, n) for i, (t, n) in enumerate(zip(types, nullable, strict=True))]
    cells = [[_cell(text, bound, f) for bound, f in zip(row, fields, strict=True)] for row in written]
    return Constant(Schema(tuple(fields)), _computed(text, cells))


def check_key(text: str, node: exp.Expr, constant: Constant, key: Sequence[str]) -> None:
    """A constant relation is known, so its key is checked."""
    places = [constant.schema.index(name) for name in key]
    seen: set[tuple[object, ...]] = set()
    for row in constant.rows:
        values = tuple(row[i] for i in places)
        if values in seen:
            shown_key = ", ".join(map(str, values))
            raise error_on(text, node, "DUPLICATE_KEY", f"more than one row has the key ({shown_key})")
        seen.add(values)


# -- types ------------------------------------------------------------------------------------------------------------


def _expressions(row: exp.Expr) -> list[exp.Expr]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row]


def _check_lengths(
    text: str, nodes: Sequence[exp.Expr], rows: Sequence[Sequence[Bound]], fields: Sequence[Field] | None
) -> None:
    width = len(fields) if fields is not None else len(rows[0])
    for node, row in zip(nodes, rows, strict=True):
        if len(row) != width:
            what = f"{width} column{'' if width == 1 else 's'}"
            raise error_on(text, node, "COLUMN_COUNT", f"a row of VALUES must have {what}, not {len(row)}")


def _common(text: str, column: Sequence[Bound]) -> pa.DataType:
    type_: pa.DataType = pa.null()
    for bound in column:
        wider = common_type(type_, bound.type)
        if wider is None:
            message = f"a column of VALUES has different types: {shown(type_)} and {shown(bound.type)}"
            raise error_on(text, bound.origin, "TYPE_MISMATCH", message, hint="Convert them with CAST.")
        type_ = wider
    return pa.string() if pa.types.is_null(type_) else type_


def _cell(text: str, bound: Bound, field: Field) -> _Cell:
    """Any number for a number, and text for what can be read from it."""
    as_text = pa.types.is_string(field.type) and not is_nested(bound.type) and not pa.types.is_binary(bound.type)
    from_text = string_constant(bound.expression) is not None and not is_nested(field.type)
    if common_type(bound.type, field.type) is None and not as_text and not from_text:
        message = f'column "{field.name}" of type {shown(field.type)} cannot hold {shown(bound.type)}'
        raise error_on(text, bound.origin, "TYPE_MISMATCH", message, hint="Convert it with CAST.")
    return _Cell(bound, field)


# -- values -----------------------------------------------------------------------------------------------------------


def _computed(text: str, cells: Sequence[Sequence[_Cell]]) -> Rows:
    """All values in one go; only where that fails cell by cell, to name the one that does not fit."""
    values = _evaluated(cells)
    if values is None:
        culprit = next(cell for row in cells for cell in row if _evaluated([[cell]]) is None)
        message = f'this value does not fit column "{culprit.field.name}" of type {shown(culprit.field.type)}'
        raise error_on(text, culprit.written.origin, "BAD_VALUE", message)
    for row, found in zip(cells, values, strict=True):
        for cell, value in zip(row, found, strict=True):
            if value is None and not cell.field.nullable:
                message = f'column "{cell.field.name}" is NOT NULL'
                raise error_on(text, cell.written.origin, "NULL_VALUE", message)
    return values


def _evaluated(cells: Sequence[Sequence[_Cell]]) -> Rows | None:
    """The values; None if some are none of their column's type, or do not survive the cast to it: 1.5 is no INT."""
    flat = [cell for row in cells for cell in row]
    register([f for cell in flat for f in cell.written.expression.functions])
    rows = ", ".join(f"({', '.join(cell.assigned for cell in row)})" for row in cells)
    exact = [c for c in flat if pa.types.is_integer(c.field.type) or pa.types.is_decimal(c.field.type)]
    tests = [f"(({c.text}) IS NOT DISTINCT FROM ({c.assigned}))" for c in exact if c.written.type != c.field.type]
    try:
        table = connection().sql(f"SELECT * FROM (VALUES {rows})").to_arrow_table()
        columns = [column.cast(c.field.type).to_pylist() for column, c in zip(table.columns, cells[0], strict=True)]
        if tests and not all(v for (v,) in connection().sql(f"SELECT * FROM (VALUES {', '.join(tests)})").fetchall()):
            return None
    except (duckdb.Error, pa.ArrowInvalid):
        return None
    return tuple(tuple(map(_hashable, row)) for row in zip(*columns, strict=True))


def _hashable(value: object) -> object:
    """Plans are compared and hashed, so arrays are tuples, and structs tuples of (name, value)."""
    if isinstance(value, list):
        return tuple(_hashable(v) for v in value)
    if isinstance(value, dict):
        return tuple((name, _hashable(v)) for name, v in value.items())
    return value
