"""Calls of every function and operator of the language, and rows with the values that engines disagree about."""

from __future__ import annotations

import math
import random
import re
import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

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
    "ar2": ("ARRAY<BIGINT>", pa.list_(pa.int64())),
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
        *[
            2.0**63,
            -(2.0**63),
            2.0**53 + 2,
            2147483647.5,
            -2147483648.5,
            127.9,
            -128.9,
            1e15,
            0.1,
            9.3e18,
            4.5e15 + 0.5,
        ],
    ],
    "n": [Decimal(v) for v in ("0", "0.01", "-0.01", "0.05", "0.15", "-0.25", "99999999.99", "-99999999.99", "2.50")],
    "n2": [Decimal(v) for v in ("0", "0.0001", "-0.0001", "0.5", "99999999.9999", "-99999999.9999", "1.0050")],
    "wide": [
        Decimal(v) for v in ("0", "0.000001", "9" * 24 + ".999999", "-" + "9" * 24 + ".999999", "12345678901234567.5")
    ],
    "s": [
        *[
            "",
            " ",
            "a",
            "A",
            "abc",
            "ABC",
            "aé",
            "éa",
            "ß",
            "İ",
            "日本語",
            "a日b",
            "😀",
            "a😀b",
            "e\u0301",
            "\u00a0a\u3000",
            " a b ",
        ],
        *[
            "a%b",
            "a_b",
            "a\\b",
            "it's",
            "10%",
            "a,b,c",
            ",",
            "a,b,",
            "\n",
            "a\nb",
            "\x00",
            "x\x7f",
            "!",
            "a!b",
            "NaN",
            "-1",
            "1e3",
        ],
        *["xxabcxx", "abcabc", "0", "\ufeffz", "\tz ", "aaa"],
    ],
    "x": [b"", b"\x00", b"\xff", b"abc", b"\x80\x00"],
    "dt": [
        *[
            date(1970, 1, 1),
            date(1969, 12, 31),
            date(2000, 2, 29),
            date(2024, 2, 29),
            date(2023, 12, 31),
            date(2021, 1, 3),
        ],
        *[
            date(1, 1, 1),
            date(9999, 12, 31),
            date(1900, 3, 1),
            date(1582, 10, 10),
            date(2020, 12, 31),
            date(1899, 12, 31),
        ],
    ],
    "t": [
        *[datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 12, 30, 15, 500000)],
        *[datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1900, 1, 1, 0, 0, 0, 1)],
        *[
            datetime(2023, 12, 31, 23, 59, 59),
            datetime(2021, 1, 3, 1, 2, 3, 4),
            datetime(1582, 10, 10, 1),
            datetime(2000, 3, 31),
        ],
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
        case "ar2":
            return [rng.choice([0, 1, 2, 3, None]) for _ in range(rng.randrange(5))]
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


def _section(name: str) -> dict[str, list[str]]:
    """What stands under a heading of ``expression_samples.txt``, by name."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    body = text.partition(f"[{name}]\n")[2].partition("\n\n")[0].replace("\n    ", " ")
    found: dict[str, list[str]] = {}
    for line in body.splitlines():
        names, _, calls = line.partition(": ")
        for one in names.split(" | "):
            found[one] = [call.strip().replace("{}", one) for call in calls.split(" ; ")]
    return found


OPERATORS = _section("operators")
FUNCTIONS = _section("functions")


# -- expressions inside of expressions --------------------------------------------------------------------------------

_SHAPES = {
    "i": [
        *[
            "{i} + {i}",
            "{i} - {i}",
            "{i} * 3",
            "-{a}",
            "{i} % 7",
            "(({i}) DIV 3)",
            "({a} & {a})",
            "abs({i})",
            "length({s})",
        ],
        *["CASE WHEN {b} THEN {i} ELSE {i} END", "coalesce({i}, {i})", "nullif({i}, {i})", "CAST({d} AS BIGINT)"],
        *["greatest({i}, {i})", "year({t})", "instr({s}, {s})", "if({b}, {i}, 0)", "CAST(sign({i}) AS BIGINT) + {i}"],
    ],
    "b": [
        *[
            "{i} > {i}",
            "{i} = {i}",
            "{b} AND {b}",
            "{b} OR {b}",
            "NOT {b}",
            "{s} LIKE '%a_'",
            "{i} IS NULL",
            "{t} < {t}",
        ],
        *["{i} BETWEEN {i} AND {i}", "{i} IN (1, 2, {i})", "{d} <= {i}", "{s} = {s}", "{b} IS NOT TRUE", "{i} <=> {i}"],
        *["{i} NOT IN (3, 4)", "({b}) = ({b})", "{d} IS DISTINCT FROM {d}", "contains({s}, {s})"],
    ],
    "d": [
        "{i} / {i}",
        "{d} + {i}",
        "{d} * {d}",
        "{d} / {i}",
        "-{a}",
        "CASE WHEN {b} THEN {d} END",
        "CAST({i} AS DOUBLE)",
    ],
    "s": ["{s} || {s}", "substr({s}, 2, {k})", "concat({s}, {s})", "if({b}, {s}, 'z')", "CAST({i} AS STRING)"],
    "t": ["{t} + INTERVAL '1' DAY", "date_trunc('HOUR', {t})", "coalesce({t}, {t})", "timestampadd(MINUTE, {k}, {t})"],
}
_LEAVES = {
    "i": ["l", "k", "5", "i"],
    "b": ["b", "b2"],
    "d": ["d", "d2", "0.5e0"],
    "s": ["s", "s2", "'a'"],
    "t": ["t", "t2"],
}


def nested(count: int, seed: int = 5) -> list[str]:
    """Random expressions with few parentheses: what binds stronger must be read alike by everyone."""
    rng = random.Random(seed)

    def made(kind: str, depth: int) -> str:
        if kind == "k":
            return "k"
        if kind == "a" or depth == 0 or rng.random() < 0.15:
            return rng.choice(_LEAVES["i" if kind == "a" else kind])
        return re.sub(r"\{(\w)\}", lambda place: made(place[1], depth - 1), rng.choice(_SHAPES[kind]))

    return list(dict.fromkeys(made(rng.choice("iibbds"), 3) for _ in range(count)))
