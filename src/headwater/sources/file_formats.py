"""What a file format must know so that its files can be a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from headwater.model.schema import Schema
from headwater.sources.base import Reader, Split

CUT_ROWS = 500_000
"""About so many rows a task reads at once."""
WHOLE_BYTES = 8 << 20
"""Smaller files are not cut."""


NO_COLUMNS = Schema(())


class FileFormat(ABC):
    """Parquet, CSV or JSON. A split of a file has its ``path`` and ``length``; a part also ``start`` and ``end``.

    These count what the format likes: bytes, row groups. The end of one part is the start of the next.
    """

    name: ClassVar[str]
    usual_row_bytes: ClassVar[float]
    """A guess, for as long as there is no file to look into."""

    @abstractmethod
    def reader(self, schema: Schema, optional: Schema = NO_COLUMNS) -> Reader:
        """What reads a split of a file; ``optional`` are columns that a file may have besides."""

    @abstractmethod
    def cut(self, split: Split, rows: int) -> list[Split]:
        """Parts of about so many rows, with ``rows``; from ``start`` to ``end`` if the split has them."""

    @abstractmethod
    def row_bytes(self, path: str) -> float | None:
        """How many bytes of the file a row takes, about; None if that cannot be seen."""
