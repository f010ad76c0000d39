"""Scalar expressions as trees: immutable, typed, compared by value.

A function means what Spark means by it, whatever engine computes it: the text for an engine is made by ``duckdb`` and
``spark``, the text for people by ``text``. Operators are functions too, called by their sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property

import pyarrow as pa
from attrs import evolve, frozen

from headwater.model.functions import UserFunction
from headwater.model.types import INTERVAL


class Expression:
    """Base of all nodes: ``type``, and ``arguments``, the expressions that it is made of."""

    @property
    def type(self) -> pa.DataType:
        raise NotImplementedError

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return ()

    def with_arguments(self, arguments: tuple[Expression, ...]) -> Expression:
        """The same of other expressions."""
        assert not arguments
        return self

    def walk(self) -> Iterator[Expression]:
        """This node and all below it, in the order in which they are written."""
        yield self
        for argument in self.arguments:
            yield from argument.walk()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once, in the order in which they are written."""
        return tuple(dict.fromkeys(name for argument in self.arguments for name in argument.columns))

    @cached_property
    def functions(self) -> tuple[UserFunction, ...]:
        """The functions of users that it calls, each once."""
        return tuple(dict.fromkeys(f for argument in self.arguments for f in argument.functions))


@frozen(cache_hash=True)
class Column(Expression):
    """The value of a column of the input (of the pair, in a join residual: ``l.<name>`` and ``r.<name>``)."""

    name: str
    type: pa.DataType

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)


@frozen(cache_hash=True)
class Literal(Expression):
    """A constant as it is written; where it stands it takes the type that fits best. Other constants are casts of one."""

    text: str | None
    """The digits of a number, the letters of a string, TRUE or FALSE, an INTERVAL as written; None: NULL."""
    type: pa.DataType

    @property
    def value(self) -> object:
        """The Python value: int, Decimal, float, str, bool or None; the text itself for an INTERVAL."""
        text = self.text
        if text is None or pa.types.is_string(self.type) or self.type == INTERVAL:
            return text
        if pa.types.is_boolean(self.type):
            return text == "TRUE"
        if pa.types.is_integer(self.type):
            return int(text)
        return Decimal(text) if pa.types.is_decimal(self.type) else float(text)


@frozen(cache_hash=True)
class Call(Expression):
    """A function or an operator (``functions.FUNCTIONS``) of arguments that have the types it takes."""

    name: str
    arguments: tuple[Expression, ...]
    type: pa.DataType

    def with_arguments(self, arguments: tuple[Expression, ...]) -> Call:
        return evolve(self, arguments=arguments)


@frozen(cache_hash=True)
class Cast(Expression):
    """CAST, as Spark converts in its ANSI mode; with ``attempt`` TRY_CAST, which is NULL where that fails."""

    argument: Expression
    type: pa.DataType
    attempt: bool = False

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.argument,)

    def with_arguments(self, arguments: tuple[Expression, ...]) -> Cast:
        (argument,) = arguments
        return evolve(self, argument=argument)


@frozen(cache_hash=True)
class Case(Expression):
    """CASE: the result of the first branch whose condition is true, or (with a subject) equals the subject."""

    branches: tuple[tuple[Expression, Expression], ...]
    type: pa.DataType
    default: Expression | None = None
    subject: Expression | None = None

    @property
    def arguments(self) -> tuple[Expression, ...]:
        """Subject, conditions and results in turn, default."""
        ends = (self.subject,), (self.default,)
        middle = tuple(part for branch in self.branches for part in branch)
        return tuple(e for e in (*ends[0], *middle, *ends[1]) if e is not None)

    def with_arguments(self, arguments: tuple[Expression, ...]) -> Case:
        listed = list(arguments)
        subject = listed.pop(0) if self.subject is not None else None
        default = listed.pop() if self.default is not None else None
        branches = tuple(zip(listed[::2], listed[1::2], strict=True))
        return evolve(self, branches=branches, default=default, subject=subject)


@frozen(cache_hash=True)
class Field(Expression):
    """A field of a STRUCT."""

    argument: Expression
    name: str
    type: pa.DataType

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.argument,)

    def with_arguments(self, arguments: tuple[Expression, ...]) -> Field:
        (argument,) = arguments
        return evolve(self, argument=argument)


@frozen(cache_hash=True)
class UserCall(Expression):
    """A call of a function in Python, with arguments of the types of its parameters."""

    function: UserFunction
    arguments: tuple[Expression, ...] = ()

    @property
    def type(self) -> pa.DataType:
        return self.function.returns

    @cached_property
    def functions(self) -> tuple[UserFunction, ...]:
        inner = (f for argument in self.arguments for f in argument.functions)
        return tuple(dict.fromkeys((self.function, *inner)))

    def with_arguments(self, arguments: tuple[Expression, ...]) -> UserCall:
        return evolve(self, arguments=arguments)


TRUE = Literal("TRUE", pa.bool_())
FALSE = Literal("FALSE", pa.bool_())
