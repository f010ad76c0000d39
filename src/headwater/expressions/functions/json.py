"""Functions of JSON text: parts of it by path, and whole values of it as STRUCTs and ARRAYs, and back.

Text that is no JSON is NULL to all of them. DuckDB reads JSON strictly: its texts here ask first whether it is any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

import pyarrow as pa

from headwater.expressions.casts import cast_text
from headwater.expressions.functions.record import Function, constant
from headwater.expressions.nodes import Expression
from headwater.model.types import duckdb_name, parse_sql_type, quote, string_literal

_VALID = "CASE WHEN JSON_VALID({0}) THEN {0} END"
_STEP = re.compile(r"""\.(?P<name>[^.\[\]"'*]+)|\[(?P<place>\d+)\]|\['(?P<quoted>[^'"]+)'\]|\["(?P<double>[^'"]+)"\]""")
_PLACE_OF_ARGUMENT = "\0"
"""Stands for ``{0}`` in texts that have braces of their own."""


# -- paths ------------------------------------------------------------------------------------------------------------


def duckdb_path(path: str) -> str | None:
    """A path of names and places as DuckDB writes it; None if it is something else.

    >>> duckdb_path("$.a['b c'][0]")
    '$."a"."b c"[0]'
    """
    if not path.startswith("$"):
        return None
    made, at = "$", 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        name = step["name"] or step["quoted"] or step["double"]
        made += f"[{step['place']}]" if step["place"] else f'."{name}"'
        at = step.end()
    return made


def _at_path(template: str) -> Function:
    """A function of JSON text and a constant path, which is ``PATH`` in the template."""

    def text(arguments: Sequence[Expression]) -> str:
        path = duckdb_path(constant(arguments[1]))
        assert path is not None, "the binder has looked at it"
        escaped = string_literal(path).replace("{", "{{").replace("}", "}}")
        return template.replace("PATH", escaped)

    return Function(2, 2, text, takes=("string", "any"))


# -- from_json --------------------------------------------------------------------------------------------------------


def _from_json(arguments: Sequence[Expression]) -> str:
    type_ = parse_sql_type(constant(arguments[1]))
    text = f"CAST({_read(_VALID.format(_PLACE_OF_ARGUMENT), type_, count(), root=True)} AS {duckdb_name(type_)})"
    return text.replace("{", "{{").replace("}", "}}").replace(_PLACE_OF_ARGUMENT, "{0}")


def _read(raw: str, type_: pa.DataType, numbers: count[int], *, root: bool = False) -> str:
    """The JSON text ``raw``, NULL where JSON has null, as a value of the type; NULL if it is none."""
    if pa.types.is_struct(type_):
        return _read_struct(raw, type_, numbers, root=root)
    if pa.types.is_list(type_):
        return _read_list(raw, type_, numbers)
    letters = f"JSON_EXTRACT_STRING({raw}, '$')"
    if pa.types.is_string(type_):
        return letters
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        pattern = "true|false" if pa.types.is_boolean(type_) else "-?[0-9]+"
        return f"CASE WHEN REGEXP_FULL_MATCH({raw}, '{pattern}') THEN TRY_CAST({raw} AS {duckdb_name(type_)}) END"
    if pa.types.is_floating(type_):
        words = "('\"NaN\"', '\"Infinity\"', '\"-Infinity\"', '\"INF\"', '\"-INF\"', '\"+INF\"')"
        number = f"{raw} NOT LIKE '\"%' OR {raw} IN {words}"
        return f"CASE WHEN {number} THEN TRY_CAST({letters} AS {duckdb_name(type_)}) END"
    if pa.types.is_binary(type_):
        return f"CASE WHEN {raw} LIKE '\"%' THEN TRY(FROM_BASE64({letters})) END"
    read = cast_text(pa.string(), type_, attempt=True)
    assert read is not None
    if pa.types.is_decimal(type_):
        return f"CASE WHEN {raw} NOT IN ('true', 'false') THEN {read.format(letters)} END"
    moment = f"CASE WHEN {raw} LIKE '\"%' THEN {read.format(letters)}"
    if pa.types.is_timestamp(type_):  # a number is seconds
        moment += (
            f" WHEN REGEXP_FULL_MATCH({raw}, '-?[0-9]+') THEN TRY(MAKE_TIMESTAMP(CAST({raw} AS BIGINT) * 1000000))"
        )
    return f"{moment} END"


def _let(name: str, value: str, body: str) -> str:
    """The body with a name for a value, which is computed once."""
    return f"LIST_TRANSFORM([{value}], lambda {name}: {body})[1]"


def _read_struct(raw: str, type_: pa.DataType, numbers: count[int], *, root: bool) -> str:
    """One pass over the text cuts it into those of the fields."""
    fields = [type_.field(i) for i in range(type_.num_fields)]
    name = f"v{next(numbers)}"
    shape = ", ".join(f'{quote_json(f.name)}: "JSON"' for f in fields)
    raws = [f"CAST(STRUCT_EXTRACT({name}, {string_literal(f.name)}) AS VARCHAR)" for f in fields]
    values = [f"{quote(f.name, chr(34))} := {_read(r, f.type, numbers)}" for f, r in zip(fields, raws, strict=True)]
    body = f"CASE WHEN {name} IS NOT NULL THEN STRUCT_PACK({', '.join(values)}) END"
    given = raw if root else f"CASE WHEN {raw} LIKE '{{%' THEN {raw} END"
    return _let(name, f"JSON_TRANSFORM({given}, {string_literal('{' + shape + '}')})", body)


def quote_json(text: str) -> str:
    """The text as a string of JSON."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _read_list(raw: str, type_: pa.DataType, numbers: count[int]) -> str:
    """NULL as a whole where an item is something else than it should be, as in Spark."""
    items, item = f"v{next(numbers)}", f"v{next(numbers)}"
    made = f"v{next(numbers)}"
    each = f"LIST_TRANSFORM({items}, lambda {item}: {_read(f'CAST({item} AS VARCHAR)', type_.value_type, numbers)})"
    there = f"LEN(LIST_FILTER({items}, lambda {item}: {item} IS NOT NULL))"
    kept = f"LEN(LIST_FILTER({made}, lambda {item}: {item} IS NOT NULL))"
    body = _let(made, each, f"CASE WHEN {there} = {kept} THEN {made} END")
    return _let(items, f"JSON_TRANSFORM({raw}, '[\"JSON\"]')", body)


