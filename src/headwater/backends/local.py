"""The process itself as a backend: no JVM, sources are asked, ticks run in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.algebra.nodes import Plan
from headwater.runtime.core import Core
from headwater.runtime.executor import Executor, LocalExecutor
from headwater.runtime.feeds import Feed, PolledFeed
from headwater.runtime.inputs import Inputs
from headwater.runtime.loop import Loop
from headwater.sources.base import Source


class LocalBackend:
    """What an engine runs on; Spark's (``SparkBackend``) says more."""

    spark: Any = None
    """The session for sinks that write with Spark."""

    def __init__(self) -> None:
        self.executor: Executor = LocalExecutor()

    def feed(self, stream: str, source: Source, core: Core, loop: Loop) -> Feed:
        """What brings the batches of a stream."""
        return PolledFeed(stream, source, core)

    def row_streams(self, inputs: Inputs) -> Sequence[str]:
        """Streams whose rows it has as rows of their columns, so that it can compute parts of queries with them."""
        return ()

    def native_streams(self, inputs: Inputs, plan: Plan) -> Sequence[str]:
        """Streams with whose rows it can compute, for this plan."""
        return ()

    def check_function(self, name: str, function: object) -> None:
        """Raises ``InputError`` for a function that cannot be where its operators run."""

    def in_a_word(self, problem: BaseException) -> BaseException:
        """A problem as users are told it."""
        return problem

    def __str__(self) -> str:
        """Where it is, in a few words."""
        return "in process"

    def close(self) -> None:
        """Nothing runs any more."""
