"""Functions of arrays, and the one that makes structs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.expressions.functions.record import MANY, Function, constant, in_quotes
from headwater.expressions.nodes import Expression

_PLACE = "CAST({1} AS BIGINT)"
"""Places can be at the ends of INT."""


def _struct(arguments: Sequence[Expression]) -> str:
    """Names and values in turn."""
    fields = ", ".join(f"{in_quotes(constant(name))}: {{{2 * i + 1}}}" for i, name in enumerate(arguments[::2]))
    return f"{{{{{fields}}}}}"


def _set(name: str, only: str = "") -> Function:
    """The first of equal items of both arrays, as far as they are wanted."""
    first = "LIST_POSITION(LIST_CONCAT({0}, {1}), item) = place"
    chosen = f"LIST_FILTER(LIST_CONCAT({{0}}, {{1}}), lambda item, place: {first}{only})"

    def by_spark(arguments: Sequence[Expression]) -> str:
        """Which floats are equal, and whether what has NULLs inside is, engines see differently."""
        items = {a.type.value_type if pa.types.is_list(a.type) else a.type for a in arguments}
        alike = len(items) == 1 or all(map(pa.types.is_integer, items))
        plain = not any(pa.types.is_floating(i) or pa.types.is_nested(i) or pa.types.is_null(i) for i in items)
        return f"{name}({{args}})" if alike and plain else ""

    return Function(
        2,
        2,
        f"CASE WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {chosen} END",
        takes=("array", "array"),
        alike=0,
        spark=by_spark,
    )


ARRAYS: dict[str, Function] = {
    "array": Function(1, MANY, "LIST_VALUE({args})", alike=0, spark="array({args})"),
    "array_append": Function(2, 2, "CASE WHEN {0} IS NOT NULL THEN LIST_APPEND({args}) END", takes=("array", "item")),
    "array_compact": Function(1, 1, "LIST_FILTER({0}, lambda item: item IS NOT NULL)", takes=("array",)),
    # NULL where the item is not found but may hide behind a NULL.
    "array_contains": Function(
        2,
        2,
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN CAST(NULL AS BOOLEAN) WHEN LIST_CONTAINS({args}) THEN TRUE "
        "WHEN LEN({0}) > LEN(LIST_FILTER({0}, lambda item: item IS NOT NULL)) THEN CAST(NULL AS BOOLEAN) ELSE FALSE END",
        takes=("array", "item"),
    ),
    "array_distinct": Function(
        1, 1, "LIST_FILTER({0}, lambda item, place: LIST_POSITION({0}, item) = place)", takes=("array",)
    ),
    "array_except": _set("array_except", " AND LIST_POSITION({1}, item) IS NULL"),
    "array_intersect": _set("array_intersect", " AND place <= LEN({0}) AND LIST_POSITION({1}, item) IS NOT NULL"),
    "array_join": Function(
        2,
        3,
        "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN COALESCE(ARRAY_TO_STRING({args}), '') END ; "
        "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL THEN COALESCE(ARRAY_TO_STRING("
        "LIST_TRANSFORM({0}, lambda item: COALESCE(CAST(item AS VARCHAR), {2})), {1}), '') END",
        takes=("array",),
    ),
    "array_max": Function(1, 1, "LIST_MAX({0})", takes=("array",)),
    "array_min": Function(1, 1, "LIST_MIN({0})", takes=("array",)),
    "array_position": Function(
        2,
        2,
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN CAST(NULL AS BIGINT) "
        "ELSE COALESCE(CAST(LIST_POSITION({args}) AS BIGINT), 0) END",
        takes=("array", "item"),
    ),
    "array_prepend": Function(
        2, 2, "CASE WHEN {0} IS NOT NULL THEN LIST_PREPEND({1}, {0}) END", takes=("array", "item")
    ),
    "array_remove": Function(
        2,
        2,
        "CASE WHEN {1} IS NOT NULL THEN LIST_FILTER({0}, lambda item: item IS DISTINCT FROM {1}) END",
        takes=("array", "item"),
    ),
    "array_repeat": Function(
        2, 2, "REPEAT(LIST_VALUE({0}), CASE WHEN {1} < 0 THEN 0 ELSE {1} END)", takes=("any", "int"), of_null=True
    ),
    "array_sort": Function(1, 1, "LIST_SORT({0}, 'ASC', 'NULLS LAST')", takes=("array",)),
    "array_union": _set("array_union"),
    "element_at": Function(
        2, 2, "LIST_EXTRACT({args})", takes=("array", "int"), spark="try_element_at({0}, nullif({1}, 0))"
    ),
    "flatten": Function(
        1,
        1,
        "CASE WHEN LEN({0}) = LEN(LIST_FILTER({0}, lambda item: item IS NOT NULL)) THEN FLATTEN({0}) END",
        takes=("array",),
    ),
    "get": Function(
        2,
        2,
        "CASE WHEN {1} >= 0 THEN LIST_EXTRACT({0}, CAST({1} AS BIGINT) + 1) END",
        takes=("array", "int"),
        spark="get({args})",
    ),
    "named_struct": Function(2, MANY, _struct, spark="named_struct({args})"),
    "size": Function(
        1, 1, "CAST(LEN({0}) AS INTEGER)", takes=("array",), also=("array_size", "cardinality"), spark="array_size({0})"
    ),
    "slice": Function(
        3,
        3,
        "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
        f"WHEN {{1}} > 0 THEN LIST_SLICE({{0}}, {{1}}, {_PLACE} + GREATEST({{2}}, 0) - 1) "
        f"WHEN -{_PLACE} > LEN({{0}}) THEN LIST_SLICE({{0}}, 1, 0) "
        f"ELSE LIST_SLICE({{0}}, LEN({{0}}) + {_PLACE} + 1, LEN({{0}}) + {_PLACE} + GREATEST({{2}}, 0)) END",
        takes=("array", "int", "int"),
    ),
    "sort_array": Function(
        1,
        2,
        "LIST_SORT({0}, 'ASC', 'NULLS FIRST') ; CASE WHEN {1} THEN LIST_SORT({0}, 'ASC', 'NULLS FIRST') "
        "ELSE LIST_SORT({0}, 'DESC', 'NULLS LAST') END",
        takes=("array", "boolean"),
    ),
}
