"""Late and malformed rows: what the intake says of them in Arrow, Spark's SQL says too, over random rows of every kind.

Spark judges rows of which it computes something before they enter Python; only what it finds to be in time and well-formed
passes the intake by. So both must agree on every row: which are taken and at which instant, which are late, which are bad.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headwater.algebra import nodes as n
from headwater.backends.spark.native_parts import SPARK, NativePart
from headwater.backends.spark.native_rows import native_rows
from headwater.backends.spark.native_slices import Slices, can_pre_aggregate, sliced_rows
from headwater.clock.seen import Seen
from headwater.errors import StreamError
from headwater.language.binder import bind_script
from headwater.language.time_clauses import LatePolicy
from headwater.model.delta import Delta
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY, MICROSECONDS
from headwater.optimizer.physical.native_parts import is_row_wise
from headwater.runtime.reading import together
from headwater.sources.base import Piece
from headwater.sources.intake import Intake, Taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMES = {
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP without a zone": pa.timestamp("us"),
}
DAY = MICROSECONDS["DAY"]
EDGES = (0, 1, -1, BEGINNING, BEGINNING + 1, BEGINNING + 2, INFINITY, INFINITY - 1, INFINITY - 2, INFINITY - DAY)
DAYS = (0, 1, -1, INFINITY // DAY, INFINITY // DAY + 1, -(INFINITY // DAY), -(INFINITY // DAY) - 1, 2**31 - 1, -(2**31))
ROWS = 120


def schema_of(kind: str) -> Schema:
    type_ = pa.timestamp("us") if kind.startswith("TIMESTAMP") else TIMES[kind]
    columns = Schema.of(k="INT", must="STRING", z="BIGINT", flag="BOOLEAN")
    rest = (Field(f.name, f.type, nullable=f.name != "must") for f in columns)
    return Schema((Field("at", type_), *rest, Field("price", pa.decimal128(10, 2), nullable=False)))


def instants(dice: random.Random, type_: pa.DataType, frontier: int) -> pa.Array:
    """Around the frontier, at both ends of time, anywhere, and nowhere."""
    days = pa.types.is_date32(type_)
    bits = 64 if pa.types.is_timestamp(type_) else type_.bit_width
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    near = max(least, min(most, frontier // DAY if days else frontier))

    def one() -> int | None:
        drawn = dice.choice(
            (
                None,
                near + dice.randint(-3, 3),
                near + dice.randint(-3, 3),
                dice.randint(-50, 50),
                dice.choice(DAYS if days else EDGES),
                dice.randint(least, most),
            )
        )
        return None if drawn is None else max(least, min(most, drawn))

    return pa.array([one() for _ in range(ROWS)], pa.int64()).cast(pa.int32() if days else pa.int64()).cast(type_)


def batch_of(dice: random.Random, kind: str, frontier: int) -> pa.Table:
    def column(type_: pa.DataType, *values: Any) -> pa.Array:
        return pa.array([dice.choice(values) for _ in range(ROWS)], type_)

    return pa.table(
        {
            "at": instants(dice, TIMES[kind], frontier),
            "k": column(pa.int32(), None, 1, 2, 3),
            "must": column(pa.string(), "a", "b", "c", "", None),
            "z": column(pa.int64(), None, -1, 0, 1, 2**62),
            "flag": column(pa.bool_(), None, True, False),
            "price": column(pa.decimal128(10, 2), None, *([pa.scalar(1, pa.decimal128(10, 2)).as_py()] * 6)),
        }
    )


def plain(batch: pa.RecordBatch | pa.Table) -> list[str]:
    """Times as numbers: Python has fewer of them."""
    whole = {32: pa.int32(), 64: pa.int64()}
    columns = [c.cast(whole[c.type.bit_width]) if pa.types.is_temporal(c.type) else c for c in batch.columns]
    return sorted(map(repr, zip(*(c.to_pylist() for c in columns), strict=True)))


def sightings(seen: list[Seen] | tuple[Seen, ...]) -> list[Seen]:
    """The count of bad rows is in the first of them, whichever that is; so it is told apart."""
    told = [s._replace(bad=0) for s in seen]
    return sorted(s for s in told if s.rows or s.late)


def judged(taken: list[Taken], seen: list[Seen] | tuple[Seen, ...], elements: list[Delta]) -> dict[str, Any]:
    return {
        "elements": sorted(line for delta in elements for line in plain(delta.to_batch())),
        "late": sorted(line for t in taken for line in plain(t.late)),
        "bad": sorted(map(repr, ((t.bad.reason[i], t.bad.raw[i]) for t in taken for i in range(len(t.bad.raw))))),
        "seen": sightings(seen),
        "counted bad": sum(s.bad for s in seen),
    }


def by_the_intake(intake: Intake, table: pa.Table, frontier: int) -> dict[str, Any]:
    (batch,) = table.combine_chunks().to_batches()
    taken = intake.take(Piece(batch), frontier)
    return judged([taken], together(taken.seen), [taken.delta])


def by_spark(spark: SparkSession, intake: Intake, table: pa.Table, frontier: int, source: n.Plan) -> dict[str, Any]:
    parts = [NativePart(0, source), NativePart(1, positive(source))]
    made = native_rows(spark.createDataFrame(table), intake, frontier, parts)
    assert made is not None
    frame, shape = made
    read = [shape.read(batch) for batch in frame.toArrow().combine_chunks().to_batches()]
    apart = [intake.take(Piece(r.apart), frontier) for r in read if r.apart is not None]
    seen = together([s for r in read for s in r.seen] + [s for a in apart for s in a.seen])
    assert sum(r.rows for r in read) == sum(len(r.parts[0]) for r in read)
    return judged(apart, seen, [*(r.parts[0] for r in read), *(a.delta for a in apart)])


def positive(source: n.Plan) -> n.Plan:
    """Something that Spark computes, so that it judges the rows."""
    script = bind_script("CREATE STREAM t (at BIGINT, z BIGINT) ORDERED BY at; SELECT z FROM t WHERE z > 0")
    assert script.result is not None
    plan = next(node for node in script.result.plan.walk() if isinstance(node, n.Filter))
    return plan.with_new_inputs([source])


CASES = [
    pytest.param(seed, kind, partition, id=f"{kind}-{partition}-{seed}")
    for seed in range(2)
    for kind in TIMES
    for partition in (None, "k")
]


def drawn(seed: int, kind: str, partition: str | None) -> tuple[Intake, n.Plan, int, pa.Table]:
    dice = random.Random(f"{seed} {kind} {partition}")
    schema = schema_of(kind)
    frontier = dice.choice([BEGINNING, 0, 17, -40, 3 * DAY, BEGINNING + 2, INFINITY - 3, dice.randint(-100, 100)])
    if kind in ("SMALLINT", "INT"):  # a late row that is adjusted gets the frontier for its time
        frontier = min(frontier, 2**15 - 1)
    policy = dice.choice([LatePolicy.DIVERT, LatePolicy.DROP, LatePolicy.ADJUST])
    intake = Intake("t", schema, "at", partition=partition, bad="divert", late=policy)
    source = n.Source("t", schema, chronons=True, revisable=False)
    assert is_row_wise(source, SPARK, ["t"])
    return intake, source, frontier, batch_of(dice, kind, frontier)


@pytest.mark.parametrize(("seed", "kind", "partition"), CASES)
def test_spark_judges_rows_as_the_intake_does(spark: SparkSession, seed: int, kind: str, partition: str | None):
    intake, source, frontier, table = drawn(seed, kind, partition)
    expected = by_the_intake(intake, table, frontier)
    found = by_spark(spark, intake, table, frontier, source)
    for what, told in expected.items():
        assert found[what] == told, what
    assert expected["bad"]


@pytest.mark.parametrize("kind", TIMES)
def test_rows_in_groups_are_judged_the_same(spark: SparkSession, kind: str):
    intake, source, frontier, table = drawn(7, kind, "k")
    keys = ("must",)
    plan = n.PreAggregate(source, keys, (n.AggregateCall("COUNT", "n", pa.bool_()),))
    slices = Slices(5, "key", plan, NativePart(3, source))
    assert can_pre_aggregate(plan, slices.part)
    made = sliced_rows(spark.createDataFrame(table), intake, frontier, slices)
    assert made is not None
    frame, shape = made
    read = [shape.read(batch) for batch in frame.toArrow().combine_chunks().to_batches()]
    apart = [intake.take(Piece(r.apart), frontier) for r in read if r.apart is not None]
    expected = by_the_intake(intake, table, frontier)
    seen = together([s for r in read for s in r.seen] + [s for a in apart for s in a.seen])
    found = judged(apart, seen, [])
    for what in ("late", "bad", "seen", "counted bad"):
        assert found[what] == expected[what], what
    assert sum(r.rows for r in read) + sum(len(a.delta) for a in apart) == len(expected["elements"])


@pytest.mark.parametrize("options", [{"bad": "fail"}, {"bad": "divert", "late": LatePolicy.ERROR}], ids=str)
def test_what_stops_one_stops_the_other(spark: SparkSession, options: dict[str, Any]):
    _, source, _, table = drawn(3, "BIGINT", None)
    intake = Intake("t", schema_of("BIGINT"), "at", **options)
    codes = []
    for judge in (lambda: by_the_intake(intake, table, 17), lambda: by_spark(spark, intake, table, 17, source)):
        with pytest.raises(StreamError) as problem:
            judge()
        codes.append((problem.value.code, problem.value.message))
    assert codes[0] == codes[1]
