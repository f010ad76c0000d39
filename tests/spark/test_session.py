"""The session: made or taken up, with the settings of ticks and without changing the user's."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from headwater.errors import HeadwaterError
from headwater.runtime.spark.session import SessionHandle, open_session, tick_settings


def test_a_tick_crosses_into_this_interpreter_as_arrow(spark):
    def describe(batches):
        import os
        import sys

        import pyarrow as pa

        import headwater

        for batch in batches:
            rows = batch.num_rows
            yield pa.RecordBatch.from_pydict(
                {
                    "rows": [rows],
                    "python": [sys.executable],
                    "package": [headwater.__file__],
                    "malloc": [os.environ.get("MALLOC_TOP_PAD_")],
                }
            )

    schema = "rows long, python string, package string, malloc string"
    found = spark.range(250_000, numPartitions=2).mapInArrow(describe, schema).toArrow()
    import headwater

    assert found["rows"].to_pylist() == [125_000, 125_000]  # one batch each
    assert set(found["python"].to_pylist()) == {sys.executable}
    assert set(found["package"].to_pylist()) == {headwater.__file__}
    assert set(found["malloc"].to_pylist()) == {"67108864"}
