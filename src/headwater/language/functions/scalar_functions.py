"""The scalar functions: Spark's names and meaning, DuckDB's text.

A text is parenthesised or a call, so that it can stand anywhere; ``{0}``, ``{1}``, … are the arguments, ``{args}`` all of
them, ``{rest}`` all but the first, ``{concat}`` all with ``||`` between. Alternatives for more and more arguments are
separated by ``;``. Where the text depends on the first argument's type there is one a kind of type.

What a number line does not have is NULL or NaN, as in Spark without its ANSI mode, and no error: one row must not stop a
stream. Differences between the two engines that the texts bridge are named where they are.
"""

from __future__ import annotations

Texts = str | dict[str, str]
"""One text, or one for each kind of the first argument (text, blob, list, float, real, decimal, bigint; ``""``: others)."""

MANY = 1_000

_WHOLE = (
    "CASE WHEN ISNAN({0}) THEN 0 WHEN {0} >= 9223372036854775807 THEN 9223372036854775807 "
    "WHEN {0} <= -9223372036854775808 THEN (-9223372036854775807 - 1) ELSE CAST(%s({0}) AS BIGINT) END"
)
"""A DOUBLE as a BIGINT: what does not fit stops at the end, as in Java."""

_WHOLES = {"": "CAST({0} AS BIGINT)", "bigint": "({0})"}

_ROUNDED = (
    "CASE WHEN ABS({0}) < 1e16 THEN "
    "CAST(CAST(%(round)s(CAST(CAST({0} AS VARCHAR) AS DECIMAL(38,22)), %(digits)s) AS VARCHAR) AS DOUBLE) "
    "WHEN ABS({0}) < 1e37 AND %(digits)s < 0 THEN "
    "CAST(CAST(%(round)s(CAST(CAST({0} AS VARCHAR) AS DECIMAL(38,0)), %(digits)s) AS VARCHAR) AS DOUBLE) ELSE {0} END"
)
"""Spark rounds the decimal digits that a DOUBLE is shown with, not the binary ones: 1.005 has two 5s. It is read again from
text, for DuckDB makes a DOUBLE of a long DECIMAL that is not the nearest."""


def _rounded(function: str) -> dict[str, str]:
    whole, rounded = (_ROUNDED % {"round": function, "digits": digits} for digits in ("0", "{1}"))
    return {"real": f"{whole} ; {rounded}", "float": f"CAST({whole} AS FLOAT) ; CAST({rounded} AS FLOAT)"}


_SIGN = "CASE WHEN {0} = 0 OR ISNAN({0}) THEN {0} ELSE CAST(SIGN({0}) AS DOUBLE) END"
_SHIFTED_LEFT: Texts = {
    "": "CAST(XOR(((CAST({0} AS BIGINT) & 4294967295) << ({1} & 31)) & 4294967295, 2147483648) - 2147483648 AS INTEGER)",
    "bigint": "CAST(XOR((CAST({0} AS HUGEINT) * (CAST(1 AS HUGEINT) << ({1} & 63))) & 18446744073709551615, "
    "CAST(9223372036854775808 AS HUGEINT)) - 9223372036854775808 AS BIGINT)",
}
"""What leaves at the left is lost, and the first of the bits left is the sign; DuckDB's own stops the query."""

_POWER = "CASE WHEN ABS({0}) = 1 AND NOT ISFINITE({1}) THEN CAST('NaN' AS DOUBLE) ELSE POWER({args}) END"
"""To Java 1 to a power that is no number is none either; to C, and DuckDB, it is 1."""

CONDITIONS: dict[str, tuple[int, int, Texts]] = {
    "coalesce": (1, MANY, "COALESCE({args})"),
    "equal_null": (2, 2, "({0} IS NOT DISTINCT FROM {1})"),
    "greatest": (2, MANY, "GREATEST({args})"),
    "if": (3, 3, "CASE WHEN {0} THEN {1} ELSE {2} END"),
    "ifnull": (2, 2, "COALESCE({args})"),
    "iif": (3, 3, "CASE WHEN {0} THEN {1} ELSE {2} END"),
    "isnotnull": (1, 1, "({0} IS NOT NULL)"),
    "isnull": (1, 1, "({0} IS NULL)"),
    "least": (2, MANY, "LEAST({args})"),
    "nullif": (2, 2, "NULLIF({args})"),
    "nullifzero": (1, 1, "NULLIF({0}, 0)"),
    "nvl": (2, 2, "COALESCE({args})"),
    "nvl2": (3, 3, "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END"),
}

