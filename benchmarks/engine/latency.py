"""`headwater bench engine --latency`: how long a tick takes: by stages, by queries, by the size of the state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from attrs import frozen
from rich.table import Table

from benchmarks.engine.data import BEGIN
from benchmarks.engine.headwater_side import Ticking

SMALL = 100
DELTA = 10_000
LIVE = (100_000, 1_000_000, 10_000_000)
QUERIES = (1, 10, 50)
STAGES = (1, 2, 4)
_FILL = 500_000
"""Rows a tick while the state is built up."""
_WARM = 5
_MS = 1_000

Batches = Mapping[str, pa.Table]
Say = Callable[[str], None]


@frozen
class Measure:
    """Some ticks: half of them took no longer than the median."""

    median: float
    worst: float

    def __str__(self) -> str:
        return f"{self.median:,.0f} ({self.worst:,.0f})"


# -- queries ----------------------------------------------------------------------------------------------------------


def staged(stages: int) -> str:
    """A query whose key changes so many times: counts by auction, then how many auctions have each count, and so on."""
    query = "SELECT auction AS c0, COUNT(*) AS c1 FROM bid WINDOW(RANGE 60 SECONDS) GROUP BY auction"
    for k in range(1, stages):
        query = f"SELECT c{k}, COUNT(*) AS c{k + 1} FROM ({query}) GROUP BY c{k}"
    return query


def alike(count: int) -> list[str]:
    """They differ in their last step only."""
    return [
        f"SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 60 SECONDS) GROUP BY auction HAVING COUNT(*) > {k + 1}"
        for k in range(count)
    ]


def unlike(count: int) -> list[str]:
    """They share nothing but their source: each aggregates other rows."""
    return [
        f"SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 60 SECONDS) WHERE price > {100 * k} GROUP BY auction"
        for k in range(count)
    ]


@frozen
class Growing:
    """A query whose state holds as many elements as one wants."""

    title: str
    query: str
    """With the length of its windows, {live}, in milliseconds."""
    streams: tuple[str, ...]
    rows_a_key: int


GROWING = (
    Growing(
        "COUNT + SUM per key",
        "SELECT auction, COUNT(*) AS n, SUM(price) AS total FROM bid WINDOW(RANGE {live} MILLISECONDS) GROUP BY auction",
        ("bid",),
        10,
    ),
    Growing(
        "join",
        "SELECT b.auction, b.price, a.seller FROM bid WINDOW(RANGE {live} MILLISECONDS) b "
        "JOIN auction WINDOW(RANGE {live} MILLISECONDS) a ON b.auction = a.id",
        ("bid", "auction"),
        2,
    ),
    Growing("DISTINCT", "SELECT DISTINCT auction FROM bid WINDOW(RANGE {live} MILLISECONDS)", ("bid",), 10),
)


# -- rows -------------------------------------------------------------------------------------------------------------


class Rows:
    """Bids and auctions as they come: one row every so many microseconds of event time, the streams taking turns."""

    def __init__(self, streams: Sequence[str], keys: int, step: int) -> None:
        self._streams, self._keys, self._step = tuple(streams), keys, step
        self._random = np.random.default_rng(3)
        self._at = 0

    def take(self, size: int) -> Batches:
        time = BEGIN * _MS + (self._at + np.arange(size)) * self._step
        self._at += size
        return {
            stream: self._rows(stream, time[turn :: len(self._streams)]) for turn, stream in enumerate(self._streams)
        }

    def _rows(self, stream: str, time: np.ndarray) -> pa.Table:
        key, other = self._random.integers(0, self._keys, len(time)), self._random.integers(0, 50_000, len(time))
        stamps = pa.array(time).cast(pa.timestamp("us"))
        if stream == "auction":
            return pa.table({"id": key, "seller": other, "ts": stamps, "expires": stamps})
        return pa.table({"auction": key, "bidder": other, "price": other, "ts": stamps})


# -- measuring --------------------------------------------------------------------------------------------------------


def measure(ticking: Ticking, batches: Iterator[Batches], ticks: int) -> Measure:
    times = [ticking.tick(next(batches)) * 1_000 for _ in range(ticks)]
    return Measure(float(np.median(times)), max(times))


def _endless(rows: Rows, size: int) -> Iterator[Batches]:
    while True:
        yield rows.take(size)


def small_ticks(open_: Callable[..., Ticking], queries: Sequence[str], *, job: bool, ticks: int) -> Measure:
    """Ticks of 100 bids over these queries."""
    batches = _endless(Rows(["bid"], 40_000, 200), SMALL)
    with open_(queries, ("bid",), job=job) as ticking:
        measure(ticking, batches, _WARM)
        return measure(ticking, batches, ticks)


def grown_ticks(open_: Callable[..., Ticking], case: Growing, live: int, *, job: bool, ticks: int) -> Measure:
    """Ticks of 10,000 rows once so many elements are live, as many leaving as coming."""
    rows = Rows(case.streams, max(live // case.rows_a_key, 1), _MS)
    with open_([case.query.format(live=live)], case.streams, job=job) as ticking:
        left = 2 * live
        while left > 0:
            ticking.tick(rows.take(min(left, _FILL)))
            left -= _FILL
        batches = _endless(rows, DELTA)
        measure(ticking, batches, _WARM)
        return measure(ticking, batches, ticks)


# -- tables -----------------------------------------------------------------------------------------------------------


def run(
    open_: Callable[..., Ticking], *, largest: int = LIVE[-1], ticks: int = 30, say: Say = lambda text: None
) -> list[Table]:
    """Three tables: stages, queries, state."""
    return [_stages(open_, ticks, say), _queries(open_, ticks, say), _state(open_, largest, ticks, say)]


_WAYS = (("in the driver", False), ("as a Spark job", True))


def _stages(open_: Callable[..., Ticking], ticks: int, say: Say) -> Table:
    table = _table(f"median ms of a tick of {SMALL} rows by stages (worst in brackets)", "tick", map(str, STAGES))
    for title, job in _WAYS:
        found = []
        for stages in STAGES:
            found.append(small_ticks(open_, [staged(stages)], job=job, ticks=ticks))
            say(f"{stages} stages {title}: {found[-1]} ms")
        table.add_row(title, *map(str, found))
    return table


def _queries(open_: Callable[..., Ticking], ticks: int, say: Say) -> Table:
    heading = f"median ms of a tick of {SMALL} rows by queries over one source (worst in brackets)"
    table = _table(heading, "queries", [*map(str, QUERIES), f"{QUERIES[-1]} to 1"], ("tick",))
    for kind, make in (("alike", alike), ("unlike", unlike)):
        for title, job in _WAYS:
            found = []
            for count in QUERIES:
                found.append(small_ticks(open_, make(count), job=job, ticks=ticks))
                say(f"{count} queries {kind} {title}: {found[-1]} ms")
            table.add_row(kind, title, *map(str, found), f"{found[-1].median / found[0].median:.1f}x")
    return table


def _state(open_: Callable[..., Ticking], largest: int, ticks: int, say: Say) -> Table:
    sizes = [live for live in LIVE if live <= largest] or [largest]
    heading = f"median ms of a tick of {DELTA:,} rows by live elements (worst in brackets)"
    table = _table(heading, "query", [*(f"{live:,}" for live in sizes), "growth"], ("tick",))
    for case in GROWING:
        for title, job in _WAYS:
            found = []
            for live in sizes:
                found.append(grown_ticks(open_, case, live, job=job, ticks=ticks))
                say(f"{case.title} with {live:,} live elements {title}: {found[-1]} ms")
            table.add_row(case.title, title, *map(str, found), f"{found[-1].median / found[0].median:.2f}x")
    return table


def as_markdown(tables: Sequence[Table], command: str) -> str:
    """For a page: the command and the tables."""
    lines = [f"## `{command}`"]
    for table in tables:
        head = [str(column.header) for column in table.columns]
        aligned = [":---" if column.justify == "left" else "---:" for column in table.columns]
        cells = zip(*(column.cells for column in table.columns), strict=True)
        lines += ["", f"{table.title}:", ""]
        lines += [f"| {' | '.join(map(str, row))} |" for row in (head, aligned, *cells)]
    return "\n".join(lines) + "\n"


def _table(title: str, first: str, columns: Sequence[str] | Iterator[str], more: Sequence[str] = ()) -> Table:
    table = Table(title=title)
    for name in (first, *more):
        table.add_column(name)
    for name in columns:
        table.add_column(name, justify="right")
    return table
