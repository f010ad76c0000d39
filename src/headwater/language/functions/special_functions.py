"""Functions that are built from their arguments as written: units of time, patterns, names of fields, forms of CASE."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.expressions.casts import cast_text
from headwater.expressions.functions.datetime_patterns import from_postgres, translated
from headwater.expressions.functions.record import MANY
from headwater.expressions.functions.table import NAMED
from headwater.expressions.functions.times import DEFAULT_PATTERN, LENGTHS, MONTHS
from headwater.expressions.levenshtein import LEVENSHTEIN
from headwater.expressions.nodes import Call, Case, Literal
from headwater.expressions.types import is_numeric, is_temporal
from headwater.language.arithmetic import meeting, spark_operands
from headwater.language.casts import as_date, as_time, converted, with_times
from headwater.language.functions.json_functions import JSON_FUNCTIONS
from headwater.language.functions.parameters import as_parameters
from headwater.language.functions.plain_calls import Binder, not_taken, plain_call, python_call
from headwater.language.functions.special_function import Builder, SpecialFunction, call_of, constant_text, unit_of
from headwater.language.predicates import is_null, is_there, test
from headwater.language.scope import Bound
from headwater.language.types import shown
from headwater.model.types import INTERVAL

# -- units ----------------------------------------------------------------------------------------------------------

_PARTS: tuple[tuple[str, ...], ...] = (
    ("YEAR", "Y", "YEARS", "YR", "YRS"),
    ("YEAROFWEEK",),
    ("QUARTER", "QTR"),
    ("MONTH", "MON", "MONS", "MONTHS"),
    ("WEEK", "W", "WEEKS"),
    ("DAY", "D", "DAYS"),
    ("DAYOFWEEK", "DOW"),
    ("DAYOFWEEK_ISO", "DOW_ISO"),
    ("DOY", "DAYOFYEAR"),
    ("HOUR", "H", "HOURS", "HR", "HRS"),
    ("MINUTE", "M", "MIN", "MINS", "MINUTES"),
    ("SECOND", "S", "SEC", "SECONDS", "SECS"),
)
_TRUNCATIONS: tuple[tuple[str, ...], ...] = (
    ("YEAR", "YYYY", "YY"),
    ("QUARTER",),
    ("MONTH", "MM", "MON"),
    ("WEEK",),
    ("DAY", "DD"),
    ("HOUR",),
    ("MINUTE",),
    ("SECOND",),
    ("MILLISECOND",),
    ("MICROSECOND",),
)
"""Units with their other names."""
_ZERO = Literal("0", pa.int32())


def _word(binder: Binder, node: exp.Expr, function: str) -> str:
    """A unit written as a word: DATEADD(DAY, …)."""
    if not isinstance(node, exp.Column) or node.args.get("table"):
        hint = "For example: TIMESTAMPADD(DAY, 1, t)."
        raise binder.error(node, "WRONG_ARGUMENTS", f'function "{function}" begins with a unit of time', hint=hint)
    return unit_of(binder, node, function, [(name, f"{name}S") for name in (*LENGTHS, *MONTHS)])


# -- parts of a time --------------------------------------------------------------------------------------------------


def part_of_time(binder: Binder, node: exp.Expr, name: str, unit: exp.Expr, value: exp.Expr) -> Bound:
    """EXTRACT(unit FROM value)."""
    found = unit_of(binder, unit, name, _PARTS)
    return call_of(binder, node, name, "date_part", [found, as_time(binder.bind(value))])


def _date_part(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    constant_text(binder, arguments[0], "the unit")
    return part_of_time(binder, node, name, *arguments)


def _date_trunc(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    constant_text(binder, arguments[0], "the unit")
    unit = unit_of(binder, arguments[0], name, _TRUNCATIONS)
    return call_of(binder, node, name, "date_trunc", [unit, as_time(binder.bind(arguments[1]))])


def _trunc(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    constant_text(binder, arguments[1], "the unit")
    coarse = [names for names in _TRUNCATIONS if names[0] in ("YEAR", "QUARTER", "MONTH", "WEEK")]
    unit = unit_of(binder, arguments[1], name, coarse)
    return call_of(binder, node, name, "trunc", [as_date(binder.bind(arguments[0])), unit])


# -- arithmetic with times --------------------------------------------------------------------------------------------


def _with_unit(function: str) -> Builder:
    """``timestampadd(unit, number, time)`` and ``timestampdiff(unit, start, end)``."""

    def build(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
        unit = _word(binder, arguments[0], name)
        return call_of(binder, node, name, function, [unit, *(binder.bind(a) for a in arguments[1:])])

    return build


_timestamp_add, _timestamp_diff = _with_unit("timestampadd"), _with_unit("timestampdiff")


def _date_add(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """DATE_ADD(date, days); DATE_ADD(unit, number, timestamp)."""
    if len(arguments) == 3:
        return _timestamp_add(binder, node, name, arguments)
    day, days = as_date(binder.bind(arguments[0])), binder.bind(arguments[1])
    return call_of(binder, node, name, "date_add", [day, days])


def _date_diff(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """DATEDIFF(end, start) in days; DATEDIFF(unit, start, end)."""
    if len(arguments) == 3:
        return _timestamp_diff(binder, node, name, arguments)
    return call_of(binder, node, name, "datediff", [as_date(binder.bind(a)) for a in arguments])


# -- patterns ---------------------------------------------------------------------------------------------------------


def _pattern(binder: Binder, node: exp.Expr, *, for_reading: bool = False) -> str:
    """A pattern that both engines know."""
    pattern = constant_text(binder, node, "the pattern")
    found = translated(pattern)
    if found is not None and not (for_reading and found.reading is None):
        return pattern
    hint = "Supported are yyyy, MM, MMM, dd, HH, hh, mm, ss, SSS, SSSSSS, a, E and text in quotes."
    if for_reading:
        hint = (
            "To read text it needs yyyy, and may have MM, MMM, dd, HH, hh, mm, ss, SSS, SSSSSS, a and text in quotes."
        )
    raise binder.error(node, "UNSUPPORTED", f"the pattern '{node.name}' is not supported", hint=hint)


def _moment(binder: Binder, node: exp.Expr, name: str) -> Bound:
    """A time, or the text of one."""
    value = binder.bind(node)
    if is_temporal(value.type) or pa.types.is_null(value.type) or pa.types.is_string(value.type):
        return value
    raise binder.error(node, "TYPE_MISMATCH", f'function "{name}" does not take {shown(value.type)}')


def _to_timestamp(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    value = _moment(binder, arguments[0], name)
    if pa.types.is_string(value.type) and len(arguments) > 1:
        pattern = _pattern(binder, arguments[1], for_reading=True)
        return call_of(binder, node, name, "to_timestamp", [value, pattern])
    return _read(value, pa.timestamp("us"), node)


def _to_timestamp_ltz(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """Flink's: of a number of milliseconds (3) or seconds (0) since 1970; of a number alone Spark means another than Flink.

    Of text, Spark's.
    """
    value = binder.bind(arguments[0])
    if not is_numeric(value.type):
        return _to_timestamp(binder, node, name, arguments)
    units = {"0": "timestamp_seconds", "3": "timestamp_millis"}
    digits = arguments[1].name if len(arguments) > 1 else ""
    if digits not in units:
        message = f'"{name}" of a number needs 0 for seconds or 3 for milliseconds'
        hint = (
            f"Of milliseconds: {name}(…, 3). There are timestamp_millis, timestamp_seconds and timestamp_micros, too."
        )
        raise binder.error(arguments[-1], "WRONG_ARGUMENTS", message, hint=hint)
    return plain_call(binder, node, units[digits], [value])


def _to_date(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    value = _moment(binder, arguments[0], name)
    if pa.types.is_string(value.type) and len(arguments) > 1:
        return _to_timestamp(binder, node, name, arguments).cast(pa.date32())
    return _read(value, pa.date32(), node)


def _read(value: Bound, type_: pa.DataType, node: exp.Expr) -> Bound:
    """NULL where the text is none of the type."""
    return evolve(converted(value, type_, attempt=pa.types.is_string(value.type)), nullable=True, origin=node)


def _cast_to(type_: pa.DataType) -> Builder:
    """``date(x)`` and ``timestamp(x)`` are casts."""

    def build(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
        value = binder.bind(arguments[0])
        if cast_text(value.type, type_) is None:
            message = f'function "{name}" does not take {shown(value.type)}'
            raise binder.error(arguments[0], "TYPE_MISMATCH", message)
        return binder.cast(value, type_, node, what=f'function "{name}"')

    return build


def _unix_timestamp(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    value = _moment(binder, arguments[0], name)
    if not pa.types.is_string(value.type):
        return call_of(binder, node, name, "unix_timestamp", [value])
    pattern = _pattern(binder, arguments[1], for_reading=True) if len(arguments) > 1 else DEFAULT_PATTERN
    return call_of(binder, node, name, "unix_timestamp", [value, pattern])


def _from_unixtime(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    pattern = _pattern(binder, arguments[1]) if len(arguments) > 1 else DEFAULT_PATTERN
    return call_of(binder, node, name, "from_unixtime", [binder.bind(arguments[0]), pattern])


def _date_format(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    pattern = _pattern(binder, arguments[1])
    return call_of(binder, node, name, "date_format", [binder.bind(arguments[0]), pattern])


def _to_char(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """PostgreSQL's: the same as date_format with a pattern in other letters."""
    written = constant_text(binder, arguments[1], "the pattern")
    pattern = from_postgres(written)
    if pattern is None:
        hint = (
            "Supported are YYYY, MM, Mon, DD, HH24, HH12, MI, SS, MS, US, AM, Dy and text in double quotes; "
            "date_format(t, 'yyyy-MM-dd HH:mm:ss') takes Spark's patterns."
        )
        raise binder.error(arguments[1], "UNSUPPORTED", f"the pattern '{written}' is not supported", hint=hint)
    value = as_time(binder.bind(arguments[0]))
    if not is_temporal(value.type):
        hint = "CAST(x AS STRING) makes text of a number; format it with lpad(…)." if is_numeric(value.type) else ""
        message = f'function "{name}" does not take {shown(value.type)}'
        raise binder.error(node, "TYPE_MISMATCH", message, hint=hint)
    return call_of(binder, node, name, "date_format", [value, pattern])