NUMBERS: dict[str, tuple[int, int, Texts]] = {
    "abs": (1, 1, "ABS({0})"),
    "acos": (1, 1, "CASE WHEN ABS({0}) > 1 THEN CAST('NaN' AS DOUBLE) ELSE ACOS({0}) END"),
    "acosh": (1, 1, "ACOSH({0})"),
    "asin": (1, 1, "CASE WHEN ABS({0}) > 1 THEN CAST('NaN' AS DOUBLE) ELSE ASIN({0}) END"),
    "asinh": (1, 1, "ASINH({0})"),
    "atan": (1, 1, "ATAN({0})"),
    "atan2": (2, 2, "ATAN2({0} + 0e0, {1} + 0e0)"),
    "atanh": (
        1,
        1,
        "CASE WHEN ABS({0}) > 1 THEN CAST('NaN' AS DOUBLE) WHEN {0} = 1 THEN CAST('Infinity' AS DOUBLE) "
        "WHEN {0} = -1 THEN CAST('-Infinity' AS DOUBLE) ELSE ATANH({0}) END",
    ),
    "bin": (1, 1, "BIN({0})"),
    "bit_count": (1, 1, "CAST(BIT_COUNT(CAST({0} AS BIGINT)) AS INTEGER)"),
    "bit_get": (2, 2, "CAST((CAST({0} AS BIGINT) >> {1}) & 1 AS TINYINT)"),
    "bround": (1, 2, {"": "ROUND_EVEN({0}, 0) ; ROUND_EVEN({args})", **_rounded("ROUND_EVEN")}),
    "cbrt": (1, 1, "CBRT({0})"),
    "ceil": (1, 1, {**_WHOLES, "real": _WHOLE % "CEIL", "decimal": "CEIL({0})"}),
    "ceiling": (1, 1, {**_WHOLES, "real": _WHOLE % "CEIL", "decimal": "CEIL({0})"}),
    "cos": (1, 1, "COS({0})"),
    "cosh": (1, 1, "COSH({0})"),
    "cot": (1, 1, "COT({0})"),
    "csc": (1, 1, "(1 / SIN({0}))"),
    "degrees": (1, 1, "DEGREES({0})"),
    "e": (0, 0, "EXP(1)"),
    "exp": (1, 1, "EXP({0})"),
    "factorial": (1, 1, "CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(FACTORIAL({0}) AS BIGINT) END"),
    "floor": (1, 1, {**_WHOLES, "real": _WHOLE % "FLOOR", "decimal": "FLOOR({0})"}),
    "getbit": (2, 2, "CAST((CAST({0} AS BIGINT) >> {1}) & 1 AS TINYINT)"),
    "isnan": (1, 1, "COALESCE(ISNAN({0}), FALSE)"),
    "ln": (1, 1, "CASE WHEN {0} > 0 THEN LN({0}) END"),
    "log": (
        1,
        2,
        "CASE WHEN {0} > 0 THEN LN({0}) END ; CASE WHEN LEAST({0}, {1}) > 0 THEN LN({1}) / LN({0}) END",
    ),
    "log10": (1, 1, "CASE WHEN {0} > 0 THEN LOG10({0}) END"),
    "log2": (1, 1, "CASE WHEN {0} > 0 THEN LOG2({0}) END"),
    "nanvl": (2, 2, "CASE WHEN ISNAN({0}) THEN {1} ELSE {0} END"),
    "negative": (1, 1, "(-{0})"),
    "pi": (0, 0, "PI()"),
    "positive": (1, 1, "({0})"),
    "pow": (2, 2, _POWER),
    "power": (2, 2, _POWER),
    "radians": (1, 1, "RADIANS({0})"),
    "rint": (1, 1, "ROUND_EVEN({0}, 0)"),
    "round": (1, 2, {"": "ROUND({args})", **_rounded("ROUND")}),
    "sec": (1, 1, "(1 / COS({0}))"),
    "shiftleft": (2, 2, _SHIFTED_LEFT),
    "shiftright": (2, 2, {"": "({0} >> ({1} & 31))", "bigint": "({0} >> ({1} & 63))"}),
    "sign": (1, 1, _SIGN),
    "signum": (1, 1, _SIGN),
    "sin": (1, 1, "SIN({0})"),
    "sinh": (1, 1, "SINH({0})"),
    "sqrt": (1, 1, "CASE WHEN {0} < 0 THEN CAST('NaN' AS DOUBLE) ELSE SQRT({0}) END"),
    "tan": (1, 1, "TAN({0})"),
    "tanh": (1, 1, "TANH({0})"),
}