# -- to_json ----------------------------------------------------------------------------------------------------------


def _to_json(arguments: Sequence[Expression]) -> str:
    text = _written(_PLACE_OF_ARGUMENT, arguments[0].type, count())
    text = f"CASE WHEN {_PLACE_OF_ARGUMENT} IS NOT NULL THEN {text} END"
    return text.replace("{", "{{").replace("}", "}}").replace(_PLACE_OF_ARGUMENT, "{0}")


def _written(value: str, type_: pa.DataType, numbers: count[int]) -> str:
    """The text of a value that is there: fields that are NULL are left out, items are null."""
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        parts = []
        for field in fields:
            inner = f"STRUCT_EXTRACT({value}, {string_literal(field.name)})"
            label = string_literal(f"{quote_json(field.name)}:")
            parts.append(f"CASE WHEN {inner} IS NOT NULL THEN {label} || {_written(inner, field.type, numbers)} END")
        return f"('{{' || CONCAT_WS(',', {', '.join(parts)}) || '}}')"
    if pa.types.is_list(type_):
        item = f"v{next(numbers)}"
        each = f"CASE WHEN {item} IS NULL THEN 'null' ELSE {_written(item, type_.value_type, numbers)} END"
        return f"('[' || COALESCE(ARRAY_TO_STRING(LIST_TRANSFORM({value}, lambda {item}: {each}), ','), '') || ']')"
    if pa.types.is_null(type_):
        return "'null'"
    if pa.types.is_timestamp(type_):
        return f"STRFTIME({value}, '\"%Y-%m-%dT%H:%M:%S.%gZ\"')"
    text = f"TO_BASE64({value})" if pa.types.is_binary(type_) else _as_text(value, type_)
    if pa.types.is_floating(type_):
        return f"CASE WHEN ISFINITE({value}) THEN {text} ELSE '\"' || {text} || '\"' END"
    plain = pa.types.is_integer(type_) or pa.types.is_decimal(type_) or pa.types.is_boolean(type_)
    return text if plain else f"CAST(TO_JSON({text}) AS VARCHAR)"


def _as_text(value: str, type_: pa.DataType) -> str:
    if pa.types.is_string(type_):
        return value
    text = cast_text(type_, pa.string())
    assert text is not None
    return f"({text.format(value)})"


JSON: dict[str, Function] = {
    "from_json": Function(2, 2, _from_json, takes=("string", "any")),
    "get_json_object": _at_path("CASE WHEN JSON_VALID({0}) THEN JSON_EXTRACT_STRING({0}, PATH) END"),
    "json_array_length": Function(
        1,
        1,
        "CASE WHEN JSON_VALID({0}) THEN CASE WHEN JSON_TYPE({0}) = 'ARRAY' "
        "THEN CAST(JSON_ARRAY_LENGTH({0}) AS INTEGER) END END",
        takes=("string",),
    ),
    "json_exists": _at_path(
        "CASE WHEN {0} IS NOT NULL THEN COALESCE(CASE WHEN JSON_VALID({0}) THEN JSON_EXISTS({0}, PATH) END, FALSE) END"
    ),
    "json_object_keys": Function(
        1,
        1,
        "CASE WHEN JSON_VALID({0}) THEN CASE WHEN JSON_TYPE({0}) = 'OBJECT' THEN JSON_KEYS({0}) END END",
        takes=("string",),
    ),
    "json_query": _at_path(
        "CASE WHEN JSON_VALID({0}) THEN CASE WHEN JSON_TYPE({0}, PATH) IN ('ARRAY', 'OBJECT') "
        "THEN JSON_EXTRACT_STRING({0}, PATH) END END"
    ),
    "json_value": _at_path(
        "CASE WHEN JSON_VALID({0}) THEN CASE WHEN JSON_TYPE({0}, PATH) NOT IN ('ARRAY', 'OBJECT') "
        "THEN JSON_EXTRACT_STRING({0}, PATH) END END"
    ),
    "to_json": Function(1, 1, _to_json),
}
