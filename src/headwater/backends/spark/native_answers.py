"""Queries without state over a batch that Spark reads: it computes their answers and writes them, without Python.

What a sender would tell of the rows is observed while they pass. Rows that are late or malformed are then fetched, if there
are any, and taken in as they always are. Whatever Spark cannot do leaves the batch to the senders.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headwater.backends.spark.native_parts import SPARK, NativePart
from headwater.backends.spark.native_rows import KEPT, SEEN, BatchText, selected
from headwater.backends.spark.session import suits
from headwater.clock.seen import Seen
from headwater.expressions.spark_values import quoted
from headwater.model.schema import END, START
from headwater.model.time import BEGINNING, INFINITY
from headwater.runtime.deployment import Running
from headwater.runtime.executor import Sent, TickJob
from headwater.runtime.reading import StreamTask, take_in, together
from headwater.runtime.sender import Arrivals, SenderOutput
from headwater.sinks.base import Staged
from headwater.sinks.tables import FIRST_TIMESTAMP, LAST_TIMESTAMP
from headwater.sources.base import Span, SparkBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("headwater")


def answers(batch: SparkBatch, task: StreamTask, job: TickJob, queries: Sequence[Running]) -> list[Sent] | None:
    """What senders would have brought of the batch, with the answers staged; None if they must do it."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if not SPARK.carries(task.intake.schema) or not suits(batch.frame.sparkSession):
        return None
    several = len(queries) > 1 and batch.span is None
    try:
        frame = batch.frame.persist() if several else batch.frame
        try:
            return _Batch(frame, batch.span, task, job).answered(queries)
        finally:
            if several:
                frame.unpersist()
    except (PySparkException, Py4JJavaError) as problem:
        # The senders find out what is wrong, and say it better.
        log.debug("Spark could not answer by itself: %s", problem)
        return None


class _Batch:
    """One batch, and what has been found out about it."""

    def __init__(self, frame: DataFrame, span: Span | None, task: StreamTask, job: TickJob) -> None:
        self._frame, self._task, self._job = frame, task, job
        self._frontier = job.tick.frontier(task.stream)
        self._span = span if span is not None and span.rows and span.oldest >= self._frontier else None
        """Of the rows that are taken."""
        self._all = self._span is not None
        """Are all rows taken?"""

    def answered(self, queries: Sequence[Running]) -> list[Sent] | None:
        sent: list[Sent] = []
        for query in queries:
            if not self._suits(query):
                return None
            rows, paths = self._staged_known(query) if self._all else self._staged_observed(query)
            if not self._suits(query):
                return None
            parts = _parts(rows, paths) if rows else []
            sent += [(Arrivals({}, {}), SenderOutput(staged={query.name: part})) for part in parts]
        assert self._span is not None
        out, stream = SenderOutput(), self._task.stream
        arrivals = Arrivals({}, {}) if self._all else self._rest(out)
        seen = [*arrivals.seen.get(stream, ()), Seen("", self._span.newest, self._span.oldest, self._span.rows)]
        out.rows[stream] = out.rows.get(stream, 0) + self._span.rows
        return [(Arrivals(arrivals.deltas, {stream: together(seen)}), out), *sent]

    def _suits(self, query: Running) -> bool:
        """No row would be refused; a batch of which nothing is taken is left to the senders, too."""
        span = self._span
        if span is None:
            return not self._all
        fits = span.oldest >= FIRST_TIMESTAMP and span.newest < LAST_TIMESTAMP
        return (
            span.rows > 0
            and span.oldest > BEGINNING
            and span.newest < INFINITY - 1
            and (fits or not query.output.timestamps)
        )

    def _staged_known(self, query: Running) -> tuple[int, list[str]]:
        """Stage an answer over rows that are all taken: how many it has, and its files."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        assert self._span is not None
        part = NativePart(0, query.plan)
        answer = _answer(self._selected(part, None), part)
        if not part.is_filtered:
            return self._span.rows, self._stage(query, answer)
        watched = Observation()
        paths = self._stage(query, answer.observe(watched, f.expr("count(1) AS rows")))
        return watched.get["rows"], paths

    def _staged_observed(self, query: Running) -> tuple[int, list[str]]:
        """The same where some rows may be late or malformed; then it is known of how many that is true."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        part, watched = NativePart(0, query.plan), Observation()
        rows = self._selected(part, self._frontier).observe(
            watched,
            f.expr("count(1) AS rows"),
            f.expr(f"count({SEEN}) AS taken"),
            f.expr(f"min({SEEN}) AS oldest"),
            f.expr(f"max({SEEN}) AS newest"),
            f.expr(f"count_if({KEPT}) AS kept"),
        )
        paths = self._stage(query, _answer(rows, part))
        found = watched.get
        self._span = Span(found["taken"], found["oldest"] or 0, found["newest"] or 0)
        self._all = found["rows"] == found["taken"]
        return found["kept"], paths

    def _selected(self, part: NativePart, frontier: int | None) -> DataFrame:
        text = BatchText(self._task.intake, frontier)
        text.apply(part.steps)
        text.select([SEEN, KEPT, *map(quoted, part.plan.schema.names)])
        return selected(self._frame, text)

    def _stage(self, query: Running, answer: DataFrame) -> list[str]:
        return query.sink.stage_frame(answer, self._job.tick.number, self._job.staging)

    def _rest(self, out: SenderOutput) -> Arrivals:
        """The rows that are late or malformed, as a sender takes them."""
        text = BatchText(self._task.intake, self._frontier)
        text.select([f"{text.row} AS row", SEEN])
        table = selected(self._frame, text).filter(f"{SEEN} IS NULL").selectExpr("row.*").toArrow()
        pieces = map(self._task.piece, table.combine_chunks().to_batches())
        return take_in(self._task, pieces, self._job.tick, self._job.layout, self._job.staging, out)


def _parts(rows: int, paths: Iterable[str]) -> list[Staged]:
    """All rows are told with the first part: only their sum is asked for."""
    first, *others = [*paths] or [None]
    return [Staged(rows, path=first), *(Staged(0, path=path) for path in others)]


def _answer(rows: DataFrame, part: NativePart) -> DataFrame:
    columns = map(quoted, part.plan.schema.names)
    return rows.filter(KEPT).selectExpr(*columns, f"{SEEN} AS {START}", f"{SEEN} + 1L AS {END}")
