"""ORDER BY, LIMIT, OFFSET and DISTINCT ON: which rows of each snapshot stay (top-k)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import evolve, frozen
from sqlglot import exp

from headwater.algebra.nodes import Join, JoinKind, Plan, SortKey, TopK
from headwater.errors import SqlError
from headwater.expressions.types import is_nested
from headwater.language.expressions import ExpressionBinder, check_column_type
from headwater.language.notices import Notice
from headwater.language.predicates import struct
from headwater.language.relations.from_items import Output
from headwater.language.relations.joins import with_columns
from headwater.language.scope import Bound, Column, Item, NameSource, Scope, project, reference
from headwater.language.select.group_windows import is_window_call
from headwater.language.select.grouping import as_operand, at_position
from headwater.language.select.select_list import Chosen, Projected
from headwater.language.text import OfText, error_on
from headwater.language.types import shown
from headwater.model.time import INFINITY

_NOT_KEPT = Notice(
    "ORDER_NOT_KEPT",
    "ORDER BY without LIMIT changes nothing: a stream is ordered by time",
    "Add LIMIT k for the first rows of each snapshot, or sort what you take from the stream.",
)


@frozen
class Limits:
    """How many rows of a snapshot are left out, and how many come then."""

    limit: int = INFINITY
    offset: int = 0
    ties: bool = False
    """Do equals of the last one come, too?"""

    @property
    def all_rows(self) -> bool:
        return self.limit == INFINITY and self.offset == 0


class Ordering(OfText):
    """The order of one query's rows, and which of them stay."""

    def __init__(self, text: str, node: exp.Expr, *, copies: int = 0) -> None:
        """``copies``: so many columns in the end are of an outer row; there is an order for each value of them."""
        self.text, self._copies = text, copies
        order = node.args.get("order")
        if order is not None and order.args.get("siblings"):
            raise self.error(order, "UNSUPPORTED", "ORDER SIBLINGS BY is not supported")
        self._written: list[exp.Ordered] = list(order.expressions) if order is not None else []
        for item in self._written:
            if item.args.get("with_fill"):
                raise self.error(item, "UNSUPPORTED", "WITH FILL is not supported")
        self.limits = limits(text, node)
        distinct = node.args.get("distinct") if isinstance(node, exp.Select) else None
        self._distinct = distinct is not None
        on = distinct.args.get("on") if distinct is not None else None
        self._on: list[exp.Expr] = [] if on is None else list(on.expressions if isinstance(on, exp.Tuple) else [on])
        self._sorted: list[tuple[exp.Ordered, int]] = []
        self._partition: list[int] = []

    @property
    def distinct(self) -> bool:
        """DISTINCT of whole rows."""
        return self._distinct and not self._on

    @property
    def chooses(self) -> bool:
        """Does the order decide about rows?"""
        return bool(self._on) or not self.limits.all_rows

    @property
    def notices(self) -> list[Notice]:
        return [_NOT_KEPT] if self._written and not self.chooses else []

    # -- over a select list -----------------------------------------------------------------------------------------

    def columns(self, visible: Sequence[Chosen]) -> list[Chosen]:
        """What must be computed beside the select list; remembers where everything is found."""
        hidden: list[Chosen] = []

        def number(node: exp.Expr) -> int:
            found = self._in_list(node, visible)
            if found is None:
                hidden.append(Chosen("order", _with_aliases(node, visible), hidden=True))
                return len(visible) + len(hidden) - 1
            return found

        for item in self._written:
            places = range(len(visible)) if _is_all(item.this) else [number(item.this)]
            self._sorted.extend((item, place) for place in places)
        self._partition = [number(node) for node in self._on]
        return hidden

    def _in_list(self, node: exp.Expr, visible: Sequence[Chosen]) -> int | None:
        """The number of the column that a position or a name means."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Literal) and node.is_int:
            return visible.index(at_position(self.text, node, visible, "ORDER BY", "ORDER_POSITION"))
        if isinstance(node, exp.Column) and not node.args.get("table"):
            named = [i for i, c in enumerate(visible) if c.name.casefold() == node.name.casefold()]
            if len(named) == 1 or any(visible[i].aliased for i in named):
                return next((i for i in named if visible[i].aliased), named[0])
        return None

    def applied(self, projected: Projected) -> Plan:
        """The rows that stay, without the hidden columns."""
        plan, types = projected.plan, {f.name: f.type for f in projected.plan.schema}
        keys = []
        for item, place in self._sorted:
            name = projected.names[place]
            if self._distinct and not self._on and name not in {c.internal for c in projected.columns}:
                raise self._not_selected(item)
            self._check_orderable(item, types.get(name))
            keys.append(_sort_key(item, name))
        if not self.chooses:
            return plan
        order, outer = _unique(keys), self._outer(projected.columns)
        if self._on:
            partition = tuple(dict.fromkeys((*outer, *(projected.names[place] for place in self._partition))))
            plan = TopK(plan, order, 1, 0, partition)
        plan = _top(plan, order, self.limits, outer)
        return project(plan, [(c.name, reference(c)) for c in projected.columns])

    def _outer(self, columns: Sequence[Column]) -> tuple[str, ...]:
        return tuple(c.internal for c in columns[len(columns) - self._copies :])

    def _not_selected(self, item: exp.Ordered) -> SqlError:
        return self.error(
            item,
            "ORDER_DISTINCT",
            "with DISTINCT, ORDER BY can use only what is in the select list",
            hint="Add it to the select list, or GROUP BY the columns and order by an aggregate.",
        )

    def _check_orderable(self, item: exp.Ordered, type_: pa.DataType | None) -> None:
        if type_ is not None and is_nested(type_):
            message = f"ORDER BY takes a value that can be ordered, not {shown(type_)}"
            raise self.error(item, "TYPE_MISMATCH", message)

    # -- over a result ----------------------------------------------------------------------------------------------

    def over(self, output: Output) -> Output:
        """The rows that stay of a set operation or of a query in parentheses: the order sees its columns only."""
        keys = [(item, bound) for item in self._written for bound in self._bound(item, output)]
        for item, bound in keys:
            self._check_orderable(item, bound.type)
        if not self.chooses:
            return output
        names = NameSource(output.plan.schema.names)
        plan, found = with_columns(output.plan, [bound for _, bound in keys], names)
        order = _unique([_sort_key(item, name) for (item, _), name in zip(keys, found, strict=True)])
        plan = _top(plan, order, self.limits, self._outer(output.columns))
        return evolve(output, plan=project(plan, [(c.name, reference(c)) for c in output.columns]))

    def _bound(self, item: exp.Ordered, output: Output) -> list[Bound]:
        if _is_all(item.this):
            return [Bound.of_column(c, item) for c in output.columns]
        visible = [Chosen(c.name, item.this, c) for c in output.columns]
        place = self._in_list(item.this, visible)
        if place is not None:
            return [Bound.of_column(output.columns[place], item)]
        binder = ExpressionBinder(Scope(self.text, (Item(output.columns),)), "ORDER BY")
        bound = binder.bind(item.this)
        check_column_type(binder, bound)
        return [bound]


def chooses_rows(node: exp.Select) -> bool:
    """Does the query keep only some of its rows by their order, or number them? Then it is no plain block."""
    distinct, group = node.args.get("distinct"), node.args.get("group")
    return (
        any(node.args.get(clause) for clause in ("limit", "offset", "qualify"))
        or (distinct is not None and distinct.args.get("on") is not None)
        or any(e.find(exp.Window) for e in node.expressions)
        or (group is not None and any(is_window_call(e.unnest()) for e in group.expressions))
    )


def keeps_some_rows(text: str, node: exp.Expr) -> bool:
    """Does it have rows whenever it would have some without its order and limit?"""
    found = limits(text, node)
    return not node.args.get("qualify") and found.offset == 0 and found.limit > 0


# -- numbers of rows --------------------------------------------------------------------------------------------------


def limits(text: str, node: exp.Expr) -> Limits:
    """LIMIT k or FETCH FIRST k ROWS ONLY, and OFFSET m."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    for clause in (limit, offset):
        if clause is not None and clause.expressions:
            raise error_on(
                text,
                clause,
                "UNSUPPORTED",
                "LIMIT … BY is not supported",
                hint="Write QUALIFY ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) <= k.",
            )
    found = Limits()
    if limit is not None:
        options = limit.args.get("limit_options")
        found = evolve(
            found, limit=_limit(text, limit), ties=bool(options is not None and options.args.get("with_ties"))
        )
        if found.ties and offset is not None:
            hint = "Filter ranks instead: QUALIFY RANK() OVER (ORDER BY …) BETWEEN 3 AND 5."
            raise error_on(text, offset, "UNSUPPORTED", "WITH TIES cannot be used with OFFSET", hint=hint)
        if found.ties and not node.args.get("order"):
            raise error_on(text, limit, "SYNTAX", "WITH TIES needs an order", hint="Write ORDER BY … FETCH FIRST …")
    if offset is not None:
        found = evolve(found, offset=_number(text, offset.expression, "OFFSET"))
    return found


