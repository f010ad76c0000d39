"""A bar on standard error that shows how much of a finite input has been answered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.runtime.views.metrics import streams

if TYPE_CHECKING:
    from headwater.runtime.views.picture import Picture

_EVERY = 0.2


class ProgressBar:
    """Shown as long as the ``with`` statement lasts; a thread of its own keeps it going while the caller waits.

    ``total``: about how many rows there are; None: the bar only counts.
    """

    def __init__(self, look: Callable[[], Picture], total: int | None, *, console: Any = None) -> None:
        self._look, self._total, self._console = look, total, console
        self._ended = threading.Event()

    def __enter__(self) -> ProgressBar:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            *([TaskProgressColumn()] if self._total else []),
            TextColumn("{task.fields[told]}"),
            TimeElapsedColumn(),
            console=self._console or Console(stderr=True),
        )
        self._task = self._bar.add_task("rows", total=self._total or None, told="")
        self._bar.start()
        self._thread = threading.Thread(target=self._follow, name="headwater-progress", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._show(finished=kind is None)
        self._bar.stop()

    def _follow(self) -> None:
        while not self._ended.wait(_EVERY):
            self._show()

    def _show(self, *, finished: bool = False) -> None:
        picture = self._look()
        done = sum(s.rows + s.late + s.bad for s in streams(picture))
        told = f"{done:,} ({picture.metrics.rate():,.0f}/s)"
        # The total may be a guess: the bar is full when all is done, not before.
        if finished:
            self._bar.update(self._task, completed=done, total=max(done, 1), told=told)
        else:
            most = self._total - 1 if self._total else done
            self._bar.update(self._task, completed=min(done, most), told=told)
