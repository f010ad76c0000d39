"""Random valid physical streams: disorder, retractions, lengthenings, duplicates, equal starts, infinite ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen

from headwater.algebra.nodes import Plan, Source
from headwater.model.delta import Delta
from headwater.model.element import Adjust, Element, Insert, Row, Stable
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.testing.choices import Choices
from headwater.testing.shape import grows_for_ever, sources

Streams = Mapping[str, Sequence[Element]]
"""Every source stream's elements, in order of arrival."""


@frozen
class StreamShape:
    """What a random stream may look like; the sizes are small so that ties and duplicates happen."""

    elements: int = 14
    span: int = 12
    """Starts lie in [0, span]."""
    longest: int = 6
    infinite: bool = True
    special: bool = False
    """NaN, infinities and -0.0 among the doubles."""


@frozen
class Case:
    """A plan, its input streams, and the seed of everything else that a check varies."""

    plan: Plan
    streams: Streams
    seed: int


DECIMAL = pa.decimal128(10, 2)
NUMBERS = pa.list_(pa.int64())
PAIR = pa.struct({"a": pa.int64(), "b": pa.string()})

_PALETTES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [False, True],
    pa.int32(): [0, 1, 2, -3],
    pa.int64(): [0, 1, 2, -3],
    pa.float64(): [0.5, 1.0, -2.0, 1.5],
    pa.string(): ["a", "b", "c", ""],
    pa.date32(): [date(2026, 1, 1), date(2026, 1, 2)],
    pa.timestamp("us"): [datetime(2026, 1, 1), datetime(2026, 1, 1, 12, 30)],
    DECIMAL: [Decimal("1.25"), Decimal("-0.50"), Decimal("3.00")],
    pa.int16(): [0, 1, 2, -3],
    pa.float32(): [0.5, 1.0, -2.0],
    pa.binary(): [b"a", b"", b"\xff"],
    NUMBERS: [[1, 2], [], [None, 0], [1]],
    PAIR: [{"a": 1, "b": "x"}, {"a": None, "b": "x"}, {"a": 1, "b": None}],
}
_SPECIAL = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0]

NULL_PERCENT = 12


def value(choices: Choices, type_: pa.DataType, *, nullable: bool = True, special: bool = False) -> Any:
    """One of the few values of a type."""
    if nullable and choices.chance(NULL_PERCENT):
        return None
    if special and type_ == pa.float64() and choices.chance(30):
        return choices.pick(_SPECIAL)
    return choices.pick(_PALETTES[type_])


def row(choices: Choices, schema: Schema, *, special: bool = False) -> Row:
    return tuple(value(choices, f.type, nullable=f.nullable, special=special) for f in schema)


def stream(choices: Choices, source: Source, shape: StreamShape = StreamShape()) -> list[Element]:
    """A valid stream of the source; ``stable(infinity)`` is left for the runner to send."""
    maker = _Maker(choices, source, shape)
    stable_percent = choices.pick([15, 0, 40])
    adjust_percent = choices.pick([30, 0, 50]) if source.revisable else 0
    for _ in range(choices.integer(min(choices.pick([0, 5, 5]), shape.elements), shape.elements)):
        if choices.chance(stable_percent):
            maker.stable()
        elif not (choices.chance(adjust_percent) and maker.adjust()):
            maker.insert()
    return maker.elements


class _Maker:
    """One stream in the making: the elements so far, which of them may still change, and the stable point."""

    def __init__(self, choices: Choices, source: Source, shape: StreamShape) -> None:
        self.choices, self.source, self.shape = choices, source, shape
        self.elements: list[Element] = []
        self.live: list[Insert] = []
        self.frontier = BEGINNING

    def stable(self) -> None:
        at = max(self.frontier, 0) + self.choices.integer(0, 4)
        begun = [e.start for e in self.live if self.frontier <= e.start < self.shape.span]
        if begun and self.choices.chance(40):
            at = self.choices.pick(begun) + self.choices.integer(0, 1)  # the earliest ones are then half frozen
        self.frontier = at
        self.elements.append(Stable(at))

    def insert(self) -> None:
        choices, shape = self.choices, self.shape
        first = max(self.frontier, 0)
        if self.live and choices.chance(25):
            start = max(choices.pick(self.live).start, first)  # equal starts
        else:
            start = choices.integer(first, max(shape.span, first + 2))
        if self.source.chronons:
            end = start + 1
        elif shape.infinite and choices.chance(12):
            end = INFINITY
        else:
            end = start + choices.integer(1, shape.longest)
        if self.live and choices.chance(30):
            payload = choices.pick(self.live).row  # duplicates, and elements of one row that overlap or meet
        else:
            payload = row(choices, self.source.schema, special=shape.special)
        element = Insert(payload, start, end)
        again = [e for e in self.live if e.start >= first]
        if again and choices.chance(8):
            element = choices.pick(again)
        self.live.append(element)
        self.elements.append(element)

    def adjust(self) -> bool:
        """Change the end of a live element: shorten, lengthen or remove it; False when there is none to change."""
        open_ = [i for i, e in enumerate(self.live) if self._new_ends(e)]
        if not open_:
            return False
        half_frozen = [i for i in open_ if self.live[i].start < self.frontier]
        if half_frozen and self.choices.chance(50):
            open_ = half_frozen
        at = self.choices.pick(open_)
        old = self.live.pop(at)
        new_end = self.choices.pick(self._new_ends(old))
        self.elements.append(Adjust(old.row, old.start, old.end, new_end))
        if new_end > old.start:
            self.live.append(evolve(old, end=new_end))
        return True

    def _new_ends(self, element: Insert) -> list[int]:
        """Every end that the element may legally get, a removal first."""
        if element.end < self.frontier:
            return []
        removal = [element.start] if element.start >= self.frontier else []
        if self.source.chronons:
            return removal
        first = max(self.frontier, element.start + 1)
        ends = [t for t in range(first, max(element.start + self.shape.longest, first) + 1) if t != element.end]
        forever = [INFINITY] if self.shape.infinite and element.end != INFINITY else []
        return removal + ends + forever


