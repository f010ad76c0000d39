"""Columns that a declaration computes of those that its rows bring: ``t AS timestamp_millis(ts)``."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen
from sqlglot import exp

from headwater.errors import SqlError
from headwater.expressions.nodes import Expression
from headwater.language.catalog import Catalog
from headwater.language.expressions import ExpressionBinder, check_column_type
from headwater.language.functions.user_functions import functions_of
from headwater.language.scope import Bound, Column, Item, Scope
from headwater.language.text import OfText, error_on
from headwater.model.schema import Field

ROWTIME = "rowtime"
"""The time column where time is an expression that has no name."""


@frozen
class Computed:
    """One column."""

    field: Field
    expression: Expression


class ComputedBinder(OfText):
    """Binds the expressions of one declaration."""

    def __init__(self, text: str, catalog: Catalog, brought: Sequence[Field], *, others: Sequence[str] = ()) -> None:
        """``others``: the names of the columns that are computed, too, and that no expression can read."""
        self.text, self._catalog = text, catalog
        self._others = {name.casefold() for name in others}
        columns = tuple(Column(f.name, f.name, f.type, f.nullable) for f in brought)
        self._binder = ExpressionBinder(Scope(text, (Item(columns),)), "a computed column")

    def bind(self, name: str, node: exp.Expr) -> Computed:
        with functions_of(self._catalog):
            bound = self._bound(node)
        if bound.expression.functions:
            raise self.error(
                node,
                "UNSUPPORTED",
                f'column "{name}" cannot be computed by a function in Python: rows are placed in time before any query runs',
                hint="Call it in a query: CREATE STREAM other AS SELECT *, f(x) AS y FROM this_stream.",
            )
        check_column_type(self._binder, bound)
        return Computed(Field(name, bound.type, bound.nullable), bound.expression)

    def _bound(self, node: exp.Expr) -> Bound:
        try:
            return self._binder.bind(node)
        except SqlError as problem:
            read = (column for column in node.find_all(exp.Column) if column.name.casefold() in self._others)
            other = next(read, None) if problem.code == "UNKNOWN_COLUMN" else None
            if other is None:
                raise
            message = f'column "{other.name}" is computed itself: a computed column can read only what rows bring'
            raise self.error(
                other, "UNKNOWN_COLUMN", message, hint="Write its expression here once more, in parentheses."
            ) from None


def name_of_time(text: str, node: exp.Expr, names: Sequence[str]) -> exp.Expr:
    """What the time is called that a clause computes: as it says, else ``rowtime``."""
    given = node.args.get("column")
    name = ROWTIME if given is None else given.name
    if name.casefold() in {n.casefold() for n in names}:
        raise error_on(
            text,
            given or node,
            "DUPLICATE_COLUMN",
            f'there is a column "{name}" already, so the time needs another name',
            hint="Give it one: ORDERED BY expression AS name.",
        )
    return given or exp.to_identifier(name)
