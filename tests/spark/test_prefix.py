"""What Spark computes of a plan is what the operators compute, for any elements."""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headwater.algebra.nodes import Plan, Source
from headwater.algebra.plan_text import parse_plan, print_plan
from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.schema import RESERVED, Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.runtime.lower import lower
from headwater.runtime.planning import planned
from headwater.runtime.spark.prefix import cut, frontier_above, is_native, native, with_elements, without_time_zones
from headwater.settings import Settings
from headwater.testing.choices import Dice
from headwater.testing.generate import streams, whole
from headwater.testing.oracle import expected_history
from headwater.testing.plans import plan as random_plan
from headwater.testing.shape import sources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHRONONS = "source s (k BIGINT, v INT, note STRING, t TIMESTAMP) chronons"
INTERVALS = "source s (k BIGINT, v INT, note STRING, t TIMESTAMP)"
SCHEMA = Schema.of(k="BIGINT", v="INT", note="STRING", t="TIMESTAMP")

PLANS = {
    "filter and project": f"""
project "k", "w" INT = "v" + 1, "note"
  filter "v" > 0 AND "note" LIKE 'a%'
    {CHRONONS}""",
    "range": f"""
window range 60
  filter "v" > 0
    {CHRONONS}""",
    "range slide": f"""
window range 60 slide 7
  {CHRONONS}""",
    "range shorter than slide": f"""
window range 3 slide 7
  {CHRONONS}""",
    "unbounded slide": f"""
window range unbounded slide 10
  {CHRONONS}""",
    "granularity": f"""
granularity 10
  {INTERVALS}""",
    "hop": f"""
hop size 20 slide 6 offset 5 as "window_start", "window_end" BIGINT
  project "k", "into" = "v"
    {CHRONONS}""",
    "tumble": f"""
hop size 10 slide 10 as "window_start", "window_end" BIGINT
  {CHRONONS}""",
    "hop for an instant": f"""
hop size 20 slide 6 offset 5 lifetime 1 as "window_start", "window_end" BIGINT
  {CHRONONS}""",
    "hop with gaps": f"""
hop size 4 slide 10 offset 3 as "window_start", "window_end" BIGINT
  {CHRONONS}""",
    "union": f"""
union
  project "k", "v"
    window range 5
      {CHRONONS}
  project "l" BIGINT = "k" + 1, "w" = "v"
    filter "v" < 2
      {CHRONONS}""",
    "nested windows": f"""
project "k"
  granularity 4
    window range 9 slide 2
      {CHRONONS}""",
}


def plan_of(text: str) -> Plan:
    return parse_plan(text.strip())


