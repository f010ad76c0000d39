"""A stateful operator of any number of inputs, added: all that it takes, and then everything works with it.

Run by ``test_added_operator.py`` in a process of its own, since no other test may find one node more.
"""

# ruff: noqa: E402 (a node is listed before the other layers are imported)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve, field, frozen

from headwater.algebra import nodes as n
from headwater.algebra.nodes.base import INPUT, Plan, check_same_types
from headwater.algebra.nodes.sets import _SameTypes
from headwater.algebra.plan_cursor import Cursor
from headwater.algebra.row_properties import Rows, simplest
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.base import EVERY_COLUMN
from headwater.operators.sweeps.endpoints import Segments, Swept
from headwater.operators.sweeps.sweep import SweepOperator

# -- 1. what it means: a class in algebra/nodes, listed in NODES ------------------------------------------------------


@frozen(cache_hash=True)
class Common(_SameTypes):
    """The rows that all inputs have, once each: INTERSECT of many."""

    inputs: tuple[Plan, ...] = field(metadata=INPUT)

    words = ("common",)
    arity = None
    keeper = "an intersection"
    filter_must_not_fail = True

    def with_inputs(self, *inputs: Plan) -> Plan:
        return evolve(self, inputs=inputs)

    def line(self) -> str:
        return "common"

    @classmethod
    def read(cls, cursor: Cursor, words: str, inputs: tuple[Plan, ...]) -> Plan:
        check_same_types(cursor, inputs)
        return cls(inputs)

    def label(self, *, timed: bool) -> str:
        return "Common"

    def _schema(self) -> Schema:
        return self.inputs[0].schema

    def row_properties(self, inputs: Sequence[Rows]) -> Rows:
        first = inputs[0]
        return simplest(first.schema, first.keys or [first.whole], first.uniform, first.constants)

    def is_empty(self, empty: Sequence[bool]) -> bool:
        return any(empty)


n.NODES = (*n.NODES, Common)


# -- 2. and 3. how it is computed: a file in operators (its loop would be a kernel) -----------------------------------


class CommonOperator(SweepOperator):
    """State: per row one count for each input, and since when all have it."""

    name = "common"

    def __init__(self, schema: Schema, inputs: int, *, speculative: bool, hold: bool) -> None:
        super().__init__(schema.types, speculative=speculative, hold=hold)
        self.schema, self.arity, self.totals = schema, inputs, inputs

    def describe(self) -> dict[str, object]:
        return {"inputs": self.arity}

    def routing(self) -> tuple[tuple[str, ...] | None, ...]:
        return (EVERY_COLUMN,) * self.arity

    def key_columns(self, delta: Any, port: int) -> Any:
        return delta.key(), delta.columns

    def sweep(self, swept: Swept, totals: Any, since: Any, horizon: int, *, show_open: bool) -> Segments:
        made = []
        for key in range(len(swept.groups) - 1):
            part = slice(swept.groups[key], swept.groups[key + 1])
            times, ports, weights = (swept.columns[name][part] for name in ("time", "port", "weight"))
            counts, begun = totals[:, key].copy(), since[key]
            shown = (counts > 0).all()
            for time in np.unique(times):
                np.add.at(counts, ports[times == time], weights[times == time])
                changed = (counts > 0).all()
                if changed != shown:
                    made += [(key, begun, time)] if shown else []
                    begun, shown = time, changed
                if time < horizon:
                    totals[:, key], since[key] = counts, begun
            made += [(key, begun, INFINITY)] if show_open and shown else []
        keys, start, end = np.array(made, np.int64).reshape(-1, 3).T.copy()
        return Segments(keys, start, end, np.ones(len(made), np.int64), keys, np.empty((0, 0), np.int64))

    def open_segments(self, totals: Any, since: Any) -> Segments:
        key = np.flatnonzero((totals > 0).all(axis=0))
        one = np.ones(len(key), np.int64)
        return Segments(key, since[key], one * INFINITY, one, key, np.empty((0, 0), np.int64))

    def is_dead(self, totals: Any) -> Any:
        return (totals == 0).all(axis=0)

    def is_silent(self, totals: Any) -> Any:
        return (totals <= 0).any(axis=0)

    def output(self, state: Any, key: Any, segments: Segments, columns: Sequence[pa.Array]) -> Any:
        return Delta(self.schema, columns, segments.start, segments.end, segments.weight)


# -- 4. the function in runtime/builders that makes it ----------------------------------------------------------------

from headwater.runtime import builders


@builders._builds(Common)
def _common(site: Any, plan: Common, inputs: list[Any]) -> Any:
    operator = CommonOperator(plan.schema, len(inputs), speculative=site.speculative, hold=site.hold)
    return site.add(operator, *inputs, final=site.hold and not site.speculative)


# -- 5. its estimate --------------------------------------------------------------------------------------------------

from headwater.optimizer.estimation import nodes, stateful

nodes.ESTIMATIONS[Common] = lambda plan, *inputs: stateful._swept(
    inputs, min((i.stream for i in inputs), key=lambda s: s.rate), inputs[0].columns, inputs[0].values()
)

# -- 6. its snapshots for the judge, and a case -----------------------------------------------------------------------

from headwater.testing import cases, oracle, plans


@oracle._Query._sql.register
def _(self, plan: Common, *below: str) -> str:
    pairs = zip(plan.inputs, below, strict=True)
    return " INTERSECT ".join(f"({oracle._renamed(child, plan.inputs[0], table)})" for child, table in pairs)


def _three(c: Any) -> Plan:
    types = plans.schema(c, columns=2)
    return Common(tuple(n.Source(name, types, chronons=c.chance(40), revisable=c.chance(75)) for name in "stu"))


cases.OPERATORS["common"] = _three

# -- and that is all --------------------------------------------------------------------------------------------------

from headwater.algebra.plan_data import from_data, to_data
from headwater.algebra.plan_text import print_plan
from headwater.optimizer.labels import label
from headwater.optimizer.optimize import optimize
from headwater.testing.plan_text import parse_plan

STREAMS = [f"source {name} (k BIGINT, v DOUBLE) chronons" for name in "abc"]
PLAN = "\n".join(['filter "k" > 1', "  common", *(f"    window range 5\n      {stream}" for stream in STREAMS)])


def _label(plan: Plan) -> str:
    return label(plan, timed=True)


def main() -> None:
    plan = parse_plan(PLAN)
    assert print_plan(plan) == PLAN
    assert from_data(to_data(plan)) == plan
    assert any(label.startswith("Common") for label in map(_label, plan.walk()))
    made = optimize(plan)
    assert print_plan(made.plan).count("filter") == 3, "a filter goes below, to every input"
    cases.campaign(cases.operator_cases("common", 0), 6)
    cases.campaign(iter([[cases.Case(made.plan, cases.streams(cases.Dice(1), made.plan), 1)]]), 1, thorough=True)


if __name__ == "__main__":
    main()
