"""Rows that a user asked for: read as Arrow, pandas, polars, Spark, or plain Python."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import InputError
from headwater.expressions.spark_values import quoted
from headwater.model.python_values import python_values
from headwater.model.schema import END, START
from headwater.model.time import moment_text
from headwater.model.types import sql_name
from headwater.public import public_methods

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame

_SHOWN = 10
_CELL = 40
_INSTANTS = (START, END, "_new_end")


@public_methods
class Result:
    """A table of rows. Anything that reads Arrow reads it as it is (``__arrow_c_stream__``): DuckDB, polars, pandas, …

    Examples
    --------
    >>> result = Result(pa.table({"auction": [7, 9], "n": [3, None]}))
    >>> result
    auction | n
    --------+-----
          7 |    3
          9 | NULL
    2 rows
    >>> len(result), result.rows()[0]
    (2, {'auction': 7, 'n': 3})
    """

    def __init__(self, table: pa.Table, *, spark: Any = None) -> None:
        """``spark``: the session of the engine that it comes from."""
        self._table, self._spark = table, spark

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._table.column_names)

    def __len__(self) -> int:
        return self._table.num_rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """As an Arrow table, without a copy."""
        return self._table

    def to_pandas(self) -> PandasFrame:
        """As a pandas DataFrame; columns of whole numbers keep their NULLs."""
        import pandas as pd

        mapped = _nullable(pd).get
        try:
            return self._table.to_pandas(types_mapper=mapped)
        except (ValueError, OverflowError):  # a DATE beyond the years of Python
            return self._table.to_pandas(types_mapper=mapped, date_as_object=False)

    def to_polars(self) -> Any:
        """As a polars DataFrame."""
        try:
            polars = importlib.import_module("polars")
        except ImportError as problem:
            raise InputError(
                "PACKAGE_MISSING", "there is no polars here", hint="Install it with: pip install polars"
            ) from problem
        return polars.from_arrow(self._table)

    def to_spark(self, session: Any = None) -> Any:
        """As a DataFrame of a Spark session, if none is given the engine's or the active one. Times stay without a zone."""
        session = session or self._spark or _active_session()
        return session.createDataFrame(self._table, schema=spark_columns(self._table.schema))

    def rows(self) -> list[dict[str, Any]]:
        """As plain Python: a dictionary per row. Times beyond the years 1 to 9999 are texts: Python has no such dates."""
        if not self._table.num_columns:
            return self._table.to_pylist()
        values = [python_values(column) for column in self._table.columns]
        return [dict(zip(self._table.column_names, row, strict=True)) for row in zip(*values, strict=True)]

    # -- looking ----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        names, cells, numeric = self._cells()
        if not names:
            return self._footer()
        widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
        heads = " | ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)).rstrip()
        rule = "-+-".join("-" * width for width in widths)
        lines = [
            " | ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numeric, strict=True)
            ).rstrip()
            for row in cells
        ]
        return "\n".join([heads, rule, *lines, self._footer()])

    def _repr_html_(self) -> str:
        names, cells, _ = self._cells()
        return f"{_html_table(names, cells)}<p>{self._footer()}</p>"

    def _cells(self) -> tuple[list[str], list[list[str]], list[bool]]:
        """The names, the first rows as texts, and which columns are numbers."""
        first = self._table.slice(0, _SHOWN)
        named = zip(first.column_names, first.columns, strict=True)
        columns = [[_shown(value, name) for value in python_values(column)] for name, column in named]
        numeric = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) for f in first.schema]
        return list(first.column_names), [list(row) for row in zip(*columns, strict=True)], numeric

    def _footer(self) -> str:
        many = f"{len(self):,} row{'' if len(self) == 1 else 's'}"
        return f"{many}, the first {_SHOWN} shown" if len(self) > _SHOWN else many


class Text(str):
    """What EXPLAIN says: a text that shows itself as it is, in a notebook too."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{_escaped(self)}</pre>"


class Listing(Text):
    """What SHOW and DESCRIBE say: an aligned text, and a table in a notebook. Its rows are texts.

    Examples
    --------
    >>> listing = Listing("a\\n-\\n1", ("a",), [("1",)])
    >>> listing
    a
    -
    1
    >>> listing.rows(), listing.columns
    ([{'a': '1'}], ('a',))
    """

    columns: tuple[str, ...]
    """The names of the columns."""
    _cells: tuple[tuple[str, ...], ...]

    def __new__(cls, text: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Listing:
        made = super().__new__(cls, text)
        made.columns, made._cells = tuple(columns), tuple(map(tuple, rows))
        return made

    def rows(self) -> list[dict[str, str]]:
        """A dictionary per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self._cells]

    def to_arrow(self) -> pa.Table:
        """As an Arrow table of texts."""
        columns = zip(*self._cells, strict=True) if self._cells else ((),) * len(self.columns)
        return pa.table([pa.array(column, pa.string()) for column in columns], list(self.columns))

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.columns, self._cells

    def _repr_html_(self) -> str:
        return _html_table(self.columns, self._cells)


def spark_columns(schema: pa.Schema) -> str:
    """The columns as Spark declares them.

    Times have no zone; said so, it does not depend on the session's ``spark.sql.timestampType``.

    >>> spark_columns(pa.schema([("at", pa.timestamp("us")), ("many", pa.list_(pa.int64()))]))
    '`at` TIMESTAMP_NTZ, `many` ARRAY<BIGINT>'
    """
    return ", ".join(f"{quoted(f.name)} {_spark_type(f.type)}" for f in schema)


def _spark_type(type_: pa.DataType) -> str:
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"ARRAY<{_spark_type(type_.value_type)}>"
    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        return f"STRUCT<{', '.join(f'{quoted(f.name)}: {_spark_type(f.type)}' for f in fields)}>"
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP_NTZ"
    return "VOID" if pa.types.is_null(type_) else sql_name(type_)


def _shown(value: object, column: str) -> str:
    if isinstance(value, datetime) and column in _INSTANTS:
        return moment_text(value)
    text = "NULL" if value is None else str(value).replace("\n", "⏎")
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def _active_session() -> Any:
    found = importlib.import_module("pyspark.sql").SparkSession.getActiveSession()
    if found is None:
        raise InputError(
            "NO_SESSION",
            "there is no Spark session here to make a DataFrame in",
            hint="Give one: to_spark(session). SparkSession.builder.getOrCreate() makes one.",
        )
    return found


def _html_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{_escaped(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{_escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _escaped(text: str) -> str:
    import html

    return html.escape(text)


def _nullable(pd: Any) -> dict[pa.DataType, Any]:
    # NumPy's integers have no NULL: pandas would turn such a column into floats, and large numbers into others.
    return {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
