"""The engine's loop: takes all batches that wait and runs them as one tick, so that many sources cost little more than one.

A source hands its batch over and waits until the tick is committed and delivered (group commit). A silent source never
holds the others. Ticks may have an interval: what comes before it is over is one tick then, unless somebody waits for it.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakSet

from headwater.errors import HeadwaterError
from headwater.model.time import BEGINNING
from headwater.runtime.core import Core
from headwater.runtime.delivery import Delivery

log = logging.getLogger("headwater")

_PATIENCE = 0.05
"""Seconds between two looks at sources that must be asked."""


_LAST_PATIENCE = 5.0
_running: WeakSet[Loop] = WeakSet()


@atexit.register
def _stop_all() -> None:
    """Of engines that nobody has closed: what their threads hold, DuckDB would report as leaks."""
    for loop in list(_running):
        loop.stop(_LAST_PATIENCE)


class Stopped(HeadwaterError):  # noqa: N818 - not a failure
    """The engine is stopping; the batch comes again after a restart."""

    def __init__(self) -> None:
        super().__init__(
            "STOPPED", "the engine is stopping", hint="The batch was not lost: it comes again after a restart."
        )


class Loop:
    """Runs ticks in a thread of its own while batches come."""

    def __init__(
        self,
        core: Core,
        poll: Callable[[], Sequence[Delivery]] = lambda: (),
        in_a_word: Callable[[BaseException], BaseException] = lambda problem: problem,
        *,
        every: int = 0,
    ) -> None:
        """``poll`` asks sources that do not come by themselves; ``in_a_word``: a problem as users are told it.

        ``every``: at least so many microseconds of the wall clock are between the starts of two ticks.
        """
        self._core, self._poll, self._in_a_word = core, poll, in_a_word
        self._every, self._hurries = every, 0
        self._began: int | None = None
        """When the last tick began, by the wall clock."""
        self._waiting: list[Delivery] = []
        self._changed = threading.Condition()
        self._holds, self._ending, self._busy = 0, False, False
        self._announced: tuple[str, ...] = ()
        self._looked = self._asked = 0
        """How often there was nothing to do, and how often somebody wants to be sure of it."""
        self._thread: threading.Thread | None = None
        self.looked_at = BEGINNING
        """By this instant of the wall clock all that had been handed over was taken."""
        self.error: BaseException | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="headwater-ticks", daemon=True)
            self._thread.start()
            _running.add(self)

    def submit(self, delivery: Delivery) -> None:
        """Hand a batch over; ``delivery.done`` is set once its tick is delivered, or has failed."""
        with self._changed:
            if self.error is not None or self._ending:
                delivery.finish(self.error or Stopped())
                return
            self._waiting.append(delivery)
            self._changed.notify_all()

    @contextmanager
    def held(self) -> Iterator[None]:
        """No tick begins inside."""
        with self._changed:
            self._holds += 1
            self._changed.wait_for(lambda: not self._busy)
        try:
            yield
        finally:
            with self._changed:
                self._holds -= 1
                self._changed.notify_all()

    def stop(self, patience: float | None = None) -> None:
        """After the tick that runs, or after so many seconds; what waits is given back."""
        with self._changed:
            self._ending = True
            for delivery in self._waiting:
                delivery.finish(Stopped())
            self._waiting.clear()
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(patience)

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """Ticks begin inside as soon as there is something to do: somebody waits for the end."""
        with self._changed:
            self._hurries += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._hurries -= 1

    def finish_pushed(self) -> None:
        """Wait until what was pushed is taken, before it stops: nobody would bring it again."""
        if self._thread is None or self._thread is threading.current_thread():
            return
        with self.hurried(), self._changed:
            self._changed.wait_for(lambda: self._stands() or self._holds or not any(d.pieces for d in self._waiting))

    def raise_failure(self) -> None:
        """Why it has stopped, if something failed."""
        if self.error is not None:
            raise self.error

    def pause(self) -> None:
        """Wait a moment, or until something changes."""
        with self._changed:
            self._changed.wait(timeout=_PATIENCE)

    def settle(self) -> None:
        """Wait until nothing is left to do now: neither rows wait, nor does time alone bring anything.

        While no tick may begin, nothing can be done, and nobody waits for it.
        """
        with self._changed:
            self._asked = self._looked + 2  # one look may have begun before this
            self._changed.notify_all()
            self._changed.wait_for(self._has_settled)

    def _has_settled(self) -> bool:
        idle = self._looked >= self._asked and not self._waiting and not self._busy
        return self._stands() or self._holds > 0 or idle

    def _stands(self) -> bool:
        """Will nothing run for now, whoever waits for it?"""
        return self.error is not None or self._ending or self._thread is None or bool(self._core.awaited)

    def wake(self) -> None:
        """The clock was moved: look again at once."""
        with self._changed:
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            batch = self._next()
            if batch is None:
                return
            try:
                self._core.deliver_due()
                if batch:
                    self._began = self._core.wall.now()
                    self._core.tick(batch)
                elif self._core.is_due():
                    self._began = self._core.wall.now()
                    self._core.tick(idle=True)
                else:
                    self._looked += 1
                failure = None
            except BaseException as problem:
                failure = self._in_a_word(problem)
                log.error("a tick failed: %s", failure)
            with self._changed:
                self._busy = False
                if failure is not None:
                    self.error = failure
                    batch = [*batch, *self._waiting]
                    self._waiting.clear()
                self._changed.notify_all()
            for delivery in batch:
                delivery.finish(failure)
            if failure is not None:
                return

    def _next(self) -> list[Delivery] | None:
        """All that waits, as soon as something does; None: the end."""
        while True:
            with self._changed:
                if self._ending:
                    return None
                if self._may_begin():
                    self._note_look()
                    found = [d for d in self._waiting if not d.done.is_set()]  # a source that stopped took its own back
                    self._waiting = found
                if not self._waiting or not self._may_begin():
                    if self._looked >= self._asked or not self._may_begin():
                        self._changed.wait(timeout=_PATIENCE)
                    if self._ending or not self._may_begin() or self._waiting:
                        continue
                    self._note_look()
                self._busy, waiting, self._waiting = True, self._waiting, []
            try:
                return [*waiting, *self._poll()]  # also while others hand over again and again
            except BaseException as problem:
                self._fail(problem, waiting)
                return None

    def _note_look(self) -> None:
        """All that waits is taken now, or nothing does. Stamps may be a little ahead of a clock that stands still."""
        self.looked_at = max(self._core.wall.now(), self._core.times.clock.now or BEGINNING)

    def _fail(self, problem: BaseException, taken: Sequence[Delivery]) -> None:
        problem = self._in_a_word(problem)
        log.error("a source failed: %s", problem)
        with self._changed:
            self.error, self._busy = problem, False
            for delivery in (*taken, *self._waiting):
                delivery.finish(problem)
            self._waiting.clear()
            self._changed.notify_all()

    def _may_begin(self) -> bool:
        """May a tick begin now?"""
        return self._may_run() and not self._is_early()

    def _is_early(self) -> bool:
        """Did the last tick begin less than the interval ago? A clock that was set back does not count."""
        if not self._every or self._began is None or self._hurries or self._looked < self._asked:
            return False
        passed = self._core.wall.now() - self._began
        return 0 <= passed < self._every and not any(delivery.urgent for delivery in self._waiting)

    def _may_run(self) -> bool:
        awaited = self._core.awaited
        if awaited and awaited != self._announced and self._holds == 0:
            self._announced = awaited
            log.warning(
                "nothing runs until the queries of the checkpoint are started again or dropped: %s", ", ".join(awaited)
            )
        return self._holds == 0 and not awaited
