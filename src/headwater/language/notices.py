"""Advice that is not an error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from attrs import frozen

_PACKAGE = str(Path(__file__).parents[1])


@frozen
class Notice:
    """Something a user should know about a query that runs all the same."""

    code: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        shown = f"notice: {self.code}: {self.message}"
        return f"{shown}\n  hint:   {self.hint}" if self.hint else shown


class HeadwaterNotice(UserWarning):
    """The category of Python's warnings under which an engine shows its notices."""


def show_notices(notices: Iterable[Notice]) -> None:
    """Show them to whoever called into the package, as warnings at that line; Python shows each text once per line."""
    for notice in notices:
        warnings.warn(str(notice), HeadwaterNotice, stacklevel=_users_level())


def _users_level() -> int:
    """How many calls above ``show_notices`` the first line outside of the package is."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
