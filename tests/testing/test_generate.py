"""Random streams and plans are valid, varied and repeatable."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings

from headwater.algebra.nodes import Aggregate, AggregateCall, Distinct, Filter, Source
from headwater.model.element import Adjust, Insert, Stable
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.model.validity import StreamValidator
from headwater.testing import strategies
from headwater.testing.choices import Dice
from headwater.testing.expression_text import bind_text
from headwater.testing.generate import Case, StreamShape, reorder, shift, stream, streams, whole, with_ghosts
from headwater.testing.oracle import expected_history
from headwater.testing.plans import plan
from headwater.testing.shape import extent, grows_for_ever, sources
from headwater.testing.shrink import describe, shrink
from headwater.testing.timeline import LETTERS, timeline

SCHEMA = Schema.of(k="BIGINT", v="DOUBLE")
SOURCES = [Source("s", SCHEMA), Source("s", SCHEMA, chronons=True), Source("s", SCHEMA, revisable=False)]


def assert_valid(elements) -> None:
    validator = StreamValidator(SCHEMA)
    for element in elements:
        validator.check_element(element)


@pytest.mark.parametrize("source", SOURCES, ids=["intervals", "chronons", "insert only"])
def test_streams_are_valid_in_every_disguise_and_mean_the_same(source: Source):
    for seed in range(150):
        dice = Dice(seed)
        given_ = stream(dice, source)
        meant = History.of(SCHEMA, [whole(SCHEMA, given_)])
        others = [reorder(dice, given_), with_ghosts(dice, source, given_, StreamShape()), given_]
        for other in others:
            assert_valid(other)
            assert History.of(SCHEMA, [whole(SCHEMA, other)]) == meant
        assert History.of(SCHEMA, [whole(SCHEMA, shift(given_, 7))]) == meant.shift(7)


def test_streams_have_everything_that_makes_streams_hard():
    seen: Counter = Counter()
    for seed in range(300):
        frontier, inserts = -1, []
        for element in stream(Dice(seed), SOURCES[0], StreamShape(special=True)):
            match element:
                case Stable(at):
                    seen["stable point that does not move"] += at == frontier
                    seen["stable point"] += 1
                    frontier = at
                case Adjust():
                    seen["removal"] += element.new_end == element.start
                    seen["shortening"] += element.start < element.new_end < element.end
                    seen["lengthening"] += element.new_end > element.end
                    seen["adjust behind the stable point"] += element.start < frontier
                case Insert():
                    seen["duplicate"] += element in inserts
                    seen["equal start"] += any(element.start == e.start for e in inserts)
                    seen["disorder"] += any(element.start < e.start for e in inserts)
                    seen["infinite end"] += element.end == INFINITY
                    seen["NULL"] += None in element.row
                    seen["NaN"] += element.row[1] != element.row[1]
                    inserts.append(element)
    assert {name: n for name, n in seen.items() if n < 20} == {}


def test_insert_only_and_chronon_sources_keep_to_it():
    for seed in range(100):
        assert not any(isinstance(e, Adjust) for e in stream(Dice(seed), SOURCES[2]))
        assert all(e.end == e.start + 1 for e in stream(Dice(seed), SOURCES[1]) if isinstance(e, Insert))


def test_a_seed_gives_the_same_case_again():
    made = [plan(Dice(5), depth=4) for _ in range(2)]
    assert made[0] == made[1]
    assert streams(Dice(6), made[0]) == streams(Dice(6), made[1])
    assert streams(Dice(7), made[0]) != streams(Dice(6), made[1])


def test_plans_are_deep_varied_and_have_answers():
    kinds: Counter = Counter()
    for seed in range(150):
        tried = plan(Dice(seed), depth=3)
        kinds.update({type(node).__name__ for node in tried.walk()})
        assert not grows_for_ever(tried, ())
        assert extent(tried) < 80
        assert len(set(tried.schema.names)) == len(tried.schema)
    missing = {"Filter", "Project", "Union", "Join", "Distinct", "SetOperation", "Aggregate", "TimeWindow"} - set(kinds)
    missing |= {"Sample", "Stamp", "RowWindow", "Granularity", "Split", "Coalesce", "Istream", "Dstream"} - set(kinds)
    assert missing == set()


@settings(max_examples=25, deadline=None)
@given(strategies.cases(depth=3))
def test_hypothesis_draws_the_same_shapes(case: Case):
    inputs = {}
    for source in sources(case.plan):
        validator = StreamValidator(source.schema)
        for element in case.streams[source.name]:
            validator.check_element(element)
        inputs[source.name] = whole(source.schema, case.streams[source.name])
    assert expected_history(case.plan, inputs).schema == case.plan.schema


@given(strategies.schemas().flatmap(strategies.rows))
def test_rows_fit_their_schema(row):
    assert 1 <= len(row) <= 3


def test_shrinking_finds_the_element_and_the_operator_that_matter():
    source = Source("s", LETTERS)
    kept = Filter(source, bind_text('"x" IS NOT NULL', source.schema))
    counted = Aggregate(Distinct(Distinct(kept)), ("x",), (AggregateCall("COUNT", "n", pa.int64()),))
    elements = timeline("a 1-3, b 2-5, b 2-5>4, c 3-, ~2, b 2-4>9, d 4-5")
    case = Case(counted, {"s": elements}, 1)

    def fails(candidate: Case) -> bool:
        has_distinct = any(isinstance(node, Distinct) for node in candidate.plan.walk())
        return has_distinct and any(isinstance(e, Adjust) for e in candidate.streams["s"])

    smallest = shrink(case, fails)
    assert describe(smallest).splitlines() == [
        "seed 1",
        "Distinct()",
        "  Source(name='s', columns=(x STRING), chronons=False, revisable=True, unordered=False, checked=False, "
        "events=False, key=())",
        "s(x STRING): b 2-5, b 2-5>4",
    ]