def streams(choices: Choices, plan: Plan, shape: StreamShape = StreamShape()) -> dict[str, list[Element]]:
    """A stream for every source of the plan; ends at infinity only where no window would grow for ever."""
    lasting: set[str] = set()
    made = {}
    for source in sources(plan):
        may_last = shape.infinite and not source.chronons and not grows_for_ever(plan, lasting | {source.name})
        if may_last:
            lasting.add(source.name)
        made[source.name] = stream(choices, source, evolve(shape, infinite=may_last))
    return made


# -- the same streams in other clothes ------------------------------------------------------------------------------


def whole(schema: Schema, elements: Iterable[Element]) -> Delta:
    """The stream as one delta."""
    return Delta.from_elements(schema, [e for e in elements if not isinstance(e, Stable)])


def cut(choices: Choices, stream_: Sequence[Element], ticks: int) -> list[Sequence[Element]]:
    """The stream in so many pieces, some of them empty."""
    places = sorted(choices.integer(0, len(stream_)) for _ in range(ticks - 1))
    return [stream_[a:b] for a, b in zip([0, *places], [*places, len(stream_)], strict=True)]


def reorder(choices: Choices, stream_: Sequence[Element]) -> list[Element]:
    """Another order of arrival: stable points are respected, and each element's adjusts follow it in order."""
    waiting = list(stream_)
    arrived: list[Element] = []
    while waiting:
        free = [i for i in range(len(waiting)) if not any(_holds(e, waiting[i]) for e in waiting[:i])]
        arrived.append(waiting.pop(choices.pick(free)))
    return arrived


def _holds(earlier: Element, later: Element) -> bool:
    """Must the one arrive before the other?"""
    if isinstance(later, Stable):
        return isinstance(earlier, Stable) or sync(earlier) < later.at
    return not isinstance(earlier, Stable) and (earlier.row, earlier.start) == (later.row, later.start)


def sync(element: Insert | Adjust) -> int:
    """The earliest instant that the element changes: it cannot come after a larger stable point (CEDR 2.1)."""
    return element.start if isinstance(element, Insert) else min(element.end, element.new_end)


def with_ghosts(choices: Choices, source: Source, stream_: Sequence[Element], shape: StreamShape) -> list[Element]:
    """The stream with more elements that are all removed again: it means the same."""
    haunted = list(stream_)
    for _ in range(choices.integer(1, 3)):
        at = choices.integer(0, len(haunted))
        frontier = max((e.at for e in haunted[:at] if isinstance(e, Stable)), default=BEGINNING)
        start = max(frontier, 0) + choices.integer(0, 4)
        end = start + 1 if source.chronons else start + choices.integer(1, shape.longest)
        ghost = Insert(row(choices, source.schema, special=shape.special), start, end)
        too_late = (i for i, e in enumerate(haunted) if i >= at and isinstance(e, Stable) and e.at > start)
        last = choices.integer(at, next(too_late, len(haunted)))
        haunted[last:last] = [Adjust(ghost.row, start, end, start)]
        haunted[at:at] = [ghost]
    return haunted


def shift(stream_: Iterable[Element], amount: int) -> list[Element]:
    """Everything so many instants later."""

    def later(t: int) -> int:
        return t if t in (INFINITY, BEGINNING) else t + amount

    moved: list[Element] = []
    for e in stream_:
        if isinstance(e, Stable):
            moved.append(Stable(later(e.at)))
        elif isinstance(e, Insert):
            moved.append(Insert(e.row, later(e.start), later(e.end)))
        else:
            moved.append(Adjust(e.row, later(e.start), later(e.end), later(e.new_end)))
    return moved
