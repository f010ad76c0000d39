"""CREATE FUNCTION: functions of users, checked when they are declared and called like built-in ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import pyarrow as pa
from attrs import define, field
from sqlglot import exp

from headwater.errors import HeadwaterError, SqlError
from headwater.expressions.aggregates import BY_SQL_NAME, Aggregate
from headwater.expressions.types import common_type, is_nested, is_numeric
from headwater.language.catalog import Catalog, Function, calls
from headwater.language.functions.registry import SCALARS, SPECIAL_FORMS, UNREPEATABLE
from headwater.language.functions.special_functions import SPECIAL_FUNCTIONS
from headwater.language.parsing.syntax import CreateFunction
from headwater.language.text import error_on
from headwater.language.types import declared_type, shown, types_hint, written_type
from headwater.model.functions import UserFunction, import_path
from headwater.model.given_functions import find_given, give
from headwater.operators.aggregates.user_aggregates import load_aggregate

_NAME = re.compile(r"[^\W\d]\w*")
_OTHER_FORMS = frozenset(
    {
        *("any", "all", "some", "exists", "istream", "dstream", "rstream", "grouping", "grouping_id", "group_id"),
        *("row_number", "rank", "dense_rank", "lag", "lead", "nth_value"),
        *("window", "session_window", "tumble", "hop", "session"),
        "heartbeat",
    }
)


# -- which functions there are ----------------------------------------------------------------------------------------


@define
class _Visible:
    """The functions that the statement may call, and which of them it has called."""

    catalog: Catalog
    called: set[str] = field(factory=set)


_visible: ContextVar[_Visible | None] = ContextVar("functions in sight", default=None)


@contextmanager
def functions_of(catalog: Catalog) -> Iterator[set[str]]:
    """While a statement is bound: its functions come from the catalog. Gives the names in ``uses`` of those it calls."""
    visible = _Visible(catalog)
    token = _visible.set(visible)
    try:
        yield visible.called
    finally:
        _visible.reset(token)


def find_function(name: str) -> Function | None:
    """The user's function of the name, if the statement that is being bound may call one."""
    visible = _visible.get()
    found = visible.catalog.function(name) if visible is not None else None
    if visible is not None and found is not None:
        visible.called.add(calls(found.name))
    return found


def is_aggregate(name: str) -> bool:
    """Is it the name of an aggregate, built in or the user's?"""
    visible = _visible.get()
    found = visible.catalog.function(name) if visible is not None else None
    return name.lower() in BY_SQL_NAME or (found is not None and found.aggregate)


def find_aggregate_function(name: str) -> Aggregate | None:
    """The aggregate of the name, built in or the user's."""
    function = find_function(name) if is_aggregate(name) else None
    if function is None:
        return BY_SQL_NAME.get(name.lower())
    definition = function.definition
    types = definition.parameters

    def result(argument: pa.DataType) -> pa.DataType | None:
        return definition.returns if len(types) > 1 or takes(types[0], argument, literal=False) else None

    several = (len(types),) if len(types) > 1 else ()
    return Aggregate(
        function.name.upper(),
        result,
        f"a {shown(types[0])}",
        parameters=tuple(zip(function.parameters, types, strict=True)),
        constants=(definition.path, *several),
    )


def names_in_sight() -> list[str]:
    visible = _visible.get()
    return [f.name for f in visible.catalog.functions.values()] if visible is not None else []


# -- declaring --------------------------------------------------------------------------------------------------------


def bind_function(text: str, node: CreateFunction) -> Function:
    """The function as declared; what its path names is imported, so that a mistake is found here."""
    name, aggregate = node.this.name, bool(node.args.get("aggregate"))
    _check_name(text, node.this)
    parameters = [p for p in node.args.get("parameters") or () if p is not None]
    names = [p.name for p in parameters]
    if len({n.casefold() for n in names}) < len(names):
        raise error_on(
            text, parameters[-1].this, "DUPLICATE_COLUMN", f'function "{name}" has two parameters of one name'
        )
    types = tuple(_type(text, p.args["kind"]) for p in parameters)
    returns = _type(text, node.args["returns"])
    if aggregate and not types:
        message = "an aggregate function takes at least 1 argument"
        raise error_on(text, node.this, "WRONG_ARGUMENTS", message, hint="COUNT(*) counts rows.")
    definition = UserFunction.define(name, _path(text, node.args["path"]), types, returns)
    _check_path(text, node.args["path"], definition, aggregate=aggregate)
    return Function(name, definition, tuple(names), aggregate)


