"""``headwater demo``: continuous queries over the streams of an auction house, live in the terminal."""

from __future__ import annotations

import re
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.resources import files
from types import ModuleType
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType

from headwater.cli import demo_screen
from headwater.cli.terminal import interruptible, messages
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.engine import Engine

_RATE = "rate => 5000"
_REFRESH = 0.5
_PLAIN_EVERY = 5.0
_PATIENCE = 180.0
_STARTS = {
    "spark": "Spark starts on this machine, a JVM: some ten seconds, more if the machine is busy",
    "inprocess": "Python loads the operators",
}
_QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""What runs for seconds does not win back the time that Java takes to compile it well: half of the work of its start."""


def run(console: Console, *, seconds: float, rate: int, runner: str) -> None:
    """Start everything, show it for so long, and leave nothing behind; Ctrl-C ends it earlier."""
    where = "on local Spark" if runner == "spark" else "in this process"
    console.print(
        f"Eight continuous queries over {rate:,} events per second of an auction house (NEXMark), {where}, "
        f"for {seconds:g} seconds.",
        highlight=False,
        soft_wrap=True,
    )
    wait = _Wait(console, rate)
    with messages(verbose=False):
        try:
            with wait.told(_STARTS[runner]):
                engine = _connect(runner)
        except KeyboardInterrupt:
            return
        with interruptible() as interrupts:
            try:
                _show(engine, demo_script(rate, datetime.now(UTC)), console, seconds, wait)
            finally:
                interrupts.closing = True
                _close(engine)


def demo_script(rate: int, since: datetime) -> str:
    """The SQL that runs; the rate of the events is filled in, and since when the auction house is open: the three streams
    keep pace, whenever each of them starts."""
    text = files("headwater.cli").joinpath("demo.sql").read_text(encoding="utf-8")
    assert text.count(_RATE) == 3, "each of the streams has a rate"
    return text.replace(_RATE, f"rate => {rate}, since => '{since.isoformat()}'")


def queries_of(script: str) -> dict[str, str]:
    """The text of each query, by name."""
    found = re.findall(r"^CREATE STREAM (\w+) AS\n(.*?);", script, re.MULTILINE | re.DOTALL)
    return {name: textwrap.dedent(text) for name, text in found}


def _connect(runner: str) -> Engine:
    """What Python loads, it loads while the JVM starts."""
    if runner == "inprocess":
        return _load().connect(runner=runner)
    from headwater.backends.spark.session import open_session

    loading = threading.Thread(target=_load, daemon=True)
    loading.start()
    with open_session(config=_QUICK_START):  # the engine takes the same Spark up
        loading.join()
        return _load().connect()


def _load() -> ModuleType:
    import headwater.sinks
    from headwater import engine

    assert headwater.sinks is not None
    return engine


class _Wait:
    """While there is nothing to see yet: the queries, and what is waited for."""

    def __init__(self, console: Console, rate: int) -> None:
        self._console = console
        self._queries = queries_of(demo_script(rate, datetime.now(UTC)))
        if not console.is_terminal:
            for name in self._queries:
                console.print(
                    f"  {name:<10} {demo_screen.QUESTIONS[name]}", highlight=False, soft_wrap=True, markup=False
                )

    @contextmanager
    def told(self, what: str) -> Iterator[None]:
        if not self._console.is_terminal:
            self._console.print(f"{what} …", highlight=False, soft_wrap=True)
            yield
            return
        from rich.live import Live

        began = time.monotonic()

        def screen() -> RenderableType:
            passed = f"{what}: {time.monotonic() - began:.0f} s so far"
            return demo_screen.waiting(self._queries, passed, self._console.width, self._console.height)

        with Live(get_renderable=screen, console=self._console, refresh_per_second=4, transient=True):
            yield


def _close(engine: Engine) -> None:
    from headwater.backends.spark.farewell import end_spark

    engine.close()
    end_spark()


def _show(engine: Engine, script: str, console: Console, seconds: float, wait: _Wait) -> None:
    from headwater.sinks import memory

    try:
        with wait.told("The queries start, and wait for their first rows"):
            queries = engine.script(script).queries
            with engine.held():
                runs = [query.start(memory(keep="1 second")) for query in queries]
            screen = demo_screen.Screen(engine, runs)
            _await_events(engine)
        began = screen.begin()
        if console.is_terminal:
            _live(engine, screen, console, began + seconds)
        else:
            _plain(engine, screen, console, began + seconds)
    except KeyboardInterrupt:
        console.print("Stopped.", highlight=False)
        if not engine.runs:
            return
        screen = demo_screen.Screen(engine, list(engine.runs.values()))
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
