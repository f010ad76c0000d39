"""What a valid stream is, and what each mistake is called."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given

from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.element import Adjust, Insert, Stable
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.testing import strategies
from headwater.testing.timeline import LETTERS, changes, timeline


def follow(text: str) -> StreamValidator:
    validator = StreamValidator(LETTERS)
    for element in timeline(text):
        validator.check_element(element)
    return validator


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a 1-8, a 1-8>5, a 1-5>, a 1->7",
        "a 1-8, a 1-8, a 1-8>1, a 1-8>1",  # duplicates: each adjust takes one copy
        "a 1-8, ~3, a 1-8>3, ~3, a 1-3>9",  # an end at the stable point may still be lengthened
        "~5, a 5-6, ~5, a 5-6>5",  # what starts at the stable point may still go
        "a 1-, ~, ~",
        "null 1-3, null 1-3>2",
    ],
)
def test_valid_streams_pass(text: str):
    follow(text)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("a 1-8>5", "MISSING_ELEMENT", r"there is no element \('a',\) \[1, 8\) to adjust"),
        ("a 1-8, a 1-8>5, a 1-8>6", "MISSING_ELEMENT", "to adjust"),
        ("a 1-8, b 1-8>5", "MISSING_ELEMENT", "to adjust"),
        ("a 1-8, a 1-8>1, a 1-8>1", "MISSING_ELEMENT", "to adjust"),
        ("~5, a 4-9", "BEHIND_STABLE", "that starts at 4 cannot be inserted"),
        ("a 1-4, ~5, a 1-4>9", "BEHIND_STABLE", "cannot be adjusted"),
        ("a 1-8, ~5, a 1-8>4", "BEHIND_STABLE", "cannot end at 4"),
        ("a 1-8, ~5, a 1-8>1", "BEHIND_STABLE", "cannot end at 1"),
        ("~5, ~4", "STABLE_BACKWARDS", "cannot go back from 5 to 4"),
        ("~, a 1-2", "BEHIND_STABLE", "nothing before infinity changes"),
    ],
)
def test_mistakes_have_names(text: str, code: str, message: str):
    with pytest.raises(StreamError, match=message) as caught:
        follow(text)
    assert caught.value.code == code


@pytest.mark.parametrize("element", [Insert(("a",), 3, 8), Adjust(("a",), 3, 8, 5)])
def test_empty_intervals_are_refused_even_if_the_element_could_be_made(element):
    object.__setattr__(element, "end", 3)
    with pytest.raises(StreamError, match="EMPTY_INTERVAL"):
        StreamValidator(LETTERS).check_element(element)
    with pytest.raises(StreamError, match="EMPTY_INTERVAL"):
        evolve(element)


def test_an_end_before_the_start_is_refused():
    element = Adjust(("a",), 3, 8, 5)
    object.__setattr__(element, "new_end", 2)
    with pytest.raises(StreamError, match="cannot end at 2"):
        StreamValidator(LETTERS).check_element(element)


def test_frozen_elements_are_forgotten():
    validator = StreamValidator(LETTERS)
    for i in range(10_000):
        validator.check_element(Insert((str(i),), i, i + 2))
        validator.check_element(Stable(i))
    assert len(validator._live) < 3000


def test_nested_values_and_nan_can_be_adjusted():
    validator = StreamValidator(Schema.of(x="DOUBLE"))
    validator.check_element(Insert((float("nan"), [1, {"a": None}]), 1, 8))
    validator.check_element(Adjust((float("nan"), [1, {"a": None}]), 1, 8, 5))


# -- deltas ---------------------------------------------------------------------------------------------------------


def ticks(*parts: tuple[list, int]) -> None:
    validator = StreamValidator(LETTERS)
    for rows, frontier in parts:
        validator.check_delta(Delta.from_rows(LETTERS, [((r,), s, e, w) for r, s, e, w in rows]), frontier)


def test_legal_deltas_pass():
    ticks(([("a", 1, 8, 2), ("b", 3, 9, 1)], 5), ([("a", 1, 8, -1), ("a", 1, 5, 1)], 6), ([("a", 6, 7, 1)], INFINITY))
    ticks(([("a", 1, 8, 1), ("a", 1, 8, -1)], 3), ([("a", 1, 2, 1), ("a", 1, 2, -1)], 3))  # what cancels is not there


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([([("a", 1, 8, 1)], 5), ([("a", 1, 8, -1)], 5)], "BEHIND_STABLE"),  # a removal behind the frontier
        ([([("a", 1, 8, 1)], 5), ([("a", 1, 8, -1), ("a", 1, 4, 1)], 5)], "BEHIND_STABLE"),  # the new end too
        ([([("a", 1, 8, 1)], 5), ([("a", 1, 8, -1), ("a", 2, 9, 1)], 5)], "BEHIND_STABLE"),  # another start
        ([([], 5), ([("a", 4, 9, 1)], 5)], "BEHIND_STABLE"),
        ([([("a", 1, 8, -1)], 0)], "MISSING_ELEMENT"),
        ([([("a", 1, 8, 1)], 0), ([("a", 1, 8, -2)], 0)], "MISSING_ELEMENT"),
        ([([], 5), ([], 4)], "STABLE_BACKWARDS"),
        ([([("a", 3, 3, 1)], 0)], "EMPTY_INTERVAL"),
    ],
)
def test_illegal_deltas_are_named(parts, code: str):
    with pytest.raises(StreamError) as caught:
        ticks(*parts)
    assert caught.value.code == code


@given(strategies.streams(LETTERS).flatmap(strategies.ticks))
def test_every_cut_of_a_valid_stream_is_legal(parts):
    validator, frontier = StreamValidator(LETTERS), BEGINNING
    for part in parts:
        frontier = max([frontier, *(e.at for e in part if isinstance(e, Stable))])
        validator.check_delta(changes(part), frontier)


def test_deltas_and_elements_are_two_forms_of_one_thing():
    schema = Schema.of(x="STRING")
    elements = [Insert(("a",), 1, 8), Insert(("a",), 1, 8), Adjust(("b",), 2, 9, 5), Adjust(("c",), 3, 4, 3)]
    back = Delta.from_elements(schema, elements).to_elements()
    assert sorted(map(repr, back)) == sorted(map(repr, elements))
