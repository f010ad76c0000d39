"""Binding of time clauses: units, columns, other streams, and which clauses go together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import ClassVar

import pyarrow as pa
from attrs import frozen
from sqlglot import exp

from headwater.expressions.types import is_temporal
from headwater.language import time_clauses as c
from headwater.language.durations import application_time, wall_clock
from headwater.language.notices import Notice
from headwater.language.text import OfText, did_you_mean
from headwater.language.time_units import check_length
from headwater.language.types import shown
from headwater.model.schema import Field

WITHIN = 10_000_000
"""ALONG WALL CLOCK, if it does not say how far: clocks that are set by the network, and rows that take a moment."""


@frozen
class StreamReference:
    """A stream that a clause names; it may be declared later in the script."""

    name: str
    node: exp.Expr


@frozen
class TimeRules:
    """What the clauses of one stream come to."""

    time: str | None
    clauses: tuple[c.Clause, ...]
    references: tuple[StreamReference, ...]
    notices: tuple[Notice, ...]


class TimeBinder(OfText):
    """Binds the clauses of one declaration."""

    def __init__(
        self,
        text: str,
        stream: str,
        fields: Sequence[Field],
        *,
        implicit: Field | None = None,
        elements: bool = False,
    ) -> None:
        """``implicit``: the time where no column is named; ``elements``: the rows carry intervals, and have no time."""
        self.text, self.stream, self.fields = text, stream, fields
        self._implicit, self._elements = implicit, elements
        self._time: Field | None = None
        self._references: list[StreamReference] = []

    def bind(self, nodes: Sequence[exp.Expr]) -> TimeRules:
        self._time = self._time_column(nodes)
        bound: list[tuple[exp.Expr, c.Clause]] = []
        for node in nodes:
            if node.this == "ORDERED BY":
                continue
            if self._time is None and not (self._elements and node.this == "LATE ROWS"):
                hint = "Say which column it is: ORDERED BY column."
                if self._elements:
                    hint = "Rows that carry their changes say themselves what is final, with stable points."
                raise self.error(node, "NO_TIME_COLUMN", f"{node.this} needs a time column", hint=hint)
            if self._implicit is not None and node.this in ("HEARTBEAT FROM SOURCE", "SENT AT"):
                message = f"{node.this} needs a column of every row, which change events do not have"
                raise self.error(node, "CONFLICTING_CLAUSES", message, hint="Leave it out.")
            clause = self._BINDERS[node.this](self, node)
            self._check_repeated(node, clause, [b for _, b in bound])
            bound.append((node, clause))
        self._check_together(bound)
        clauses = tuple(clause for _, clause in bound)
        time = self._time.name if self._time else None
        return TimeRules(time, clauses, tuple(self._references), tuple(self._notices(clauses)))

    # -- the time column --------------------------------------------------------------------------------------------

    @property
    def time(self) -> Field | None:
        """Once it is bound."""
        return self._time

    def _time_column(self, nodes: Sequence[exp.Expr]) -> Field | None:
        """ORDERED BY says it, or a watermark does."""
        found: Field | None = None
        for node in sorted(nodes, key=lambda n: n.this != "ORDERED BY"):
            if node.this not in ("ORDERED BY", "WATERMARK"):
                continue
            if self._elements:
                message = f"rows that carry their changes have intervals of their own, and no {node.this}"
                raise self.error(node, "CONFLICTING_CLAUSES", message, hint="Leave out one of them.")
            column = self._column(node.args["column"])
            if not (pa.types.is_integer(column.type) or is_temporal(column.type)):
                raise self.error(
                    node.args["column"],
                    "TYPE_MISMATCH",
                    f'a stream cannot be ordered by column "{column.name}" of type {shown(column.type)}',
                    hint="Time is a TIMESTAMP, a DATE or an integer.",
                )
            if found is not None and node.this == "ORDERED BY":
                raise self.error(node, "DUPLICATE_CLAUSE", "there is a second ORDERED BY")
            if found is not None and found != column:
                message = f'the watermark is for column "{column.name}", but time is column "{found.name}"'
                raise self.error(node, "CONFLICTING_CLAUSES", message)
            found = column
        return found or self._implicit

    def _column(self, node: exp.Expr) -> Field:
        found = next((f for f in self.fields if f.name.casefold() == node.name.casefold()), None)
        if found is None:
            hint = did_you_mean(node.name, [f.name for f in self.fields], all_of_them="The columns are")
            raise self.error(node, "UNKNOWN_COLUMN", f'column "{node.name}" does not exist', hint=hint)
        return found

    # -- parts of clauses -------------------------------------------------------------------------------------------

    def _bound(self, node: exp.Expr, key: str = "amount") -> int:
        """Application time: plain numbers where the time column is one."""
        amount, what = node.args[key], f"the length of {node.this}"
        assert self._time is not None
        timestamps = not pa.types.is_integer(self._time.type)
        written = f"{node.this} {{}}" if node.args.get("other") is None and node.this != "WATERMARK" else "{}"
        check_length(self.text, amount, node.this, f'column "{self._time.name}"', written, timestamps=timestamps)
        return application_time(self.text, amount, what)

    def _wall(self, node: exp.Expr, key: str = "amount") -> int:
        return wall_clock(self.text, node.args[key], f"the length of {node.this}")

    def _after(self, node: exp.Expr) -> int:
        return wall_clock(self.text, node.args["after"], "the delay after AFTER") if node.args.get("after") else 0

    def _range(self, node: exp.Expr) -> tuple[int, int]:
        low = self._wall(node, "low") if node.args.get("low") else 0
        high = self._wall(node, "high")
        if low > high:
            hint = "Write the smaller one first."
            raise self.error(node, "TIME_BOUND", f"{node.this} BETWEEN has its ends the wrong way round", hint=hint)
        return low, high

    def _other(self, node: exp.Expr, written: exp.Expr) -> str:
        if written.name.casefold() == self.stream.casefold():
            hint = "Say how far its own rows are out of order with DISORDER."
            raise self.error(written, "SELF_REFERENCE", f"{node.this} needs another stream", hint=hint)
        self._references.append(StreamReference(written.name, written))
        return written.name

    def _number(self, node: exp.Expr, *, least: int, most: int | None = None, whole: bool = False) -> Decimal:
        written = node.args["amount"]
        number = Decimal(written.this)
        if number < least or (most is not None and number > most) or (whole and number != int(number)):
            kind = "a whole number" if whole else "a number"
            limits = f"at least {least}" if most is None else f"between {least} and {most}"
            raise self.error(written, "TIME_BOUND", f"{node.this} must be {kind}, {limits}, not {written.this}")
        return number

    # -- clauses ----------------------------------------------------------------------------------------------------

    def _disorder(self, node: exp.Expr) -> c.Clause:
        return c.Disorder(self._bound(node), self._after(node))

    def _rows_per_timestamp(self, node: exp.Expr) -> c.Clause:
        return c.RowsPerTimestamp(int(self._number(node, least=1, whole=True)))

    def _latency(self, node: exp.Expr) -> c.Clause:
        return c.Latency(*self._range(node))

    def _sent_at(self, node: exp.Expr) -> c.Clause:
        column = self._column(node.args["column"])
        if not pa.types.is_timestamp(column.type):
            message = f'the time of sending is a TIMESTAMP, but column "{column.name}" is {shown(column.type)}'
            raise self.error(node.args["column"], "TYPE_MISMATCH", message)
        return c.SentAt(column.name)

    def _lags(self, node: exp.Expr) -> c.Clause:
        return c.Lag(self._other(node, node.args["other"]), self._bound(node), self._after(node))

    def _skew(self, node: exp.Expr) -> c.Clause:
        stream, other = node.args["stream"], node.args["other"]
        if self.stream.casefold() not in (stream.name.casefold(), other.name.casefold()):
            raise self.error(node, "TIME_BOUND", f'SKEW BETWEEN must name stream "{self.stream}" and another one')
        if stream.name.casefold() != self.stream.casefold():
            stream, other = other, stream
        return c.Skew(self.stream, self._other(node, other), self._bound(node), self._after(node))

    def _partition_skew(self, node: exp.Expr) -> c.Clause:
        return c.PartitionSkew(self._bound(node), self._after(node))

    def _timeout(self, node: exp.Expr) -> c.Clause:
        return c.Timeout(self._positive(node))

    def _idle_after(self, node: exp.Expr) -> c.Clause:
        return c.IdleAfter(self._positive(node))

    def _positive(self, node: exp.Expr) -> int:
        length = self._wall(node)
        if length == 0:
            raise self.error(node.args["amount"], "TIME_BOUND", f"the length of {node.this} must be positive, not 0")
        return length

    def _late_rows(self, node: exp.Expr) -> c.Clause:
        policy, into = c.LatePolicy(node.args["name"].name.lower()), node.args.get("other")
        if into is not None and into.name.casefold() == self.stream.casefold():
            raise self.error(into, "SELF_REFERENCE", "late rows cannot be diverted into their own stream")
        if policy is c.LatePolicy.ADJUST and self._elements:
            message = "changes of elements cannot be adjusted: what they change would not be found"
            raise self.error(
                node, "CONFLICTING_CLAUSES", message, hint="There are DROP, DIVERT INTO a stream, and ERROR."
            )
        return c.LateRows(policy, into.name if into is not None else None)

    def _clock_deviation(self, node: exp.Expr) -> c.Clause:
        rate = node.args.get("rate")
        if rate is not None and Decimal(rate.this) <= 0:
            raise self.error(rate, "TIME_BOUND", f"MINIMUM RATE must be positive, not {rate.this}")
        return c.ClockDeviation(node.args["name"].name, self._bound(node), Decimal(rate.this) if rate else None)

    def _along_wall_clock(self, node: exp.Expr) -> c.Clause:
        self._check_is_wall_time(node)
        within = self._wall(node) if node.args.get("amount") is not None else WITHIN
        return c.AlongWallClock(within)

    def _check_is_wall_time(self, node: exp.Expr) -> None:
        assert self._time is not None
        if not is_temporal(self._time.type):
            raise self.error(
                node,
                "TIME_UNIT",
                f'{node.this} needs a TIMESTAMP: column "{self._time.name}" counts time in plain numbers',
                detail="Nothing says how many of them pass in a second.",
                hint="TIMEOUT makes the last rows final when all streams are silent, whatever their times are.",
            )

    def _tokens(self, node: exp.Expr) -> c.Clause:
        return c.Tokens(node.args["name"].name, *self._range(node))

    def _watermark(self, node: exp.Expr) -> c.Clause:
        delay = self._bound(node) if node.args.get("amount") is not None else 0
        return c.Watermark(self._column(node.args["column"]).name, delay)

    def _heartbeat_from_source(self, node: exp.Expr) -> c.Clause:
        assert self._time is not None
        column = self._column(node.args["column"])
        if column == self._time:
            message = f'heartbeats cannot come in the time column "{column.name}"'
            raise self.error(
                node.args["column"], "CONFLICTING_CLAUSES", message, hint="They need a column of their own."
            )
        if column.type != self._time.type:
            message = (
                f"heartbeats are of the type of the time column, {shown(self._time.type)}, "
                f'but column "{column.name}" is {shown(column.type)}'
            )
            raise self.error(node.args["column"], "TYPE_MISMATCH", message)
        return c.HeartbeatFromSource(column.name)

    def _heartbeat_estimated(self, node: exp.Expr) -> c.Clause:
        options: dict[str, int | float] = {}
        seen: dict[str, exp.Expr] = {}
        for option in node.args.get("options") or ():
            if option.this in seen:
                raise self.error(option, "DUPLICATE_CLAUSE", f"there is a second {option.this}")
            seen[option.this] = option
            name, value = self._estimator_option(option)
            options[name] = value
        for name in ("ALPHA", "MARGIN"):
            if name in seen and "LATE BUDGET" in seen:
                message = f"LATE BUDGET chooses the bound by itself and takes no {name}"
                raise self.error(seen[name], "CONFLICTING_CLAUSES", message)
        return c.HeartbeatEstimated(**options)  # type: ignore[arg-type]

    def _estimator_option(self, node: exp.Expr) -> tuple[str, int | float]:
        in_rows = node.args.get("name") is not None
        match node.this:
            case "SILENCE":
                self._check_is_wall_time(node)
                return "silence", self._wall(node)
            case "WALL CLOCK":
                self._check_is_wall_time(node)
                return "wall_clock", True
            case "ALPHA":
                return "alpha", float(self._number(node, least=0, most=1))
            case "MARGIN":
                return "margin", float(self._number(node, least=0))
            case "HORIZON":
                return "horizon", self._positive(node)
            case "INITIAL":
                return "initial", self._bound(node)
            case "WINDOW" if in_rows:
                return "window_rows", int(self._number(node, least=1, whole=True))
            case "WINDOW":
                return "window_time", self._positive(node)
            case "WARMUP":
                if not in_rows:
                    raise self.error(node, "TIME_BOUND", "WARMUP counts rows", hint="For example: WARMUP 1000 ROWS.")
                return "warmup_rows", int(self._number(node, least=0, whole=True))
        share = self._number(node, least=0) / (100 if in_rows else 1)  # the name is "%" here
        if not 0 < share < 1:
            message = f"LATE BUDGET is a share of the rows between 0 and 100 %, not {node.args['amount'].this}"
            raise self.error(node, "TIME_BOUND", message, hint="For example: LATE BUDGET 0.1 %.")
        return "late_budget", float(share)

    # -- clauses together -------------------------------------------------------------------------------------------

    def _check_repeated(self, node: exp.Expr, clause: c.Clause, earlier: Sequence[c.Clause]) -> None:
        """Only bounds may come more than once, each from a different delay on."""
        for other in earlier:
            if type(other) is not type(clause) or not _same_place(other, clause):
                continue
            repeated = "DISORDER" if isinstance(clause, c.Disorder) else node.this
            hint = "Another bound may begin later: … AFTER 10 SECONDS." if hasattr(clause, "after") else ""
            raise self.error(node, "DUPLICATE_CLAUSE", f"there is a second {repeated}", hint=hint)

    def _check_together(self, bound: Sequence[tuple[exp.Expr, c.Clause]]) -> None:
        kinds = {type(clause): node for node, clause in bound}
        declared = [(node, clause) for node, clause in bound if isinstance(clause, c.DECLARED_BOUNDS)]
        if c.HeartbeatEstimated in kinds and declared:
            raise self.error(
                declared[0][0],
                "CONFLICTING_CLAUSES",
                "a heartbeat is either estimated or follows from declared bounds",
                hint=f"Leave out HEARTBEAT ESTIMATED or {declared[0][0].this}.",
            )
        others = [node for node, clause in declared if not isinstance(clause, c.Watermark)]
        if c.Watermark in kinds and others:
            raise self.error(
                others[0],
                "CONFLICTING_CLAUSES",
                f"a WATERMARK says all there is to say; {others[0].this} cannot stand beside it",
                hint="Write DISORDER instead of WATERMARK to say more.",
            )
        if c.StrictlyIncreasing in kinds and c.Disorder in kinds:
            node = kinds[c.Disorder]
            message = f"rows cannot be strictly increasing and have {node.this}"
            raise self.error(node, "CONFLICTING_CLAUSES", message, hint="Leave out one of them.")
        if c.Transitive in kinds and not {c.Lag, c.Skew} & kinds.keys():
            raise self.error(
                kinds[c.Transitive],
                "CONFLICTING_CLAUSES",
                "TRANSITIVE says something of LAGS and SKEW, of which there are none",
            )

    def _notices(self, clauses: Sequence[c.Clause]) -> list[Notice]:
        """A time-out that fires while a bound still waits contradicts it silently (erratum E19 of the digest)."""
        latency = max((clause.high for clause in clauses if isinstance(clause, c.Latency)), default=0)
        bounds = (c.Disorder, c.Lag, c.Skew, c.PartitionSkew)
        longest = latency + max((clause.after for clause in clauses if isinstance(clause, bounds)), default=0)
        for clause in clauses:
            if isinstance(clause, c.Timeout) and clause.silence < longest:
                message = f'the TIMEOUT of stream "{self.stream}" is shorter than its delays and LATENCY together'
                return [Notice("SHORT_TIMEOUT", message, "Rows that are within their bounds may be late.")]
        return []

    _BINDERS: ClassVar[dict[str, Callable[..., c.Clause]]] = {
        "STRICTLY INCREASING": lambda self, node: c.StrictlyIncreasing(),
        "IN ORDER": lambda self, node: c.Disorder(0),
        "DISORDER": _disorder,
        "ROWS PER TIMESTAMP": _rows_per_timestamp,
        "ORDERED TRANSPORT": lambda self, node: c.OrderedTransport(),
        "LATENCY": _latency,
        "SENT AT": _sent_at,
        "LAGS": _lags,
        "SKEW": _skew,
        "PARTITION SKEW": _partition_skew,
        "TIMEOUT": _timeout,
        "IDLE AFTER": _idle_after,
        "LATE ROWS": _late_rows,
        "CLOCK DEVIATION": _clock_deviation,
        "ALONG WALL CLOCK": _along_wall_clock,
        "TOKENS": _tokens,
        "TRANSITIVE": lambda self, node: c.Transitive(),
        "WATERMARK": _watermark,
        "HEARTBEAT FROM SOURCE": _heartbeat_from_source,
        "HEARTBEAT ESTIMATED": _heartbeat_estimated,
    }


def _same_place(left: c.Clause, right: c.Clause) -> bool:
    """True when one of the two must be a mistake: both say the same thing of the same streams from the same delay on."""
    ours, theirs = ((getattr(b, "other", "").casefold(), getattr(b, "after", 0)) for b in (left, right))
    return ours == theirs
