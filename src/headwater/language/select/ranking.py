"""OVER: ROW_NUMBER, RANK and DENSE_RANK, and aggregates over partitions, at each instant over the snapshot's rows.

ROW_NUMBER is a top-k without a limit. The others give equal rows equal values, so they are computed once for each
value of the partition (and order) and joined to the rows: RANK is the smallest ROW_NUMBER among equal rows, DENSE_RANK
the ROW_NUMBER of the different values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
from attrs import evolve, frozen
from sqlglot import exp

from headwater.algebra.nodes import Aggregate, AggregateCall, Distinct, JoinKind, Plan, SortKey, TopK
from headwater.errors import SqlError
from headwater.expressions.nodes import Expression
from headwater.expressions.types import is_nested
from headwater.language.expressions import ExpressionBinder, Hook, check_column_type
from headwater.language.functions.user_functions import is_aggregate
from headwater.language.predicates import compared, struct
from headwater.language.relations.joins import join, with_columns
from headwater.language.scope import Bound, Column, Item, NameSource, Relation, Scope, project, reference
from headwater.language.select.aggregates import NO_ROWS, Grouping
from headwater.language.select.frames import FRAME_FUNCTIONS, Order, RunningFrames, goes_by_time
from headwater.language.text import did_you_mean, error_on
from headwater.language.types import shown

_RANKS = ("row_number", "rank", "dense_rank")

Lift = Callable[[Bound], Bound]


@frozen(eq=False)
class _Rank:
    """One call: its function, and by what it is partitioned and ordered."""

    function: str
    partition: tuple[Bound, ...]
    order: tuple[tuple[Bound, bool, bool], ...]
    """Expressions with DESC and NULLS FIRST."""
    output: str

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two calls the same."""
        order = tuple((b.expression, desc, first) for b, desc, first in self.order)
        return self.function, tuple(b.expression for b in self.partition), order


