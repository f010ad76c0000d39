"""Grouping with aggregation: at every instant one row per group, none for an empty group."""
#  in          3 |---------)   4 |-----)
#  SUM         3 |---|7  |-|4    |-)         cut where the group's rows change

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.expressions.aggregates import AGGREGATES
from headwater.kernels import sweep_totals as kernel
from headwater.kernels.sweep_sum import has_ties, is_plain, sweep_sum
from headwater.model.arrays import BoolArray, Int64Array
from headwater.model.delta import Delta
from headwater.model.identity import Identity
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY
from headwater.operators.aggregates.adopted_extremes import UNTIL, without_staircases
from headwater.operators.aggregates.holistic import HolisticRows
from headwater.operators.aggregates.holistic_values import evaluate
from headwater.operators.aggregates.measures import (
    Measure,
    Walk,
    arrange_ties,
    needed_measures,
    seen_by,
    value_of,
)
from headwater.operators.aggregates.snapshots import Snapshots
from headwater.operators.aggregates.staircase import Staircases
from headwater.operators.aggregates.totals import TotalsAt
from headwater.operators.aggregates.user_aggregates import UserAggregate, load_aggregate
from headwater.operators.base import Operator
from headwater.operators.sight import Sight
from headwater.operators.sweeps.endpoints import Segments, Swept
from headwater.operators.sweeps.sweep import SweepOperator, SweepState
from headwater.operators.words import fits_word
from headwater.state.retyped import KeptTypes
from headwater.state.store import Store

_ROWS = Measure(kernel.COUNT)


@frozen
class Call:
    """One aggregate: the function over a column (None: rows), perhaps only where a BOOLEAN column is true."""

    function: str
    output: str
    type: pa.DataType
    argument: str | None = None
    filter: str | None = None
    port: int = 0
    """The input that brings the argument: 0, or one of its own for DISTINCT."""
    parameters: tuple[object, ...] = ()


_ONE_SUM = [kernel.COUNT, kernel.COUNT, kernel.FLOAT]  # the rows, the values, and their sum


class AggregateState(SweepState):
    """Totals per group, and where an aggregate needs them the rows themselves, or those that may become the extreme."""

    layouts = (*SweepState.layouts, "kept", "staircases")

    def __init__(
        self, store: Store, holistic: Sequence[int], staircases: dict[int, Staircases], *, speculative: bool
    ) -> None:
        super().__init__(store, speculative=speculative)
        self.kept = HolisticRows(store, holistic)
        self.staircases = staircases

    @property
    def rows(self) -> int:
        return super().rows + self.kept.rows + sum(s.rows for s in self.staircases.values())


