"""GROUP BY: keys by name, position or expression, and the grouping sets that ROLLUP, CUBE and their like stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product

from attrs import frozen
from sqlglot import exp

from headwater.errors import SqlError
from headwater.expressions.nodes import Expression
from headwater.language.expressions import ExpressionBinder
from headwater.language.scope import Bound, Scope
from headwater.language.select.aggregates import calls_aggregate
from headwater.language.select.select_list import Chosen
from headwater.language.text import OfText, error_on

_MOST_SETS = 256
"""Each set is an aggregation of its own."""

KeySet = tuple[int, ...]
"""A grouping set: the numbers of its keys."""


@frozen
class GroupBy:
    """The keys of a GROUP BY, and its grouping sets; a plain GROUP BY has one, with all keys."""

    keys: tuple[Bound, ...] = ()
    sets: tuple[KeySet, ...] = ((),)

    @property
    def single(self) -> bool:
        """One group of all rows."""
        return self.sets == ((),)

    def optional_columns(self) -> set[str]:
        """The columns of keys that some grouping set leaves out."""
        everywhere = set.intersection(*map(set, self.sets))
        return {c for number, key in enumerate(self.keys) if number not in everywhere for c in key.columns}


def bind_group_by(text: str, group: exp.Expr | None, chosen: Sequence[Chosen], scope: Scope) -> GroupBy:
    """The keys and sets of a GROUP BY over the columns in sight; without one, all rows are one group."""
    return GroupBy() if group is None else _GroupByBinder(text, chosen, scope).bind(group)


class _GroupByBinder(OfText):
    def __init__(self, text: str, chosen: Sequence[Chosen], scope: Scope) -> None:
        self.text, self._chosen, self._scope = text, chosen, scope
        self._keys: dict[Expression, Bound] = {}

    def bind(self, group: exp.Expr) -> GroupBy:
        if group.args.get("totals"):
            raise self.error(group, "UNSUPPORTED", "WITH TOTALS is not supported", hint="Write WITH ROLLUP.")
        if group.args.get("all") and not group.expressions:
            sets = [self._all_columns()]
        else:
            sets = self._sets(group)
        if group.args.get("all") is False:  # GROUP BY DISTINCT
            sets = list({frozenset(s): s for s in sets}.values())
        return GroupBy(tuple(self._keys.values()), tuple(sets))

    def _all_columns(self) -> KeySet:
        """GROUP BY ALL: every column of the select list that no aggregate is in."""
        others = (exp.Query, exp.Subquery, exp.Window)
        constants = (exp.Literal, exp.Null, exp.Boolean)
        keys = [
            c
            for c in self._chosen
            if not (c.hidden or isinstance(c.node, constants) or calls_aggregate(c.node) or c.node.find(*others))
        ]
        return _unique(self._number(self._chosen_key(c)) for c in keys)

    # -- sets -------------------------------------------------------------------------------------------------------

    def _sets(self, group: exp.Expr) -> list[KeySet]:
        suffix = [s for key in ("rollup", "cube", "grouping_sets") for s in group.args.get(key) or ()]
        if not suffix:
            return self._crossed(group, group.expressions)
        # Spark: GROUP BY a, b WITH ROLLUP and GROUP BY a, b GROUPING SETS ((a), (b)).
        (how,) = suffix
        listed = [self._one_set(e) for e in group.expressions]
        if not isinstance(how, exp.GroupingSets):
            return self._limited(group, _rolled_up(listed) if isinstance(how, exp.Rollup) else _cubed(listed))
        known = len(self._keys)
        sets = self._crossed(how, [how])
        if len(self._keys) > known:
            stranger = list(self._keys.values())[known].origin
            message = "GROUPING SETS has an expression that GROUP BY does not list"
            raise self.error(stranger, "NOT_GROUPED", message, hint="Add it before GROUPING SETS.")
        return sets

    def _crossed(self, place: exp.Expr, elements: Sequence[exp.Expr]) -> list[KeySet]:
        """Elements side by side: every set of one with every set of the others."""
        sets: list[KeySet] = [()]
        for element in elements:
            sets = self._limited(place, [_unique(a + b) for a, b in product(sets, self._element(element))])
        return sets

    def _element(self, node: exp.Expr) -> list[KeySet]:
        match node:
            case exp.Rollup():
                return _rolled_up([self._one_set(e) for e in node.expressions])
            case exp.Cube():
                self._check_number(node, 2 ** len(node.expressions))
                return _cubed([self._one_set(e) for e in node.expressions])
            case exp.GroupingSets():
                return self._limited(node, [s for e in node.expressions for s in self._element(e)])
        return [self._one_set(node)]

    def _limited(self, place: exp.Expr, sets: list[KeySet]) -> list[KeySet]:
        self._check_number(place, len(sets))
        return sets

    def _check_number(self, place: exp.Expr, number: int) -> None:
        if number > _MOST_SETS:
            message = f"GROUP BY stands for {number} grouping sets, at most {_MOST_SETS} are allowed"
            raise self.error(place, "TOO_MANY_SETS", message, hint="List those that you need in GROUPING SETS (…).")

    def _one_set(self, node: exp.Expr) -> KeySet:
        """``a`` or ``(a, b)``."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Tuple):
            return _unique(n for e in node.expressions for n in self._one_set(e))
        if isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            word = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else type(node).__name__.upper()
            message = f"{word} cannot be mixed with WITH ROLLUP, WITH CUBE or GROUPING SETS after the list"
            raise self.error(node, "SYNTAX", message, hint="Put it into GROUPING SETS (…).")
        return (self._number(self._key(node)),)

    # -- keys -------------------------------------------------------------------------------------------------------

    def _number(self, key: Bound) -> int:
        self._keys.setdefault(key.expression, key)
        return list(self._keys).index(key.expression)

    def _key(self, node: exp.Expr) -> Bound:
        """A position and an alias stand for a column of the select list."""
        if isinstance(node, exp.Literal) and node.is_int:
            return self._chosen_key(at_position(self.text, node, self._chosen, "GROUP BY", "GROUP_POSITION"))
        return self._bound(substituted(node, self._chosen, self._scope))

    def _chosen_key(self, chosen: Chosen) -> Bound:
        if chosen.column is not None:
            return Bound.of_column(chosen.column, chosen.node)
        return self._bound(substituted(chosen.node, self._chosen, self._scope))

    def _bound(self, node: exp.Expr) -> Bound:
        while isinstance(node, exp.Paren):
            node = node.this
        return ExpressionBinder(self._scope, "GROUP BY").bind(node)


