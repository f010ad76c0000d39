"""What CONTRIBUTING says of sources and sinks is all that it takes to add one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.errors import InputError
from headwater.language.arguments import Arguments, Parameter, count
from headwater.model.delta import Delta
from headwater.sinks.base import Sink, Staged, Stager
from headwater.sources import connectors
from headwater.sources.base import Piece, Polled, Reader, Source, Split


class SquaresReader(Reader):
    def read(self, split: Split, columns: Collection[str] | None = None) -> Iterator[Piece]:
        numbers = range(split["from"], split["to"])
        yield Piece(pa.RecordBatch.from_pydict({"n": list(numbers), "square": [n * n for n in numbers]}))


class SquaresSource(Source):
    """1. A source and its reader."""

    finite, reader = True, SquaresReader()

    def __init__(self, schema: hw.Schema, count: int) -> None:
        self.schema, self._count = schema, count

    def poll(self, offset: Any, rows: int) -> Polled:
        first = offset or 0
        last = min(first + 4, self._count)
        return Polled([{"from": first, "to": last}] if first < last else [], last, finished=last == self._count)


def squares(stream: Any, given: Arguments, base: Path) -> Source:
    """2. Its function in ``connectors``, with its parameters."""
    return SquaresSource(stream.brought, **given.bound((Parameter("count", count, required=True, place=0),)))


class RowsOf(Stager):
    def stage(self, tick: int, shard: int, delta: Delta, folder: str) -> Staged:
        return Staged(len(delta), repr(delta.rows()).encode())


class LinesSink(Sink):
    """A sink and its stager."""

    def __init__(self) -> None:
        self.lines: dict[int, str] = {}

    def stager(self) -> Stager:
        return RowsOf()

    def deliver(self, tick: int, parts: Sequence[Staged], frontier: int) -> None:
        self.lines[tick] = "".join(part.data.decode() for part in parts if part.data)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[hw.Engine]:
    monkeypatch.setitem(connectors._FUNCTIONS, "squares", squares)
    with hw.connect(runner="inprocess") as engine:
        yield engine


def test_a_source_is_a_class_and_a_function(engine: hw.Engine):
    engine.sql("CREATE STREAM s (n BIGINT, square BIGINT) SOURCE squares(10) ORDERED BY n IN ORDER")
    run = engine.sql("SELECT COUNT(*) AS c, MAX(square) AS m FROM s WINDOW(RANGE UNBOUNDED)").start()
    engine.run_to_end()
    assert {(row["c"], row["m"]) for row in run.history().rows()} == {(n + 1, n * n) for n in range(10)}
    with pytest.raises(InputError, match='"count" is missing'):
        engine.sql("CREATE STREAM t (n BIGINT) SOURCE squares() ORDERED BY n; SELECT n FROM t").start()


def test_a_sink_is_a_class(engine: hw.Engine):
    engine.sql("CREATE STREAM s (n BIGINT, square BIGINT) SOURCE squares(6) ORDERED BY n IN ORDER")
    sink = LinesSink()
    engine.sql("SELECT square FROM s WHERE n > 3").start(sink)
    engine.run_to_end()
    assert "".join(sink.lines.values()) == "[((16,), 4, 5, 1), ((25,), 5, 6, 1)]"
