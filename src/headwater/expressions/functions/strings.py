"""Functions of strings and bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from headwater.expressions.functions.record import MANY, Function, constant
from headwater.expressions.nodes import Expression, Literal

_SUBSTRING = "SUBSTRING({0}, CASE WHEN {1} = 0 THEN 1 ELSE {1} END%s)"
"""Spark's position 0 is 1, and its negative lengths are 0."""
_AT_LEAST_0 = "CASE WHEN {%d} < 0 THEN 0 ELSE {%d} END"
_OVERLAID = "LEFT({0}, GREATEST({2} - 1, 0)) || {1} || SUBSTRING({0}, CASE WHEN {2} + %s = 0 THEN 1 ELSE {2} + %s END)"
_PARTS = "STRING_SPLIT({0}, {1})"
_TO_BASE64 = r"RTRIM(REGEXP_REPLACE(TO_BASE64(%s), '(.{{76}})', '\1' || CHR(13) || CHR(10), 'g'), CHR(13) || CHR(10))"
"""In lines of 76 letters, as Java's MIME encoder writes it."""
_BASE64 = "REGEXP_REPLACE({0}, '[^A-Za-z0-9+/]', '', 'g')"
"""Other signs are passed over, and the end may be missing, as in Java's MIME decoder."""


def _spark_overlaid(length: str) -> str:
    rest = f"CAST({{2}} AS BIGINT) + {length}"
    begin = f"CAST(least(greatest(CASE WHEN {rest} = 0 THEN 1L ELSE {rest} END, -2147483647L), 2147483647L) AS INT)"
    kept = "CAST(greatest(CAST({2} AS BIGINT) - 1L, 0L) AS INT)"
    return f"concat(left({{0}}, {kept}), {{1}}, substring({{0}}, {begin}))"


_SPARK_OVERLAID = f"{_spark_overlaid('char_length({1})')} ; {_spark_overlaid('{3}')}"


def _joined_by_spark(arguments: Sequence[Expression]) -> str:
    return "concat_ws({args})" if all(pa.types.is_string(a.type) for a in arguments) else ""


def _spark_split_part(arguments: Sequence[Expression]) -> str:
    """Part 0 is an error to Spark."""
    part = arguments[2]
    return "split_part({args})" if isinstance(part, Literal) and part.text not in (None, "0") else ""


def _groups(arguments: Sequence[Expression]) -> str:
    """What the groups of a constant pattern match, or all of it if there are none; NULL if it does not match."""
    groups = re.compile(constant(arguments[1])).groups
    found = ", ".join(f"REGEXP_EXTRACT({{0}}, {{1}}, {i})" for i in (range(1, groups + 1) if groups else [0]))
    return f"CASE WHEN REGEXP_MATCHES({{0}}, {{1}}) THEN LIST_VALUE({found}) END"


