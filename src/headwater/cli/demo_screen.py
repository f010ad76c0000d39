"""What the demo shows: a small table per query while it runs, and the figures at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from headwater.runtime.views.amounts import length_text, rate_text, seconds_text, size_text

if TYPE_CHECKING:
    from headwater.engine import Engine
    from headwater.query import Run
    from headwater.runtime.views.progress import EngineProgress, QueryProgress

_ORDER = {
    "activity": ("auction", "descending"),
    "hottest": ("bids", "descending"),
    "sold": ("price", "descending"),
    "bidders": ("channel", "ascending"),
    "ignored": ("auction", "descending"),
    "newcomers": ("item", "descending"),
    "sellers": ("auctions", "descending"),
    "channels": ("channel", "ascending"),
}
"""Answers have no order of their own: by which column each is shown."""
QUESTIONS = {
    "activity": "bids for each auction, last 5 s",
    "hottest": "the hottest auctions",
    "sold": "bids that reach the reserve (join)",
    "bidders": "different bidders, last 5 s (DISTINCT)",
    "ignored": "new auctions without a bid (EXCEPT)",
    "newcomers": "new people's auctions (join)",
    "sellers": "each seller's last 10 auctions (ROWS)",
    "channels": "bids, before they are final (MIDDLE)",
}
_NUMBERS = frozenset({"auction", "bidder", "seller", "category", "id"})
"""Columns whose numbers only tell things apart: no amounts."""
_NARROW, _WIDE = 39, 55
"""How wide a table must be to say something, and to say it all."""
_MOST_ROWS = 8


class Screen:
    """Asks the engine and its queries; draws nothing by itself."""

    def __init__(self, engine: Engine, runs: Sequence[Run]) -> None:
        self._engine, self._runs = engine, runs
        self.begin()

    def begin(self) -> float:
        """From now on is counted; one stream may have started before another."""
        self._began, before = time.monotonic(), self._engine.progress()
        self._rows_before = {None: before.rows, **{query.query: query.rows_out for query in before.queries}}
        return self._began

    def tables(self, width: int, height: int, left: float) -> RenderableType:
        """All queries side by side, as many rows each as there is room for."""
        now = self._engine.progress()
        across, down = _grid(width, len(self._runs))
        rows = min(max((height - 3) // down - 3, 1), _MOST_ROWS)  # a panel has two borders and a head
        progress = {query.query: query for query in now.queries}
        panels = [self._panel(run, progress[run.name], rows) for run in self._runs]
        return Group(self._headline(now, left), _beside_each_other(panels, across))

    def lines(self) -> Iterator[str]:
        """The same in a few lines of text."""
        now = self._engine.progress()
        yield f"tick {now.tick}: {_inward(now)}"
        for query in now.queries:
            yield f"  {query.query:<10} {query.rows_out:>9,} rows out, {_distance(query)}"

    def summary(self) -> RenderableType:
        """What happened, in figures."""
        now, before = self._engine.progress(), self._rows_before
        seconds = time.monotonic() - self._began
        table = Table(title="What happened", title_justify="left")
        table.add_column("query")
        for name in ("rows out", "rate", "behind", "late rows", "state rows", "state"):
            table.add_column(name, justify="right")
        for query in now.queries:
            table.add_row(
                *(query.query, f"{query.rows_out:,}", rate_text((query.rows_out - before[query.query]) / seconds)),
                *(length_text(query.lag), f"{query.late_rows:,}"),
                *(f"{query.state_rows:,}", size_text(query.state_bytes)),
            )
        phases = ", ".join(f"{name} {seconds_text(s)}" for name, s in now.times.phases.items())
        lines = [
            f"rows in      {now.rows:,} ({rate_text((now.rows - before[None]) / seconds)}), "
            f"{now.late_rows:,} more were late and are kept apart",
            f"state        {now.state_rows:,} rows in {size_text(now.state_bytes)}; what queries share counts once",
            f"median tick  {seconds_text(now.times.median)} of {now.tick:,} ticks (95 %: {seconds_text(now.times.p95)}; "
            f"{phases})",
        ]
        return Group(table, *(Text(line) for line in lines))

    def _headline(self, now: EngineProgress, left: float) -> Text:
        text = Text(f"{_inward(now)}; ")
        text.append(f"{left:.0f} s left", style="bold")
        return text

    def _panel(self, run: Run, progress: QueryProgress, rows: int) -> Panel:
        answer = run.snapshot().to_arrow()
        column, way = _ORDER[run.name]
        first = answer.sort_by([(column, way)]).slice(0, rows)
        shown = Table(box=None, expand=True, pad_edge=False)
        for field in first.schema:
            is_number = pa.types.is_integer(field.type)
            shown.add_column(field.name, justify="right" if is_number else "left", no_wrap=True)
        for row in first.to_pylist():
            shown.add_row(*(Text(_cell(name, value)) for name, value in row.items()))
        for _ in range(rows - first.num_rows):
            shown.add_row()
        title = Text.assemble((run.name, "bold"), f" {QUESTIONS[run.name]}")
        below = f"{answer.num_rows:,} row{'' if answer.num_rows == 1 else 's'} now, {_distance(progress)}"
        return Panel(shown, title=title, title_align="left", subtitle=Text(below), subtitle_align="right")


def waiting(queries: Mapping[str, str], told: str, width: int, height: int) -> RenderableType:
    """Before there are answers: the questions as they are asked in SQL, and what is waited for."""
    across, down = _grid(width, len(queries))
    lines = min(max((height - 3) // down - 2, 1), max(text.count("\n") + 1 for text in queries.values()))
    panels = []
    for name, text in queries.items():
        shown = [*text.splitlines()[:lines], *([""] * (lines - text.count("\n") - 1))]
        body = Text("\n".join(shown), no_wrap=True, overflow="ellipsis", style="dim")
        title = Text.assemble((name, "bold"), f" {QUESTIONS[name]}")
        panels.append(Panel(body, title=title, title_align="left"))
    return Group(Text(told), _beside_each_other(panels, across))


def _grid(width: int, panels: int) -> tuple[int, int]:
    """How many are beside each other, and how many above each other."""
    across = 2 if _NARROW * 2 <= width < _WIDE * 3 else max(min(width // _WIDE, 4), 1)
    return across, -(-panels // across)


def _beside_each_other(panels: Sequence[Panel], across: int) -> Table:
    grid = Table.grid(expand=True)
    for _ in range(across):
        grid.add_column(ratio=1)
    for i in range(0, len(panels), across):
        grid.add_row(*panels[i : i + across])
    return grid


def _cell(name: str, value: object) -> str:
    is_amount = isinstance(value, int) and value >= 10_000 and name not in _NUMBERS
    return f"{value:,}" if is_amount else str(value)


def _inward(now: EngineProgress) -> str:
    return (
        f"{now.rows:,} rows in, {rate_text(now.rows_per_second)}, {now.late_rows:,} late, "
        f"state {now.state_rows:,} rows in {size_text(now.state_bytes)}, median tick {seconds_text(now.times.median)}"
    )


def _distance(query: QueryProgress) -> str:
    return f"final up to {length_text(query.lag)} ago"
