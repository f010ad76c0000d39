"""OVER with an order: each row with what functions say of the rows before it, as in Flink (OVER aggregation).

The order is that of time, so rows are of one instant each; the answer for a row is valid when the row is. Frames of rows,
and those that begin with the partition, are a node of their own; other frames of time are windows of that length,
aggregated and joined to the rows that end them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from attrs import evolve, frozen
from sqlglot import exp

from headwater.algebra.nodes import FRAME_AGGREGATES, FrameCall, Frames, Plan, TimeWindow
from headwater.algebra.time_properties import RowTimes
from headwater.errors import SqlError
from headwater.expressions.nodes import Case, Expression
from headwater.expressions.types import common_type
from headwater.language.expressions import ExpressionBinder, check_column_type
from headwater.language.functions.user_functions import find_aggregate_function
from headwater.language.parsing.syntax import Duration
from headwater.language.predicates import test, whole_number
from headwater.language.relations.joins import with_columns
from headwater.language.relations.windows import instants
from headwater.language.scope import Bound, Column, NameSource, Relation, Scope
from headwater.language.select.aggregates import NO_ROWS, Grouping
from headwater.language.text import error_on
from headwater.language.types import shown
from headwater.model.time import INFINITY

FRAME_FUNCTIONS = ("lag", "lead", "first_value", "last_value", "nth_value")
"""Functions with OVER that are the value of another row."""
_SAME = {"first": "first_value", "last": "last_value"}
_ARGUMENTS = {"lag": "(x [, rows [, default]])", "nth_value": "(x, n)"}
_PAIRS = (
    "Take each row with the one before it: SELECT LAG(x) OVER (PARTITION BY k ORDER BY ts) AS x, x AS next_x FROM …"
)
_RANGE = "RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
_BEFORE = f"Write ROWS BETWEEN 9 PRECEDING AND CURRENT ROW, or {_RANGE}."

Lift = Callable[[Bound], Bound]
Join = Callable[[Relation, Plan, Sequence[Column], tuple[Column, Column]], Relation]
"""The rows with values for their keys, where a column of the rows is equal to one of the values."""


@frozen
class Order:
    """What is known of the rows: which columns hold their time, and whom to tell of state that stays for ever."""

    times: RowTimes
    note_unbounded: Callable[[Plan, exp.Expr], None]


@frozen
class Frame:
    """From ``first`` before the row (INFINITY: from the beginning) to ``last`` before it, in rows or in instants."""

    rows: bool
    first: int = INFINITY
    last: int = 0

    @property
    def counts_rows(self) -> bool:
        """Is it computed row by row?"""
        return self.rows or self.first == INFINITY


@frozen(eq=False)
class _Call:
    """A call over the rows themselves; its arguments are bound over the rows of the query."""

    call: FrameCall
    argument: Bound | None
    condition: Bound | None
    origin: exp.Expr


class RunningFrames:
    """Collects the calls of one query block that go by time, and adds their columns to its rows."""

    def __init__(self, scope: Scope, names: NameSource, order: Order | None) -> None:
        """``order`` is None over groups, which have no order of time."""
        self.scope, self.names, self._order = scope, names, order
        self._calls: dict[tuple[Expression, ...], tuple[tuple[Bound, ...], dict[object, _Call]]] = {}
        self._ranges: dict[object, tuple[Grouping, Frame, Column, Bound, exp.Expr]] = {}

    def error(self, node: exp.Expr | None, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.scope.text, node, code, message, hint=hint)

    @property
    def called(self) -> bool:
        return bool(self._calls or self._ranges)

    # -- collecting -------------------------------------------------------------------------------------------------

    def call(self, node: exp.Window, window: exp.Window, name: str, partition: tuple[Bound, ...]) -> Bound:
        """The call as a column of the rows."""
        if name == "lead":
            message = "LEAD is not supported: what comes after a row is not known at its time"
            raise self.error(node, "UNSUPPORTED", message, hint=_PAIRS)
        name = _SAME.get(name, name)
        time = self._time(node, window, name)
        frame = self._frame(node, window, name)
        in_time = name in ("first_value", "last_value") and not frame.rows  # aggregates know such values, too
        if in_time and (_ignores_nulls(node) or (name == "first_value" and not frame.counts_rows)):
            return self._over_range(node, partition, frame, time)
        if name in FRAME_FUNCTIONS:
            return self._value(node, name, partition, frame)
        function = find_aggregate_function(name)
        computed = "" if function is None else function.means or function.name
        if frame.counts_rows and computed in FRAME_AGGREGATES and not _is_distinct(node):
            return self._aggregate(node, partition, frame)
        if frame.rows:
            many = ", ".join(FRAME_AGGREGATES)
            what = f"{name.upper()}(DISTINCT …)" if _is_distinct(node) else name.upper()
            hint = f"Frames of rows take {many}; any aggregate goes with {_RANGE}."
            raise self.error(node, "UNSUPPORTED", f"{what} OVER a frame of rows is not supported", hint=hint)
        return self._over_range(node, partition, frame, time)

    def _time(self, node: exp.Window, window: exp.Window, name: str) -> Bound:
        """The column of the order, which must be the time of the rows."""
        order, word = window.args.get("order"), name.upper()
        if order is None:
            hint = "Write OVER (PARTITION BY … ORDER BY ts …), with the time of the rows."
            raise self.error(node, "SYNTAX", f"{word} OVER a frame needs an order", hint=hint)
        if self._order is None:
            hint = (
                "Compute the groups in a sub-query of FROM, and select Istream(…) of it: each group once, at its time."
            )
            raise self.error(
                node, "UNSUPPORTED", f"{word} OVER with an order cannot be computed over groups", hint=hint
            )
        times, first = self._order.times, order.expressions[0]
        bound = ExpressionBinder(self.scope, "OVER").bind(first.this)
        known = [c.name for i in self.scope.items for c in i.columns if c.internal in times.columns and c.name]
        if times.columns and times.lifetime != 1:
            hint = f"Leave the window out of FROM, and write OVER (ORDER BY ts {_RANGE}); or select Istream(…) below."
            message = f"{word} OVER with an order goes by single rows, but the rows of FROM last"
            raise self.error(node, "UNSUPPORTED", message, hint=hint)
        if bound.column not in times.columns:
            hint = "Declare the time: CREATE STREAM … ORDERED BY ts; in a sub-query, select that column as it is."
            message = f"{word} OVER goes by the time of the rows, and by no other order"
            raise self.error(first.this, "TIME_COLUMN", message, hint=f"Write ORDER BY {known[0]}." if known else hint)
        if first.args.get("desc") or len(order.expressions) > 1:
            hint = f"Write ORDER BY {first.this.name}: rows of one instant go by their values."
            message = f"{word} OVER goes by ascending time, and by nothing else"
            raise self.error(order.expressions[-1], "UNSUPPORTED", message, hint=hint)
        return bound

    # -- frames -----------------------------------------------------------------------------------------------------

    def _frame(self, node: exp.Window, window: exp.Window, name: str) -> Frame:
        spec = window.args.get("spec")
        if spec is None:
            return Frame(rows=False)
        if name == "lag":
            hint = "Leave the frame out: LAG(x, 2) is the value two rows before."
            raise self.error(node, "SYNTAX", "LAG takes no frame", hint=hint)
        kind, end = str(spec.args.get("kind") or "").upper(), spec.args.get("end")
        following = "FOLLOWING" in (spec.args.get("start_side"), spec.args.get("end_side"))
        if kind not in ("ROWS", "RANGE") or spec.args.get("exclude") or following:
            what = "FOLLOWING" if following else "EXCLUDE" if spec.args.get("exclude") else kind
            raise self.error(node, "UNSUPPORTED", f"a frame with {what} is not supported", hint=_BEFORE)
        rows = kind == "ROWS"
        first = self._bound_of_frame(node, window, spec.args.get("start"), rows=rows)
        last = self._bound_of_frame(node, window, end, rows=rows) if end is not None else 0
        if last == INFINITY or first < last:
            raise self.error(node, "SYNTAX", "the frame ends before it begins", hint=_BEFORE)
        if last and not rows:
            hint = "End it at CURRENT ROW, or count rows: ROWS BETWEEN 9 PRECEDING AND 1 PRECEDING."
            raise self.error(node, "UNSUPPORTED", "a RANGE frame that ends before the row is not supported", hint=hint)
        return Frame(rows, first, last)

    def _bound_of_frame(self, node: exp.Window, window: exp.Window, bound: object, *, rows: bool) -> int:
        """How far before the row: a number of rows, or of instants."""
        if isinstance(bound, str):
            return INFINITY if bound == "UNBOUNDED" else 0
        if rows:
            if not (isinstance(bound, exp.Literal) and not bound.is_string and bound.name.isdecimal()):
                place = bound if isinstance(bound, exp.Expression) else node
                raise self.error(place, "WINDOW_SIZE", "a frame of ROWS takes a whole number", hint=_BEFORE)
            return int(bound.name)
        number, unit = bound, None
        if isinstance(bound, exp.Interval):
            number, unit = bound.this, bound.args.get("unit")
        if not isinstance(number, exp.Literal):
            raise self.error(node, "WINDOW_SIZE", "a frame of RANGE takes a constant length of time", hint=_BEFORE)
        time = ExpressionBinder(self.scope, "OVER").bind(window.args["order"].expressions[0].this)
        if pa.types.is_integer(time.type) != (unit is None):
            given, right = ("a unit", f"RANGE {number.name} PRECEDING") if unit is not None else ("no unit", _RANGE)
            message = f'the time "{time.origin.name}" is {shown(time.type)}, but the frame has {given}'
            raise self.error(node, "TIME_UNIT", message, hint=f"Write {right}.")
        if number.name == "0":
            return 0
        length = Duration(this=number.name, unit=unit).update_positions(number)
        return instants(self.scope.text, length, "the length of a frame")

    # -- calls ------------------------------------------------------------------------------------------------------

    def _value(self, node: exp.Window, name: str, partition: tuple[Bound, ...], frame: Frame) -> Bound:
        function = node.this.this if isinstance(node.this, exp.RespectNulls) else node.this
        if not isinstance(function, exp.Anonymous) or _ignores_nulls(node):
            what = "FILTER" if isinstance(function, exp.Filter) else "IGNORE NULLS"
            hint = "Leave the rows out in a sub-query: FROM (SELECT … FROM s WHERE x IS NOT NULL)."
            if name in ("first_value", "last_value") and what == "IGNORE NULLS":
                hint = f"Write OVER (… ORDER BY ts), or a frame of time: {_RANGE}."
            raise self.error(node, "UNSUPPORTED", f"{name.upper()} with {what} is not supported", hint=hint)
        given, most = function.expressions, 3 if name == "lag" else 2 if name == "nth_value" else 1
        if not (2 if name == "nth_value" else 1) <= len(given) <= most:
            hint = f"Write {name.upper()}{_ARGUMENTS.get(name, '(x)')}."
            message = f'function "{name}" does not take {len(given)} argument{"s" if len(given) != 1 else ""}'
            raise self.error(function, "WRONG_ARGUMENTS", message, hint=hint)
        value = self._bound(given[0])
        value = value.cast(pa.string()) if pa.types.is_null(value.type) else value
        if name == "lag":
            return self._lag(node, partition, value, given)
        if not frame.counts_rows and name == "nth_value":
            hint = "Write ROWS BETWEEN 9 PRECEDING AND CURRENT ROW, or RANGE UNBOUNDED PRECEDING."
            raise self.error(node, "UNSUPPORTED", f"{name.upper()} over a bounded RANGE is not supported", hint=hint)
        nth = 0 if name == "last_value" else 1 if name == "first_value" else self._number(given[1], 1)
        call = FrameCall("NTH_VALUE" if nth else "LAST_VALUE", name, value.type, nth=nth)
        return self._added(node, partition, _framed(call, frame), value, None)

    def _lag(self, node: exp.Window, partition: tuple[Bound, ...], value: Bound, given: Sequence[exp.Expr]) -> Bound:
        """The value of a row before; where there is none, the default, which may depend on the row itself."""
        rows = self._number(given[1], 0) if len(given) > 1 else 1
        place = Frame(True, rows, rows)
        call = FrameCall("LAST_VALUE", "lag", value.type)
        found = self._added(node, partition, _framed(call, place), value, None)
        if len(given) < 3:
            return found
        default = self._bound(given[2])
        type_ = common_type(value.type, default.type)
        if type_ is None:
            message = f"LAG has a value of {shown(value.type)}, but a default of {shown(default.type)}"
            raise self.error(given[2], "TYPE_MISMATCH", message)
        count = self._added(node, partition, _framed(FrameCall("COUNT", "rows", pa.int64()), place), None, None)
        none = test("=", count.expression, whole_number(0, pa.int64()))
        branches = ((none, default.cast(type_).expression),)
        return Bound(Case(branches, type_, found.cast(type_).expression), True, node)

    def _number(self, node: exp.Expr, least: int) -> int:
        if not (
            isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal() and int(node.name) >= least
        ):
            raise self.error(node, "WRONG_ARGUMENTS", f"the number of rows must be a constant from {least} on")
        return int(node.name)

    def _bound(self, node: exp.Expr) -> Bound:
        binder = ExpressionBinder(self.scope, "OVER")
        bound = binder.bind(node)
        check_column_type(binder, bound)
        return bound

    def _aggregate(self, node: exp.Window, partition: tuple[Bound, ...], frame: Frame) -> Bound:
        """An aggregate over the rows themselves; bound as one of a grouping is."""
        grouping = Grouping(NO_ROWS, self.scope, self.names)
        grouping.call(node.this)
        ((call, argument, condition),) = grouping.calls
        framed = FrameCall(call.function, call.output, call.type)
        return self._added(node, partition, _framed(framed, frame), argument, condition)

    def _added(
        self,
        node: exp.Window,
        partition: tuple[Bound, ...],
        call: FrameCall,
        argument: Bound | None,
        condition: Bound | None,
    ) -> Bound:
        """The column of a call; calls that are the same are one."""
        _, calls = self._calls.setdefault(tuple(b.expression for b in partition), (partition, {}))
        read = tuple(b.expression if b is not None else None for b in (argument, condition))
        key = (evolve(call, output=""), read)
        if key not in calls:
            calls[key] = _Call(evolve(call, output=self.names.unique(call.output)), argument, condition, node)
        field = calls[key].call.result
        return Bound.of_column(Column(field.name, field.name, field.type, field.nullable), node)

    def _over_range(self, node: exp.Window, partition: tuple[Bound, ...], frame: Frame, time: Bound) -> Bound:
        key = (tuple(b.expression for b in partition), frame)
        if key not in self._ranges:
            grouping = Grouping(NO_ROWS, self.scope, self.names)
            for by in partition:
                grouping.add_key(by)
            # Where a row is, the newest of its frame is as old as the row: so each finds its own frame by a key.
            newest = grouping.call(exp.Anonymous(this="MAX", expressions=[time.origin.copy()]))
            assert newest.column is not None
            column = Column(newest.column, newest.column, newest.type, nullable=False)
            self._ranges[key] = (grouping, frame, column, time, node)
        return self._ranges[key][0].call(node.this)

    # -- building ---------------------------------------------------------------------------------------------------

    def applied(self, relation: Relation, lift: Lift, join: Join) -> Relation:
        """The rows with a column for every call."""
        for partition, calls in self._calls.values():
            relation = self._with_frames(relation, partition, calls, lift)
        keys: list[list[Column]] = []
        for grouping, *_ in self._ranges.values():
            plan, found = grouping.over(relation, lift)
            relation = relation.over(plan)
            keys.append(found)
        rows = relation
        for by, (grouping, frame, newest, time, node) in zip(keys, self._ranges.values(), strict=True):
            window = TimeWindow(rows.plan, frame.first if frame.first == INFINITY else frame.first + 1)
            if window.unbounded:
                self._note(window, node)
            grouping.relation = rows.over(window)
            assert time.column is not None
            own = Column(time.column, time.column, time.type, nullable=False)
            relation = join(relation, grouping.build().plan, by, (own, newest))
        return relation

    def _with_frames(
        self, relation: Relation, partition: tuple[Bound, ...], calls: Mapping[object, _Call], lift: Lift
    ) -> Relation:
        read = [lift(b) for c in calls.values() for b in (c.argument, c.condition) if b is not None]
        plan, found = with_columns(relation.plan, [*map(lift, partition), *read], self.names)
        columns = iter(found[len(partition) :])
        framed = tuple(
            evolve(
                c.call,
                argument=next(columns) if c.argument is not None else None,
                filter=next(columns) if c.condition is not None else None,
            )
            for c in calls.values()
        )
        frames = Frames(plan, framed, tuple(dict.fromkeys(found[: len(partition)])))
        kept = next((c.origin for c in calls.values() if c.call.keeps_totals), None)
        if kept is not None:
            self._note(frames, kept)
        return relation.over(frames)

    def _note(self, plan: Plan, node: exp.Expr) -> None:
        assert self._order is not None
        self._order.note_unbounded(plan, node)


def goes_by_time(window: exp.Window, name: str) -> bool:
    """Is it no function of whole partitions?"""
    spec = window.args.get("spec")
    whole = spec is not None and spec.args.get("start") == "UNBOUNDED" and spec.args.get("end") == "UNBOUNDED"
    return name in FRAME_FUNCTIONS or window.args.get("order") is not None or (spec is not None and not whole)


def _framed(call: FrameCall, frame: Frame) -> FrameCall:
    """The call over a frame; the rows of an instant are peers in one of RANGE."""
    if frame.rows:
        return evolve(call, first=frame.first, last=frame.last)
    return evolve(call, first=INFINITY, peers=True)


def _ignores_nulls(node: exp.Window) -> bool:
    return node.this.find(exp.IgnoreNulls) is not None


def _is_distinct(node: exp.Window) -> bool:
    return node.this.find(exp.Distinct) is not None
