"""What every logical node is, and what it says of itself.

A node answers everything that can be asked of it without a cost model and without operators: its text and how that is
read, its caption, its columns, what is known of its rows and intervals, what it keeps, which columns it reads, which
filters may pass it. ``optimizer/estimation/nodes.py`` has its estimate, ``runtime/builders`` its operators. ``Plan`` only
asks; answers stand in the class of the node or of its family (``tests/algebra/test_nodes.py`` walks all of them).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar

from attrs import evolve

from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.row_properties import Rows
from headwater.algebra.time_properties import NO_ROW_TIMES, RowTimes, Times, swept
from headwater.expressions.nodes import Expression
from headwater.expressions.rewrite import column
from headwater.model.schema import Field, Schema

INPUT: dict[Any, Any] = {"input": True}
"""Marks the fields of a node that are its inputs."""


class Plan:
    """Base of all logical nodes."""

    words: ClassVar[tuple[str, ...]]
    """What its line in plan text begins with; one of these."""
    arity: ClassVar[int | None]
    """How many inputs it has; None: two or more."""
    hides_pieces: ClassVar[bool]
    """Is it all the same to it, and to whoever reads it, in which pieces its input comes?"""

    # -- the tree ---------------------------------------------------------------------------------------------------

    @cached_property
    def inputs(self) -> tuple[Plan, ...]:
        return tuple(getattr(self, name) for name in _input_names(type(self)))

    def with_inputs(self, *inputs: Plan) -> Plan:
        return evolve(self, **dict(zip(_input_names(type(self)), inputs, strict=True)))  # type: ignore[misc]

    def with_new_inputs(self, inputs: Iterable[Plan]) -> Plan:
        """The same node if all inputs are the ones that it has."""
        listed = tuple(inputs)
        same = len(listed) == len(self.inputs) and all(a is b for a, b in zip(self.inputs, listed, strict=True))
        return self if same else self.with_inputs(*listed)

    def walk(self) -> Iterator[Plan]:
        """This node and everything below it, inputs first, each different node once."""
        yield from self._walk(set())

    def _walk(self, seen: set[Plan]) -> Iterator[Plan]:
        if self not in seen:
            for child in self.inputs:
                yield from child._walk(seen)
            seen.add(self)
            yield self

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The names of its sources, each once, in order."""
        return tuple(dict.fromkeys(name for child in self.inputs for name in child.streams))

    # -- text -------------------------------------------------------------------------------------------------------

    def line(self) -> str:
        """Its line in plan text."""
        raise NotImplementedError

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        """The node whose line goes on here, after these words."""
        raise NotImplementedError

    def label(self, *, timed: bool) -> str:
        """What it does, as a person would say it; ``timed``: are instants microseconds?"""
        raise NotImplementedError

    # -- columns ----------------------------------------------------------------------------------------------------

    @cached_property
    def schema(self) -> Schema:
        """The columns of the output."""
        return self._schema()

    def _schema(self) -> Schema:
        raise NotImplementedError

    @property
    def scalars(self) -> tuple[Expression, ...]:
        """The expressions that it computes."""
        return ()

    def names(self) -> tuple[frozenset[str], ...]:
        """The columns of each input that it goes by itself: of its expressions, its groups, its order."""
        raise NotImplementedError

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        """The columns that it needs of each input, if only some of its own are wanted."""
        raise NotImplementedError

    def grouped_by(self, port: int) -> tuple[str, ...]:
        """The columns by which it takes the rows of an input apart; none: it does not, or by all of them."""
        raise NotImplementedError

    def problem(self) -> str | None:
        """What is wrong with it, besides columns that are not there; None if nothing is."""
        return None

    # -- what is known of its output --------------------------------------------------------------------------------

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """What is known of the rows of its snapshots, from what is known below."""
        raise NotImplementedError

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        """What is known of the intervals of its elements; ``Times.settled`` says what follows from that."""
        raise NotImplementedError

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        """Which of its columns hold the time of their row."""
        raise NotImplementedError

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        """Are its rows valid only at instants of the sources' rows, if those have one each, and which inputs are so?"""
        raise NotImplementedError

    @property
    def reducible(self) -> bool:
        """Is its snapshot at t the relational operation over the snapshots of its inputs at t (Def. 10.5)?"""
        raise NotImplementedError

    @property
    def delay(self) -> int:
        """How long after the last row of its input something of it may still begin."""
        raise NotImplementedError

    @property
    def span(self) -> int:
        """How many instants it makes rows last that had fewer; 0: none."""
        return 0

    def is_empty(self, empty: Sequence[bool]) -> bool:
        """Is it without rows at all times, if these inputs are?"""
        raise NotImplementedError

    # -- what it keeps ----------------------------------------------------------------------------------------------

    @property
    def keeper(self) -> str | None:
        """What it is called where it keeps elements; None: it keeps none."""
        raise NotImplementedError

    def is_stateless(self, inputs: Sequence[Times]) -> bool:
        """Does each row go through it alone and at once, with nothing remembered?"""
        raise NotImplementedError

    def begins_once(self, inputs: Sequence[Times]) -> bool:
        """Do all rows of a group begin at one instant, and never end? Then nothing need be remembered of it afterwards."""
        return False

    # -- filters ----------------------------------------------------------------------------------------------------

    def filter_may_use(self) -> frozenset[str]:
        """The columns of its output by which rows may as well be filtered before it, in all of its inputs."""
        raise NotImplementedError

    filter_must_not_fail: ClassVar[bool] = False
    """Would a filter before it meet rows that it drops itself?"""

    def below(self, name: str, port: int) -> Expression:
        """A column that a filter may use, over the columns of an input."""
        return column(self.inputs[port].schema.field(name))


