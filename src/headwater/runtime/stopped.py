"""When an expression of one query fails, all stop: they share operators and time. How to go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headwater.errors import HeadwaterError

_KEPT = (
    "Nothing of this tick is committed. To go on from before it, connect with the checkpoint again, DROP QUERY of that name,"
    " start it as it should be, and the others as they were."
)
_GONE = (
    "The engine has stopped, and nothing of this tick is answered: begin again with the query as it should be, or without"
    " it. With a checkpoint the others would go on from before it."
)


@contextmanager
def told_how_to_go_on(*, kept: bool) -> Iterator[None]:
    """Around a tick. ``kept``: is there a checkpoint?"""
    try:
        yield
    except HeadwaterError as problem:
        if problem.code != "EXPRESSION_FAILED":
            raise
        raise problem.hinting(_KEPT if kept else _GONE) from problem.__cause__