STRINGS: dict[str, Function] = {
    "ascii": Function(1, 1, "CAST(ASCII({0}) AS INTEGER)", spark="ascii({args})"),
    "base64": Function(1, 1, {"": _TO_BASE64 % "{0}", "text": _TO_BASE64 % "ENCODE({0})"}),
    "bit_length": Function(
        1,
        1,
        {"": "CAST(8 * OCTET_LENGTH({0}) AS INTEGER)", "text": "CAST(BIT_LENGTH({0}) AS INTEGER)"},
        spark="bit_length({args})",
    ),
    "btrim": Function(1, 2, "TRIM({0}, ' ') ; TRIM({args})", spark="trim(BOTH ' ' FROM {0}) ; trim(BOTH {1} FROM {0})"),
    "chr": Function(
        1,
        1,
        "CASE WHEN {0} < 0 THEN '' ELSE CHR(CAST({0} % 256 AS INTEGER)) END",
        takes=("bigint",),
        also=("char",),
        spark="chr({args})",
    ),
    "concat": Function(1, MANY, "({concat})", joined=0, spark={"text": "concat({args})", "": ""}),
    "concat_ws": Function(2, MANY, "CONCAT_WS({args})", joined=1, spark=_joined_by_spark),
    "contains": Function(2, 2, "CONTAINS({args})", spark="contains({args})"),
    "elt": Function(
        2,
        MANY,
        "CASE WHEN {0} > 0 THEN LIST_EXTRACT(LIST_VALUE({rest}), {0}) END",
        takes=("int",),
        joined=1,
        of_null=True,
        spark="CASE WHEN {0} > 0 THEN get(array({rest}), {0} - 1) END",
    ),
    "endswith": Function(2, 2, "ENDS_WITH({args})", also=("ends_with",), spark="endswith({args})"),
    "find_in_set": Function(
        2,
        2,
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN CAST(NULL AS INTEGER) WHEN CONTAINS({0}, ',') THEN 0 "
        "ELSE COALESCE(LIST_POSITION(STRING_SPLIT({1}, ','), {0}), 0) END",
    ),
    "hex": Function(1, 1, "HEX({0})", takes=("bigint or bytes",), spark="hex({args})"),
    "initcap": Function(
        1,
        1,
        "ARRAY_TO_STRING(LIST_TRANSFORM(STRING_SPLIT(LOWER({0}), ' '), "
        "lambda word: UPPER(LEFT(word, 1)) || SUBSTRING(word, 2)), ' ')",
    ),
    "instr": Function(2, 2, "CAST(INSTR({args}) AS INTEGER)", also=("strpos",), spark="instr({args})"),
    "left": Function(2, 2, f"LEFT({{0}}, {_AT_LEAST_0 % (1, 1)})", takes=("string", "int"), spark="left({args})"),
    "length": Function(
        1,
        1,
        {"": "CAST(LENGTH({0}) AS INTEGER)", "blob": "CAST(OCTET_LENGTH({0}) AS INTEGER)"},
        also=("char_length", "character_length", "len"),
        spark="length({args})",
    ),
    "locate": Function(
        2,
        3,
        "CAST(INSTR({1}, {0}) AS INTEGER) ; CAST(CASE WHEN {2} IS NULL THEN 0 WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
        "WHEN {2} < 1 THEN 0 WHEN {0} = '' THEN 1 WHEN INSTR(SUBSTRING({1}, {2}), {0}) = 0 THEN 0 "
        "ELSE INSTR(SUBSTRING({1}, {2}), {0}) + {2} - 1 END AS INTEGER)",
        takes=("string", "string", "int"),
        of_null=True,
        spark="locate({args})",
    ),
    "lower": Function(1, 1, "LOWER({0})", also=("lcase",)),
    "lpad": Function(
        2,
        3,
        "LPAD({0}, {1}, ' ') ; CASE WHEN {2} = '' THEN "
        f"LEFT({{0}}, {_AT_LEAST_0 % (1, 1)}) ELSE LPAD({{0}}, {{1}}, {{2}}) END",
        takes=("string", "int", "string"),
        spark="lpad({0}, {1}, ' ') ; lpad({args})",
    ),
    "ltrim": Function(1, 1, "LTRIM({0}, ' ')", spark="ltrim({0})"),
    "md5": Function(1, 1, "MD5({0})", spark="md5({args})"),
    "octet_length": Function(
        1,
        1,
        {"": "CAST(OCTET_LENGTH({0}) AS INTEGER)", "text": "CAST(STRLEN({0}) AS INTEGER)"},
        spark="octet_length({args})",
    ),
    "overlay": Function(
        3,
        4,
        f"({_OVERLAID % ('LENGTH({1})', 'LENGTH({1})')}) ; ({_OVERLAID % ('{3}', '{3}')})",
        takes=("string", "string", "int", "int"),
        spark=_SPARK_OVERLAID,
    ),
    "regexp_count": Function(2, 2, "CAST(LEN(REGEXP_EXTRACT_ALL({args})) AS INTEGER)"),
    "regexp_extract": Function(
        2, 3, "REGEXP_EXTRACT({0}, {1}, 1) ; REGEXP_EXTRACT({args})", takes=("string", "string", "int")
    ),
    "regexp_extract_all": Function(
        2, 3, "REGEXP_EXTRACT_ALL({0}, {1}, 1) ; REGEXP_EXTRACT_ALL({args})", takes=("string", "string", "int")
    ),
    # Spark writes groups as $1, DuckDB as \1.
    "regexp_replace": Function(
        3,
        3,
        r"REGEXP_REPLACE({0}, {1}, REGEXP_REPLACE({2}, '\$([0-9])', '\\\1', 'g'), 'g')",
    ),
    "regexp_substr": Function(2, 2, "CASE WHEN REGEXP_MATCHES({args}) THEN REGEXP_EXTRACT({args}) END"),
    "repeat": Function(2, 2, "REPEAT({args})", takes=("string", "int"), spark="repeat({args})"),
    "replace": Function(
        2, 3, "REPLACE({0}, {1}, '') ; REPLACE({args})", spark="replace({0}, {1}, '') ; replace({args})"
    ),
    "regexp_match": Function(2, 2, _groups),  # PostgreSQL's
    "reverse": Function(
        1, 1, {"": "ARRAY_TO_STRING(LIST_REVERSE(STRING_SPLIT({0}, '')), '')", "list": "LIST_REVERSE({0})"}
    ),
    "right": Function(2, 2, f"RIGHT({{0}}, {_AT_LEAST_0 % (1, 1)})", takes=("string", "int"), spark="right({args})"),
    "rlike": Function(2, 2, "REGEXP_MATCHES({args})", also=("regexp", "regexp_like")),
    "rpad": Function(
        2,
        3,
        "RPAD({0}, {1}, ' ') ; CASE WHEN {2} = '' THEN "
        f"LEFT({{0}}, {_AT_LEAST_0 % (1, 1)}) ELSE RPAD({{0}}, {{1}}, {{2}}) END",
        takes=("string", "int", "string"),
        spark="rpad({0}, {1}, ' ') ; rpad({args})",
    ),
    "rtrim": Function(1, 1, "RTRIM({0}, ' ')", spark="rtrim({0})"),
    "sha1": Function(1, 1, "SHA1({0})", also=("sha",), spark="sha1({args})"),
    "sha2": Function(2, 2, "SHA256({0})", spark="sha2({args})"),
    "space": Function(1, 1, "REPEAT(' ', {0})", takes=("int",), spark="space({args})"),
    "split": Function(2, 2, "STRING_SPLIT_REGEX({args})"),
    "split_index": Function(  # Flink's: counts from 0
        3,
        3,
        "CASE WHEN {2} >= 0 THEN LIST_EXTRACT(STRING_SPLIT({0}, {1}), CAST({2} AS BIGINT) + 1) END",
        takes=("string", "string", "int"),
    ),
    "split_part": Function(
        3,
        3,
        "CASE WHEN {1} = '' THEN CASE WHEN {2} IN (1, -1) THEN {0} ELSE '' END ELSE SPLIT_PART({args}) END",
        takes=("string", "string", "int"),
        spark=_spark_split_part,
    ),
    "startswith": Function(2, 2, "STARTS_WITH({args})", also=("starts_with",), spark="startswith({args})"),
    "substr": Function(
        2,
        3,
        f"{_SUBSTRING % ''} ; {_SUBSTRING % f', {_AT_LEAST_0 % (2, 2)}'}",
        takes=("string", "int", "int"),
        spark="substring({args})",
    ),
    "substring_index": Function(
        3,
        3,
        "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
        f"WHEN {{1}} = '' OR {{2}} = 0 THEN '' WHEN {{2}} > 0 THEN "
        f"ARRAY_TO_STRING(LIST_SLICE({_PARTS}, 1, {{2}}), {{1}}) "
        f"ELSE ARRAY_TO_STRING(LIST_SLICE({_PARTS}, GREATEST(LEN({_PARTS}) + {{2}} + 1, 1), LEN({_PARTS})), {{1}}) END",
        takes=("string", "string", "int"),
    ),
    "translate": Function(3, 3, "TRANSLATE({args})", spark="translate({args})"),
    "unbase64": Function(
        1, 1, f"FROM_BASE64(RPAD({_BASE64}, CAST((LENGTH({_BASE64}) + 3) // 4 * 4 AS INTEGER), '='))", fails=True
    ),
    "unhex": Function(
        1,
        1,
        "CASE WHEN REGEXP_FULL_MATCH({0}, '[0-9A-Fa-f]*') "
        "THEN UNHEX(CASE WHEN LENGTH({0}) % 2 = 1 THEN '0' || {0} ELSE {0} END) END",
        fails=True,
    ),
    "upper": Function(1, 1, "UPPER({0})", also=("ucase",)),
}
