"""DuckDB's functions that Spark computes with exactly the same results, and Spark's text for them.

The texts of the language's functions (``language/functions``) are made of these, with guards around what the
two engines treat differently: a function stands here for the arguments that can reach it there. What is missing is
missing on purpose: libraries of mathematics differ in the last bit (SIN, LN, POWER), of Unicode in letters (UPPER, LOWER,
REVERSE, LEVENSHTEIN), of regular expressions in nearly everything; DOUBLE as text differs, and so do dates far away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from attrs import frozen

from headwater.backends.spark.conversions import Typed, inferred, widened
from headwater.backends.spark.datetime_text import formatted
from headwater.backends.spark.spark_values import NotNativeError, literal, quoted, spark_type

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_REALS = (pa.float32(), pa.float64())
_MOMENT = pa.timestamp("us")
_SPACES = "".join(map(chr, [0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000]))
"""What DuckDB trims: the Unicode category Zs; Spark's own TRIM takes U+0020 only."""


def _exactly(*types: pa.DataType) -> Callable[[Typed], str]:
    def convert(value: Typed) -> str:
        if value.type not in types:
            raise NotNativeError(f"an argument of type {value.type}")
        return value.text

    return convert


def _to(type_: pa.DataType) -> Callable[[Typed], str]:
    return lambda value: widened(value, type_)


def _number(value: Typed) -> str:
    if value.type not in (*_INTEGERS, *_REALS) and not pa.types.is_decimal(value.type):
        raise NotNativeError(f"an argument of type {value.type}")
    return value.text


def _count(value: Typed) -> str:
    """An INT; what is beyond is beyond the length of any string too."""
    if value.type not in _INTEGERS:
        raise NotNativeError(f"an argument of type {value.type}")
    if value.type == pa.int64():
        return f"CAST(least(greatest({value.text}, -2147483647L), 2147483647L) AS INT)"
    return widened(value, pa.int32())


_KINDS: dict[str, Callable[[Typed], str]] = {
    "number": _number,
    "bigint": _to(pa.int64()),
    "double": _to(pa.float64()),
    "real": _exactly(*_REALS),
    "count": _count,
    "string": _exactly(pa.string()),
    "binary": _exactly(pa.binary()),
    "date": _exactly(pa.date32()),
    "time": _exactly(pa.date32(), _MOMENT),
    "moment": _to(_MOMENT),
}


@frozen
class Native:
    """Spark's text for arguments of such kinds, and the type of its result where DuckDB's is another one."""

    kinds: str
    text: str
    returns: pa.DataType | None = None

    def build(self, arguments: Sequence[Typed], type_: pa.DataType) -> str:
        kinds = self.kinds.split()
        if kinds and kinds[-1] == "*":
            kinds = [*kinds[:-1], *(kinds[-2] for _ in arguments[len(kinds) - 1 :])]
        if len(kinds) != len(arguments):
            raise NotNativeError("another number of arguments")
        texts = [_KINDS[kind](argument) for kind, argument in zip(kinds, arguments, strict=True)]
        text = self.text.format(*texts, args=", ".join(texts))
        return text if self.returns in (None, type_) else f"CAST({text} AS {spark_type(type_)})"


def _part(text: str, kind: str = "time") -> tuple[Native, ...]:
    return (Native(kind, text, pa.int32()),)


_TRIMMED = literal(_SPACES, pa.string())
_SIGN = "CASE WHEN {0} > 0 AND {0} <> double('NaN') THEN 1 WHEN {0} < 0 THEN -1 WHEN {0} IS NOT NULL THEN 0 END"

