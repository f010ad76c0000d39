"""Functions of JSON that are built from what is written: paths and schemas, which are constants."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from headwater.errors import SqlError
from headwater.expressions.functions.json import duckdb_path
from headwater.expressions.nodes import Call, Literal
from headwater.expressions.types import is_nested
from headwater.language.functions.plain_calls import Binder, not_taken
from headwater.language.functions.special_function import SpecialFunction, constant_text
from headwater.language.scope import Bound
from headwater.language.types import declared_type
from headwater.model.types import TYPE_NAMES, sql_name

_PATH_HINT = "A path has names and places: '$.a.b[0]', '$[''a b'']'."
_SCHEMA_HINT = f"""Write 'a INT, b STRING', 'STRUCT<a: INT>' or 'ARRAY<STRUCT<a: INT>>', of {TYPE_NAMES}."""


def _at_path(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """A function of text and a constant path."""
    path = constant_text(binder, arguments[1], "the path")
    if duckdb_path(path) is None:
        hint = _PATH_HINT
        if "*" in path:
            hint += " All items: UNNEST(from_json(…, 'ARRAY<STRING>'))."
        raise binder.error(arguments[1], "UNSUPPORTED", f"the path '{path}' is not supported", hint=hint)
    return _of_text(binder, node, name, arguments[0], path)


def _of_text(binder: Binder, node: exp.Expr, name: str, json: exp.Expr, word: str) -> Bound:
    text = binder.bind(json)
    if not pa.types.is_string(text.type) and not pa.types.is_null(text.type):
        raise not_taken(binder, node, [text])
    text = text.cast(pa.string())
    call = Call(name, (text.expression, Literal(word, pa.string())), pa.null())
    return binder.typed(call, node, [text], nullable=True, what=f'function "{name}"')


def _from_json(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    schema = constant_text(binder, arguments[1], "the schema")
    return _of_text(binder, node, name, arguments[0], sql_name(_schema(binder, arguments[1], schema)))


def _schema(binder: Binder, node: exp.Expr, written: str) -> pa.DataType:
    """``a INT, b STRING``, or a STRUCT or an ARRAY."""
    for text in (written, f"STRUCT<{written}>"):
        type_ = _type(text)
        if type_ is not None and is_nested(type_):
            return type_
    raise _no_schema(binder, node, written)


def _type(text: str) -> pa.DataType | None:
    from headwater.language.parsing.dialect import Headwater  # which needs the functions itself

    try:
        (parsed,) = Headwater().parse_into(exp.DataType, text)
    except (SqlglotError, SqlError, ValueError):
        return None
    return declared_type(parsed) if isinstance(parsed, exp.DataType) else None


def _no_schema(binder: Binder, node: exp.Expr, written: str) -> SqlError:
    return binder.error(node, "UNKNOWN_TYPE", f"'{written}' is no schema of JSON", hint=_SCHEMA_HINT)


def _to_json(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    value = binder.bind(arguments[0])
    if not is_nested(value.type):
        message = f'function "to_json" takes a STRUCT or an ARRAY, not {sql_name(value.type)}'
        raise binder.error(
            node, "TYPE_MISMATCH", message, hint="For example: to_json(struct(a, b)), to_json(array(a))."
        )
    return binder.called(name, node, [value], nullable=value.nullable, what=f'function "{name}"')


JSON_FUNCTIONS: dict[str, SpecialFunction] = {
    "from_json": SpecialFunction(2, 2, _from_json),
    **{
        name: SpecialFunction(2, 2, _at_path) for name in ("get_json_object", "json_exists", "json_query", "json_value")
    },
    "to_json": SpecialFunction(1, 1, _to_json),
}
