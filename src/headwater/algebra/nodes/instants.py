"""The same rows at other instants, in other pieces, or with their instant beside them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import field, frozen

from headwater.algebra.nodes.base import INPUT, OtherInstants, Plan, Relational, Unary, with_fields
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.plan_line import offset_text
from headwater.algebra.row_properties import Rows, simplest
from headwater.algebra.time_properties import NO_ROW_TIMES, RowTimes, Times, rounded, swept
from headwater.expressions.printing import quoted
from headwater.model.durations import length
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY


@frozen(cache_hash=True)
class Granularity(OtherInstants, Unary):
    """Γ: both ends rounded up to k*granule + offset: what was valid at the last such instant (20.1, Alg. 24)."""

    input: Plan = field(metadata=INPUT)
    granule: int
    offset: int = 0

    words = ("granularity",)
    keeper = None
    hides_pieces = False

    def line(self) -> str:
        return f"granularity {self.granule}{offset_text(self.offset)}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        return cls(inputs[0], cursor.integer("a number of instants"), cursor.number_after("offset", 0))

    def label(self, *, timed: bool) -> str:
        return f"Granularity {length(self.granule, timed=timed)}{_late(self.granule, self.offset, timed=timed)}"

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (wanted,)

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        """One instant goes up to one multiple of the granule."""
        (below,) = inputs
        lifetime = rounded(below.lifetime, self.granule)
        return Times(lifetime, below.end_ordered, below.ends, below.accumulates, below.starts_by)

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        return False

    @property
    def reducible(self) -> bool:
        return self.granule == 1

    @property
    def delay(self) -> int:
        return self.granule - 1

    @property
    def span(self) -> int:
        return self.granule

    def is_stateless(self, inputs: Sequence[Times]) -> bool:
        return True

    def filter_may_use(self) -> frozenset[str]:
        """At each instant it shows what was valid at the last granule, whole."""
        return frozenset(self.schema.names)


class _Refreshed(Relational, Unary):
    """A function of the snapshot and its instant, whose rows last for one."""

    hides_pieces = False

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return swept(inputs, 1)

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        return True

    def filter_may_use(self) -> frozenset[str]:
        return frozenset(self.inputs[0].schema.names)


@frozen(cache_hash=True)
class Sample(_Refreshed):
    """At the instants k*period + offset the snapshots as they are, and nothing between (the refreshes of Golab 3.3.4)."""

    input: Plan = field(metadata=INPUT)
    period: int
    offset: int = 0

    words = ("sample",)
    keeper = "an answer that is refreshed"

    def line(self) -> str:
        return f"sample {self.period}{offset_text(self.offset)}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        return cls(inputs[0], cursor.integer("a number of instants"), cursor.number_after("offset", 0))

    def label(self, *, timed: bool) -> str:
        return f"Refresh every {length(self.period, timed=timed)}{_late(self.period, self.offset, timed=timed)}"

    @property
    def delay(self) -> int:
        return self.period - 1


@frozen(cache_hash=True)
class Stamp(_Refreshed):
    """At each instant its rows with the instant as one more column, a BIGINT: tells equal rows of two instants apart."""

    input: Plan = field(metadata=INPUT)
    column: str

    words = ("stamp",)
    keeper = "an INTERNAL window"

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (wanted - {self.column},)

    def line(self) -> str:
        return f"stamp {quoted(self.column)}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        return cls(inputs[0], cursor.name("the name of the instant in double quotes"))

    def label(self, *, timed: bool) -> str:
        return f"Stamp {self.column} (the instant of arrival)"

    def _schema(self) -> Schema:
        return self._stamped(self.input.schema)

    def _stamped(self, schema: Schema) -> Schema:
        return with_fields(schema, Field(self.column, pa.int64(), nullable=False))

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """All rows of a snapshot have its instant."""
        (below,) = inputs
        return simplest(self._stamped(below.schema), below.keys, below.uniform | {self.column}, below.constants)

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        (below,) = inputs
        return RowTimes(below.columns | {self.column}, 1) if below.lifetime == 1 else NO_ROW_TIMES

    def is_stateless(self, inputs: Sequence[Times]) -> bool:
        return inputs[0].lifetime == 1


class _Pieces(Relational, Unary):
    """The same snapshots (12.2, 12.3) in other pieces."""

    def filter_may_use(self) -> frozenset[str]:
        """It commutes with every snapshot-reducible operator (lemma 12.1)."""
        return frozenset(self.schema.names)


@frozen(cache_hash=True)
class Split(_Pieces):
    """ς: the same snapshots in pieces of at most ``length`` instants (11.7.1). length 1 = Rstream."""

    input: Plan = field(metadata=INPUT)
    length: int = 1

    words = ("split",)
    keeper = "RSTREAM"

    def line(self) -> str:
        return f"split {self.length}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        return cls(inputs[0], cursor.integer("a number of instants"))

    def label(self, *, timed: bool) -> str:
        return f"Split into {length(self.length, timed=timed)}" if self.length > 1 else "Split into instants (Rstream)"

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return swept(inputs, self._lifetime(inputs[0]))

    def _lifetime(self, below: Times) -> int | None:
        """Pieces (Alg. 15); what never ends leaves an uncut tail at the end of time."""
        if self.length == 1 and below.ends:
            return 1
        if below.lifetime is None or below.lifetime == INFINITY:
            return None
        if below.lifetime <= self.length:
            return below.lifetime
        return self.length if below.lifetime % self.length == 0 else None


@frozen(cache_hash=True)
class Coalesce(_Pieces):
    """ζ: the same snapshots in the fewest elements, none longer than ``longest`` (11.7.2)."""

    input: Plan = field(metadata=INPUT)
    longest: int = INFINITY

    words = ("coalesce",)
    keeper = "a coalesce"

    def line(self) -> str:
        return "coalesce" if self.longest == INFINITY else f"coalesce {self.longest}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        return cls(inputs[0], INFINITY if cursor.at == cursor.end else cursor.integer("a number of instants"))

    def label(self, *, timed: bool) -> str:
        return "Coalesce" if self.longest == INFINITY else f"Coalesce up to {length(self.longest, timed=timed)}"

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return inputs[0]


def _late(step: int, offset: int, *, timed: bool) -> str:
    """A refresh is at the last instant of a slide, just before the next one begins."""
    late = offset % step
    if late and late == step - 1:
        return " (at the last instant)"
    return f" ({length(late, timed=timed)} later)" if late else ""