FUNCTIONS: dict[str, tuple[Native, ...]] = {
    # numbers
    "ABS": (Native("number", "abs({0})"),),
    "BIN": (Native("bigint", "bin({0})"),),
    "BIT_COUNT": (Native("bigint", "bit_count({0})", pa.int32()),),
    "DEGREES": (Native("double", "({0} * 57.29577951308232D)"),),
    "ISNAN": (Native("double", "({0} = double('NaN'))"),),
    "PI": (Native("", "3.141592653589793D"),),
    "RADIANS": (Native("double", "({0} * 0.017453292519943295D)"),),
    "SIGN": (Native("double", _SIGN, pa.int32()),),
    "SQRT": (Native("double", "sqrt({0})"),),
    # strings
    "ASCII": (Native("string", "ascii({0})"),),
    "BIT_LENGTH": (Native("string", "bit_length({0})", pa.int32()),),
    "CHR": (Native("count", "chr({0})"),),
    "CONCAT_WS": (Native("string string *", "concat_ws({args})"),),
    "CONTAINS": (Native("string string", "contains({args})"),),
    "ENCODE": (Native("string", "CAST({0} AS BINARY)"),),
    "ENDS_WITH": (Native("string string", "endswith({args})"),),
    "HEX": (Native("bigint", "hex({0})"), Native("string", "hex({0})"), Native("binary", "hex({0})")),
    "INSTR": (Native("string string", "instr({args})", pa.int32()),),
    "LEFT": (Native("string count", "left({args})"),),
    "LENGTH": (Native("string", "char_length({0})", pa.int32()),),
    "LPAD": (Native("string count string", "lpad({args})"),),
    "LTRIM": (
        Native("string", f"trim(LEADING {_TRIMMED} FROM {{0}})"),
        Native("string string", "trim(LEADING {1} FROM {0})"),
    ),
    "MD5": (Native("string", "md5({0})"), Native("binary", "md5({0})")),
    "OCTET_LENGTH": (Native("binary", "octet_length({0})", pa.int32()),),
    "REPEAT": (Native("string count", "repeat({args})"),),
    "REPLACE": (Native("string string string", "replace({args})"),),
    "RIGHT": (Native("string count", "right({args})"),),
    "RPAD": (Native("string count string", "rpad({args})"),),
    "RTRIM": (
        Native("string", f"trim(TRAILING {_TRIMMED} FROM {{0}})"),
        Native("string string", "trim(TRAILING {1} FROM {0})"),
    ),
    "SHA1": (Native("string", "sha1({0})"), Native("binary", "sha1({0})")),
    "SHA256": (Native("string", "sha2({0}, 256)"), Native("binary", "sha2({0}, 256)")),
    "STARTS_WITH": (Native("string string", "startswith({args})"),),
    "STRLEN": (Native("string", "octet_length({0})", pa.int32()),),
    "SUBSTRING": (Native("string count", "substring({args})"), Native("string count count", "substring({args})")),
    "TRANSLATE": (Native("string string string", "translate({args})"),),
    "TRIM": (
        Native("string", f"trim(BOTH {_TRIMMED} FROM {{0}})"),
        Native("string string", "trim(BOTH {1} FROM {0})"),
    ),
    # times
    "DAY": _part("day({0})"),
    "DAYOFWEEK": _part("(dayofweek({0}) - 1)"),
    "DAYOFYEAR": _part("dayofyear({0})"),
    "EPOCH": (Native("moment", "(CAST(unix_micros({0}) AS DOUBLE) / 1000000D)"),),
    "EPOCH_US": (Native("moment", "unix_micros({0})"),),
    "HOUR": _part("hour({0})", "moment"),
    "ISODOW": _part("(weekday({0}) + 1)"),
    "ISOYEAR": _part("extract(YEAROFWEEK FROM {0})"),
    "LAST_DAY": (Native("time", "last_day({0})"),),
    "MAKE_TIMESTAMP": (Native("bigint", "timestamp_micros({0})"),),
    "MINUTE": _part("minute({0})", "moment"),
    "MONTH": _part("month({0})"),
    "QUARTER": _part("quarter({0})"),
    "SECOND": _part("second({0})", "moment"),
    "WEEK": _part("weekofyear({0})"),
    "WEEKOFYEAR": _part("weekofyear({0})"),
    "YEAR": _part("year({0})"),
}


def call(name: str, arguments: Sequence[Typed]) -> Typed:
    """A call of a DuckDB function."""
    if name in _SPECIAL:
        return _SPECIAL[name](name, arguments)
    type_ = inferred(f"{name}({{args}})", *arguments)
    for form in FUNCTIONS.get(name, ()):
        try:
            return Typed(form.build(arguments, type_), type_)
        except NotNativeError:
            continue
    raise NotNativeError(name)


# -- functions with rules of their own --------------------------------------------------------------------------------


def _same_type(name: str, arguments: Sequence[Typed]) -> Typed:
    """COALESCE, GREATEST, LEAST: of the type that all go together in."""
    type_ = inferred(f"{name}({{args}})", *arguments)
    texts = [widened(a, type_) for a in arguments]
    return Typed(f"{name.lower()}({', '.join(texts)})" if len(texts) > 1 else texts[0], type_)


def _extreme(name: str, arguments: Sequence[Typed]) -> Typed:
    made = _same_type(name, arguments)
    if pa.types.is_nested(made.type) or pa.types.is_boolean(made.type):
        raise NotNativeError(name)
    return made


def _exclusive_or(_name: str, arguments: Sequence[Typed]) -> Typed:
    type_ = inferred("XOR({args})", *arguments)
    if type_ not in _INTEGERS:
        raise NotNativeError("XOR")
    left, right = (widened(a, type_) for a in arguments)
    return Typed(f"({left} ^ {right})", type_)