def _limit(text: str, node: exp.Expr) -> int:
    options = node.args.get("limit_options")
    if options is not None and options.args.get("percent"):
        hint = "Compare a rank with a number of rows: QUALIFY ROW_NUMBER() OVER (ORDER BY …) <= 0.1 * COUNT(*) OVER ()."
        raise error_on(text, node, "UNSUPPORTED", "PERCENT is not supported", hint=hint)
    if isinstance(node, exp.Fetch):
        count = node.args.get("count")
        return 1 if count is None else _number(text, count, "FETCH")
    if isinstance(node.expression, exp.Var):  # LIMIT ALL
        return INFINITY
    return _number(text, node.expression, "LIMIT")


def _number(text: str, node: exp.Expr, word: str) -> int:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Neg):
        raise error_on(text, node, "INVALID_LIMIT", f"{word} cannot be negative")
    if not (isinstance(node, exp.Literal) and node.is_int and not node.is_string):
        raise error_on(text, node, "INVALID_LIMIT", f"{word} must be a whole number")
    return min(int(node.name), INFINITY)


# -- keys -------------------------------------------------------------------------------------------------------------


def _is_all(node: exp.Expr) -> bool:
    """ORDER BY ALL: by every column, from left to right."""
    return isinstance(node, exp.Var) and node.name.upper() == "ALL"


