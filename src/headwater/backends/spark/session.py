"""The Spark session that an engine runs on: made here, or the user's own."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

import headwater
from headwater.backends.spark import ship
from headwater.backends.spark.class_archive import find_archive, options_for
from headwater.backends.spark.java import find_java, home_for_spark
from headwater.backends.spark.lost import forget_spark, has_ended, tell_once
from headwater.backends.spark.sealed_errors import Seal
from headwater.errors import HeadwaterError, InputError
from headwater.expressions.spark import SETTINGS

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_BATCH_ROWS = 1_000_000
"""Rows of an Arrow batch that crosses into Python: a crossing costs by the batch as well as by the row."""

_MALLOC = {
    # The workers keep the memory of large arrays instead of handing it back and asking for it again in every tick.
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_TOP_PAD_": "67108864",
}

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_STACK = "-Xss16m"
"""A stream that is stopped looks through the text of its last exception by a recursive pattern: a kilobyte per character."""

_lock = threading.RLock()
_handles: dict[str, int] = {}
"""How many handles are open on each Spark application that was started here."""


@define(eq=False)
class SessionHandle:
    """A Spark session as an engine uses it."""

    spark: SparkSession
    owned: bool
    """Spark was started here, so it ends when the last handle on it is stopped."""
    local: bool
    """The driver and all tasks are on one machine: they see the same files."""
    shards: int
    """Into how many parts keys are split."""
    seal: Seal = field(factory=Seal, init=False, repr=False)
    """How the errors of its tasks are told from texts that look like them."""
    _stopped: bool = field(default=False, init=False)
    _application: str = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._application = str(self.spark.sparkContext.applicationId)

    def prepare(self, spark: SparkSession) -> SparkSession:
        """Give another session the settings of a tick (Spark runs ``foreachBatch`` in a session of its own)."""
        for name, value in tick_settings(self.shards).items():
            spark.conf.set(name, value)
        return spark

    def stop(self) -> None:
        """End Spark if it was started here and nobody else uses it; more than once does no harm."""
        with _lock:
            if self._stopped:
                return
            self._stopped = True
            if not self.owned:
                return
            name = self._application
            _handles[name] -= 1
            if not _handles[name]:
                del _handles[name]
                forget_spark() if has_ended() else self.spark.stop()

    def __enter__(self) -> SessionHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def open_session(
    master: str | None = None,
    spark: SparkSession | None = None,
    *,
    shards: int | None = None,
    app_name: str = "headwater",
    config: Mapping[str, str] | None = None,
) -> SessionHandle:
    """A session to run ticks on.

    Parameters
    ----------
    master
        Where Spark runs: ``local[4]``, ``spark://host:7077``, …; all cores of this machine if nothing is said.
    spark
        A session that runs already. Its settings stay as they are: ticks run in a session beside it, on the same executors.
        The Spark that runs in this process is taken up without being named.
    shards
        Into how many parts keys are split; as many as Spark has cores if nothing is said.
    app_name
        How Spark calls the application.
    config
        More Spark settings; they win over those made here.

    Examples
    --------
    >>> with open_session("local[2]") as session:  # doctest: +SKIP
    ...     session.shards
    2
    """
    if shards is not None and shards < 1:
        raise InputError("BAD_SHARDS", f"cannot split keys into {shards} shards", hint="Give 1 or more.")
    config = dict(config or {})
    with _lock:
        found = spark or _running()
        if found is None:
            session, owned = _start(master, app_name, config), True
        else:
            _check_adoptable(found, master if spark is None else None)
            session, owned = found.newSession(), str(found.sparkContext.applicationId) in _handles
        context = session.sparkContext
        try:
            return _handle(session, owned, shards, config)
        except BaseException:
            if found is None:
                context.stop()
            raise


def _handle(session: SparkSession, owned: bool, shards: int | None, config: Mapping[str, str]) -> SessionHandle:
    context = session.sparkContext
    local = ship.is_local(context)
    if not owned:
        _use_this_python(context, local)
    if not local:
        _await_executors(context)
    handle = SessionHandle(session, owned, local, shards or context.defaultParallelism)
    handle.prepare(session)
    for name, value in config.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    if not (owned and local):
        ship.provide_package(session)
    if owned:
        tell_once(context)
        name = str(context.applicationId)
        _handles[name] = _handles.get(name, 0) + 1
    return handle


def tick_settings(shards: int) -> dict[str, str]:
    """What ticks need of a session; nothing here changes an answer of Spark."""
    return {
        # Every tick has the same plan and one partition per shard: there is nothing to adapt, and asking costs time.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(shards),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_BATCH_ROWS),
        # With any other limit Spark measures the whole batch again for every row of it, as long as it has lists.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    }


def _running() -> SparkSession | None:
    """The session of this process, if it has one."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # `_active_spark_context` is what SparkSession.builder.getOrCreate() asks as well.
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return None
    return SparkSession.getActiveSession() or SparkSession(context)


