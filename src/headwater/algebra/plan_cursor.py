"""A place in plan text that moves on word by word and knows what it expected where something else stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import pyarrow as pa

from headwater.algebra.plan_values import TYPED, WORDS, item_type, number, unquoted_string
from headwater.errors import HeadwaterError, SqlError
from headwater.expressions.nodes import Expression
from headwater.expressions.printing import quoted
from headwater.expressions.rewrite import typed_as
from headwater.model.functions import UserFunction
from headwater.model.schema import Field, Schema
from headwater.model.types import read_sql_type

T = TypeVar("T")
Bind = Callable[[str, Schema, Sequence[UserFunction]], Expression]
"""Reads an expression over the columns of a schema; functions of users are called by the names of these."""

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\W\d]\w*")
_NAME = re.compile(r'"((?:[^"]|"")*)"')
_STRING = re.compile(r"'(?:[^']|'')*'")
_INTEGER = re.compile(r"-?\d+")
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NEXT = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|\S""")
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")


class Cursor:
    """Reads one line of plan text (with line breaks only inside of quotes)."""

    def __init__(
        self, text: str, start: int, end: int, functions: Collection[UserFunction] = (), bind: Bind | None = None
    ) -> None:
        self.text, self.at, self.end = text, start, end
        self.functions = {f.name: f for f in functions}
        self._bind = bind
        self._skip()

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.at, self.end)
        self.at = found.end() if found else self.at

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at, self.end)
        if found:
            self.at = found.end()
            self._skip()
        return found

    # -- mistakes ---------------------------------------------------------------------------------------------------

    def expected(self, what: str, *, hint: str = "") -> SqlError:
        """The error that something else should stand here."""
        found = _NEXT.match(self.text, self.at, self.end)
        message = f"expected {what}, found {found.group() if found else 'the end of the line'}"
        return self.mistake(message, at=self.at, length=len(found.group()) if found else 1, hint=hint)

    def mistake(self, message: str, *, at: int | None = None, length: int = 1, hint: str = "") -> SqlError:
        place = self.at if at is None else at
        line = self.text.count("\n", 0, place) + 1
        column = place - (self.text.rfind("\n", 0, place) + 1) + 1
        return SqlError("PLAN_TEXT", message, hint=hint, text=self.text, line=line, column=column, length=length)

    def finish(self) -> None:
        if self.at < self.end:
            raise self.expected("the end of the line")

    # -- words ------------------------------------------------------------------------------------------------------

    def accept(self, *words: str) -> bool:
        """Move on over these words or signs if they stand here, one after the other."""
        before = self.at
        for word in words:
            pattern = _WORD if word[0].isalpha() else re.compile(re.escape(word))
            found = self._take(pattern)
            if found is None or found.group().casefold() != word.casefold():
                self.at = before
                return False
        return True

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.expected(" ".join(words))

    def choice(self, options: dict[str, T]) -> T:
        """What the word here stands for."""
        for word, meaning in options.items():
            if self.accept(word):
                return meaning
        raise self.expected(f"one of {', '.join(options)}")

    def integer(self, what: str) -> int:
        found = self._take(_INTEGER)
        if found is None:
            raise self.expected(what)
        return int(found.group())

    def name(self, what: str = "a name in double quotes") -> str:
        found = self._take(_NAME)
        if found is None:
            raise self.expected(what)
        return found.group(1).replace('""', '"')

    def plain_name(self, what: str) -> str:
        """A name that needs no quotes."""
        found = self._take(_WORD)
        return found.group() if found else self.name(what)

    def column(self, schema: Schema, what: str = "a column in double quotes") -> str:
        """The name of a column of the input."""
        before = self.at
        name = self.name(what)
        if name not in schema.names:
            hint = f"The columns are {', '.join(schema.names)}."
            message = f'there is no column "{name}" in the input'
            raise self.mistake(message, at=before, length=len(quoted(name)), hint=hint)
        return name

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """One or more, separated by commas."""
        found = [item()]
        while self.accept(","):
            found.append(item())
        return tuple(found)

    def columns_after(self, schema: Schema, *words: str) -> tuple[str, ...]:
        """The columns that are listed after these words; none if they do not stand here."""
        return self.listed(lambda: self.column(schema)) if self.accept(*words) else ()

    def number_after(self, word: str, default: int) -> int:
        return self.integer("a number") if self.accept(word) else default

    # -- types and schemas ------------------------------------------------------------------------------------------

    def type(self) -> pa.DataType:
        try:
            found, self.at = read_sql_type(self.text[: self.end], self.at)
        except HeadwaterError:
            raise self.expected("a type, such as BIGINT") from None
        self._skip()
        return found

    def schema(self) -> Schema:
        self.expect("(")
        if self.accept(")"):
            return Schema(())
        fields = self.listed(self._field)
        self.expect(")")
        return Schema(fields)

    def _field(self) -> Field:
        name, type_ = self.plain_name("the name of a column"), self.type()
        return Field(name, type_, nullable=not self.accept("NOT", "NULL"))

    # -- expressions ------------------------------------------------------------------------------------------------

    def expression(self, type_: pa.DataType | None, schema: Schema) -> Expression:
        """What stands here up to a comma outside of parentheses, over columns of the schema, as one of the type."""
        start, stop = self.at, self._expression_end()
        text = self.text[start:stop].rstrip()
        if not text:
            raise self.expected("an expression")
        self.at = stop
        assert self._bind is not None
        try:
            bound = self._bind(text, schema, tuple(self.functions.values()))
        except SqlError as problem:
            raise self.mistake(problem.message, at=start, length=len(text), hint=problem.hint) from problem
        return bound if type_ is None else typed_as(bound, type_)

    def _expression_end(self) -> int:
        depth = 0
        for token in _NEXT.finditer(self.text, self.at, self.end):
            if token.group() in _OPENING:
                depth += 1
            elif token.group() in _CLOSING:
                depth -= 1
            elif token.group() == "," and depth == 0:
                return token.start()
        return self.end

    # -- constants --------------------------------------------------------------------------------------------------

    def string(self, what: str) -> str:
        found = self._take(_STRING)
        if found is None:
            raise self.expected(what)
        return unquoted_string(found.group())

    def constant(self, type_: pa.DataType | None = None) -> object:
        """A literal as ``plan_values`` writes it."""
        if found := self._take(_NUMBER):
            return number(found.group(), type_)
        if found := self._take(_STRING):
            return unquoted_string(found.group())
        if self.accept("["):
            return self._items(type_)
        if self.accept("-", "infinity"):
            return float("-inf")
        before = self.at
        word = self._take(_WORD)
        key = word.group().upper() if word else ""
        if key in WORDS:
            return WORDS[key]
        if key in TYPED:
            try:
                return TYPED[key](self.string("a string"))
            except (ValueError, ArithmeticError):
                self.at = before
                raise self.expected(f"a {key} constant") from None
        self.at = before
        raise self.expected("a constant, such as 1, 'a' or NULL")

    def _items(self, type_: pa.DataType | None) -> tuple[object, ...]:
        items: list[object] = []
        while not self.accept("]"):
            if items:
                self.expect(",")
            items.append(self.constant(item_type(type_, len(items))))
        return tuple(items)
