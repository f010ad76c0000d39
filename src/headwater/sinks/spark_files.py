"""Parquet files that Spark writes by itself: what a sink stages when no row of the answer enters Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.expressions.spark_values import quoted
from headwater.model.schema import END, START
from headwater.model.time import INFINITY
from headwater.sinks.base import Output
from headwater.sinks.folder import Folder
from headwater.sinks.tables import INSERT, NEW_END, OP, TICK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SCHEMES = {"s3": "s3a"}
"""Where Spark's name of a file system is not pyarrow's."""


def spark_path(path: str) -> str:
    scheme, separator, rest = path.partition("://")
    return f"{_SCHEMES.get(scheme, scheme)}{separator}{rest}" if separator else f"file://{path}"


def write_parquet(frame: DataFrame, folder: Folder, compression: str = "snappy") -> list[str]:
    """The names of the files in the folder, which must be new."""
    codec = {"lz4": "lz4_raw"}.get(compression, compression)
    frame.write.option("compression", codec).parquet(spark_path(str(folder)))
    return [name for name in folder.names() if name.endswith(".parquet") and not name.startswith(("_", "."))]


def as_delivered(frame: DataFrame, output: Output, tick: int) -> DataFrame:
    """Rows that only ever come, with the columns of ``tables.arrow_schema``."""
    columns = [
        f"CAST({quoted(name)} AS TIMESTAMP_NTZ) AS {quoted(name)}" if type_ == "timestamp" else quoted(name)
        for name, type_ in frame.select(*map(quoted, output.schema.names)).dtypes
    ]
    times = [f"{_instant(output, name)} AS {name}" for name in (START, END)]
    if not output.changelog:
        return frame.selectExpr(*columns, *times)
    nothing = "TIMESTAMP_NTZ" if output.timestamps else "BIGINT"
    return frame.selectExpr(
        f"'{INSERT}' AS {OP}", *columns, *times, f"CAST(NULL AS {nothing}) AS {NEW_END}", f"{tick}L AS {TICK}"
    )


def _instant(output: Output, name: str) -> str:
    number = f"nullif({name}, {INFINITY}L)" if name == END else name
    return f"CAST(timestamp_micros({number}) AS TIMESTAMP_NTZ)" if output.timestamps else number
