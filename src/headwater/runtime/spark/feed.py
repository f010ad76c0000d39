"""A stream that Spark reads: a Structured Streaming query of its own, whose batches are handed to the engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError
from headwater.runtime import points
from headwater.runtime.core import Core, Delivery
from headwater.runtime.loop import Loop
from headwater.runtime.spark.session import SessionHandle
from headwater.sources.base import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


class SparkFeed:
    """Spark owns offsets, replay and rate limits; ``foreachBatch`` hands a batch over and waits until it is committed."""

    def __init__(self, stream: str, source: Source, session: SessionHandle, core: Core, loop: Loop) -> None:
        self._stream, self._source, self._session, self._core, self._loop = stream, source, session, core, loop
        self._query: StreamingQuery | None = None
        self._last: Delivery | None = None
        self._expected: int | None = None

    def start(self) -> None:
        if self._query is not None:
            return
        spark = self._session.spark
        frame = self._source.splits(spark)
        self._has_splits = frame is not None
        frame = frame if frame is not None else self._source.rows(spark)
        if frame is None:
            raise HeadwaterError("NOT_A_SPARK_SOURCE", f'Spark cannot read the source of stream "{self._stream}"')
        writer = frame.writeStream.foreachBatch(self._take).queryName(f"headwater: {self._stream}")
        assert self._core.checkpoint is not None
        place = self._core.checkpoint.source(self._stream)
        self._query = writer.option("checkpointLocation", place.absolute().as_uri()).start()

    def stop(self) -> None:
        if self._query is not None:
            if self._last is not None and not self._last.done.is_set():
                from headwater.runtime.loop import Stopped

                self._last.finish(Stopped())
            self._query.stop()
            self._query = None

    def look_again(self) -> None: ...

    def drained(self) -> bool:
        if self._query is None:
            return True
        self._raise_failure()
        total = self._source.total_rows()
        if total is not None:
            return sum(self._core.manifest.counts.get(self._stream, {}).values()) >= total
        self._query.processAllAvailable()
        self._raise_failure()
        return True

    def failure(self) -> BaseException | None:
        """Why Spark's query ended, if it did."""
        problem = self._query.exception() if self._query is not None else None
        if problem is None or self._loop.error is not None:
            return self._loop.error
        from headwater.runtime.spark.job import failed

        return failed(problem)

    def _raise_failure(self) -> None:
        problem = self.failure()
        if problem is not None:
            raise problem

    def _take(self, frame: DataFrame, batch: int) -> None:
        delivery = self._delivery(frame, batch)
        self._last = delivery
        self._loop.submit(delivery)
        delivery.done.wait()
        if delivery.error is not None:
            raise delivery.error
        points.passed(points.BEFORE_SPARKS_COMMIT)

    def _delivery(self, frame: DataFrame, batch: int) -> Delivery:
        if not self._has_splits:
            self._session.prepare(frame.sparkSession)
            size = self._expected if self._expected is not None and self._expected < 10_000 else None
            return Delivery(self._stream, batch, rows=frame, size=size)
        coarse: list[Any] = [json.loads(row.split) for row in frame.select("split").collect()]
        sizes = [self._source.split_rows(split) for split in coarse]
        size = sum(s or 0 for s in sizes) if all(s is not None for s in sizes) else None
        return Delivery(self._stream, batch, splits=self._source.cut(coarse), size=size)
