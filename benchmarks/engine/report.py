"""The comparison as a table in the terminal, or as Markdown for a page of results."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group
from rich.table import Table
from rich.text import Text

from benchmarks.engine.comparison import Comparison, Line
from benchmarks.engine.competitor import Digest, Measured, Skipped

_LANES = (
    ("Headwater", "parquet"),
    ("Headwater", "csv"),
    ("Spark", "parquet"),
    ("Spark", "csv"),
    ("Flink", "csv"),
    ("DuckDB", "parquet"),
    ("DuckDB", "csv"),
)
_RATIOS = (
    ("× Flink (both CSV)", ("Headwater", "csv"), ("Flink", "csv")),
    ("× Flink (parquet to CSV)", ("Headwater", "parquet"), ("Flink", "csv")),
    ("× Spark (parquet)", ("Headwater", "parquet"), ("Spark", "parquet")),
    ("× Spark (CSV)", ("Headwater", "csv"), ("Spark", "csv")),
)
_SHOWN = 160
"""Longer reasons are cut."""


def headings(comparison: Comparison) -> list[str]:
    return [
        "query",
        *(f"{engine} {fmt}" for engine, fmt in _lanes(comparison)),
        *(title for title, *_ in _RATIOS),
        "answers",
    ]


def _lanes(comparison: Comparison) -> list[tuple[str, str]]:
    """Those of engines that took part."""
    found = {lane for line in comparison.lines for lane in line.best}
    return [lane for lane in _LANES if lane in found]


def rows(comparison: Comparison) -> Iterator[list[str]]:
    """The cells of the table."""
    for line in comparison.lines:
        rates = [_rate(line, lane, comparison) for lane in _lanes(comparison)]
        ratios = [_ratio(line.rate(*ours), line.rate(*theirs)) for _, ours, theirs in _RATIOS]
        yield [line.case.title, *rates, *ratios, _agreement(line)]


def _rate(line: Line, lane: tuple[str, str], comparison: Comparison) -> str:
    found = line.best.get(lane)
    if isinstance(found, Measured):
        part = "" if found.rows == comparison.data.rows(line.case.streams) else f" ({found.rows / 1e6:.2g} M)"
        return f"{found.rate:,.0f}{part}"
    if found is None:
        return ""
    return "cannot" if found.cannot else "failed"


def _ratio(ours: float | None, theirs: float | None) -> str:
    if ours is None or theirs is None:
        return ""
    ratio = ours / theirs
    return f"{ratio:.0f}x" if ratio >= 20 else f"{ratio:.1f}x" if ratio >= 2 else f"{ratio:.2f}x"


def _agreement(line: Line) -> str:
    if len(line.digests) < 2:
        return "not compared"
    return f"{len(line.digests)} equal" if line.agree else "DIFFER"


def notes(comparison: Comparison) -> Iterator[str]:
    """What the table cannot say."""
    yield (
        f"Thousand rows per second, best of {comparison.repeat}, engines in turns after one run each to warm up; "
        f"in brackets how many rows an engine got that would take more than {comparison.limit:.0f} s for all."
    )
    yield "; ".join(comparison.versions) + "."
    yield (
        "Time is from the start of the query to its end, with Java running already; Flink's is the run time of the job as "
        "it says itself. Headwater and Spark commit every tick to disk; Flink runs without checkpoints, its state in memory."
    )
    for line in comparison.lines:
        yield f"{line.case.title}: {_story(line)}"


def _story(line: Line) -> str:
    parts = []
    equal = line.digests
    if len(equal) > 1 and line.agree:
        rows_ = next(iter(equal.values())).rows
        parts.append(f"{_and(list(equal))} give the same {rows_:,} rows over {line.checked:,} rows of input")
    elif len(equal) > 1:
        parts.append(
            "ANSWERS DIFFER: " + ", ".join(f"{e} {d.rows:,} rows ({d.sum % 10**8:08})" for e, d in equal.items())
        )
    if line.case.note:
        parts.append(line.case.note)
    parts += [
        f"{engine} {'cannot' if found.cannot else 'failed'}: {_cut(found.reason)}"
        for engine, found in line.answers.items()
        if isinstance(found, Skipped)
    ]
    parts += [
        f"{engine} failed with {fmt}: {_cut(found.reason)}"
        for (engine, fmt), found in line.best.items()
        if isinstance(found, Skipped) and isinstance(line.answers.get(engine), Digest)
    ]
    return "; ".join(parts) + "."


def _cut(reason: str) -> str:
    reason = reason.strip().rstrip(".;")
    return reason if len(reason) <= _SHOWN else reason[: _SHOWN - 1] + "…"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def as_table(comparison: Comparison) -> Group:
    """For the terminal."""
    table = Table(title=comparison.data.summary)
    for heading in headings(comparison):
        table.add_column(heading, justify="left" if heading in ("query", "answers") else "right")
    for row in rows(comparison):
        table.add_row(*row)
    return Group(table, *(Text(f"· {note}") for note in notes(comparison)))


def as_markdown(comparison: Comparison, command: str) -> str:
    """For a page: the command, the table, the notes."""
    head = headings(comparison)
    aligned = [":---" if name in ("query", "answers") else "---:" for name in head]
    lines = [f"## `{command}`", "", f"{comparison.data.summary}.", ""]
    lines += [f"| {' | '.join(cells)} |" for cells in (head, aligned, *rows(comparison))]
    return "\n".join([*lines, "", *(f"- {_escaped(note)}" for note in notes(comparison))]) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