def elements(seed: int, *, chronons: bool, count: int = 400) -> Delta:
    """Retractions among them, and instants before 1970 and near both ends of time."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        near = rng.choice([0, 0, 0, BEGINNING, INFINITY - 40])
        start = near + rng.randrange(0, 38) if near else rng.randrange(-50, 200)
        end = start + 1 if chronons else min(start + rng.randrange(1, 30), INFINITY)
        note = rng.choice(["a", "ab", "b", None])
        moment = datetime(2020, 1, 1, 0, 0, rng.randrange(3))
        rows.append(((rng.randrange(4), rng.randrange(-1, 3), note, moment), start, end, rng.choice([1, 1, 2, -1])))
    return Delta.from_rows(SCHEMA, rows)


def computed(plan: Plan, delta: Delta) -> Delta:
    """By the operators, as a sender runs them."""
    graph = lower({"q": plan}, speculative=True)
    made: dict[int, Delta] = {}
    for node in graph.nodes:
        inputs = tuple(made[i] for i in node.inputs)
        made[node.id] = (
            delta if node.operator is None else node.operator.step(None, inputs, (BEGINNING,) * len(inputs)).delta
        )
    return made[graph.queries["q"]]


def frame_of(spark: SparkSession, delta: Delta) -> DataFrame:
    frame = spark.createDataFrame(pa.Table.from_batches([delta.to_batch()]))
    columns = [f"CAST({c} AS TIMESTAMP) AS {c}" if c == "t" else c for c in delta.schema.names]
    return frame.selectExpr(*columns, *RESERVED)


def fetched(frame: DataFrame, schema: Schema) -> Delta:
    batch = without_time_zones(frame, schema).toArrow().combine_chunks().to_batches()[0]
    return Delta.from_batch(batch)


def counted(delta: Delta) -> dict[object, int]:
    """The weights of all (row, interval), zeros left out."""
    result: dict[object, int] = {}
    for row, start, end, weight in delta.rows():
        key = (row, start, end)
        result[key] = result.get(key, 0) + weight
    return {key: weight for key, weight in result.items() if weight}


@pytest.mark.parametrize("name", PLANS)
def test_spark_computes_what_the_operators_do(spark: SparkSession, name: str):
    plan = plan_of(PLANS[name])
    delta = elements(len(name), chronons="chronons" in PLANS[name])
    frame = native(plan, frame_of(spark, delta))
    assert frame is not None
    got = fetched(frame, plan.schema)
    assert got.schema.names == plan.schema.names
    assert [f.type for f in got.schema] == [f.type for f in plan.schema]
    assert counted(got) == counted(computed(plan, delta))
    assert counted(got), "there is something to compare"


def test_no_python_runs_in_a_native_plan(spark: SparkSession):
    plan = plan_of(PLANS["nested windows"])
    frame = native(plan, frame_of(spark, elements(1, chronons=True, count=3)))
    assert frame is not None
    told = frame._jdf.queryExecution().toString()
    assert "Python" not in told
    assert "Arrow" not in told


def test_nothing_is_native_in_a_session_that_means_other_things(spark: SparkSession):
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/Chicago")
    assert native(plan_of(PLANS["range"]), frame_of(other, elements(1, chronons=True, count=3))) is None


@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_rows_become_elements_of_one_instant(spark: SparkSession, type_: str):
    frame = spark.sql(f"SELECT id AS k, CAST(timestamp_micros(id - 2) AS {type_}) AS t FROM range(3)")
    made = with_elements(frame, "t", Schema.of(k="BIGINT", t="TIMESTAMP"))
    assert made.columns == ["k", "t", *RESERVED]
    assert [tuple(row)[2:] for row in made.collect()] == [(-2, -1, 1), (-1, 0, 1), (0, 1, 1)]


def test_integers_are_instants_and_the_last_of_all_is_none(spark: SparkSession):
    frame = spark.sql(f"SELECT * FROM VALUES (7L), (NULL), ({INFINITY}L), (CAST('{BEGINNING}' AS BIGINT)) AS s(t)")
    made = with_elements(frame, "t", Schema.of(t="BIGINT")).collect()
    starts = [(row["_start"], row["_end"]) for row in made]
    assert starts == [(7, 8), (None, None), (None, None), (BEGINNING, BEGINNING + 1)]


# -- cutting ----------------------------------------------------------------------------------------------------------

STREAM = "CREATE STREAM bid (auction BIGINT, price DOUBLE, note STRING, ts TIMESTAMP) ORDERED BY ts;"


def plan_for(query: str) -> Plan:
    result = bind_script(STREAM + query).result
    assert result is not None
    return planned(result.plan, Settings()).plan


def test_a_stateless_query_is_native_as_a_whole():
    plan = plan_for("SELECT auction, price * 0.9 AS p FROM bid WHERE note LIKE 'a%'")
    assert is_native(plan)
    parts, rest = cut(plan)
    assert isinstance(rest, Source)
    assert parts == {rest.name: plan}
    assert rest.chronons


def test_a_stateful_query_is_cut_below_its_first_operator_with_state():
    plan = plan_for(
        "SELECT auction, COUNT(*) AS n FROM bid [RANGE 1 MINUTE SLIDE 10 SECONDS] WHERE price > 3 GROUP BY auction"
    )
    assert not is_native(plan)
    parts, rest = cut(plan)
    ((name, part),) = parts.items()
    assert part.schema.names == ("auction",), "only what the aggregate reads goes on"
    assert print_plan(rest).splitlines()[-1].strip() == f'source "{name}" (auction BIGINT) final'


def test_columns_that_nobody_reads_do_not_cross_into_python():
    plan = plan_of(f"""
