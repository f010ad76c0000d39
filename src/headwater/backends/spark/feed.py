"""A streaming DataFrame: a Structured Streaming query of its own, whose batches are handed to the engine."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from attrs import define, field

from headwater.backends.spark.lost import calling_spark
from headwater.backends.spark.session import SessionHandle
from headwater.errors import HeadwaterError
from headwater.model.time import BEGINNING
from headwater.runtime import points
from headwater.runtime.core import Core
from headwater.runtime.delivery import Delivery
from headwater.runtime.loop import Loop, Stopped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


log = logging.getLogger("headwater")

_TOO_SLOW = "Python worker failed to connect back"
"""What Spark says if a process of its own took more than ten seconds to start: this machine was busy."""
_RESTARTS = 5
_SLACK = 1_000_000
"""Microseconds within which Spark has certainly looked for new rows if it says that there are none."""


def _is_idle(status: dict[str, Any]) -> bool:
    return not status["isDataAvailable"] and not status["isTriggerActive"]


@define(eq=False)
class RowDelivery(Delivery):
    """A batch whose rows Spark has."""

    rows: DataFrame = field(kw_only=True)


class SparkFeed:
    """Spark owns offsets, replay and rate limits; ``foreachBatch`` hands a batch over and waits until it is committed."""

    def __init__(self, stream: str, frame: DataFrame, session: SessionHandle, core: Core, loop: Loop) -> None:
        self._stream, self._frame, self._session, self._core, self._loop = stream, frame, session, core, loop
        self._query: StreamingQuery | None = None
        self._last: Delivery | None = None
        self._refused: HeadwaterError | None = None
        """What is wrong with the batch that Spark has brought last."""
        self._restarts = 0
        self._idle, self._taken_until = False, BEGINNING

    def start(self) -> None:
        if self._query is not None:
            return
        writer = self._frame.writeStream.foreachBatch(self._take).queryName(f"headwater: {self._stream}")
        checkpoint = self._core.committed.checkpoint
        assert checkpoint is not None
        place = checkpoint.source(self._stream)
        self._query = writer.option("checkpointLocation", place).start()

    def stop(self) -> None:
        if self._query is not None:
            if self._last is not None and not self._last.done.is_set():
                self._last.finish(Stopped())
            try:
                with calling_spark():
                    self._query.stop()
            except HeadwaterError as problem:
                log.debug("%s", problem)  # a query ends with its JVM
            self._query = None

    def look_again(self) -> None: ...

    def is_drained(self) -> bool:
        if self._query is None:
            return True
        with calling_spark():
            return self._is_drained(self._query)

    def _is_drained(self, query: StreamingQuery) -> bool:
        self._raise_failure()
        from pyspark.errors import PySparkException

        try:
            query.processAllAvailable()
        except PySparkException:
            self._raise_failure()
            return False  # it was started again
        self._raise_failure()
        return True

    def taken_until(self) -> int:
        """Spark looks for rows all the time, but does not say when it looked last: it was within the slack."""
        query, last = self._query, self._last
        idle = query is not None and (last is None or last.done.is_set()) and _is_idle(query.status)
        if idle and self._idle:
            self._taken_until = max(self._taken_until, self._core.wall.now() - _SLACK)
        self._idle = idle
        return self._taken_until

    def failure(self) -> BaseException | None:
        """Why Spark's query ended, if it did."""
        try:
            with calling_spark():
                return self._failure()
        except HeadwaterError as problem:
            return problem

    def _failure(self) -> BaseException | None:
        query = self._query
        if query is None or self._loop.error is not None or query.isActive:
            return self._loop.error
        text = str(query.exception() or "Spark ended it without a word.")
        if _TOO_SLOW in text and self._restarts < _RESTARTS:
            log.warning('the source of stream "%s" did not start in time and is started again', self._stream)
            self._restarts, self._query = self._restarts + 1, None
            self.start()
            return None
        return self._failed(text)

    def _failed(self, text: str) -> HeadwaterError:
        return self._refused or HeadwaterError(
            "SOURCE_FAILED",
            f'the source of stream "{self._stream}" failed',
            detail=next((line.strip() for line in text.splitlines() if line.strip()), "")[:500],
            hint="Nothing is lost: its rows come again after a restart.",
        )

    def _raise_failure(self) -> None:
        problem = self.failure()
        if problem is not None:
            raise problem

    def _take(self, frame: DataFrame, batch: int) -> None:
        try:
            delivery = self._delivery(frame, batch)
        except HeadwaterError as problem:
            self._refused = problem  # Spark passes on a text only
            raise
        self._last = delivery
        self._loop.submit(delivery)
        delivery.done.wait()
        if delivery.error is not None:
            raise delivery.error
        points.passed(points.BEFORE_SPARKS_COMMIT)

    def _delivery(self, frame: DataFrame, batch: int) -> RowDelivery:
        self._session.prepare(frame.sparkSession)
        return RowDelivery(self._stream, batch, rows=frame)
