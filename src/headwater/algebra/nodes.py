"""Logical operators: immutable nodes, each with the snapshot meaning of Krämer chapter 8 (and 17, 20 for the extensions).

A plan is a tree (shared nodes make it a DAG). Expressions are kept as DuckDB SQL text over the input's column names,
with the result type already inferred, so that nothing here knows a parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache, cached_property

import pyarrow as pa
from attrs import evolve, field, frozen

from headwater.model.functions import UserFunction
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY


@frozen(cache_hash=True)
class Scalar:
    """A scalar expression over the columns of one input (or of the pair, in a join residual)."""

    sql: str
    """DuckDB SQL; columns appear as double-quoted names."""
    type: pa.DataType
    columns: tuple[str, ...] = ()
    """The input columns it reads."""
    functions: tuple[UserFunction, ...] = ()
    """The functions of the user's that it calls."""


@frozen(cache_hash=True)
class AggregateCall:
    """One aggregate of a grouping: ``function`` applied to a column, or to rows when there is no argument."""

    function: str
    """COUNT, SUM, AVG, MIN, MAX, VAR_SAMP, VAR_POP, STDDEV_SAMP, STDDEV_POP, MEDIAN, ARRAY_AGG, LISTAGG, or the name of a
    registered aggregate."""
    output: str
    type: pa.DataType
    argument: str | None = None
    """Input column; None only for COUNT(*)."""
    distinct: bool = False
    filter: str | None = None
    """A BOOLEAN input column: only rows where it is true take part (FILTER (WHERE …))."""
    parameters: tuple[object, ...] = ()
    """Constants, such as LISTAGG's separator."""


class Plan:
    """Base of all logical nodes: ``schema`` and ``inputs``."""

    @cached_property
    def schema(self) -> Schema:
        """The columns of the output."""
        return self._schema()

    def _schema(self) -> Schema:
        raise NotImplementedError

    @cached_property
    def inputs(self) -> tuple[Plan, ...]:
        return tuple(getattr(self, name) for name in _input_names(type(self)))

    def with_inputs(self, *inputs: Plan) -> Plan:
        return evolve(self, **dict(zip(_input_names(type(self)), inputs, strict=True)))  # type: ignore[misc]

    def with_new_inputs(self, inputs: Iterable[Plan]) -> Plan:
        """The same node if all inputs are the ones that it has."""
        listed = tuple(inputs)
        return self if all(a is b for a, b in zip(self.inputs, listed, strict=True)) else self.with_inputs(*listed)

    def walk(self) -> Iterator[Plan]:
        """This node and everything below it, inputs first, each different node once."""
        yield from self._walk(set())

    def _walk(self, seen: set[Plan]) -> Iterator[Plan]:
        if self not in seen:
            for child in self.inputs:
                yield from child._walk(seen)
            seen.add(self)
            yield self


@cache
def _input_names(kind: type[Plan]) -> tuple[str, ...]:
    return tuple(a.name for a in kind.__attrs_attrs__ if a.metadata.get("input"))  # type: ignore[attr-defined]


_INPUT = {"input": True}
_TIMESTAMP = pa.timestamp("us")


class _Unary(Plan):
    """A node that keeps the columns of its one input."""

    def _schema(self) -> Schema:
        return self.inputs[0].schema


@frozen(cache_hash=True)
class Source(Plan):
    """A registered stream.

    ``chronons``: every element is valid for one instant; ``revisable``: elements may be adjusted; ``unordered``: a change
    may come before the element that it changes; ``checked``: one that does is a mistake. ``events``: its rows are made of
    change events, each valid from its event until the next one: of the ``key``, if the table has one.
    """

    name: str
    columns: Schema
    chronons: bool = False
    revisable: bool = True
    unordered: bool = False
    checked: bool = False
    events: bool = False
    key: tuple[str, ...] = ()

    def _schema(self) -> Schema:
        return self.columns


@frozen(cache_hash=True)
class Constant(Plan):
    """A relation that never changes: its rows are valid in [0, infinity) (17.4)."""

    columns: Schema
    rows: tuple[tuple[object, ...], ...] = ()
    """Python values, one a column; without rows the empty stream."""

    def _schema(self) -> Schema:
        return self.columns


@frozen(cache_hash=True)
class Filter(_Unary):
    """σ: keep the rows where the predicate is true (8.1)."""

    input: Plan = field(metadata=_INPUT)
    predicate: Scalar


@frozen(cache_hash=True)
class Project(Plan):
    """μ: one output column an expression; validity untouched (8.2)."""

    input: Plan = field(metadata=_INPUT)
    expressions: tuple[tuple[str, Scalar], ...]

    def _schema(self) -> Schema:
        return Schema(tuple(Field(name, scalar.type) for name, scalar in self.expressions))


@frozen(cache_hash=True)
class Union(Plan):
    """∪: bag union, multiplicities add (8.3); column names from the left."""

    left: Plan = field(metadata=_INPUT)
    right: Plan = field(metadata=_INPUT)

    def _schema(self) -> Schema:
        return _of_both(self.left.schema, self.right.schema)


