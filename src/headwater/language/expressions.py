"""Binding of scalar expressions: names become columns of the plan, operators and calls trees; types are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import duckdb
import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.errors import SqlError
from headwater.expressions.casts import can_be, cast_text
from headwater.expressions.duckdb import natural_type
from headwater.expressions.nodes import FALSE, TRUE, Call, Case, Cast, Expression, Literal
from headwater.expressions.rewrite import can_fail
from headwater.expressions.types import common_type, comparable, is_nested, is_numeric
from headwater.language.arithmetic import divides_whole, meeting, spark_operands
from headwater.language.casts import as_text, as_time, converted, string_constant, with_times
from headwater.language.functions.calls import bind_call, bind_constructor, bind_special_form, refused_constant
from headwater.language.predicates import connected, test
from headwater.language.row_values import written_out
from headwater.language.scope import Bound, Scope, struct_field
from headwater.language.subqueries.conditions import COMPARISONS, as_value
from headwater.language.text import error_on
from headwater.language.types import declared_type, shown, types_hint, written_type
from headwater.model.functions import UserFunction
from headwater.model.types import INTERVAL

_OPERATORS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Add: ("+", "+"),
    exp.Sub: ("-", "-"),
    exp.Mul: ("*", "*"),
    exp.Div: ("/", "/"),
    exp.IntDiv: ("div", "DIV"),
    exp.Mod: ("%", "%"),
    exp.DPipe: ("||", "||"),
    exp.Neg: ("negative", "-"),
    exp.BitwiseAnd: ("&", "&"),
    exp.BitwiseOr: ("|", "|"),
    exp.BitwiseXor: ("^", "^"),
    exp.BitwiseNot: ("~", "~"),
    exp.Like: ("like", "LIKE"),
    exp.ILike: ("ilike", "ILIKE"),
    exp.RegexpLike: ("rlike", "RLIKE"),
    exp.Is: ("is", "IS"),
}
"""What they are called in trees, and in messages."""
_ARITHMETIC = frozenset({"+", "-", "*", "/", "div", "%", "&", "|", "^", "~"})
_NEVER_NULL_OF_NON_NULL = frozenset({"+", "-", "*", "negative", "||"})
_COMPARISONS = {**COMPARISONS, exp.NullSafeEQ: "<=>", exp.NullSafeNEQ: "is distinct from"}
Hook = Callable[[exp.Expr], Bound]


class ExpressionBinder:
    """Binds expressions in one clause; ``aggregate``, ``subquery`` and ``window`` are told of what only some allow."""

    def __init__(
        self,
        scope: Scope,
        clause: str,
        *,
        aggregate: Hook | None = None,
        subquery: Hook | None = None,
        window: Callable[[exp.Window], Bound] | None = None,
        functions: Mapping[str, UserFunction] | None = None,
    ) -> None:
        """``functions``: those that are called by the names that they have in trees."""
        self.scope, self.clause, self.functions = scope, clause, functions or {}
        self._aggregate, self._subquery, self._window = aggregate, subquery, window

    def error(self, node: exp.Expr, code: str, message: str, *, detail: str = "", hint: str = "") -> SqlError:
        return error_on(self.scope.text, node, code, message, detail=detail, hint=hint)

    def predicate(self, node: exp.Expr) -> Bound:
        """An expression that must be true or false."""
        return self.boolean(self.bind(node), self.clause)

    def bind(self, node: exp.Expr) -> Bound:
        if as_value(node) is not None:
            return self._on_subquery(node)
        if (single := written_out(self.scope.text, node)) is not None:
            return evolve(self.bind(single), origin=node)
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Literal() if node.is_string:
                return Bound(Literal(node.this, pa.string()), False, node)
            case exp.Literal():
                return self._constant(node.this, node)
            case exp.Boolean():
                return Bound(TRUE if node.this else FALSE, False, node)
            case exp.Null():
                return Bound(Literal(None, pa.null()), True, node)
            case exp.Paren():
                return evolve(self.bind(node.this), origin=node)
            case exp.And() | exp.Or() | exp.Not():
                return self._logic(node)
            case exp.Between():
                return self._between(node)
            case exp.In():
                return self._in(node)
            case exp.Case():
                return self._case(node)
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.Interval():
                return self._interval(node)
            case exp.Bracket():
                return self._element(node)
            case exp.Array() | exp.HexString():
                return bind_constructor(self, node)
            case exp.Dot() if isinstance(node.expression, exp.Identifier):
                return struct_field(self.scope.text, self.bind(node.this), node.expression.name)
            case exp.Extract() | exp.Substring() | exp.Trim() | exp.StrPosition():
                return bind_special_form(self, node)
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return self._on_subquery(node)
            case exp.Any() | exp.All():
                word = type(node).__name__.upper()
                raise self.error(node, "UNSUPPORTED", f"{word} (…) can be compared by =, <>, <, <=, > and >= only")
            case exp.Filter() | exp.GroupConcat() | exp.WithinGroup() | exp.IgnoreNulls() | exp.RespectNulls():
                return self.aggregated(node)
            case exp.Window():
                return self._over(node)
            case exp.Like() | exp.ILike() if not isinstance(node.expression, (exp.Any, exp.All)):
                return self._like(node)
            case exp.Escape() if isinstance(node.this, (exp.Like, exp.ILike)):
                return self._like(node.this, node.expression)
            case exp.Anonymous():
                return bind_call(self, node)
            case exp.Tuple():
                hint = "Compare it with another one: (a, b) = (1, 2); or make a STRUCT: struct(a, b)."
                raise self.error(node, "UNSUPPORTED", "a row is no value here", hint=hint)
            case exp.JSONExtract() | exp.JSONExtractScalar():
                hint = "Write json_value(js, '$.a'), or json_query(js, '$.a') for an object or an array."
                raise self.error(node, "UNSUPPORTED", "the operators -> and ->> are not supported", hint=hint)
            case exp.Star():
                raise self.error(node, "SYNTAX", '"*" cannot be used here')
        if type(node) in _COMPARISONS:
            return self._comparison(node)
        if type(node) in _OPERATORS:
            return self._operator(node)
        raise self.error(node, "UNSUPPORTED", "this expression is not supported")

    def _column(self, node: exp.Column) -> Bound:
        try:
            return self.scope.resolve(node)
        except SqlError as problem:
            refused = refused_constant(self, node) if problem.code == "UNKNOWN_COLUMN" else None
            raise refused or problem from None

    # -- logic and comparisons --------------------------------------------------------------------------------------

    def boolean(self, bound: Bound, what: str) -> Bound:
        if pa.types.is_boolean(bound.type):
            return bound
        if pa.types.is_null(bound.type):
            return bound.cast(pa.bool_())
        raise self.error(
            bound.origin,
            "TYPE_MISMATCH",
            f"{what} must be BOOLEAN, not {shown(bound.type)}",
            hint="Compare it with something, for example: … <> 0." if pa.types.is_integer(bound.type) else "",
        )

    def _logic(self, node: exp.And | exp.Or | exp.Not) -> Bound:
        word = type(node).__name__.upper()
        operands = [self.boolean(self.bind(o), f"the operand of {word}") for o in _operands(node)]
        nullable, sides = any(o.nullable for o in operands), [o.expression for o in operands]
        if isinstance(node, exp.Not):
            return Bound(test("not", *sides), nullable, node)
        if can_fail(sides[1]):
            return Bound(test(f"guarded {word.lower()}", *sides), nullable, node)
        return Bound(connected(word.lower(), sides), nullable, node)

    def _comparison(self, node: exp.Expr) -> Bound:
        name = _COMPARISONS[type(node)]
        left, right = self.comparands(self.bind(node.this), self.bind(node.expression))
        nullable = name not in ("<=>", "is distinct from") and (left.nullable or right.nullable)
        return Bound(test(name, left.expression, right.expression), nullable, node)

    def comparands(self, left: Bound, right: Bound) -> tuple[Bound, Bound]:
        """The two sides of a comparison; a string literal takes the type of the other side."""
        if comparable(left.type, right.type):
            return left, right
        if (text := string_constant(right.expression)) is not None:
            return left, self._literal_as(right, text, left.type)
        if (text := string_constant(left.expression)) is not None:
            return self._literal_as(left, text, right.type), right
        raise self.error(
            left.origin.parent or left.origin,
            "TYPE_MISMATCH",
            f"cannot compare {shown(left.type)} with {shown(right.type)}",
            hint=f"Convert one of them, for example: CAST(… AS {shown(left.type)}).",
        )

    def _literal_as(self, bound: Bound, text: str, type_: pa.DataType) -> Bound:
        """A text constant as what it is compared with: a DECIMAL with a DOUBLE, for it may have more digits."""
        read = pa.float64() if pa.types.is_decimal(type_) else type_
        if is_nested(type_) or not can_be(text, read):
            message = f"cannot compare {shown(type_)} with the STRING '{text}'"
            raise self.error(bound.origin, "TYPE_MISMATCH", message)
        return converted(bound, read)

    def _between(self, node: exp.Between) -> Bound:
        value = self.bind(node.this)
        ends = [self.comparands(value, self.bind(node.args[end]))[1] for end in ("low", "high")]
        nullable = any(b.nullable for b in (value, *ends))
        return Bound(test("between", value.expression, *(b.expression for b in ends)), nullable, node)

    def _in(self, node: exp.In) -> Bound:
        value = self.bind(node.this)
        listed = [self.comparands(value, self.bind(e))[1] for e in node.expressions]
        nullable = any(b.nullable for b in (value, *listed))
        return Bound(test("in", value.expression, *(b.expression for b in listed)), nullable, node)

    # -- values -----------------------------------------------------------------------------------------------------

    def _constant(self, text: str, node: exp.Expr, what: str = "expression") -> Bound:
        """A number or a length of time, as it is written."""
        if text.removeprefix("-").isdecimal() and -(2**31) <= int(text) < 2**31:
            return Bound(Literal(text, pa.int32()), False, node)
        return self.typed(Literal(text, pa.null()), node, [], nullable=False, what=what)

    def _operator(self, node: exp.Expr) -> Bound:
        name, sign = _OPERATORS[type(node)]
        operands = [self.bind(o) for o in _operands(node)]
        what = f'operator "{sign}"'
        if name == "is":
            return self._is(node, operands, what)
        if name == "negative":
            return self.negative(operands[0], node, what)
        if name in ("+", "-") and any(o.type == INTERVAL for o in operands):
            operands = [as_time(o) for o in operands]
        if name in _ARITHMETIC:
            operands = spark_operands(name, operands)
        if name == "div" and not divides_whole(operands):
            types = " and ".join(shown(o.type) for o in operands)
            hint = "CAST to BIGINT or DECIMAL cuts a fraction off."
            raise self.error(node, "TYPE_MISMATCH", f"{what} does not take {types}", hint=hint)
        if name == "||":
            operands = [as_text(o) for o in operands]
        nullable = name not in _NEVER_NULL_OF_NON_NULL or any(o.nullable for o in operands)
        bound = self.called(name, node, operands, nullable=nullable, what=what)
        return bound.cast(pa.date32()) if name in ("+", "-") and _moves_whole_days(node, operands) else bound

    def negative(self, operand: Bound, node: exp.Expr, what: str) -> Bound:
        """A number with a sign is a constant too."""
        expression = operand.expression
        if isinstance(expression, Literal) and is_numeric(expression.type) and expression.text is not None:
            text = expression.text
            return self._constant(text.removeprefix("-") if text.startswith("-") else f"-{text}", node, what)
        return self.called("negative", node, [operand], nullable=operand.nullable, what=what)

    def _is(self, node: exp.Expr, operands: Sequence[Bound], what: str) -> Bound:
        word = node.expression.sql().lower()
        expression = Call(f"is {word}", (operands[0].expression,), pa.null())
        return self.typed(expression, node, operands, nullable=False, what=what)

    def _like(self, node: exp.Expr, escape: exp.Expr | None = None) -> Bound:
        """As in Spark: a backslash takes its meaning from ``%`` and ``_``, if ESCAPE names no other character."""
        if escape is not None and not (isinstance(escape, exp.Literal) and escape.is_string and len(escape.name) == 1):
            raise self.error(escape, "WRONG_ARGUMENTS", "ESCAPE takes a string of one character")
        operands = [self.bind(node.this), self.bind(node.expression)]
        arguments, pattern = [o.expression for o in operands], string_constant(operands[1].expression)
        if escape is not None or pattern is None or "\\" in pattern:
            arguments.append(Literal("\\" if escape is None else escape.name, pa.string()))
        name, sign = _OPERATORS[type(node)]
        call = Call(name, tuple(arguments), pa.null())
        bound = self.typed(call, node, operands, nullable=True, what=f'operator "{sign}"')
        return evolve(bound, expression=test("not", bound.expression)) if node.args.get("negate") else bound

    def _case(self, node: exp.Case) -> Bound:
        subject = self.bind(node.this) if node.this else None
        conditions, results = [], []
        for branch in node.args["ifs"]:
            condition = self.bind(branch.this)
            if subject is None:
                condition = self.boolean(condition, "the condition after WHEN")
            else:
                _, condition = self.comparands(subject, condition)
            conditions.append(condition)
            results.append(self.bind(branch.args["true"]))
        if node.args.get("default"):
            results.append(self.bind(node.args["default"]))
        results = with_times(results)
        self.same_kind(results, "the results of CASE")
        results = meeting(results)
        branches = tuple((c.expression, r.expression) for c, r in zip(conditions, results, strict=False))
        default = results[-1].expression if len(results) > len(conditions) else None
        case = Case(branches, pa.null(), default, subject.expression if subject else None)
        operands = [*([subject] if subject else []), *conditions, *results]
        return self.typed(case, node, operands, nullable=True)

    def _cast(self, node: exp.Cast) -> Bound:
        value, target = self.bind(node.this), declared_type(node.args["to"])
        if target is None:
            message = f"there is no type {written_type(node.args['to'])}"
            raise self.error(node, "UNKNOWN_TYPE", message, hint=types_hint(node.args["to"]))
        attempt = isinstance(node, exp.TryCast)
        what = f"{'TRY_CAST' if attempt else 'CAST'} to {shown(target)}"
        if cast_text(value.type, target) is None:
            raise self.error(node, "TYPE_MISMATCH", f"{what} does not take {shown(value.type)}")
        return self.cast(value, target, node, attempt=attempt, what=what)

    def cast(self, value: Bound, type_: pa.DataType, node: exp.Expr, *, attempt: bool = False, what: str) -> Bound:
        """The value as one of a type that Spark converts it to when it is asked."""
        if string_constant(value.expression) is not None:
            return evolve(converted(value, type_, attempt=attempt), origin=node, nullable=attempt)
        nullable = value.nullable or attempt or (pa.types.is_floating(value.type) and pa.types.is_decimal(type_))
        if value.type == type_ and isinstance(value.expression, Cast):
            return evolve(value, origin=node, nullable=nullable)
        cast = Cast(value.expression, type_, attempt)
        self._natural(cast, node, [value], what)
        return Bound(cast, nullable, node)

    def _interval(self, node: exp.Interval) -> Bound:
        if not isinstance(node.this, exp.Literal):
            raise self.error(node, "UNSUPPORTED", "the length of an INTERVAL must be a constant")
        return self._constant(node.sql(dialect="duckdb", comments=False), node, "INTERVAL")

    def _element(self, node: exp.Bracket) -> Bound:
        operands = [self.bind(node.this), *(self.bind(e) for e in node.expressions)]
        if not pa.types.is_list(operands[0].type):  # DuckDB would take a letter of a string
            types = " and ".join(shown(o.type) for o in operands)
            kind = operands[0].type
            hint = "A part of JSON text: json_value(s, '$.a')." if pa.types.is_string(kind) else ""
            hint = "Fields are read as s.name." if pa.types.is_struct(kind) else hint
            raise self.error(node, "TYPE_MISMATCH", f'operator "[]" does not take {types}', hint=hint)
        return self.called("[]", node, operands[:2], what='operator "[]"')

    # -- aggregates and sub-queries ---------------------------------------------------------------------------------

    def aggregated(self, node: exp.Expr) -> Bound:
        if self._aggregate is None:
            call = next((n for n in node.walk() if "name" in n.meta), node)
            shown_name = str(call.meta.get("name", "")).upper() or call.name.upper()
            hint = "Filter groups with HAVING." if self.clause == "WHERE" else ""
            message = f'aggregate "{shown_name}" cannot be used in {self.clause}'
            raise self.error(node, "AGGREGATE_POSITION", message, hint=hint)
        return self._aggregate(node)

    def _over(self, node: exp.Window) -> Bound:
        if self._window is None:
            hint = "Filter by it with QUALIFY, or in an outer query." if self.clause in ("WHERE", "HAVING") else ""
            raise self.error(node, "WINDOW_POSITION", f"OVER cannot be used in {self.clause}", hint=hint)
        return self._window(node)

    def _on_subquery(self, node: exp.Expr) -> Bound:
        """A sub-query, or a condition on one, where a value must be."""
        if self._subquery is None:
            hint = "Compute it in a sub-query of FROM." if self.clause in ("GROUP BY", "OVER") else ""
            raise self.error(node, "SUBQUERY_POSITION", f"a sub-query cannot be used in {self.clause}", hint=hint)
        return self._subquery(node)

    # -- types ------------------------------------------------------------------------------------------------------

    def same_kind(self, values: Sequence[Bound], what: str) -> None:
        type_ = pa.null()
        for value in values:
            wider = common_type(type_, value.type)
            if wider is None:
                message = f"{what} have different types: {shown(type_)} and {shown(value.type)}"
                raise self.error(value.origin, "TYPE_MISMATCH", message, hint="Convert them with CAST.")
            type_ = wider

    def called(
        self, name: str, node: exp.Expr, operands: Sequence[Bound], *, nullable: bool = True, what: str
    ) -> Bound:
        """A function or an operator of these operands."""
        call = Call(name, tuple(o.expression for o in operands), pa.null())
        return self.typed(call, node, operands, nullable=nullable, what=what)

    def typed(
        self,
        expression: Call | Case | Literal,
        node: exp.Expr,
        operands: Sequence[Bound],
        *,
        nullable: bool,
        what: str = "expression",
    ) -> Bound:
        """The expression with its type, as DuckDB sees it; what has none is an error at this node."""
        type_, inexact = self._natural(expression, node, operands, what)
        known = evolve(expression, type=type_)
        return Bound(Cast(known, type_) if inexact else known, nullable, node)

    def _natural(
        self, expression: Expression, node: exp.Expr, operands: Sequence[Bound], what: str
    ) -> tuple[pa.DataType, bool]:
        try:
            return natural_type(expression)
        except duckdb.Error as problem:
            raise self._mistyped(node, operands, what, problem) from problem
        except KeyError as problem:
            raise self.error(node, "UNSUPPORTED", f"{what} gives a type that streams do not have") from problem

    def _mistyped(self, node: exp.Expr, operands: Sequence[Bound], what: str, problem: duckdb.Error) -> SqlError:
        if isinstance(problem, duckdb.BinderException) and operands:
            types = " and ".join(shown(o.type) for o in operands)
            hint = "Convert with CAST." if any(pa.types.is_string(o.type) for o in operands) else ""
            return self.error(node, "TYPE_MISMATCH", f"{what} does not take {types}", hint=hint)
        reason = str(problem).partition("\n")[0].partition(": ")[2]
        return self.error(node, "INVALID_EXPRESSION", f"{what} cannot be computed", detail=reason)


def _operands(node: exp.Expr) -> list[exp.Expr]:
    return [node.args[key] for key in ("this", "expression") if isinstance(node.args.get(key), exp.Expr)]


_DAYS = ("DAY", "WEEK", "MONTH", "QUARTER", "YEAR")


def _moves_whole_days(node: exp.Expr, operands: Sequence[Bound]) -> bool:
    """A DATE and a length of whole days or months: a DATE again, as in Spark; DuckDB makes it a TIMESTAMP."""
    if {o.type for o in operands} != {pa.date32(), INTERVAL}:
        return False
    lengths = [o for operand in _operands(node) for o in operand.find_all(exp.Interval)]
    units = [part.name.upper().removesuffix("S") for length in lengths for part in _units(length)]
    return bool(units) and all(unit in _DAYS for unit in units)


def _units(length: exp.Interval) -> list[exp.Expr]:
    unit = length.args.get("unit")
    return [unit.this, unit.expression] if isinstance(unit, exp.IntervalSpan) else [unit or length]


def check_column_type(binder: ExpressionBinder, bound: Bound) -> None:
    """Lengths of time exist only inside expressions."""
    if bound.type == INTERVAL:
        raise binder.error(
            bound.origin,
            "TYPE_MISMATCH",
            "a column cannot be an INTERVAL",
            hint="Use a number, for example: unix_micros(a) - unix_micros(b).",
        )
