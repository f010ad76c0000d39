"""Calls whose values are compared with Spark's own: by hand for edges, and generated from the catalog for all types."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pyarrow as pa
from expression_samples import COLUMNS as PLAIN_COLUMNS
from expression_samples import FUNCTIONS, OPERATORS
from expression_samples import rows as plain_rows

from headwater.expressions.functions.record import MANY
from headwater.language.functions.registry import SCALARS
from headwater.language.functions.special_functions import SPECIAL_FUNCTIONS

COLUMNS: dict[str, tuple[str, pa.DataType]] = {
    **PLAIN_COLUMNS,
    "txt": ("STRING", pa.string()),  # numbers, times and truths as text
    "js": ("STRING", pa.string()),  # JSON, and what is nearly so
    "ad": ("ARRAY<DOUBLE>", pa.list_(pa.float64())),
    "ars": ("ARRAY<STRING>", pa.list_(pa.string())),
}
_TEXTS = [
    *[
        "0",
        "-7.5",
        "7.5",
        "1e3",
        "1E3",
        " 12 ",
        "\t9\n",
        "+5",
        "-0",
        "--1",
        "1_000",
        "0x1F",
        "1.",
        ".5",
        "-.5",
        ".",
        "1e",
    ],
    *[
        "127",
        "128",
        "-129",
        "32768",
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
    ],
    *["NaN", "nan", "inf", "-Infinity", "1e400", "1e-400", "12345678901234567890.125", "0.005", "99999999.995"],
    *["true", "T", "yes", "y", "1", "FALSE", "f", "no", "N", " true ", "on", "", " ", "x", "é"],
    *["2024", "2024-02", "2024-2-9", "2024-02-29", "2023-02-29", " 1969-12-31 ", "2024/02/29", "epoch", "infinity"],
    *["2024-02-29 12", "2024-02-29 12:30", "2024-02-29T12:30:15", "2024-02-29 12:30:15.5", "2024-02-29 24:00:00"],
    *["2024-02-29 12:30:15Z", "2024-02-29 12:30:15+01:00", "2024-02-29 12:30:15 UTC", "2024-02-29x", "0001-01-01"],
    *["9999-12-31 23:59:59.999999", "2024-02-29 12:30:15.123456789", "1582-10-10", "12:30", "now", "a" * 3000, "1,5"],
]
_JSON = [
    *[
        '{"a":1,"b":"x"}',
        '{"a":"1","b":2}',
        '{"a":null}',
        "{}",
        "[]",
        "null",
        "5",
        '"x"',
        "true",
        "",
        " ",
        "bad",
        '{"a":1',
    ],
    *['{"a":[1,2,null],"b":{"a":3}}', '{"a":[1,"x"],"b":[{"a":1},{"a":null},null]}', '[1,2,{"a":[3]}]', '["x",null]'],
    *['{"a":{"b":[1,2.5,"x",null,true]}}', '{"a":"é\\u00e9\\n\\"q","a b":2}', '{"b":[{"a":"x"},5]}', '{"A":1,"a":2}'],
    *[
        '{"a":3000000000,"b":1.5}',
        '{"a":-7,"b":-0.25}',
        '{"c":"2024-02-29","b":"2024-02-29T12:30:15.5Z"}',
        '{"a":12.345}',
    ],
    *[
        '{"a":true,"b":"true"}',
        '{"a":"NaN","b":"12.5"}',
        '{"a":"YWJj"}',
        ' { "a" : [ ] , "b" : { } } ',
        "[[1,2],[],[null]]",
    ],
]
_REALS = [None, math.nan, -0.0, 0.0, 1.5, -math.inf, math.inf, 1e300]


def rows(count: int, seed: int = 1) -> pa.Table:
    rng = random.Random(seed)
    data = plain_rows(count, seed)
    texts = [None if rng.random() < 0.05 else rng.choice(_TEXTS) for _ in range(count)]
    texts[: len(_TEXTS)] = _TEXTS[:count]
    data = data.append_column("txt", pa.array(texts, pa.string()))
    json = [None if rng.random() < 0.05 else rng.choice(_JSON) for _ in range(count)]
    json[: len(_JSON)] = _JSON[:count]
    data = data.append_column("js", pa.array(json, pa.string()))
    numbers = [None if i % 9 == 0 else [rng.choice(_REALS) for _ in range(rng.randrange(4))] for i in range(count)]
    data = data.append_column("ad", pa.array(numbers, pa.list_(pa.float64())))
    words = ["", "a", "é", None, "a,b"]
    listed = [None if i % 9 == 1 else [rng.choice(words) for _ in range(rng.randrange(4))] for i in range(count)]
    data = data.append_column("ars", pa.array(listed, pa.list_(pa.string())))
    holes = [
        None if i % 9 == 2 else [rng.choice([None, 0, 1, 2]) for _ in range(rng.randrange(4))] for i in range(count)
    ]
    return data.set_column(data.schema.get_field_index("ar"), "ar", pa.array(holes, pa.list_(pa.int32())))


def by_hand() -> dict[str, list[str]]:
    """Every function and operator, by name: the samples of the native expressions, and what stands in the file."""
    found = {name: list(calls) for name, calls in (*OPERATORS.items(), *FUNCTIONS.items())}
    for line in Path(__file__).with_suffix(".txt").read_text("utf-8").replace("\n    ", " ").splitlines():
        if line and not line.startswith("#"):
            names, _, calls = line.partition(": ")
            for name in names.split(" | "):
                found.setdefault(name, []).extend(call.strip().replace("{}", name) for call in calls.split(" ; "))
    return found


CASTABLE = ("b", "i8", "i16", "i", "l", "f", "d", "n", "wide", "s", "txt", "x", "dt", "t")
TYPES = tuple(dict.fromkeys(COLUMNS[c][0] for c in CASTABLE))


def casts() -> list[str]:
    """CAST and TRY_CAST between all pairs of types."""
    return [f"{word}({c} AS {type_})" for c in CASTABLE for type_ in TYPES for word in ("CAST", "TRY_CAST")]


_ARGUMENTS = ("b", "i8", "k", "l", "f", "d", "n", "wide", "s", "txt", "x", "dt", "t", "ar", "ad", "ars", "st", "NULL")


_COUNTS = {"array_repeat": 1, "lpad": 1, "repeat": 1, "rpad": 1, "space": 0}
"""Which argument says how long the result is: small ones only, else there is no memory for it."""
_SMALL = ("i8", "k", "NULL")

_FORMS = "equal_null if ifnull iif isnotnull isnull log negative nullifzero nvl nvl2 positive"
_OF_VALUES = {**SCALARS, **{name: SPECIAL_FUNCTIONS[name] for name in _FORMS.split()}}
"""The functions that take any values, no constants."""


def generated(arguments: int, count: int, rng: random.Random) -> list[str]:
    """Catalogued scalar functions with so many arguments of random types; all that there are if the count is large."""
    names = [
        name
        for name, function in _OF_VALUES.items()
        if function.least <= arguments <= function.most and not (function.most == MANY and arguments == 1)
    ]
    sizes = [len(names), *(len(_ARGUMENTS) for _ in range(arguments))]
    calls = []
    for drawn in rng.sample(range(math.prod(sizes)), min(count, math.prod(sizes))):
        places, rest = [], drawn
        for size in sizes:
            rest, place = divmod(rest, size)
            places.append(place)
        name, given = names[places[0]], [_ARGUMENTS[place] for place in places[1:]]
        if name not in _COUNTS or given[_COUNTS[name]] in _SMALL:
            calls.append(f"{name}({', '.join(given)})")
    return calls
