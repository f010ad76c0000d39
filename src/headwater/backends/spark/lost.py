"""When the JVM of Spark has ended under a running engine: one sentence about it, instead of py4j's many."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from pyspark import SparkContext

_PY4J = f"{os.sep}py4j{os.sep}"
_PATIENCE = 2.0
"""Seconds in which a process whose connections are closed has ended, if it is going to."""


def in_a_word(problem: BaseException) -> BaseException:
    """The problem, or if it comes from the end of Spark's JVM, that."""
    return _ended() if _comes_from_the_end(problem) else problem


@contextmanager
def calling_spark() -> Iterator[None]:
    """Around calls into the JVM."""
    try:
        yield
    except Exception as problem:
        told = in_a_word(problem)
        if told is problem:
            raise
        raise told from None


def forget_spark() -> None:
    """Spark's JVM is gone: what Python remembers of it would keep another one from starting."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext._active_spark_context
    if context is not None:
        context._jsc = None
        server, context._accumulatorServer = context._accumulatorServer, None
        if server is not None:
            server.shutdown()
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def has_ended() -> bool:
    """Is the JVM that this process started gone?"""
    if "pyspark" not in sys.modules:
        return False
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def _comes_from_the_end(problem: BaseException) -> bool:
    if isinstance(problem, HeadwaterError) or "py4j" not in sys.modules:
        return False
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark import SparkContext

    if not isinstance(problem, Py4JError | ConnectionError | EOFError) or isinstance(problem, Py4JJavaError):
        return False
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return not isinstance(problem, EOFError)  # somebody else has started it: nobody can be asked
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        return False
    return True


def _ended() -> HeadwaterError:
    return HeadwaterError(
        "SPARK_ENDED",
        "the JVM of Spark has ended under the running engine",
        detail="It crashed or was killed, perhaps for want of memory.",
        hint="Nothing is lost that was committed: start again with the same checkpoint, and it goes on from there.",
    )


def tell_once(context: SparkContext) -> None:
    """When a JVM ends, py4j and PySpark print a traceback for each connection; whoever called says what matters."""
    for logger in map(logging.getLogger, (None, "py4j.java_gateway", "py4j.clientserver")):
        if not any(isinstance(known, _NotOfPy4j) for known in logger.filters):
            logger.addFilter(_NotOfPy4j())
    server: Any = context._accumulatorServer
    report = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            report(request, address)

    server.handle_error = handle_error


class _NotOfPy4j(logging.Filter):
    """Leaves out what py4j says of connections that were closed."""

    def filter(self, record: logging.LogRecord) -> bool:
        problem = record.exc_info[1] if record.exc_info else None
        from py4j.protocol import Py4JNetworkError

        return not (_PY4J in record.pathname and isinstance(problem, Py4JNetworkError | OSError))
