"""What commands that run for a while share: messages on standard error, and ending when they are asked to."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import typer

from headwater.language.notices import HeadwaterNotice


class _OnStderr(logging.Handler):
    """A line a message. What fails is raised as well, and said by the command itself: once is enough."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.ERROR:
            typer.echo(f"headwater: {record.getMessage()}", err=True)


@contextmanager
def messages(*, verbose: bool) -> Iterator[None]:
    """The engine's warnings go to standard error; with ``verbose`` also how it is doing.

    Its notices are said by the command, not as warnings of Python.
    """
    log, handler = logging.getLogger("headwater"), _OnStderr()
    before = log.level
    log.addHandler(handler)
    others = logging.NullHandler()  # or whoever logs first makes one that prints
    logging.getLogger().addHandler(others)
    log.setLevel(logging.INFO if verbose else logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HeadwaterNotice)
            yield
    finally:
        log.removeHandler(handler)
        logging.getLogger().removeHandler(others)
        log.setLevel(before)


class Interrupts:
    """Ctrl-C ends the command after the tick that runs; a second one at once. SIGTERM does as Ctrl-C does."""

    def __init__(self) -> None:
        self._asked = 0
        self.closing = False
        """It is ending already, so the first one has nothing to interrupt."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._asked += 1
        if self._asked > 1:
            _end_at_once(number)
        if not self.closing:
            raise KeyboardInterrupt


def _end_at_once(number: int) -> NoReturn:
    """In the middle of whatever runs: what is committed is safe, and nothing else counts."""
    from headwater.backends.spark.farewell import kill_spark
    from headwater.runtime.temporary import remove_all

    os.write(2, b"headwater: ended at once; what was committed stays\n")
    kill_spark()
    remove_all()
    os._exit(128 + number)


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Inside, signals end the command so that nothing is left behind; closing belongs inside.

    To be entered after Spark has started, which has a handler of its own that first asks the JVM.
    """
    interrupt = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    names = (signal.SIGINT, signal.SIGTERM)
    before = {name: signal.signal(name, interrupt) for name in names}
    try:
        yield interrupt
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def say(message: str) -> None:
    """Something that is no result."""
    typer.echo(message, err=True)


def is_terminal(*, stderr: bool = False) -> bool:
    return (sys.stderr if stderr else sys.stdout).isatty()
