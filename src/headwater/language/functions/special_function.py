"""A function that is built from its arguments as written, and the pieces that such functions are built of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from attrs import frozen
from sqlglot import exp

from headwater.expressions.nodes import Call, Literal
from headwater.language.functions.plain_calls import Binder
from headwater.language.scope import Bound
from headwater.language.text import closest

Builder = Callable[[Binder, exp.Expr, str, list[exp.Expr]], Bound]


@frozen
class SpecialFunction:
    """A function that is built from its arguments as written."""

    least: int
    most: int
    build: Builder


def constant_text(binder: Binder, node: exp.Expr, what: str) -> str:
    if not (isinstance(node, exp.Literal) and node.is_string):
        raise binder.error(node, "WRONG_ARGUMENTS", f"{what} must be a constant string")
    return node.name


def unit_of(binder: Binder, node: exp.Expr, function: str, units: Sequence[Sequence[str]]) -> str:
    """The unit that a constant names, under its first name."""
    written = node.name.upper()
    for names in units:
        if written in names:
            return names[0]
    near = closest(written, [name for names in units for name in names])
    hint = f"Did you mean {near}?" if near else f"There are {', '.join(names[0] for names in units)}."
    raise binder.error(node, "UNKNOWN_UNIT", f'function "{function}" has no unit "{node.name}"', hint=hint)


def call_of(
    binder: Binder, node: exp.Expr, name: str, function: str, arguments: Sequence[Bound | str], *, nullable: bool = True
) -> Bound:
    """A call of the function that expressions know so; ``name`` is what the query calls it. Texts are constants."""
    given = tuple(Literal(a, pa.string()) if isinstance(a, str) else a.expression for a in arguments)
    operands = [a for a in arguments if isinstance(a, Bound)]
    call = Call(function, given, pa.null())
    return binder.typed(call, node, operands, nullable=nullable, what=f'function "{name}"')
