"""Calls of functions that are Python: the user's, and those of our own that no text of DuckDB computes."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headwater.language.rendering import UserCall
from headwater.language.scope import Bound
from headwater.model.functions import UserFunction
from headwater.operators.expression import quote, register


def python_call(function: UserFunction, arguments: Sequence[Bound], node: exp.Expr) -> Bound:
    """The call with arguments of the types of its parameters."""
    register([function])
    call = UserCall(
        this=f"{quote(function.name)}({{args}})", expressions=[a.node for a in arguments], function=function
    )
    call.meta["type"] = function.returns
    return Bound(call, function.returns, True, node)
