"""``headwater demo``: continuous queries over the streams of an auction house, live in the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING

from rich.console import Console

from headwater.cli import demo_screen
from headwater.cli.terminal import interruptible, messages
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.engine import Engine

_RATE = "rate => 5000"
_REFRESH = 0.5
_PLAIN_EVERY = 5.0
_PATIENCE = 180.0


def run(console: Console, *, seconds: float, rate: int, runner: str) -> None:
    """Start everything, show it for so long, and leave nothing behind; Ctrl-C ends it earlier."""
    where = "on local Spark" if runner == "spark" else "in this process"
    console.print(
        f"Eight continuous queries over {rate:,} events per second of an auction house (NEXMark), {where}, "
        f"for {seconds:g} seconds.",
        highlight=False,
        soft_wrap=True,
    )
    with messages(verbose=False):
        try:
            engine = _connect(console, runner)
        except KeyboardInterrupt:
            return
        with interruptible() as interrupts:
            try:
                _show(engine, demo_script(rate, datetime.now(UTC)), console, seconds)
            finally:
                interrupts.closing = True
                _close(engine)


def demo_script(rate: int, since: datetime) -> str:
    """The SQL that runs; the rate of the events is filled in, and since when the auction house is open: the three streams
    keep pace, whenever each of them starts."""
    text = files("headwater.cli").joinpath("demo.sql").read_text(encoding="utf-8")
    assert text.count(_RATE) == 3, "each of the streams has a rate"
    return text.replace(_RATE, f"rate => {rate}, since => '{since.isoformat()}'")


def _connect(console: Console, runner: str) -> Engine:
    from headwater.engine import connect

    if runner == "inprocess":
        return connect(runner=runner)
    with _waiting(console, "Spark starts on this machine, a JVM and Python workers: about ten seconds …"):
        return connect()


@contextmanager
def _waiting(console: Console, told: str) -> Iterator[None]:
    if console.is_terminal:
        with console.status(told):
            yield
    else:
        console.print(told, highlight=False, soft_wrap=True)
        yield


def _close(engine: Engine) -> None:
    from headwater.backends.spark.farewell import end_spark

    engine.close()
    end_spark()


def _show(engine: Engine, script: str, console: Console, seconds: float) -> None:
    from headwater.sinks import memory

    queries = engine.script(script).queries
    with engine.held():
        runs = [query.start(memory(keep="1 second")) for query in queries]
    screen = demo_screen.Screen(engine, runs)
    try:
        with _waiting(console, "The sources start …"):
            _await_events(engine)
        began = screen.begin()
        if console.is_terminal:
            _live(engine, screen, console, began + seconds)
        else:
            _plain(engine, screen, console, began + seconds)
    except KeyboardInterrupt:
        console.print("Stopped.", highlight=False)
    console.print(screen.summary())


def _await_events(engine: Engine) -> None:
    end = time.monotonic() + _PATIENCE
    while not all(stream.rows for stream in engine.progress().streams):
        if time.monotonic() > end:
            raise HeadwaterError(
                "NO_EVENTS", f"no event came within {_PATIENCE:g} seconds", hint="Is this machine busy?"
            )
        engine.wait(0.1)


def _live(engine: Engine, screen: demo_screen.Screen, console: Console, end: float) -> None:
    from rich.live import Live

    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while (left := end - time.monotonic()) > 0:
            engine.wait(min(_REFRESH, left))
            live.update(screen.tables(console.width, console.height, max(end - time.monotonic(), 0)), refresh=True)


def _plain(engine: Engine, screen: demo_screen.Screen, console: Console, end: float) -> None:
    """No terminal: what changes on a screen would be noise in a file."""
    while (left := end - time.monotonic()) > 0:
        engine.wait(min(_PLAIN_EVERY, left))
        for line in screen.lines():
            console.print(line, highlight=False, soft_wrap=True, markup=False)
