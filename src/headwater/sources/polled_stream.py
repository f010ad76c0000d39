"""A source that can be polled as a streaming DataFrame of its splits: a Python data source of Spark's.

Spark asks for what is new before each micro-batch, writes the offset down and asks for the same range again after a crash.
"""

from __future__ import annotations

import base64
import json
import pickle
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

from headwater.sources.base import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_NAME = "headwater_splits"


def polled_splits(spark: SparkSession, source: Source, rows_per_tick: int) -> DataFrame:
    """The splits of a source, polled for at most so many rows a micro-batch. The source must be picklable."""
    spark.dataSource.register(PolledDataSource)
    pickled = base64.b64encode(pickle.dumps(source)).decode("ascii")
    return spark.readStream.format(_NAME).option("source", pickled).option("rows", str(rows_per_tick)).load()


class PolledDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> str:
        return "split STRING"

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802 - Spark's name
        sys.excepthook = _without_broken_pipes
        source = pickle.loads(base64.b64decode(self.options["source"]))
        return _PolledReader(source, int(self.options["rows"]))


def _without_broken_pipes(kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
    """Spark ends the process that polls by closing its socket, and PySpark would print a traceback about that."""
    if not issubclass(kind, ConnectionError):
        sys.__excepthook__(kind, problem, trace)


class _PolledReader(SimpleDataSourceStreamReader):
    def __init__(self, source: Source, rows: int) -> None:
        self._source, self._rows = source, rows

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Polling for nothing says where the source begins."""
        return {"offset": json.dumps(self._source.poll(None, 0).offset)}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[str]], dict[str, Any]]:
        polled = self._source.poll(json.loads(start["offset"]), self._rows)
        return iter([(json.dumps(s),) for s in polled.splits]), {"offset": json.dumps(polled.offset)}

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[str]]:  # noqa: N802
        """After a crash: exactly what lies between the two."""
        splits = self._source.between(json.loads(start["offset"]), json.loads(end["offset"]))
        return iter([(json.dumps(s),) for s in splits])
