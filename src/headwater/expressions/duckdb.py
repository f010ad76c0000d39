"""Trees as DuckDB's SQL: Spark's meaning in another engine's words."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from headwater.expressions.casts import cast_text, read_constant
from headwater.expressions.connection import connection, infer
from headwater.expressions.functions.table import FUNCTIONS
from headwater.expressions.nodes import Call, Cast, Column, Expression, Field, Literal, UserCall
from headwater.expressions.printing import ATOM, PRODUCT, Printer, quoted
from headwater.model.types import duckdb_name, string_literal


class _DuckDB(Printer):
    def cast(self, expression: Cast) -> str:
        argument, type_ = expression.argument, expression.type
        text = cast_text(argument.type, type_, attempt=expression.attempt)
        if text is None or (isinstance(argument, Literal) and _is_read_as_it_stands(argument, type_)):
            text = f"{'TRY_CAST' if expression.attempt else 'CAST'}({{0}} AS {duckdb_name(type_)})"
        return text.format(self.text(argument, ATOM))

    def field(self, expression: Field) -> str:
        return f"STRUCT_EXTRACT({self.text(expression.argument)}, {string_literal(expression.name)})"

    def user_function(self, expression: UserCall) -> str:
        return quoted(expression.function.name)

    def written(self, expression: Expression) -> tuple[str, int]:
        if isinstance(expression, Call) and expression.name in FUNCTIONS:  # also operators that DuckDB has not
            return self.call(expression)
        if isinstance(expression, Call) and expression.name == "/":
            value, divisor = expression.arguments
            return f"{self.text(value, PRODUCT)} / NULLIF({self.text(divisor)}, 0)", PRODUCT
        return super().written(expression)

    def call(self, call: Call) -> tuple[str, int]:
        texts = self.texts(call.arguments, ATOM)
        listed = {"args": ", ".join(texts), "rest": ", ".join(texts[1:]), "concat": " || ".join(texts)}
        return FUNCTIONS[call.name].text(call.arguments).format(*texts, **listed), ATOM


def _is_read_as_it_stands(literal: Literal, type_: pa.DataType) -> bool:
    """Is a string written as DuckDB itself would write the value? Then nothing has to be looked at before it is read."""
    if not pa.types.is_string(literal.type) or pa.types.is_string(type_) or pa.types.is_binary(type_):
        return False
    return literal.text is not None and read_constant(literal.text, type_) == literal.text


_PRINTER = _DuckDB()


@lru_cache(maxsize=8192)
def to_duckdb(expression: Expression) -> str:
    """DuckDB's text for the expression; columns are double-quoted names.

    >>> x = Column("x", pa.int32())
    >>> to_duckdb(Call("/", (x, Literal("2", pa.int32())), pa.float64()))
    '"x" / NULLIF(2, 0)'
    """
    return _PRINTER.text(expression)


@lru_cache(maxsize=8192)
def natural_type(expression: Expression) -> tuple[pa.DataType, bool]:
    """The type that DuckDB gives to a call of such arguments, and whether the model has another one for it.

    It depends on the types of the arguments only; but literals take the type that fits best where they stand.
    Raises ``duckdb.Error`` if there is no such call, and ``KeyError`` if the model does not have its type.
    """
    columns: list[tuple[str, pa.DataType]] = []
    arguments: list[Expression] = []
    for i, argument in enumerate(expression.arguments):
        atom = argument if isinstance(argument, (Column, Literal)) else Column(f"operand {i}", argument.type)
        if isinstance(atom, Column):
            columns.append((atom.name, atom.type))
        arguments.append(atom)
    skeleton = expression.with_arguments(tuple(arguments))
    return infer(to_duckdb(skeleton), tuple(dict.fromkeys(columns)))


def computed(expression: Expression) -> object:
    """The Python value of an expression without columns; raises ``duckdb.Error`` if it cannot be computed."""
    text = f"SELECT CAST({to_duckdb(expression)} AS {duckdb_name(expression.type)})"
    ((value,),) = connection().execute(text).fetchall()
    return value
