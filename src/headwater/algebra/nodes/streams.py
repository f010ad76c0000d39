"""What comes and what goes: relations as streams of changes, and back."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import field, frozen

from headwater.algebra.nodes.base import INPUT, Bare, OtherInstants, Plan, Unary, with_fields
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.row_properties import Rows, simplest
from headwater.algebra.time_properties import RowTimes, Times
from headwater.expressions.printing import quoted
from headwater.model.schema import Field, Schema


class _Changes(OtherInstants, Unary):
    """Compares an instant with the one before; each change is there for one instant."""

    delay = 0

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return Times(1)

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        return True


class _Difference(Bare, _Changes):
    def filter_may_use(self) -> frozenset[str]:
        """A row is compared with itself an instant before."""
        return frozenset(self.schema.names)


@frozen(cache_hash=True)
class Istream(_Difference):
    """At t, what τ_t has and τ_{t-1} had not, as multisets (17.3 with its erratum)."""

    input: Plan = field(metadata=INPUT)

    words = ("istream",)
    keeper = "Istream"

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        """A row that holds its first instant is new then, and only then."""
        return RowTimes(inputs[0].columns, 1)


@frozen(cache_hash=True)
class Dstream(_Difference):
    """At t, what τ_{t-1} had and τ_t has not, as multisets, stamped t (CQL)."""

    input: Plan = field(metadata=INPUT)

    words = ("dstream",)
    keeper = "Dstream"


@frozen(cache_hash=True)
class Signed(Unary):
    """A node with a column for the sign of a change."""

    input: Plan = field(metadata=INPUT)
    sign: str = "sign"

    def line(self) -> str:
        return f"{self.words[0]} {quoted(self.sign)}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        return cls(inputs[0], cursor.name("the name of the sign in double quotes"))

    def label(self, *, timed: bool) -> str:
        return type(self).__name__


@frozen(cache_hash=True)
class ToPositiveNegative(Signed, _Changes):
    """Intervals as signed instants: the row with ``sign`` +1 at its start and -1 at its end (17.3)."""

    words = ("to positive negative",)
    keeper = "a conversion to signed rows"
    hides_pieces = False

    def _schema(self) -> Schema:
        return self._signed(self.input.schema)

    def _signed(self, schema: Schema) -> Schema:
        return with_fields(schema, Field(self.sign, pa.int32(), nullable=False))

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """What came at t and what went: parts of two snapshots, told apart by the sign."""
        (below,) = inputs
        return below.only_constants(self._signed(below.schema), [key | {self.sign} for key in below.keys])


@frozen(cache_hash=True)
class FromPositiveNegative(Signed, OtherInstants):
    """The opposite: +1 opens an element of the row, -1 closes the oldest open one."""

    words = ("from positive negative",)
    keeper = "a conversion of signed rows"
    hides_pieces = False
    delay = 0

    def _schema(self) -> Schema:
        return self._unsigned(self.input.schema)

    def _unsigned(self, schema: Schema) -> Schema:
        return Schema(tuple(f for f in schema if f.name != self.sign))

    def names(self) -> tuple[frozenset[str], ...]:
        return (frozenset((self.sign,)),)

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """All that came and did not go: rows of several instants."""
        (below,) = inputs
        schema = self._unsigned(below.schema)
        return simplest(schema, constants=below.constants_among(schema.names))

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return Times()

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        return False