def _check_adoptable(spark: Any, master: str | None) -> None:
    if not hasattr(spark, "_jsparkSession"):
        raise HeadwaterError(
            "CONNECT_SESSION",
            "cannot run on a session of Spark Connect",
            detail="Ticks are run by the driver of Spark, and a Spark Connect session has it in another process.",
            hint="Make the session with a master, for example spark://host:7077, instead of a remote address.",
        )
    if spark.sparkContext._jsc is None:
        raise HeadwaterError(
            "SPARK_STOPPED", "cannot run on a Spark session that was stopped", hint="Make a new one, or let it be made."
        )
    if master is not None and master != spark.sparkContext.master:
        raise HeadwaterError(
            "SPARK_RUNNING",
            f'cannot start Spark on "{master}": it runs on "{spark.sparkContext.master}" in this process',
            detail="A process has one Spark at most.",
            hint="Stop that one first, or leave the master out to use it.",
        )


def _start(master: str | None, app_name: str, config: Mapping[str, str]) -> SparkSession:
    master = master or "local[*]"
    if master.startswith("sc://"):
        _check_adoptable(None, None)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    java = find_java()
    settings = _start_settings(master) | dict(config)
    options = (_quiet_logging(), _STACK, options_for(find_archive(java)), config.get(_JAVA_OPTIONS))
    settings[_JAVA_OPTIONS] = " ".join(filter(None, options))
    builder = SparkSession.builder.master(master).appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    python = settings["spark.pyspark.python"]
    names = {"JAVA_HOME": str(home_for_spark(java)), "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    try:
        with _environment(names):
            return builder.getOrCreate()
    except (PySparkRuntimeError, Py4JError) as problem:
        reason = re.search(r"Exception: (.+)", str(problem))
        raise HeadwaterError(
            "SPARK_START",
            f'could not start Spark on "{master}"',
            detail=f"{reason[1] if reason else problem} (with {java})",
            hint="See what it printed before this." if isinstance(problem, PySparkRuntimeError) else "",
        ) from problem


def _start_settings(master: str) -> dict[str, str]:
    """What can only be said before Spark starts."""
    local = master.startswith("local")
    settings = {
        "spark.pyspark.python": sys.executable if local else os.environ.get("PYSPARK_PYTHON", sys.executable),
        "spark.driver.memory": _driver_memory(),
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
        "spark.python.worker.faulthandler.enabled": "true",
        # A tick is short: a task must not wait seconds for the machine that it would like best.
        "spark.locality.wait": "0s",
        # Jobs follow each other for days: remember the last ones only.
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "50",
        **{f"spark.executorEnv.{name}": value for name, value in _MALLOC.items()},
    }
    if local:
        settings |= {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # The workers find the package where the driver found it.
            "spark.executorEnv.PYTHONPATH": str(package_folder()),
        }
    return settings


def package_folder() -> Path:
    """The folder on Python's path that holds this package."""
    return Path(headwater.__file__).resolve().parents[1]


def _quiet_logging() -> str:
    return f'"-Dlog4j2.configurationFile={Path(__file__).resolve().with_name("log4j2.properties")}"'


def _driver_memory() -> str:
    """An eighth of the machine, between 1 and 4 GB: what is large is in Arrow and in files, outside the heap."""
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return f"{min(max(megabytes // 8, 1024), 4096)}m"


@contextmanager
def _environment(names: Mapping[str, str]) -> Iterator[None]:
    """Set for the processes that start meanwhile."""
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _use_this_python(context: SparkContext, local: bool) -> None:
    """On one machine the workers of a session that was given run the interpreter of the driver, whatever ``python3`` is."""
    if not local:
        return
    worker = shutil.which(context.pythonExec)
    if worker is None or Path(worker).absolute() != Path(sys.executable).absolute():
        context.pythonExec = sys.executable
    ship.add_python_path(context, package_folder())


def _await_executors(context: SparkContext, *, quiet: float = 1.0, patience: float = 60.0) -> None:
    """Wait until executors have registered and no more come, as the number of shards follows the number of cores."""
    java_context: Any = context._jsc
    tracker = java_context.sc().statusTracker()
    end = time.monotonic() + patience
    count, changed = 0, time.monotonic()
    while time.monotonic() < end:
        now = len(tracker.getExecutorInfos()) - 1  # the driver is one of them
        if now != count:
            count, changed = now, time.monotonic()
        elif count and time.monotonic() - changed >= quiet:
            return
        time.sleep(0.1)
    if not count:
        raise HeadwaterError(
            "NO_EXECUTORS",
            f'no executor came up within {patience:.0f} seconds on "{context.master}"',
            hint="Look at the cluster: are its workers alive, and do they have free cores and memory?",
        )


def suits(session: SparkSession) -> bool:
    """Do expressions mean in this session what they must?"""
    return all(str(session.conf.get(name)).upper() == value.upper() for name, value in SETTINGS.items())
