"""Level 0: where data comes in. Rows become elements, stateless operators run, and the result goes to the shards.

Everything here is linear: what two senders have is the sum of what each has. So a sender works on the part of a stream
that it read, as if the other streams were empty.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from attrs import Factory, define

from headwater.clock.seen import Seen
from headwater.errors import HeadwaterError, StreamError
from headwater.model.delta import Delta
from headwater.model.time import BEGINNING
from headwater.runtime import points
from headwater.runtime.bundles import Bundle, bundles_for
from headwater.runtime.layout import Layout
from headwater.runtime.measured import Samples
from headwater.runtime.stage import Worked, settled
from headwater.runtime.tick import Tick
from headwater.sinks.base import Staged, Stager


class Arrivals(NamedTuple):
    """What one sender has read, by stream."""

    deltas: dict[str, Delta]
    seen: dict[str, tuple[Seen, ...]]


@define
class SenderOutput:
    """What a sender leaves behind, besides the bundles."""

    seen: dict[str, tuple[Seen, ...]] = Factory(dict)
    staged: dict[str, Staged] = Factory(dict)
    """By query: of the queries that need no state."""
    worked: dict[str, Worked] = Factory(dict)
    rows: dict[str, int] = Factory(dict)
    """By stream: what came, on time."""
    late: dict[str, int] = Factory(dict)
    bad: dict[str, int] = Factory(dict)
    diverted: dict[str, list[Staged]] = Factory(dict)
    """By stream of late or malformed rows, where no query reads it."""
    missing: dict[str, dict[str, str]] = Factory(dict)
    """By stream and column that its rows lack: what to tell the user."""
    samples: dict[str, Samples] = Factory(dict)
    """By stream: a look at some of its rows."""
    seconds: float = 0.0


def send(
    layout: Layout,
    tick: Tick,
    arrivals: Arrivals,
    *,
    sender: int,
    stagers: Mapping[str, Stager],
    staging: str,
    constants: Mapping[str, Delta] | None = None,
    out: SenderOutput | None = None,
    given: Mapping[int, Delta] | None = None,
) -> tuple[SenderOutput, list[tuple[int, int, Bundle]]]:
    """The bundles of one sender, one for each shard of each level, and its part of the answers that need no state.

    ``constants`` by node key: sent once, by the driver. ``out``: what was noted while the rows were read. ``given`` by
    node: rows that were computed before they came here, besides those of the streams.
    """
    began = time.perf_counter()
    out = SenderOutput() if out is None else out
    out.seen = arrivals.seen
    made = _made(layout, arrivals.deltas, constants or {}, out)
    if given is not None:
        brought = _made(layout, {}, {}, out, given)
        made = {i: Delta.concat(layout.graph.nodes[i].schema, [made[i], brought[i]]) for i in made}
    for query in layout.levels[0].queries:
        delta = settled(made[layout.graph.queries[query]])
        if len(delta) and query in stagers:
            out.staged[query] = stagers[query].stage(tick.number, sender, delta, staging)
    edges = [layout.edges[e] for e in layout.levels[0].outgoing]
    bundles = list(bundles_for(edges, made, None, arrivals.seen, tick.shards))
    points.passed(points.IN_A_SENDER)
    out.seconds = time.perf_counter() - began
    return out, bundles


def _made(
    layout: Layout,
    deltas: Mapping[str, Delta],
    constants: Mapping[str, Delta],
    out: SenderOutput,
    given: Mapping[int, Delta] | None = None,
) -> dict[int, Delta]:
    made: dict[int, Delta] = {}
    for i in layout.levels[0].nodes:
        node = layout.graph.nodes[i]
        if given is not None and i in given:
            made[i] = given[i]
            continue
        if node.source is not None:
            came = deltas.get(node.source)
            made[i] = Delta.empty(node.schema) if came is None else came.select(node.schema)
            continue
        assert node.operator is not None
        inputs = tuple(made[child] for child in node.inputs)
        if not node.inputs:
            made[i] = constants.get(node.key, Delta.empty(node.schema))
        elif not any(map(len, inputs)):
            made[i] = Delta.empty(node.schema)
        else:
            began = time.perf_counter()
            try:
                made[i] = node.operator.step(None, inputs, (BEGINNING,) * len(inputs)).delta
            except StreamError:
                raise  # it names the stream whose rows are wrong, whoever reads them
            except HeadwaterError as problem:
                raise problem.of(layout.graph.whose(i)) from problem.__cause__
            rows = sum(map(len, inputs))
            worked = Worked(rows, len(made[i]), time.perf_counter() - began)
            out.worked[node.key] = worked.plus(out.worked.get(node.key, Worked(0, 0, 0.0)))
    return made
