"""How a window of the last n rows counts rows that last, without cutting them into all of their instants.

Of each instant only the last n rows can be among the last n (a top-k). Those of a partition, put together while they stay
the same, are one element with a list of rows (an aggregate). Of that the first instants are enough
(``FirstInstantsOperator``). With a slide the number of all instants matters, and without a size all of them do.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headwater.algebra.nodes import RowWindow
from headwater.algebra.properties import is_chronon
from headwater.expressions.nodes import Call, Literal
from headwater.expressions.rewrite import column
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY
from headwater.operators.aggregates.aggregate import AggregateOperator
from headwater.operators.aggregates.aggregate import Call as AggregateCall
from headwater.operators.base import Operator
from headwater.operators.ranking.sort_order import SortColumn
from headwater.operators.ranking.top_k import TopKOperator
from headwater.operators.rows.project import ProjectOperator
from headwater.operators.windows.first_instants import FirstInstantsOperator


def counts_segments(plan: RowWindow) -> bool:
    """May its rows last, and can it take them segment by segment?"""
    return not is_chronon(plan.input) and plan.slide == 1 and plan.rows < INFINITY


def counted_instants(plan: RowWindow, *, speculative: bool) -> Iterator[Operator]:
    """The operators below such a window, from its input upwards."""
    below, form = plan.input.schema, {"speculative": speculative, "hold": False}
    last = [SortColumn(name, descending=True, nulls_first=False) for name in below.names]
    yield TopKOperator(below, last, plan.rows, 0, plan.partition, **form)
    row = pa.struct([(str(i), f.type) for i, f in enumerate(below)])
    keys = tuple(Field(f"key {i}", below.field(name).type) for i, name in enumerate(plan.partition))
    packed = Schema((*keys, Field("row", row, nullable=False)))
    pairs = ((Literal(str(i), pa.string()), column(f)) for i, f in enumerate(below))
    values = Call("named_struct", tuple(part for pair in pairs for part in pair), row)
    yield ProjectOperator(below, packed, [*(column(below.field(name)) for name in plan.partition), values])
    together = AggregateCall("ARRAY_AGG", "rows", pa.list_(row), "row")
    yield AggregateOperator([packed], [key.name for key in keys], [together], **form)
    yield FirstInstantsOperator(below, plan.rows)
