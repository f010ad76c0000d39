"""Rows pushed from Python, and lines from a socket."""

from __future__ import annotations

import pickle
import socketserver
import threading
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from headwater.errors import InputError
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.sources.base import Piece, Source
from headwater.sources.intake import Intake
from headwater.sources.memory import MemorySource
from headwater.sources.socket import SocketSource

SCHEMA = Schema.of(x="BIGINT", t="BIGINT")


def pieces(source: Source, offset=None) -> list[Piece]:
    splits = source.poll(offset, 10**6).splits
    reader = pickle.loads(pickle.dumps(source.reader))
    return [piece for split in splits for piece in reader.read(split)]


@pytest.mark.parametrize(
    "rows",
    [
        [{"x": 1, "t": 5}, {"t": 6}],
        [(1, 5), (None, 6)],
        pa.table({"x": [1, None], "t": [5, 6]}),
        pa.RecordBatch.from_pydict({"x": [1, None], "t": [5, 6]}),
        pd.DataFrame({"x": pd.array([1, None], "Int64"), "t": [5, 6]}),
    ],
)
def test_rows_of_many_kinds(rows):
    source = MemorySource(SCHEMA)
    source.push(rows)
    (piece,) = pieces(source)
    assert Intake("s", SCHEMA, "t").take(piece, 0).delta.rows() == [((1, 5), 5, 6, 1), ((None, 6), 6, 7, 1)]


def test_pushes_come_in_order_with_their_promises_and_partitions():
    source = MemorySource(SCHEMA)
    source.push([(1, 5)], partition="a")
    source.push(frontier=7)
    source.push([(2, 8)], frontier=8)
    source.end()
    found = pieces(source)
    assert [(p.rows.num_rows, p.promise, p.partition) for p in found] == [
        (1, None, "a"),
        (0, 7, ""),
        (1, 8, ""),
        (0, INFINITY, ""),
    ]
    taken = [Intake("s", SCHEMA, "t").take(piece, BEGINNING) for piece in found]
    assert [(seen.partition, seen.rows, seen.promise) for t in taken for seen in t.seen] == [
        ("a", 1, BEGINNING),
        ("", 0, 7),
        ("", 1, 8),
        ("", 0, INFINITY),
    ]
    with pytest.raises(InputError, match="SOURCE_ENDED"):
        source.push([(1, 1)])


def test_polls_take_whole_pushes_up_to_about_so_many_rows():
    source = MemorySource(SCHEMA)
    for i in range(5):
        source.push([(i, i), (i, i)])
    polled = source.poll(None, 5)
    assert (len(polled.splits), polled.offset, polled.finished) == (2, {"next": 2}, False)
    source.end()
    assert source.poll(polled.offset, 100).finished


def test_deltas_for_a_stream_without_a_time_column():
    schema = Schema.of(x="BIGINT")
    source = MemorySource(schema)
    rows = [((1,), 1, 8, 1), ((1,), 1, 8, -1), ((1,), 1, 5, 1)]
    source.push(Delta.from_rows(schema, rows), frontier=2)
    source.push([{"x": 7, "_start": 3, "_end": None}])
    first, second = pieces(source)
    assert Intake("s", schema).take(first, 0).delta.rows() == rows
    assert Intake("s", schema).take(second, 0).delta.rows() == [((7,), 3, INFINITY, 1)]