_SUBSTRING = "SUBSTRING({0}, CASE WHEN {1} = 0 THEN 1 ELSE {1} END%s)"
"""Spark's position 0 is 1, and its negative lengths are 0."""
_AT_LEAST_0 = "CASE WHEN {%d} < 0 THEN 0 ELSE {%d} END"
_OVERLAID = "LEFT({0}, GREATEST({2} - 1, 0)) || {1} || SUBSTRING({0}, CASE WHEN {2} + %s = 0 THEN 1 ELSE {2} + %s END)"
_PARTS = "STRING_SPLIT({0}, {1})"
_TO_BASE64 = r"RTRIM(REGEXP_REPLACE(TO_BASE64(%s), '(.{{76}})', '\1' || CHR(13) || CHR(10), 'g'), CHR(13) || CHR(10))"
"""In lines of 76 letters, as Java's MIME encoder writes it."""
_BASE64 = "REGEXP_REPLACE({0}, '[^A-Za-z0-9+/]', '', 'g')"
"""Other signs are passed over, and the end may be missing, as in Java's MIME decoder."""

STRINGS: dict[str, tuple[int, int, Texts]] = {
    "ascii": (1, 1, "CAST(ASCII({0}) AS INTEGER)"),
    "base64": (1, 1, {"": _TO_BASE64 % "{0}", "text": _TO_BASE64 % "ENCODE({0})"}),
    "bit_length": (1, 1, {"": "CAST(8 * OCTET_LENGTH({0}) AS INTEGER)", "text": "CAST(BIT_LENGTH({0}) AS INTEGER)"}),
    "btrim": (1, 2, "TRIM({0}, ' ') ; TRIM({args})"),
    "char": (1, 1, "CASE WHEN {0} < 0 THEN '' ELSE CHR(CAST({0} % 256 AS INTEGER)) END"),
    "char_length": (1, 1, {"": "CAST(LENGTH({0}) AS INTEGER)", "blob": "CAST(OCTET_LENGTH({0}) AS INTEGER)"}),
    "character_length": (1, 1, {"": "CAST(LENGTH({0}) AS INTEGER)", "blob": "CAST(OCTET_LENGTH({0}) AS INTEGER)"}),
    "chr": (1, 1, "CASE WHEN {0} < 0 THEN '' ELSE CHR(CAST({0} % 256 AS INTEGER)) END"),
    "concat": (1, MANY, "({concat})"),
    "concat_ws": (2, MANY, "CONCAT_WS({args})"),
    "contains": (2, 2, "CONTAINS({args})"),
    "elt": (2, MANY, "CASE WHEN {0} > 0 THEN LIST_EXTRACT(LIST_VALUE({rest}), {0}) END"),
    "endswith": (2, 2, "ENDS_WITH({args})"),
    "find_in_set": (
        2,
        2,
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN CAST(NULL AS INTEGER) WHEN CONTAINS({0}, ',') THEN 0 "
        "ELSE COALESCE(LIST_POSITION(STRING_SPLIT({1}, ','), {0}), 0) END",
    ),
    "hex": (1, 1, "HEX({0})"),
    "initcap": (
        1,
        1,
        "ARRAY_TO_STRING(LIST_TRANSFORM(STRING_SPLIT(LOWER({0}), ' '), "
        "lambda word: UPPER(LEFT(word, 1)) || SUBSTRING(word, 2)), ' ')",
    ),
    "instr": (2, 2, "CAST(INSTR({args}) AS INTEGER)"),
    "lcase": (1, 1, "LOWER({0})"),
    "left": (2, 2, f"LEFT({{0}}, {_AT_LEAST_0 % (1, 1)})"),
    "len": (1, 1, {"": "CAST(LENGTH({0}) AS INTEGER)", "blob": "CAST(OCTET_LENGTH({0}) AS INTEGER)"}),
    "length": (1, 1, {"": "CAST(LENGTH({0}) AS INTEGER)", "blob": "CAST(OCTET_LENGTH({0}) AS INTEGER)"}),
    "locate": (
        2,
        3,
        "CAST(INSTR({1}, {0}) AS INTEGER) ; CAST(CASE WHEN {2} IS NULL THEN 0 WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
        "WHEN {2} < 1 THEN 0 WHEN {0} = '' THEN 1 WHEN INSTR(SUBSTRING({1}, {2}), {0}) = 0 THEN 0 "
        "ELSE INSTR(SUBSTRING({1}, {2}), {0}) + {2} - 1 END AS INTEGER)",
    ),
    "lower": (1, 1, "LOWER({0})"),
    "lpad": (
        2,
        3,
        "LPAD({0}, {1}, ' ') ; CASE WHEN {2} = '' THEN "
        f"LEFT({{0}}, {_AT_LEAST_0 % (1, 1)}) ELSE LPAD({{0}}, {{1}}, {{2}}) END",
    ),
    "ltrim": (1, 1, "LTRIM({0}, ' ')"),
    "md5": (1, 1, "MD5({0})"),
    "octet_length": (1, 1, {"": "CAST(OCTET_LENGTH({0}) AS INTEGER)", "text": "CAST(STRLEN({0}) AS INTEGER)"}),
    "overlay": (
        3,
        4,
        f"({_OVERLAID % ('LENGTH({1})', 'LENGTH({1})')}) ; ({_OVERLAID % ('{3}', '{3}')})",
    ),
    "regexp": (2, 2, "REGEXP_MATCHES({args})"),
    "regexp_count": (2, 2, "CAST(LEN(REGEXP_EXTRACT_ALL({args})) AS INTEGER)"),
    "regexp_extract": (2, 3, "REGEXP_EXTRACT({0}, {1}, 1) ; REGEXP_EXTRACT({args})"),
    "regexp_extract_all": (2, 3, "REGEXP_EXTRACT_ALL({0}, {1}, 1) ; REGEXP_EXTRACT_ALL({args})"),
    "regexp_like": (2, 2, "REGEXP_MATCHES({args})"),
    # Spark writes groups as $1, DuckDB as \1.
    "regexp_replace": (
        3,
        3,
        r"REGEXP_REPLACE({0}, {1}, REGEXP_REPLACE({2}, '\$([0-9])', '\\\1', 'g'), 'g')",
    ),
    "regexp_substr": (2, 2, "CASE WHEN REGEXP_MATCHES({args}) THEN REGEXP_EXTRACT({args}) END"),
    "repeat": (2, 2, "REPEAT({args})"),
    "replace": (2, 3, "REPLACE({0}, {1}, '') ; REPLACE({args})"),
    "reverse": (1, 1, {"": "ARRAY_TO_STRING(LIST_REVERSE(STRING_SPLIT({0}, '')), '')", "list": "LIST_REVERSE({0})"}),
    "right": (2, 2, f"RIGHT({{0}}, {_AT_LEAST_0 % (1, 1)})"),
    "rlike": (2, 2, "REGEXP_MATCHES({args})"),
    "rpad": (
        2,
        3,
        "RPAD({0}, {1}, ' ') ; CASE WHEN {2} = '' THEN "
        f"LEFT({{0}}, {_AT_LEAST_0 % (1, 1)}) ELSE RPAD({{0}}, {{1}}, {{2}}) END",
    ),
    "rtrim": (1, 1, "RTRIM({0}, ' ')"),
    "sha": (1, 1, "SHA1({0})"),
    "sha1": (1, 1, "SHA1({0})"),
    "space": (1, 1, "REPEAT(' ', {0})"),
    "split": (2, 2, "STRING_SPLIT_REGEX({args})"),
    "split_part": (
        3,
        3,
        "CASE WHEN {1} = '' THEN CASE WHEN {2} IN (1, -1) THEN {0} ELSE '' END ELSE SPLIT_PART({args}) END",
    ),
    "startswith": (2, 2, "STARTS_WITH({args})"),
    "substr": (2, 3, f"{_SUBSTRING % ''} ; {_SUBSTRING % f', {_AT_LEAST_0 % (2, 2)}'}"),
    "substring_index": (
        3,
        3,
        "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
        f"WHEN {{1}} = '' OR {{2}} = 0 THEN '' WHEN {{2}} > 0 THEN "
        f"ARRAY_TO_STRING(LIST_SLICE({_PARTS}, 1, {{2}}), {{1}}) "
        f"ELSE ARRAY_TO_STRING(LIST_SLICE({_PARTS}, GREATEST(LEN({_PARTS}) + {{2}} + 1, 1), LEN({_PARTS})), {{1}}) END",
    ),
    "translate": (3, 3, "TRANSLATE({args})"),
    "ucase": (1, 1, "UPPER({0})"),
    "unbase64": (1, 1, f"FROM_BASE64(RPAD({_BASE64}, CAST((LENGTH({_BASE64}) + 3) // 4 * 4 AS INTEGER), '='))"),
    "unhex": (
        1,
        1,
        "CASE WHEN REGEXP_FULL_MATCH({0}, '[0-9A-Fa-f]*') "
        "THEN UNHEX(CASE WHEN LENGTH({0}) % 2 = 1 THEN '0' || {0} ELSE {0} END) END",
    ),
    "upper": (1, 1, "UPPER({0})"),
}

