"""Functions whose text depends on constants: units of time, patterns, names of fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa
from attrs import frozen
from sqlglot import exp

from headwater.errors import SqlError
from headwater.expressions.levenshtein import LEVENSHTEIN
from headwater.language.arithmetic import meeting, remainder, spark_operands
from headwater.language.casts import as_date, cast_text
from headwater.language.functions.datetime_patterns import translated
from headwater.language.functions.python_calls import python_call
from headwater.language.functions.scalar_functions import MANY
from headwater.language.rendering import Template
from headwater.language.scope import Bound
from headwater.language.text import closest
from headwater.language.types import is_temporal, shown


class Binder(Protocol):
    """What a builder needs of the binder of expressions."""

    def bind(self, node: exp.Expr) -> Bound: ...

    def error(self, node: exp.Expr, code: str, message: str, *, detail: str = "", hint: str = "") -> SqlError: ...

    def typed(
        self, rebuilt: exp.Expr, node: exp.Expr, operands: Sequence[Bound], *, nullable: bool, what: str = "expression"
    ) -> Bound: ...


Builder = Callable[[Binder, exp.Expr, str, list[exp.Expr]], Bound]


@frozen
class SpecialFunction:
    """A function that is built from its arguments as written."""

    least: int
    most: int
    build: Builder


# -- pieces -----------------------------------------------------------------------------------------------------------

_DEFAULT_PATTERN = "yyyy-MM-dd HH:mm:ss"
_PARTS: dict[str, tuple[str, ...]] = {
    "YEAR": ("YEAR", "Y", "YEARS", "YR", "YRS"),
    "ISOYEAR": ("YEAROFWEEK",),
    "QUARTER": ("QUARTER", "QTR"),
    "MONTH": ("MONTH", "MON", "MONS", "MONTHS"),
    "WEEK": ("WEEK", "W", "WEEKS"),
    "DAY": ("DAY", "D", "DAYS"),
    "DAYOFWEEK": ("DAYOFWEEK", "DOW"),
    "ISODOW": ("DAYOFWEEK_ISO", "DOW_ISO"),
    "DAYOFYEAR": ("DOY", "DAYOFYEAR"),
    "HOUR": ("HOUR", "H", "HOURS", "HR", "HRS"),
    "MINUTE": ("MINUTE", "M", "MIN", "MINS", "MINUTES"),
    "SECOND": ("SECOND", "S", "SEC", "SECONDS", "SECS"),
}
_TRUNCATIONS: dict[str, tuple[str, ...]] = {
    "year": ("YEAR", "YYYY", "YY"),
    "quarter": ("QUARTER",),
    "month": ("MONTH", "MM", "MON"),
    "week": ("WEEK",),
    "day": ("DAY", "DD"),
    "hour": ("HOUR",),
    "minute": ("MINUTE",),
    "second": ("SECOND",),
    "millisecond": ("MILLISECOND",),
    "microsecond": ("MICROSECOND",),
}
_LENGTHS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _constant(binder: Binder, node: exp.Expr, what: str) -> str:
    if not (isinstance(node, exp.Literal) and node.is_string):
        raise binder.error(node, "WRONG_ARGUMENTS", f"{what} must be a constant string")
    return node.name


def _unit(binder: Binder, node: exp.Expr, function: str, names: dict[str, tuple[str, ...]]) -> str:
    """The unit that a constant names, under the name that the table gives it."""
    written = node.name.upper()
    for unit, synonyms in names.items():
        if written in synonyms:
            return unit
    near = closest(written, [s for synonyms in names.values() for s in synonyms])
    hint = f"Did you mean {near}?" if near else f"There are {', '.join(s[0] for s in names.values())}."
    raise binder.error(node, "UNKNOWN_UNIT", f'function "{function}" has no unit "{node.name}"', hint=hint)


def _word(binder: Binder, node: exp.Expr, function: str) -> str:
    """A unit written as a word: DATEADD(DAY, …)."""
    if not isinstance(node, exp.Column) or node.args.get("table"):
        hint = "For example: TIMESTAMPADD(DAY, 1, t)."
        raise binder.error(node, "WRONG_ARGUMENTS", f'function "{function}" begins with a unit of time', hint=hint)
    return _unit(binder, node, function, {name: (name, f"{name}S") for name in (*_LENGTHS, *_MONTHS)})


def _call(binder: Binder, node: exp.Expr, name: str, text: str, arguments: Sequence[Bound]) -> Bound:
    template = Template(this=text, expressions=[a.node for a in arguments])
    return binder.typed(template, node, arguments, nullable=True, what=f'function "{name}"')


# -- parts of a time --------------------------------------------------------------------------------------------------


def part_of_time(binder: Binder, node: exp.Expr, name: str, unit: exp.Expr, value: exp.Expr) -> Bound:
    """EXTRACT(unit FROM value): INT, but for seconds, which have a fraction."""
    found = _unit(binder, unit, name, _PARTS)
    texts = {
        "SECOND": "CAST(EXTRACT(MICROSECONDS FROM {0}) / 1000000 AS DECIMAL(8,6))",
        "DAYOFWEEK": "CAST(DAYOFWEEK({0}) + 1 AS INTEGER)",
    }
    return _call(binder, node, name, texts.get(found, f"CAST({found}({{0}}) AS INTEGER)"), [binder.bind(value)])


def _date_part(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    _constant(binder, arguments[0], "the unit")
    return part_of_time(binder, node, name, *arguments)


def _date_trunc(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    _constant(binder, arguments[0], "the unit")
    unit = _unit(binder, arguments[0], name, _TRUNCATIONS)
    return _call(binder, node, name, f"CAST(DATE_TRUNC('{unit}', {{0}}) AS TIMESTAMP)", [binder.bind(arguments[1])])


def _trunc(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    _constant(binder, arguments[1], "the unit")
    coarse = {unit: names for unit, names in _TRUNCATIONS.items() if unit in ("year", "quarter", "month", "week")}
    unit = _unit(binder, arguments[1], name, coarse)
    text = f"CAST(DATE_TRUNC('{unit}', CAST({{0}} AS DATE)) AS DATE)"
    return _call(binder, node, name, text, [as_date(binder.bind(arguments[0]))])


# -- arithmetic with times --------------------------------------------------------------------------------------------


def _timestamp_add(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    unit = _word(binder, arguments[0], name)
    if unit in _LENGTHS:
        step = f"TO_MICROSECONDS(CAST({{0}} AS BIGINT) * {_LENGTHS[unit]})"
    else:
        step = f"TO_MONTHS(CAST({{0}} * {_MONTHS[unit]} AS INTEGER))"
    text = f"(CAST({{1}} AS TIMESTAMP) + {step})"
    return _call(binder, node, name, text, [binder.bind(a) for a in arguments[1:]])


def _timestamp_diff(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """How many whole units lie between: of months as Java counts them, from one day of a month to the same day."""
    unit = _word(binder, arguments[0], name)
    start, end = "CAST({0} AS TIMESTAMP)", "CAST({1} AS TIMESTAMP)"
    if unit in _LENGTHS:
        text = f"((EPOCH_US({end}) - EPOCH_US({start})) // {_LENGTHS[unit]})"
    else:
        first, last = f"CAST({start} AS DATE)", f"CAST({end} AS DATE)"
        first_time, last_time = f"CAST({start} AS TIME)", f"CAST({end} AS TIME)"
        day = (
            f"CASE WHEN {last} > {first} AND {last_time} < {first_time} THEN {last} - 1 "
            f"WHEN {last} < {first} AND {last_time} > {first_time} THEN {last} + 1 ELSE {last} END"
        )
        months = f"(({_packed(day)} - {_packed(first)}) // 32)"
        text = f"({months} // {_MONTHS[unit]})"
    return _call(binder, node, name, text, [binder.bind(a) for a in arguments[1:]])


def _packed(day: str) -> str:
    return f"((YEAR({day}) * 12 + MONTH({day})) * 32 + DAY({day}))"


def _date_add(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """DATE_ADD(date, days); DATE_ADD(unit, number, timestamp)."""
    if len(arguments) == 3:
        return _timestamp_add(binder, node, name, arguments)
    text = "(CAST({0} AS DATE) + CAST({1} AS INTEGER))"
    return _call(binder, node, name, text, [as_date(binder.bind(arguments[0])), binder.bind(arguments[1])])


def _date_diff(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """DATEDIFF(end, start) in days; DATEDIFF(unit, start, end)."""
    if len(arguments) == 3:
        return _timestamp_diff(binder, node, name, arguments)
    text = "CAST(DATE_DIFF('day', CAST({1} AS DATE), CAST({0} AS DATE)) AS INTEGER)"
    return _call(binder, node, name, text, [as_date(binder.bind(a)) for a in arguments])


# -- patterns ---------------------------------------------------------------------------------------------------------


def _written_as(binder: Binder, node: exp.Expr) -> str:
    """DuckDB's words for a pattern by which times are written."""
    found = translated(_constant(binder, node, "the pattern"))
    if found is None:
        raise _unsupported_pattern(binder, node)
    return found.writing.replace("'", "''")


