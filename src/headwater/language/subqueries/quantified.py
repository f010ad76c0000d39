"""Comparisons with ANY and ALL rows of a sub-query, decided by its smallest and largest value for each key."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import frozen
from sqlglot import exp

from headwater.algebra.nodes import Aggregate, AggregateCall, Plan
from headwater.expressions.aggregates import AGGREGATES
from headwater.language.predicates import compared
from headwater.language.relations.joins import equal_pair, filtered, with_columns
from headwater.language.scope import Bound, Column, NameSource
from headwater.language.subqueries.block import Block
from headwater.language.subqueries.conditions import Condition

_EXTREMES: dict[tuple[str, str], tuple[str, ...]] = {
    ("ANY", "<"): ("MAX",),
    ("ANY", "<="): ("MAX",),
    ("ANY", ">"): ("MIN",),
    ("ANY", ">="): ("MIN",),
    ("ANY", "<>"): ("MIN", "MAX"),
    ("ALL", "<"): ("MIN",),
    ("ALL", "<="): ("MIN",),
    ("ALL", ">"): ("MAX",),
    ("ALL", ">="): ("MAX",),
    ("ALL", "="): ("MIN", "MAX"),
}
"""x op ANY (…) is true if it is for one of these, x op ALL (…) if it is for all of them and no value is NULL."""


@frozen
class Keys:
    """Correlation by equal values: pairs of an outer and an inner expression, and conditions on one side only."""

    pairs: tuple[tuple[Bound, Bound], ...]
    outer: tuple[Bound, ...]
    inner: tuple[Bound, ...]

    def rows(self, block: Block) -> Plan:
        """The rows of the block that can match at all."""
        return filtered(block.relation.plan, self.inner)

    def predicates(self, names: Sequence[str]) -> list[Bound]:
        """The conditions of a join with a plan that has the inner sides as these columns."""
        equal = [
            compared("=", outer, column(name, inner.type))
            for (outer, inner), name in zip(self.pairs, names, strict=True)
        ]
        return [*equal, *self.outer]


def keys_of(predicates: Sequence[Bound], block: Block) -> Keys | None:
    """The correlation by keys; None if there is any other condition."""
    pairs, outer, inner = [], [], []
    own = block.columns
    for predicate in predicates:
        columns = set(predicate.columns)
        if not columns & own:
            outer.append(predicate)
        elif columns <= own:
            inner.append(predicate)
        elif pair := equal_pair(predicate, columns - own, own):
            pairs.append(pair)
        else:
            return None
    return Keys(tuple(pairs), tuple(outer), tuple(inner))


def selects_own_value(block: Block) -> bool:
    """Does it select one value, computed of its own columns only?"""
    return len(block.outputs) == 1 and block.outputs[0].columns <= block.columns


def quantified_keys(block: Block) -> Keys | None:
    """The keys for which a comparison with ANY or ALL can be decided by extremes; None if it cannot."""
    if not selects_own_value(block) or AGGREGATES["MAX"].result(block.outputs[0].type) is None:
        return None
    return keys_of(block.correlated, block)


class Totals:
    """The extremes of the one value y that a sub-query selects and, if wanted, COUNT(*) and COUNT(y), for each key."""

    def __init__(self, block: Block, keys: Keys, condition: Condition, names: NameSource, *, counted: bool) -> None:
        (self._value,), self._keys, self._counted = block.outputs, keys, counted
        functions = _EXTREMES.get((condition.kind, condition.operator), ())
        self._names = [(function, names.unique(function.lower())) for function in functions]
        self.rows_name = names.unique("rows")
        self.rows = column(self.rows_name, pa.int64())
        self._known = column(names.unique("known"), pa.int64()) if self._value.nullable else None

    @property
    def extremes(self) -> list[Bound]:
        return [column(name, self._value.type, nullable=self._value.nullable) for _, name in self._names]

    @property
    def complete(self) -> list[Bound]:
        """No value is NULL."""
        return [] if self._known is None else [compared("=", self._known, self.rows)]

    @property
    def incomplete(self) -> list[Bound]:
        """Some value is NULL."""
        return [] if self._known is None else [compared("<", self._known, self.rows)]

    def plan(self, block: Block, names: NameSource) -> tuple[Plan, list[str]]:
        """The totals, and the columns of their keys."""
        inner = [inner for _, inner in self._keys.pairs]
        plan, found = with_columns(self._keys.rows(block), [*inner, *block.outputs], names)
        *keys, value = found
        calls = [AggregateCall(function, name, self._value.type, value) for function, name in self._names]
        if self._counted:
            calls.append(AggregateCall("COUNT", self.rows_name, pa.int64()))
            if self._known is not None:
                calls.append(AggregateCall("COUNT", self._known.column or "", pa.int64(), value))
        return Aggregate(plan, tuple(dict.fromkeys(keys)), tuple(calls)), keys


def column(name: str, type_: pa.DataType, *, nullable: bool = False) -> Bound:
    """A column that the binder has made itself."""
    return Bound.of_column(Column(name, name, type_, nullable), exp.true())
