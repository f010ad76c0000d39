"""Compile the kernels ahead, so that the first tick of a query does not wait: `python -m headwater.runtime.warmup`.

Every operator runs a few rows in each of its forms, with a key of one word and with a wide one; the machine code is cached.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.algebra import nodes as n
from headwater.expressions.aggregates import AGGREGATES, packed
from headwater.expressions.rewrite import column
from headwater.kernels.checksum import checksum
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.operators.joins.pile import covered
from headwater.operators.sight import Sight, put_together
from headwater.runtime.stepping import by_hand


def _plans(left: n.Source, right: n.Source) -> dict[str, n.Plan]:
    key, other = left.schema.names[0], right.schema.names[0]
    x = column(left.schema.field("x"))
    pairs = (*((f.name, column(f)) for f in left.schema), ("pair", packed([x, x])))
    window = n.TimeWindow(left, 10)
    paired = n.Project(window, pairs)
    calls = [
        n.AggregateCall(f, f"{f} {name}", type_, name, parameters=aggregate.samples[0])
        for f, aggregate in AGGREGATES.items()
        for name in ("x", "pair")
        if (type_ := aggregate.result(paired.schema.field(name).type)) is not None
    ]
    calls += [
        n.AggregateCall("COUNT", "rows", pa.int64()),
        n.AggregateCall("SUM", "whole", pa.int64(), "i", distinct=True),
    ]
    plans: dict[str, n.Plan] = {
        "aggregate": n.Aggregate(paired, (key,), tuple(calls)),
        "scalar": n.Aggregate(paired, (), tuple(calls)),
        "distinct": n.Distinct(window),
        "coalesce": n.Coalesce(window, 5),
        "rows": n.RowWindow(left, 2, 1, (key,)),
        "istream": n.Istream(window),
        "dstream": n.Dstream(window),
        "signed": n.FromPositiveNegative(n.ToPositiveNegative(window)),
        "granules": n.Granularity(window, 4),
        "refreshed": n.Sample(window, 4, 3),
        "stamped": n.Istream(n.Stamp(left, "instant")),
        "hops": n.HopWindow(left, 4, 2),
        "slices": _over_slices(left, key),
        "sessions": n.SessionWindow(left, 2, (key,)),
        "frames": n.Frames(left, _frame_calls(left), (key,)),
        "top": n.TopK(window, (n.SortKey("x"),), 1, partition=(key,)),
        "numbers": n.TopK(window, (n.SortKey("x", descending=True),), rank="number"),
    }
    plans |= {kind.name: n.SetOperation(window, n.TimeWindow(right, 10), kind) for kind in n.SetKind}
    plans |= {kind.value: n.Join(window, n.TimeWindow(right, 10), kind, ((key, other),)) for kind in n.JoinKind}
    return plans


def _frame_calls(source: n.Source) -> tuple[n.FrameCall, ...]:
    """Functions of all kinds over frames of all kinds."""
    calls = []
    for first in (2, INFINITY):
        for function in ("COUNT", "SUM", "VAR_SAMP", "MIN", "LAST_VALUE"):
            type_ = pa.int64() if function == "COUNT" else pa.float64()
            calls.append(n.FrameCall(function, f"{function} {first}", type_, "x", first=first))
        calls.append(n.FrameCall("SUM", f"whole {first}", pa.int64(), "i", first=first, peers=first == INFINITY))
    return tuple(calls)


def _over_slices(source: n.Source, key: str) -> n.Plan:
    """Rows put together before they are aggregated."""
    parts = (n.AggregateCall("SUM", "part", pa.int64(), "i"), n.AggregateCall("MAX", "most", pa.float64(), "x"))
    calls = (n.AggregateCall("SUM", "sum", pa.int64(), "part"), n.AggregateCall("MAX", "max", pa.float64(), "most"))
    return n.Aggregate(n.PreAggregate(n.TimeWindow(source, 10, 2), (key,), parts), (key,), calls)


def _put_rows_together() -> None:
    """As where one tick makes very many."""
    numbers = {"i": pa.int64(), "x": pa.float64(), "d": pa.decimal128(38, 2)}
    for key_type in (pa.int64(), pa.string()):
        schema = Schema.of(k=key_type, s=pa.string(), m="DOUBLE", **numbers)
        rows = Delta.from_rows(schema, [((None, None, 1.5, None, None, None), 0, 1, 1)])
        put_together(rows, Sight(frozenset("ks"), frozenset(numbers), most=frozenset("m")))
        put_together(rows, Sight(frozenset("k"), frozenset(numbers), most=frozenset("m")))
        covered(rows)


def warm_up() -> None:
    """Run everything once, small."""
    checksum(b"")
    _put_rows_together()
    for key_type, keys in (("BIGINT", [1, 2, 1]), ("STRING", ["a", None, "a"])):
        for revisable in (True, False):
            left = n.Source("l", Schema.of(k=key_type, x="DOUBLE", i="INT"), revisable=revisable)
            right = n.Source("r", Schema.of(rk=key_type, rx="DOUBLE", ri="INT"), revisable=revisable)
            for speculative in (False, True):
                runner = by_hand(_plans(left, right), speculative=speculative)
                for tick in range(4):
                    rows = [((k, 1.5, 2), 3 * tick + i, 3 * tick + i + 1, 1) for i, k in enumerate(keys)]
                    deltas = {s.name: Delta.from_rows(s.schema, rows) for s in (left, right)}
                    runner.tick(deltas, dict.fromkeys("lr", 3 * tick))
                if revisable:
                    runner.tick({name: delta.negate() for name, delta in deltas.items()}, {})
                runner.tick({}, dict.fromkeys("lr", INFINITY))


if __name__ == "__main__":
    warm_up()
