"""What a simulation found, as a table in the terminal or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen
from rich.console import Group
from rich.table import Table
from rich.text import Text

from benchmarks.time.scoring import Score


@frozen
class Line:
    """One method: how it did, for each thing that was measured."""

    method: str
    scores: Mapping[str, Score]
    cells: tuple[str, ...]
    """As shown, without the method."""


@frozen
class Finding:
    """One simulation."""

    title: str
    headings: tuple[str, ...]
    """The first is of the methods."""
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = field(default=())

    def scores(self, method: str) -> Mapping[str, Score]:
        """Of the first line with this method."""
        return next(line.scores for line in self.lines if line.method == method)


def as_tables(findings: Iterable[Finding]) -> Group:
    """For the terminal."""
    shown: list[Table | Text] = []
    for finding in findings:
        table = Table(title=finding.title)
        for n, heading in enumerate(finding.headings):
            table.add_column(heading, justify="right" if n else "left")
        for line in finding.lines:
            table.add_row(Text(line.method), *line.cells)
        shown += [table, *(Text(f"· {note}") for note in finding.notes), Text("")]
    return Group(*shown)


def as_markdown(findings: Iterable[Finding], command: str) -> str:
    """For a page: the command, then every table with its notes."""
    lines = [f"## `{command}`", ""]
    for finding in findings:
        aligned = [":---", *("---:" for _ in finding.headings[1:])]
        body = [[line.method, *line.cells] for line in finding.lines]
        lines += [f"### {finding.title}", ""]
        lines += [f"| {' | '.join(cells)} |" for cells in (finding.headings, aligned, *body)]
        lines += ["", *(f"- {note}" for note in finding.notes), ""]
    return "\n".join(lines)


def milliseconds(value: float) -> str:
    """Rounded, with thousands; empty if there was nothing to measure."""
    return "" if value != value else f"{value:,.0f}"  # noqa: PLR0124 - only NaN differs from itself


def percent(share: float) -> str:
    return f"{100 * share:.3f}" if share < 0.1 else f"{100 * share:.1f}"


def times(theirs: float, ours: float) -> str:
    """How many times sooner; below 1 it is later."""
    return f"{theirs / ours:.2f}x" if theirs < 10 * ours else f"{theirs / ours:.1f}x"