def at_position(text: str, node: exp.Expr, chosen: Sequence[Chosen], clause: str, code: str) -> Chosen:
    """The column of the select list that a number means."""
    visible = [c for c in chosen if not c.hidden]
    position = int(node.name)
    if not 1 <= position <= len(visible):
        message = f"{clause} position {position} is not in the select list"
        hint = f"It has {len(visible)} column{'s' if len(visible) > 1 else ''}."
        raise error_on(text, node, code, message, hint=hint)
    return visible[position - 1]


def substituted(node: exp.Expr, chosen: Sequence[Chosen], scope: Scope) -> exp.Expr:
    """GROUP BY, HAVING and QUALIFY may name what SELECT calls an expression, if no column has that name."""
    aliases = {c.name.casefold(): c.node for c in chosen if c.aliased}

    def replaced(inner: exp.Expr) -> exp.Expr:
        if isinstance(inner, exp.Column) and not inner.args.get("table") and inner.name.casefold() in aliases:
            if inner.find_ancestor(exp.Query, exp.Subquery):  # a sub-query sees columns only
                return inner
            try:
                found = scope.finds(inner)
            except SqlError:
                found = False
            if not found:
                return as_operand(aliases[inner.name.casefold()])
        return inner

    return node.transform(replaced) if aliases else node


def as_operand(node: exp.Expr) -> exp.Expr:
    """A copy that can stand in any expression."""
    plain = (exp.Column, exp.Literal, exp.Anonymous, exp.Paren, exp.Case, exp.Cast, exp.Window)
    return node.copy() if isinstance(node, plain) else exp.Paren(this=node.copy())


def _rolled_up(parts: Sequence[KeySet]) -> list[KeySet]:
    """ROLLUP(a, b): (a, b), (a), ()."""
    return [_unique(k for part in parts[:n] for k in part) for n in range(len(parts), -1, -1)]


def _cubed(parts: Sequence[KeySet]) -> list[KeySet]:
    """CUBE(a, b): (a, b), (a), (b), ()."""
    chosen = (c for n in range(len(parts), -1, -1) for c in combinations(parts, n))
    return [_unique(k for part in c for k in part) for c in chosen]


def _unique(numbers: Iterable[int]) -> KeySet:
    return tuple(dict.fromkeys(numbers))
