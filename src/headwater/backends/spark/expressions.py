"""Scalar expressions for Spark: DuckDB's text in Spark SQL, where that means exactly the same.

The text is parsed, and every kind of node and every function must be known here: NULL, overflow, NaN, -0.0, the smallest
and largest values and their types come out as in DuckDB, or both engines refuse. Anything else is left to DuckDB.

The session must be as ``suits`` says. Two values count as impossible: the largest and smallest TIMESTAMP and DATE that the
types hold mean infinity to DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from attrs import frozen
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from headwater.algebra.expressions import conjunction, conjuncts, tokens
from headwater.algebra.nodes import Scalar
from headwater.backends.spark import conversions as to
from headwater.backends.spark.conversions import HUGE, Typed, comparable, constant, inferred, widened
from headwater.backends.spark.native_functions import call
from headwater.backends.spark.spark_values import NotNativeError, literal, quoted, spark_type
from headwater.language.types import declared_type, infer
from headwater.model.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEEDED = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_REALS = (pa.float32(), pa.float64())
_MOMENT = pa.timestamp("us")
_MOST_DIGITS = 37
"""Spark gives sums one digit more than DuckDB, and takes from the fraction what would go beyond 38."""


class _Parser(DuckDB.Parser):
    """Calls stay names with arguments: what they mean is said by ``native_functions``."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: DuckDB.Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT")
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CASE": DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }


class _Dialect(DuckDB):
    Parser = _Parser


_DIALECT = _Dialect()


def suits(session: SparkSession) -> bool:
    """Do expressions mean in this session what they must (UTC, errors instead of wrong numbers)?"""
    return all(str(session.conf.get(name)).upper() == value.upper() for name, value in _NEEDED.items())


@lru_cache(maxsize=4096)
def to_spark(scalar: Scalar, schema: Schema) -> str | None:
    """The expression in Spark SQL over columns of the same names; None if it stays in Python.

    >>> to_spark(Scalar('"x" + 1', pa.int64(), ("x",)), Schema.of(x="BIGINT"))
    '(`x` + 1L)'
    """
    if scalar.functions:
        return None
    try:
        (tree,) = _DIALECT.parse(f"SELECT {_guards_first(scalar).sql}")
        assert isinstance(tree, exp.Select)
        (node,) = tree.expressions
        made = _Translation(schema).of(node)
        if made.literal is not None:
            return widened(made, scalar.type)
    except (NotNativeError, SqlglotError):
        return None
    return made.text if made.type == scalar.type else None


def _guards_first(scalar: Scalar) -> Scalar:
    """Conditions that cannot fail before those that can: Spark computes them in order, and no further than it must."""
    parts = conjuncts(scalar) if pa.types.is_boolean(scalar.type) else []
    fragile = [p for p in parts if any(t.text in ("+", "-", "*") or t.is_word("CAST", "ABS") for t in tokens(p.sql))]
    if not fragile or len(fragile) == len(parts):
        return scalar
    return conjunction([*(p for p in parts if p not in fragile), *fragile])


