"""Which part of the rows a predicate keeps, from the number of values of the columns it reads.

Each condition has two chances, to be true and to be false (the rest is NULL), and AND, OR and NOT combine them as if
conditions were independent (Krämer 22.3.1 assumes no correlation). The constants are those of Selinger et al. 1979
(System R) where they have one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from headwater.expressions.nodes import Expression
from headwater.optimizer.estimation.conditions import Condition, read
from headwater.optimizer.estimation.estimates import Column

RANGE = 1 / 3
"""``x < c``: System R's guess. ``BETWEEN`` is two of them."""
LIKE = 1 / 10
UNKNOWN = 1 / 3
"""A condition of which nothing is known, such as a function's verdict."""

Lookup = Callable[[str], Column | None]
"""The column of a name, if there is one."""


class Chances(NamedTuple):
    """That a condition is true, and that it is false; else it is NULL."""

    true: float
    false: float


def selectivity(predicate: Expression, lookup: Lookup) -> float:
    """The chance that the predicate is true."""
    return _chances(read(predicate), lookup).true


def kept(predicate: Expression, columns: Mapping[str, Column]) -> tuple[float, dict[str, Column]]:
    """The chance that the predicate is true, and the columns of the rows where it is: fewer values where it names
    some, and no NULLs. Each part of an AND sees what the parts before it have left, as if filters stood in a row.
    """
    result = dict(columns)
    return _keep(read(predicate), result), result


def _keep(condition: Condition, columns: dict[str, Column]) -> float:
    if condition.kind == "and":
        return math.prod([_keep(part, columns) for part in condition.parts])
    chance = _chances(condition, columns.get).true
    _restrict(condition, columns)
    return chance


def terms(predicate: Expression) -> int:
    """How much there is to compute, in comparisons of a column; functions and patterns count as several."""
    return _terms(read(predicate))


def _terms(condition: Condition) -> int:
    if condition.parts:
        return sum(map(_terms, condition.parts))
    return 1 if condition.plain and condition.kind not in ("like", "unknown") else _HARD


_HARD = 4


# -- chances ----------------------------------------------------------------------------------------------------------


def _chances(condition: Condition, lookup: Lookup) -> Chances:
    kind = condition.kind
    if kind in ("and", "or"):
        chances = [_chances(part, lookup) for part in condition.parts]
        all_true, all_false, none_true, none_false = 1.0, 1.0, 1.0, 1.0
        for true, false in chances:
            all_true, all_false = all_true * true, all_false * false
            none_true, none_false = none_true * (1 - true), none_false * (1 - false)
        return Chances(all_true, 1 - none_false) if kind == "and" else Chances(1 - none_true, all_false)
    if kind == "not":
        true, false = _chances(condition.parts[0], lookup)
        return Chances(false, true)
    if kind in ("always", "never"):
        return Chances(1.0, 0.0) if kind == "always" else Chances(0.0, 1.0)
    return _leaf(condition, [c for c in map(lookup, condition.columns) if c is not None])


def _leaf(condition: Condition, columns: Sequence[Column]) -> Chances:
    if condition.kind == "neither":
        return Chances(0.0, 0.0)
    if condition.kind == "null":
        nulls = 1 - _valid(columns)
        return Chances(nulls, 1 - nulls)
    if condition.kind == "same":  # NULL is the same as NULL
        share = _valid(columns) / max(1.0, *(c.distinct for c in columns)) if columns else UNKNOWN
        share += math.prod([c.nulls for c in columns]) if len(columns) > 1 else 0.0
        return Chances(share, 1 - share)
    valid, share = _valid(columns), _share(condition, columns) if columns else UNKNOWN
    return Chances(valid * share, valid * (1 - share))


def _valid(columns: Sequence[Column]) -> float:
    """The rows in which none of the columns is NULL."""
    return math.prod([1 - c.nulls for c in columns])


def _share(condition: Condition, columns: Sequence[Column]) -> float:
    """Of the rows without NULLs."""
    match condition.kind:
        case "equal":  # 1/n; two columns of n1 and n2 values, one set in the other: 1/max(n1, n2)
            return 1 / max(1.0, *(c.distinct for c in columns))
        case "in":
            return min(1.0, condition.options / max(1.0, columns[0].distinct))
        case "remainder":
            return 1 / condition.options
        case "range":
            return RANGE
        case "like":
            return LIKE
        case "truth":
            return 1 / 2
        case _:
            return UNKNOWN


# -- what it says of the columns --------------------------------------------------------------------------------------


def _restrict(condition: Condition, columns: dict[str, Column]) -> None:
    """Only by what is true in every row that is kept."""
    negated = condition.kind == "not"
    if negated:
        condition = condition.parts[0]
    known = [columns[name] for name in condition.columns if name in columns]
    if not condition.plain or not known:
        return
    least, bounded = min(c.distinct for c in known), any(c.bounded for c in known)
    for name in condition.columns:
        if name in columns:
            columns[name] = _kept(condition, columns[name], least, bounded=bounded, negated=negated)


def _kept(condition: Condition, column: Column, least: float, *, bounded: bool, negated: bool) -> Column:
    """The values of the column in rows where the condition is true; negated: where it is false."""
    match condition.kind, negated:
        case "null", False:
            return column._replace(distinct=1.0, nulls=1.0, bounded=True)
        case "equal", False if len(condition.columns) > 1:
            return column._replace(distinct=least, nulls=0.0, bounded=bounded)
        case "equal", False:
            return column._replace(distinct=1.0, nulls=0.0, bounded=True)
        case "in", False:
            return column._replace(distinct=min(column.distinct, condition.options), nulls=0.0, bounded=True)
        case "range", False:
            return column._replace(distinct=max(1.0, column.distinct * RANGE), nulls=0.0)
        case ("null", True) | ("equal" | "in" | "range" | "like" | "truth" | "remainder", _):
            return column._replace(nulls=0.0)
        case _:
            return column