class AggregateOperator(SweepOperator):
    """γ and α (Krämer 8.9, 8.15) over totals; MIN, MAX, MEDIAN, … over the rows of the touched groups.

    Input 0 brings the rows. Each further input brings, for one DISTINCT argument, the rows (keys, argument) without
    duplicates at any instant. State: totals and open start a group; per live row one end to come. ``revisable``: an input
    may take back what it said; where none does, MIN and MAX need not keep rows. ``once``: the rows of a group begin at one
    instant and never end, as those of a session do; then a group is forgotten with its answer.
    """

    name = "aggregate"

    def __init__(
        self,
        inputs: Sequence[Schema],
        keys: Sequence[str],
        calls: Sequence[Call],
        *,
        speculative: bool = False,
        hold: bool = True,
        revisable: bool = True,
        once: bool = False,
    ) -> None:
        key_fields = tuple(inputs[0].field(k) for k in keys)
        super().__init__([f.type for f in key_fields], speculative=speculative, hold=hold, once=once)
        self.arity = len(inputs)
        self.schema = Schema(key_fields + tuple(Field(c.output, c.type) for c in calls))
        self._inputs, self._keys, self._calls = tuple(inputs), tuple(keys), tuple(calls)
        self._functions: dict[str, str | UserAggregate] = {
            c.output: c.function
            if c.function in AGGREGATES
            else load_aggregate(c.function, str(c.parameters[0]), c.type, several=len(c.parameters) > 1)
            for c in calls
        }
        self._measures, self._needs = self._plan_measures(final=not (speculative or revisable or once))
        words = [m.words for m in self._measures]
        self._places = [sum(words[:j]) for j in range(len(words))]
        self.totals = sum(words)

    def _plan_measures(self, *, final: bool) -> tuple[list[Measure], dict[str, list[int]]]:
        """All measures, the number of rows first, and those of each call; equal ones are kept once."""
        measures = [_ROWS]
        needs: dict[str, list[int]] = {}
        for call in self._calls:
            # COUNT(*) FILTER (WHERE p) counts where p is true: a count of p itself.
            argument = call.argument if call.argument is not None else call.filter
            needed: tuple[Measure, ...] = (_ROWS,)
            if argument is not None:
                type_ = self._inputs[call.port].field(argument).type
                staircase = final and fits_word(type_)
                needed = needed_measures(call.function, argument, type_, call.filter, call.port, staircase=staircase)
            measures += [m for m in needed if m not in measures]
            needs[call.output] = [measures.index(m) for m in needed]
        return measures, needs

    def describe(self) -> dict[str, object]:
        return {
            "keys": list(self._keys),
            "aggregates": [f"{c.function}({c.argument or '*'}) as {c.output}" for c in self._calls],
            "speculative": self._speculative,
        }

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (self._keys,) * self.arity

    def sight(self, port: int) -> Sight | None:
        arguments = [(c.function, c.argument, c.filter) for c in self._calls if c.port == port]
        return None if any(m.kind == kernel.FINGERPRINT for m in self._measures) else seen_by(self._keys, arguments)

    def new_state(self, store: Store) -> AggregateState:
        staircases = {
            j: Staircases(store, floats=m.encoding == "float", largest=m.kind == kernel.MOST)
            for j, m in enumerate(self._measures)
            if m.is_extreme
        }
        holistic = [j for j, m in enumerate(self._measures) if m.kind == kernel.FINGERPRINT]
        return AggregateState(store, holistic, staircases, speculative=self._speculative)

    def key_columns(self, delta: Delta, port: int) -> tuple[Identity, Sequence[pa.Array]]:
        return delta.key(self._keys), [delta.column(k) for k in self._keys]

    def value_columns(self, delta: Delta, port: int) -> dict[str, np.ndarray]:
        columns: dict[str, np.ndarray] = {}
        for measure in self._measures:
            here = measure.port == port
            if measure.valid_name not in columns and (measure != _ROWS or self.arity > 1):
                columns[measure.valid_name] = measure.takes_part(delta) if here else np.zeros(len(delta), np.uint8)
            if any(name not in columns for name in measure.value_names):
                values = measure.values(delta) if here else [np.zeros(len(delta), np.int64)] * len(measure.value_names)
                columns |= dict(zip(measure.value_names, values, strict=True))
        if any(m.is_extreme for m in self._measures):
            columns[UNTIL] = delta.end
        return columns

    def adopt(self, state: AggregateState, before: Operator, store: Store) -> tuple[AggregateState, Delta]:
        assert isinstance(before, AggregateOperator)
        _, shown = super().adopt(state, before, store)
        if before._measures == self._measures:
            return state, shown
        new = self.new_state(store)
        without_staircases(state, new, before._measures, self._measures, self._type_of)
        return new, shown

    def kept_types(self, inputs: Sequence[Schema]) -> KeptTypes:
        rows = [m for m in self._measures if m.kind == kernel.FINGERPRINT]
        return super().kept_types(inputs) | {
            (f"kept.0.kept.{i}.", "value"): self._type_of(m) for i, m in enumerate(rows)
        }

    def goes_on_from(self, before: Operator) -> bool:
        """Long DECIMALs have other totals than short ones, and other fingerprints."""
        assert isinstance(before, AggregateOperator)
        rows = [m for m in self._measures if m.kind == kernel.FINGERPRINT]
        same = all(fits_word(before._type_of(m)) == fits_word(self._type_of(m)) for m in rows)
        return before._measures == self._measures and same

    def _type_of(self, measure: Measure) -> pa.DataType:
        return self._inputs[measure.port].field(measure.argument).type if measure.argument is not None else pa.int64()

    # -- totals -----------------------------------------------------------------------------------------------------

    def prepare(self, state: AggregateState, swept: Swept) -> None:
        for j, staircases in state.staircases.items():
            measure, columns = self._measures[j], swept.columns
            values = columns[measure.value_names[0]]
            levels, changed = staircases.sweep(swept, columns[measure.valid_name], values, columns[UNTIL])
            columns |= {f"levels {j}": levels, f"changed {j}": changed}

    def sweep(self, swept: Swept, totals: Int64Array, since: Int64Array, horizon: int, *, show_open: bool) -> Segments:
        if [m.kind for m in self._measures] == _ONE_SUM and self._is_plain(swept, totals):
            return self._sweep_sum(swept, totals, since, horizon, show_open=show_open)
        columns, weight = swept.columns, swept.columns["weight"]
        bounds, instants, first = kernel.find_instants(swept.groups, columns["time"])
        keys = len(first) - 1
        words = np.empty((self.totals, keys + len(instants)), np.int64)
        words[:, :keys] = totals
        changed = np.zeros(len(instants), np.uint8)
        self._follow((bounds, first, weight), columns, words, changed)
        cut = kernel.cut_segments(instants, first, words[0], changed, since, horizon, show_open)
        key, start, end, source, at_horizon = cut
        kernel.pick_totals(words, at_horizon, totals)
        return Segments(key, start, end, np.ones(len(key), np.int64), source, words)

    def _is_plain(self, swept: Swept, totals: Int64Array) -> bool:
        """Can one pass do it: every endpoint one row with a finite value, now and before, and no order of ties to mind?"""
        columns, measure = swept.columns, self._measures[-1]
        values = columns[measure.value_names[0]].view(np.float64)
        return (
            self.arity == 1
            and is_plain(columns[measure.valid_name], columns["weight"], values)
            and not totals[4].any()
            and np.array_equal(totals[0], totals[1])
            and not (self._speculative and has_ties(swept.groups, columns["time"]))
        )

    def _sweep_sum(
        self, swept: Swept, totals: Int64Array, since: Int64Array, horizon: int, *, show_open: bool
    ) -> Segments:
        columns = swept.columns
        values = columns[self._measures[-1].value_names[0]].view(np.float64)
        sums = totals[2].view(np.float64), totals[3].view(np.float64)
        key, start, end, rows, shown = sweep_sum(
            swept.groups, columns["time"], columns["weight"], values, totals[0], *sums, since, horizon, show_open
        )
        totals[1] = totals[0]
        words = np.zeros((5, len(key)), np.int64)
        words[0], words[1], words[2:4] = rows, rows, shown.view(np.int64)
        return Segments(key, start, end, np.ones(len(key), np.int64), np.arange(len(key)), words)

    def _follow(self, walk: Walk, columns: dict[str, np.ndarray], words: Int64Array, changed: np.ndarray) -> None:
        """Each measure's totals after each instant."""
        every = np.ones(len(walk[2]), np.uint8)
        for j, measure in enumerate(self._measures):
            if measure.is_extreme:
                words[self._places[j], len(walk[1]) - 1 :] = columns[f"levels {j}"]
                changed |= columns[f"changed {j}"]
                continue
            valid = columns.get(measure.valid_name, every)
            if j and measure.kind == kernel.COUNT and self._counts_rows(words[self._places[j]], words[0], valid, walk):
                continue
            values = [columns[name] for name in measure.value_names]
            counted = measure.counted
            counts = words[self._places[self._measures.index(counted)]] if counted in self._measures else words[0]
            place, here = self._places[j], walk
            if self._speculative and measure.encoding == "float" and len(walk[0]) <= len(every):  # there are ties
                weight, valid, values = arrange_ties(walk, valid, values)
                here = (*walk[:2], weight)
            measure.follow(here, valid, values, counts, words[place : place + measure.words], changed)

    def _counts_rows(self, counts: Int64Array, rows: Int64Array, valid: np.ndarray, walk: Walk) -> bool:
        """Where no value is NULL or filtered out, all values are as many as the rows: no need to count them again."""
        keys = len(walk[1]) - 1
        if self.arity > 1 or not valid.all() or not np.array_equal(counts[:keys], rows[:keys]):
            return False
        counts[:] = rows
        return True

    def open_segments(self, totals: Int64Array, since: Int64Array) -> Segments:
        key = np.flatnonzero(totals[0] > 0)
        one = np.ones(len(key), np.int64)
        return Segments(key, since[key], one * INFINITY, one, key, totals)

    def is_dead(self, totals: Int64Array) -> BoolArray:
        return (totals == 0).all(axis=0)

    def is_silent(self, totals: Int64Array) -> BoolArray:
        return totals[0] <= 0

    def output(self, state: Any, key: Identity, segments: Segments, columns: Sequence[pa.Array]) -> Delta:
        arrays = list(columns)
        snapshots: dict[int, Snapshots] = {}
        totals = TotalsAt(segments.words, segments.source)
        for call in self._calls:
            needed = [self._measures[j] for j in self._needs[call.output]]
            last, j = needed[-1], self._needs[call.output][-1]
            argument = self._type_of(last)
            if last.kind == kernel.FINGERPRINT:
                if j not in snapshots:
                    snapshots[j] = state.kept.snapshots(j, argument, key, segments, state.frontier)
                arrays.append(evaluate(self._functions[call.output], call.type, snapshots[j], call.parameters))
                continue
            rows = [self._places[j] + w for j in self._needs[call.output] for w in range(self._measures[j].words)]
            arrays.append(value_of(call.function, call.type, argument, last.kind, totals.of(rows)))
        return Delta(self.schema, arrays, segments.start, segments.end, segments.weight)

    # -- rows -------------------------------------------------------------------------------------------------------

    def remember_rows(self, state: AggregateState, inputs: tuple[Delta, ...]) -> None:
        for j, measure in enumerate(self._measures):
            delta = inputs[measure.port]
            if measure.kind == kernel.FINGERPRINT and len(delta):
                assert measure.argument is not None
                part = delta.filter(measure.takes_part(delta).view(np.bool_)) if measure.filter is not None else delta
                values = part.column(measure.argument)
                end = part.start + 1 if self._once else part.end  # only looked at where the group begins
                state.kept.append(j, part.key(self._keys), part.start, end, part.weight, values)

    def forget_rows(self, state: AggregateState, frontier: int) -> None:
        state.kept.expire(frontier)
        if frontier == INFINITY:
            for staircases in state.staircases.values():
                staircases.clear()
