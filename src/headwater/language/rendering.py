"""From a bound syntax tree to the text that DuckDB computes."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from headwater.model.functions import UserFunction


class Template(exp.Expression):
    """DuckDB text with places for the arguments, as in ``functions``."""

    arg_types: ClassVar = {"this": True, "expressions": False}


class UserCall(Template):
    """A call of a function of the user's; ``function`` is its definition."""

    arg_types: ClassVar = {"this": True, "expressions": False, "function": True}


_ATOMS = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Cast, exp.Case, Template)


def _argument(generator: DuckDB.Generator, node: exp.Expr) -> str:
    text = generator.sql(node)
    return text if isinstance(node, _ATOMS) else f"({text})"


def _template(generator: DuckDB.Generator, node: Template) -> str:
    arguments = [_argument(generator, e) for e in node.expressions]
    listed = {"args": ", ".join(arguments), "rest": ", ".join(arguments[1:]), "concat": " || ".join(arguments)}
    return node.this.format(*arguments, **listed)


def _bitwise(generator: DuckDB.Generator, node: exp.Expr) -> str:
    """In parentheses: to DuckDB these operators are all alike, and ``~`` binds looser than arithmetic."""
    if isinstance(node, exp.BitwiseNot):
        return f"(~{_argument(generator, node.this)})"
    left, right = (_argument(generator, operand) for operand in (node.this, node.expression))
    return f"({left} {'&' if isinstance(node, exp.BitwiseAnd) else '|'} {right})"


_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_TESTS = (*_COMPARISONS, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.Not)
"""What gives true or false without parentheses of its own."""


class _Generator(DuckDB.Generator):
    TRANSFORMS: ClassVar = {
        **DuckDB.Generator.TRANSFORMS,
        Template: _template,
        UserCall: _template,
        **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseNot), _bitwise),
    }

    def binary(self, expression: exp.Binary, op: str) -> str:
        """DuckDB refuses comparisons of comparisons without parentheses."""
        sides = (expression.this, expression.expression)
        if isinstance(expression, _COMPARISONS) and any(isinstance(side, _TESTS) for side in sides):
            return f"{self._compared(sides[0])} {op} {self._compared(sides[1])}"
        return super().binary(expression, op)

    def _compared(self, node: exp.Expr) -> str:
        return f"({self.sql(node)})" if isinstance(node, _TESTS) else self.sql(node)

    def div_sql(self, expression: exp.Div) -> str:
        """A chain is otherwise written as a whole, and only its last divisor looked at: NULL where it is 0 (Spark)."""
        if isinstance(expression.this, exp.Div):
            expression = expression.copy()
            expression.set("this", exp.Paren(this=expression.this))
        return super().div_sql(expression)

    def between_sql(self, expression: exp.Between) -> str:
        parts = [self._compared(expression.args[part]) for part in ("this", "low", "high")]
        return f"{parts[0]} BETWEEN {parts[1]} AND {parts[2]}"

    def in_sql(self, expression: exp.In) -> str:
        if isinstance(expression.this, _TESTS):
            expression = exp.In(this=exp.Paren(this=expression.this.copy()), expressions=expression.expressions)
        return super().in_sql(expression)


class _Dialect(DuckDB):
    Generator = _Generator


_DIALECT = _Dialect()


def render(node: exp.Expr) -> str:
    """The DuckDB text of a bound expression."""
    return _DIALECT.generate(node, comments=False)


def user_functions(node: exp.Expr) -> tuple[UserFunction, ...]:
    """The functions of the user's that the expression calls, each once."""
    return tuple(dict.fromkeys(call.args["function"] for call in node.find_all(UserCall)))


def column_node(name: str) -> exp.Column:
    """A column of a plan, by its own name."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))
