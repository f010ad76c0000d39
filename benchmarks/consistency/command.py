"""``headwater bench consistency``: one line per level, from STRONG over BLOCK to MIDDLE and on to WEAK."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from benchmarks.consistency.measure import Measured, measured
from benchmarks.consistency.world import LATEST, QUERY, SECOND, world
from headwater.language.consistency import MIDDLE, STRONG, WEAK, Consistency, Level
from headwater.language.emission import Form
from headwater.model.time import INFINITY

ROWS = 20_000
_BLOCKS = (20, 10, 5, 2)
_REMEMBERED = (10, 5, 2)
_HEADINGS = (
    "consistency",
    "elements out per final one",
    "mean wait, s",
    "p99 wait, s",
    "rows kept",
    "forgotten",
    "right",
)
_WIDTH = 40


def levels() -> tuple[tuple[Consistency, Form | None], ...]:
    """From the one that waits longest to the one that forgets first."""
    blocks = (Consistency(Level.BLOCK, b * SECOND, INFINITY, unit=True) for b in _BLOCKS)
    weak = (Consistency(Level.BLOCK, 0, m * SECOND, unit=True) for m in _REMEMBERED)
    strong = ((STRONG, form) for form in (Form.CLOSE, Form.START))
    return (*strong, *((level, None) for level in (*blocks, MIDDLE, *weak, WEAK)))


def measure_all(rows: int = ROWS) -> list[Measured]:
    """All levels over the same rows; the first is the truth."""
    made = world(rows)
    return [measured(level, made, form) for level, form in levels()]


def run(out: Console, *, markdown: bool, command: str, rows: int | None = None) -> None:
    """What is found goes to ``out``."""
    rows = rows or ROWS
    found = measure_all(rows)
    if markdown:
        out.print(as_markdown(found, rows, command), markup=False, highlight=False, soft_wrap=True)
    else:
        out.print(as_tables(found, rows))


def _cells(one: Measured, found: Sequence[Measured]) -> tuple[str, ...]:
    truth = found[0].history
    return (
        str(one),
        f"{one.chattiness(truth):.2f}",
        f"{one.mean_wait:.1f}",
        f"{one.late_wait:.1f}",
        f"{one.kept:,}",
        f"{one.forgotten:,}",
        f"{100 * one.right(truth):.1f} %",
    )


def _about(rows: int) -> str:
    return (
        f"{rows:,} bids, late by 3 s on average and {LATEST} s at most; one tick per second. "
        "A wait is how far the stream's time had come past the start of an answer when it showed for good: "
        "with EMIT ON START that is when it was known, with ON CLOSE when its end was known too."
    )


def _bars(found: Sequence[Measured]) -> list[str]:
    """Waiting to the left, talking to the right."""
    truth = found[0].history
    most_wait = max(one.mean_wait for one in found) or 1
    most_said = max(one.chattiness(truth) for one in found) or 1
    width = max(len(str(one)) for one in found)
    lines = [f"{'':{width}}  {'mean wait':>{_WIDTH}} | elements out"]
    for one in found:
        wait = "█" * round(_WIDTH * one.mean_wait / most_wait)
        said = "█" * round(_WIDTH * one.chattiness(truth) / most_said)
        lines.append(f"{one!s:{width}}  {wait:>{_WIDTH}} | {said}")
    return lines


def as_tables(found: Sequence[Measured], rows: int) -> Group:
    """For the terminal."""
    table = Table(title="levels of consistency", caption=_about(rows))
    for n, heading in enumerate(_HEADINGS):
        table.add_column(heading, justify="right" if n else "left")
    for one in found:
        table.add_row(*map(Text, _cells(one, found)))
    return Group(table, Text(""), Text("\n".join(_bars(found))))


def as_markdown(found: Sequence[Measured], rows: int, command: str) -> str:
    """For a page."""
    aligned = [":---", *("---:" for _ in _HEADINGS[1:])]
    body = [_cells(one, found) for one in found]
    lines = [f"## `{command}`", "", _about(rows), "", "```sql", QUERY.strip(), "```", ""]
    lines += [f"| {' | '.join(cells)} |" for cells in (_HEADINGS, aligned, *body)]
    return "\n".join([*lines, "", "```", *_bars(found), "```"])
