"""Calls of every function and operator of the language, and rows with the values that engines disagree about."""

from __future__ import annotations

import math
import random
import struct
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

COLUMNS: dict[str, tuple[str, pa.DataType]] = {
    "b": ("BOOLEAN", pa.bool_()),
    "b2": ("BOOLEAN", pa.bool_()),
    "i8": ("TINYINT", pa.int8()),
    "i16": ("SMALLINT", pa.int16()),
    "i": ("INT", pa.int32()),
    "k": ("INT", pa.int32()),  # small numbers: lengths, places, days
    "l": ("BIGINT", pa.int64()),
    "l2": ("BIGINT", pa.int64()),
    "f": ("FLOAT", pa.float32()),
    "d": ("DOUBLE", pa.float64()),
    "d2": ("DOUBLE", pa.float64()),
    "n": ("DECIMAL(10,2)", pa.decimal128(10, 2)),
    "n2": ("DECIMAL(12,4)", pa.decimal128(12, 4)),
    "wide": ("DECIMAL(30,6)", pa.decimal128(30, 6)),
    "s": ("STRING", pa.string()),
    "s2": ("STRING", pa.string()),
    "x": ("BINARY", pa.binary()),
    "dt": ("DATE", pa.date32()),
    "dt2": ("DATE", pa.date32()),
    "t": ("TIMESTAMP", pa.timestamp("us")),
    "t2": ("TIMESTAMP", pa.timestamp("us")),
    "st": ("STRUCT<a: INT, b: STRING>", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    "ar": ("ARRAY<INT>", pa.list_(pa.int32())),
}

_EDGES: dict[str, list[object]] = {
    "i8": [0, 1, -1, 127, -128],
    "i16": [0, 1, -1, 32767, -32768],
    "i": [0, 1, -1, 2**31 - 1, -(2**31)],
    "k": [0, 1, -1, 2, -2, 3, 63, 64, 65],
    "l": [0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 10**15, -(10**15) - 1],
    "f": [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 3.4028234663852886e38, 1e-45, 16777217.0],
    "d": [
        *[0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1.005, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308],
        *[2.0**63, -(2.0**63), 2.0**53 + 2, 2147483647.5, -2147483648.5, 127.9, -128.9, 1e15, 0.1, 9.3e18, 4.5e15 + 0.5],
    ],
    "n": [Decimal(v) for v in ("0", "0.01", "-0.01", "0.05", "0.15", "-0.25", "99999999.99", "-99999999.99", "2.50")],
    "n2": [Decimal(v) for v in ("0", "0.0001", "-0.0001", "0.5", "99999999.9999", "-99999999.9999", "1.0050")],
    "wide": [Decimal(v) for v in ("0", "0.000001", "9" * 24 + ".999999", "-" + "9" * 24 + ".999999", "12345678901234567.5")],
    "s": [
        *["", " ", "a", "A", "abc", "ABC", "aé", "éa", "ß", "İ", "日本語", "a日b", "😀", "a😀b", "e\u0301", "\u00a0a\u3000", " a b "],
        *["a%b", "a_b", "a\\b", "it's", "10%", "a,b,c", ",", "a,b,", "\n", "a\nb", "\x00", "x\x7f", "!", "a!b", "NaN", "-1", "1e3"],
        *["xxabcxx", "abcabc", "0", "\ufeffz", "\tz ", "aaa"],
    ],
    "x": [b"", b"\x00", b"\xff", b"abc", b"\x80\x00"],
    "dt": [
        *[date(1970, 1, 1), date(1969, 12, 31), date(2000, 2, 29), date(2024, 2, 29), date(2023, 12, 31), date(2021, 1, 3)],
        *[date(1, 1, 1), date(9999, 12, 31), date(1900, 3, 1), date(1582, 10, 10), date(2020, 12, 31), date(1899, 12, 31)],
    ],
    "t": [
        *[datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 12, 30, 15, 500000)],
        *[datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1900, 1, 1, 0, 0, 0, 1)],
        *[datetime(2023, 12, 31, 23, 59, 59), datetime(2021, 1, 3, 1, 2, 3, 4), datetime(1582, 10, 10, 1), datetime(2000, 3, 31)],
        *[datetime(2300, 1, 1, 0, 0, 0, 999999), datetime(1969, 7, 20, 20, 17, 40, 123456)],
    ],
}
_SAME = {"b2": "b", "l2": "l", "d2": "d", "s2": "s", "dt2": "dt", "t2": "t"}
_ALPHABET = "aAbB zé日😀%_\\,'0"


