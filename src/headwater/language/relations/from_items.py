"""The items of a FROM clause: streams, derived streams, sub-queries, constants and table functions, with their windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from attrs import define, evolve, field
from sqlglot import exp

from headwater.algebra.nodes import Dstream, Istream, Plan, RowWindow, SessionWindow, Split, Stamp
from headwater.algebra.properties import is_chronon
from headwater.errors import SqlError
from headwater.language.catalog import Derived, Stream, UnboundedWindow
from headwater.language.changes import CHANGED
from headwater.language.notices import Notice
from headwater.language.one_instant import BareItem
from headwater.language.parsing.syntax import RelationToStream, TableFunction
from headwater.language.relations.constants import bind_values
from headwater.language.relations.internal_windows import check_inside
from headwater.language.relations.lasting_rows import check_rows, check_short, repeated
from headwater.language.relations.table_functions import apply_session, apply_table_function
from headwater.language.relations.windowed_again import check_not_external, granule_notices
from headwater.language.relations.windows import apply_granularity, apply_window
from headwater.language.scope import Column, Item, NameSource, Scope, project, reference
from headwater.language.text import error_on, span
from headwater.language.time_units import timed_streams
from headwater.model.schema import Field

RELATION_TO_STREAM: dict[str, Callable[[Plan], Plan]] = {"ISTREAM": Istream, "DSTREAM": Dstream, "RSTREAM": Split}


@define
class Output:
    """What a query gives: its plan, whose columns have the names that the user sees."""

    plan: Plan
    columns: tuple[Column, ...]


@define
class Environment:
    """What a FROM clause needs from around it."""

    text: str
    lookup: Callable[[exp.Table], Stream | Derived | Output]
    bind_query: Callable[[exp.Expr], Output]
    unbounded: list[UnboundedWindow] = field(factory=list)
    notices: list[Notice] = field(factory=list)
    bare: list[BareItem] = field(factory=list)
    """The streams without a window, as they are written."""
    meant: set[str] = field(factory=set)
    """The streams that are said to be valid for an instant: NOW."""
    streams: Callable[[str], Stream | Derived | None] = lambda _: None
    """What the catalog has under the name of a source."""
    keys: Callable[[], dict[Plan, tuple[str, ...]]] = dict
    """The plans that have a PRIMARY KEY."""
    outer: Scope | None = None
    """What is in sight around the query, for a sub-query."""
    subquery: Callable[..., Any] | None = None
    """Binds a sub-query of an expression (``values.BindSubquery``)."""
    stamped: bool = False
    """Do the rows carry the instant of their arrival?"""

    def time_column(self, source: str) -> str | None:
        """The column that orders a source."""
        found = self.streams(source)
        return found.time if isinstance(found, Stream) and found.time != CHANGED else None

    def has_unit(self, source: str) -> bool:
        """Does the source declare that its instants are microseconds?"""
        found = self.streams(source)
        return isinstance(found, Stream) and found.time is not None and found.has_unit

    def times(self, plan: Plan) -> tuple[Stream, ...]:
        """The streams whose time a window over the plan counts, where its unit is known."""
        return timed_streams(plan, self.streams)

    def note_unbounded(self, plan: Plan, place: exp.Expr, item: Item) -> None:
        """A window of the item whose elements never expire, and where it is asked for."""
        start, end = span(place) or (0, 1)
        name = item.stream or item.alias or "sub-query"
        self.unbounded.append(UnboundedWindow(plan, name, self.text, start, end))


class ItemBinder:
    """Binds single items, each with the names of its own."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    def error(self, node: exp.Expr, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.environment.text, node, code, message, hint=hint)

    def bind(self, node: exp.Expr, *, stamped: bool = False) -> tuple[Item, Plan]:
        """The item under its own alias and window."""
        item, plan = self._reference(node)
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias):
            item = evolve(item, alias=alias.name or None)
            if alias.args.get("columns"):
                item = self._renamed(alias, item)
        window = node.args.get("stream_window")
        if stamped and ((window is not None and window.this != "NOW") or is_chronon(plan)):
            check_short(self.environment.text, window or node, plan, self.environment.has_unit, "an INTERNAL window")
            item, plan = _stamped(item, plan)
        below = plan
        if window is not None:
            item, plan = self._windowed(window, item, plan)
        if granularity := node.args.get("granularity"):
            text, notices = self.environment.text, self.environment.notices
            plan = apply_granularity(text, granularity, plan, notices, self.environment.times(plan))
        timed = any(stream.has_unit for stream in self.environment.times(plan))
        self.environment.notices += granule_notices(plan, below, timed=timed)
        return item, plan

    def _windowed(self, window: exp.Expr, item: Item, plan: Plan) -> tuple[Item, Plan]:
        text, has_unit, times = self.environment.text, self.environment.has_unit, self.environment.times(plan)
        check_not_external(text, window, plan)
        timed = isinstance(size := window.args.get("size"), exp.Expr) and size.args.get("unit") is not None
        if window.this in ("RANGE", "UNBOUNDED", "SESSION"):
            what = f"{'an' if window.this == 'UNBOUNDED' else 'a'} {window.this} window"
            check_short(text, window, plan, has_unit, what, timed=timed)
        if window.this == "SESSION":
            item, plan = apply_session(text, window, item, plan, self.environment.notices, times)
            self.environment.note_unbounded(plan, window, item)
            return item, plan
        below = plan
        plan, unbounded = apply_window(text, window, plan, item, self.environment.notices, times)
        if plan is below:  # NOW, RANGE 1
            self.environment.meant.update(plan.streams)
        if isinstance(plan, RowWindow):
            check_rows(text, window, plan.input, has_unit, plan.rows, plan.slide)
        if unbounded is not None:
            self.environment.note_unbounded(unbounded, window, item)
        return item, plan

    def _reference(self, node: exp.Expr) -> tuple[Item, Plan]:
        match node:
            case exp.Table():
                return self._named(node)
            case exp.Subquery():
                output = self.environment.bind_query(node.this)
                return Item(output.columns), output.plan
            case exp.Values():
                constant = bind_values(self.environment.text, node.expressions, place=node)
                return Item(tuple(_column(f) for f in constant.schema)), constant
            case RelationToStream():
                check_inside(self.environment.text, node, node.expression)
                item, plan = self._under_visible_names(node.expression)
                if node.this.name == "RSTREAM":
                    self.environment.notices += repeated(plan, self.environment.has_unit)
                return Item(item.columns, stream=item.label), RELATION_TO_STREAM[node.this.name](plan)
            case TableFunction():
                check_inside(self.environment.text, node, node.args["data"])
                item, plan = self._under_visible_names(node.args["data"])
                item, plan = apply_table_function(self.environment, node, item, plan)
                if isinstance(plan, SessionWindow):
                    self.environment.note_unbounded(plan, node, item)
                return evolve(item, alias=None, stream=item.label), plan
        raise self.error(node, "UNSUPPORTED", "this cannot be used in FROM")

    def _named(self, node: exp.Table) -> tuple[Item, Plan]:
        found = self.environment.lookup(node)
        if isinstance(found, Output):
            return Item(found.columns, stream=node.name), found.plan
        if isinstance(found, Derived):
            self.environment.unbounded.extend(found.unbounded)
        if node.args.get("stream_window") is None:
            alias, timed = node.args.get("alias"), all(s.has_unit for s in self.environment.times(found.plan))
            written = alias.name if isinstance(alias, exp.TableAlias) else None
            self.environment.bare.append(BareItem(node.name, written or None, found.plan, timed))
        time = found.time if isinstance(found, Stream) and found.time != CHANGED else None
        return Item(tuple(_column(f) for f in found.fields), stream=found.name, time=time), found.plan

    def _under_visible_names(self, node: exp.Expr) -> tuple[Item, Plan]:
        """An item inside of another one: the columns of its plan are called as users see them."""
        item, plan = self.bind(node)
        plan = project(plan, [(c.name, reference(c)) for c in item.columns])
        return evolve(item, columns=tuple(evolve(c, internal=c.name) for c in item.columns)), plan

    def _renamed(self, alias: exp.TableAlias, item: Item) -> Item:
        visible = [c for c in item.columns if c.copy_of is None]
        given = names_given(self.environment.text, alias, visible)
        pairs = list(zip(visible, given, strict=True))
        time = next((name for c, name in pairs if c.name == item.time), None)
        copies = item.columns[len(visible) :]
        return evolve(item, columns=(*(evolve(c, name=name) for c, name in pairs), *copies), time=time)


def names_given(text: str, alias: exp.TableAlias, columns: Sequence[Column]) -> list[str]:
    """The names in ``alias(a, b)``, one per column."""
    given = [c.name for c in alias.args.get("columns") or ()]
    if given and len(given) != len(columns):
        there = f"{len(columns)} column{'' if len(columns) == 1 else 's'}"
        names = "1 name is" if len(given) == 1 else f"{len(given)} names are"
        raise error_on(text, alias, "COLUMN_COUNT", f'"{alias.name}" has {there}, but {names} given')
    return given


def _stamped(item: Item, plan: Plan) -> tuple[Item, Plan]:
    """With the instant at which a row arrived. An interval without a window has no such instant: it is there for a while."""
    name = NameSource(plan.schema.names).unique("arrived")
    stamp = Column("", name, pa.int64(), nullable=False, hidden=True, stamp=True)
    return evolve(item, columns=(*item.columns, stamp)), Stamp(plan, name)


def _column(field: Field) -> Column:
    return Column(field.name, field.name, field.type, field.nullable)