def _unsupported_pattern(binder: Binder, node: exp.Expr, *, for_reading: bool = False) -> SqlError:
    hint = "Supported are yyyy, MM, MMM, dd, HH, hh, mm, ss, SSS, SSSSSS, a, E and text in quotes."
    if for_reading:
        hint = (
            "To read text it needs yyyy, and may have MM, MMM, dd, HH, hh, mm, ss, SSS, SSSSSS, a and text in quotes."
        )
    return binder.error(node, "UNSUPPORTED", f"the pattern '{node.name}' is not supported", hint=hint)


def _read_by(binder: Binder, node: exp.Expr, argument: str) -> str:
    """The text of a TIMESTAMP read by a pattern: NULL where the text does not match it."""
    found = translated(_constant(binder, node, "the pattern"))
    if found is None or found.reading is None:
        raise _unsupported_pattern(binder, node, for_reading=True)
    signs, match = (
        part.replace("'", "''").replace("{", "{{").replace("}", "}}") for part in (found.writing, found.reading)
    )
    return f"CASE WHEN REGEXP_FULL_MATCH({argument}, '{match}') THEN TRY_STRPTIME({argument}, '{signs}') END"


def _moment(binder: Binder, name: str, arguments: list[exp.Expr]) -> tuple[str, Bound]:
    """A time from a time, or from text by a pattern (or in the usual form)."""
    value = binder.bind(arguments[0])
    if is_temporal(value.type) or pa.types.is_null(value.type):
        return "CAST({0} AS TIMESTAMP)", value
    if not pa.types.is_string(value.type):
        message = f'function "{name}" does not take {shown(value.type)}'
        raise binder.error(arguments[0], "TYPE_MISMATCH", message)
    if len(arguments) > 1:
        return _read_by(binder, arguments[1], "{0}"), value
    return cast_text(value.type, pa.timestamp("us"), attempt=True) or "", value


