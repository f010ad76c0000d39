"""The notation for streams."""

from __future__ import annotations

import pytest

from headwater.errors import InputError
from headwater.model.element import Adjust, Insert, Stable
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.testing.timeline import render_timeline, timeline


def test_every_form_is_read():
    assert timeline("a 1-8, b 3-, c @4, a 1-8>5, b 3->, b 3->3, ~6, ~") == [
        Insert(("a",), 1, 8),
        Insert(("b",), 3, INFINITY),
        Insert(("c",), 4, 5),
        Adjust(("a",), 1, 8, 5),
        Adjust(("b",), 3, INFINITY, INFINITY),
        Adjust(("b",), 3, INFINITY, 3),
        Stable(6),
        Stable(INFINITY),
    ]
    assert timeline("a*2 1-8") == [Insert(("a",), 1, 8)] * 2


def test_values_have_the_types_of_the_columns():
    schema = Schema.of(i="BIGINT", d="DOUBLE", s="STRING", b="BOOLEAN")
    assert timeline("1/2.5/x/true 1-2, null/null/null/null 1-2", schema) == [
        Insert((1, 2.5, "x", True), 1, 2),
        Insert((None,) * 4, 1, 2),
    ]


@pytest.mark.parametrize("text", ["a", "a 1", "a 1-2-3", "1-2", "a/b 1-2"])
def test_what_cannot_be_read_is_named(text: str):
    with pytest.raises(InputError, match="TIMELINE_SYNTAX"):
        timeline(text)


def test_rendering_is_the_opposite_of_reading():
    text = "a 1-8, b 3-, a 1-8>5, b 3->7, ~6, ~"
    assert render_timeline(timeline(text)) == text
