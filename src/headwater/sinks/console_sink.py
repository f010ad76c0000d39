"""The terminal: the first rows of every tick, as a table or as a line each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import IO, Any

import pyarrow as pa

from headwater.errors import InputError
from headwater.language.emission import ON_START
from headwater.model.delta import Delta
from headwater.model.schema import END, START
from headwater.model.time import BEGINNING, moment_text
from headwater.result import Result
from headwater.sinks.base import Output, Sink, Staged, Stager
from headwater.sinks.parts import read_table, stage_table
from headwater.sinks.tables import ADJUST, NEW_END, OP, TICK, arrow_schema, check_names, render_instant, to_table

_FORMS = ("table", "lines")


class FirstRowsStager(Stager):
    """Stages no more rows than are shown, and how many there were."""

    def __init__(self, output: Output, most: int) -> None:
        self.output, self.most = output, most

    def stage(self, tick: int, shard: int, delta: Delta, folder: str) -> Staged:
        table = to_table(self.output, delta, tick, any_year=True)
        if self.output.opens:
            table = _new_first(table)
        return stage_table(table.slice(0, self.most), folder, rows=table.num_rows)


class ConsoleSink(Sink):
    """Prints in the driver; a tick without rows prints nothing."""

    takes_changes = True
    emission = ON_START

    def __init__(self, *, rows: int = 20, form: str = "table", file: IO[str] | None = None) -> None:
        if form not in _FORMS:
            raise InputError("UNKNOWN_FORM", f'there is no form "{form}" of output', hint="Write table or lines.")
        if rows < 1:
            raise InputError("BAD_ROWS", f"cannot show {rows} rows per tick", hint="Write a number from 1 on.")
        self.most, self.form, self.file = rows, form, file

    def open(self, output: Output) -> None:
        super().open(output)
        check_names(output)

    def stager(self) -> Stager:
        return FirstRowsStager(self.output, self.most)

    def deliver(self, tick: int, parts: Sequence[Staged], frontier: int) -> None:
        total = sum(part.rows for part in parts)
        if not total:
            return
        from rich.console import Console

        rows = read_table(parts, arrow_schema(self.output))
        first = (_new_first(rows) if self.output.opens else rows).slice(0, self.most)
        if self.output.opens and total == first.num_rows and ADJUST not in first.column(OP).to_pylist():
            first = first.drop_columns([OP, NEW_END, TICK])  # rows that are new, and nothing else
        console = Console(file=self.file, highlight=False)
        show = self._show_lines if self.form == "lines" else self._show_table
        kind = "change" if OP in first.column_names else "row"
        show(console, self._heading(tick, total, frontier, kind), first)
        if total > first.num_rows:
            console.print(f"… and {total - first.num_rows:,} more", markup=False)

    def _heading(self, tick: int, total: int, frontier: int, kind: str) -> str:
        final = "" if frontier == BEGINNING else f", final before {render_instant(self.output, frontier)}"
        return f"{self.output.query}: tick {tick}, {total:,} {kind}{'' if total == 1 else 's'}{final}"

    def _show_table(self, console: Any, heading: str, rows: pa.Table) -> None:
        from rich.table import Table
        from rich.text import Text

        rows = rows.drop_columns([TICK]) if TICK in rows.column_names else rows
        console.print(heading, markup=False, soft_wrap=True, style="bold")
        shown = Table()
        for field in rows.schema:
            is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
            shown.add_column(Text(field.name), justify="right" if is_number else "left")
        for row in Result(rows).rows():
            shown.add_row(*(Text(_cell(name, row)) for name in rows.column_names))
        console.print(shown)

    def _show_lines(self, console: Any, heading: str, rows: pa.Table) -> None:
        """``+ auction=7 n=3 [10:00, 10:05)``; what is changed has ``~`` and the new end, what is removed ``-``."""
        console.print(heading, markup=False, soft_wrap=True)
        names = self.output.schema.names
        for row in Result(rows).rows():
            values = " ".join(f"{name}={_shown(row[name])}" for name in names)
            start, end = _cell(START, row), _cell(END, row)
            sign, change = "+", ""
            if row.get(OP) == ADJUST:
                gone = row[NEW_END] == row[START]
                sign, change = ("-", "") if gone else ("~", f" -> {_cell(NEW_END, row)}")
            console.print(f"  {sign} {values} [{start}, {end}){change}", markup=False, soft_wrap=True)


def _new_first(changes: pa.Table) -> pa.Table:
    """Rows that are new, then those that get their end."""
    return changes.sort_by([(OP, "descending")])


def _cell(name: str, row: dict[str, Any]) -> str:
    if name == NEW_END and row[OP] != ADJUST:
        return ""
    value = row[name]
    if name in (START, END, NEW_END) and isinstance(value, datetime):
        return moment_text(value)
    return "infinity" if name in (END, NEW_END) and value is None else _shown(value)


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