TIMES: dict[str, tuple[int, int, Texts]] = {
    "add_months": (2, 2, "CAST({0} + TO_MONTHS({1}) AS DATE)"),
    "date_from_unix_date": (1, 1, "(DATE '1970-01-01' + {0})"),
    "date_sub": (2, 2, "({0} - {1})"),
    "day": (1, 1, "CAST(DAY({0}) AS INTEGER)"),
    "dayname": (1, 1, "STRFTIME({0}, '%a')"),
    "dayofmonth": (1, 1, "CAST(DAY({0}) AS INTEGER)"),
    "dayofweek": (1, 1, "CAST(DAYOFWEEK({0}) + 1 AS INTEGER)"),
    "dayofyear": (1, 1, "CAST(DAYOFYEAR({0}) AS INTEGER)"),
    "hour": (1, 1, "CAST(HOUR({0}) AS INTEGER)"),
    "last_day": (1, 1, "LAST_DAY({0})"),
    "make_date": (3, 3, "TRY(MAKE_DATE({args}))"),
    "make_timestamp": (6, 6, "TRY(MAKE_TIMESTAMP({args}))"),
    "minute": (1, 1, "CAST(MINUTE({0}) AS INTEGER)"),
    "month": (1, 1, "CAST(MONTH({0}) AS INTEGER)"),
    "monthname": (1, 1, "STRFTIME({0}, '%b')"),
    "quarter": (1, 1, "CAST(QUARTER({0}) AS INTEGER)"),
    "second": (1, 1, "CAST(SECOND({0}) AS INTEGER)"),
    "timestamp_micros": (1, 1, "MAKE_TIMESTAMP({0})"),
    "timestamp_millis": (1, 1, "MAKE_TIMESTAMP({0} * CAST(1000 AS BIGINT))"),
    "timestamp_seconds": (
        1,
        1,
        {
            "": "MAKE_TIMESTAMP(CAST({0} * CAST(1000000 AS BIGINT) AS BIGINT))",
            "real": "CASE WHEN ISFINITE({0}) THEN MAKE_TIMESTAMP(CAST(TRUNC(CAST({0} AS DOUBLE) * 1000000) AS BIGINT)) END",
        },
    ),
    "unix_date": (1, 1, "CAST(DATE_DIFF('day', DATE '1970-01-01', CAST({0} AS DATE)) AS INTEGER)"),
    "unix_micros": (1, 1, "EPOCH_US({0})"),
    "unix_millis": (1, 1, "(EPOCH_US(DATE_TRUNC('millisecond', CAST({0} AS TIMESTAMP))) // 1000)"),
    "unix_seconds": (1, 1, "(EPOCH_US(DATE_TRUNC('second', CAST({0} AS TIMESTAMP))) // 1000000)"),
    "weekday": (1, 1, "CAST(ISODOW({0}) - 1 AS INTEGER)"),
    "weekofyear": (1, 1, "CAST(WEEKOFYEAR({0}) AS INTEGER)"),
    "year": (1, 1, "CAST(YEAR({0}) AS INTEGER)"),
}