def test_a_folder_of_ones_own_survives(tmp_path: Path):
    MemorySource(SCHEMA, folder=tmp_path).push([(1, 1)])
    again = MemorySource(SCHEMA, folder=tmp_path)
    again.push([(2, 2)])
    assert [p.rows.column("x").to_pylist() for p in pieces(again)] == [[1], [2]]
    assert again.durable


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("text", "BAD_ROWS: cannot take rows from str"),
        (None, "BAD_ROWS: cannot take rows from NoneType"),
        ({"x": 1, "t": 2}, "BAD_ROWS: cannot take rows from one dict"),
        ([{"x": 1, "t": 2}, {"y": 1}], 'UNKNOWN_COLUMN: row 2: the stream has no column "y"'),
        ([{1: 1}], "UNKNOWN_COLUMN: row 1: the stream has no column 1"),
        ([{None: 1}], "UNKNOWN_COLUMN: row 1: the stream has no column None"),
        ([(1, 2), (1,)], "BAD_ROWS: row 2 has 1 values, not 2"),
        ([{"x": 1}, (1, 2)], "BAD_ROWS: row 2 is no row: (1, 2) is not a dict like the others"),
        ([1, 2], "BAD_ROWS: row 1 is no row: 1 is not a dict or a tuple"),
        (["ab"], "BAD_ROWS: row 1 is no row: 'ab' is not a dict or a tuple"),
        ([(1, 2), None], "BAD_ROWS: row 2 is no row: None is not a dict or a tuple"),
        ([{"x": 1, "X": 2}], 'UNKNOWN_COLUMN: row 1: the stream has no column "X"'),
        (pd.DataFrame({"x": [1, "a"]}), "BAD_ROWS: cannot take rows from this DataFrame"),
    ],
)
def test_mistakes(rows, message: str):
    with pytest.raises(InputError, match=message.split(":", maxsplit=1)[0]) as caught:
        MemorySource(SCHEMA).push(rows)
    assert message in str(caught.value)


def test_keys_are_found_without_regard_to_case_row_by_row():
    source = MemorySource(Schema.of(userId="BIGINT", t="BIGINT"))
    source.push([{"userid": 1, "T": 2}, {"USERID": 3, "t": 4}, {"userId": 5, "t": 6}])
    (piece,) = pieces(source)
    assert piece.rows.to_pylist() == [{"userId": 1, "t": 2}, {"userId": 3, "t": 4}, {"userId": 5, "t": 6}]
    with pytest.raises(InputError, match='AMBIGUOUS_COLUMN: row 1: column "userId" may be any of userid, USERID'):
        source.push([{"userid": 1, "USERID": 2, "t": 1}])


def test_values_of_different_types_are_judged_row_by_row():
    source = MemorySource(SCHEMA)
    source.push([(1, 1), ("a", 2), (2**70, 3), (None, 4)])
    (piece,) = pieces(source)
    taken = Intake("s", SCHEMA, "t", bad="divert").take(piece, BEGINNING)
    assert taken.delta.start.tolist() == [1, 4]
    assert taken.bad.reason.to_pylist() == [
        'column "x" is BIGINT, which "a" is not',
        'column "x" is BIGINT, which "1180591620717411303424" is not',
    ]


# -- sockets ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def server():
    """Sends what it is given once somebody connects."""
    started: list[socketserver.TCPServer] = []

    def serve(text: bytes) -> int:
        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                self.request.sendall(text)

        server = socketserver.TCPServer(("127.0.0.1", 0), Handler)
        started.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server.server_address[1]

    yield serve
    for each in started:
        each.shutdown()
        each.server_close()


@pytest.mark.parametrize(
    ("format_", "text", "rows", "bad"),
    [
        ("csv", b"1,5\nx,6\n\n2,7\n", [(1, 5), (2, 7)], ["x,6"]),
        ("json", b'{"x":1,"t":5}\n{\n{"t":6}\n', [(1, 5), (None, 6)], ["{"]),
    ],
)
def test_lines_of_a_socket(server, format_: str, text: bytes, rows: list, bad: list):
    source = SocketSource("127.0.0.1", server(text), SCHEMA, format=format_, malformed="divert")
    offset = source.poll(None, 0).offset
    assert source.wait(10)
    (piece,) = pieces(source, offset)
    assert [tuple(r.values()) for r in piece.rows.to_pylist()] == rows
    assert piece.bad.raw.to_pylist() == bad
    polled = source.poll({"next": 3 if format_ == "json" else 4}, 10)
    assert polled.finished
    assert polled.splits == []


def test_whole_lines_of_a_socket(server):
    source = SocketSource("127.0.0.1", server(b"one, two\nthree\n"), Schema.of(line="STRING"))
    source.poll(None, 0)
    source.wait(10)
    (piece,) = pieces(source)
    assert piece.rows.to_pylist() == [{"line": "one, two"}, {"line": "three"}]


def test_nobody_listens():
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as closed:
        port = closed.server_address[1]
    with pytest.raises(InputError, match="UNREACHABLE: could not connect"):
        SocketSource("127.0.0.1", port, SCHEMA, format="csv").poll(None, 1)
