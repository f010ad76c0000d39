"""TUMBLE, HOP, CUMULATE and SESSION: rows with the ends of their window as two more columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Filter, HopWindow, Istream, Plan, SessionWindow, Stamp
from headwater.algebra.properties import RowTimes, row_times
from headwater.expressions import nodes
from headwater.expressions.nodes import Call, Expression
from headwater.language.catalog import Stream
from headwater.language.notices import Notice
from headwater.language.parsing.syntax import TableFunction
from headwater.language.predicates import test
from headwater.language.relations.windows import instants, partition_column, shift
from headwater.language.scope import Bound, Column, Item, NameSource, Scope, project, reference
from headwater.language.text import error_on
from headwater.language.types import shown


class Around(Protocol):
    """What these functions need to know of the query around them."""

    text: str
    notices: list[Notice]

    def time_column(self, source: str) -> str | None: ...

    def times(self, plan: Plan) -> tuple[Stream, ...]: ...


def apply_table_function(around: Around, node: TableFunction, item: Item, plan: Plan) -> tuple[Item, Plan]:
    """The rows of the item in their windows; its columns are called as users see them."""
    name, partition, text = node.this.name, node.args.get("partition"), around.text
    bound = Scope(text, (item,)).resolve(node.args["timecol"])
    times = row_times(plan, around.time_column)
    type_ = type_of_time(text, bound, (item,), "DESCRIPTOR", times)
    plan = at_their_times(plan, times)
    ends = start, end = _ends(item.columns, type_, around.notices)
    if name == "SESSION":
        columns = tuple(partition_column(text, c, item) for c in (partition.expressions if partition else ()))
        gap = instants(text, node.args["gap"], "the gap of a session", around.times(plan))
        return _with_ends(item, ends), SessionWindow(plan, gap, columns, start.name, end.name, type_)
    if partition is not None:
        hint = f"A row's window does not depend on others in {name}; GROUP BY the columns."
        raise error_on(text, partition, "UNSUPPORTED", "PARTITION BY can be used in SESSION only", hint=hint)
    if name == "CUMULATE":
        lengths = (node.args.get(key) for key in ("size", "step", "offset"))
        windows = _accumulating(text, *lengths, times=around.times(plan))
        return _with_ends(item, ends), accumulated(plan, *windows, ends)
    lengths = (node.args.get(key) for key in ("size", "slide", "offset"))
    size, slide, offset = hop(text, *lengths, times=around.times(plan))
    return _with_ends(item, ends), HopWindow(plan, size, slide, offset, start.name, end.name, type_)


def _accumulating(
    text: str, size: exp.Expr | None, step: exp.Expr | None, offset: exp.Expr | None, *, times: Sequence[Stream]
) -> tuple[int, int, int]:
    """Size, step and offset in instants."""
    assert size is not None
    assert step is not None
    length = instants(text, size, "the size of a window", times, "{}")
    every = instants(text, step, "the step of a window", times, "{}")
    if length % every:
        hint = "For example: CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY)."
        raise error_on(text, size, "WINDOW_SIZE", "the size of CUMULATE must be a multiple of its step", hint=hint)
    if offset is None:
        return length, every, 0
    return length, every, shift(text, offset, "the offset of a window", times, "{}") % length


def accumulated(plan: Plan, size: int, step: int, offset: int, ends: tuple[Column, Column]) -> Plan:
    """CUMULATE: hopping windows, of which a row keeps those that end before its window of full size does.

    With B the last multiple of the size at or before t, the row at t is in [B, B + step), [B, B + 2 step), …, [B, B + size)
    as far as they contain it: in the hopping windows that end by B + size.
    """
    start, end = ends
    instant = NameSource([*plan.schema.names, start.name, end.name]).unique("instant")
    hopping = HopWindow(Stamp(plan, instant), size, step, offset % step, start.name, end.name, start.type)
    at, until = nodes.Column(instant, pa.int64()), nodes.Column(end.name, end.type)
    past = _whole("pmod", _whole("-", at, _number(offset)), _number(size))  # since B
    begin = _whole("-", at, past)
    timed = pa.types.is_timestamp(end.type)
    ended = Call("unix_micros", (until,), pa.int64()) if timed else until
    within = test("<=", ended, _whole("+", begin, _number(size)))
    shown = Call("timestamp_micros", (begin,), start.type) if timed else begin
    kept = [(f.name, shown if f.name == start.name else reference(f)) for f in hopping.schema if f.name != instant]
    return project(Filter(hopping, within), kept)


def _number(value: int) -> Expression:
    return nodes.Literal(str(value), pa.int64())


def _whole(name: str, left: Expression, right: Expression) -> Expression:
    return Call(name, (left, right), pa.int64())


def hop(
    text: str,
    size: exp.Expr | None,
    slide: exp.Expr | None,
    offset: exp.Expr | None,
    *,
    times: Sequence[Stream],
    written: str = "{}",
) -> tuple[int, int, int]:
    """Size, slide (that of a tumbling window is its size) and offset in instants; ``times`` as for ``instants``."""
    assert size is not None
    length = instants(text, size, "the size of a window", times, written)
    step = instants(text, slide, "the slide of a window", times, written) if slide is not None else length
    if offset is None:
        return length, step, 0
    return length, step, shift(text, offset, "the offset of a window", times, written) % step


def apply_session(
    text: str, node: exp.Expr, item: Item, plan: Plan, notices: list[Notice], times: Sequence[Stream]
) -> tuple[Item, Plan]:
    """``WINDOW(PARTITION BY k SESSION 10 MINUTES)``, the same in our own words."""
    size = node.args["size"]
    gap = instants(text, size, "the gap of a session", times, "SESSION {}")
    columns = tuple(partition_column(text, c, item) for c in node.args.get("partition") or ())
    type_ = pa.int64() if size.args.get("unit") is None else pa.timestamp("us")
    if item.time is not None:
        type_ = _instants_as(next(c.type for c in item.columns if c.name == item.time))
    ends = start, end = _ends(item.columns, type_, notices)
    return _with_ends(item, ends), SessionWindow(plan, gap, columns, start.name, end.name, type_)


def _with_ends(item: Item, ends: Sequence[Column]) -> Item:
    return evolve(item, columns=(*item.columns, *ends), time=None)


def _ends(columns: Sequence[Column], type_: pa.DataType, notices: list[Notice]) -> tuple[Column, Column]:
    """The two new columns; they get a number where the item has such columns already."""
    names = NameSource([*(c.name for c in columns), *(c.internal for c in columns)])

    def end(wish: str) -> Column:
        name = names.unique(wish)
        if name != wish:
            notices.append(Notice("RENAMED_COLUMN", f'a second column "{wish}" is called "{name}"'))
        return Column(name, name, type_, nullable=False)

    return end("window_start"), end("window_end")


# -- time -------------------------------------------------------------------------------------------------------------


def at_their_times(plan: Plan, times: RowTimes) -> Plan:
    """Each row once, at its own time, also where it lasts: a row that holds its first instant is new only then."""
    return plan if times.lifetime == 1 else Istream(plan)


def type_of_time(text: str, column: Bound, items: Iterable[Item], word: str, times: RowTimes) -> pa.DataType:
    """The type of the window's ends, by the column that is named as the time of the rows, and must be that."""
    listed = tuple(items)
    declared = [(i, c) for i in listed if i.time is not None for c in i.columns if c.name == i.time]
    more = ", …" if word != "DESCRIPTOR" else ""
    if column.column not in times.columns and declared:
        item, time = declared[0]
        raise error_on(
            text,
            column.origin,
            "TIME_COLUMN",
            f'the time of stream "{item.label}" is its column "{time.name}"',
            hint=f"It is declared so (ORDERED BY); write {word}({time.name}{more}).",
        )
    type_ = column.type
    if column.column is None or not (
        pa.types.is_integer(type_) or pa.types.is_timestamp(type_) or pa.types.is_date32(type_)
    ):
        found = shown(type_) if column.column is not None else "an expression"
        message = f"{word} takes a TIMESTAMP or an integer column, not {found}"
        raise error_on(text, column.origin, "TYPE_MISMATCH", message)
    if column.column not in times.columns:
        known = [c.name for i in listed for c in i.columns if c.internal in times.columns and c.name]
        hint = "Declare it: CREATE STREAM … ORDERED BY; in a sub-query, select that column as it is."
        raise error_on(
            text,
            column.origin,
            "TIME_COLUMN",
            f'column "{column.origin.name}" is not known to be the time of its rows',
            detail="Rows are put into windows by the time at which they are valid, not by any other column.",
            hint=f"Write {word}({known[0]}{more})." if known else hint,
        )
    return _instants_as(type_)


def _instants_as(type_: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(type_) else pa.timestamp("us")
