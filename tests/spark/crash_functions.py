"""Functions that fail in a task of Spark's, while there is a file that says so."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext


def fail(x: pa.Array, folder: pa.Array) -> pa.Array:
    if _is_armed(folder):
        raise ValueError("a failure on purpose")
    return x


def kill(x: pa.Array, folder: pa.Array) -> pa.Array:
    if _is_armed(folder):
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def _is_armed(folder: pa.Array) -> bool:
    return TaskContext.get() is not None and len(folder) > 0 and (Path(folder[0].as_py()) / "armed").exists()
