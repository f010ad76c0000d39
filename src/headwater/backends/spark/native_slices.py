"""Partial aggregates computed by Spark: rows of one key and one slice put together before they enter Python.

For a stream that Spark reads and one query's aggregate reads alone. One grouping holds all that there is to know of a batch:
groups of rows that are taken, with what the aggregate needs and how old they are; those that a filter leaves out, for
the clock only; and what is late or malformed, whole. Rows of one slice get the same interval, whichever instant of the
slice they are at: so Python computes the windows, of one instant per group.

Worth it where many rows become one, for it adds a grouping, and an exchange of rows between tasks. Whether they do is
measured on the senders' own partial aggregates (``native_meter``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from headwater.algebra import nodes as n
from headwater.backends.spark.native_parts import CARRIED, SPARK, NativePart, timed, window
from headwater.backends.spark.native_rows import APART, KEPT, SEEN, BatchText, Found, as_type, bigint, selected
from headwater.backends.spark.session import suits
from headwater.clock.seen import Seen
from headwater.expressions.rewrite import plain_column
from headwater.expressions.spark_values import quoted
from headwater.model.arrays import int64_values
from headwater.model.delta import Delta
from headwater.model.schema import Field, Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.operators.aggregates.pre_aggregate import ReductionMeter
from headwater.operators.base import Operator
from headwater.runtime.graph import Graph
from headwater.sources.intake import Intake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SUMMED = (pa.int8(), pa.int16(), pa.int32())
"""No sum of these overflows; where one could, the rows must be left as they are, which only the sender can decide."""
_ORDERED = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us"))
_NAMES = ("rows", "newest", "oldest", "partition")
_ROWS, _NEWEST, _OLDEST, _PARTITION = (quoted(CARRIED + name) for name in _NAMES)


class Slices(NamedTuple):
    """A partial aggregate, the only one that reads a part of a stream: its node, and what is between them."""

    node: int
    key: str
    plan: n.PreAggregate
    part: NativePart
    hop: n.HopWindow | None = None


def native_meter() -> ReductionMeter:
    """Decides whether Spark should put rows together: four to one, or it does not pay. Off until it is known."""
    return ReductionMeter(on=4.0, off=3.0, active=False)


# -- where ------------------------------------------------------------------------------------------------------------


def slices_of(graph: Graph, part: NativePart, plans: Iterable[n.Plan]) -> Slices | None:
    """The partial aggregate through which all queries read the part, if there is one and Spark can compute it."""
    for plan in (node for whole in plans for node in whole.walk() if isinstance(node, n.PreAggregate)):
        between = _between(plan, part.plan)
        if between is not None:
            hop = next((node for node in between if isinstance(node, n.HopWindow)), None)
            node = _only_reader(graph, part.node, len(between) + 1)
            fits = node is not None and can_pre_aggregate(plan, part, hop)
            return Slices(node, graph.nodes[node].key, plan, part, hop) if node is not None and fits else None
    return None


def _between(plan: n.PreAggregate, part: n.Plan) -> list[n.Plan] | None:
    """What is between a part and what puts its rows together: a hop window, and columns that are left out."""
    found: list[n.Plan] = []
    while (below := found[-1].inputs[0] if found else plan.input) != part:
        leaves_out = isinstance(below, n.Project) and all(plain_column(scalar) == c for c, scalar in below.expressions)
        hops = isinstance(below, n.HopWindow) and not any(isinstance(node, n.HopWindow) for node in found)
        if not leaves_out and not hops:
            return None
        found.append(below)
    return found


def _only_reader(graph: Graph, node: int, steps: int) -> int | None:
    """Who reads the node after so many steps, if each of them has one reader."""
    for _ in range(steps):
        readers = [other.id for other in graph.nodes if node in other.inputs]
        if len(readers) != 1 or node in graph.queries.values():
            return None
        (node,) = readers
    return node


def can_pre_aggregate(plan: n.PreAggregate, part: NativePart, hop: n.HopWindow | None = None) -> bool:
    """Can Spark compute the parts of all calls, from what the part has? Columns of a hop window come later."""
    types = {f.name: f.type for f in part.plan.schema}
    added = {hop.start, hop.end} if hop is not None else set()
    return all(key in added or not pa.types.is_nested(types[key]) for key in plan.keys) and all(
        _is_native(call, types) for call in plan.calls
    )


def _is_native(call: n.AggregateCall, types: dict[str, pa.DataType]) -> bool:
    if (call.filter is not None and call.filter not in types) or not {call.argument} <= {None, *types}:
        return False
    if call.function == "COUNT":
        return True
    return types.get(call.argument or "") in (_SUMMED if call.function == "SUM" else _ORDERED)


# -- the grouping -----------------------------------------------------------------------------------------------------


def sliced_rows(
    frame: DataFrame, intake: Intake, frontier: int, slices: Slices
) -> tuple[DataFrame, SlicesShape] | None:
    """The batch in groups; None if the session is not one in which Spark means what we mean."""
    maps = any(
        pa.types.is_map(type_) for type_ in intake.schema.types
    )  # late rows are carried whole, as part of the key
    if maps or not SPARK.carries(intake.schema) or not suits(frame.sparkSession):
        return None
    plan, part = slices.plan, slices.part
    text = BatchText(intake, frontier)
    text.set_apart()
    text.apply(part.steps)
    keys = [key for key in plan.keys if key in part.plan.schema.names]
    groups = {APART: APART, KEPT: KEPT}
    if intake.partition is not None:
        groups[_PARTITION] = f"CASE WHEN {SEEN} IS NOT NULL THEN {text.base[intake.schema.index(intake.partition)]} END"
    groups |= {_column(f"key {i}"): _if_kept(quoted(key)) for i, key in enumerate(keys)}
    groups |= {_column(f"valid {i}"): _if_kept(_taken(call)) for i, call in enumerate(plan.calls)}
    groups |= {_column(f"slice {i}"): _if_kept(id_) for i, id_ in enumerate(_slice_ids(slices))}
    values = {_column(f"value {i}"): value for i, c in enumerate(plan.calls) if (value := _value(c)) is not None}
    text.select([SEEN, *(f"{expression} AS {name}" for name, expression in (groups | values).items())])
    totals = [f"count(*) AS {_ROWS}", f"max({SEEN}) AS {_NEWEST}", f"min({SEEN}) AS {_OLDEST}"]
    for i, call in enumerate(plan.calls):
        name = _column(f"value {i}")
        totals += [f"{call.function}({name}) AS {name}"] if name in values else []
    text.sql = f"(SELECT {', '.join([*groups, *totals])} FROM {text.sql} GROUP BY {', '.join(groups)})"
    return selected(frame, text), SlicesShape.of(slices, keys, partitioned=intake.partition is not None)


def _column(name: str) -> str:
    return quoted(CARRIED + name)


def _if_kept(text: str) -> str:
    return f"CASE WHEN {KEPT} THEN {text} END"


def _taken(call: n.AggregateCall) -> str:
    """Does a row take part in the call?"""
    tests = [f"{quoted(call.argument)} IS NOT NULL"] if call.argument is not None else []
    tests += [f"coalesce({quoted(call.filter)}, FALSE)"] if call.filter is not None else []
    return f"({' AND '.join(tests) or 'TRUE'})"


def _value(call: n.AggregateCall) -> str | None:
    if call.function == "COUNT":
        return None
    argument = quoted(call.argument or "")
    value = f"CAST({argument} AS BIGINT)" if call.function == "SUM" else argument
    return f"CASE WHEN {KEPT} AND {_taken(call)} THEN {value} END"


def _slice_ids(slices: Slices) -> list[str]:
    """Equal for instants of which the first window makes the same interval; what comes after it sees intervals only."""
    match next(iter(timed(slices.part.plan)), slices.hop):
        case n.TimeWindow(size=size, slide=slide):
            rest = 0 if size == INFINITY else size % slide
            return [_slice(slide, 0), *([f"{_into(slide, 0)} >= {bigint(slide - rest)}"] if rest else [])]
        case n.HopWindow(size=size, slide=slide, offset=offset):
            rest = size % slide
            return [_slice(slide, offset), *([f"{_into(slide, offset)} < {bigint(rest)}"] if rest else [])]
        case n.Granularity(granule=granule, offset=offset):
            return [_slice(granule, offset), f"{_into(granule, offset)} = 0L"]
    return [SEEN]


def _into(step: int, offset: int) -> str:
    """How far an instant is into its slice."""
    return f"pmod(pmod({SEEN}, {bigint(step)}) - {bigint(offset % step)}, {bigint(step)})"


def _slice(step: int, offset: int) -> str:
    """Where the slice begins; at the beginning of time, where that cannot be said, the instant."""
    room = bigint(min(BEGINNING + 2 * step, INFINITY))
    return f"CASE WHEN {SEEN} < {room} THEN {SEEN} ELSE {SEEN} - {_into(step, offset)} END"


# -- in Python --------------------------------------------------------------------------------------------------------


@frozen
class _Given:
    """What the sender is given: rows of this node."""

    node: int
    schema: Schema


@frozen
class SlicesShape:
    """How to read the groups. Picklable."""

    parts: tuple[_Given]
    key: str
    partition: bool
    keys: int
    calls: tuple[n.AggregateCall, ...]
    schema: Schema
    """Of a group: the keys that it has before a hop window, and what the calls take."""
    windows: tuple[Operator, ...]

    @staticmethod
    def of(slices: Slices, keys: Sequence[str], *, partitioned: bool) -> SlicesShape:
        plan, part = slices.plan, slices.part
        fields = [part.plan.schema.field(key) for key in keys]
        schema = Schema((*fields, *(Field(call.output, call.type) for call in plan.calls)))
        steps = [*timed(part.plan), *([slices.hop] if slices.hop is not None else [])]
        windows = tuple(window(step, schema) for step in steps)
        given = _Given(slices.node, plan.schema)
        return SlicesShape((given,), slices.key, partitioned, len(keys), plan.calls, schema, windows)

    def read(self, batch: pa.RecordBatch) -> Found:
        columns = {name.removeprefix(CARRIED): batch.column(name) for name in batch.schema.names}
        rows, apart = int64_values(columns["rows"]), columns["apart"]
        taken = columns["newest"].is_valid()
        kept = np.flatnonzero(columns["kept"].to_numpy(zero_copy_only=False))
        rest = None
        if apart.null_count < len(apart):  # equal ones are one group
            times = np.repeat(np.arange(len(rows)), np.where(apart.is_valid(), rows, 0))
            rest = pa.RecordBatch.from_struct_array(apart.take(pa.array(times)).flatten())
        delta = self._delta(columns, rows, kept)
        seen = self._seen(columns, rows, taken)
        total = int(rows[kept].sum())
        return Found(seen, sum(s.rows for s in seen), rest, {self.parts[0].node: delta}, (total, len(kept)))

    def _seen(self, columns: dict[str, pa.Array], rows: np.ndarray, taken: pa.Array) -> list[Seen]:
        """As ``sighted`` tells it, of groups."""
        if not self.partition:
            names = pa.array([""] * len(rows))
        else:
            values = columns["partition"]
            zoned = pa.types.is_timestamp(values.type) and values.type.tz is not None
            names = pc.fill_null((values.cast(pa.timestamp("us")) if zoned else values).cast(pa.string()), "")
        table = pa.table({"p": names, "t": columns["newest"], "o": columns["oldest"], "n": rows}).filter(taken)
        found = table.group_by("p", use_threads=False).aggregate([("t", "max"), ("o", "min"), ("n", "sum")])
        told = found.select(["p", "t_max", "o_min", "n_sum"])
        seen = [Seen(*values) for values in zip(*(c.to_pylist() for c in told.columns), strict=True)]
        return seen or [Seen("", BEGINNING, INFINITY, 0)]

    def _delta(self, columns: dict[str, pa.Array], rows: np.ndarray, kept: np.ndarray) -> Delta:
        """One row of each group carries the sums, the rest of the group is a row with sums of 0, as in the operator."""
        count, places = rows[kept], pa.array(kept)
        sums = [i for i, call in enumerate(self.calls) if call.function == "SUM"]
        carries = np.zeros(len(kept), np.bool_)
        for i in sums:
            carries |= int64_values(columns[f"value {i}"].take(places).fill_null(0)) != 0
        rest = np.flatnonzero(carries & (count > 1))
        chosen = pa.array(np.concatenate([kept, kept[rest]]))
        weight = np.concatenate([np.where(carries, 1, count), count[rest] - 1])
        made = [as_type(columns[f"key {i}"].take(chosen), self.schema.types[i]) for i in range(self.keys)]
        for i, call in enumerate(self.calls):
            made.append(self._part(columns, i, call, chosen, carrying=len(kept)))
        start = int64_values(columns["newest"].take(chosen))
        delta = Delta(self.schema, made, start, start + 1, weight.astype(np.int64))
        for operator in self.windows:
            delta = operator.step(None, (delta,), (BEGINNING,)).delta
        schema = self.parts[0].schema
        return delta.with_columns(schema, [delta.column(name) for name in schema.names])

    def _part(
        self, columns: dict[str, pa.Array], i: int, call: n.AggregateCall, chosen: pa.Array, *, carrying: int
    ) -> pa.Array:
        none = ~columns[f"valid {i}"].take(chosen).to_numpy(zero_copy_only=False)
        if call.function == "COUNT":
            return pa.array(np.ones(len(chosen), np.bool_), mask=none)
        value = as_type(columns[f"value {i}"].take(chosen), call.type)
        if call.function != "SUM":
            return value
        sums = np.where(np.arange(len(chosen)) < carrying, int64_values(value.fill_null(0)), 0)
        return pa.array(sums, call.type, mask=none)
