"""Hypothesis strategies for schemas, rows, streams and plans: the shapes of ``generate`` and ``plans``, shrinkable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from headwater.algebra.nodes import Plan, Source
from headwater.model.element import Element, Row
from headwater.model.schema import Schema
from headwater.testing import generate
from headwater.testing import plans as random_plans
from headwater.testing.generate import Case, StreamShape

T = TypeVar("T")


class _Drawn:
    """Choices that Hypothesis makes, and can make smaller."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def chance(self, percent: int) -> bool:
        return self._draw(st.integers(0, 99)) >= 100 - percent  # shrinks towards "no"

    def pick(self, options: Sequence[T]) -> T:
        return options[self._draw(st.integers(0, len(options) - 1))]


@st.composite
def schemas(draw: st.DrawFn, *, columns: int = 3) -> Schema:
    """One to three columns of the common types."""
    return random_plans.schema(_Drawn(draw), columns=columns)


@st.composite
def rows(draw: st.DrawFn, schema: Schema, *, special: bool = False) -> Row:
    """A row of few distinct values, so that ties and duplicates happen; ``special``: with NaN and infinities."""
    return generate.row(_Drawn(draw), schema, special=special)


@st.composite
def streams(draw: st.DrawFn, schema: Schema, *, shape: StreamShape | None = None, **source: Any) -> list[Element]:
    """A valid physical stream: inserts, adjusts and stable points. ``chronons``, ``revisable`` as in ``Source``."""
    return generate.stream(_Drawn(draw), Source("s", schema, **source), shape or StreamShape())


@st.composite
def ticks(draw: st.DrawFn, stream: Sequence[Element], *, most: int = 6) -> list[Sequence[Element]]:
    """The stream cut into ticks, some of them empty."""
    choices = _Drawn(draw)
    return generate.cut(choices, stream, choices.integer(1, most))


@st.composite
def arrivals(draw: st.DrawFn, stream: Sequence[Element]) -> list[Element]:
    """The same stream in another order of arrival that its stable points allow."""
    return generate.reorder(_Drawn(draw), stream)


@st.composite
def plans(draw: st.DrawFn, *, depth: int = 3) -> Plan:
    """A valid typed plan of at least so many operators over one to three sources."""
    return random_plans.plan(_Drawn(draw), depth=depth)


@st.composite
def cases(draw: st.DrawFn, *, depth: int = 3, shape: StreamShape | None = None) -> Case:
    """A random plan, and a stream for each of its sources."""
    choices = _Drawn(draw)
    plan = random_plans.plan(choices, depth=depth)
    made = generate.streams(choices, plan, shape or StreamShape())
    return Case(plan, made, draw(st.integers(0, 2**32 - 1)))
