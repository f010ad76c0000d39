"""What a sink is.

Everything a query answers in one tick is delivered under the tick's number. After a crash the last tick may be delivered
again, with the same number and the same rows: a sink that can tell delivers exactly once.

``stage`` runs where the answer is computed, often in a task on another machine; ``deliver`` runs in the driver, after the
tick is committed. A sink object is pickled into tasks as ``stager()``: keep connections and callbacks out of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import frozen

from headwater.errors import InputError
from headwater.language.emission import ON_CLOSE, Emission, Form
from headwater.model.delta import Delta
from headwater.model.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Guarantee(StrEnum):
    """How often a tick's rows arrive, come what may."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"


@frozen
class Output:
    """What a query delivers."""

    query: str
    schema: Schema
    speculative: bool = False
    """Results may be repaired. Otherwise they are final."""
    timestamps: bool = True
    """Are its instants microseconds since the epoch? Else they are plain numbers."""
    origin: str = ""
    """Names the checkpoint whose ticks these are: tick 7 of another one is another tick."""
    emission: Emission = ON_CLOSE
    """When the rows of a final answer go out."""
    settled: bool = False
    """Has it become certain? Then only what was shown before is repaired, and what comes now is final."""

    @property
    def early(self) -> bool:
        """Does it bring what is not final?"""
        return self.speculative and not self.settled

    @property
    def opens(self) -> bool:
        """Do final rows come as soon as they begin, and get their ends later?"""
        return self.emission.form is Form.START

    @property
    def changelog(self) -> bool:
        """Does the sink get changes, with what they change? Otherwise rows that are only ever added."""
        return self.speculative or self.opens


class Staged(NamedTuple):
    """One part of a tick's answer, kept until it is delivered: rows inside, or the path of a file."""

    rows: int
    data: bytes | None = None
    path: str | None = None


class Stager(ABC):
    """The part of a sink that works in the tasks. Picklable, without Spark."""

    @abstractmethod
    def stage(self, tick: int, shard: int, delta: Delta, folder: str) -> Staged:
        """Put a non-empty, consolidated part of the answer aside, under a name never used before.

        ``folder`` belongs to the checkpoint and lives until the tick after has been committed.
        """


class Sink(ABC):
    """Where a query's answers go."""

    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    emission: Emission = ON_CLOSE
    """In which form it takes the rows of a final answer, if the query does not say."""
    forms: tuple[Form, ...] = tuple(Form)
    """The forms that it can take."""
    spark: Any = None
    """The Spark session, set by the engine before ``open``; None without Spark."""

    every: int = 0
    """Microseconds of the wall clock: what it gets within such an interval comes as one delivery, under the number of the
    last tick. 0: every tick by itself."""

    last_tick: int = -1
    """The last tick that it has got under this checkpoint, where it remembers that itself over restarts."""

    def open(self, output: Output) -> None:
        """Once, in the driver, before anything is delivered; a place that cannot be written is an error here."""
        self.output = output

    @abstractmethod
    def stager(self) -> Stager:
        """What stages its rows."""

    @abstractmethod
    def deliver(self, tick: int, parts: Sequence[Staged], frontier: int) -> None:
        """A whole tick's answer; after a crash perhaps for a second time. Nothing before the frontier changes any more, and
        all rows that start before it have been delivered."""

    def form_of(self, asked: Emission | None) -> Emission:
        """In which form it gets the answer of a query that asks for this one, or for none."""
        if asked is not None and asked.form not in self.forms:
            raise InputError(
                "EMIT",
                f'the sink "{self.describe()["sink"]}" cannot take EMIT {asked}',
                hint=f"It takes {' or '.join(f'EMIT {form}' for form in self.forms)}.",
            )
        return asked or self.emission

    takes_changes: bool = False
    """Can it go on with a changelog where it has got final rows so far?"""

    def change(self, output: Output) -> None:
        """From the next tick on it gets a changelog, if it did not; only where it can. Between two ticks, in the driver."""
        self.output = output

    takes_frames: bool = False
    """Can it stage what Spark has computed by itself? Such rows never enter Python."""

    def stage_frame(self, frame: DataFrame, tick: int, folder: str) -> list[str]:
        """Put the tick's whole answer aside, as ``Stager.stage`` does; the files that hold it, if it needs any.

        The rows are as the changes of a stream that is never revised: the query's columns, ``_start`` and ``_end`` as
        instants, in a session whose zone is UTC. Runs one Spark job.
        """
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """The query has stopped."""

    def describe(self) -> dict[str, Any]:
        """What it is, for EXPLAIN and messages."""
        return {"sink": type(self).__name__, "delivery": str(self.guarantee)}