@frozen
class _Translation:
    """Walks the tree of one expression."""

    schema: Schema

    def of(self, node: exp.Expr) -> Typed:
        """The node for Spark. Raises ``NotNativeError`` if that cannot be."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise NotNativeError(type(node).__name__)
        if type(node) in _FOLDED and node.find(exp.Column) is None:
            return constant(_DIALECT.generate(node))
        return handler(self, node)

    def text(self, node: exp.Expr, type_: pa.DataType) -> str:
        """The node as a value of the type."""
        return widened(self.of(node), type_)

    # -- atoms ------------------------------------------------------------------------------------------------------

    def column(self, node: exp.Column) -> Typed:
        if node.args.get("table") or node.name not in self.schema.names:
            raise NotNativeError(node.name)
        type_ = self.schema.field(node.name).type
        spark_type(type_)
        return Typed(quoted(node.name), type_)

    def number_or_text(self, node: exp.Expr) -> Typed:
        """A constant as written: it takes the type that fits best where it stands."""
        sql = _DIALECT.generate(node)
        type_, inexact = infer(sql, ())
        if inexact:
            return Typed("", HUGE, literal=sql)
        if pa.types.is_null(type_):
            return Typed("NULL", type_, literal=sql)
        return Typed(constant(sql).text, type_, literal=sql, never_zero=constant(sql).never_zero)

    def parenthesised(self, node: exp.Paren) -> Typed:
        return self.of(node.this)

    # -- logic ------------------------------------------------------------------------------------------------------

    def connective(self, node: exp.Connector) -> Typed:
        word = "AND" if isinstance(node, exp.And) else "OR"
        left, right = (self.text(side, pa.bool_()) for side in (node.this, node.expression))
        return Typed(f"({left} {word} {right})", pa.bool_())

    def negation(self, node: exp.Not) -> Typed:
        return Typed(f"(NOT {self.text(node.this, pa.bool_())})", pa.bool_())

    def test(self, node: exp.Is) -> Typed:
        """IS NULL, IS TRUE, IS FALSE."""
        value, other = self.of(node.this), node.expression
        if isinstance(other, exp.Null):
            return Typed(f"({value.text} IS NULL)", pa.bool_())
        if not isinstance(other, exp.Boolean) or not pa.types.is_boolean(value.type):
            raise NotNativeError("IS")
        return Typed(f"({value.text} IS {'TRUE' if other.this else 'FALSE'})", pa.bool_())

    def comparison(self, node: exp.Binary) -> Typed:
        return Typed(self._compared(_COMPARISONS[type(node)], self.of(node.this), self.of(node.expression)), pa.bool_())

    def _compared(self, sign: str, left: Typed, right: Typed) -> str:
        type_ = comparable(left, right)
        if pa.types.is_nested(type_) or pa.types.is_null(type_):
            raise NotNativeError(f"a comparison of {type_}")
        ours, theirs = widened(left, type_), widened(right, type_)
        return f"(NOT {ours} <=> {theirs})" if sign == "" else f"({ours} {sign} {theirs})"

    def between(self, node: exp.Between) -> Typed:
        value = self.of(node.this)
        low, high = (self.of(node.args[end]) for end in ("low", "high"))
        return Typed(f"({self._compared('>=', value, low)} AND {self._compared('<=', value, high)})", pa.bool_())

    def membership(self, node: exp.In) -> Typed:
        """As single comparisons: Spark looks a DOUBLE up in a table of bits, where -0.0 is not 0.0."""
        if not node.expressions or node.args.get("query"):
            raise NotNativeError("IN")
        value, listed = self.of(node.this), [self.of(e) for e in node.expressions]
        if value.type not in _REALS and all(comparable(value, one) == value.type for one in listed):
            self._compared("=", value, listed[0])
            return Typed(f"({value.text} IN ({', '.join(widened(one, value.type) for one in listed)}))", pa.bool_())
        return Typed(f"({' OR '.join(self._compared('=', value, one) for one in listed)})", pa.bool_())

    def like(self, node: exp.Like, escape: str = "") -> Typed:
        value, pattern = self.of(node.this), node.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string or value.type != pa.string():
            raise NotNativeError("LIKE")
        word = "NOT LIKE" if node.args.get("negate") else "LIKE"
        text = literal(_like_pattern(pattern.name, escape), pa.string())
        return Typed(f"({value.text} {word} {text} ESCAPE '{_ESCAPE}')", pa.bool_())

    def like_with_escape(self, node: exp.Escape) -> Typed:
        if not isinstance(node.this, exp.Like) or not isinstance(node.expression, exp.Literal):
            raise NotNativeError("ESCAPE")
        return self.like(node.this, node.expression.name)

    def case(self, node: exp.Case) -> Typed:
        subject = self.of(node.this) if node.this else None
        conditions = []
        for branch in node.args["ifs"]:
            condition = self.of(branch.this)
            tested = widened(condition, pa.bool_()) if subject is None else self._compared("=", subject, condition)
            conditions.append(tested)
        last = node.args.get("default")
        results = [self.of(branch.args["true"]) for branch in node.args["ifs"]]
        default = self.of(last) if last is not None else Typed("NULL", pa.null(), literal="NULL")
        branches = "".join(f" WHEN TRUE THEN {{{i}}}" for i in range(len(results)))
        type_ = inferred(f"CASE{branches} ELSE {{{len(results)}}} END", *results, default)
        pairs = zip(conditions, results, strict=True)
        text = "".join(f" WHEN {condition} THEN {widened(result, type_)}" for condition, result in pairs)
        return Typed(f"CASE{text} ELSE {widened(default, type_)} END", type_)

    # -- arithmetic -------------------------------------------------------------------------------------------------

    def arithmetic(self, node: exp.Binary) -> Typed:
        sign = _SIGNS[type(node)]
        left = self.of(node.this)
        if left.type in (pa.date32(), _MOMENT):
            return self._moved(left, sign, node.expression)
        right = self.of(node.expression)
        type_ = inferred(f"{{0}} {sign} {{1}}", left, right)
        if type_ in _INTEGERS or type_ in _REALS:
            return Typed(f"({widened(left, type_)} {sign} {widened(right, type_)})", type_)
        if not pa.types.is_decimal(type_) or type_.precision > _MOST_DIGITS:
            raise NotNativeError(f"{sign} of type {type_}")
        if sign == "*":
            return self._product(left, right, type_)
        text = f"{widened(left, type_)} {sign} {widened(right, type_)}"
        return Typed(f"CAST({text} AS {spark_type(type_)})", type_)

    def _product(self, left: Typed, right: Typed, type_: pa.DataType) -> Typed:
        sizes = [to.as_decimal(side.type) for side in (left, right)]
        if sum(precision for precision, _ in sizes) > _MOST_DIGITS:
            raise NotNativeError("* of long DECIMALs")
        factors = [widened(side, pa.decimal128(*size)) for side, size in zip((left, right), sizes, strict=True)]
        return Typed(f"CAST({factors[0]} * {factors[1]} AS {spark_type(type_)})", type_)

    def quotient(self, node: exp.Div) -> Typed:
        """Of two DOUBLEs or FLOATs; where the divisor is not guarded, DuckDB gives infinity."""
        left, right = self.of(node.this), self.of(node.expression)
        type_ = inferred("{0} / {1}", left, right)
        if type_ not in _REALS or not right.never_zero:
            raise NotNativeError("/")
        text = f"({widened(left, type_)} / {widened(right, type_)})"
        return Typed(text if type_ == pa.float64() else f"CAST({text} AS FLOAT)", type_)

    def whole_quotient(self, node: exp.IntDiv) -> Typed:
        left, right = self.of(node.this), self.of(node.expression)
        type_ = inferred("{0} // {1}", left, right)
        if type_ not in _INTEGERS:
            raise NotNativeError("//")
        divisor = widened(right, type_) if right.never_zero else f"nullif({widened(right, type_)}, {literal(0, type_)})"
        text = f"({widened(left, type_)} div {divisor})"
        return Typed(text if type_ == pa.int64() else f"CAST({text} AS {spark_type(type_)})", type_)

    def remainder(self, node: exp.Mod) -> Typed:
        left, right = self.of(node.this), self.of(node.expression)
        type_ = inferred("{0} % {1}", left, right)
        if type_ not in (*_INTEGERS, *_REALS):
            raise NotNativeError("%")
        if type_ in _REALS and not right.never_zero:
            raise NotNativeError("%")
        value, divisor = widened(left, type_), widened(right, type_)
        guarded = divisor if right.never_zero else f"nullif({divisor}, {literal(0, type_)})"
        text = f"({value} % {guarded})"
        if type_ in _INTEGERS and (right.literal is None or right.literal == "-1"):
            # DuckDB refuses the smallest number by -1, as in the division that it is.
            text = f"CASE WHEN {divisor} = {literal(-1, type_)} THEN {value} + (- {value}) ELSE {text} END"
        return Typed(text, type_)

    def opposite(self, node: exp.Neg) -> Typed:
        if isinstance(node.this, exp.Literal):
            return self.number_or_text(node)
        value = self.of(node.this)
        type_ = inferred("-{0}", value)
        if type_ not in (*_INTEGERS, *_REALS) and not pa.types.is_decimal(type_):
            raise NotNativeError("-")
        return Typed(f"(- {widened(value, type_)})", type_)

    def bits(self, node: exp.Binary) -> Typed:
        left, right = self.of(node.this), self.of(node.expression)
        sign = "&" if isinstance(node, exp.BitwiseAnd) else "|"
        type_ = inferred(f"({{0}} {sign} {{1}})", left, right)
        if type_ not in _INTEGERS:
            raise NotNativeError(sign)
        return Typed(f"({widened(left, type_)} {sign} {widened(right, type_)})", type_)

    def complement(self, node: exp.BitwiseNot) -> Typed:
        value = self.of(node.this)
        if value.type not in _INTEGERS or value.literal is not None:
            raise NotNativeError("~")
        return Typed(f"(~ {value.text})", value.type)

    def shift_right(self, node: exp.BitwiseRightShift) -> Typed:
        """DuckDB shifts everything out where Spark would shift by the remainder."""
        left, right = self.of(node.this), self.of(node.expression)
        type_ = inferred("({0} >> {1})", left, right)
        if type_ not in (pa.int32(), pa.int64()) or right.type not in _INTEGERS:
            raise NotNativeError(">>")
        value, by = widened(left, type_), right.text
        zero = literal(0, type_)
        shifted = f"shiftright({value}, CAST({by} AS INT))"
        return Typed(
            f"CASE WHEN {by} BETWEEN 0 AND {type_.bit_width - 1} THEN {shifted} "
            f"WHEN {by} IS NOT NULL AND {value} IS NOT NULL THEN {zero} END",
            type_,
        )

    def joined_text(self, node: exp.DPipe) -> Typed:
        parts = [self.of(node.this), self.of(node.expression)]
        texts = [p.text if p.type == pa.string() else to.cast(p, pa.string(), attempt=False) for p in parts]
        if inferred("{0} || {1}", *parts) != pa.string():
            raise NotNativeError("||")
        return Typed(f"concat({', '.join(texts)})", pa.string())

    # -- times ------------------------------------------------------------------------------------------------------

    def _moved(self, moment: Typed, sign: str, by: exp.Expr) -> Typed:
        """A time and a length of time, or a date and days."""
        if sign == "*":
            raise NotNativeError("*")
        length = _unwrapped(by)
        if isinstance(length, exp.Interval):
            return self._moved_by_constant(moment, sign, length)
        if isinstance(length, exp.Anonymous) and length.name in ("TO_MICROSECONDS", "TO_MONTHS"):
            (amount,) = length.expressions
            start = widened(moment, _MOMENT)
            if length.name == "TO_MICROSECONDS":
                text = f"timestamp_micros(unix_micros({start}) {sign} {self.text(amount, pa.int64())})"
            else:
                text = f"({start} {sign} make_ym_interval(0, {self.text(amount, pa.int32())}))"
            return Typed(text, _MOMENT)
        days = self.of(by)
        if moment.type != pa.date32() or days.type not in _INTEGERS:
            raise NotNativeError(f"{moment.type} {sign} {days.type}")
        text = f"date_from_unix_date(unix_date({moment.text}) {sign} {widened(days, pa.int32())})"
        return Typed(text, inferred(f"{{0}} {sign} {{1}}", moment, days))

    def _moved_by_constant(self, moment: Typed, sign: str, length: exp.Interval) -> Typed:
        months, days, nanoseconds = to.interval(_DIALECT.generate(length))
        text = widened(moment, _MOMENT)
        if months:
            text = f"({text} {sign} INTERVAL '{months}' MONTH)"
        if microseconds := days * 86_400_000_000 + nanoseconds // 1000:
            text = f"timestamp_micros(unix_micros({text}) {sign} {literal(microseconds, pa.int64())})"
        return Typed(text, _MOMENT)

    # -- conversions and calls --------------------------------------------------------------------------------------

    def conversion(self, node: exp.Cast) -> Typed:
        attempt, inner = isinstance(node, exp.TryCast), _unwrapped(node.this)
        type_ = declared_type(node.args["to"])
        if node.args["to"].this == exp.DType.TIMESTAMPNTZ:
            type_ = _MOMENT
        if type_ is None:
            raise NotNativeError("CAST")
        if seconds := self._seconds(inner, type_):
            return seconds
        if isinstance(inner, exp.Anonymous) and inner.name in ("TRUNC", "CEIL", "FLOOR"):
            value = self.of(inner.expressions[0])
            if inner.name == "TRUNC":
                return Typed(to.truncated(value, type_, attempt=attempt), type_)
            return Typed(to.whole(inner.name, value, type_), type_)
        return Typed(to.cast(self.of(inner), type_, attempt=attempt), type_)

    def _seconds(self, inner: exp.Expr, type_: pa.DataType) -> Typed | None:
        """EXTRACT(SECOND …): microseconds of the minute by a million, as a DECIMAL."""
        if not isinstance(inner, exp.Div) or not isinstance(inner.this, exp.Extract):
            return None
        if inner.this.name != "MICROSECONDS" or inner.expression.name != "1000000" or type_ != pa.decimal128(8, 6):
            return None
        return Typed(f"extract(SECOND FROM {self.text(inner.this.expression, _MOMENT)})", type_)

    def struct(self, node: exp.Struct) -> Typed:
        """``{'name': value, …}``"""
        fields = [(e.name, self.of(e.expression)) for e in node.expressions if isinstance(e, exp.PropertyEQ)]
        if len(fields) < len(node.expressions) or any(pa.types.is_null(value.type) for _, value in fields):
            raise NotNativeError("STRUCT")
        pairs = ", ".join(f"{literal(name, pa.string())}, {value.text}" for name, value in fields)
        return Typed(f"named_struct({pairs})", pa.struct([(name, value.type) for name, value in fields]))

    def called(self, node: exp.Anonymous) -> Typed:
        name = node.name.upper()
        if name == "NULLIF":
            return self._null_if(*(self.of(e) for e in node.expressions))
        return call(name, [self.of(e) for e in node.expressions])

    def _null_if(self, value: Typed, other: Typed) -> Typed:
        type_ = inferred("NULLIF({0}, {1})", value, other)
        text = widened(value, type_)
        same = self._compared("=", value, other)
        zero = other.literal is not None and other.literal == "0"
        return Typed(f"CASE WHEN {same} THEN NULL ELSE {text} END", type_, never_zero=zero)


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


_ESCAPE = "!"


def _like_pattern(pattern: str, escape: str) -> str:
    """The pattern with our own sign of escape; the engines differ in what a stray one means."""
    made, rest = [], iter(pattern)
    for sign in rest:
        if sign == escape:
            escaped = next(rest, "")
            if escaped == "" or escaped not in ("%", "_", escape):
                raise NotNativeError("LIKE with a stray sign of escape")
            made.append(f"{_ESCAPE}{escaped}" if escaped in ("%", "_", _ESCAPE) else escaped)
        else:
            made.append(_ESCAPE * 2 if sign == _ESCAPE else sign)
    return "".join(made)


_SIGNS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "",
}
_HANDLERS: dict[type[exp.Expr], Callable[[_Translation, Any], Typed]] = {
    exp.Column: _Translation.column,
    **dict.fromkeys((exp.Literal, exp.Null, exp.Boolean), _Translation.number_or_text),
    exp.Paren: _Translation.parenthesised,
    **dict.fromkeys((exp.And, exp.Or), _Translation.connective),
    exp.Not: _Translation.negation,
    exp.Is: _Translation.test,
    **dict.fromkeys(_COMPARISONS, _Translation.comparison),
    exp.Between: _Translation.between,
    exp.In: _Translation.membership,
    exp.Like: _Translation.like,
    exp.Escape: _Translation.like_with_escape,
    exp.Case: _Translation.case,
    **dict.fromkeys(_SIGNS, _Translation.arithmetic),
    exp.Div: _Translation.quotient,
    exp.IntDiv: _Translation.whole_quotient,
    exp.Mod: _Translation.remainder,
    exp.Neg: _Translation.opposite,
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr), _Translation.bits),
    exp.BitwiseNot: _Translation.complement,
    exp.BitwiseRightShift: _Translation.shift_right,
    exp.DPipe: _Translation.joined_text,
    **dict.fromkeys((exp.Cast, exp.TryCast), _Translation.conversion),
    exp.Anonymous: _Translation.called,
    exp.Struct: _Translation.struct,
}
_FOLDED = frozenset(
    (exp.Cast, exp.TryCast, exp.Anonymous, exp.Case, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
)
"""What is computed at once where it has no columns."""
