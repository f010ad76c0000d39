"""The arguments of aggregates: DISTINCT, several of them, shares, separators and orders, as the algebra takes them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import evolve, frozen
from sqlglot import exp

from headwater.errors import SqlError
from headwater.expressions.aggregates import FORMS, Aggregate, packed
from headwater.expressions.functions.record import arity
from headwater.expressions.nodes import Call, Cast, Expression, Literal
from headwater.expressions.types import is_nested, is_numeric
from headwater.language.casts import converted
from headwater.language.expressions import ExpressionBinder, Hook, check_column_type
from headwater.language.functions.user_functions import takes
from headwater.language.scope import Bound, Scope
from headwater.language.text import error_on
from headwater.language.types import shown

_OF_NULL = (pa.string(), pa.float64(), pa.bool_())  # what NULL is taken for, as in Spark
_OF_NULLS = ("FIRST", "LAST", "ANY_VALUE")
_SHARE_HINT = "For example: PERCENTILE(price, 0.95), or PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY price)."


@frozen(eq=False)
class Written:
    """A call as it is written: the function, and what stands behind its parentheses."""

    node: exp.Expr
    name: str
    function: Aggregate
    within: exp.Expr | None = None
    """WITHIN GROUP (ORDER BY …)."""
    ignores_nulls: bool | None = None
    """IGNORE NULLS or RESPECT NULLS, if one of them is said."""


@frozen(eq=False)
class Given:
    """What the algebra takes of a call: one argument (None for ``*``), and constants."""

    argument: Bound | None
    distinct: bool = False
    parameters: tuple[object, ...] = ()
    function: str = ""
    """The aggregate of the algebra, where it is the arguments that tell."""
    shares: tuple[tuple[object, ...], ...] | None = None
    """Of several shares, the parameters of each."""


@frozen(eq=False)
class _Inside:
    """The parts of the parentheses."""

    arguments: list[exp.Expr]
    distinct: bool
    order: list[exp.Expr]
    ignores_nulls: bool | None = None


class AggregateArguments:
    """Binds what stands in the parentheses of calls; ``inner`` is told of aggregates in it, ``subquery`` of sub-queries."""

    def __init__(self, scope: Scope, inner: Hook | None, subquery: Hook | None = None) -> None:
        self.scope, self._inner, self._subquery = scope, inner, subquery

    def error(self, node: exp.Expr, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.scope.text, node, code, message, hint=hint)

    def of(self, call: Written) -> Given:
        inside, function, name = _opened(call), call.function, call.name
        if name == "COUNT" and not inside.distinct and _is_of_rows(inside.arguments):
            return Given(None)
        if inside.ignores_nulls is not None and function.name not in _OF_NULLS:
            hint = f"{name} leaves NULLs out anyway." if not function.nulls else "Write FILTER (WHERE x IS NOT NULL)."
            raise self.error(
                call.node, "UNSUPPORTED", f"{name} takes neither IGNORE NULLS nor RESPECT NULLS", hint=hint
            )
        if function.form in ("share", "rough share"):
            return self._at_share(call, inside)
        if call.within is not None and function.name == "MODE" and not inside.arguments:
            (by,) = inside.order[:1]
            inside = evolve(inside, arguments=[by.this], order=[by] if by.args.get("desc") else [])
        self._check_number(call, inside.arguments)
        if inside.order and not function.in_order:
            raise self._has_no_order(call, inside)
        if function.parameters:
            return Given(self._converted(call, inside.arguments), inside.distinct)
        match function.form:
            case "pair":
                return Given(self._pair(call, inside.arguments), inside.distinct)
            case "by":
                return Given(self._by(call, inside.arguments))
            case "time":
                return Given(self._by_time(call, inside))
            case "list":
                separator = self._separator(inside.arguments[1:])
                return self._in_order(call, inside, (separator,))
            case "rough":
                inside.arguments[1:] = []  # how far from the exact result an approximation may be
        if name == "COUNT" and len(inside.arguments) > 1:
            arguments = [typed_null(self._bound(g), pa.string()).expression for g in inside.arguments]
            return Given(self._packed(arguments, arguments, inside.arguments[0]), inside.distinct)
        return self._in_order(call, inside, ())

    def _check_number(self, call: Written, given: Sequence[exp.Expr]) -> None:
        least, most = FORMS[call.function.form]
        if call.function.parameters:
            least = most = len(call.function.parameters)
        if call.name == "COUNT" and given:
            return
        if not least <= len(given) <= most:
            message = f'aggregate "{call.name}" takes {arity(least, most)}, not {len(given)}'
            raise self.error(call.node, "WRONG_ARGUMENTS", message)

    def _bound(self, node: exp.Expr) -> Bound:
        binder = ExpressionBinder(self.scope, "an aggregate", aggregate=self._inner, subquery=self._subquery)
        bound = binder.bind(node)
        check_column_type(binder, bound)
        return bound

    # -- several arguments ------------------------------------------------------------------------------------------

    def _packed(self, values: Sequence[Expression], unless_null: Sequence[Expression], origin: exp.Expr) -> Bound:
        return Bound(packed(values, unless_null=unless_null), True, origin)

    def _pair(self, call: Written, given: Sequence[exp.Expr]) -> Bound:
        values = []
        for node in given:
            bound = typed_null(self._bound(node), pa.float64())
            if not is_numeric(bound.type):
                raise self._wrong_type(call, node, bound.type)
            values.append(bound.cast(pa.float64()).expression)
        return self._packed(values, values, given[0])

    def _by(self, call: Written, given: Sequence[exp.Expr]) -> Bound:
        """The value behind what it is ordered by; where that is NULL, there is no place for it."""
        value, by = (typed_null(self._bound(node), pa.string()) for node in given)
        if is_nested(by.type):
            message = f"{call.name} orders by a value that can be ordered, not by {shown(by.type)}"
            raise self.error(given[1], "TYPE_MISMATCH", message)
        return self._packed([by.expression, value.expression], [by.expression], given[0])

    def _by_time(self, call: Written, inside: _Inside) -> Bound:
        """FIRST and LAST: the value behind the time of its row."""
        value = typed_null(self._bound(inside.arguments[0]), pa.string()).expression
        time = self._time(call, inside.arguments[0])
        ignores = inside.ignores_nulls
        for flag in inside.arguments[1:]:  # Spark: FIRST(x, TRUE)
            if not isinstance(flag, exp.Boolean):
                hint = f"Write {call.name}(x) IGNORE NULLS."
                raise self.error(flag, "WRONG_ARGUMENTS", f"{call.name} takes TRUE or FALSE here", hint=hint)
            ignores = bool(flag.this)
        return self._packed([time, value], [time, value] if ignores else [time], inside.arguments[0])

    def _time(self, call: Written, value: exp.Expr) -> Expression:
        found = [(i, c) for i in self.scope.items if i.time is not None for c in i.columns if c.name == i.time]
        if len(found) == 1:
            return Bound.of_column(found[0][1], value).expression
        other = "MIN_BY" if call.function.means == "MIN_BY" else "MAX_BY"
        text = value.sql("spark")
        if found:
            times = " or ".join(f"{other}({text}, {i.label}.{c.name})" for i, c in found)
            raise self.error(call.node, "TIME_COLUMN", f"{call.name} could go by several times", hint=f"Write {times}.")
        hint = f"Say what to go by: {other}({text}, column)."
        raise self.error(
            call.node, "TIME_COLUMN", f"{call.name} needs the time of rows, which none has here", hint=hint
        )

    def _converted(self, call: Written, given: Sequence[exp.Expr]) -> Bound:
        """The arguments as the parameters of an aggregate of a user."""
        values = []
        for node, (name, type_) in zip(given, call.function.parameters, strict=True):
            bound = typed_null(self._bound(node), type_)
            if not takes(type_, bound.type, literal=False):
                if len(given) == 1:
                    raise self._wrong_type(call, call.node, bound.type)
                message = (
                    f'parameter "{name}" of aggregate "{call.name}" is {shown(type_)}, which {shown(bound.type)} is not'
                )
                raise self.error(node, "TYPE_MISMATCH", message, hint=f"Convert it: CAST(… AS {shown(type_)}).")
            values.append(bound)
        if len(values) == 1:
            return values[0].cast(call.function.parameters[0][1])
        types = [type_ for _, type_ in call.function.parameters]
        expressions = [converted(value, type_).expression for value, type_ in zip(values, types, strict=True)]
        return self._packed(expressions, expressions, given[0])

    def _wrong_type(self, call: Written, node: exp.Expr, type_: pa.DataType) -> SqlError:
        return self.error(node, "TYPE_MISMATCH", f"{call.name} takes {call.function.takes}, not {shown(type_)}")

    # -- order ------------------------------------------------------------------------------------------------------

    def _in_order(self, call: Written, inside: _Inside, parameters: tuple[object, ...]) -> Given:
        """One argument; where an order is said that is not its own, behind the values that it is ordered by."""
        function, node = call.function, inside.arguments[0]
        argument = self._bound(node)
        of_null = (t for t in _OF_NULL if function.result(t) is not None)
        argument = typed_null(argument, next(of_null, pa.float64()))
        if function.result(argument.type) is None:
            raise self._wrong_type(call, call.node, argument.type)
        distinct = inside.distinct or function.always_distinct
        keys = [(self._bound(by.this), _way(by)) for by in inside.order]
        if all(key.expression == argument.expression and way == "ASC NULLS FIRST" for key, way in keys):
            return Given(argument, distinct, parameters)
        for (key, _), by in zip(keys, inside.order, strict=True):
            if is_nested(key.type):
                message = f"ORDER BY takes a value that can be ordered, not {shown(key.type)}"
                raise self.error(by, "TYPE_MISMATCH", message)
            if distinct and key.expression != argument.expression:
                message = f"{call.name} with DISTINCT can be ordered by its own values only"
                hint = f"Write ORDER BY {node.sql('spark')}, or leave DISTINCT out."
                raise self.error(by, "UNSUPPORTED", message, hint=hint)
        values = [*(key.expression for key, _ in keys), argument.expression]
        whole = self._packed(values, () if function.nulls else [argument.expression], node)
        return Given(whole, distinct, (*parameters, *(way for _, way in keys)), function.in_order)

    def _has_no_order(self, call: Written, inside: _Inside) -> SqlError:
        name = call.name
        if call.function.form == "time" and len(inside.order) == 1:
            down = bool(inside.order[0].args.get("desc")) != (call.function.means == "MAX_BY")
            text = ", ".join(node.sql("spark") for node in (inside.arguments[0], inside.order[0].this))
            hint = f"Write {'MAX_BY' if down else 'MIN_BY'}({text})."
        elif call.function.always_distinct or call.function.name == "MODE":
            hint = "Its order is that of the values, ascending."
        else:
            hint = "Its result does not depend on an order: leave it out."
        where = "WITHIN GROUP" if call.within is not None else "ORDER BY inside"
        message = f"{where} {name} is not supported" if call.within is None else f"{name} takes no WITHIN GROUP"
        return self.error(inside.order[0], "UNSUPPORTED", message, hint=hint)

    def _separator(self, given: Sequence[exp.Expr]) -> str:
        for node in given:
            if not (isinstance(node, exp.Literal) and node.is_string):
                raise self.error(node, "WRONG_ARGUMENTS", "the separator of LISTAGG must be a constant string")
        return str(given[0].this) if given else ""

    # -- shares -----------------------------------------------------------------------------------------------------

    def _at_share(self, call: Written, inside: _Inside) -> Given:
        """``PERCENTILE(x, 0.5)`` or ``PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)``; the share a constant, or several."""
        given, way = inside.arguments, ()
        if inside.order:
            if call.within is None or len(inside.order) != 1 or len(given) != 1:
                raise self.error(
                    call.node, "WRONG_ARGUMENTS", f"{call.name} has one share and one order", hint=_SHARE_HINT
                )
            (by,) = inside.order
            given, way = [by.this, *given], ("DESC",) if by.args.get("desc") else ()
        if call.name in ("PERCENTILE_CONT", "PERCENTILE_DISC") and not inside.order:
            hint = f"Write {call.name}(0.5) WITHIN GROUP (ORDER BY price)."
            raise self.error(call.node, "WRONG_ARGUMENTS", f"{call.name} needs WITHIN GROUP", hint=hint)
        self._check_number(call, given)
        argument = typed_null(self._bound(given[0]), pa.float64())
        if call.function.result(argument.type) is None:
            raise self._wrong_type(call, given[0], argument.type)
        share = self._bound(given[1]).expression
        if isinstance(share, Call) and share.name == "array":
            shares = tuple((self._share(part, given[1]), *way) for part in share.arguments)
            return Given(argument, inside.distinct, shares[0], shares=shares)
        return Given(argument, inside.distinct, (self._share(share, given[1]), *way))

    def _share(self, expression: Expression, node: exp.Expr) -> float:
        while isinstance(expression, Cast):
            expression = expression.argument
        value = expression.value if isinstance(expression, Literal) and is_numeric(expression.type) else None
        if value is None or not 0 <= float(str(value)) <= 1:
            message = "the share of values must be a constant from 0 to 1"
            raise self.error(node, "WRONG_ARGUMENTS", message, hint=_SHARE_HINT)
        return float(str(value))


def _opened(call: Written) -> _Inside:
    """The arguments, with or without DISTINCT, and the order, inside of the parentheses or behind them."""
    node = call.node
    separator = [s for s in [node.args.get("separator")] if s is not None] if isinstance(node, exp.GroupConcat) else []
    given: list[exp.Expr] = [node.this] if isinstance(node, exp.GroupConcat) else list(node.expressions)
    order: list[exp.Expr] = list(call.within.expressions) if call.within is not None else []
    ignores = call.ignores_nulls
    if given and isinstance(given[-1], exp.Order):
        order = list(given[-1].expressions)
        given[-1] = given[-1].this
    distinct = bool(given) and isinstance(given[0], exp.Distinct)
    if distinct:
        given[:1] = given[0].expressions
    if given and isinstance(given[0], (exp.IgnoreNulls, exp.RespectNulls)):
        ignores = isinstance(given[0], exp.IgnoreNulls)
        given[0] = given[0].this
    return _Inside([*given, *separator], distinct, order, ignores)


def _is_of_rows(given: Sequence[exp.Expr]) -> bool:
    """``COUNT(*)``, or of a constant."""
    return len(given) == 1 and isinstance(given[0], (exp.Star, exp.Literal))


def _way(by: exp.Expr) -> str:
    return f"{'DESC' if by.args.get('desc') else 'ASC'} NULLS {'FIRST' if by.args.get('nulls_first') else 'LAST'}"


def typed_null(bound: Bound, type_: pa.DataType) -> Bound:
    """A NULL without a type as one of this type."""
    return bound.cast(type_) if pa.types.is_null(bound.type) else bound
