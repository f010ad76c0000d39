"""Binding of scalar expressions: names become columns of the plan, calls become DuckDB text, types are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.expressions import can_fail
from headwater.errors import SqlError
from headwater.language.arithmetic import ARITHMETIC, meeting, remainder, spark_operands, whole_quotient
from headwater.language.casts import as_text, can_be, cast_text, converted
from headwater.language.functions.calls import bind_call, bind_special_form, refused_constant
from headwater.language.rendering import Template, column_node
from headwater.language.scope import Bound, Scope, struct_field
from headwater.language.subqueries.conditions import as_value
from headwater.language.text import error_on
from headwater.language.types import (
    INTERVAL,
    TYPE_NAMES,
    common_type,
    comparable,
    declared_type,
    duckdb_name,
    infer,
    is_nested,
    shown,
    written_type,
)

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "DIV",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.Neg: "-",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseNot: "~",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
    exp.RegexpLike: "RLIKE",
    exp.Is: "IS",
}
_NEVER_NULL_OF_NON_NULL = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.DPipe, exp.And, exp.Or, exp.Not)
COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
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
    ) -> None:
        self.scope, self.clause = scope, clause
        self._aggregate, self._subquery, self._window = aggregate, subquery, window

    def error(self, node: exp.Expr, code: str, message: str, *, detail: str = "", hint: str = "") -> SqlError:
        return error_on(self.scope.text, node, code, message, detail=detail, hint=hint)

    def predicate(self, node: exp.Expr) -> Bound:
        """An expression that must be true or false."""
        return self.boolean(self.bind(node), self.clause)

    def bind(self, node: exp.Expr) -> Bound:
        if as_value(node) is not None:
            return self._on_subquery(node)
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Literal() | exp.Boolean() | exp.Null():
                return self.typed(node.copy(), node, [], nullable=isinstance(node, exp.Null))
            case exp.Paren():
                inner = self.bind(node.this)
                return Bound(exp.Paren(this=inner.node), inner.type, inner.nullable, node)
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
            case exp.Dot() if isinstance(node.expression, exp.Identifier):
                return struct_field(self.scope.text, self.bind(node.this), node.expression.name)
            case exp.Extract() | exp.Substring() | exp.Trim() | exp.StrPosition():
                return bind_special_form(self, node)
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return self._on_subquery(node)
            case exp.Any() | exp.All():
                word = type(node).__name__.upper()
                raise self.error(node, "UNSUPPORTED", f"{word} (…) can be compared by =, <>, <, <=, > and >= only")
            case exp.Filter() | exp.GroupConcat() | exp.WithinGroup():
                return self.aggregated(node)
            case exp.Window():
                return self._over(node)
            case exp.Like() | exp.ILike() if not isinstance(node.expression, (exp.Any, exp.All)):
                return self._like(node)
            case exp.Escape() if isinstance(node.this, (exp.Like, exp.ILike)):
                return self._like(node.this, node.expression)
            case exp.Anonymous():
                return bind_call(self, node)
            case exp.Star():
                raise self.error(node, "SYNTAX", '"*" cannot be used here')
        if isinstance(node, COMPARISONS):
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
            return bound.cast(pa.bool_(), "BOOLEAN")
        raise self.error(
            bound.origin,
            "TYPE_MISMATCH",
            f"{what} must be BOOLEAN, not {shown(bound.type)}",
            hint="Compare it with something, for example: … <> 0." if pa.types.is_integer(bound.type) else "",
        )

    def _logic(self, node: exp.And | exp.Or | exp.Not) -> Bound:
        word = type(node).__name__.upper()
        operands = [self.boolean(self.bind(o), f"the operand of {word}") for o in _operands(node)]
        nullable = any(o.nullable for o in operands)
        if not isinstance(node, exp.Not) and can_fail(operands[1].scalar()):
            return Bound(_guarded(node, operands), pa.bool_(), nullable, node)
        rebuilt = type(node)(**dict(zip(("this", "expression"), (o.node for o in operands), strict=False)))
        return Bound(rebuilt, pa.bool_(), nullable, node)

    def _comparison(self, node: exp.Expr) -> Bound:
        left, right = self.comparands(self.bind(node.this), self.bind(node.expression))
        rebuilt = type(node)(this=left.node, expression=right.node)
        null_safe = isinstance(node, (exp.NullSafeEQ, exp.NullSafeNEQ))
        return Bound(rebuilt, pa.bool_(), not null_safe and (left.nullable or right.nullable), node)

    def comparands(self, left: Bound, right: Bound) -> tuple[Bound, Bound]:
        """The two sides of a comparison; a string literal takes the type of the other side."""
        if comparable(left.type, right.type):
            return left, right
        if _is_string_literal(right.node):
            return left, self._literal_as(right, left.type)
        if _is_string_literal(left.node):
            return self._literal_as(left, right.type), right
        raise self.error(
            left.origin.parent or left.origin,
            "TYPE_MISMATCH",
            f"cannot compare {shown(left.type)} with {shown(right.type)}",
            hint=f"Convert one of them, for example: CAST(… AS {shown(left.type)}).",
        )

    def _literal_as(self, bound: Bound, type_: pa.DataType) -> Bound:
        """A text constant as what it is compared with: a DECIMAL with a DOUBLE, for it may have more digits."""
        read = pa.float64() if pa.types.is_decimal(type_) else type_
        if is_nested(type_) or not can_be(bound.node.name, read):
            raise self.error(
                bound.origin, "TYPE_MISMATCH", f"cannot compare {shown(type_)} with the STRING '{bound.node.name}'"
            )
        return converted(bound, read)

    def _between(self, node: exp.Between) -> Bound:
        value = self.bind(node.this)
        _, low = self.comparands(value, self.bind(node.args["low"]))
        _, high = self.comparands(value, self.bind(node.args["high"]))
        rebuilt = exp.Between(this=value.node, low=low.node, high=high.node)
        return Bound(rebuilt, pa.bool_(), value.nullable or low.nullable or high.nullable, node)

    def _in(self, node: exp.In) -> Bound:
        value = self.bind(node.this)
        listed = [self.comparands(value, self.bind(e))[1] for e in node.expressions]
        rebuilt = exp.In(this=value.node, expressions=[b.node for b in listed])
        return Bound(rebuilt, pa.bool_(), value.nullable or any(b.nullable for b in listed), node)

    # -- values -----------------------------------------------------------------------------------------------------

    def _operator(self, node: exp.Expr) -> Bound:
        operands = [self.bind(o) for o in _operands(node)]
        what = f'operator "{_OPERATORS[type(node)]}"'
        if isinstance(node, ARITHMETIC):
            operands = spark_operands(type(node), operands)
        template = self._special_arithmetic(node, operands, what)
        if template is not None:
            return self.typed(template, node, operands, nullable=True, what=what)
        if isinstance(node, exp.DPipe):
            operands = [as_text(o) for o in operands]
        rebuilt = type(node)(
            **{k: v for k, v in node.args.items() if not isinstance(v, exp.Expr)},
            **dict(zip(("this", "expression"), (o.node for o in operands), strict=False)),
        )
        strict = isinstance(node, _NEVER_NULL_OF_NON_NULL)
        nullable = not isinstance(node, exp.Is) and not (strict and not any(o.nullable for o in operands))
        bound = self.typed(rebuilt, node, operands, nullable=nullable, what=what)
        if isinstance(node, (exp.Add, exp.Sub)) and _moves_whole_days(node, operands):
            return bound.cast(pa.date32(), "DATE")
        return bound

    def _special_arithmetic(self, node: exp.Expr, operands: list[Bound], what: str) -> Template | None:
        if isinstance(node, exp.IntDiv) and (template := whole_quotient(operands)) is None:
            types = " and ".join(shown(o.type) for o in operands)
            hint = "CAST to BIGINT or DECIMAL cuts a fraction off."
            raise self.error(node, "TYPE_MISMATCH", f"{what} does not take {types}", hint=hint)
        if isinstance(node, exp.IntDiv):
            return template
        if isinstance(node, exp.Mod) and not (
            isinstance(operands[1].node, exp.Literal) and operands[1].node.name != "0"
        ):
            return remainder(operands)
        return None

    def _like(self, node: exp.Expr, escape: exp.Expr | None = None) -> Bound:
        """As in Spark: a backslash takes its meaning from ``%`` and ``_``, if ESCAPE names no other character."""
        pattern = node.expression
        if escape is None and _is_string_literal(pattern) and "\\" not in pattern.name:
            return self._operator(node)
        character = "\\" if escape is None else escape.name
        if escape is not None and not (_is_string_literal(escape) and len(character) == 1):
            raise self.error(escape, "WRONG_ARGUMENTS", "ESCAPE takes a string of one character")
        operands = [self.bind(node.this), self.bind(pattern)]
        word = _OPERATORS[type(node)]
        written = {"'": "''", "{": "{{", "}": "}}"}.get(character, character)
        test = f"({{0}} {'NOT ' if node.args.get('negate') else ''}{word} {{1}} ESCAPE '{written}')"
        template = Template(this=test, expressions=[o.node for o in operands])
        return self.typed(template, node, operands, nullable=True, what=f'operator "{word}"')

    def _case(self, node: exp.Case) -> Bound:
        subject = self.bind(node.this) if node.this else None
        branches, conditions, results = [], [], []
        for branch in node.args["ifs"]:
            condition = self.bind(branch.this)
            if subject is None:
                condition = self.boolean(condition, "the condition after WHEN")
            else:
                _, condition = self.comparands(subject, condition)
            result = self.bind(branch.args["true"])
            branches.append(exp.If(this=condition.node, true=result.node))
            conditions.append(condition)
            results.append(result)
        default = self.bind(node.args["default"]) if node.args.get("default") else None
        if default:
            results.append(default)
        self.same_kind(results, "the results of CASE")
        results = meeting(results)
        branches = [exp.If(this=b.this, true=r.node) for b, r in zip(branches, results, strict=False)]
        default = results[-1] if default else None
        rebuilt = exp.Case(
            this=subject.node if subject else None, ifs=branches, default=default.node if default else None
        )
        return self.typed(rebuilt, node, [*([subject] if subject else []), *conditions, *results], nullable=True)

    def _cast(self, node: exp.Cast) -> Bound:
        value, target = self.bind(node.this), declared_type(node.args["to"])
        if target is None:
            message = f"there is no type {written_type(node.args['to'])}"
            raise self.error(node, "UNKNOWN_TYPE", message, hint=f"There are {TYPE_NAMES}.")
        attempt = isinstance(node, exp.TryCast)
        text = cast_text(value.type, target, attempt=attempt)
        what = f"{'TRY_CAST' if attempt else 'CAST'} to {shown(target)}"
        if text is None:
            raise self.error(node, "TYPE_MISMATCH", f"{what} does not take {shown(value.type)}")
        if _is_string_literal(value.node):
            return evolve(converted(value, target, attempt=attempt), origin=node, nullable=attempt)
        template = Template(this=text, expressions=[value.node])
        nullable = value.nullable or attempt or (pa.types.is_floating(value.type) and pa.types.is_decimal(target))
        checked = self.typed(template, node, [value], nullable=nullable, what=what)
        return Bound(checked.node, target, nullable, node)

    def _interval(self, node: exp.Interval) -> Bound:
        if not isinstance(node.this, exp.Literal):
            raise self.error(node, "UNSUPPORTED", "the length of an INTERVAL must be a constant")
        return self.typed(node.copy(), node, [], nullable=False, what="INTERVAL")

    def _element(self, node: exp.Bracket) -> Bound:
        operands = [self.bind(node.this), *(self.bind(e) for e in node.expressions)]
        if not pa.types.is_list(operands[0].type):  # DuckDB would take a letter of a string
            types = " and ".join(shown(o.type) for o in operands)
            raise self.error(node, "TYPE_MISMATCH", f'operator "[]" does not take {types}')
        # From 0 on; a negative place is none.
        template = Template(
            this="CASE WHEN {1} >= 0 THEN LIST_EXTRACT({0}, {1} + 1) END", expressions=[o.node for o in operands]
        )
        return self.typed(template, node, operands, nullable=True, what='operator "[]"')

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

    def typed(
        self, rebuilt: exp.Expr, node: exp.Expr, operands: Sequence[Bound], *, nullable: bool, what: str = "expression"
    ) -> Bound:
        """The expression with its type, as DuckDB sees it; what has none is an error at this node."""
        skeleton = Bound(_skeleton(rebuilt, operands), pa.null(), nullable, node)
        try:
            type_, inexact = infer(skeleton.sql, tuple(skeleton.types.items()))
        except duckdb.Error as problem:
            raise self._mistyped(node, operands, what, problem) from problem
        except KeyError as problem:
            raise self.error(node, "UNSUPPORTED", f"{what} gives a type that streams do not have") from problem
        bound = Bound(rebuilt, type_, nullable, node)
        if inexact:
            return Bound(bound.cast(pa.null(), duckdb_name(type_)).node, type_, nullable, node)
        return bound

    def _mistyped(self, node: exp.Expr, operands: Sequence[Bound], what: str, problem: duckdb.Error) -> SqlError:
        if isinstance(problem, duckdb.BinderException) and operands:
            types = " and ".join(shown(o.type) for o in operands)
            hint = "Convert with CAST." if any(pa.types.is_string(o.type) for o in operands) else ""
            return self.error(node, "TYPE_MISMATCH", f"{what} does not take {types}", hint=hint)
        reason = str(problem).partition("\n")[0].partition(": ")[2]
        return self.error(node, "INVALID_EXPRESSION", f"{what} cannot be computed", detail=reason)


def _operands(node: exp.Expr) -> list[exp.Expr]:
    return [node.args[key] for key in ("this", "expression") if isinstance(node.args.get(key), exp.Expr)]


def _skeleton(rebuilt: exp.Expr, operands: Sequence[Bound]) -> exp.Expr:
    """The expression with columns instead of its operands: its type depends on theirs only.

    Literals stay, for DuckDB gives them the type that fits best.
    """
    columns: dict[int, exp.Expr] = {}
    for i, operand in enumerate(operands):
        if not _is_atomic(operand.node):
            column = column_node(f"operand {i}")
            column.meta["type"] = operand.type
            columns[id(operand.node)] = column

    def abstracted(value: Any) -> Any:
        if isinstance(value, list):
            return [abstracted(v) for v in value]
        if not isinstance(value, exp.Expr) or _is_atomic(value):
            return value.copy() if isinstance(value, exp.Expr) else value
        if id(value) in columns:
            return columns[id(value)].copy()
        return type(value)(**{key: abstracted(v) for key, v in value.args.items()})

    return abstracted(rebuilt)


def _is_atomic(node: exp.Expr) -> bool:
    if isinstance(node, (exp.Paren, exp.Neg)):
        return _is_atomic(node.this)
    return isinstance(node, (exp.Column, exp.Literal, exp.Boolean, exp.Null))


def _is_string_literal(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _guarded(node: exp.Expr, operands: Sequence[Bound]) -> Template:
    """AND and OR whose second side can fail: not computed where the first decides. DuckDB would compute both."""
    decided = "({0}) IS FALSE THEN FALSE" if isinstance(node, exp.And) else "{0} THEN TRUE"
    word = "AND" if isinstance(node, exp.And) else "OR"
    return Template(this=f"CASE WHEN {decided} ELSE ({{0}} {word} {{1}}) END", expressions=[o.node for o in operands])


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
