"""What commands that run for a while share: messages on standard error, and ending when they are asked to."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer


class _OnStderr(logging.Handler):
    """A line a message. What fails is raised as well, and said by the command itself: once is enough."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.ERROR:
            typer.echo(f"headwater: {record.getMessage()}", err=True)


@contextmanager
def messages(*, verbose: bool) -> Iterator[None]:
    """The engine's warnings go to standard error; with ``verbose`` also how it is doing."""
    log, handler = logging.getLogger("headwater"), _OnStderr()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO if verbose else logging.WARNING)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM ends the command as Ctrl-C does, so that nothing is left behind.

    To be entered after Spark has started, which has a handler of its own that first asks the JVM.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    names = (signal.SIGINT, signal.SIGTERM)
    before = {name: signal.signal(name, interrupt) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def say(message: str) -> None:
    """Something that is no result."""
    typer.echo(message, err=True)


def is_terminal(*, stderr: bool = False) -> bool:
    return (sys.stderr if stderr else sys.stdout).isatty()
