"""Where users' calls come in: a mistake of theirs ends at their line, not in twenty frames of ours."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

from headwater.errors import HeadwaterError

_FULL = "HEADWATER_TRACEBACKS"
"""Set to anything, tracebacks are whole: for those who look for a mistake of ours."""
_Called = TypeVar("_Called", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)


def public(function: _Called) -> _Called:
    """The function, whose errors of ours have no frames below this one. What raised in users' code stays as the cause."""

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except HeadwaterError as problem:
            if _FULL in os.environ:
                raise
            mistake, cause = problem.with_traceback(None), _cause(problem)
        raise mistake from cause

    return cast(_Called, called)


def public_methods(kind: _Class) -> _Class:
    """The class, all methods of which that users call are public, also those that it inherits from ours."""
    for parent in reversed(kind.__mro__):
        for name, method in list(vars(parent).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(kind, name, public(method))
    return kind


def _cause(problem: HeadwaterError) -> BaseException | None:
    """An exception of a function that a user has written; others only repeat in other words what is told."""
    cause = problem.__cause__
    frames, found = cause.__traceback__ if cause is not None else None, False
    while frames is not None:
        found = not frames.tb_frame.f_globals.get("__name__", "").startswith(("headwater.", "duckdb", "pyarrow"))
        frames = frames.tb_next
    return cause if found else None
