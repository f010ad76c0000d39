"""Trees as the SQL of this language, for people: plans, EXPLAIN, messages."""

from __future__ import annotations

import re
from functools import lru_cache

from headwater.expressions.functions.table import FUNCTIONS
from headwater.expressions.nodes import Call, Cast, Expression, Field, Literal, UserCall
from headwater.expressions.printing import AND, ATOM, JOINED, OR, SIGN, TEST, Printer, quoted
from headwater.model.types import quote, sql_name


class _Text(Printer):
    def cast(self, expression: Cast) -> str:
        word = "TRY_CAST" if expression.attempt else "CAST"
        return f"{word}({self.text(expression.argument)} AS {sql_name(expression.type)})"

    def field(self, expression: Field) -> str:
        return f"{self.text(expression.argument, ATOM)}.{quoted(expression.name)}"

    def user_function(self, expression: UserCall) -> str:
        return quoted(expression.function.name)

    def written(self, expression: Expression) -> tuple[str, int]:
        match expression:
            case Call("not", (Call("is null", (value,)),)):
                return f"{self.text(value, JOINED)} IS NOT NULL", TEST
            case Call("not", (Call("in", arguments),)):
                value, *options = self.texts(arguments, JOINED)
                return f"{value} NOT IN ({', '.join(options)})", TEST
        return super().written(expression)

    def call(self, call: Call) -> tuple[str, int]:
        name, arguments = call.name, call.arguments
        if name in ("guarded and", "guarded or"):
            word = name.removeprefix("guarded ")
            strength = AND if word == "and" else OR
            return f" {word.upper()} ".join(self.texts(arguments, strength + 1)), strength
        if name in ("like", "ilike"):
            value, pattern, escape = self.texts(arguments, ATOM)
            return f"{value} {name.upper()} {pattern} ESCAPE {escape}", TEST
        if name == "~":
            return f"~{self.text(arguments[0], ATOM)}", SIGN
        if name == "[]":
            return f"{self.text(arguments[0], ATOM)}[{self.text(arguments[1])}]", ATOM
        texts = self.texts(arguments)
        if name in FUNCTIONS and (written := FUNCTIONS[name].written):
            word = arguments[0].text if isinstance(arguments[0], Literal) else ""
            return written.format(*texts, word=word), ATOM
        return f"{name.upper()}({', '.join(texts)})", ATOM


_PRINTER = _Text()


@lru_cache(maxsize=8192)
def to_text(expression: Expression) -> str:
    """The expression as it could be written in a query, with columns in double quotes."""
    return _PRINTER.text(expression)


_NAME_OR_TEXT = re.compile(r"""'(?:[^']|'')*'|"((?:[^"]|"")*)\"""")


def to_sql(expression: Expression) -> str:
    """The same as a query would have it: names stand as they are, or in backquotes.

    >>> import pyarrow as pa
    >>> from headwater.expressions.nodes import Column
    >>> to_sql(Call("timestamp_millis", (Column("ts", pa.int64()),), pa.timestamp("us")))
    'TIMESTAMP_MILLIS(ts)'
    """

    def name(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        plain = found[1].replace('""', '"')
        return plain if re.fullmatch(r"[^\W\d]\w*", plain) else quote(plain, "`")

    return _NAME_OR_TEXT.sub(name, to_text(expression))
