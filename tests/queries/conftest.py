"""Collects the corpus: every case of a ``*.test`` file is a test of its own, ``windows.test::a_window_that_slides``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from query_corpus import SEPARATOR, Case, answer, read
from query_judges import judge
from query_outcomes import outcome
from query_runs import WAYS, explained, final


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return QueryFile.from_parent(parent, path=file_path) if file_path.suffix == ".test" else None


class QueryFile(pytest.File):
    """One file of the corpus."""

    def collect(self) -> Iterator[pytest.Item]:
        for case in read(self.path):
            yield QueryItem.from_parent(self, name=case.name, case=case)


class WrongAnswerError(Exception):
    """The case does not give what its file says."""


class QueryItem(pytest.Item):
    """One case: run in all ways, and judged."""

    def __init__(self, *, case: Case, **options: Any) -> None:
        super().__init__(**options)
        self.case = case

    def runtest(self) -> None:
        text, tables = outcome(self.case, WAYS[0])
        self._compare(text, "as written, all in one tick")
        if tables is None:
            return
        agree, silent = judge(self.case, tables)
        if not agree and not self.case.notes("judged"):
            raise WrongAnswerError("no judge says that this is right: " + "; ".join(silent))
        explained(self.case)
        for way in WAYS[1:]:
            consistency, batch, optimizer = way
            how = f"{consistency or 'as written'}, {batch or 'all'} elements per tick, optimizer {optimizer}"
            self._compare(outcome(self.case, way)[0], how)
        self._compare(answer(final(self.case), self.case.recording.scale), "strong, element by element")

    def _compare(self, text: str, how: str) -> None:
        if _words(text) != _words(self.case.expected):
            shown = f" ({how})" if self.case.kind == "query" else ""
            raise WrongAnswerError(f"expected:\n{self.case.expected}\nfound{shown}:\n{text}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **options: Any) -> Any:
        if isinstance(excinfo.value, (WrongAnswerError, AssertionError)):
            return f"{self.case.sql}\n{SEPARATOR}\n{excinfo.value}"
        return super().repr_failure(excinfo, *args, **options)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line, self.case.name


def _words(text: str) -> list[str] | str:
    """A table may be aligned otherwise."""
    if text.startswith("start") or ":\nstart" in text:
        return [" ".join(line.split()) for line in text.split("\n")]
    return text
