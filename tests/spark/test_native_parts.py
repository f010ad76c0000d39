"""A batch of rows that Spark has: the parts of queries that it computes, and what is told of the rows."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import headwater as hw
from headwater.algebra import nodes as n
from headwater.model.delta import Delta
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING
from headwater.runtime.lower import lower
from headwater.runtime.planning import runnable
from headwater.runtime.reading import together
from headwater.runtime.spark.native_parts import NativePart, is_stateless, marked
from headwater.runtime.spark.native_rows import native_rows
from headwater.sources.base import Piece
from headwater.sources.intake import Intake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# -- one batch --------------------------------------------------------------------------------------------------------


BATCH = pa.table(
    {
        "at": pa.array([5, None, 17, 90, -3, 40, 41, 2**40, 8], pa.int64()),
        "day": pa.array([0, 3, None, 100, -5, 7, 2**31 - 1, 9, 2], pa.int32()).cast(pa.date32()),
        "moment": pa.array([5, 6, 17, None, -3, 40, 41, 2**40, 8], pa.timestamp("us", "UTC")),
        "k": pa.array([1, 2, None, 1, 2, 3, 3, 1, 2], pa.int32()),
        "s": pa.array(["a", "b", None, "d", "e", "", "g", "h", "a"]),
        "z": pa.array([0, 1, 2, 0, 4, 5, 0, 7, 8], pa.int64()),
    }
)
COLUMNS = Schema(
    (
        *Schema.of(at="BIGINT", day="DATE", moment="TIMESTAMP", k="INT"),
        Field("s", pa.string(), nullable=False),
        Field("z", pa.int64()),
    )
)


def scalar(sql: str, type_: pa.DataType, *columns: str) -> n.Scalar:
    return n.Scalar(sql, type_, columns)


SOURCE = n.Source("t", COLUMNS, chronons=True, revisable=False)
POSITIVE = n.Filter(SOURCE, scalar('"z" > 0', pa.bool_(), "z"))
PARTS = [
    SOURCE,
    POSITIVE,
    n.TimeWindow(
        n.Project(SOURCE, (("s", scalar('"s"', pa.string(), "s")), ("k", scalar('"k"', pa.int32(), "k")))), 10, 3
    ),
    n.Project(POSITIVE, (("q", scalar('"s" || CAST("z" AS VARCHAR)', pa.string(), "s", "z")),)),
    n.Filter(n.Stamp(POSITIVE, "t"), scalar('"t" < 60', pa.bool_(), "t")),
    n.Granularity(n.Project(SOURCE, (("n", scalar('"k" + 1', pa.int32(), "k")),)), 4, 1),
]


@pytest.mark.parametrize("frontier", [BEGINNING, 17])
@pytest.mark.parametrize(("time", "partition"), [("at", None), ("at", "k"), ("day", None), ("moment", "moment")])
def test_what_a_batch_holds(spark: SparkSession, time: str, partition: str | None, frontier: int):
    """The same elements, sightings, late and malformed rows as in Python, whatever the time is and has."""
    intake = Intake("t", COLUMNS, time, partition=partition, bad="divert")
    parts = [NativePart(i, plan) for i, plan in enumerate(PARTS)]
    found = native_rows(spark.createDataFrame(BATCH), intake, frontier, parts)
    assert found is not None
    frame, shape = found
    (batch,) = BATCH.to_batches()
    whole = intake.take(Piece(batch), frontier)
    read = [pickle.loads(pickle.dumps(shape)).read(b) for b in frame.toArrow().combine_chunks().to_batches()]
    apart = [intake.take(Piece(r.apart), frontier) for r in read if r.apart is not None]
    assert sum(r.rows for r in read) == len(whole.delta) > 0
    assert sum(len(a.delta) for a in apart) == 0
    seen = together([s for r in read for s in r.seen] + [s for a in apart for s in a.seen])
    alone, together_ = ([s._replace(late=0, bad=0) for s in its if s.rows] for its in (whole.seen, seen))
    assert sorted(together_) == sorted(alone)
    for kind in ("late", "bad"):
        assert sum(getattr(s, kind) for s in seen) == sum(getattr(s, kind) for s in whole.seen)
    assert sorted(map(repr, (r for a in apart for r in a.late.to_pylist()))) == sorted(
        map(repr, whole.late.to_pylist())
    )
    for i, plan in enumerate(PARTS):
        computed = Delta.concat(plan.schema, [r.parts[i] for r in read])
        assert shown(computed) == shown(in_python(plan, whole.delta)), plan
        assert all(c.type == f.type for r in read for c, f in zip(r.parts[i].columns, plan.schema, strict=True))


def shown(delta: Delta) -> list[str]:
    """Dates as numbers: Python has fewer of them."""
    batch = delta.to_batch()
    columns = [c.cast(pa.int32()) if pa.types.is_date32(c.type) else c for c in batch.columns]
    return sorted(map(repr, zip(*(c.to_pylist() for c in columns), strict=True)))


def in_python(plan: n.Plan, delta: Delta) -> Delta:
    graph = lower({"part": plan})
    made: dict[int, Delta] = {}
    for node in graph.nodes:
        if node.operator is None:
            made[node.id] = delta
        else:
            made[node.id] = node.operator.step(None, (made[node.inputs[0]],), (BEGINNING,)).delta
    return made[graph.queries["part"]]


# -- which parts ------------------------------------------------------------------------------------------------------


COLUMNS_OF_T = "ts TIMESTAMP, k INT, v BIGINT, s STRING, b BOOLEAN"


def planned(text: str) -> n.Plan:
    engine = hw.connect(runner="inprocess")
    engine.sql(
        f"CREATE STREAM t ({COLUMNS_OF_T}) ORDERED BY ts IN ORDER; CREATE STREAM u ({COLUMNS_OF_T}) ORDERED BY ts IN ORDER"
    )
    query = engine.sql(text)
    return runnable(query.plan, query.settings)


def test_a_part_hands_on_what_is_read():
    plan = planned(
        "SELECT k, window_end, MIN(v) AS low FROM TUMBLE(t, DESCRIPTOR(ts), 9 SECONDS) WHERE b GROUP BY k, window_end"
    )
    made = marked(plan, ["t"])
    assert [part.schema.names for part in made.parts] == [("k", "v")]
    assert made.plan.schema == plan.schema
    assert marked(plan, []) == (plan, ())


def test_only_streams_whose_rows_are_there_have_parts():
    plan = planned(
        "SELECT t.k FROM t WINDOW(RANGE 1 SECOND) JOIN u WINDOW(RANGE 1 SECOND) ON t.k = u.k WHERE t.v > u.v"
    )
    (part,) = marked(plan, ["u"]).parts
    assert {node.name for node in part.walk() if isinstance(node, n.Source)} == {"u"}
    assert len(marked(plan, ["t", "u"]).parts) == 2


def test_what_has_a_window_or_needs_python_is_not_answered_by_spark():
    assert is_stateless(planned("SELECT k, v + 1 AS w FROM t WHERE v > 3"))
    assert not is_stateless(planned("SELECT k FROM t WINDOW(RANGE 3 SECONDS)"))
    assert not is_stateless(planned("SELECT sin(v) AS h FROM t"))
    assert not is_stateless(planned("SELECT k FROM t UNION ALL SELECT k FROM u"))