def _date_bin(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """``date_bin(INTERVAL '15' MINUTES, t [, origin])``."""
    length = binder.bind(arguments[0])
    if length.type != INTERVAL:
        hint = "For example: date_bin(INTERVAL '15' MINUTES, t)."
        raise binder.error(arguments[0], "TYPE_MISMATCH", f'function "{name}" begins with an INTERVAL', hint=hint)
    return plain_call(binder, node, name, [length, *(binder.bind(a) for a in arguments[1:])])


def _regexp_match(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    pattern = constant_text(binder, arguments[1], "the pattern")
    try:
        re.compile(pattern)
    except re.error as problem:
        message = f"the pattern '{pattern}' cannot be read"
        raise binder.error(arguments[1], "WRONG_ARGUMENTS", message, detail=str(problem)) from None
    return call_of(binder, node, name, "regexp_match", [binder.bind(arguments[0]), pattern])


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _arithmetic(operator: str, function: str) -> Builder:
    """The function of operands in the types that the operator takes."""

    def build(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
        operands = spark_operands(operator, [binder.bind(a) for a in arguments])
        return call_of(binder, node, name, function, operands)

    return build


def _log(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """The natural one without a base."""
    return plain_call(binder, node, "ln" if len(arguments) == 1 else "log", [binder.bind(a) for a in arguments])


def _signed(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    values = [binder.bind(arguments[0])]
    given = as_parameters(NAMED["negative"], values)
    if given is None:
        raise not_taken(binder, node, values)
    if name == "positive":
        return evolve(given[0], origin=node)
    return binder.negative(given[0], node, f'function "{name}"')


def _levenshtein(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    operands = [binder.bind(a) for a in arguments]
    if not all(pa.types.is_string(o.type) or pa.types.is_null(o.type) for o in operands):
        raise not_taken(binder, node, operands)
    return python_call(LEVENSHTEIN, [o.cast(pa.string()) for o in operands], node)


# -- NULL and conditions ----------------------------------------------------------------------------------------------


def _coalesce(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    return plain_call(binder, node, "coalesce", [binder.bind(a) for a in arguments])


def _zero_if_null(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    (value, zero) = meeting([binder.bind(arguments[0]), Bound(_ZERO, False, node)])
    call = Call("coalesce", (value.expression, zero.expression), pa.null())
    return binder.typed(call, node, [value], nullable=False, what=f'function "{name}"')


def _null_if_zero(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    value = binder.bind(arguments[0])
    if not is_numeric(value.type) and not pa.types.is_null(value.type):
        raise not_taken(binder, node, [value])
    call = Call("nullif", (value.expression, _ZERO), pa.null())
    return binder.typed(call, node, [value], nullable=True, what=f'function "{name}"')


def _equal_null(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    sides = with_times([binder.bind(a) for a in arguments])
    binder.same_kind(sides, f'the arguments of "{name}"')
    left, right = (side.expression for side in meeting(sides))
    return Bound(test("<=>", left, right), False, node)


def _null_test(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    value = binder.bind(arguments[0])
    return evolve(is_null(value) if name == "isnull" else is_there(value), origin=node)


def _if(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """``if(condition, a, b)``; ``nvl2(x, a, b)``, where the condition is that x is there."""
    first, *results = (binder.bind(a) for a in arguments)
    results = with_times(results)
    binder.same_kind(results, f'the arguments of "{name}"')
    results = meeting(results)
    condition = is_there(first) if name == "nvl2" else binder.boolean(first, f'the first argument of "{name}"')
    case = Case(((condition.expression, results[0].expression),), pa.null(), results[1].expression)
    return binder.typed(case, node, [first, *results], nullable=True, what=f'function "{name}"')


# -- hashes and structs -----------------------------------------------------------------------------------------------


def _sha2(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    bits = arguments[1]
    if not (isinstance(bits, exp.Literal) and bits.name in ("0", "256")):
        raise binder.error(bits, "UNSUPPORTED", 'function "sha2" is supported with 256 bits only')
    value = binder.bind(arguments[0])
    call = Call("sha2", (value.expression, Literal("256", pa.int32())), pa.null())
    return binder.typed(call, node, [value], nullable=True, what=f'function "{name}"')


def _named_struct(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    if len(arguments) % 2:
        raise binder.error(node, "WRONG_ARGUMENTS", f'function "{name}" takes pairs of a name and a value')
    names = [constant_text(binder, a, "the name of a field") for a in arguments[::2]]
    return _packed_struct(binder, node, name, names, arguments[1::2])


def _struct(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """Fields are called like the columns that they are, else col1, col2, … by their places."""
    aliases = [a.alias if isinstance(a, exp.Alias) else a.name if isinstance(a, exp.Column) else "" for a in arguments]
    names = [alias or f"col{i + 1}" for i, alias in enumerate(aliases)]
    values = [a.this if isinstance(a, exp.Alias) else a for a in arguments]
    return _packed_struct(binder, node, name, names, values)


def _packed_struct(
    binder: Binder, node: exp.Expr, name: str, names: Sequence[str], values: Sequence[exp.Expr]
) -> Bound:
    if len({n.casefold() for n in names}) < len(names):
        raise binder.error(node, "DUPLICATE_COLUMN", "the STRUCT has more than one field of a name")
    pairs = zip(names, [binder.bind(v) for v in values], strict=True)
    return call_of(binder, node, name, "named_struct", [part for pair in pairs for part in pair], nullable=False)


SPECIAL_FUNCTIONS: dict[str, SpecialFunction] = {
    **JSON_FUNCTIONS,
    "date": SpecialFunction(1, 1, _cast_to(pa.date32())),
    "date_add": SpecialFunction(2, 3, _date_add),
    "date_bin": SpecialFunction(2, 3, _date_bin),
    "date_diff": SpecialFunction(2, 3, _date_diff),
    "date_format": SpecialFunction(2, 2, _date_format),
    "date_part": SpecialFunction(2, 2, _date_part),
    "date_trunc": SpecialFunction(2, 2, _date_trunc),
    "dateadd": SpecialFunction(2, 3, _date_add),
    "datediff": SpecialFunction(2, 3, _date_diff),
    "datepart": SpecialFunction(2, 2, _date_part),
    "equal_null": SpecialFunction(2, 2, _equal_null),
    "from_unixtime": SpecialFunction(1, 2, _from_unixtime),
    "if": SpecialFunction(3, 3, _if),
    "ifnull": SpecialFunction(2, 2, _coalesce),
    "iif": SpecialFunction(3, 3, _if),
    "isnotnull": SpecialFunction(1, 1, _null_test),
    "isnull": SpecialFunction(1, 1, _null_test),
    "levenshtein": SpecialFunction(2, 2, _levenshtein),
    "log": SpecialFunction(1, 2, _log),
    "mod": SpecialFunction(2, 2, _arithmetic("%", "%")),
    "named_struct": SpecialFunction(2, MANY, _named_struct),
    "negative": SpecialFunction(1, 1, _signed),
    "nullifzero": SpecialFunction(1, 1, _null_if_zero),
    "nvl": SpecialFunction(2, 2, _coalesce),
    "nvl2": SpecialFunction(3, 3, _if),
    "pmod": SpecialFunction(2, 2, _arithmetic("%", "pmod")),
    "positive": SpecialFunction(1, 1, _signed),
    "regexp_match": SpecialFunction(2, 2, _regexp_match),
    "sha2": SpecialFunction(2, 2, _sha2),
    "struct": SpecialFunction(1, MANY, _struct),
    "timestamp": SpecialFunction(1, 1, _cast_to(pa.timestamp("us"))),
    "timestampadd": SpecialFunction(3, 3, _timestamp_add),
    "timestampdiff": SpecialFunction(3, 3, _timestamp_diff),
    "to_char": SpecialFunction(2, 2, _to_char),
    "to_date": SpecialFunction(1, 2, _to_date),
    "to_timestamp": SpecialFunction(1, 2, _to_timestamp),
    "to_timestamp_ltz": SpecialFunction(1, 2, _to_timestamp_ltz),
    "to_unix_timestamp": SpecialFunction(1, 2, _unix_timestamp),
    "trunc": SpecialFunction(2, 2, _trunc),
    "try_to_date": SpecialFunction(1, 2, _to_date),
    "try_to_timestamp": SpecialFunction(1, 2, _to_timestamp),
    "try_divide": SpecialFunction(2, 2, _arithmetic("/", "/")),
    "unix_timestamp": SpecialFunction(1, 2, _unix_timestamp),
    "zeroifnull": SpecialFunction(1, 1, _zero_if_null),
}
