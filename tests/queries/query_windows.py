"""What windows hold at an instant, by definition: SQL for DuckDB over a table of elements.

A table of elements has columns, and ``_start``, ``_end``, ``_weight``: so many copies of the row are valid at each of these
instants, and the row counts once at each of them. No interval is ever computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen
from sqlglot import exp

from headwater.model.time import INFINITY, MICROSECONDS


@frozen
class Elements:
    """A table of elements and its columns."""

    table: str
    columns: tuple[str, ...]

    @property
    def listed(self) -> str:
        return ", ".join(map(quoted, self.columns))


def quoted(name: str) -> str:
    return f'"{name}"'


def instants(duration: exp.Expr) -> int:
    """A length of time in the text as a number of instants."""
    unit = duration.args.get("unit")
    if unit is None:
        return int(duration.this)
    word = unit.name.upper().removesuffix("S")
    return int(float(duration.this) * MICROSECONDS[{"MIN": "MINUTE", "SEC": "SECOND"}.get(word, word)])


def content(
    elements: Elements, window: exp.Expr | None, granularity: exp.Expr | None, at: str, arrived: str = ""
) -> str:
    """The rows that a window after a reference holds at the instant; without one, those that are valid.

    ``arrived``: the name of one more column, the instant of each of them; rows without a window have none.
    """
    if granularity is not None:  # until the next granule, what was there at the last one (Krämer 20.1)
        at = f"({at} - {at} % {instants(granularity.this)})"
    kind = "NOW" if window is None else window.this
    if window is None or kind == "NOW":
        return _covered(elements, at, at)
    if kind == "UNBOUNDED":
        return _covered(elements, "0", at, arrived=arrived)
    if kind == "ROWS":
        return _rows(elements, window, at, arrived)
    size = window.args["size"]
    if kind == "SESSION":
        by = [column.name for column in window.args.get("partition") or ()]
        return sessions(elements, instants(size), by, at, timed=size.args.get("unit") is not None)
    # 17.1 (8.17 with slide 1): with K = floor((t+1)/a)*a, what was valid in [max(K-w, 0), K-1].
    slide = instants(window.args["slide"]) if window.args.get("slide") else 1
    reported = f"(({at} + 1) // {slide} * {slide})"
    return _covered(elements, f"greatest({reported} - {instants(size)}, 0)", f"({reported} - 1)", arrived=arrived)


def tumbled(elements: Elements, period: int, at: str) -> str:
    """What was there since the refresh before the last one, which was at the last instant of a period."""
    return _covered(elements, f"greatest({refresh(period, at)} - {period - 1}, 0)", refresh(period, at))


def refresh(period: int, at: str) -> str:
    """The last refresh."""
    return f"(({at} + 1) // {period} * {period} - 1)"


def _covered(elements: Elements, first: str, last: str, further: Sequence[str] = (), arrived: str = "") -> str:
    """A copy of the row for each of its instants from first to last."""
    if arrived:
        each = f"unnest(range(greatest(_start, {first}), least(_end, {last} + 1))) AS {arrived}"
        within = f"_start <= {last} AND _end > {first}"
        return f"SELECT {elements.listed}, {each} FROM {elements.table}, range(_weight) WHERE {within}"
    copies = f"_weight * (least(_end, {last} + 1) - greatest(_start, {first}))"
    return (
        f"SELECT {', '.join([elements.listed, *further])} FROM (SELECT *, {copies} AS _copies FROM {elements.table}"
        f" WHERE _start <= {last} AND _end > {first}), range(_copies)"
    )


def _rows(elements: Elements, window: exp.Expr, at: str, arrived: str) -> str:
    """17.2 (8.18 with slide 1) in each group (8.19): with n rows so far and K = floor(n/A)*A, rows K-N+1 to K."""
    size, slide = window.args["size"].this, window.args["slide"].this if window.args.get("slide") else 1
    group = ", ".join(quoted(column.name) for column in window.args.get("partition") or ())
    partition = f"PARTITION BY {group}" if group else ""
    order = ", ".join(["_at", *(f"{quoted(name)} ASC NULLS FIRST" for name in elements.columns)])
    numbered = (
        f"SELECT {elements.listed}, _at, row_number() OVER ({partition} ORDER BY {order}) AS _k,"
        f" count(*) OVER ({partition}) // {slide} * {slide} AS _top FROM ({_single(elements, at)})"
    )
    listed = f"{elements.listed}, _at AS {arrived}" if arrived else elements.listed
    return f"SELECT {listed} FROM ({numbered}) WHERE _k <= _top AND _k > _top - {size}"


def _single(elements: Elements, at: str) -> str:
    """A copy of the row for each of its instants up to now, as ``_at``."""
    return (
        f"SELECT *, unnest(range(_start, least(_end, {at} + 1))) AS _at FROM {elements.table}, range(_weight)"
        f" WHERE _start <= {at}"
    )


def hops(elements: Elements, size: int, slide: int, offset: int, at: str, *, timed: bool) -> str:
    """TUMBLE and HOP: at each instant the one window that was reported last, if it was within the last slide."""
    behind = f"({at} - {offset + size})"
    start = f"({behind} - (({behind} % {slide}) + {slide}) % {slide} + {offset})"
    ends = [_instant(start, "window_start", timed), _instant(f"({start} + {size})", "window_end", timed)]
    return _covered(elements, f"greatest({start}, 0)", f"({start} + {size - 1})", ends)


def cumulated(elements: Elements, size: int, step: int, offset: int, at: str, *, timed: bool) -> str:
    """CUMULATE: at each instant the rows since the last multiple of the size before the last step."""

    def floored(value: str, unit: int) -> str:
        return f"({value} - (({value} - {offset}) % {unit} + {unit}) % {unit})"

    end = floored(at, step)
    start = floored(f"({end} - 1)", size)
    ends = [_instant(start, "window_start", timed), _instant(end, "window_end", timed)]
    return _covered(elements, f"greatest({start}, 0)", f"({end} - 1)", ends)


def sessions(elements: Elements, gap: int, by: Sequence[str], at: str, *, timed: bool) -> str:
    """SESSION: rows at most ``gap`` apart belong together; they are there from ``gap`` after the last one on."""
    group = ", ".join(map(quoted, by))
    partition = f"PARTITION BY {group}" if by else ""
    inner = f"PARTITION BY {group}, _number" if by else "PARTITION BY _number"
    broken = f"SELECT *, _at - lag(_at) OVER ({partition} ORDER BY _at) > {gap} AS _new FROM ({_single(elements, at)})"
    numbered = f"SELECT *, count_if(coalesce(_new, FALSE)) OVER ({partition} ORDER BY _at) AS _number FROM ({broken})"
    spans = f"SELECT *, min(_at) OVER ({inner}) AS _first, max(_at) OVER ({inner}) AS _last FROM ({numbered})"
    ends = [_instant("_first", "window_start", timed), _instant(f"(_last + {gap})", "window_end", timed)]
    return f"SELECT {', '.join([elements.listed, *ends])} FROM ({spans}) WHERE _last + {gap} <= {at}"


def _instant(value: str, name: str, timed: bool) -> str:
    return f"{f'make_timestamp({value})' if timed else value} AS {name}"


def longest(elements: Elements) -> str:
    """SQL for the most instants that a row with an end is valid."""
    return f"SELECT coalesce(max(_end - _start), 0) FROM {elements.table} WHERE _end < {INFINITY}"
