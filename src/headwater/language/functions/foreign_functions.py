"""Functions that other systems have and this one does not: what to write instead."""

from __future__ import annotations

_TIME_IN_DATA = "Name the column that has the time: ORDERED BY ts. A stream without one is stamped when its rows come."
_WINDOW = "It can stand in GROUP BY with the time column first; in FROM write {0}(TABLE s, DESCRIPTOR(ts), …)."
_UNNEST = "Make rows of the array: SELECT … FROM s, UNNEST(s.a) AS t(x) WHERE …; or write a function in Python."
_MAP = (
    "There are no maps: use ARRAY<STRUCT<key: STRING, value: INT>>, a STRUCT if the keys are known, or JSON text: "
    "json_value(m, '$.key')."
)
_JSON = (
    "Keep JSON as a STRING and take parts: json_value(js, '$.a'); or give its type: "
    "from_json(js, 'a INT, b ARRAY<STRING>')."
)
_ZONES = "TIMESTAMPs are in UTC; add the difference: t + INTERVAL '2' HOURS."

HINTS: dict[str, str] = {
    "proctime": _TIME_IN_DATA,
    "current_watermark": "heartbeat(s) tells how far stream s is stable.",
    "current_row_timestamp": _TIME_IN_DATA,
    "mz_now": "A window says how long a row counts: FROM s WINDOW(RANGE 5 MINUTES).",
    "rowtime": "The time of a row is the ORDERED BY column of its stream; select that.",
    "tumble": _WINDOW.format("TUMBLE"),
    "hop": _WINDOW.format("HOP"),
    "session": _WINDOW.format("SESSION"),
    "cumulate": "Write it in FROM: CUMULATE(TABLE s, DESCRIPTOR(ts), step, size), and group by window_start, window_end.",
    "generate_series": "A source can count: CREATE STREAM s (value BIGINT, ts TIMESTAMP) SOURCE rate(10) ORDERED BY ts.",
    "latest_by_offset": "The last row of each key is a window: FROM s WINDOW(PARTITION BY k ROWS 1).",
    "earliest_by_offset": "The first row of each key: SELECT … QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) = 1.",
    "topk": "By key: QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) <= 3; of all: ORDER BY x DESC LIMIT 3.",
    # Flink, RisingWave, PostgreSQL
    "array_length": "Write size(a).",
    "array_cat": "Write concat(a, b).",
    "array_concat": "Write concat(a, b).",
    "array_reverse": "Write reverse(a).",
    "array_slice": "Write slice(a, start, length).",
    "array_to_string": "Write array_join(a, separator).",
    "string_to_array": "Write split(s, pattern).",
    "regexp_split_to_array": "Write split(s, pattern).",
    "regexp_matches": "Write regexp_match(s, pattern), or regexp_extract_all(s, pattern).",
    "from_base64": "Write unbase64(s).",
    "to_base64": "Write base64(x).",
    "sha256": "Write sha2(s, 256).",
    "age": "Write timestampdiff(SECOND, a, b), or a - INTERVAL ….",
    "to_epoch": "Write unix_millis(t).",
    "extract_epoch": "Write unix_seconds(t).",
    "row": "Write struct(a, b); rows can be compared: (a, b) = (1, 2).",
    "char_index": "Write instr(s, part).",
    "charindex": "Write instr(s, part).",
    "is_digit": "Write s RLIKE '^[0-9]+$'.",
    "is_alpha": "Write s RLIKE '^[A-Za-z]+$'.",
    "is_decimal": "Write TRY_CAST(s AS DOUBLE) IS NOT NULL.",
    "convert_tz": _ZONES,
    "from_utc_timestamp": _ZONES,
    "to_utc_timestamp": _ZONES,
    "to_number": "Write CAST(s AS DECIMAL(10,2)).",
    "jsonb_array_elements": "Write UNNEST(from_json(js, 'ARRAY<STRING>')) in FROM.",
    "json_array_elements": "Write UNNEST(from_json(js, 'ARRAY<STRING>')) in FROM.",
    "jsonb_array_length": "Write json_array_length(js).",
    "jsonb_extract_path_text": "Write json_value(js, '$.a').",
    "json_extract_path_text": "Write json_value(js, '$.a').",
    "json_string": "Write to_json(x), of a STRUCT or an ARRAY.",
    "json_object": "Write to_json(named_struct('a', a)).",
    "json_array": "Write to_json(array(a, b)).",
    "jsonb_build_object": "Write to_json(named_struct('a', a)).",
    "json_build_object": "Write to_json(named_struct('a', a)).",
    # DuckDB, Snowflake, BigQuery, MySQL
    "json_extract": "Write get_json_object(js, '$.a').",
    "json_extract_string": "Write json_value(js, '$.a').",
    "json_extract_scalar": "Write json_value(js, '$.a').",
    "json_tuple": "Write json_value(js, '$.a') for each field, or from_json(js, 'a STRING, b STRING').",
    "list_value": "Write array(x, …).",
    "list_contains": "Write array_contains(a, x).",
    "list_concat": "Write concat(a, b).",
    "strftime": "Write date_format(t, 'yyyy-MM-dd'), or to_char(t, 'YYYY-MM-DD').",
    "strptime": "Write to_timestamp(s, 'yyyy-MM-dd HH:mm:ss').",
    "str_to_date": "Write to_date(s, 'yyyy-MM-dd').",
    "parse_timestamp": "Write to_timestamp(s, 'yyyy-MM-dd HH:mm:ss').",
    "format_timestamp": "Write date_format(t, 'yyyy-MM-dd HH:mm:ss').",
    "epoch_ms": "Write unix_millis(t), or timestamp_millis(n).",
    "epoch": "Write unix_seconds(t).",
    "time_bucket": "Write date_bin(INTERVAL '15' MINUTES, t), or TUMBLE(…) in FROM.",
    "safe_cast": "Write TRY_CAST(x AS type).",
    "safe_divide": "Write a / b: division by zero is NULL.",
    "iff": "Write if(condition, a, b).",
    "to_varchar": "Write CAST(x AS STRING).",
    "string": "Write CAST(x AS STRING).",
    "int": "Write CAST(x AS INT).",
    "bigint": "Write CAST(x AS BIGINT).",
    "double": "Write CAST(x AS DOUBLE).",
    "struct_pack": "Write named_struct('a', a).",
    **dict.fromkeys(("parse_json", "try_parse_json", "variant_get", "to_variant", "json"), _JSON),
    # arrays, by lambdas
    **dict.fromkeys(
        ("transform", "filter", "exists", "forall", "aggregate", "reduce", "zip_with", "any_match"), _UNNEST
    ),
    **dict.fromkeys(("list_transform", "list_filter", "array_filter", "array_transform", "all_match"), _UNNEST),
    # maps
    **dict.fromkeys(("map", "map_keys", "map_values", "map_entries", "map_from_arrays", "map_from_entries"), _MAP),
    **dict.fromkeys(("map_concat", "map_contains_key", "map_filter", "str_to_map", "map_union"), _MAP),
}
"""By name in small letters."""
