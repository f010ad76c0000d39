"""Calls of functions: built-in ones, and those of users."""

from __future__ import annotations

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.errors import SqlError
from headwater.expressions.casts import can_be
from headwater.expressions.functions.record import arity
from headwater.expressions.functions.table import SYNONYMS
from headwater.expressions.nodes import Call, Literal
from headwater.language.casts import converted, string_constant
from headwater.language.catalog import Function
from headwater.language.functions.foreign_functions import HINTS
from headwater.language.functions.plain_calls import Binder, plain_call, python_call, written_name
from headwater.language.functions.registry import SCALARS, UNREPEATABLE, known_functions
from headwater.language.functions.special_functions import SPECIAL_FUNCTIONS, part_of_time
from headwater.language.functions.user_functions import (
    find_function,
    is_aggregate,
    names_in_sight,
    takes,
    wrong_count,
    wrong_type,
)
from headwater.language.parsing.array_parsing import is_generator, misplaced
from headwater.language.scope import Bound
from headwater.language.text import did_you_mean

_GROUPING_FUNCTIONS = ("grouping", "grouping_id", "group_id")
_WHY_REPEATABLE = "The same input must always give the same answer."


def bind_call(binder: Binder, node: exp.Anonymous) -> Bound:
    """``name(…)``, whatever kind of function that is."""
    name = node.name.lower()
    if is_aggregate(name) or name in _GROUPING_FUNCTIONS:
        return binder.aggregated(node)
    if (own := find_function(name)) is not None:
        return _user_call(binder, node, own)
    if (definition := binder.functions.get(node.name)) is not None:
        given = zip(node.expressions, definition.parameters, strict=True)
        return python_call(definition, [converted(binder.bind(e), type_) for e, type_ in given], node)
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
    letters = node.expression
    blank = Bound(Literal(" ", pa.string()), False, node)
    operands = [binder.bind(node.this), binder.bind(letters) if letters else blank]
    ends = {"LEADING": ("ltrim", "trim leading"), "TRAILING": ("rtrim", "trim trailing")}
    plain, chosen = ends.get(str(node.args.get("position")).upper(), ("btrim", "btrim"))
    given = tuple(o.expression for o in operands)
    call = Call(plain, given[:1], pa.null()) if letters is None else Call(chosen, given, pa.null())
    return binder.typed(call, node, operands, nullable=True, what=f'function "{written_name(node)}"')


def bind_constructor(binder: Binder, node: exp.Expr) -> Bound:
    """``ARRAY[1, 2]`` is ``array(1, 2)``, ``X'ff'`` bytes."""
    if isinstance(node, exp.HexString):
        return evolve(_built_in(binder, node, "unhex", [exp.Literal.string(node.name)]), nullable=False)
    if not node.expressions:
        hint = "Say of which type: CAST(NULL AS ARRAY<INT>); array_remove(array(0), 0) has no items."
        raise binder.error(node, "WRONG_ARGUMENTS", "ARRAY[] has no type", hint=hint)
    return _built_in(binder, node, "array", node.expressions)


def refused_constant(binder: Binder, node: exp.Column) -> SqlError | None:
    """The error for ``current_date`` and its like, which need no parentheses in other systems."""
    if node.args.get("table") or node.name.lower() not in UNREPEATABLE:
        return None
    message = f'function "{node.name}" cannot be used in a query'
    return binder.error(node, "UNKNOWN_FUNCTION", message, hint=_WHY_REPEATABLE)


# -- built in ---------------------------------------------------------------------------------------------------------


def _built_in(binder: Binder, node: exp.Expr, name: str, given: list[exp.Expr]) -> Bound:
    function = SPECIAL_FUNCTIONS.get(name) or SCALARS.get(name)
    if function is None:
        raise _unknown_function(binder, node, name)
    shown_name = written_name(node)
    if not function.least <= len(given) <= function.most:
        if name == "unix_timestamp" and not given:  # the time of day
            raise _unknown_function(binder, node, name)
        message = f'function "{shown_name}" takes {arity(function.least, function.most)}, not {len(given)}'
        raise binder.error(node, "WRONG_ARGUMENTS", message)
    if name in SPECIAL_FUNCTIONS:
        return SPECIAL_FUNCTIONS[name].build(binder, node, name, given)
    return plain_call(binder, node, SYNONYMS.get(name, name), [binder.bind(e) for e in given])


def _unknown_function(binder: Binder, node: exp.Expr, name: str) -> SqlError:
    if is_generator(node):
        return misplaced(binder.scope.text, node)
    if name in ("any", "some", "all"):
        return binder.error(node, "UNSUPPORTED", f"{name.upper()} takes a sub-query")
    if name in ("row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value", "nth_value"):
        arguments = "(…)" if node.expressions else "()"
        hint = f"Write {name.upper()}{arguments} OVER (PARTITION BY … ORDER BY …)."
        return binder.error(node, "WRONG_ARGUMENTS", f'function "{name}" needs OVER', hint=hint)
    if name in ("window", "session_window"):
        hint = "It can stand in GROUP BY; in FROM write TUMBLE(…), HOP(…) or SESSION(…)."
        return binder.error(node, "UNKNOWN_FUNCTION", f'function "{name}" cannot be used here', hint=hint)
    if name in UNREPEATABLE or name == "unix_timestamp":
        message = f'function "{node.name}" cannot be used in a query'
        return binder.error(node, "UNKNOWN_FUNCTION", message, hint=_WHY_REPEATABLE)
    hint = HINTS.get(name) or did_you_mean(
        name, [*known_functions(), *SPECIAL_FUNCTIONS, *names_in_sight()], cutoff=0.76
    )
    return binder.error(node, "UNKNOWN_FUNCTION", f'function "{node.name}" does not exist', hint=hint)


# -- the user's -------------------------------------------------------------------------------------------------------


def _user_call(binder: Binder, node: exp.Anonymous, function: Function) -> Bound:
    """A user's function: its arguments are converted to its parameters as Spark would."""
    definition = function.definition
    arguments = [binder.bind(e) for e in node.expressions]
    if len(arguments) != len(definition.parameters):
        raise wrong_count(binder.scope.text, node, function, arguments)
    given = [_converted(binder, function, i, argument) for i, argument in enumerate(arguments)]
    return python_call(definition, given, node)


def _converted(binder: Binder, function: Function, parameter: int, argument: Bound) -> Bound:
    """The argument as a value of the parameter's type."""
    type_ = function.definition.parameters[parameter]
    literal = string_constant(argument.expression)
    text = binder.scope.text
    if not takes(type_, argument.type, literal=literal is not None):
        raise wrong_type(text, argument.origin, function, parameter, argument.type)
    if literal is not None and not pa.types.is_string(type_) and not can_be(literal, type_):
        raise wrong_type(text, argument.origin, function, parameter, argument.type, value=literal)
    return converted(argument, type_)
