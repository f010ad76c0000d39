"""A Delta table, through the package ``deltalake``. Exactly once.

The table itself remembers the last tick: each commit carries it as the version of a transaction of its own (``txn`` in the
log, with the query's name as its application), so rows and tick arrive together or not at all.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.errors import InputError
from headwater.model.types import sql_name
from headwater.sinks.base import Guarantee, Output, Sink, Staged, Stager
from headwater.sinks.folder import Folder
from headwater.sinks.joining import SMALL
from headwater.sinks.parts import TableStager, batches
from headwater.sinks.tables import arrow_schema, check_names

log = logging.getLogger("headwater")


class DeltaSink(Sink):
    """Appends to a Delta table, one commit per tick that has rows."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        partition_by: Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
        compact: int = 0,
    ) -> None:
        self.place = str(Folder(place))
        self.partition_by = list(partition_by)
        self.storage_options = dict(storage_options or {}) or None
        self.last_tick = -1
        self.compact, self._commits = compact, 0

    def open(self, output: Output) -> None:
        super().open(output)
        check_names(output)
        deltalake = _package()
        self._check_partitions()
        self._application = (
            f"headwater/{output.query}/{output.origin}" if output.origin else f"headwater/{output.query}"
        )
        # The table is there from the start, so that it can be read before the first row comes.
        table = deltalake.DeltaTable.create(
            self.place,
            schema=arrow_schema(output),
            mode="ignore",
            partition_by=self.partition_by or None,
            storage_options=self.storage_options,
        )
        self._check_columns(table)
        last = table.transaction_version(self._application)
        self.last_tick = -1 if last is None else last

    def stager(self) -> Stager:
        return TableStager(self.output)

    def deliver(self, tick: int, parts: Sequence[Staged], frontier: int) -> None:
        if tick <= self.last_tick or not parts:
            return
        from deltalake import CommitProperties, Transaction, write_deltalake

        schema = arrow_schema(self.output)
        rows = pa.RecordBatchReader.from_batches(schema, batches(parts, schema))
        done = CommitProperties(app_transactions=[Transaction(self._application, tick)])
        write_deltalake(
            self.place,
            rows,
            mode="append",
            partition_by=self.partition_by or None,
            storage_options=self.storage_options,
            commit_properties=done,
        )
        self.last_tick = tick
        self._commits += 1
        if self.compact and self._commits >= self.compact:
            compact_table(self.place, self.storage_options)
            self._commits = 0

    def describe(self) -> dict[str, Any]:
        return {"sink": "delta", "path": self.place, "delivery": str(self.guarantee)}

    def _check_partitions(self) -> None:
        names = arrow_schema(self.output).names
        for name in self.partition_by:
            if name not in names:
                raise InputError(
                    "UNKNOWN_COLUMN",
                    f'cannot partition by "{name}": "{self.output.query}" has no such column',
                    hint=f"The columns are {', '.join(names)}.",
                )

    def _check_columns(self, table: Any) -> None:
        theirs, mine = pa.schema(table.schema().to_arrow()), arrow_schema(self.output)
        if set(_named(theirs)) != set(_named(mine)):
            raise InputError(
                "TABLE_OF_ANOTHER",
                f'the table "{self.place}" has other columns than "{self.output.query}"',
                detail=f"They are {', '.join(_named(theirs))} there, and {', '.join(_named(mine))} here.",
                hint="Write into a new table, or change the SELECT.",
            )


def compact_table(place: str, storage_options: Mapping[str, str] | None = None) -> tuple[int, int]:
    """Let small files of a table become few; how many there were and are. Whoever reads an older version finds its files.

    Where somebody else has changed the same files at the same time, it is left to the next time: nothing is lost.
    """
    deltalake = _package()
    from deltalake.exceptions import CommitFailedError

    table = deltalake.DeltaTable(place, storage_options=dict(storage_options or {}) or None)
    before = len(table.file_uris())
    try:
        table.optimize.compact(target_size=SMALL)
    except CommitFailedError as problem:
        log.warning('the files of "%s" stay as many as they are: %s', place, problem)
    table.update_incremental()
    return before, len(table.file_uris())


def _named(schema: pa.Schema) -> list[str]:
    return [f"{field.name} {sql_name(field.type)}" for field in schema]


def _package() -> Any:
    try:
        import deltalake
    except ImportError as problem:
        raise InputError(
            "PACKAGE_MISSING",
            "Delta tables need the package deltalake",
            hint="Install it with: pip install 'headwater[delta]'",
        ) from problem
    return deltalake
