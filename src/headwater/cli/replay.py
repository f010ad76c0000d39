"""``headwater replay``: a script over recorded streams, in this process or on Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwater.language.script import Script
from headwater.runtime.replay import replay

_SHARDS_ON_SPARK = 2


def replayed(script: Script, recording: Path, *, runner: str, shards: int | None, **options: Any) -> list[str]:
    """The lines of the answer, the same wherever it runs."""
    if runner == "inprocess":
        return replay(script, recording, shards=shards or 1, **options)
    with _on_spark(shards or _SHARDS_ON_SPARK) as place:
        return replay(script, recording, **place, **options)


@contextmanager
def _on_spark(shards: int) -> Iterator[dict[str, Any]]:
    """Where a recording runs: Spark, with the state in a folder that does not outlive it."""
    from headwater.backends.spark.farewell import end_spark
    from headwater.backends.spark.job import SparkExecutor
    from headwater.backends.spark.session import open_session

    try:
        with open_session(shards=shards) as session, tempfile.TemporaryDirectory(prefix="headwater-") as made:
            folder = Path(made)
            executor = SparkExecutor(session)
            yield {"shards": shards, "executor": executor, "folder": folder}
    finally:
        end_spark()