def _check_name(text: str, node: exp.Expr) -> None:
    folded = node.name.casefold()
    if not _NAME.fullmatch(node.name):
        raise error_on(text, node, "FUNCTION_NAME", f'"{node.name}" cannot be the name of a function')
    if folded in {*SCALARS, *SPECIAL_FUNCTIONS, *BY_SQL_NAME, *SPECIAL_FORMS, *UNREPEATABLE, *_OTHER_FORMS}:
        hint = "Choose another name for yours."
        raise error_on(text, node, "FUNCTION_NAME", f'function "{node.name}" is built in', hint=hint)


def _type(text: str, node: exp.Expr) -> pa.DataType:
    type_ = declared_type(node) if isinstance(node, exp.DataType) else None
    if type_ is None:
        message = f"there is no type {written_type(node)}"
        raise error_on(text, node, "UNKNOWN_TYPE", message, hint=types_hint(node))
    return type_


def _path(text: str, node: exp.Expr) -> str:
    """A function of the program itself, or of a notebook, is given as the object it is: no other process can import it."""
    path = node.name
    if path.startswith("__main__:") and find_given(path) is None:
        with _errors_at(text, node):
            return give(import_path(path))
    return path


@contextmanager
def _errors_at(text: str, node: exp.Expr) -> Iterator[None]:
    try:
        yield
    except HeadwaterError as problem:
        raise error_on(text, node, problem.code, problem.message, detail=problem.detail, hint=problem.hint) from problem


def _check_path(text: str, node: exp.Expr, definition: UserFunction, *, aggregate: bool) -> None:
    with _errors_at(text, node):
        if aggregate:
            load_aggregate(
                definition.title, definition.path, definition.returns, several=len(definition.parameters) > 1
            )
            return
        found = import_path(definition.path)
    if not callable(found):
        message = f'"{definition.path}" is a {type(found).__name__} and cannot be called'
        raise error_on(text, node, "UNKNOWN_FUNCTION_PATH", message)


# -- calling ----------------------------------------------------------------------------------------------------------


def takes(parameter: pa.DataType, argument: pa.DataType, *, literal: bool) -> bool:
    """May the argument be converted without being asked? Spark's rules: to a wider type, to STRING, and from a literal."""
    if argument == parameter or pa.types.is_null(argument):
        return True
    if is_numeric(argument) and pa.types.is_float64(parameter):
        return True
    if common_type(argument, parameter) == parameter:
        return True
    if pa.types.is_string(parameter):
        return not is_nested(argument) and not pa.types.is_binary(argument)
    return literal and pa.types.is_string(argument) and not is_nested(parameter)


def wrong_count(text: str, node: exp.Expr, function: Function, given: Sequence[object]) -> SqlError:
    wanted = len(function.definition.parameters)
    arity = "no arguments" if wanted == 0 else f"{wanted} argument{'' if wanted == 1 else 's'}"
    return error_on(text, node, "WRONG_ARGUMENTS", f'function "{function.name}" takes {arity}, not {len(given)}')


def wrong_type(
    text: str, node: exp.Expr, function: Function, parameter: int, found: pa.DataType, *, value: str = ""
) -> SqlError:
    name, wanted = function.parameters[parameter], shown(function.definition.parameters[parameter])
    what = f"the STRING '{value}'" if value else shown(found)
    message = f'parameter "{name}" of function "{function.name}" is {wanted}, which {what} is not'
    return error_on(text, node, "TYPE_MISMATCH", message, hint="" if value else f"Convert it: CAST(… AS {wanted}).")