def _of_both(left: Schema, right: Schema) -> Schema:
    """Rows of both sides: NULL is where either has it; column names from the left."""
    if all(ours.nullable or not theirs.nullable for ours, theirs in zip(left, right, strict=True)):
        return left
    pairs = zip(left, right, strict=True)
    return Schema(tuple(Field(ours.name, ours.type, ours.nullable or theirs.nullable) for ours, theirs in pairs))


class JoinKind(StrEnum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


@frozen(cache_hash=True)
class Join(Plan):
    """⋈ (8.10), outer joins, ⋉ and ▷ with the left multiplicity kept.

    A pair matches when all key pairs are equal (NULL equals nothing) and the residual is true. The residual sees the left
    columns as ``"l.<name>"`` and the right ones as ``"r.<name>"``. Output columns: left then right, or left only for
    semi and anti; where names clash the binder renames before joining.
    """

    left: Plan = field(metadata=_INPUT)
    right: Plan = field(metadata=_INPUT)
    kind: JoinKind
    keys: tuple[tuple[str, str], ...] = ()
    residual: Scalar | None = None

    def _schema(self) -> Schema:
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self.left.schema
        left, right = self.left.schema.fields, self.right.schema.fields
        if self.kind in (JoinKind.RIGHT, JoinKind.FULL):
            left = tuple(Field(f.name, f.type) for f in left)  # a row without a partner has NULLs there
        if self.kind in (JoinKind.LEFT, JoinKind.FULL):
            right = tuple(Field(f.name, f.type) for f in right)
        return Schema(left + right)


@frozen(cache_hash=True)
class Distinct(_Unary):
    """δ: one copy of each row at each instant (8.5)."""

    input: Plan = field(metadata=_INPUT)


class SetKind(StrEnum):
    """What becomes of the multiplicities n1, n2 of a row at an instant."""

    EXCEPT_ALL = "except all"  # max(n1 - n2, 0)               (8.6)
    EXCEPT = "except"  # 1 if n1 > 0 and n2 == 0
    STRICT_DIFFERENCE = "strict difference"  # n1 if n2 == 0    (8.14)
    INTERSECT_ALL = "intersect all"  # min(n1, n2)              (8.12)
    INTERSECT = "intersect"  # 1 if both > 0
    MAX_UNION = "max union"  # max(n1, n2)                      (8.13)


@frozen(cache_hash=True)
class SetOperation(Plan):
    """Difference, intersection and max-union of two inputs of the same types."""

    left: Plan = field(metadata=_INPUT)
    right: Plan = field(metadata=_INPUT)
    kind: SetKind

    def _schema(self) -> Schema:
        if self.kind is SetKind.MAX_UNION:
            return _of_both(self.left.schema, self.right.schema)
        return self.left.schema


@frozen(cache_hash=True)
class Aggregate(Plan):
    """γ with aggregation (8.15); no keys: scalar aggregation α (8.9). An empty snapshot gives no row, also for COUNT."""

    input: Plan = field(metadata=_INPUT)
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]

    def _schema(self) -> Schema:
        keys = tuple(self.input.schema.field(k) for k in self.keys)
        return Schema(keys + tuple(Field(c.output, c.type) for c in self.calls))


@frozen(cache_hash=True)
class PreAggregate(Plan):
    """Rows on their way to an aggregation, free to be put together: others of the same keys, counts and sums (or extremes).

    Each call brings what an aggregate above it takes as its argument: COUNT a BOOLEAN that is NULL where a row does not
    count, SUM numbers of the same sum, MIN and MAX values of the same extreme. For the plan that runs only.
    """

    input: Plan = field(metadata=_INPUT)
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]

    def _schema(self) -> Schema:
        keys = tuple(self.input.schema.field(k) for k in self.keys)
        return Schema(keys + tuple(Field(c.output, c.type) for c in self.calls))


@frozen(cache_hash=True)
class Await(Plan):
    """The input as it is; only that its rows wait until time has come to them in the other input too.

    For the plan that runs only: rows wait where they take less room than what would be made of them (Srivastava & Widom 7).
    """

    input: Plan = field(metadata=_INPUT)
    other: Plan = field(metadata=_INPUT)
    by: tuple[str, ...] = ()
    """The columns by which whoever reads the rows wants them spread."""

    def _schema(self) -> Schema:
        return self.input.schema


@frozen(cache_hash=True)
class SortKey:
    """One column of an ORDER BY; Spark's defaults."""

    column: str
    descending: bool = False
    nulls_first: bool = True


@frozen(cache_hash=True)
class TopK(Plan):
    """At each instant, in each partition, the rows number offset+1 to offset+limit in the order.

    Ties go by the rows' values in the canonical order, so that there are none. With ``rank`` the row's number in its
    partition is one more column (ROW_NUMBER), an INT. limit INFINITY: all rows after the offset.
    """

    input: Plan = field(metadata=_INPUT)
    order: tuple[SortKey, ...]
    limit: int = INFINITY
    offset: int = 0
    partition: tuple[str, ...] = ()
    rank: str | None = None

    def _schema(self) -> Schema:
        if self.rank is None:
            return self.input.schema
        return Schema((*self.input.schema.fields, Field(self.rank, pa.int32(), nullable=False)))


