"""From a bound syntax tree to the text that DuckDB computes."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB


class Template(exp.Expression):
    """DuckDB text with places for the arguments, as in ``functions``."""

    arg_types: ClassVar = {"this": True, "expressions": False}


_ATOMS = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Cast, exp.Case, Template)


def _argument(generator: DuckDB.Generator, node: exp.Expr) -> str:
    text = generator.sql(node)
    return text if isinstance(node, _ATOMS) else f"({text})"


def _template(generator: DuckDB.Generator, node: Template) -> str:
    arguments = [_argument(generator, e) for e in node.expressions]
    return node.this.format(*arguments, args=", ".join(arguments), concat=" || ".join(arguments))


class _Generator(DuckDB.Generator):
    TRANSFORMS: ClassVar = {**DuckDB.Generator.TRANSFORMS, Template: _template}


class _Dialect(DuckDB):
    Generator = _Generator


_DIALECT = _Dialect()


def render(node: exp.Expr) -> str:
    """The DuckDB text of a bound expression."""
    return _DIALECT.generate(node, comments=False)


def column_node(name: str) -> exp.Column:
    """A column of a plan, by its own name."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))