def _random_value(kind: str, rng: random.Random) -> object:
    match kind:
        case "b":
            return rng.random() < 0.5
        case "i8" | "i16" | "i" | "l":
            bits = {"i8": 8, "i16": 16, "i": 32, "l": 64}[kind]
            return rng.randrange(-20, 20) if rng.random() < 0.6 else rng.getrandbits(bits) - 2 ** (bits - 1)
        case "k":
            return rng.randrange(-8, 12)
        case "f":
            return struct.unpack("f", struct.pack("f", rng.uniform(-100, 100)))[0]
        case "d":
            wide = math.ldexp(rng.uniform(-1, 1), rng.randrange(-70, 70))
            return rng.choice([wide, round(rng.uniform(-99, 99), 2), float(rng.randrange(-9, 9))])
        case "n" | "n2" | "wide":
            digits, scale = {"n": (10, 2), "n2": (12, 4), "wide": (30, 6)}[kind]
            return Decimal(rng.randrange(-(10**digits) + 1, 10**digits) // 10 ** rng.randrange(digits)).scaleb(-scale)
        case "s":
            return "".join(rng.choice(_ALPHABET) for _ in range(rng.randrange(7)))
        case "x":
            return rng.randbytes(rng.randrange(5))
        case "dt":
            return date(1900, 1, 1) + timedelta(days=rng.randrange(73_000))
        case "t":
            return datetime(1900, 1, 1) + timedelta(microseconds=rng.randrange(6_300_000_000_000_000))
        case "st":
            return {"a": rng.randrange(5), "b": rng.choice(["", "z", None])}
    return [rng.randrange(3) for _ in range(rng.randrange(3))]


def rows(count: int, seed: int = 1) -> pa.Table:
    """Random values of every type, edges among them, one in twelve NULL."""
    rng = random.Random(seed)
    columns = {}
    for name, (_, type_) in COLUMNS.items():
        kind = _SAME.get(name, name)
        edges = _EDGES.get(kind, [])
        values = [rng.choice(edges) if edges and rng.random() < 0.5 else _random_value(kind, rng) for _ in range(count)]
        columns[name] = pa.array([None if rng.random() < 1 / 12 else v for v in values], type_)
    return pa.table(columns)


_COMPARABLE = (("l", "l2"), ("i", "l"), ("i8", "i16"), ("l", "d"), ("d", "d2"), ("f", "f"), ("f", "d"), ("n", "n2"), ("n", "i"))
_COMPARABLE_TOO = (("n", "d"), ("wide", "l"), ("s", "s2"), ("dt", "dt2"), ("t", "t2"), ("dt", "t"), ("b", "b2"), ("x", "x"))

OPERATORS: dict[str, list[str]] = {
    **{
        sign: [f"{a} {sign} {b}" for a, b in (*_COMPARABLE, *_COMPARABLE_TOO)] + [f"d {sign} 1.5", f"l {sign} -3", f"i8 {sign} 2"]
        for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM")
    },
    "comparison with a constant": ["t > '2020-01-01'", "dt <= DATE '2000-02-29'", "s >= 'a'", "n < 2.5", "l > 1.5", "i8 = 1000"],
    "+": ["i8 + i8", "i8 + i16", "i + 1", "i + l", "l + l2", "d + d2", "f + f", "f + d", "l + d", "i + f", "n + n2", "n + 1", "n + i", "wide + n"],
    "-": ["i - i8", "l - l2", "d - d2", "f - f", "n - n2", "1 - n", "-i", "-l", "-d", "-n", "-f"],
    "*": ["i8 * i8", "i * 3", "l * l2", "d * d2", "f * f", "n * n2", "n * 2", "n * i", "0.908 * i", "l * 2.5", "d * 0.1"],
    "/": ["l / i", "d / d2", "d / 2", "n / n2", "f / f", "l / 7", "i / 0", "n / i"],
    "%": ["l % i", "l % 5", "i8 % i8", "d % d2", "d % 3", "l % l2", "f % f"],
    "DIV": ["l DIV i", "l DIV 7", "i DIV k", "i8 DIV i8", "l DIV l2"],
    "bits": ["l & i", "i8 | i8", "l ^ l2", "~i", "~l", "(i & 7) | 8"],
    "AND OR NOT": ["b AND b2", "b OR b2", "NOT b", "b AND NOT (b2 OR l > 0)", "b IS TRUE", "b IS NOT FALSE"],
    "IS NULL": ["l IS NULL", "s IS NOT NULL", "st IS NULL", "ar IS NULL"],
    "BETWEEN": ["l BETWEEN i AND 5", "d BETWEEN -1 AND d2", "s BETWEEN 'a' AND 'b'", "t NOT BETWEEN t2 AND '2020-01-01'"],
    "IN": ["l IN (1, 2, l2)", "d IN (0, 1.5, d2)", "s IN ('a', 'abc', NULL)", "k NOT IN (1, 2)", "dt IN ('1970-01-01', dt2)", "n IN (0.05, 2.5, 1)"],
    "LIKE": ["s LIKE 'a%'", "s NOT LIKE '%b'", "s LIKE '_b_'", "s LIKE '_'", "s LIKE '%\\\\%%'", "s LIKE 'a!_b' ESCAPE '!'", "s LIKE '%é%'", "s LIKE 'a!b'", "s LIKE ''"],
    "CASE": ["CASE WHEN l > 0 THEN s WHEN b THEN 'x' END", "CASE k WHEN 1 THEN d WHEN 2 THEN 0 ELSE l END", "CASE s WHEN 'a' THEN 1 ELSE i8 END", "CASE WHEN b THEN n ELSE n2 END", "CASE WHEN b THEN dt ELSE t END"],
    "CAST": [
        *["CAST(d AS BIGINT)", "CAST(d AS INT)", "CAST(d AS SMALLINT)", "CAST(d AS TINYINT)", "TRY_CAST(d AS INT)", "TRY_CAST(d AS BIGINT)"],
        *["CAST(f AS BIGINT)", "CAST(n AS INT)", "CAST(n2 AS TINYINT)", "TRY_CAST(wide AS BIGINT)", "CAST(l AS INT)", "TRY_CAST(l AS TINYINT)"],
        *["CAST(l AS DOUBLE)", "CAST(l AS FLOAT)", "CAST(i AS STRING)", "CAST(l AS STRING)", "CAST(n AS STRING)", "CAST(wide AS STRING)"],
        *["CAST(b AS INT)", "CAST(i AS BOOLEAN)", "CAST(b AS STRING)", "CAST(l AS DECIMAL(10,2))", "TRY_CAST(i AS DECIMAL(5,2))"],
        *["CAST(n2 AS DECIMAL(8,1))", "TRY_CAST(wide AS DECIMAL(12,3))", "CAST(t AS DATE)", "CAST(dt AS TIMESTAMP)", "CAST(n AS DOUBLE)", "CAST(f AS DOUBLE)"],
    ],
    "CAST between text and others": ["CAST(d AS STRING)", "TRY_CAST(s AS INT)", "TRY_CAST(s AS DOUBLE)", "CAST(t AS STRING)", "CAST(d AS DECIMAL(10,2))", "CAST(wide AS DOUBLE)"],
    "times": ["t + INTERVAL '1' DAY", "t - INTERVAL '90' MINUTES", "t + INTERVAL '1' MONTH", "t - INTERVAL '2' YEAR", "dt + INTERVAL '1' DAY", "dt + INTERVAL '1' MONTH", "dt - 1", "dt + k"],
    "||": ["s || s2", "s || 'x' || s2", "s || i"],
    "fields": ["st.a", "st.b"],
    "elements": ["ar[0]"],
    "constants": ["1", "1.5", "1e3", "'it''s'", "TRUE", "NULL", "DATE '2020-02-29'", "TIMESTAMP '2020-02-29 01:02:03.000004'", "CAST(7 AS TINYINT)", "-0.0e0", "9223372036854775807"],
}

_PARTS = ("YEAR", "YEAROFWEEK", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DAYOFWEEK_ISO", "DOY", "HOUR", "MINUTE", "SECOND")
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")

FUNCTIONS: dict[str, list[str]] = {
    **{name: [f"{name}(d)"] for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "cot", "csc")},
    **{name: [f"{name}(d)"] for name in ("degrees", "exp", "ln", "log10", "log2", "radians", "rint", "sec", "sin", "sinh", "tan", "tanh")},
    **{name: [f"{name}(d, d2)"] for name in ("atan2", "log", "pow", "power")},
    **{name: [f"{name}(d)", f"{name}(n)", f"{name}(i)", f"{name}(f)"] for name in ("ceil", "ceiling", "floor")},
    **{name: [f"{name}(d)", f"{name}(i)", f"{name}(n)", f"{name}(f)"] for name in ("sign", "signum", "sqrt", "positive")},
    **{name: [f"{name}({c})" for c in ("i8", "i", "l", "d", "f", "n", "wide")] for name in ("abs", "negative")},
    **{name: [f"{name}(l, i)", f"{name}(d, d2)", f"{name}(i8, i8)"] for name in ("mod", "pmod", "try_divide")},
    **{name: [f"{name}(l, k)", f"{name}(i, k)"] for name in ("bit_get", "getbit", "shiftleft", "shiftright")},
    "bin": ["bin(l)", "bin(i)"],
    "bit_count": ["bit_count(l)", "bit_count(i)"],
    "bround": ["bround(d, 1)", "bround(n, 1)"],
    "e": ["e()"],
    "factorial": ["factorial(k)"],
    "isnan": ["isnan(d)", "isnan(f)", "isnan(l)"],
    "nanvl": ["nanvl(d, d2)", "nanvl(f, f)"],
    "pi": ["pi()"],
    "round": ["round(d, 1)", "round(n)", "round(n2, 2)", "round(i)", "round(wide, 3)"],
    # conditions
    "coalesce": ["coalesce(l, l2)", "coalesce(i8, 1000)", "coalesce(n, n2)", "coalesce(s, '')", "coalesce(d, 0)", "coalesce(dt, t)", "coalesce(i, d)", "coalesce(l)"],
    "equal_null": ["equal_null(d, d2)", "equal_null(s, s2)", "equal_null(i, l)"],
    "greatest": ["greatest(d, d2)", "greatest(l, i)", "greatest(s, s2)", "greatest(t, t2, NULL)", "greatest(n, n2)", "greatest(d, 0)"],
    "least": ["least(d, d2)", "least(l, i)", "least(s, s2)", "least(dt, dt2)", "least(n, n2)", "least(f, f)"],
    **{name: [f"{name}(b, l, i)", f"{name}(d > 0, s, NULL)"] for name in ("if", "iif")},
    **{name: [f"{name}(l, i)", f"{name}(s, 'x')", f"{name}(d, l)"] for name in ("ifnull", "nvl")},
    **{name: [f"{name}(l)", f"{name}(s)"] for name in ("isnotnull", "isnull")},
    "nullif": ["nullif(l, l2)", "nullif(s, '')", "nullif(d, d2)", "nullif(i, 0)", "nullif(n, 0)"],
    **{name: [f"{name}(l)", f"{name}(d)", f"{name}(n)"] for name in ("nullifzero", "zeroifnull")},
    "nvl2": ["nvl2(l, s, s2)", "nvl2(s, i, l)"],
    # strings
    **{
        name: [f"{name}(s)"]
        for name in ("ascii", "initcap", "lcase", "lower", "ltrim", "md5", "reverse", "rtrim", "sha", "sha1", "ucase", "unbase64", "unhex", "upper")
    },
    **{name: [f"{name}(s)", f"{name}(x)"] for name in ("base64", "bit_length", "char_length", "character_length", "hex", "len", "length", "octet_length")},
    **{name: [f"{name}(k)"] for name in ("char", "chr", "space")},
    **{name: [f"{name}(s, s2)"] for name in ("contains", "endswith", "find_in_set", "instr", "levenshtein", "startswith")},
    **{name: [f"{name}(s, k)", f"{name}(s, 2)"] for name in ("left", "repeat", "right")},
    **{name: [f"{name}(s, k)", f"{name}(s, 5, s2)", f"{name}(s, k, 'x日')"] for name in ("lpad", "rpad")},
    **{name: [f"{name}(s, 'a.b')"] for name in ("regexp", "regexp_count", "regexp_extract", "regexp_extract_all", "regexp_like", "regexp_substr", "rlike", "split")},
    "btrim": ["btrim(s)", "btrim(s, 'ax')", "btrim(s, s2)"],
    "concat": ["concat(s, s2)", "concat(s, 'x', s2)"],
    "concat_ws": ["concat_ws(s, s2, 'x', s)", "concat_ws(',', s, s2)"],
    "elt": ["elt(k, s, s2)"],
    "locate": ["locate(s2, s)", "locate(s2, s, k)"],
    "overlay": ["overlay(s, s2, 2)", "overlay(s, s2, 2, 1)"],
    "regexp_replace": ["regexp_replace(s, 'a', 'b')"],
    "replace": ["replace(s, s2)", "replace(s, 'a', s2)", "replace(s, s2, 'zz')"],
    "split_part": ["split_part(s, ',', 2)"],
    "substr": ["substr(s, k)", "substr(s, k, k)", "substr(s, 2, 3)", "substr(s, -2, 1)", "substr(s, k, 2)"],
    "substring_index": ["substring_index(s, ',', 2)"],
    "translate": ["translate(s, 'ab', 'x')", "translate(s, s2, 'xyz')", "translate(s, 'aa', 'xy')"],
    "sha2": ["sha2(s, 256)"],
    # times
    "add_months": ["add_months(dt, k)", "add_months(t, 1)"],
    "date": ["date(t)", "date(s)"],
    "date_from_unix_date": ["date_from_unix_date(k)", "date_from_unix_date(i)"],
    "date_sub": ["date_sub(dt, k)", "date_sub(t, 3)"],
    **{
        name: [f"{name}(dt)", f"{name}(t)"]
        for name in ("day", "dayname", "dayofmonth", "dayofweek", "dayofyear", "hour", "last_day", "minute", "month", "monthname", "quarter", "second")
    },
    **{name: [f"{name}(dt)", f"{name}(t)"] for name in ("unix_date", "weekday", "weekofyear", "year")},
    "make_date": ["make_date(k, 2, 3)"],
    "make_timestamp": ["make_timestamp(2020, k, 3, 4, 5, 6.5)"],
    "timestamp": ["timestamp(dt)", "timestamp(s)"],
    "timestamp_micros": ["timestamp_micros(l)", "timestamp_micros(i)"],
    "timestamp_millis": ["timestamp_millis(l)", "timestamp_millis(i)"],
    "timestamp_seconds": ["timestamp_seconds(l)", "timestamp_seconds(i)", "timestamp_seconds(d)"],
    **{name: [f"{name}(t)"] for name in ("unix_micros", "unix_millis", "unix_seconds")},
    **{name: [f"{name}(dt, k)", f"{name}(t, 1)", f"{name}(HOUR, k, t)", f"{name}(MONTH, k, t)", f"{name}(WEEK, 2, dt)"] for name in ("date_add", "dateadd")},
    **{name: [f"{name}(dt, dt2)", f"{name}(t, t2)", f"{name}(HOUR, t, t2)"] for name in ("date_diff", "datediff")},
    "date_format": ["date_format(t, 'yyyy-MM-dd HH:mm')"],
    **{name: [f"{name}('{part}', t)" for part in _PARTS] + [f"{name}('{part}', dt)" for part in _PARTS] for name in ("date_part", "datepart")},
    "date_trunc": [f"date_trunc('{unit}', {c})" for unit in _UNITS for c in ("t", "dt")],
    "from_unixtime": ["from_unixtime(l)"],
    "timestampadd": [f"timestampadd({unit}, k, t)" for unit in _UNITS],
    "timestampdiff": [f"timestampdiff({unit}, t, t2)" for unit in ("MICROSECOND", "SECOND", "DAY", "WEEK")] + ["timestampdiff(MONTH, t, t2)"],
    "to_date": ["to_date(t)", "to_date(s, 'yyyy-MM-dd')"],
    "to_timestamp": ["to_timestamp(dt)", "to_timestamp(s)"],
    **{name: [f"{name}(t)", f"{name}(s)"] for name in ("to_unix_timestamp", "unix_timestamp")},
    "trunc": [f"trunc({c}, '{unit}')" for unit in ("YEAR", "QUARTER", "MONTH", "WEEK") for c in ("dt", "t")],
    # arrays and structs
    **{name: [f"{name}(ar)"] for name in ("array_compact", "array_distinct", "array_max", "array_min", "array_size", "array_sort", "cardinality", "size", "sort_array")},
    **{name: [f"{name}(ar, k)"] for name in ("array_append", "array_contains", "array_position", "array_prepend", "array_remove", "element_at", "get")},
    "array": ["array(i, k)"],
    "array_join": ["array_join(array(s, s2), ',')"],
    "array_repeat": ["array_repeat(i, k)"],
    "flatten": ["flatten(array(ar, ar))"],
    "slice": ["slice(ar, 1, 2)"],
    "named_struct": ["named_struct('p', i, 'q', s)"],
    "struct": ["struct(i, s)"],
    # special forms
    "cast": ["CAST(i AS BIGINT)"],
    "try_cast": ["TRY_CAST(l AS INT)"],
    "extract": [f"extract({part} FROM t)" for part in _PARTS] + ["extract(SECOND FROM dt)"],
    "position": ["position('a' IN s)"],
    "substring": ["substring(s, 2, 3)", "substring(s FROM k FOR 2)"],
    "trim": ["trim(s)", "trim(BOTH 'a' FROM s)", "trim(LEADING 'a' FROM s)"],
}
