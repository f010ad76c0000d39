"""Rows that live one instant under operators that put rows together: nearly never what is meant, so there is a notice.

A stream with a time column and no window is a now-window (Krämer 9.2): a group, a join, a DISTINCT or a rank over it sees
only rows of the very same time. Users of Flink and Spark expect that all rows so far count, or write the window as a
condition on times; the notice has the text that means that here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from attrs import frozen

from headwater.algebra import nodes as n
from headwater.algebra.properties import TimeColumn, row_times
from headwater.language.interval_joins import interval_windows
from headwater.language.notices import Notice
from headwater.model.time import INFINITY

CODE = "ONE_INSTANT"


@frozen(eq=False)
class BareItem:
    """A stream in FROM that has no window, as it is written."""

    name: str
    alias: str | None
    plan: n.Plan
    timed: bool
    """Is its time a TIMESTAMP?"""

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(self.plan.streams)

    @property
    def label(self) -> str:
        return self.alias or self.name

    def under(self, window: str) -> str:
        """Its text with a window."""
        return " ".join(part for part in (self.name, f"[{window}]", self.alias) if part)

    @property
    def example(self) -> str:
        return "RANGE 1 MINUTE" if self.timed else "RANGE 10"


class _Finder:
    """What is known of one plan."""

    def __init__(self, time_column: TimeColumn, meant: Collection[str]) -> None:
        self._time_column, self._meant = time_column, meant
        self._known: dict[n.Plan, bool] = {}

    def is_bare(self, plan: n.Plan) -> bool:
        """Is every row valid for one instant, because no window says otherwise, nor anything that makes instants?"""
        if plan not in self._known:
            self._known[plan] = self._is_bare(plan)
        return self._known[plan]

    def _is_bare(self, plan: n.Plan) -> bool:
        if isinstance(plan, n.Source):
            return plan.chronons and plan.name not in self._meant
        if isinstance(plan, n.Istream | n.Dstream | n.Sample | n.Stamp | n.Split) or _is_outer_values(plan):
            return False
        return bool(plan.inputs) and plan.at_instants([self.is_bare(child) for child in plan.inputs])

    def times(self, plan: n.Plan) -> frozenset[str]:
        """The columns that hold the time of the rows."""
        return row_times(plan, self._time_column).columns

    def is_surprising(self, node: n.Plan) -> bool:
        """Does it put rows together that live one instant, and not by their time?"""
        if not isinstance(node, tuple(_WORDS)) or not all(map(self.is_bare, node.inputs)) or _is_outer_values(node):
            return False
        match node:
            case n.Join():
                left, right = map(self.times, node.inputs)
                return not any(a in left and b in right for a, b in node.keys)
            case n.Aggregate():
                return self.times(node.input).isdisjoint(node.keys)
            case n.TopK():
                return self.times(node.input).isdisjoint(node.partition)
        return not all(map(self.times, node.inputs))  # whole rows, of one time each


_WORDS: dict[type[n.Plan], str] = {
    n.Aggregate: "groups hold only rows of the same time",
    n.Join: "only rows of the same time meet",
    n.TopK: "only rows of the same time are ranked",
    n.SetOperation: "only rows of the same time are compared",
    n.Distinct: "only rows of the same time are compared",
}


def one_instant(
    plan: n.Plan,
    items: Sequence[BareItem],
    *,
    time_column: TimeColumn,
    meant: Collection[str] = (),
    known: Callable[[n.Plan], bool] = lambda _: False,
) -> list[Notice]:
    """At most one notice for a query: about the first operator that rows reach.

    ``items``: the streams without a window in its FROM clauses; ``meant``: those that are said to live for an instant
    (``[NOW]``); ``known``: what was told when a part of the query was defined.
    """
    finder = _Finder(time_column, meant)
    found = [node for node in plan.walk() if finder.is_surprising(node) and not known(node)]
    found.sort(key=lambda node: isinstance(node, n.Distinct))  # an unnested sub-query has some of its own
    if not found:
        return []
    node = found[0]
    theirs = [item for item in items if item.streams & set(node.streams) and finder.is_bare(item.plan)]
    names = list(dict.fromkeys(f'"{item.name}"' for item in theirs)) or [f'"{name}"' for name in node.streams]
    named = f"stream{'' if len(names) == 1 else 's'} {' and '.join(names)}"
    message = f"rows of {named} are valid for one instant each, so {_WORDS[type(node)]}"
    return [Notice(CODE, message, _hint(node, theirs, finder))]


def _hint(node: n.Plan, items: Sequence[BareItem], finder: _Finder) -> str:
    if not items:
        return "Give the stream a window, for example: FROM stream WINDOW(RANGE 1 MINUTE)."
    match node:
        case n.Join():
            return _of_join(node, items, finder)
        case n.TopK() if node.partition and node.order and node.order[0].column in finder.times(node.input):
            return _of_latest(node, items[0])
        case n.Aggregate():
            item = items[0]
            return (
                f"Write FROM {item.under(item.example)} for those of that long, at any time; "
                f"FROM {item.under('RANGE UNBOUNDED')} for all so far; or TUMBLE, HOP or SESSION with "
                "GROUP BY window_start, window_end."
            )
    both = " and ".join(item.under(item.example) for item in items)
    ever = " and ".join(item.under("RANGE UNBOUNDED") for item in items)
    return f"Write FROM {both}, or FROM {ever} for all so far."


def _of_join(node: n.Join, items: Sequence[BareItem], finder: _Finder) -> str:
    found = interval_windows(node, *map(finder.times, node.inputs))
    sides = [_item_of(side, items) for side in node.inputs]
    if found is None or sides[0] is None or sides[1] is None or sides[0] is sides[1]:
        both = " and ".join(item.under(item.example) for item in items)
        return f"Write FROM {both}: rows meet while both are valid."
    pairs = zip(sides, found, strict=True)
    written = [item.under(window) if window else item.label for item, window in pairs if item is not None]
    nulls = "" if node.kind in (n.JoinKind.INNER, n.JoinKind.SEMI) else " A row without a partner so far counts as one."
    return f"For an interval join write FROM {' and '.join(written)}, with the condition on times as it is.{nulls}"


def _item_of(side: n.Plan, items: Sequence[BareItem]) -> BareItem | None:
    """The item whose rows a side of a join has; the columns of all but the first item have its label before them."""
    own = [item for item in items if item.streams & set(side.streams)]
    prefixed = [item for item in own if any(name.startswith(f"{item.label}.") for name in side.schema.names)]
    plain = any("." not in name for name in side.schema.names)
    if prefixed and not plain:
        return prefixed[0] if len(prefixed) == 1 else None
    return own[0] if own else None


def _of_latest(node: n.TopK, item: BareItem) -> str:
    """The first or last rows of each key, by their time."""
    partition = ", ".join(name.rpartition(".")[2] for name in node.partition)
    if node.order[0].descending:
        window = f"PARTITION BY {partition} ROWS {1 if node.limit == INFINITY else node.limit}"
        return f"For the last row of each {partition} write FROM {item.under(window)}; for the last n, ROWS n."
    return f"For the first row of each {partition} write FROM {item.under('RANGE UNBOUNDED')}."


def _is_outer_values(plan: n.Plan) -> bool:
    """The values of outer columns, for which a sub-query is computed: they meet its rows while the outer rows are valid."""
    return isinstance(plan, n.Distinct) and all(name.startswith("outer.") for name in plan.schema.names)
