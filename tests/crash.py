"""Processes that die at a named moment, as by ``kill -9``: to see what is left of them, and how the next one goes on.

    ended = in_child(run_my_engine, folder, crash=Crash("after the manifest", count=3))
    assert ended.killed

The moments are those of ``headwater.runtime.points``.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, NamedTuple

from attrs import asdict, frozen

from headwater.runtime import points

ANY_POINT = "at any point"
ANY_CALL = "at any call"
"""Not a point: the count is one of all calls of functions in Python, so this is any moment at all."""

_CRASH = "HEADWATER_CRASH"
_preloaded = [
    "headwater.engine",
    "headwater.sources.connectors",
    "headwater.sinks.file_sink",
    "tests.crash",
]


def preload(*modules: str) -> None:
    """Let the server import these as well. Before the first child."""
    _preloaded.extend(m for m in modules if m not in _preloaded)


@frozen
class Crash:
    """A death, or a mistake, at the ``count``-th time that a process comes to a moment."""

    at: str
    count: int = 1
    how: Literal["kill", "kill the driver", "raise"] = "kill"
    """The process itself; from one of its tasks on Spark, the driver; or an error, as any task may have one."""
    once: str = ""
    """A file that the first process to die makes: others, and the same task when it is tried again, pass."""


class Ended(NamedTuple):
    """How a child came to its end."""

    killed: bool
    value: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        """What it returned, if it got so far."""
        if self.error is not None:
            raise self.error
        assert not self.killed, "the process was killed"
        return self.value


def in_child(
    function: Callable[..., Any],
    *args: Any,
    crash: Crash | None = None,
    after: float | None = None,
    patience: float = 300.0,
    **options: Any,
) -> Ended:
    """Run a function of an importable module in a process of its own.

    ``crash``: where it is killed; ``after``: killed after so many seconds, wherever it is then. Children are forked from a
    server that has everything imported and has no threads yet, so one costs a few milliseconds.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_preloaded)
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(there, os.getcwd(), crash, function, args, options))
    with _path_told():
        process.start()
    there.close()
    try:
        process.join(patience if after is None else after)
        if process.is_alive() and after is None:
            raise TimeoutError(f"the child did not end within {patience:g} seconds")
    finally:
        if process.is_alive():
            process.kill()
            process.join()
    return _ended(process.exitcode, here)


@contextmanager
def _path_told() -> Iterator[None]:
    """The server, which the first child starts, looks for modules where this process does."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def _ended(exit_code: int | None, answers: Connection) -> Ended:
    with suppress(EOFError):
        kind, value = answers.recv()
        return Ended(False, value) if kind == "value" else Ended(False, error=value)
    if exit_code == -signal.SIGKILL:
        return Ended(True)
    return Ended(False, error=RuntimeError(f"the child ended with {exit_code} and said nothing"))


def _child(
    answers: Connection, folder: str, crash: Crash | None, function: Callable[..., Any], args: Any, options: Any
) -> None:
    os.chdir(folder)
    if crash is not None:
        _arm(crash)
    try:
        answers.send(("value", function(*args, **options)))
    except BaseException as problem:
        problem.add_note(traceback.format_exc())
        answers.send(("error", problem))


# -- at the moment -----------------------------------------------------------------------------------------------------


def _arm(crash: Crash) -> None:
    """In this process, and in those that it starts."""
    if crash.at == ANY_CALL:
        _count_calls(crash.count)
        return
    os.environ[_CRASH] = json.dumps({**asdict(crash), "driver": [os.getpid(), _began(os.getpid())]})
    os.environ[points.NAMED_BY] = f"{__name__}:at_point"
    points.tell(at_point)


def _count_calls(left: int) -> None:
    """Die after so many calls, of all threads together."""

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= event == "call"
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(called)
    sys.setprofile(called)


_times = 0


def at_point(name: str) -> None:
    """Die, if this is the moment."""
    global _times  # noqa: PLW0603 - one per process
    told = json.loads(os.environ[_CRASH])
    driver = told.pop("driver")
    crash = Crash(**told)
    if crash.at not in (name, ANY_POINT):
        return
    _times += 1
    if _times != crash.count or not _is_first(crash.once):
        return
    if crash.how == "raise":
        raise RuntimeError(f"a failure {name}, on purpose")
    if crash.how == "kill the driver":
        _kill(*driver)
        os._exit(1)  # nobody is there any more to whom this task could answer
    os.kill(os.getpid(), signal.SIGKILL)


def _kill(process: int, began: str) -> None:
    """That very process: a task may come here when it is long dead, and its number may be another one's."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(process)
        try:
            if _began(process) == began:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _began(process: int) -> str:
    """When it was started, as the system counts; "" if it is not there."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    return told.rpartition(")")[2].split()[19]


def _is_first(marker: str) -> bool:
    if not marker:
        return True
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
