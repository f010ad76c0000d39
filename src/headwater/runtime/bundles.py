"""What goes from one level to a shard of a later one in a tick: one bundle from every sender to every shard.

A bundle holds the rows of each edge, how far each edge's rows are final, and what was seen of the sources: so every shard
computes the same frontiers without asking anybody. Bytes are an Arrow IPC stream per edge behind a small header; a large
bundle is a file where sender and receiver share a file system, and is mapped there.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from attrs import Factory, define, frozen

from headwater.clock.seen import Seen
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.runtime.layout import ONE_SHARD, Edge
from headwater.runtime.plain_data import decode, encode

_HEADER = struct.Struct("<Q")
_BY_FILE = 200_000
"""Bytes from which on a file is cheaper than a row of the shuffle."""


@frozen
class _Header:
    """What a bundle has besides rows, and the size of each edge's."""

    edges: list[int]
    sizes: list[int]
    frontiers: dict[int, tuple[int, int]]
    seen: dict[str, tuple[Seen, ...]]


@define
class Bundle:
    """From one sender to one shard of one level."""

    deltas: dict[int, Delta] = Factory(dict)
    """By edge; an edge without rows is not there."""
    frontiers: dict[int, tuple[int, int]] = Factory(dict)
    """By edge, where the sender's level is not 0: how far its rows are complete, and how far they are known."""
    seen: dict[str, tuple[Seen, ...]] = Factory(dict)
    """By stream."""

    def encode(self) -> bytes:
        parts: list[pa.Buffer] = []
        for delta in self.deltas.values():
            sink = pa.BufferOutputStream()
            batch = delta.to_batch()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            parts.append(sink.getvalue())
        header = encode(_Header(list(self.deltas), [p.size for p in parts], self.frontiers, self.seen))
        padding = b"\0" * (-(len(header) + _HEADER.size) % 64)  # Arrow buffers stay aligned
        return b"".join([_HEADER.pack(len(header)), header, padding, *map(memoryview, parts)])

    @classmethod
    def decode(cls, buffer: pa.Buffer) -> Bundle:
        """Without copying the rows."""
        (length,) = _HEADER.unpack(buffer.slice(0, _HEADER.size).to_pybytes())
        header = buffer.slice(_HEADER.size, length).to_pybytes()
        told: _Header = decode(_Header, header)
        at = _HEADER.size + length
        at += -at % 64
        deltas: dict[int, Delta] = {}
        for edge, size in zip(told.edges, told.sizes, strict=True):
            with pa.ipc.open_stream(pa.BufferReader(buffer.slice(at, size))) as reader:
                deltas[edge] = Delta.from_batch(reader.read_next_batch())
            at += size
        return cls(deltas, told.frontiers, told.seen)


def pack(bundle: Bundle, folder: str | None) -> bytes:
    """The bytes that travel: the bundle after a byte 0, or after a byte 1 the name of the file that it is in."""
    data = bundle.encode()
    if folder is None or len(data) < _BY_FILE:
        return b"\0" + data
    path = Path(folder) / f"{uuid.uuid4().hex}.bundle"
    path.write_bytes(data)
    return b"\1" + str(path).encode()


def unpack(data: pa.Buffer) -> Bundle:
    kind, rest = data.slice(0, 1).to_pybytes(), data.slice(1)
    if kind == b"\0":
        return Bundle.decode(rest)
    with pa.memory_map(rest.to_pybytes().decode()) as mapped:
        return Bundle.decode(mapped.read_buffer())


def spread(delta: Delta, route: tuple[str, ...], shards: int) -> list[Delta]:
    """One delta per shard."""
    if shards == 1 or not len(delta):
        return [delta] + [Delta.empty(delta.schema) for _ in range(shards - 1)]
    if route == ONE_SHARD:
        return [delta, *(Delta.empty(delta.schema) for _ in range(shards - 1))]
    return delta.split(route, shards)


def bundles_for(
    edges: Iterable[Edge],
    deltas: Mapping[int, Delta],
    frontiers: Mapping[int, tuple[int, int]] | None,
    seen: dict[str, tuple[Seen, ...]],
    shards: int,
    shard: int | None = None,
) -> Iterator[tuple[int, int, Bundle]]:
    """(level, shard, bundle) of everything a sender has for later levels: one for each shard, with rows or without.

    ``deltas`` and ``frontiers`` are by node; level 0 has no frontiers of its own, and no shard.
    """
    by_level: dict[int, list[Edge]] = {}
    for edge in edges:
        by_level.setdefault(edge.level, []).append(edge)
    for level, its in by_level.items():
        bundles = [Bundle(seen=seen) for _ in range(shards)]
        for edge in its:
            delta = deltas[edge.node]
            parts = spread(delta, edge.route, shards) if edge.route is not None else _stay(delta, shards, shard)
            for bundle, part in zip(bundles, parts, strict=True):
                if len(part):
                    bundle.deltas[edge.id] = part
                if frontiers is not None:
                    bundle.frontiers[edge.id] = frontiers[edge.node]
        for to, bundle in enumerate(bundles):
            yield level, to, bundle


def _stay(delta: Delta, shards: int, shard: int | None) -> list[Delta]:
    nothing = Delta.empty(delta.schema)
    return [delta if s == shard else nothing for s in range(shards)]


def rows_of(edge: int, schema: Schema, bundles: Sequence[Bundle]) -> Delta:
    """All senders' rows of an edge."""
    return Delta.concat(schema, [b.deltas[edge] for b in bundles if edge in b.deltas])


def all_seen(bundles: Sequence[Bundle]) -> dict[str, tuple[Seen, ...]]:
    """What was seen of each stream. Later levels repeat what they were told, and so may tasks: each sighting counts once."""
    found: dict[str, dict[Seen, None]] = {}
    for bundle in bundles:
        for stream, seen in bundle.seen.items():
            found.setdefault(stream, {}).update(dict.fromkeys(seen))
    return {stream: tuple(seen) for stream, seen in found.items()}
