"""Spark as a backend: a session, ticks as its jobs, streaming DataFrames as sources, and what it computes by itself."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.algebra.nodes import Plan
from headwater.backends.local import LocalBackend
from headwater.backends.spark.feed import SparkFeed
from headwater.backends.spark.job import SparkExecutor
from headwater.backends.spark.lost import in_a_word
from headwater.backends.spark.native_computed import is_native
from headwater.backends.spark.native_parts import is_stateless
from headwater.backends.spark.routes import has_rows
from headwater.backends.spark.session import SessionHandle
from headwater.backends.spark.ship import pickled
from headwater.runtime.core import Core
from headwater.runtime.feeds import Feed
from headwater.runtime.inputs import Inputs
from headwater.runtime.loop import Loop
from headwater.sources.base import Source
from headwater.sources.memory import PushedSource


class SparkBackend(LocalBackend):
    """What an engine on Spark runs on."""

    def __init__(self, session: SessionHandle, *, small_tick: int) -> None:
        self.session, self.spark = session, session.spark
        self.executor = SparkExecutor(session, small_tick=small_tick)

    def feed(self, stream: str, source: Source, core: Core, loop: Loop) -> Feed:
        frame = source.rows(self.spark)
        if frame is None:
            return super().feed(stream, source, core, loop)
        return SparkFeed(stream, frame, self.session, core, loop)

    def __str__(self) -> str:
        return f"on Spark, {self.session.shards} shards"

    def row_streams(self, inputs: Inputs) -> Sequence[str]:
        return [t.stream for source, t in inputs.taken() if has_rows(t) and not isinstance(source, PushedSource)]

    def native_streams(self, inputs: Inputs, plan: Plan) -> Sequence[str]:
        whole = is_stateless(plan)
        files = [t.stream for source, t in inputs.taken() if whole and source.suits_spark and is_native(t.intake)]
        return [*self.row_streams(inputs), *files]

    def check_function(self, name: str, function: object) -> None:
        pickled(function, f'function "{name}"')  # whoever cannot travel is told so here

    def in_a_word(self, problem: BaseException) -> BaseException:
        return in_a_word(problem)

    def close(self) -> None:
        self.session.stop()
