"""Named moments of a tick. Nothing happens at them, except in tests that end the process just there.

The environment variable HEADWATER_POINTS may name a function, ``module:function``, that is told when one is passed. Tasks of
Spark inherit it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module

NAMED_BY = "HEADWATER_POINTS"

BEFORE_THE_JOB = "before the job"
IN_A_SENDER = "in a sender"
IN_A_STAGE = "in a stage"
IN_A_TASK = "in a task of Spark's"
AFTER_THE_SEGMENTS = "after the segments"
BEFORE_THE_MANIFEST = "before the manifest"
IN_THE_MANIFEST = "in the manifest"
AFTER_THE_MANIFEST = "after the manifest"
IN_A_SINK = "in the sink of "
AGAIN_IN_A_SINK = "again in the sink of "
TOGETHER_IN_A_SINK = "before all that waits goes to the sink of "
AFTER_TOGETHER = "after all that waits went to the sink of "
BEFORE_THE_DIVERTED = "before the diverted rows"
AFTER_THE_SINKS = "after the sinks"
IN_THE_TIDYING = "in the tidying"
BEFORE_SPARKS_COMMIT = "before Spark's commit"


def _named() -> Callable[[str], None] | None:
    module, _, function = os.environ.get(NAMED_BY, "").partition(":")
    return getattr(import_module(module), function) if module else None


_listener: Callable[[str], None] | None = _named()


def tell(function: Callable[[str], None] | None) -> None:
    """Call this at every point that the process passes from now on."""
    global _listener  # noqa: PLW0603 - one per process
    _listener = function


def passed(name: str) -> None:
    """The process has come so far."""
    if _listener is not None:
        _listener(name)
