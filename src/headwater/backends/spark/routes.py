"""Which way the rows of a stream that Spark has can go, as the queries are that read it: found once for a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from headwater.algebra.nodes import Source
from headwater.backends.spark.native_computed import is_native
from headwater.backends.spark.native_parts import NativePart, chain, is_stateless
from headwater.backends.spark.native_slices import Slices, slices_of
from headwater.language.consistency import MIDDLE, STRONG
from headwater.runtime.deployment import Running
from headwater.runtime.executor import TickJob
from headwater.runtime.reading import StreamTask


@frozen
class Routes:
    """By stream: what Spark can do with its rows."""

    answered: Mapping[str, Sequence[Running]]
    """Answer natively: the queries that read it, where Spark can answer all of them by itself."""
    parts: Mapping[str, Sequence[NativePart]]
    """Take rows: the parts through which queries read it, which Spark can compute before its rows enter Python."""
    slices: Mapping[str, Slices]
    """Take rows in groups: the partial aggregate through which alone it is read."""

    @classmethod
    def of(cls, job: TickJob) -> Routes:
        readers: dict[str, list[Running]] = {}
        for query in job.queries:
            for stream in query.plan.streams:
                readers.setdefault(stream, []).append(query)
        rows = {stream: its for stream, its in readers.items() if stream in job.tasks and has_rows(job.tasks[stream])}
        parts = {stream: _parts(job, stream, its) for stream, its in rows.items()}
        plans = [query.plan for query in job.queries]
        alone = {stream: its[0] for stream, its in parts.items() if len(its) == 1}
        slices = {stream: slices_of(job.layout.graph, part, plans) for stream, part in alone.items()}
        answered = {stream: its for stream, its in readers.items() if all(map(_is_answered, its))}
        return cls(answered, parts, {stream: found for stream, found in slices.items() if found is not None})


def has_rows(task: StreamTask) -> bool:
    """Do its rows come as rows of its columns, of which Spark can tell what we can?"""
    return task.reader is None and task.parser is None and is_native(task.intake)


def _parts(job: TickJob, stream: str, readers: Sequence[Running]) -> Sequence[NativePart]:
    assert job.node_of is not None
    sources = {
        node for query in readers for node in query.plan.walk() if isinstance(node, Source) and node.name == stream
    }
    found = (part for query in readers for part in query.parts if chain(part)[0] in sources)
    plans = dict.fromkeys(found)
    return [NativePart(job.node_of(plan), plan) for plan in plans]


def _is_answered(query: Running) -> bool:
    settled = query.level in (STRONG, MIDDLE) and not query.lineage
    return settled and query.sink.takes_frames and is_stateless(query.plan)