def _with_aliases(node: exp.Expr, visible: Sequence[Chosen]) -> exp.Expr:
    """An expression of ORDER BY sees what the select list names before the columns of FROM (Spark)."""
    aliases = {c.name.casefold(): c.node for c in visible if c.aliased}

    def replaced(inner: exp.Expr) -> exp.Expr:
        if isinstance(inner, exp.Column) and not inner.args.get("table") and inner.name.casefold() in aliases:
            return as_operand(aliases[inner.name.casefold()])
        return inner

    return node.transform(replaced) if aliases else node


def _sort_key(item: exp.Ordered, column: str) -> SortKey:
    return SortKey(column, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))


def _unique(keys: Sequence[SortKey]) -> tuple[SortKey, ...]:
    """Only the first key of a column decides."""
    return tuple({k.column: k for k in reversed(keys)}[name] for name in dict.fromkeys(k.column for k in keys))


def _top(plan: Plan, order: tuple[SortKey, ...], limits_: Limits, partition: tuple[str, ...]) -> Plan:
    if limits_.all_rows:
        return plan
    first = TopK(plan, order, limits_.limit, limits_.offset, partition)
    return _with_equals(plan, first, (*partition, *(key.column for key in order))) if limits_.ties else first


def _with_equals(plan: Plan, first: Plan, columns: Sequence[str]) -> Plan:
    """The rows that have the values of one of the first ones; a STRUCT of NULL equals another one."""
    names = NameSource(plan.schema.names)
    ours, theirs = names.unique("tie"), names.unique("tie")
    values = struct({name: reference(plan.schema.field(name)) for name in dict.fromkeys(columns)})
    kept = [(f.name, reference(f)) for f in plan.schema]
    marked = project(plan, [*kept, (ours, values)])
    found = Join(marked, project(first, [(theirs, values)]), JoinKind.SEMI, ((ours, theirs),), None)
    return project(found, kept)
