"""Lines of text from a TCP connection: whole lines as one column, or CSV or JSON with the declared columns.

Nothing that was sent is sent again after a crash: for demonstrations and tests.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import frozen

from headwater.errors import InputError
from headwater.model.schema import Schema
from headwater.sources.base import Malformed, Parser, Piece, Polled, Reader, Source, Split
from headwater.sources.csv_text import CsvText, ParsedText
from headwater.sources.json_text import JsonText
from headwater.sources.malformed import bad_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@frozen
class LineParser(Parser, Reader):
    """Lines to rows, whether they come as rows of Spark or inside a split."""

    text: CsvText | JsonText | None
    """None: the line itself is the one column."""
    schema: Schema
    where: str

    def parse(self, rows: pa.RecordBatch) -> Piece:
        lines = rows.column(0)
        if self.text is None:
            return Piece(pa.RecordBatch.from_arrays([lines], names=list(self.schema.names)), where=self.where)
        block = pa.py_buffer("\n".join(filter(None, lines.to_pylist())).encode())
        if isinstance(self.text, CsvText):
            found = self.text.parse(block, self.schema.names)
        else:
            found = self.text.parse(block)
        return self._piece(found)

    def read(self, split: Split, columns: Collection[str] | None = None) -> Iterator[Piece]:
        yield self.parse(pa.RecordBatch.from_arrays([pa.array(split["lines"], pa.string())], names=["value"]))

    def _piece(self, found: ParsedText) -> Piece:
        if found.reason is None or found.raw is None:
            return Piece(found.rows, where=self.where)
        return Piece(found.rows, bad_rows(self.where, None, found.reason, found.raw), where=self.where)


class SocketSource(Source):
    """Connects to a server that sends lines, and reads until it closes the connection."""

    durable = False

    def __init__(
        self,
        host: str,
        port: int,
        schema: Schema,
        *,
        format: str = "text",
        delimiter: str = ",",
        malformed: Malformed = "fail",
    ) -> None:
        self.host, self.port, self.schema, self.malformed = host, port, schema, malformed
        texts = {"csv": CsvText(schema, delimiter), "json": JsonText(schema), "text": None}
        # Spark brings lines as rows, which are parsed; in this process lines are splits, which are read.
        self.parser = self.reader = LineParser(texts[format], schema, f"{host}:{port}")
        self._lines: list[str] = []
        self._first = 0
        """The number of the first line that is still kept."""
        self._closed = False
        self._changed = threading.Condition()
        self._receiver: threading.Thread | None = None

    def rows(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.format("socket").option("host", self.host).option("port", self.port).load()

    def poll(self, offset: Any, rows: int) -> Polled:
        """Connects when first asked. Lines before the offset are forgotten."""
        self._connect()
        with self._changed:
            start = max(offset["next"] if offset is not None else 0, self._first)
            del self._lines[: start - self._first]
            self._first = start
            lines = self._lines[:rows]
            end = start + len(lines)
            finished = self._closed and len(lines) == len(self._lines)
        return Polled([{"lines": lines}] if lines else [], {"next": end}, finished=finished)

    def split_rows(self, split: Split) -> int:
        return len(split["lines"])

    def wait(self, lines: int, timeout: float = 10) -> bool:
        """Until so many lines have come in all, or the connection is closed."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or self._first + len(self._lines) >= lines, timeout)

    def _connect(self) -> None:
        if self._receiver is not None:
            return
        try:
            connection = socket.create_connection((self.host, self.port), timeout=10)
        except OSError as problem:
            message = f'could not connect to "{self.host}:{self.port}": {problem.strerror or problem}'
            raise InputError(
                "UNREACHABLE", message, hint="Start the server first; for example: nc -lk 9999."
            ) from problem
        connection.settimeout(None)
        self._receiver = threading.Thread(
            target=self._receive, args=(connection,), daemon=True, name="headwater-socket"
        )
        self._receiver.start()

    def _receive(self, connection: socket.socket) -> None:
        with connection, connection.makefile("r", encoding="utf-8", errors="replace", newline="\n") as stream:
            for line in stream:
                with self._changed:
                    self._lines.append(line.rstrip("\r\n"))
                    self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __repr__(self) -> str:
        return f"socket({self.host!r}, {self.port})"