_PLACE = "CAST({1} AS BIGINT)"
"""Places can be at the ends of INT."""

ARRAYS: dict[str, tuple[int, int, Texts]] = {
    "array": (1, MANY, "LIST_VALUE({args})"),
    "array_append": (2, 2, "CASE WHEN {0} IS NOT NULL THEN LIST_APPEND({args}) END"),
    "array_compact": (1, 1, "LIST_FILTER({0}, lambda item: item IS NOT NULL)"),
    # NULL where the item is not found but may hide behind a NULL.
    "array_contains": (
        2,
        2,
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN CAST(NULL AS BOOLEAN) WHEN LIST_CONTAINS({args}) THEN TRUE "
        "WHEN LEN({0}) > LEN(LIST_FILTER({0}, lambda item: item IS NOT NULL)) THEN CAST(NULL AS BOOLEAN) ELSE FALSE END",
    ),
    "array_distinct": (1, 1, "LIST_FILTER({0}, lambda item, place: LIST_POSITION({0}, item) = place)"),
    "array_join": (
        2,
        3,
        "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN COALESCE(ARRAY_TO_STRING({args}), '') END ; "
        "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL AND {2} IS NOT NULL THEN COALESCE(ARRAY_TO_STRING("
        "LIST_TRANSFORM({0}, lambda item: COALESCE(CAST(item AS VARCHAR), {2})), {1}), '') END",
    ),
    "array_max": (1, 1, "LIST_MAX({0})"),
    "array_min": (1, 1, "LIST_MIN({0})"),
    "array_position": (
        2,
        2,
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN CAST(NULL AS BIGINT) "
        "ELSE COALESCE(CAST(LIST_POSITION({args}) AS BIGINT), 0) END",
    ),
    "array_prepend": (2, 2, "CASE WHEN {0} IS NOT NULL THEN LIST_PREPEND({1}, {0}) END"),
    "array_remove": (
        2,
        2,
        "CASE WHEN {1} IS NOT NULL THEN LIST_FILTER({0}, lambda item: item IS DISTINCT FROM {1}) END",
    ),
    "array_repeat": (2, 2, "REPEAT(LIST_VALUE({0}), CASE WHEN {1} < 0 THEN 0 ELSE {1} END)"),
    "array_size": (1, 1, "CAST(LEN({0}) AS INTEGER)"),
    "array_sort": (1, 1, "LIST_SORT({0}, 'ASC', 'NULLS LAST')"),
    "cardinality": (1, 1, "CAST(LEN({0}) AS INTEGER)"),
    "element_at": (2, 2, "LIST_EXTRACT({args})"),
    "flatten": (
        1,
        1,
        "CASE WHEN LEN({0}) = LEN(LIST_FILTER({0}, lambda item: item IS NOT NULL)) THEN FLATTEN({0}) END",
    ),
    "get": (2, 2, "CASE WHEN {1} >= 0 THEN LIST_EXTRACT({0}, CAST({1} AS BIGINT) + 1) END"),
    "size": (1, 1, "CAST(LEN({0}) AS INTEGER)"),
    "slice": (
        3,
        3,
        "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
        f"WHEN {{1}} > 0 THEN LIST_SLICE({{0}}, {{1}}, {_PLACE} + GREATEST({{2}}, 0) - 1) "
        f"WHEN -{_PLACE} > LEN({{0}}) THEN LIST_SLICE({{0}}, 1, 0) "
        f"ELSE LIST_SLICE({{0}}, LEN({{0}}) + {_PLACE} + 1, LEN({{0}}) + {_PLACE} + GREATEST({{2}}, 0)) END",
    ),
    "sort_array": (
        1,
        2,
        "LIST_SORT({0}, 'ASC', 'NULLS FIRST') ; CASE WHEN {1} THEN LIST_SORT({0}, 'ASC', 'NULLS FIRST') "
        "ELSE LIST_SORT({0}, 'DESC', 'NULLS LAST') END",
    ),
}

ALL: dict[str, tuple[int, int, Texts]] = {**CONDITIONS, **NUMBERS, **STRINGS, **TIMES, **ARRAYS}
