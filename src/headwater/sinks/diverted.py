"""Rows that no query took: late and malformed ones, kept as Parquet files under the checkpoint until somebody looks.

``<checkpoint>/diverted/<stream>/tick-00000012.parquet``; the stream is the one they were diverted into.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import pyarrow as pa

from headwater.result import Result
from headwater.sinks.base import Staged
from headwater.sinks.file_formats import ParquetFormat
from headwater.sinks.folder import Folder
from headwater.sinks.parts import batches
from headwater.sinks.tables import TICK
from headwater.state.folder_names import folder_name, name_of_folder

_FOLDER = "diverted"
_NAME = re.compile(r"tick-(\d+)\.parquet")


def deliver_diverted(checkpoint: str | os.PathLike[str], stream: str, tick: int, parts: Sequence[Staged]) -> None:
    """Keep what a committed tick diverted into a stream (parts of ``stage_table``); a second time it does nothing."""
    if not parts:
        return
    folder, name = _place(checkpoint, stream), f"tick-{tick:08d}.parquet"
    if folder.exists(name):
        return
    folder.make()
    unfinished = f"_{name}.new"
    with folder.writing(unfinished) as stream_:
        ParquetFormat().write(pa.Table.from_batches(list(batches(parts))), stream_)
    folder.move(unfinished, name)


def read_diverted(checkpoint: str | os.PathLike[str], stream: str) -> Result:
    """All rows that were diverted into a stream, in the order of the ticks, with ``_tick``; without any, no columns.

    Where a column has become wider meanwhile, it has the widest of its types.
    """
    import pyarrow.parquet as pq

    folder = _place(checkpoint, stream)
    tables = []
    for name in folder.names():
        found = _NAME.fullmatch(name)
        if found:
            with folder.opened(name) as file:
                rows = pq.read_table(file)
            ticks = pa.repeat(pa.scalar(int(found[1]), pa.int64()), rows.num_rows)
            tables.append(rows.append_column(TICK, ticks))
    return Result(pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({}))


def diverted_streams(checkpoint: str | os.PathLike[str]) -> list[str]:
    """The streams into which anything was diverted."""
    return sorted(name_of_folder(name) for name in (Folder(checkpoint) / _FOLDER).names())


def _place(checkpoint: str | os.PathLike[str], stream: str) -> Folder:
    return Folder(checkpoint) / _FOLDER / folder_name(stream)