def _to_timestamp(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    text, value = _moment(binder, name, arguments)
    return _call(binder, node, name, text, [value])


def _to_date(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    text, value = _moment(binder, name, arguments)
    if len(arguments) == 1 and pa.types.is_string(value.type):
        text = cast_text(value.type, pa.date32(), attempt=True) or text
    return _call(binder, node, name, f"CAST({text} AS DATE)", [value])


def _cast_to(type_: pa.DataType) -> Builder:
    """``date(x)`` and ``timestamp(x)`` are casts."""

    def build(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
        value = binder.bind(arguments[0])
        text = cast_text(value.type, type_)
        if text is None:
            message = f'function "{name}" does not take {shown(value.type)}'
            raise binder.error(arguments[0], "TYPE_MISMATCH", message)
        return _call(binder, node, name, text, [value])

    return build


def _unix_timestamp(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    """Seconds towards zero, where unix_seconds rounds down."""
    default = exp.Literal.string(_DEFAULT_PATTERN)
    text, value = _moment(binder, name, arguments if len(arguments) > 1 else [*arguments, default])
    return _call(binder, node, name, f"(EPOCH_US({text}) // 1000000)", [value])


def _from_unixtime(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    pattern = arguments[1] if len(arguments) > 1 else exp.Literal.string(_DEFAULT_PATTERN)
    text = f"STRFTIME(MAKE_TIMESTAMP(CAST({{0}} AS BIGINT) * 1000000), '{_written_as(binder, pattern)}')"
    return _call(binder, node, name, text, [binder.bind(arguments[0])])


def _date_format(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    text = f"STRFTIME(CAST({{0}} AS TIMESTAMP), '{_written_as(binder, arguments[1])}')"
    return _call(binder, node, name, text, [binder.bind(arguments[0])])


# -- remainders and distances -----------------------------------------------------------------------------------------


def _modulo(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    operands = spark_operands(exp.Mod, [binder.bind(a) for a in arguments])
    return binder.typed(remainder(operands), node, operands, nullable=True, what=f'function "{name}"')


def _positive_modulo(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    operands = spark_operands(exp.Mod, [binder.bind(a) for a in arguments])
    rest = remainder(operands).this
    again = rest.replace("({0} %", f"(({rest} + {{1}}) %", 1)
    return _call(binder, node, name, f"CASE WHEN {rest} < 0 THEN {again} ELSE {rest} END", operands)


def _try_divide(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    operands = spark_operands(exp.Div, [binder.bind(a) for a in arguments])
    return _call(binder, node, name, "({0} / NULLIF({1}, 0))", operands)


def _zero_if_null(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    (value, _) = meeting([binder.bind(arguments[0]), binder.bind(exp.Literal.number(0))])
    return _call(binder, node, name, "COALESCE({0}, 0)", [value])


def _levenshtein(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    operands = [binder.bind(a) for a in arguments]
    if not all(pa.types.is_string(o.type) or pa.types.is_null(o.type) for o in operands):
        types = " and ".join(shown(o.type) for o in operands)
        raise binder.error(node, "TYPE_MISMATCH", f'function "{name}" does not take {types}')
    return python_call(LEVENSHTEIN, [o.cast(pa.string(), "VARCHAR") for o in operands], node)


# -- hashes and structs -----------------------------------------------------------------------------------------------


def _sha2(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    bits = arguments[1]
    if not (isinstance(bits, exp.Literal) and bits.name in ("0", "256")):
        raise binder.error(bits, "UNSUPPORTED", 'function "sha2" is supported with 256 bits only')
    return _call(binder, node, name, "SHA256({0})", [binder.bind(arguments[0])])


def _named_struct(binder: Binder, node: exp.Expr, name: str, arguments: list[exp.Expr]) -> Bound:
    if len(arguments) % 2:
        raise binder.error(node, "WRONG_ARGUMENTS", f'function "{name}" takes pairs of a name and a value')
    names = [_constant(binder, a, "the name of a field") for a in arguments[::2]]
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
    keys = [n.replace("'", "''").replace("{", "{{").replace("}", "}}") for n in names]
    fields = ", ".join(f"'{key}': {{{i}}}" for i, key in enumerate(keys))
    bound = [binder.bind(v) for v in values]
    template = Template(this=f"{{{{{fields}}}}}", expressions=[b.node for b in bound])
    return binder.typed(template, node, bound, nullable=False, what=f'function "{name}"')


SPECIAL_FUNCTIONS: dict[str, SpecialFunction] = {
    "date": SpecialFunction(1, 1, _cast_to(pa.date32())),
    "date_add": SpecialFunction(2, 3, _date_add),
    "date_diff": SpecialFunction(2, 3, _date_diff),
    "date_format": SpecialFunction(2, 2, _date_format),
    "date_part": SpecialFunction(2, 2, _date_part),
    "date_trunc": SpecialFunction(2, 2, _date_trunc),
    "dateadd": SpecialFunction(2, 3, _date_add),
    "datediff": SpecialFunction(2, 3, _date_diff),
    "datepart": SpecialFunction(2, 2, _date_part),
    "from_unixtime": SpecialFunction(1, 2, _from_unixtime),
    "levenshtein": SpecialFunction(2, 2, _levenshtein),
    "mod": SpecialFunction(2, 2, _modulo),
    "named_struct": SpecialFunction(2, MANY, _named_struct),
    "pmod": SpecialFunction(2, 2, _positive_modulo),
    "sha2": SpecialFunction(2, 2, _sha2),
    "struct": SpecialFunction(1, MANY, _struct),
    "timestamp": SpecialFunction(1, 1, _cast_to(pa.timestamp("us"))),
    "timestampadd": SpecialFunction(3, 3, _timestamp_add),
    "timestampdiff": SpecialFunction(3, 3, _timestamp_diff),
    "to_date": SpecialFunction(1, 2, _to_date),
    "to_timestamp": SpecialFunction(1, 2, _to_timestamp),
    "to_unix_timestamp": SpecialFunction(1, 2, _unix_timestamp),
    "trunc": SpecialFunction(2, 2, _trunc),
    "try_divide": SpecialFunction(2, 2, _try_divide),
    "unix_timestamp": SpecialFunction(1, 2, _unix_timestamp),
    "zeroifnull": SpecialFunction(1, 1, _zero_if_null),
}
