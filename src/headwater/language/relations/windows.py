"""Windows of the FROM clause as operators of the plan (Krämer 7.2.3, 9.1, 17.1, 20.2)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp

from headwater.algebra.nodes import Granularity, Plan, RowWindow, TimeWindow
from headwater.language.catalog import Stream
from headwater.language.durations import microseconds
from headwater.language.notices import Notice
from headwater.language.scope import Item, Scope
from headwater.language.text import error_on
from headwater.language.time_units import check_unit
from headwater.model.time import INFINITY

_NOT_ADAPTED = "Sizes in between come with adaptation; until then this is as if only the better one were given."
_LARGEST = Notice("NOT_ADAPTED", "a window with MIN and MAX has its MAX size, whatever the load", _NOT_ADAPTED)
_FINEST = Notice("NOT_ADAPTED", "a granularity with COARSEST and FINEST is the FINEST, whatever the load", _NOT_ADAPTED)


def apply_window(
    text: str, node: exp.Expr, plan: Plan, item: Item, notices: list[Notice], times: Sequence[Stream] = ()
) -> tuple[Plan, TimeWindow | None]:
    """The plan under its window; also returns the window if it is UNBOUNDED. ``times``: the streams whose time it counts.

    A now-window is the identity and leaves no trace (Krämer 9.2, rule 10.7). Of sizes between which the system may choose
    the largest is the best (21.2).
    """
    partition = tuple(partition_column(text, column, item) for column in node.args.get("partition") or ())
    kind, slide_node = node.this, node.args.get("slide")
    if kind == "NOW":
        return plan, None
    if kind == "UNBOUNDED":
        if slide_node:
            raise error_on(text, slide_node, "WINDOW_SIZE", "an UNBOUNDED window does not slide")
        window = TimeWindow(plan, INFINITY)
        return window, window
    if kind == "ROWS":
        rows = _count(text, node.args["size"])
        slide = _count(text, slide_node) if slide_node else 1
        if least := node.args.get("least"):
            _check_sizes(text, least, _count(text, least), rows, notices)
        return RowWindow(plan, rows, slide, partition), None
    size = instants(text, node.args["size"], "the size of a window", times, "RANGE {}")
    slide = instants(text, slide_node, "the slide of a window", times, "SLIDE {}") if slide_node else 1
    if least := node.args.get("least"):
        _check_sizes(text, least, instants(text, least, "the size of a window", times, "MIN {}"), size, notices)
    return (plan if size == slide == 1 else TimeWindow(plan, size, slide)), None


def _check_sizes(text: str, node: exp.Expr, least: int, most: int, notices: list[Notice]) -> None:
    if least >= most:
        what = "MIN and MAX are the same size" if least == most else "MIN is larger than MAX"
        hint = "Give one size, or a MIN that is smaller than MAX."
        raise error_on(text, node, "WINDOW_SIZE", what, hint=hint)
    notices.append(_LARGEST)


def apply_granularity(
    text: str, node: exp.Expr, plan: Plan, notices: list[Notice], times: Sequence[Stream] = ()
) -> Plan:
    """What is left at the granules; of granularities between which the system may choose the finest is the best (21.2)."""
    granule = instants(text, node.this, "a granularity", times, "GRANULARITY({})")
    if coarsest := node.args.get("coarsest"):
        _check_granules(text, node, instants(text, coarsest, "a granularity", times, "COARSEST {}"), granule)
        notices.append(_FINEST)
    return plan if granule == 1 else Granularity(plan, granule)


def _check_granules(text: str, node: exp.Expr, coarsest: int, finest: int) -> None:
    """What is exact at the coarse granules must be so at the fine ones: these divide those (20.3)."""
    if coarsest == finest:
        message, hint = "COARSEST and FINEST are the same granularity", "Give one granularity."
    elif coarsest < finest:
        message, hint = "COARSEST is finer than FINEST", "A coarse granule is the longer one."
    elif coarsest % finest:
        message, hint = "COARSEST must be a multiple of FINEST", "For example: COARSEST 1 MINUTE, FINEST 10 SECONDS."
    else:
        return
    raise error_on(text, node, "WINDOW_SIZE", message, hint=hint)


def instants(text: str, node: exp.Expr, what: str, times: Sequence[Stream] = (), written: str = "{}") -> int:
    """A length of time: without a unit in instants of the stream, with one in microseconds.

    ``times``: the streams whose time it is, which has a unit or has not; ``written``: the text in which it stands.
    """
    return _instants(text, node, _positive(text, node, what), what, times, written)


def shift(text: str, node: exp.Expr, what: str, times: Sequence[Stream] = (), written: str = "{}") -> int:
    """A length of time by which something is moved, forward or back."""
    return _instants(text, node, _number(text, node, what), what, times, written)


def _instants(text: str, node: exp.Expr, number: Decimal, what: str, times: Sequence[Stream], written: str) -> int:
    unit = node.args.get("unit")
    check_unit(text, node, what, times, written)
    if unit is not None:
        number *= microseconds(text, unit, code="WINDOW_SIZE")
    if number != int(number):
        raise error_on(text, node, "WINDOW_SIZE", f"{what} must be a whole number of instants")
    if abs(number) >= INFINITY:
        hint = "Write UNBOUNDED for a window without end." if "size" in what else ""
        raise error_on(text, node, "WINDOW_SIZE", f"{what} is too large", hint=hint)
    return int(number)


def _count(text: str, node: exp.Expr) -> int:
    unit = node.args.get("unit")
    if unit is not None:
        raise error_on(text, unit, "WINDOW_SIZE", "ROWS counts rows and takes no unit", hint="Use RANGE for a time.")
    number = _positive(text, node, "a number of rows")
    if number != int(number) or number >= INFINITY:
        raise error_on(text, node, "WINDOW_SIZE", "a number of rows must be a whole number")
    return int(number)


def _positive(text: str, node: exp.Expr, what: str) -> Decimal:
    number = _number(text, node, what)
    if number <= 0:
        raise error_on(text, node, "WINDOW_SIZE", f"{what} must be positive, not {node.this}")
    return number


def _number(text: str, node: exp.Expr, what: str) -> Decimal:
    try:
        number = Decimal(node.this)
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite():
        raise error_on(text, node, "WINDOW_SIZE", f"{what} must be a number")
    return number


def partition_column(text: str, node: exp.Expr | None, item: Item) -> str:
    """The column of the item by which a window is partitioned."""
    if not isinstance(node, exp.Column):
        raise error_on(text, node, "UNSUPPORTED", "a window can be partitioned by columns only")
    bound = Scope(text, (item,)).resolve(node)
    if bound.column is None:
        raise error_on(text, node, "UNSUPPORTED", "a window can be partitioned by columns only")
    return bound.column
