"""Joins that say of which instant the other side is: FOR SYSTEM_TIME AS OF (Flink) and ASOF JOIN (DuckDB, Snowflake).

Both are plain joins here: a row of a stream without a window meets what is valid at its own instant.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define
from sqlglot import exp

from headwater.algebra.nodes import RowWindow
from headwater.algebra.properties import is_chronon, row_times
from headwater.errors import SqlError
from headwater.language.expressions import ExpressionBinder
from headwater.language.relations.from_items import Environment
from headwater.language.relations.joins import conjuncts, with_columns
from headwater.language.scope import Bound, NameSource, Relation, Scope
from headwater.language.text import error_on, span

_EXAMPLE = "FROM bid b ASOF JOIN price p ON b.item = p.item AND b.ts >= p.ts"
_COMPARISONS = (exp.GTE, exp.GT, exp.LTE, exp.LT)


@define
class TemporalJoin:
    """One join: the items before it, and its own."""

    environment: Environment
    left: Sequence[Relation]
    right: Relation

    def error(self, node: exp.Expr, code: str, message: str, *, detail: str = "", hint: str = "") -> SqlError:
        return error_on(self.environment.text, node, code, message, detail=detail, hint=hint)

    def _scope(self) -> Scope:
        items = tuple(i for relation in (*self.left, self.right) for i in relation.items)
        return Scope(self.environment.text, items, self.environment.outer)

    def _is_time(self, bound: Bound, relations: Sequence[Relation]) -> bool:
        """Is it the time of the rows of one of them, which are there for that instant only?"""
        found = [row_times(r.plan, self.environment.time_column) for r in relations]
        return any(bound.column in times.columns and times.lifetime == 1 for times in found)

    # -- FOR SYSTEM_TIME AS OF --------------------------------------------------------------------------------------

    def check_version(self, node: exp.Expr, on: exp.Expr | None) -> None:
        """``p FOR SYSTEM_TIME AS OF b.ts``: p at the instant of b, which is what a join with b is about anyway."""
        if isinstance(node, exp.Anonymous) and node.name.upper() == "PROCTIME":
            hint = "Leave FOR SYSTEM_TIME AS OF out: a row is joined with what is valid at its own time."
            raise self.error(node, "UNSUPPORTED", "PROCTIME() is not supported", hint=hint)
        items = tuple(i for relation in self.left for i in relation.items)
        bound = ExpressionBinder(Scope(self.environment.text, items, self.environment.outer), "FOR SYSTEM_TIME").bind(
            node
        )
        if not self._is_time(bound, self.left):
            raise self.error(
                node,
                "TIME_COLUMN",
                "FOR SYSTEM_TIME AS OF takes the time column of a stream without a window, left of the join",
                hint=f"{self._times()}Without FOR SYSTEM_TIME AS OF both sides are joined as they are at each instant.",
            )
        if is_chronon(self.right.plan):
            (item,) = self.right.items[:1]
            name, keys = item.stream or item.label or "s", ", ".join(self._keys(on)) or "key"
            raise self.error(
                node,
                "NO_VERSIONS",
                f'rows of stream "{item.label}" are valid for one instant each, so there is no version of them at another',
                hint=f"Say by which key the last row counts: {name} WINDOW(PARTITION BY {keys} ROWS 1) instead of "
                f"{name} FOR SYSTEM_TIME AS OF {self._written(node)}; or declare it as a TABLE.",
            )

    def _keys(self, on: exp.Expr | None) -> list[str]:
        """The columns of the right side that are compared."""
        ours = Scope(self.environment.text, self.right.items)
        columns = (c for e in conjuncts(on) if isinstance(e, exp.EQ) for c in (e.this, e.expression))
        return [c.name for c in columns if isinstance(c, exp.Column) and ours.sees(c)]

    def _times(self) -> str:
        known = [f"{i.label}.{i.time}" for r in self.left for i in r.items if i.time is not None and i.label]
        return f"That is {known[0]}. " if known else ""

    def _written(self, node: exp.Expr) -> str:
        start, end = span(node) or (0, 0)
        return self.environment.text[start:end]

    # -- ASOF -------------------------------------------------------------------------------------------------------

    def last_rows(self, node: exp.Join, names: NameSource) -> tuple[Relation, exp.Expr]:
        """The right side as the last row of each key, and what is left of ON: the equal keys."""
        on, matched = node.args.get("on"), node.args.get("match_condition")
        if node.args.get("using"):
            message, hint = "an ASOF JOIN cannot be written with USING", f"Write ON: {_EXAMPLE}."
            raise self.error(node, "UNSUPPORTED", message, hint=hint)
        conditions = [*conjuncts(on), *conjuncts(matched)]
        if not conditions:
            raise self.error(node, "SYNTAX", "an ASOF JOIN needs a condition", hint=f"For example: {_EXAMPLE}.")
        theirs = set(self.right.plan.schema.names)
        keys, equal, times = [], [], 0
        binder = ExpressionBinder(self._scope(), "ON")
        for condition in conditions:
            if not isinstance(condition, (exp.EQ, *_COMPARISONS)):
                raise self._misused(condition)
            left, right = binder.bind(condition.this), binder.bind(condition.expression)
            turned = bool(left.columns) and left.columns <= theirs
            if turned:
                left, right = right, left
            if not (right.columns and right.columns <= theirs and left.columns and not left.columns & theirs):
                raise self._misused(condition)
            if isinstance(condition, exp.EQ):
                keys.append(right)
                equal.append(condition)
            else:
                self._check_times(condition, left, right, turned=turned)
                times += 1
        if times != 1:
            message = "an ASOF JOIN compares the times of both sides once"
            raise self.error(on or node, "SYNTAX", message, hint=f"For example: {_EXAMPLE}.")
        plan, partition = with_columns(self.right.plan, keys, names)
        right_side = self.right.over(RowWindow(plan, 1, 1, tuple(dict.fromkeys(partition))))
        return right_side, exp.and_(*equal, copy=False) if equal else exp.true()

    def _check_times(self, condition: exp.Expr, left: Bound, right: Bound, *, turned: bool) -> None:
        if not self._is_time(left, self.left) or not self._is_time(right, [self.right]):
            raise self.error(
                condition,
                "TIME_COLUMN",
                "an ASOF JOIN compares the time columns of two streams without windows",
                detail="The last row is that with the latest time at which rows are valid, not by any other column.",
                hint="Declare both: CREATE STREAM … ORDERED BY ts; a table is joined by JOIN alone.",
            )
        if isinstance(condition, exp.LTE if turned else exp.GTE):
            return
        if isinstance(condition, exp.LT if turned else exp.GT):
            hint = "Write >=: a row of the same instant then counts as the last one."
            raise self.error(
                condition, "UNSUPPORTED", "an ASOF JOIN cannot leave out rows of the same instant", hint=hint
            )
        hint = f"What comes later is not known yet. Join with the last row before: {_EXAMPLE}."
        raise self.error(condition, "UNSUPPORTED", "an ASOF JOIN looks back, not ahead", hint=hint)

    def _misused(self, condition: exp.Expr) -> SqlError:
        return self.error(
            condition,
            "UNSUPPORTED",
            "an ASOF JOIN takes equal keys of both sides, and >= of their times",
            hint="Put other conditions into WHERE, or into a sub-query in FROM that is joined.",
        )