@cache
def _input_names(kind: type[Plan]) -> tuple[str, ...]:
    return tuple(a.name for a in kind.__attrs_attrs__ if a.metadata.get("input"))  # type: ignore[attr-defined]


# -- families ---------------------------------------------------------------------------------------------------------


class Leaf(Plan):
    """A node without inputs."""

    arity = 0
    keeper = None
    hides_pieces = False
    reducible = True
    delay = 0

    def names(self) -> tuple[frozenset[str], ...]:
        return ()

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        return ()

    def grouped_by(self, port: int) -> tuple[str, ...]:
        return ()

    def is_empty(self, empty: Sequence[bool]) -> bool:
        return False

    def is_stateless(self, inputs: Sequence[Times]) -> bool:
        return False

    def filter_may_use(self) -> frozenset[str]:
        return frozenset()


class Relational(Plan):
    """An operator of relations, applied to every snapshot."""

    reducible = True
    hides_pieces = True

    @property
    def delay(self) -> int:
        return 0

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return NO_ROW_TIMES

    def at_instants(self, inputs: Sequence[bool]) -> bool:
        """Aggregates and their like over rows of instants show something at these instants only."""
        return all(inputs)

    def is_stateless(self, inputs: Sequence[Times]) -> bool:
        return False

    def time_properties(self, inputs: Sequence[Times]) -> Times:
        return swept(inputs)


class Unary(Plan):
    """A node of one input, whose columns it keeps, of which it needs all unless it says otherwise."""

    arity = 1

    @property
    def _below(self) -> Plan:
        return self.inputs[0]

    def _schema(self) -> Schema:
        return self._below.schema

    def names(self) -> tuple[frozenset[str], ...]:
        return (frozenset(self.grouped_by(0)),)

    def reads(self, wanted: frozenset[str]) -> tuple[frozenset[str], ...]:
        """Whole rows are compared, or ties go by all of their values."""
        return (frozenset(self._below.schema.names),)

    def grouped_by(self, port: int) -> tuple[str, ...]:
        return ()

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        """Each snapshot is a snapshot of the input or a part of one."""
        return inputs[0]

    def is_empty(self, empty: Sequence[bool]) -> bool:
        return any(empty)

    def filter_may_use(self) -> frozenset[str]:
        """Of groups: whole groups go or stay. Any other filter would change what is in them."""
        return frozenset(self.grouped_by(0))


class OtherInstants(Plan):
    """A node that looks at more than the snapshot of the instant: a window, or a comparison with the instant before."""

    hides_pieces = True

    @property
    def reducible(self) -> bool:
        return False

    def row_times(self, inputs: Sequence[RowTimes]) -> RowTimes:
        return NO_ROW_TIMES

    def is_stateless(self, inputs: Sequence[Times]) -> bool:
        return False


class Bare(Plan):
    """A node of which its words say everything."""

    def line(self) -> str:
        return self.words[0]

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        return cls(*inputs)  # type: ignore[call-arg]

    def label(self, *, timed: bool) -> str:
        return type(self).__name__


def of_all(schemas: Sequence[Schema]) -> Schema:
    """Rows of all inputs: NULL is where any has it; column names from the first."""
    first = schemas[0]
    columns = list(zip(*schemas, strict=True))
    if all(ours.nullable or not any(f.nullable for f in others) for ours, *others in columns):
        return first
    return Schema(
        tuple(Field(ours.name, ours.type, any(f.nullable for f in (ours, *others))) for ours, *others in columns)
    )


def unlike_types(inputs: Sequence[Plan]) -> str | None:
    """What is wrong where inputs should have the same types; None if they do."""
    types = [[f.type for f in side.schema] for side in inputs]
    return (
        None
        if all(other == types[0] for other in types[1:])
        else f"the sides have types {' and '.join(map(str, types))}"
    )


def positional(plan: Plan, name: str, port: int) -> Expression:
    """The column of an input that stands in the same place."""
    return column(plan.inputs[port].schema.fields[plan.schema.names.index(name)])


def check_same_types(cursor: Cursor, inputs: Sequence[Plan]) -> None:
    first = inputs[0].schema
    for other in inputs[1:]:
        if first.types != other.schema.types:
            raise cursor.mistake(f"expected two inputs of the same types, found {first} and {other.schema}")


def with_fields(schema: Schema, *fields: Field) -> Schema:
    return Schema((*schema.fields, *fields))
