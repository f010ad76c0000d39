"""What an engine in the benchmark is: it runs a case over frozen rows and says how long it took, or why it cannot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

from benchmarks.engine.cases import Case
from benchmarks.engine.data import Data

PARALLELISM = 2


class Digest(NamedTuple):
    """An answer in the form that all engines can be compared in: how many rows, and the sum of their hashes."""

    rows: int
    sum: int


class Measured(NamedTuple):
    """One run: rows read, and seconds from the first to the last of them."""

    rows: int
    seconds: float
    answer_digest: Digest | None = None

    @property
    def rate(self) -> float:
        """Thousand rows per second."""
        return self.rows / self.seconds / 1_000


class Skipped(NamedTuple):
    """No run: the engine cannot do it (``cannot``), or it did not work out this time."""

    reason: str
    cannot: bool = False


class Competitor(ABC):
    """One engine. Started lazily, ended by ``close``."""

    name: str
    formats: tuple[str, ...] = ("parquet", "csv")

    @abstractmethod
    def versions(self) -> str:
        """What runs, for the caption of the table."""

    @abstractmethod
    def run(
        self, case: Case, data: Data, fmt: str, *, answer: Path | None = None, limit: float = 3600
    ) -> Measured | Skipped:
        """Read all rows once.

        With ``answer`` the result is written into that (new) folder and digested; without it, it goes nowhere. A run of
        more than ``limit`` seconds is given up.
        """

    def close(self) -> None:  # noqa: B027 - some have nothing to close
        """End what was started."""
