"""Calls of functions: built-in ones by their text, functions of the user's by their name in the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from headwater.errors import SqlError
from headwater.language.arithmetic import meeting
from headwater.language.casts import as_text, can_be, converted
from headwater.language.catalog import Function
from headwater.language.functions.parameters import as_parameters
from headwater.language.functions.python_calls import python_call
from headwater.language.functions.registry import SCALARS, UNREPEATABLE, arity, known_functions
from headwater.language.functions.scalar_functions import ARRAYS
from headwater.language.functions.special_functions import SPECIAL_FUNCTIONS, part_of_time
from headwater.language.functions.user_functions import (
    find_function,
    is_aggregate,
    names_in_sight,
    takes,
    wrong_count,
    wrong_type,
)
from headwater.language.rendering import Template
from headwater.language.scope import Bound, Scope
from headwater.language.text import did_you_mean
from headwater.language.types import shown

_SAME_KIND = {
    "coalesce": 0,
    "equal_null": 0,
    "ifnull": 0,
    "nvl": 0,
    "nullif": 0,
    "greatest": 0,
    "least": 0,
    "array": 0,
    "if": 1,
    "iif": 1,
    "nvl2": 1,
}
"""Functions whose arguments, from the given one on, must go together."""

_TEXTS = {"concat": 0, "concat_ws": 1, "elt": 1}
"""Functions whose arguments, from the given one on, become text."""

_OF_ARRAYS = ARRAYS.keys() - {"array", "array_repeat"}
_GROUPING_FUNCTIONS = ("grouping", "grouping_id")
_WHY_REPEATABLE = "The same input must always give the same answer."


class Binder(Protocol):
    """What calls need of the binder of expressions."""

    scope: Scope

    def bind(self, node: exp.Expr) -> Bound: ...

    def boolean(self, bound: Bound, what: str) -> Bound: ...

    def aggregated(self, node: exp.Expr) -> Bound: ...

    def same_kind(self, values: Sequence[Bound], what: str) -> None: ...

    def error(self, node: exp.Expr, code: str, message: str, *, detail: str = "", hint: str = "") -> SqlError: ...

    def typed(
        self, rebuilt: exp.Expr, node: exp.Expr, operands: Sequence[Bound], *, nullable: bool, what: str = "expression"
    ) -> Bound: ...


def bind_call(binder: Binder, node: exp.Anonymous) -> Bound:
    """``name(…)``, whatever kind of function that is."""
    name = node.name.lower()
    if is_aggregate(name) or name in _GROUPING_FUNCTIONS:
        return binder.aggregated(node)
    if (own := find_function(name)) is not None:
        return _user_call(binder, node, own)
    return _built_in(binder, node, name, list(node.expressions))


def bind_special_form(binder: Binder, node: exp.Expr) -> Bound:
    """Calls with a grammar of their own: they mean the same as a plain call."""
    match node:
        case exp.Extract():
            return part_of_time(binder, node, "extract", node.this, node.expression)
        case exp.Substring():
            given = [node.this, node.args.get("start"), node.args.get("length")]
            return _built_in(binder, node, "substr", [g for g in given if g is not None])
        case exp.StrPosition():
            given = [node.args["substr"], node.this, node.args.get("position")]
            return _built_in(binder, node, "locate", [g for g in given if g is not None])
    assert isinstance(node, exp.Trim)
    letters = node.expression or exp.Literal.string(" ")  # DuckDB takes all that is blank without being asked
    operands = [binder.bind(node.this), binder.bind(letters)]
    name = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(str(node.args.get("position")).upper(), "TRIM")
    template = Template(this=f"{name}({{args}})", expressions=[o.node for o in operands])
    return binder.typed(template, node, operands, nullable=True, what=f'function "{_written_name(node)}"')


def refused_constant(binder: Binder, node: exp.Column) -> SqlError | None:
    """The error for ``current_date`` and its like, which need no parentheses in other systems."""
    if node.args.get("table") or node.name.lower() not in UNREPEATABLE:
        return None
    message = f'function "{node.name}" cannot be used in a query'
    return binder.error(node, "UNKNOWN_FUNCTION", message, hint=_WHY_REPEATABLE)


def _written_name(node: exp.Expr) -> str:
    return str(node.meta.get("name") or node.name or type(node).__name__).lower()


# -- built in ---------------------------------------------------------------------------------------------------------


def _built_in(binder: Binder, node: exp.Expr, name: str, given: list[exp.Expr]) -> Bound:
    function = SPECIAL_FUNCTIONS.get(name) or SCALARS.get(name)
    if function is None:
        raise _unknown_function(binder, node, name)
    shown_name = _written_name(node)
    if not function.least <= len(given) <= function.most:
        if name == "unix_timestamp" and not given:  # the time of day
            raise _unknown_function(binder, node, name)
        message = f'function "{shown_name}" takes {arity(function.least, function.most)}, not {len(given)}'
        raise binder.error(node, "WRONG_ARGUMENTS", message)
    if name in SPECIAL_FUNCTIONS:
        return SPECIAL_FUNCTIONS[name].build(binder, node, name, given)
    arguments = [binder.bind(e) for e in given]
    if name in _SAME_KIND:
        first = _SAME_KIND[name]
        binder.same_kind(arguments[first:], f'the arguments of "{name}"')
        if name != "nullif":  # the type of its first argument
            arguments = [*arguments[:first], *meeting(arguments[first:])]
    if name in _TEXTS:
        arguments = _as_texts(name, arguments)
    arguments = _as_parameters(binder, node, name, arguments)
    if name in ("if", "iif"):
        binder.boolean(arguments[0], f'the first argument of "{name}"')
    text = SCALARS[name].text([a.type for a in arguments])
    template = Template(this=text, expressions=[a.node for a in arguments])
    nullable = not (name == "coalesce" and any(not a.nullable for a in arguments))
    return binder.typed(template, node, arguments, nullable=nullable, what=f'function "{shown_name}"')


def _as_parameters(binder: Binder, node: exp.Expr, name: str, arguments: list[Bound]) -> list[Bound]:
    found = as_parameters(name, arguments)
    first = arguments[0].type if arguments else pa.null()
    if name in _OF_ARRAYS and not (pa.types.is_list(first) or pa.types.is_null(first)):
        found = None  # DuckDB would take a STRING for a list of letters
    if found is None:
        types = " and ".join(shown(a.type) for a in arguments)
        raise binder.error(node, "TYPE_MISMATCH", f'function "{_written_name(node)}" does not take {types}')
    return found


def _as_texts(name: str, arguments: list[Bound]) -> list[Bound]:
    """BINARY alone stays what it is, and ``concat_ws`` joins the items of arrays too."""
    first = _TEXTS[name]
    joined = arguments[first:]
    without_null = [a for a in joined if name != "concat" or not pa.types.is_null(a.type)]
    if name != "concat_ws" and all(pa.types.is_binary(a.type) for a in without_null):
        return arguments
    texts = [as_text(a) for a in joined]
    if name == "concat_ws":
        texts = [converted(t, pa.list_(pa.string())) if pa.types.is_list(t.type) else t for t in texts]
    return [*arguments[:first], *texts]


def _unknown_function(binder: Binder, node: exp.Expr, name: str) -> SqlError:
    if name in ("any", "some", "all"):
        return binder.error(node, "UNSUPPORTED", f"{name.upper()} takes a sub-query")
    if name in ("row_number", "rank", "dense_rank"):
        hint = f"Write {name.upper()}() OVER (PARTITION BY … ORDER BY …)."
        return binder.error(node, "WRONG_ARGUMENTS", f'function "{name}" needs OVER', hint=hint)
    if name in ("window", "session_window"):
        hint = "It can stand in GROUP BY; in FROM write TUMBLE(…), HOP(…) or SESSION(…)."
        return binder.error(node, "UNKNOWN_FUNCTION", f'function "{name}" cannot be used here', hint=hint)
    if name in UNREPEATABLE or name == "unix_timestamp":
        message = f'function "{node.name}" cannot be used in a query'
        return binder.error(node, "UNKNOWN_FUNCTION", message, hint=_WHY_REPEATABLE)
    hint = did_you_mean(name, [*known_functions(), *SPECIAL_FUNCTIONS, *names_in_sight()], cutoff=0.76)
    return binder.error(node, "UNKNOWN_FUNCTION", f'function "{node.name}" does not exist', hint=hint)


# -- the user's -------------------------------------------------------------------------------------------------------


def _user_call(binder: Binder, node: exp.Anonymous, function: Function) -> Bound:
    """A function of the user's: its arguments are converted to its parameters as Spark would."""
    definition = function.definition
    arguments = [binder.bind(e) for e in node.expressions]
    if len(arguments) != len(definition.parameters):
        raise wrong_count(binder.scope.text, node, function, arguments)
    given = [_converted(binder, function, i, argument) for i, argument in enumerate(arguments)]
    return python_call(definition, given, node)


def _converted(binder: Binder, function: Function, parameter: int, argument: Bound) -> Bound:
    """The argument as a value of the parameter's type."""
    type_ = function.definition.parameters[parameter]
    literal = isinstance(argument.node, exp.Literal) and argument.node.is_string
    text = binder.scope.text
    if not takes(type_, argument.type, literal=literal):
        raise wrong_type(text, argument.origin, function, parameter, argument.type)
    if literal and not pa.types.is_string(type_) and not can_be(argument.node.name, type_):
        raise wrong_type(text, argument.origin, function, parameter, argument.type, value=argument.node.name)
    return converted(argument, type_)
