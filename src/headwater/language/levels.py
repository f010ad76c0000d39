"""A level of consistency by its name, outside of a script."""

from __future__ import annotations

from headwater.errors import InputError, SqlError
from headwater.language.binder import bind_script
from headwater.language.consistency import STRONG, Consistency


def level_of(text: str | Consistency) -> Consistency:
    """What follows CONSISTENCY in a query.

    >>> print(level_of("BLOCK 5 SECONDS REMEMBER 1 MINUTE"))
    BLOCK 5 SECONDS REMEMBER 1 MINUTE
    """
    if isinstance(text, Consistency):
        return text
    try:
        script = bind_script(f"CREATE STREAM s (x INT); SELECT x FROM s CONSISTENCY {text}")
    except SqlError as problem:
        raise InputError(
            "CONSISTENCY",
            f'"{text}" is no level of consistency',
            detail=problem.message,
            hint="There are STRONG, MIDDLE, WEAK [REMEMBER t] and BLOCK t REMEMBER t [BY WALL CLOCK].",
        ) from problem
    assert script.result is not None
    return script.result.consistency or STRONG
