"""The end of Spark: a command that started it leaves no process behind."""

from __future__ import annotations

import subprocess
import sys

_PATIENCE = 20.0


def kill_spark() -> None:
    """End the JVM that this process started at once, in the middle of whatever it does."""
    if "pyspark" in sys.modules:
        from pyspark import SparkContext

        process = getattr(SparkContext._gateway, "proc", None)
        if process is not None:
            process.kill()


def end_spark(patience: float = _PATIENCE) -> None:
    """Wait until the JVM that this process started is gone, and with it the workers. All engines must be closed.

    A stopped Spark keeps its JVM for the next one; it would end by itself only some time after this process has.
    """
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None or SparkContext._active_spark_context is not None:
        return
    process = getattr(gateway, "proc", None)
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    if process is None:
        return
    process.stdin.close()  # the JVM waits for this
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
