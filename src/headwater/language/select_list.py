"""The select list: stars spread out, columns named, the projection made."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import frozen
from sqlglot import exp

from headwater.algebra.nodes import Plan
from headwater.language.expressions import ExpressionBinder, check_column_type
from headwater.language.notices import Notice
from headwater.language.scope import Bound, Column, NameSource, Relation, Scope, project
from headwater.language.text import error_on

_RELATION_TO_STREAM = frozenset({"ISTREAM", "DSTREAM", "RSTREAM"})


@frozen
class Chosen:
    """One column of the select list: an expression under a name."""

    name: str
    node: exp.Expr
    column: Column | None = None
    """The column, when a star stands for it."""
    aliased: bool = False


class SelectList:
    """What stands between SELECT and FROM."""

    def __init__(self, text: str, node: exp.Select) -> None:
        self.text, self._node = text, node
        self._written: list[exp.Expr] = list(node.expressions)
        self.relation_to_stream: str | None = None
        if len(self._written) == 1:
            self._unwrap(self._written[0], distinct=bool(node.args.get("distinct")))

    def _unwrap(self, only: exp.Expr, *, distinct: bool) -> None:
        """``DISTINCT(a, b)`` is no tuple (Krämer, Example 17.7); ``Istream(a, b)`` is a query of a and b (CQL)."""
        if distinct and isinstance(only, exp.Tuple):
            self._written = list(only.expressions)
        elif isinstance(only, exp.Anonymous) and only.name.upper() in _RELATION_TO_STREAM and only.expressions:
            self.relation_to_stream = only.name.upper()
            self._written = list(only.expressions)

    def expand(self, scope: Scope) -> list[Chosen]:
        """Every column of the result, stars spread out."""
        chosen: list[Chosen] = []
        if not self._written:
            raise error_on(self.text, self._node, "SYNTAX", "the select list is empty")
        for node in self._written:
            star = node.this if isinstance(node, exp.Column) else node
            if isinstance(star, exp.Star):
                if star.args.get("except_") or star.args.get("replace") or star.args.get("rename"):
                    raise error_on(self.text, node, "UNSUPPORTED", "* EXCEPT, REPLACE and RENAME are not supported")
                qualifier = node.args.get("table") if isinstance(node, exp.Column) else None
                chosen.extend(Chosen(c.name, node, c) for c in scope.star(qualifier))
            elif isinstance(node, exp.Alias):
                chosen.append(Chosen(node.alias, node.this, aliased=True))
            elif isinstance(node, (exp.Aliases, exp.Tuple)):
                raise error_on(self.text, node, "UNSUPPORTED", "a column cannot be a list of expressions")
            else:
                chosen.append(Chosen(_default_name(node), node))
        self._chosen = chosen
        self._scope = scope
        return chosen

    def project(
        self, relation: Relation, outputs: Sequence[Bound], notices: list[Notice]
    ) -> tuple[Plan, tuple[Column, ...]]:
        """The projection to the columns under their names; a name that comes twice gets a number."""
        names = NameSource()
        owners = {c.internal: item.label for item in self._scope.items for c in item.columns}
        expressions, columns = [], []
        for chosen, output in zip(self._chosen, outputs, strict=True):
            check_column_type(ExpressionBinder(self._scope, "SELECT"), output)
            bound = output.cast(pa.string(), "VARCHAR") if pa.types.is_null(output.type) else output
            name = names.unique(chosen.name)
            if name != chosen.name:
                message = f'a second column "{chosen.name}" is called "{name}"'
                notices.append(Notice("RENAMED_COLUMN", message, "Give it a name of its own with AS."))
            expressions.append((name, bound.scalar()))
            qualifier = owners.get(bound.column or "")
            columns.append(Column(name, name, bound.type, bound.nullable, qualifier))
        return project(relation.plan, expressions), tuple(columns)


def _default_name(node: exp.Expr) -> str:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, (exp.Column, exp.Dot)):
        return node.name
    return node.sql(dialect="spark", normalize_functions="lower", comments=False)
