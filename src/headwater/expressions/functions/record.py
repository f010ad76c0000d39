"""What is known of a scalar function: all of it in one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from attrs import field, frozen

from headwater.expressions.nodes import Expression, Literal

Texts = str | dict[str, str]
"""One text, or one for each kind of the first argument (text, blob, list, float, real, decimal, bigint; ``""``: others)."""
Text = Texts | Callable[[Sequence[Expression]], str]
"""Or one made for the arguments: of those that are constants it may write something else."""

MANY = 1_000


@frozen
class Function:
    """One scalar function: Spark's name and meaning.

    A text is parenthesised or a call, so that it can stand anywhere; ``{0}``, ``{1}``, … are the arguments, ``{args}`` all
    of them, ``{rest}`` all but the first, ``{concat}`` all with ``||`` between. Alternatives for more and more arguments
    are separated by `` ; ``, the last serves for all others.
    """

    least: int
    most: int
    duckdb: Text = field(eq=False)
    takes: tuple[str, ...] = ()
    """The kinds of its parameters: what Spark converts arguments to. Where nothing is said DuckDB decides."""
    further: str = "any"
    """The kind of the parameters beyond those."""
    alike: int | None = None
    """From this argument on they must go together."""
    joined: int | None = None
    """From this argument on they become text."""
    of_null: bool = False
    """Does it look at all arguments even if one is NULL? Others are NULL then, whatever else they are given."""
    fails: bool = False
    """May a value stop the query?"""
    also: tuple[str, ...] = ()
    """Other names of it."""
    written: str = ""
    """How it is written in a query, if not as a plain call; ``{word}`` is the text of its first argument."""
    spark: Text | None = field(default=None, eq=False)
    """Spark's text; None, or empty for a kind of arguments, where Spark's result would be another one."""

    def text(self, arguments: Sequence[Expression]) -> str:
        """DuckDB's text for such arguments."""
        return _chosen(self.duckdb, self.least, arguments)

    def spark_text(self, arguments: Sequence[Expression]) -> str:
        """Spark's text for such arguments; nothing where its result would be another one."""
        return "" if self.spark is None else _chosen(self.spark, self.least, arguments)

    @property
    def arity(self) -> str:
        return arity(self.least, self.most)


def _chosen(text: Text, least: int, arguments: Sequence[Expression]) -> str:
    if callable(text):
        return text(arguments)
    if isinstance(text, dict):
        text = next((text[kind] for kind in _kinds(arguments[0].type) if kind in text), text[""])
    alternatives = text.split(" ; ")
    return alternatives[min(len(arguments) - least, len(alternatives) - 1)]


def arity(least: int, most: int) -> str:
    """How a message says how many arguments there may be: ``2 arguments``."""
    if least == most:
        return "no arguments" if least == 0 else f"{least} argument{'' if least == 1 else 's'}"
    if most == MANY:
        return f"at least {least} argument{'' if least == 1 else 's'}"
    return f"{least} to {most} arguments"


def constant(argument: Expression) -> str:
    """The text of an argument that must be a constant."""
    assert isinstance(argument, Literal)
    assert argument.text is not None
    return argument.text


def in_quotes(text: str) -> str:
    """A constant string as a part of a text with places for arguments."""
    escaped = text.replace("'", "''").replace("{", "{{").replace("}", "}}")
    return f"'{escaped}'"


def _kinds(type_: pa.DataType) -> tuple[str, ...]:
    """The kinds that a type belongs to, the nearest first."""
    if pa.types.is_float32(type_):
        return "float", "real"
    tests = {
        "text": pa.types.is_string,
        "blob": pa.types.is_binary,
        "list": pa.types.is_list,
        "real": pa.types.is_float64,
        "decimal": pa.types.is_decimal,
        "bigint": pa.types.is_int64,
    }
    return tuple(kind for kind, test in tests.items() if test(type_))
