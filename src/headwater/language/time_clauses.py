"""What a stream promises about its own time: the clauses of CREATE STREAM, as immutable objects.

Bounds follow Srivastava & Widom (Flexible Time Management in Data Stream Systems): a row may be so much older than another
one, perhaps only from some wall-clock delay on. Lengths are instants of the stream where they are application time, and
microseconds where they are wall-clock time.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum

from attrs import frozen

from headwater.language.durations import shown_duration


class Clause:
    """Base of all clauses."""

    def sql(self, *, unit: bool) -> str:
        """The clause as SQL; ``unit``: is the stream's time measured in microseconds, or in plain numbers?"""
        raise NotImplementedError


def _wall(length: int) -> str:
    return shown_duration(length, unit=True)


def _after(delay: int) -> str:
    return f" AFTER {_wall(delay)}" if delay else ""


# -- order within the stream ------------------------------------------------------------------------------------------


@frozen
class Disorder(Clause):
    """No row is more than ``bound`` older than the newest one that came at least ``after`` (wall clock) before it.

    A row that is exactly so old is on time. ``DISORDER 0`` is ``IN ORDER``: equal times are allowed.
    """

    bound: int
    after: int = 0

    def sql(self, *, unit: bool) -> str:
        if self == Disorder(0):
            return "IN ORDER"
        return f"DISORDER {shown_duration(self.bound, unit=unit)}{_after(self.after)}"


@frozen
class StrictlyIncreasing(Clause):
    """Every row is newer than all before it."""

    def sql(self, *, unit: bool) -> str:
        return "STRICTLY INCREASING"


@frozen
class RowsPerTimestamp(Clause):
    """At most so many rows share one time."""

    rows: int

    def sql(self, *, unit: bool) -> str:
        return f"ROWS PER TIMESTAMP AT MOST {self.rows}"


@frozen
class PartitionSkew(Clause):
    """A partition of the source lags every other one by at most ``bound``."""

    bound: int
    after: int = 0

    def sql(self, *, unit: bool) -> str:
        return f"PARTITION SKEW {shown_duration(self.bound, unit=unit)}{_after(self.after)}"


@frozen
class Watermark(Clause):
    """As Spark and Flink have it: a row at or below (largest time so far - ``delay``) is late.

    Stricter by one instant than ``DISORDER``, over all partitions together, and effective at once.
    """

    column: str
    delay: int

    def sql(self, *, unit: bool) -> str:
        delay = f" - INTERVAL {shown_duration(self.delay, unit=unit)}" if self.delay else ""
        return f"WATERMARK FOR {self.column} AS {self.column}{delay}"


# -- transport --------------------------------------------------------------------------------------------------------


@frozen
class OrderedTransport(Clause):
    """Rows arrive in the order in which they were sent (a file, a connection, a partition of a log)."""

    def sql(self, *, unit: bool) -> str:
        return "ORDERED TRANSPORT"


@frozen
class Latency(Clause):
    """A row needs between ``low`` and ``high`` of wall-clock time from its source to here."""

    low: int
    high: int

    def sql(self, *, unit: bool) -> str:
        return (
            f"LATENCY BETWEEN {_wall(self.low)} AND {_wall(self.high)}" if self.low else f"LATENCY {_wall(self.high)}"
        )


@frozen
class SentAt(Clause):
    """The column that holds the wall-clock time at which a row was sent."""

    column: str

    def sql(self, *, unit: bool) -> str:
        return f"SENT AT {self.column}"


# -- relation to other streams ----------------------------------------------------------------------------------------


@frozen
class Lag(Clause):
    """This stream lags ``other`` by at most ``bound``; the promise begins ``after`` so much wall-clock time."""

    other: str
    bound: int
    after: int = 0

    def sql(self, *, unit: bool) -> str:
        return f"LAGS {self.other} BY AT MOST {shown_duration(self.bound, unit=unit)}{_after(self.after)}"


@frozen
class Skew(Clause):
    """A ``Lag`` in both directions."""

    stream: str
    other: str
    bound: int
    after: int = 0

    def sql(self, *, unit: bool) -> str:
        bound = shown_duration(self.bound, unit=unit)
        return f"SKEW BETWEEN {self.stream} AND {self.other} {bound}{_after(self.after)}"


@frozen
class ClockDeviation(Clause):
    """The source's clock is within ``deviation`` of a clock that all streams of the domain share.

    ``rate``: the shared clock advances at least so many units for each one of the wall clock.
    """

    domain: str
    deviation: int
    rate: Decimal | None = None

    def sql(self, *, unit: bool) -> str:
        rate = f" MINIMUM RATE {self.rate}" if self.rate is not None else ""
        return f"CLOCK DEVIATION {shown_duration(self.deviation, unit=unit)}{rate} IN DOMAIN {self.domain}"