def _round(_name: str, arguments: Sequence[Typed]) -> Typed:
    """Of a DECIMAL, to as many digits as a constant says, halves away from 0; an integer is round already."""
    value, digits = arguments[0], "0"
    if len(arguments) == 2:
        digits = arguments[1].literal or ""
    type_ = inferred("ROUND({args})", *arguments)
    if not digits.isdecimal():
        raise NotNativeError("ROUND")
    if value.type in _INTEGERS and type_ == value.type:
        return Typed(value.text, type_)
    if not pa.types.is_decimal(value.type) or not pa.types.is_decimal(type_):
        raise NotNativeError("ROUND")
    return Typed(f"CAST(round({value.text}, {digits}) AS {spark_type(type_)})", type_)


def _field(_name: str, arguments: Sequence[Typed]) -> Typed:
    struct, name = arguments
    type_ = inferred("STRUCT_EXTRACT({args})", struct, name)
    names = [f.name for f in struct.type]
    written = (name.literal or "")[1:-1].replace("''", "'")
    if written not in names or len({n.casefold() for n in names}) < len(names):
        raise NotNativeError("STRUCT_EXTRACT")
    return Typed(f"{struct.text}.{quoted(written)}", type_)


_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")


def _truncate(_name: str, arguments: Sequence[Typed]) -> Typed:
    unit, value = arguments
    type_ = inferred("DATE_TRUNC({args})", unit, value)
    word = (unit.literal or "").strip("'")
    if word not in _UNITS:
        raise NotNativeError("DATE_TRUNC")
    text = f"date_trunc('{word.upper()}', {widened(value, _MOMENT)})"
    return Typed(text if type_ == _MOMENT else f"CAST({text} AS {spark_type(type_)})", type_)


def _days_between(_name: str, arguments: Sequence[Typed]) -> Typed:
    unit, start, end = arguments
    type_ = inferred("DATE_DIFF({args})", *arguments)
    if unit.literal != "'day'" or (start.type, end.type) != (pa.date32(), pa.date32()):
        raise NotNativeError("DATE_DIFF")
    return Typed(f"(CAST(unix_date({end.text}) AS BIGINT) - unix_date({start.text}))", type_)


def _text_of_time(_name: str, arguments: Sequence[Typed]) -> Typed:
    moment, pattern = arguments
    if pattern.literal is None or pattern.type != pa.string():
        raise NotNativeError("STRFTIME")
    written = pattern.literal[1:-1].replace("''", "'")
    return Typed(formatted(widened(moment, _MOMENT), written), pa.string())


def _split_part(_name: str, arguments: Sequence[Typed]) -> Typed:
    """Part 0 is an error to Spark."""
    text, separator, part = arguments
    if (text.type, separator.type) != (pa.string(), pa.string()) or not part.never_zero:
        raise NotNativeError("SPLIT_PART")
    return Typed(f"split_part({text.text}, {separator.text}, {_count(part)})", pa.string())


def _rounded_to_even(_name: str, arguments: Sequence[Typed]) -> Typed:
    value, digits = arguments
    if digits.literal != "0" or value.type != pa.float64():
        raise NotNativeError("ROUND_EVEN")
    return Typed(f"rint({value.text})", pa.float64())


# -- arrays -----------------------------------------------------------------------------------------------------------


def _length(_name: str, arguments: Sequence[Typed]) -> Typed:
    (array,) = arguments
    if not pa.types.is_list(array.type):
        raise NotNativeError("LEN")
    return Typed(f"CAST(array_size({array.text}) AS BIGINT)", inferred("LEN({0})", array))


def _element(_name: str, arguments: Sequence[Typed]) -> Typed:
    """NULL where there is none; place 0 is an error to Spark."""
    array, place = arguments
    type_ = inferred("LIST_EXTRACT({args})", array, place)
    if not pa.types.is_list(array.type):
        raise NotNativeError("LIST_EXTRACT")
    at = _count(place)
    found = f"try_element_at({array.text}, {at if place.never_zero else f'nullif({at}, 0)'})"
    return Typed(found, type_)


def _array(_name: str, arguments: Sequence[Typed]) -> Typed:
    type_ = inferred("LIST_VALUE({args})", *arguments)
    return Typed(f"array({', '.join(widened(a, type_.value_type) for a in arguments)})", type_)


_SPECIAL: dict[str, Callable[[str, Sequence[Typed]], Typed]] = {
    "COALESCE": _same_type,
    "DATE_DIFF": _days_between,
    "DATE_TRUNC": _truncate,
    "GREATEST": _extreme,
    "LEAST": _extreme,
    "LEN": _length,
    "LIST_EXTRACT": _element,
    "LIST_VALUE": _array,
    "ROUND": _round,
    "ROUND_EVEN": _rounded_to_even,
    "SPLIT_PART": _split_part,
    "STRFTIME": _text_of_time,
    "STRUCT_EXTRACT": _field,
    "XOR": _exclusive_or,
}
