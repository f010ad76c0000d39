"""Random simple plans over Poisson streams, run for real: what came out and what was kept, beside the estimates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Coalesce,
    Constant,
    Distinct,
    Dstream,
    Filter,
    FrameCall,
    Frames,
    Granularity,
    HopWindow,
    Istream,
    Join,
    JoinKind,
    Plan,
    Project,
    RowWindow,
    SessionWindow,
    SetKind,
    SetOperation,
    SortKey,
    Source,
    Split,
    TimeWindow,
    TopK,
    ToPositiveNegative,
    Union,
)
from headwater.expressions.nodes import Column, Expression
from headwater.model.delta import Delta
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY
from headwater.operators.waiting.align import AlignOperator
from headwater.optimizer.cost import ColumnStatistics, Estimates, Statistics, StreamStatistics, estimate
from headwater.runtime.stepping import by_hand
from headwater.testing.expression_text import bind_text

TICKS = 60
WARM = 20
"""Ticks until windows are full."""

COLUMNS = ("k", "c", "v")


def source(name: str) -> Source:
    """Columns k (a key), c (few values) and v (all different)."""
    fields = tuple(Field(f"{name}{c}", pa.int64(), nullable=c == "c") for c in COLUMNS)
    return Source(name, Schema(fields), chronons=True, revisable=False)


@frozen
class Poisson:
    """One stream: elements come at random, ``distance`` instants apart on average; columns are uniform."""

    distance: float
    keys: int
    few: int
    nulls: float

    def columns(self, name: str) -> dict[str, ColumnStatistics]:
        return {
            f"{name}k": ColumnStatistics(self.keys, 0.0),
            f"{name}c": ColumnStatistics(self.few, self.nulls),
            f"{name}v": ColumnStatistics(1e9, 0.0),
        }

    def deltas(self, rng: np.random.Generator, schema: Schema, span: int) -> list[Delta]:
        """Cut into ticks of equal length."""
        count = rng.poisson(span / self.distance)
        start = np.sort(rng.integers(0, span, count))
        few = pa.array(rng.integers(0, self.few, count), mask=rng.random(count) < self.nulls)
        columns = [pa.array(rng.integers(0, self.keys, count)), few, pa.array(rng.integers(0, 10**9, count))]
        whole = Delta(schema, columns, start, start + 1, np.ones(count, np.int64))
        tick = start * TICKS // span
        return [whole.take(np.flatnonzero(tick == i)) for i in range(TICKS)]


@frozen
class Measured:
    """Averages after the windows have filled."""

    estimates: Estimates
    rate: float
    alive: float
    kept: float | None
    """Rows of state; None where an align at the root, which no node stands for, holds rows too."""
    rows: int
    """How many elements began: few say little."""
    span: int
    """In so many instants."""


def measure(plan: Plan, streams: dict[str, Poisson], span: int, seed: int) -> Measured:
    rng = np.random.default_rng(seed)
    known = Statistics({n: StreamStatistics(rate=1 / s.distance, columns=s.columns(n)) for n, s in streams.items()})
    runner = by_hand({"q": plan})
    schemas = {p.name: p.schema for p in plan.walk() if isinstance(p, Source)}
    ticks = {n: streams[n].deltas(rng, schema, span) for n, schema in schemas.items()}
    out, kept = [], []
    for i in range(TICKS):
        frontier = (i + 1) * span // TICKS
        step = runner.tick({n: t[i] for n, t in ticks.items()}, dict.fromkeys(ticks, frontier))["q"]
        out.append(step.delta)
        if i >= WARM:
            kept.append(runner.buffered().rows)
    out.append(runner.tick({}, dict.fromkeys(ticks, INFINITY))["q"].delta)
    start, end = (np.concatenate([getattr(delta, name) for delta in out]) for name in ("start", "end"))
    begin = span * WARM // TICKS
    rows = np.count_nonzero((start >= begin) & (start < span))
    valid = np.clip(end, begin, span) - np.clip(start, begin, span)
    aligned = any(isinstance(node.operator, AlignOperator) for node in runner.layout.graph.nodes)
    state = None if aligned else float(np.mean(kept))
    measured = span - begin
    return Measured(estimate(plan, known), rows / measured, float(valid.sum()) / measured, state, int(rows), measured)


# -- plans ------------------------------------------------------------------------------------------------------------


def column(name: str) -> Expression:
    return Column(name, pa.int64())


def only(plan: Plan, **columns: str) -> Project:
    """Some columns under new names."""
    return Project(plan, tuple((new, column(old)) for new, old in columns.items()))


def condition(text: str, *columns: str) -> Expression:
    return bind_text(text, Schema.of(**dict.fromkeys(columns, "BIGINT")))


COUNT = AggregateCall("COUNT", "n", pa.int64())

EQUAL = (("ak", "bk"),)
LAST = AggregateCall("MAX", "m", pa.int64(), "av")
RELATION = Constant(Schema.of(bk="BIGINT", name="STRING"), tuple((i, f"name {i}") for i in range(20)))


@frozen
class Setting:
    """What plans are made of: two windowed streams, and chance."""

    streams: dict[str, Poisson]
    windows: tuple[TimeWindow, TimeWindow]
    rng: np.random.Generator

    @property
    def a(self) -> TimeWindow:
        return self.windows[0]

    @property
    def b(self) -> TimeWindow:
        return self.windows[1]

    def some(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def join(self, kind: JoinKind = JoinKind.INNER) -> Join:
        return Join(self.a, self.b, kind, EQUAL)

    def hop(self) -> HopWindow:
        return HopWindow(self.a.input, self.a.size, self.a.size // self.some(1, 5), time=pa.int64())

    def session(self) -> SessionWindow:
        """Of a few rows each."""
        stream = self.streams["a"]
        gap = int(self.rng.uniform(0.2, 2) * stream.distance * stream.keys)
        return SessionWindow(self.a.input, gap, ("ak",), time=pa.int64())


SHAPES: dict[str, Callable[[Setting], Plan]] = {
    "filter": lambda s: Filter(s.a, condition('"ac" = 1', "ac")),
    "filters": lambda s: Filter(s.a, condition('"ac" = 1 OR "ac" IS NULL OR NOT "ac" IN (1, 2)', "ac")),
    "union": lambda s: Union((s.a, s.b)),
    **{kind.value: lambda s, kind=kind: s.join(kind) for kind in JoinKind},
    "join and filter": lambda s: Filter(s.join(), condition('"bc" = 1', "bc")),
    "residual": lambda s: Join(s.a, s.b, JoinKind.INNER, EQUAL, condition('"l.ac" = "r.bc"', "l.ac", "r.bc")),
    "relation": lambda s: Join(s.a, RELATION, JoinKind.INNER, EQUAL),
    "distinct": lambda s: Distinct(only(s.a, k="ak")),
    "distinct pairs": lambda s: Distinct(only(Filter(s.a, condition('"ac" IN (0, 1)', "ac")), k="ak", c="ac")),
    **{kind.value: lambda s, kind=kind: SetOperation(only(s.a, k="ak"), only(s.b, k="bk"), kind) for kind in SetKind},
    "count": lambda s: Aggregate(s.a, (), (COUNT,)),
    "count per key": lambda s: Aggregate(s.a, ("ak",), (COUNT,)),
    "maximum per key": lambda s: Aggregate(s.a, ("ak",), (COUNT, LAST)),
    "coarse count": lambda s: Aggregate(Granularity(s.a, max(2, s.a.size // 20)), ("ak",), (COUNT,)),
    "count of filtered": lambda s: Aggregate(Filter(s.a, condition('"ac" = 1', "ac")), ("ak",), (COUNT,)),
    "count of join": lambda s: Aggregate(s.join(), ("ac",), (COUNT,)),
    "count of join a key": lambda s: Aggregate(s.join(), ("ak",), (COUNT,)),
    "hop": lambda s: s.hop(),
    "hop count": lambda s: Aggregate(s.hop(), ("ak", "window_end"), (COUNT,)),
    "session": lambda s: s.session(),
    "frames": lambda s: Frames(s.a.input, (FrameCall("COUNT", "n", pa.int64(), first=s.some(1, 20)),), ("ak",)),
    "top": lambda s: TopK(s.a, (SortKey("av"),), limit=s.some(1, 10)),
    "top per key": lambda s: TopK(s.a, (SortKey("av"),), limit=s.some(1, 4), partition=("ak",)),
    "ranked": lambda s: TopK(s.a, (SortKey("av"),), limit=5, partition=("ac",), rank="rank"),
    "rows": lambda s: RowWindow(s.a.input, s.some(1, 20)),
    "rows per key": lambda s: RowWindow(s.a.input, s.some(1, 4), 1, ("ak",)),
    "split": lambda s: Split(s.a, max(1, s.a.size // 4)),
    "coalesce": lambda s: Coalesce(s.a),
    "istream": lambda s: Istream(s.join()),
    "dstream": lambda s: Dstream(s.a),
    "signed": lambda s: ToPositiveNegative(s.a),
}


def random_case(shape: str, seed: int) -> tuple[Plan, dict[str, Poisson], int]:
    """The plan, its streams, and how long they run."""
    rng = np.random.default_rng(seed)
    keys = int(rng.choice([8, 40, 200]))
    distance = int(rng.choice([3, 10, 40]))
    span = 4000 * distance
    other = keys * int(rng.choice([1, 2]))
    streams = {
        "a": Poisson(distance, keys, int(rng.integers(2, 8)), float(rng.choice([0.0, 0.2]))),
        "b": Poisson(distance * float(rng.choice([0.5, 1, 3])), other, int(rng.integers(2, 8)), 0.1),
    }
    first, second = (TimeWindow(source(n), int(span * rng.uniform(0.06, 0.16))) for n in streams)
    return SHAPES[shape](Setting(streams, (first, second), rng)), streams, span