class Ranking:
    """Collects the calls with OVER of one query block, and adds their columns to its rows."""

    def __init__(
        self,
        scope: Scope,
        names: NameSource,
        named: Iterable[exp.Window] = (),
        *,
        aggregate: Hook | None = None,
        within: Sequence[Bound] = (),
        order: Order | None = None,
    ) -> None:
        """``within``: these, too, partition the rows of every call. ``order``: of time, if the rows have it."""
        self.scope, self.names, self._aggregate, self._within = scope, names, aggregate, tuple(within)
        self._named = {w.name.casefold(): w for w in named}
        self._ranks: dict[tuple[object, ...], _Rank] = {}
        self._groupings: dict[tuple[Expression, ...], Grouping] = {}
        self._frames = RunningFrames(scope, names, order)

    def error(self, node: exp.Expr, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.scope.text, node, code, message, hint=hint)

    @property
    def called(self) -> bool:
        return bool(self._ranks or self._groupings or self._frames.called)

    # -- collecting -------------------------------------------------------------------------------------------------

    def call(self, node: exp.Window) -> Bound:
        """The hook for OVER: the call as a column of the rows."""
        function = node.this
        name = _function_name(function)
        window = self._window(node)
        if name in FRAME_FUNCTIONS or (is_aggregate(name) and goes_by_time(window, name)):
            return self._frames.call(node, window, name, self._partition(window))
        if is_aggregate(name):
            return self._over_partition(node, window)
        if name not in _RANKS or not isinstance(function, exp.Anonymous):
            others = ", ".join(map(str.upper, (*_RANKS, *FRAME_FUNCTIONS)))
            hint = f"Supported are {others}, and aggregates."
            raise self.error(node, "UNSUPPORTED", f"{name.upper()} OVER is not supported", hint=hint)
        if window.args.get("spec") is not None:
            hint = "Leave the frame out."
            raise self.error(node, "SYNTAX", f"{name.upper()} takes no frame", hint=hint)
        if function.expressions:
            message = f'function "{name}" takes no arguments, not {len(function.expressions)}'
            raise self.error(function, "WRONG_ARGUMENTS", message)
        order = tuple(self._sorted(o) for o in window.args["order"].expressions) if window.args.get("order") else ()
        if not order and name != "row_number":
            raise self.error(node, "SYNTAX", f"{name.upper()} needs an order", hint="Write OVER (ORDER BY …).")
        rank = _Rank(name, self._partition(window), order, "")
        if rank.key not in self._ranks:
            self._ranks[rank.key] = evolve(rank, output=self.names.unique(name))
        output = self._ranks[rank.key].output
        return Bound.of_column(Column(output, output, pa.int32(), nullable=False), node)

    def _window(self, node: exp.Window) -> exp.Window:
        """The window as written, or as the WINDOW clause defines it."""
        base = node.args.get("alias")
        if base is None:
            return node
        found = self._named.get(base.name.casefold())
        if found is None:
            hint = did_you_mean(base.name, [w.name for w in self._named.values()], all_of_them="There are")
            hint = hint or "Define it after FROM: WINDOW w AS (PARTITION BY … ORDER BY …)."
            raise self.error(base, "UNKNOWN_WINDOW", f'window "{base.name}" does not exist', hint=hint)
        merged = self._window(found).copy()
        for part in ("partition_by", "order", "spec"):
            if node.args.get(part):
                merged.set(part, node.args[part])
        return merged

    def _partition(self, window: exp.Window) -> tuple[Bound, ...]:
        return (*self._within, *(self._bound(e) for e in window.args.get("partition_by") or ()))

    def _sorted(self, node: exp.Ordered) -> tuple[Bound, bool, bool]:
        bound = self._bound(node.this)
        if is_nested(bound.type):
            message = f"ORDER BY takes a value that can be ordered, not {shown(bound.type)}"
            raise self.error(node, "TYPE_MISMATCH", message)
        return bound, bool(node.args.get("desc")), bool(node.args.get("nulls_first"))

    def _bound(self, node: exp.Expr) -> Bound:
        binder = ExpressionBinder(self.scope, "OVER", aggregate=self._aggregate)
        bound = binder.bind(node)
        check_column_type(binder, bound)
        return bound

    def _over_partition(self, node: exp.Window, window: exp.Window) -> Bound:
        partition = self._partition(window)
        signature = tuple(b.expression for b in partition)
        if signature not in self._groupings:
            grouping = Grouping(NO_ROWS, self.scope, self.names, inner=self._aggregate)
            for key in partition:
                grouping.add_key(key)
            self._groupings[signature] = grouping
        return self._groupings[signature].call(node.this)

    # -- building ---------------------------------------------------------------------------------------------------

    def applied(self, relation: Relation, lift: Lift) -> Relation:
        """The rows with a column for every call; ``lift`` as in ``Grouping``."""
        for rank in self._ranks.values():
            relation = self._ranked(relation, rank, lift)
        for grouping in self._groupings.values():
            relation = self._with_groups(relation, grouping, lift)
        return self._frames.applied(relation, lift, self._joined)

    def _ranked(self, relation: Relation, rank: _Rank, lift: Lift) -> Relation:
        partition = [lift(b) for b in rank.partition]
        order = [lift(b) for b, *_ in rank.order]
        plan, found = with_columns(relation.plan, [*partition, *order], self.names)
        by = tuple(dict.fromkeys(found[: len(partition)]))
        columns = found[len(partition) :]
        keys = {
            c: SortKey(c, desc, first) for c, (_, desc, first) in reversed([*zip(columns, rank.order, strict=True)])
        }
        sort = tuple(keys[c] for c in dict.fromkeys(columns))
        if rank.function == "row_number":
            return relation.over(TopK(plan, sort, partition=by, rank=rank.output))
        different = tuple(dict.fromkeys(found))
        if rank.function == "rank":
            row = self.names.unique("row_number")
            call = AggregateCall("MIN", rank.output, pa.int32(), row)
            values: Plan = Aggregate(TopK(plan, sort, partition=by, rank=row), different, (call,))
        else:
            kept = [(c, reference(plan.schema.field(c))) for c in different]
            values = TopK(Distinct(project(plan, kept)), sort, partition=by, rank=rank.output)
        keys_ = {n: Column(n, n, b.type, b.nullable) for n, b in zip(found, [*partition, *order], strict=True)}
        return self._joined(relation.over(plan), values, list(keys_.values()))

    def _with_groups(self, relation: Relation, grouping: Grouping, lift: Lift) -> Relation:
        plan, keys = grouping.over(relation, lift)
        return self._joined(relation.over(plan), grouping.build().plan, keys)

    def _joined(self, rows: Relation, values: Plan, keys: Sequence[Column], *equal: tuple[Column, Column]) -> Relation:
        """Every row with the values for its keys; NULL equals NULL here. ``equal``: further columns, under other names."""
        fresh = {key.internal: self.names.unique(key.internal) for key in keys}
        plan = project(values, [(fresh.get(f.name, f.name), reference(f)) for f in values.schema])
        predicates = []
        for key in keys:
            ours, theirs = _comparable(key), _comparable(evolve(key, internal=fresh[key.internal]))
            predicates.append(compared("=", ours, theirs))
        for own, other in equal:
            predicates.append(compared("=", _comparable(own), _comparable(other)))
        joined = join(rows, Relation(plan, (Item(()),)), JoinKind.INNER, predicates, self.names)
        return rows.over(joined.plan)


def _function_name(node: exp.Expr) -> str:
    while isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        node = node.this
    return str(node.meta.get("name") or node.name).lower()


def _comparable(column: Column) -> Bound:
    """A column as a key of a join; in a STRUCT where it may be NULL, for a STRUCT of NULL equals another one."""
    bound = Bound.of_column(column, exp.column(column.name))
    if not column.nullable:
        return bound
    return Bound(struct({"key": bound.expression}), False, bound.origin)