def _with_window(plan: HopWindow | SessionWindow) -> Schema:
    """The columns of the input and the ends of the window."""
    ends = (Field(name, plan.time, nullable=False) for name in (plan.start, plan.end))
    return Schema((*plan.input.schema.fields, *ends))


@frozen(cache_hash=True)
class HopWindow(Plan):
    """TUMBLE and HOP: a row at t belongs to every window [k*slide + offset, k*slide + offset + size) that contains t.

    One copy a window, with the window's ends as columns, valid from the window's end until the next report:
    [window_end, window_end + slide), or for a shorter ``lifetime``. A row counts at each of its instants.
    """

    input: Plan = field(metadata=_INPUT)
    size: int
    slide: int
    offset: int = 0
    start: str = "window_start"
    end: str = "window_end"
    time: pa.DataType = _TIMESTAMP
    """TIMESTAMP, or BIGINT where instants have no unit."""
    lifetime: int | None = None
    """How long a copy is valid, at most the slide, so that one window is reported at a time; None: until the next report."""

    @property
    def shown(self) -> int:
        """How long a copy is valid."""
        return self.slide if self.lifetime is None else self.lifetime

    def _schema(self) -> Schema:
        return _with_window(self)


@frozen(cache_hash=True)
class SessionWindow(Plan):
    """SESSION: rows of a partition at most ``gap`` apart are one session, which ends ``gap`` after its last row.

    Each row (at each of its instants) with its session's ends as columns, valid [window_end, infinity). A row exactly
    ``gap`` after another continues its session, as in Flink.
    """

    input: Plan = field(metadata=_INPUT)
    gap: int
    partition: tuple[str, ...] = ()
    start: str = "window_start"
    end: str = "window_end"
    time: pa.DataType = _TIMESTAMP

    def _schema(self) -> Schema:
        return _with_window(self)


@frozen(cache_hash=True)
class TimeWindow(_Unary):
    """ω^time with size and slide (8.17, 17.1); size INFINITY = UNBOUNDED. Intervals count at each of their instants."""

    input: Plan = field(metadata=_INPUT)
    size: int
    slide: int = 1

    @property
    def unbounded(self) -> bool:
        return self.size == INFINITY


@frozen(cache_hash=True)
class RowWindow(_Unary):
    """ω^count, or ω^partition with keys; slide in rows (8.18, 8.19, 17.2). Ties at one instant go by the rows' values."""

    input: Plan = field(metadata=_INPUT)
    rows: int
    slide: int = 1
    partition: tuple[str, ...] = ()


@frozen(cache_hash=True)
class Granularity(_Unary):
    """Γ: both ends rounded up to k*granule + offset: what was valid at the last such instant (20.1, Alg. 24)."""

    input: Plan = field(metadata=_INPUT)
    granule: int
    offset: int = 0


@frozen(cache_hash=True)
class Sample(_Unary):
    """At the instants k*period + offset the snapshots as they are, and nothing between (the refreshes of Golab 3.3.4)."""

    input: Plan = field(metadata=_INPUT)
    period: int
    offset: int = 0


@frozen(cache_hash=True)
class Stamp(Plan):
    """At each instant its rows with the instant as one more column, a BIGINT: tells equal rows of two instants apart."""

    input: Plan = field(metadata=_INPUT)
    column: str

    def _schema(self) -> Schema:
        return Schema((*self.input.schema.fields, Field(self.column, pa.int64(), nullable=False)))


@frozen(cache_hash=True)
class Split(_Unary):
    """ς: the same snapshots in pieces of at most ``length`` instants (11.7.1). length 1 = Rstream."""

    input: Plan = field(metadata=_INPUT)
    length: int = 1


@frozen(cache_hash=True)
class Coalesce(_Unary):
    """ζ: the same snapshots in the fewest elements, none longer than ``longest`` (11.7.2)."""

    input: Plan = field(metadata=_INPUT)
    longest: int = INFINITY


@frozen(cache_hash=True)
class Istream(_Unary):
    """At t, what τ_t has and τ_{t-1} had not, as multisets (17.3 with its erratum)."""

    input: Plan = field(metadata=_INPUT)


@frozen(cache_hash=True)
class Dstream(_Unary):
    """At t, what τ_{t-1} had and τ_t has not, as multisets, stamped t (CQL)."""

    input: Plan = field(metadata=_INPUT)


@frozen(cache_hash=True)
class ToPositiveNegative(Plan):
    """Intervals as signed instants: the row with ``sign`` +1 at its start and -1 at its end (17.3)."""

    input: Plan = field(metadata=_INPUT)
    sign: str = "sign"

    def _schema(self) -> Schema:
        return Schema((*self.input.schema.fields, Field(self.sign, pa.int32(), nullable=False)))


@frozen(cache_hash=True)
class FromPositiveNegative(Plan):
    """The opposite: +1 opens an element of the row, -1 closes the oldest open one."""

    input: Plan = field(metadata=_INPUT)
    sign: str = "sign"

    def _schema(self) -> Schema:
        return Schema(tuple(f for f in self.input.schema if f.name != self.sign))
