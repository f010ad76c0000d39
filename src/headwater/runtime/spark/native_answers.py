"""Queries without state over a batch that Spark reads: it computes their answers and writes them, without Python.

What a sender would tell of the rows is observed while they pass. Rows that are late or malformed are then fetched, if there
are any, and taken in as they always are. Whatever Spark cannot do leaves the batch to the senders.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from headwater.algebra.nodes import Plan
from headwater.clock.frontier import Seen
from headwater.model.schema import END, START
from headwater.runtime.executor import TickJob
from headwater.runtime.reading import StreamTask, take_in, together
from headwater.runtime.sender import Arrivals, SenderOutput
from headwater.runtime.spark.expressions import suits
from headwater.runtime.spark.native_parts import NativePart
from headwater.runtime.spark.native_rows import KEPT, SEEN, BatchText, selected
from headwater.runtime.spark.spark_values import quoted
from headwater.sinks.base import Output, Sink, Staged
from headwater.sinks.tables import FIRST_TIMESTAMP, LAST_TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("headwater")

Sent = tuple[Arrivals, SenderOutput]


class Answered(Protocol):
    """A query, as far as it matters here."""

    name: str
    plan: Plan
    sink: Sink
    output: Output


def answers(frame: DataFrame, task: StreamTask, job: TickJob, queries: Sequence[Answered]) -> list[Sent] | None:
    """What senders would have brought of the batch, with the answers staged; None if they must do it."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if not suits(frame.sparkSession):
        return None
    several = len(queries) > 1
    try:
        frame = frame.persist() if several else frame
        try:
            return _Batch(frame, task, job).answered(queries)
        finally:
            if several:
                frame.unpersist()
    except (PySparkException, Py4JJavaError) as problem:
        # The senders find out what is wrong, and say it better.
        log.debug("Spark could not answer by itself: %s", problem)
        return None


class _Batch:
    def __init__(self, frame: DataFrame, task: StreamTask, job: TickJob) -> None:
        self._frame, self._task, self._job = frame, task, job
        self._frontier = job.tick.clocks[task.stream].frontier

    def answered(self, queries: Sequence[Answered]) -> list[Sent] | None:
        sent: list[Sent] = []
        observed: dict[str, Any] = {}
        for query in queries:
            observed = self._staged(query, sent)
            if observed["taken"] and query.output.timestamps and not _are_timestamps(observed):
                return None  # an error, if the row is in the answer
        out = SenderOutput()
        arrivals = self._rest(out) if observed["taken"] < observed["rows"] else Arrivals({}, {})
        stream, taken = self._task.stream, observed["taken"]
        seen = list(arrivals.seen.get(stream, ()))
        if taken:
            seen.append(Seen("", observed["newest"], observed["oldest"], taken))
        out.rows[stream] = out.rows.get(stream, 0) + taken
        return [(Arrivals(arrivals.deltas, {stream: together(seen)}), out), *sent]

    def _staged(self, query: Answered, sent: list[Sent]) -> dict[str, Any]:
        """Compute and stage one answer; what was observed of the batch."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        text = BatchText(self._task.intake, self._frontier)
        text.apply(NativePart(0, query.plan).steps)
        text.select([SEEN, KEPT, *map(quoted, query.plan.schema.names)])
        watched = Observation()
        rows = selected(self._frame, text).observe(
            watched,
            f.expr("count(1) AS rows"),
            f.expr(f"count({SEEN}) AS taken"),
            f.expr(f"max({SEEN}) AS newest"),
            f.expr(f"min({SEEN}) AS oldest"),
            f.expr(f"count_if({KEPT}) AS kept"),
        )
        columns = map(quoted, query.plan.schema.names)
        answer = rows.filter(KEPT).selectExpr(*columns, f"{SEEN} AS {START}", f"{SEEN} + 1L AS {END}")
        paths = query.sink.stage_frame(answer, self._job.tick.number, self._job.staging)
        observed = watched.get
        if observed["kept"]:
            sent += [
                (Arrivals({}, {}), SenderOutput(staged={query.name: part})) for part in _parts(observed["kept"], paths)
            ]
        return observed

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


def _are_timestamps(observed: dict[str, Any]) -> bool:
    return observed["oldest"] >= FIRST_TIMESTAMP and observed["newest"] < LAST_TIMESTAMP
