"""Rows that wait."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from headwater.algebra.nodes.base import INPUT, Plan, Relational
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.plan_line import after
from headwater.algebra.row_properties import Rows
from headwater.algebra.time_properties import RowTimes, Times
from headwater.model.schema import Schema


@frozen(cache_hash=True)
class Await(Relational):
    """The input as it is; only that its rows wait until time has come to them in the other input too.

    For the plan that runs only: rows wait where they take less room than what would be made of them (Srivastava & Widom 7).
    """

    input: Plan = field(metadata=INPUT)
    other: Plan = field(metadata=INPUT)
    by: tuple[str, ...] = ()
    """The columns by which whoever reads the rows wants them spread."""

    words = ("await",)
    arity = 2
    keeper = "a wait"
    hides_pieces = False

    @property
    def awaited(self) -> str:
        """The streams that it waits for."""
        return ", ".join(self.other.streams)

    def line(self) -> str:
        return f"await{after('by', self.by)}"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        below, other = inputs
        return cls(below, other, cursor.columns_after(below.schema, "by"))

    def label(self, *, timed: bool) -> str:
        return f"Wait for {self.awaited}"

    def _schema(self) -> Schema:
        return self.input.schema

    def names(self) -> tuple[frozenset[str], ...]:
        return frozenset(self.by), frozenset()

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        return wanted.union(self.by), frozenset(self.other.schema.names)

    def grouped_by(self, port: int) -> tuple[str, ...]:
        return self.by if port == 0 else ()

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        return inputs[0]

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return inputs[0]

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return inputs[0]

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        return inputs[0]

    def is_empty(self, empty: Sequence[bool]) -> bool:
        return empty[0]

    def filter_may_use(self) -> frozenset[str]:
        """The other input has other columns; and it is put in when filters are in their places."""
        return frozenset()
