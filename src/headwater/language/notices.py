"""Advice that is not an error."""

from __future__ import annotations

from attrs import frozen


@frozen
class Notice:
    """Something a user should know about a query that runs all the same."""

    code: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        shown = f"notice: {self.code}: {self.message}"
        return f"{shown}\n  hint:   {self.hint}" if self.hint else shown
