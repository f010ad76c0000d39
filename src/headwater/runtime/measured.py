"""What ticks tell of the streams: how fast rows come, how many values columns have, which part predicates keep.

Counts are kept in the manifest, so they outlive the engine; the next plan over the same streams is made with them. They
cost next to nothing: only some ticks are looked at, and of their columns only a few rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.clock.seen import Seen
from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.identity import identify
from headwater.model.time import BEGINNING
from headwater.operators.rows.filter import FilterOperator
from headwater.optimizer.estimation.statistics import MEASURED, Figure, Figures
from headwater.runtime.graph import Graph
from headwater.runtime.stage import Worked

if TYPE_CHECKING:
    from headwater.runtime.executor import TickJob, TickResult

_FIRST, _EVERY = 8, 32
"""The first ticks are looked at, and then one of so many."""
_SAMPLED = 512
"""So many rows of a sender are a sample."""
_REGISTERS, _BITS, _FLAT = 128, 7, 0.716
"""Of a HyperLogLog: the number of values is known to 9 %, in 128 bytes."""
_SALT = np.uint64(0x9E3779B97F4A7C15)
_HALF_LIFE = 2.0**20
"""Rows after which older ones count half."""
_LEAST = 100
"""Fewer rows say nothing."""
_MOST_SHARES = 16
_MANY, _TIMES = 0.85, 3.0
"""From this share of different values on, a sample does not tell many values from very many: there are three times as many
as it has rows, or more."""
_ALL = 0.95
"""From this share on, perhaps none comes twice."""


class ColumnSample(NamedTuple):
    """Some rows of one column."""

    rows: int
    nulls: int
    bytes: int
    registers: str
    """How many leading zeros the hashes have that begin with 0, 1, …: a character for each."""

    def plus(self, other: ColumnSample) -> ColumnSample:
        registers = "".join(map(max, self.registers, other.registers))
        return ColumnSample(self.rows + other.rows, self.nulls + other.nulls, self.bytes + other.bytes, registers)


Samples = dict[str, ColumnSample]
"""By column."""


def is_sampled(tick: int) -> bool:
    return tick <= _FIRST or tick % _EVERY == 0


def sampled(delta: Delta) -> Samples:
    """A look at rows from all over. A column without any value says nothing: perhaps nobody reads it."""
    found: Samples = {}
    chosen = None
    if len(delta) > _SAMPLED:  # one of each stretch, in no rhythm that the rows might have as well
        places = np.arange(_SAMPLED) + np.random.default_rng(_SAMPLED).random(_SAMPLED)
        chosen = pa.array((places * (len(delta) / _SAMPLED)).astype(np.int64))
    for field, whole in zip(delta.schema, delta.columns, strict=True):
        if pa.types.is_nested(field.type):
            continue
        column = whole if chosen is None else whole.take(chosen)
        if column.null_count == len(column):
            continue
        with suppress(StreamError):  # one value of 2^64 has no hash
            hashes = identify([column], len(column)).low
            size = column.nbytes if _is_text(field.type) else 0
            found[field.name] = ColumnSample(len(column), column.null_count, size, _registers(hashes))
    return found


def _is_text(type_: pa.DataType) -> bool:
    """Do its values differ in size?"""
    return pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_large_string(type_)


def together(parts: Iterable[Samples]) -> Samples:
    """What several senders, or several ticks, have seen."""
    found: Samples = {}
    for part in parts:
        for name, sample in part.items():
            found[name] = found[name].plus(sample) if name in found else sample
    return found


def measured_after(
    before: dict[str, dict[str, Any]], newest: Mapping[str, int], job: TickJob, result: TickResult
) -> dict[str, dict[str, Any]]:
    """What is known after a tick, if that is one of those that are looked at."""
    if not is_sampled(job.tick.number):
        return before
    return measure(before, newest, result.seen, result.samples, result.worked, job.layout.graph)


def measure(
    before: Mapping[str, dict[str, Any]],
    newest: Mapping[str, int],
    seen: Mapping[str, Sequence[Seen]],
    samples: Mapping[str, Samples],
    worked: Mapping[str, Worked],
    graph: Graph,
) -> dict[str, dict[str, Any]]:
    """By stream, what is known after a tick; JSON values. ``newest``: by stream, the newest row before it."""
    after = dict(before)
    for stream, parts in seen.items():
        rows = sum(part.rows for part in parts)
        if rows:
            known = after.get(stream, {})
            after[stream] = known | _paced(known, newest.get(stream, BEGINNING), rows, parts)
    for stream, its in samples.items():
        known = {n: ColumnSample(*kept) for n, kept in after.get(stream, {}).get("columns", {}).items()}
        after[stream] = after.get(stream, {}) | {"columns": {n: list(s) for n, s in together([known, its]).items()}}
    for stream, predicate, done in _filtered(graph, worked):
        shares = dict(after.get(stream, {}).get("shares", {}))
        taken, kept = shares.pop(predicate, (0.0, 0.0))
        fading = _fading(done.rows_in)
        shares[predicate] = [taken * fading + done.rows_in, kept * fading + done.rows_out]
        latest = list(shares.items())[-_MOST_SHARES:]
        after[stream] = after.get(stream, {}) | {"shares": dict(latest)}
    return after


def _paced(known: Mapping[str, Any], reached: int, rows: int, parts: Sequence[Seen]) -> dict[str, float]:
    """Rows, and the application time in which they came; the older the less they count."""
    newest = max(part.newest for part in parts if part.rows)
    if reached == BEGINNING:
        reached = min(part.oldest for part in parts if part.rows)
    rows_before, span_before = (known.get(name, 0.0) * _fading(rows) for name in ("rows", "span"))
    return {"rows": rows_before + rows, "span": span_before + max(newest - reached, 0)}


def _fading(rows: int) -> float:
    return 0.5 ** (rows / _HALF_LIFE)


def _filtered(graph: Graph, worked: Mapping[str, Worked]) -> Iterable[tuple[str, str, Worked]]:
    """What filters right above a stream have kept: stream, predicate, rows."""
    for node in graph.nodes:
        if node.key in worked and isinstance(node.operator, FilterOperator):
            stream = graph.nodes[node.inputs[0]].source
            if stream is not None:
                yield stream, node.operator.predicate, worked[node.key]


# -- figures ----------------------------------------------------------------------------------------------------------


def measured_figures(kept: Mapping[str, Any], rows: int) -> Figures:
    """What the cost model is told of a stream of which so many rows have come."""
    found: dict[str, float] = {}
    if kept.get("rows", 0) >= _LEAST and kept["span"] > 0:
        found["rate"] = kept["rows"] / kept["span"]
    for name, values in kept.get("columns", {}).items():
        sample = ColumnSample(*values)
        if sample.rows >= _LEAST:
            found[f"distinct({name})"] = different_values(_counted(sample.registers), sample.rows, rows)
            found[f"nulls({name})"] = sample.nulls / sample.rows
            if sample.bytes:
                found[f"bytes({name})"] = sample.bytes / sample.rows
    for predicate, (taken, passed) in kept.get("shares", {}).items():
        if taken >= _LEAST:
            found[f"share({predicate})"] = passed / taken
    return {name: Figure(float(f"{value:.3g}"), MEASURED) for name, value in found.items()}


def different_values(seen: float, sample: int, rows: int) -> float:
    """How many values all rows have, if a sample of them has so many, and each value is as likely as any other.

    >>> round(different_values(632, 1000, 10**6))
    1000
    """
    share = min(seen / sample, 1.0)
    least = _TIMES * sample
    if share >= _MANY:
        return math.sqrt(least * max(rows, least)) if share >= _ALL else least
    low, high = 1e-9, sample / max(seen, 1.0)  # rows for each value: (1 - e^-x) / x of the rows have a new one
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if -math.expm1(-middle) / middle > share else (low, middle)
    return max(1.0, sample / high)


def _registers(hashes: np.ndarray) -> str:
    """Flajolet et al. 2007, of 7 bits for the register and 32 for the rank."""
    hashes = hashes ^ _SALT  # the hash of 0 is 0
    places = (hashes >> np.uint64(64 - _BITS)).astype(np.int64)
    rest = (hashes << np.uint64(_BITS)) >> np.uint64(32)
    ranks = 33 - np.frexp(rest.astype(np.float64))[1]
    found = np.zeros(_REGISTERS, np.int64)
    order = np.argsort(ranks, kind="stable")
    found[places[order]] = ranks[order]  # of several in one place the last counts, which is the largest
    return (found + ord("0")).astype(np.uint8).tobytes().decode("ascii")


def _counted(registers: str) -> float:
    ranks = np.frombuffer(registers.encode("ascii"), np.uint8).astype(np.float64) - ord("0")
    empty = int((ranks == 0).sum())
    raw = _FLAT * _REGISTERS**2 / float(np.exp2(-ranks).sum())
    return _REGISTERS * math.log(_REGISTERS / empty) if raw <= 2.5 * _REGISTERS and empty else raw