aggregate by "k": SUM("v") AS "total" BIGINT
  {CHRONONS}""")
    ((_, part),) = cut(plan).native.items()
    assert part.schema.names == ("k", "v")


def test_rows_that_are_only_counted_bring_their_narrowest_column():
    plan = plan_of(f"""
aggregate: COUNT(*) AS "n" BIGINT
  {CHRONONS}""")
    ((_, part),) = cut(plan).native.items()
    assert part.schema.names == ("v",)


def test_whole_rows_are_compared_by_all_columns():
    plan = plan_of(f"""
distinct
  {CHRONONS}""")
    assert cut(plan) == ({}, plan)


def test_what_spark_cannot_say_stays_above_the_cut():
    plan = plan_for("SELECT auction FROM bid WHERE price > 3 AND upper(note) = 'A'")
    assert not is_native(plan)
    assert len(cut(plan).native) <= 1
    assert "UPPER" in print_plan(cut(plan).rest)


def test_equal_parts_of_different_queries_have_one_name():
    first = cut(plan_for("SELECT DISTINCT auction FROM bid [RANGE 1 MINUTE] WHERE price > 3"))
    second = cut(plan_for("SELECT auction, COUNT(*) AS n FROM bid [RANGE 1 MINUTE] WHERE price > 3 GROUP BY auction"))
    assert first.native.keys() == second.native.keys()


def test_both_sides_of_a_join_have_parts_of_their_own():
    plan = plan_for(
        "SELECT a.auction FROM bid [RANGE 9 MINUTES] a JOIN bid [RANGE 5 MINUTES] b ON a.auction = b.auction"
    )
    assert len(cut(plan).native) == 2


@pytest.mark.parametrize(
    "text",
    [
        "window range 5\n  source s (k BIGINT)",  # intervals: a split stands before the window
        'project "k", "K" = "k"\n  source s (k BIGINT) chronons',  # Spark's names do not differ by case
        'hop size 1000000 slide 1 as "window_start", "window_end" BIGINT\n  source s (k BIGINT) chronons',
        "union\n  source s (k BIGINT) chronons\n  source r (k BIGINT) chronons",
    ],
)
def test_what_is_not_native(text: str):
    assert not is_native(plan_of(text))


def test_time_is_final_as_far_as_the_operators_say():
    slides = plan_of(PLANS["range slide"])
    assert [frontier_above(slides, f) for f in (BEGINNING, 0, 6, 7, INFINITY)] == [BEGINNING, 6, 6, 13, INFINITY]
    assert frontier_above(plan_of(PLANS["tumble"]), 5) == 10
    assert frontier_above(plan_of(PLANS["hop for an instant"]), 5) == 7
    assert frontier_above(plan_of(PLANS["union"]), 5) == 5
    assert frontier_above(plan_of(PLANS["nested windows"]), 6) == 8


# -- a cut plan means the same ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_the_rest_over_the_native_parts_answers_the_same(seed: int):
    """Random plans: the parts by the operators, the rest by the oracle."""
    dice = Dice(seed)
    plan = random_plan(dice)
    inputs = {
        s.name: whole(s.schema, part) for s, part in zip(sources(plan), streams(dice, plan).values(), strict=True)
    }
    parts, rest = cut(plan)
    outputs = dict(inputs)
    for name, part in parts.items():
        (source,) = sources(part)
        outputs[name] = computed(part, inputs[source.name])
    assert rest.schema.names == plan.schema.names
    assert expected_history(rest, {s.name: outputs[s.name] for s in sources(rest)}) == expected_history(plan, inputs)


def test_random_plans_have_native_parts():
    assert sum(bool(cut(random_plan(Dice(seed))).native) for seed in range(40)) > 20
