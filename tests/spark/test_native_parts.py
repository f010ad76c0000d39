"""A batch of rows that Spark has: the parts of queries that it computes, and what is told of the rows."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import headwater as hw
from headwater.algebra import nodes as n
from headwater.backends.spark.native_parts import NativePart, SparkRows, is_stateless
from headwater.backends.spark.native_rows import native_rows
from headwater.backends.spark.native_slices import Slices, can_pre_aggregate, native_meter, sliced_rows, slices_of
from headwater.expressions.nodes import Expression
from headwater.expressions.rewrite import typed_as
from headwater.model.delta import Delta
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.aggregates.pre_aggregate import PreAggregateOperator
from headwater.optimizer.physical.native_parts import Marked, is_row_wise, mark
from headwater.optimizer.plan_query import plan_query
from headwater.runtime.graph import Graph
from headwater.runtime.lower import Lowering, lower
from headwater.runtime.reading import together
from headwater.sources.base import Piece
from headwater.sources.intake import Intake
from headwater.testing.choices import Dice
from headwater.testing.expression_text import bind_text
from headwater.testing.generate import streams, whole
from headwater.testing.oracle import expected_history
from headwater.testing.plan_text import parse_plan
from headwater.testing.plans import plan as random_plan
from headwater.testing.shape import sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def marked(plan: n.Plan, streams: list[str]) -> Marked:
    return mark(plan, SparkRows(streams))


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


def scalar(text: str, type_: pa.DataType, *columns: str) -> Expression:
    return typed_as(bind_text(text, Schema((*COLUMNS, *Schema.of(t="BIGINT")))), type_)


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


# -- one batch in groups ----------------------------------------------------------------------------------------------


NAMED = n.Project(
    POSITIVE,
    (
        ("s", scalar('"s"', pa.string(), "s")),
        ("k", scalar('"k"', pa.int32(), "k")),
        ("z", scalar('"z"', pa.int64(), "z")),
        ("odd", scalar('"z" % 2 = 1', pa.bool_(), "z")),
    ),
)
CALLS = (
    n.AggregateCall("SUM", "total", pa.int64(), "k"),
    n.AggregateCall("COUNT", "some", pa.bool_(), "k", filter="odd"),
    n.AggregateCall("MAX", "most", pa.int64(), "z"),
    n.AggregateCall("SUM", "odds", pa.int64(), "k", filter="odd"),
)
SLICED: dict[str, tuple[n.Plan, n.HopWindow | None, tuple[str, ...]]] = {
    "range": (n.TimeWindow(NAMED, 30, 10), None, ("s",)),
    "odd range": (n.TimeWindow(NAMED, 25, 10), None, ()),
    "for ever": (n.TimeWindow(NAMED, INFINITY, 50), None, ("k",)),
    "granularity": (n.Granularity(NAMED, 7, 5), None, ("k",)),
    "both": (n.Granularity(n.TimeWindow(NAMED, 30, 10), 20, 3), None, ()),
    "tumble": (NAMED, n.HopWindow(NAMED, 10, 10, 3, time=pa.int64()), ("window_end", "k")),
    "hop": (NAMED, n.HopWindow(NAMED, 25, 10, time=pa.int64()), ("window_start", "window_end")),
}


@pytest.mark.parametrize("frontier", [BEGINNING, 17])
@pytest.mark.parametrize("partition", [None, "k"])
@pytest.mark.parametrize("name", SLICED)
def test_what_a_batch_holds_in_groups(spark: SparkSession, name: str, partition: str | None, frontier: int):
    """The same partial aggregates as in Python, of the same rows; and all that is told of the others."""
    part, hop, keys = SLICED[name]
    plan = n.PreAggregate(hop or part, keys, CALLS)
    intake = Intake("t", COLUMNS, "at", partition=partition, bad="divert")
    slices = Slices(7, "key", plan, NativePart(3, part), hop)
    assert can_pre_aggregate(plan, slices.part, hop)
    later = pa.array([None if at is None else at + 5 for at in BATCH["at"].to_pylist()], pa.int64())
    # In one slice, but of a window that is not a number of slides long: some see only a part of it.
    thrice = pa.concat_tables([BATCH, BATCH, BATCH.set_column(0, "at", later)])
    found = sliced_rows(spark.createDataFrame(thrice), intake, frontier, slices)
    assert found is not None
    frame, shape = found
    (batch,) = thrice.combine_chunks().to_batches()
    whole = intake.take(Piece(batch), frontier)
    read = [pickle.loads(pickle.dumps(shape)).read(b) for b in frame.toArrow().combine_chunks().to_batches()]
    apart = [intake.take(Piece(r.apart), frontier) for r in read if r.apart is not None]
    assert sum(r.rows for r in read) == len(whole.delta) > 0
    seen = together([s for r in read for s in r.seen] + [s for a in apart for s in a.seen])
    alone, told = ([s._replace(late=0, bad=0) for s in its if s.rows] for its in (whole.seen, seen))
    assert sorted(told) == sorted(alone)
    for kind in ("late", "bad"):
        assert sum(getattr(s, kind) for s in seen) == sum(getattr(s, kind) for s in whole.seen)
    late = sorted(map(repr, (r for a in apart for r in a.late.to_pylist())))
    assert late == sorted(map(repr, whole.late.to_pylist()))
    computed = Delta.concat(plan.schema, [r.parts[7] for r in read])
    assert summary(computed, len(keys)) == summary(in_python(plan, whole.delta), len(keys))
    rows, groups = (sum(r.reduced[i] for r in read) for i in (0, 1))
    assert 0 < groups < rows


def summary(delta: Delta, keys: int) -> dict[str, list[int]]:
    """What an aggregate makes of the rows: counts, sums and the largest, by key and interval."""
    found: dict[str, list[int]] = {}
    for row, start, end, weight in delta.rows():
        total, some, most, odds = row[keys:]
        sums = found.setdefault(repr((row[:keys], start, end)), [0] * 5 + [-1])
        told = (1, total or 0, total is not None, bool(some), odds or 0)
        sums[:5] = [so_far + weight * more for so_far, more in zip(sums[:5], told, strict=True)]
        sums[5] = max(sums[5], most)
    return found


def test_what_could_overflow_is_put_together_by_the_sender():
    large = n.PreAggregate(NAMED, (), (n.AggregateCall("SUM", "total", pa.int64(), "z"),))
    assert not can_pre_aggregate(large, NativePart(3, NAMED))


def test_spark_must_make_one_of_four():
    meter = native_meter()
    assert not meter.pays, "it is not known yet"
    meter.record(10_000, 3_000)
    assert not meter.pays
    meter.record(10_000, 2_000)
    assert meter.pays
    meter.record(10_000, 3_000)
    assert meter.pays, "it does not change its mind at once"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT k, COUNT(*) AS n FROM t WINDOW(RANGE 60 SECONDS SLIDE 10 SECONDS) GROUP BY k", True),
        ("SELECT MAX(v) AS m FROM TUMBLE(t, DESCRIPTOR(ts), 9 SECONDS) WHERE b GROUP BY window_end", True),
        ("SELECT SUM(v) AS m FROM TUMBLE(t, DESCRIPTOR(ts), 9 SECONDS) GROUP BY window_end", False),  # may overflow
        ("SELECT k, COUNT(*) AS n FROM t WINDOW(RANGE 60 SECONDS) GROUP BY k", False),  # no slices
    ],
)
def test_where_a_partial_aggregate_is_the_only_reader(query: str, found: bool):
    made = marked(planned(query), ["t"])
    lowering = Lowering(graph := Graph())
    lowering.add_query("q", made.plan)
    (part,) = made.parts
    slices = slices_of(graph, NativePart(lowering.node_of(part), part), [made.plan])
    assert (slices is not None) is found
    if slices is not None:
        assert isinstance(graph.nodes[slices.node].operator, PreAggregateOperator)
        other = n.Distinct(part)
        lowering.add_query("r", other)
        assert slices_of(graph, slices.part, [made.plan, other]) is None, "somebody else reads it too"


# -- which parts ------------------------------------------------------------------------------------------------------


COLUMNS_OF_T = "ts TIMESTAMP, k INT, v BIGINT, s STRING, b BOOLEAN"


def planned(text: str) -> n.Plan:
    engine = hw.connect(runner="inprocess")
    engine.sql(
        f"CREATE STREAM t ({COLUMNS_OF_T}) ORDERED BY ts IN ORDER; CREATE STREAM u ({COLUMNS_OF_T}) ORDERED BY ts IN ORDER"
    )
    query = engine.sql(text)
    return plan_query(query.plan, query.settings).plan


def test_a_part_hands_on_what_is_read():
    plan = planned(
        "SELECT k, window_end, MIN(v) AS low FROM TUMBLE(t, DESCRIPTOR(ts), 9 SECONDS) WHERE b GROUP BY k, window_end"
    )
    made = marked(plan, ["t"])
    assert [part.schema.names for part in made.parts] == [("k", "v")]
    assert made.plan.schema == plan.schema
    assert marked(plan, []) == (plan, ())


def test_rows_that_are_only_counted_bring_their_narrowest_column():
    (part,) = marked(planned("SELECT COUNT(*) AS n FROM t"), ["t"]).parts
    assert part.schema.names == ("b",)


@pytest.mark.parametrize(
    "text",
    [
        "window range 5\n  source s (k BIGINT)",  # intervals: a split stands before the window
        'project "k", "K" = "k"\n  source s (k BIGINT) chronons final',  # Spark's names do not differ by case
        'project "u" STRING = upper("k")\n  source s (k STRING) chronons final',
        "union\n  source s (k BIGINT) chronons final\n  source s (k BIGINT) chronons final",
    ],
)
def test_what_spark_does_not_compute(text: str):
    assert not is_row_wise(parse_plan(text), SparkRows(), ["s"])


@pytest.mark.parametrize("seed", range(40))
def test_a_plan_over_its_parts_answers_the_same(seed: int):
    dice = Dice(seed)
    plan = random_plan(dice)
    inputs = {
        s.name: whole(s.schema, part) for s, part in zip(sources(plan), streams(dice, plan).values(), strict=True)
    }
    made = marked(plan, list(inputs))
    assert made.plan.schema.names == plan.schema.names
    assert expected_history(made.plan, inputs) == expected_history(plan, inputs)


def test_random_plans_have_parts():
    plans = [random_plan(Dice(seed)) for seed in range(40)]
    assert sum(bool(marked(plan, [s.name for s in sources(plan)]).parts) for plan in plans) > 4


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