@frozen
class Tokens(Clause):
    """Times are tokens of one shared counter; a source holds one for between ``low`` and ``high`` of wall-clock time."""

    counter: str
    low: int
    high: int

    def sql(self, *, unit: bool) -> str:
        return f"TOKENS FROM {self.counter} TAKING BETWEEN {_wall(self.low)} AND {_wall(self.high)}"


@frozen
class Transitive(Clause):
    """Bounds to other streams are properties of clocks, so that chains of them hold too."""

    def sql(self, *, unit: bool) -> str:
        return "TRANSITIVE"


@frozen
class AlongWallClock(Clause):
    """Times are within ``deviation`` of the engine's own clock when rows are sent: time passes though nothing comes."""

    deviation: int

    def sql(self, *, unit: bool) -> str:
        return f"ALONG WALL CLOCK WITHIN {_wall(self.deviation)}"


# -- heartbeats -------------------------------------------------------------------------------------------------------


@frozen
class HeartbeatFromSource(Clause):
    """The source says itself, in this column, up to where it is done."""

    column: str

    def sql(self, *, unit: bool) -> str:
        return f"HEARTBEAT FROM SOURCE ({self.column})"


@frozen(kw_only=True)
class HeartbeatEstimated(Clause):
    """Bounds are learned from the rows that come: by a forgetting maximum, or for a share of late rows (budget)."""

    window_rows: int | None = None
    window_time: int | None = None
    """Patience, in rows or in wall-clock time; without either, one second."""
    alpha: float = 0.5
    margin: float = 0.5
    horizon: int = 10_000_000
    """The longest delay (wall clock) for which a bound is learned."""
    initial: int | None = None
    """The bound before anything is learned."""
    warmup_rows: int = 1_000
    late_budget: float | None = None
    """The share of rows that may be late."""
    silence: int = 60_000_000
    """Before the wall clock or other streams speak for this one, it may be behind them by so much (its own time)."""
    wall_clock: bool = False
    """How far times are behind the wall clock is learned too."""

    def sql(self, *, unit: bool) -> str:
        parts = [f"WINDOW {self.window_rows} ROWS"] if self.window_rows is not None else []
        parts += [f"WINDOW {_wall(self.window_time)}"] if self.window_time is not None else []
        if self.late_budget is None:
            parts += [f"ALPHA {self.alpha:g}", f"MARGIN {self.margin:g}"]
        else:
            parts += [f"LATE BUDGET {100 * self.late_budget:g} %"]
        parts += [f"HORIZON {_wall(self.horizon)}"]
        parts += [f"INITIAL {shown_duration(self.initial, unit=unit)}"] if self.initial is not None else []
        parts += [f"WARMUP {self.warmup_rows} ROWS"]
        parts += [f"SILENCE {_wall(self.silence)}"] if unit else []
        parts += ["WALL CLOCK"] if self.wall_clock else []
        return f"HEARTBEAT ESTIMATED ({', '.join(parts)})"


# -- silence and lateness ---------------------------------------------------------------------------------------------


@frozen
class Timeout(Clause):
    """When all streams of the time domain have been silent for so long (wall clock), what they sent is final."""

    silence: int

    def sql(self, *, unit: bool) -> str:
        return f"TIMEOUT {_wall(self.silence)}"


@frozen
class IdleAfter(Clause):
    """When this stream has been silent for so long (wall clock), the others do not wait for it."""

    silence: int

    def sql(self, *, unit: bool) -> str:
        return f"IDLE AFTER {_wall(self.silence)}"


class LatePolicy(StrEnum):
    DROP = "drop"
    """Count them and leave them out."""
    ADJUST = "adjust"
    """Move their time to the first one that is not final."""
    DIVERT = "divert"
    """Send them to a stream of their own."""
    ERROR = "error"
    """Stop."""


@frozen
class LateRows(Clause):
    """What becomes of rows that come after their time was final."""

    policy: LatePolicy
    into: str | None = None

    def sql(self, *, unit: bool) -> str:
        into = f" INTO {self.into}" if self.into is not None else ""
        return f"LATE ROWS {self.policy.value.upper()}{into}"


DECLARED_BOUNDS: tuple[type[Clause], ...] = (
    *(Disorder, StrictlyIncreasing, RowsPerTimestamp, PartitionSkew, Watermark, Latency),
    *(Lag, Skew, ClockDeviation, Tokens, Transitive),
)
"""What HEARTBEAT ESTIMATED replaces."""
