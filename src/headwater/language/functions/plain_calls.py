"""Calls whose arguments are plain values, converted to what the function takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from headwater.errors import SqlError
from headwater.expressions.functions.table import NAMED
from headwater.expressions.nodes import Call, Case, Literal, UserCall
from headwater.language.arithmetic import meeting
from headwater.language.casts import as_text, converted, with_times
from headwater.language.functions.parameters import as_parameters
from headwater.language.scope import Bound, Scope
from headwater.language.types import shown
from headwater.model.functions import UserFunction


class Binder(Protocol):
    """What calls need of the binder of expressions."""

    scope: Scope
    functions: Mapping[str, UserFunction]

    def bind(self, node: exp.Expr) -> Bound: ...

    def boolean(self, bound: Bound, what: str) -> Bound: ...

    def aggregated(self, node: exp.Expr) -> Bound: ...

    def same_kind(self, values: Sequence[Bound], what: str) -> None: ...

    def error(self, node: exp.Expr, code: str, message: str, *, detail: str = "", hint: str = "") -> SqlError: ...

    def typed(
        self, expression: Call | Case | Literal, node: exp.Expr, operands: Sequence[Bound], *, nullable: bool, what: str
    ) -> Bound: ...

    def called(
        self, name: str, node: exp.Expr, operands: Sequence[Bound], *, nullable: bool = True, what: str
    ) -> Bound: ...

    def negative(self, operand: Bound, node: exp.Expr, what: str) -> Bound: ...

    def cast(self, value: Bound, type_: pa.DataType, node: exp.Expr, *, attempt: bool = False, what: str) -> Bound: ...


def written_name(node: exp.Expr) -> str:
    return str(node.meta.get("name") or node.name or type(node).__name__).lower()


def plain_call(binder: Binder, node: exp.Expr, name: str, arguments: Sequence[Bound]) -> Bound:
    """A call of the function that expressions know under the name."""
    function, arguments = NAMED[name], list(arguments)
    if function.alike is not None:
        first = function.alike
        arguments = [*arguments[:first], *with_times(arguments[first:])]
        binder.same_kind(arguments[first:], f'the arguments of "{written_name(node)}"')
        if name != "nullif":  # the type of its first argument
            arguments = [*arguments[:first], *meeting(arguments[first:])]
    if function.joined is not None:
        arguments = _as_texts(name, function.joined, arguments)
    given = as_parameters(function, arguments)
    if given is None:
        raise not_taken(binder, node, arguments)
    nullable = not (name == "coalesce" and any(not a.nullable for a in given))
    return binder.called(name, node, given, nullable=nullable, what=f'function "{written_name(node)}"')


def not_taken(binder: Binder, node: exp.Expr, arguments: Sequence[Bound]) -> SqlError:
    types = " and ".join(shown(a.type) for a in arguments)
    return binder.error(node, "TYPE_MISMATCH", f'function "{written_name(node)}" does not take {types}')


def _as_texts(name: str, first: int, arguments: list[Bound]) -> list[Bound]:
    """BINARY alone stays what it is, and ``concat_ws`` joins the items of arrays too."""
    joined = arguments[first:]
    without_null = [a for a in joined if name != "concat" or not pa.types.is_null(a.type)]
    if name != "concat_ws" and all(pa.types.is_binary(a.type) for a in without_null):
        return arguments
    texts = [as_text(a) for a in joined]
    if name == "concat_ws":
        texts = [converted(t, pa.list_(pa.string())) if pa.types.is_list(t.type) else t for t in texts]
    return [*arguments[:first], *texts]


def python_call(function: UserFunction, arguments: Sequence[Bound], node: exp.Expr) -> Bound:
    """A call of a function that is Python, with arguments of the types of its parameters."""
    return Bound(UserCall(function, tuple(a.expression for a in arguments)), True, node)
