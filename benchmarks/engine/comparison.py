"""The comparison: every case on every engine, in turns, so that whatever else the machine does is shared by all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import Factory, define, frozen

from benchmarks.engine.cases import Case
from benchmarks.engine.competitor import Competitor, Digest, Measured, Skipped
from benchmarks.engine.data import Data

_PILOT_FILES = 2
_PATIENCE = 5
"""A run may take so many times as long as planned before it is given up."""
_ANSWER_SECONDS = 600
"""Answers are written down, which may take longer than finding them."""

Say = Callable[[str], None]
Lane = tuple[str, str]
"""An engine and the format it reads."""


@define
class Line:
    """What was found about one case."""

    case: Case
    best: dict[Lane, Measured | Skipped] = Factory(dict)
    answers: dict[str, Digest | Skipped] = Factory(dict)
    checked: int = 0
    """How many rows the answers were compared on."""

    def rate(self, engine: str, fmt: str) -> float | None:
        found = self.best.get((engine, fmt))
        return found.rate if isinstance(found, Measured) else None

    @property
    def digests(self) -> dict[str, Digest]:
        return {engine: found for engine, found in self.answers.items() if isinstance(found, Digest)}

    @property
    def agree(self) -> bool:
        return len(set(self.digests.values())) <= 1


@frozen
class Comparison:
    """All lines, and what ran."""

    data: Data
    lines: tuple[Line, ...]
    versions: tuple[str, ...]
    repeat: int
    limit: float


def compare(
    competitors: Sequence[Competitor],
    cases: Sequence[Case],
    data: Data,
    small: Data,
    *,
    repeat: int = 3,
    limit: float = 60,
    say: Say = lambda text: None,
) -> Comparison:
    """Answers first, over the ``small`` data; then times.

    An engine that would take more than ``limit`` seconds for all rows gets the first of them, as many as it can do within
    that time, but at least those of the first files.
    """
    lines = []
    versions = tuple(competitor.versions() for competitor in competitors)
    for case in cases:
        line = Line(case, checked=small.rows(case.streams))
        for competitor in competitors:
            line.answers[competitor.name] = _answer(competitor, case, small)
            say(f"{case.title}: {competitor.name} answers {_told(line.answers[competitor.name])}")
        _measure(competitors, line, data, repeat, limit, say)
        lines.append(line)
    return Comparison(data, tuple(lines), versions, repeat, limit)


def _answer(competitor: Competitor, case: Case, data: Data) -> Digest | Skipped:
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    try:
        fmt = competitor.formats[0]
        found = competitor.run(case, data, fmt, answer=folder / "answer", limit=_ANSWER_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if isinstance(found, Skipped):
        return found
    assert found.answer_digest is not None
    return found.answer_digest


def _measure(competitors: Sequence[Competitor], line: Line, data: Data, repeat: int, limit: float, say: Say) -> None:
    lanes = []
    for competitor in competitors:
        answered = line.answers[competitor.name]
        if isinstance(answered, Skipped) and answered.cannot:
            line.best |= {(competitor.name, fmt): answered for fmt in competitor.formats}
        else:
            lanes += [(competitor, fmt) for fmt in competitor.formats]
    parts: dict[Lane, Data] = {}
    for competitor, fmt in lanes:  # warms up, and tells how much it can do
        pilot = data.prefix(_PILOT_FILES)
        tried = competitor.run(line.case, pilot, fmt, limit=limit * _PATIENCE)
        if isinstance(tried, Skipped):
            line.best[competitor.name, fmt] = tried
            continue
        parts[competitor.name, fmt] = _within(limit, tried, line, data)
    for round_ in range(repeat):
        for competitor, fmt in lanes:
            lane = competitor.name, fmt
            if lane not in parts:
                continue
            found = competitor.run(line.case, parts[lane], fmt, limit=limit * _PATIENCE)
            line.best[lane] = _better(line.best.get(lane), found)
            if isinstance(found, Measured):  # warm, and with less weight on the start: it may be able to do more
                parts[lane] = max(parts[lane], _within(limit, found, line, data), key=lambda part: part.files)
            say(f"{line.case.title}: {competitor.name} {fmt} {round_ + 1}/{repeat}: {_told(found)}")


def _within(limit: float, tried: Measured, line: Line, data: Data) -> Data:
    """The rows that it can do within the limit, if it goes on as it did."""
    can = limit * tried.rate * 1_000 / data.rows(line.case.streams)
    return data.prefix(max(_PILOT_FILES, min(int(can * data.files), data.files)))


def _better(before: Measured | Skipped | None, found: Measured | Skipped) -> Measured | Skipped:
    if isinstance(before, Measured) and (isinstance(found, Skipped) or found.rate <= before.rate):
        return before
    return found


def _told(found: Measured | Skipped | Digest) -> str:
    if isinstance(found, Measured):
        return f"{found.rate:,.0f} thousand rows/s on {found.rows:,} rows"
    if isinstance(found, Digest):
        return f"{found.rows:,} rows"
    return found.reason
