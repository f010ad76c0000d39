"""The queries that every engine answers, in each engine's own words, and the form in which their answers compare.

Headwater's answers are rows with the time during which they hold. Other engines say the same by a row per window, or
a row per bid: `Case.intervals` turns the first into the second.
"""

from __future__ import annotations

from attrs import field, frozen

# -- intervals as rows ------------------------------------------------------------------------------------------------

_AS_ROWS = "SELECT * FROM answer"
"""All that is compared is in the columns."""


def _reports(slide: int) -> str:
    """A row for every window at whose end it holds: windows of RANGE … SLIDE show up an instant before they end."""
    return f"""SELECT * EXCLUDE (_start, _end), unnest(range(_start + INTERVAL 1 MICROSECOND, _end + INTERVAL 1 MICROSECOND,
        INTERVAL {slide} SECOND)) AS window_end FROM answer"""


_EVERY_SECOND = """SELECT * EXCLUDE (_start, _end), unnest(range(
    date_trunc('second', _start + INTERVAL 999999 MICROSECOND), _end, INTERVAL 1 SECOND)) AS window_end FROM answer"""
"""What holds at every full second."""

_AT_BIDS = """SELECT b.auction, b.ts, a.* EXCLUDE (auction, _start, _end)
    FROM bid b ASOF JOIN answer a ON b.auction = a.auction AND b.ts >= a._start"""
"""What holds when a bid is made."""

_NO_TIES = (
    """auction NOT IN (SELECT auction FROM (SELECT auction, ts FROM bid GROUP BY auction, ts HAVING COUNT(*) > 1))"""
)


@frozen
class Cannot:
    """Why there is no query."""

    reason: str


@frozen
class Case:
    """One line of the table."""

    name: str
    title: str
    headwater: str
    flink: str | Cannot
    spark: str | Cannot
    duckdb: str
    columns: tuple[str, ...]
    """What is compared; `ts` or `window_end` among them is the time of a row."""
    streams: tuple[str, ...] = ("bid",)
    intervals: str = _AS_ROWS
    """Headwater's answer as the rows that are compared."""
    duckdb_intervals: bool = False
    """DuckDB answers in intervals as well."""
    flink_revises: bool = False
    """Flink takes rows back: its answer is what is left in the end."""
    compared: str = "TRUE"
    """Which rows are compared, if not all."""
    note: str = field(default="")
    """How the answers differ, where they do."""

    @property
    def time(self) -> str:
        return next(name for name in ("window_end", "ts") if name in self.columns)


# -- DuckDB: piecewise constant answers from sorted endpoints -----------------------------------------------------------


def _report(slide: int) -> str:
    """The end of the first window with a row in it, in ms."""
    return f"(epoch_ms(ts) // {slide * 1_000} + 1) * {slide * 1_000}"


def _interval(start: str, end: str) -> str:
    """Milliseconds as the times an instant before them."""
    return f"make_timestamp({start} * 1000 - 1) AS _start, make_timestamp({end} * 1000 - 1) AS _end"


def _duckdb_count(slide: int) -> str:
    return f"""
WITH slices AS (SELECT auction, {_report(slide)} AS t, count(*) AS c FROM bid GROUP BY ALL),
  ends AS (SELECT auction, t, c FROM slices UNION ALL SELECT auction, t + 60000, -c FROM slices),
  steps AS (SELECT auction, t, sum(c) AS c FROM ends GROUP BY auction, t),
  sums AS (SELECT auction, t, lead(t) OVER w AS until, sum(c) OVER w AS n
           FROM steps WINDOW w AS (PARTITION BY auction ORDER BY t))
SELECT auction, n::BIGINT AS n, {_interval("t", "until")} FROM sums WHERE n > 0"""


def _duckdb_distinct(instant: str, times: str) -> str:
    return f"""
WITH seen AS (SELECT DISTINCT auction, {instant} AS t FROM bid),
  marked AS (SELECT auction, t, CASE WHEN t > lag(t) OVER w + 60000 THEN 1 ELSE 0 END AS fresh
             FROM seen WINDOW w AS (PARTITION BY auction ORDER BY t)),
  islands AS (SELECT auction, t, sum(fresh) OVER w AS island
              FROM marked WINDOW w AS (PARTITION BY auction ORDER BY t ROWS UNBOUNDED PRECEDING))
SELECT auction, {times} FROM (SELECT auction, min(t) AS t, max(t) + 60000 AS until FROM islands GROUP BY auction, island)"""


def _duckdb_except(instant: str, times: str) -> str:
    return f"""
WITH rows AS (SELECT id AS auction, {instant} AS t, 1 AS a, 0 AS b FROM auction
              UNION ALL SELECT auction, {instant}, 0, 1 FROM bid),
  ends AS (SELECT auction, t, a, b FROM rows UNION ALL SELECT auction, t + 60000, -a, -b FROM rows),
  steps AS (SELECT auction, t, sum(a) AS a, sum(b) AS b FROM ends GROUP BY auction, t),
  sums AS (SELECT auction, t, lead(t) OVER w AS until, greatest(sum(a) OVER w - sum(b) OVER w, 0)::BIGINT AS n
           FROM steps WINDOW w AS (PARTITION BY auction ORDER BY t))
SELECT auction, {times} FROM (SELECT auction, t, until, unnest(range(n)) FROM sums WHERE n > 0)"""


_EXACT = "epoch_ms(ts)"
_EXACT_TIMES = "make_timestamp(t * 1000) AS _start, make_timestamp(until * 1000) AS _end"

# -- the queries ------------------------------------------------------------------------------------------------------

_MAP = "SELECT auction, bidder, price * 908 AS price, ts FROM bid"
_FILTER = "SELECT auction, price, ts FROM bid WHERE auction % 123 = 0"


def _flink_hop(stream: str, slide: int) -> str:
    return f"TABLE(HOP(TABLE {stream}, DESCRIPTOR(ts), INTERVAL '{slide}' SECOND, INTERVAL '60' SECOND))"


def _spark_hop(slide: int) -> str:
    return f"window(ts, '60 seconds', '{slide} seconds')"


def _sliding(slide: int) -> Case:
    return Case(
        name=f"count-{slide}",
        title=f"count per key, 60 s / {slide} s",
        headwater=f"SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 60 SECONDS SLIDE {slide} SECONDS) GROUP BY auction",
        flink=f"SELECT auction, window_end, COUNT(*) AS n FROM {_flink_hop('bid', slide)} "
        "GROUP BY auction, window_start, window_end",
        spark=f"SELECT auction, window.end AS window_end, COUNT(*) AS n FROM bid GROUP BY auction, {_spark_hop(slide)}",
        duckdb=_duckdb_count(slide),
        columns=("auction", "window_end", "n"),
        intervals=_reports(slide),
        duckdb_intervals=True,
        note="same counts; Headwater and DuckDB tell them when they change, the others with every window",
    )


def _per_event(name: str, title: str, calls: tuple[tuple[str, str], ...]) -> Case:
    def called(over: str) -> str:
        return ", ".join(f"{call}{over} AS {column}" for call, column in calls)

    def in_window(length: str) -> str:
        return (
            f"SELECT auction, ts, {called(' OVER w')} FROM bid "
            f"WINDOW w AS (PARTITION BY auction ORDER BY ts RANGE BETWEEN {length} PRECEDING AND CURRENT ROW)"
        )

    return Case(
        name=name,
        title=title,
        headwater=f"SELECT auction, {called('')} FROM bid WINDOW(RANGE 60 SECONDS) GROUP BY auction",
        flink=in_window("INTERVAL '59.999' SECOND"),
        spark=in_window("INTERVAL '59.999' SECOND"),
        duckdb=in_window("INTERVAL 59999 MILLISECONDS"),
        columns=("auction", "ts", *(column for _, column in calls)),
        intervals=_AT_BIDS,
        note="equal at every bid; Headwater also tells what changes when a bid leaves the window, about twice the rows",
    )


_COUNT, _SUM, _MAX = ("COUNT(*)", "n"), ("SUM(price)", "total"), ("MAX(price)", "highest")

_LAST_ROWS = """SELECT auction, ts, COUNT(*) OVER w AS n, SUM(price) OVER w AS total FROM bid
WINDOW w AS (PARTITION BY auction ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)"""

_NO_SUCH_WINDOW = Cannot("no DISTINCT or EXCEPT over a window that moves with every row")

_EXCEPT_10 = Case(
    name="except-10",
    title="EXCEPT ALL, 60 s / 10 s",
    streams=("auction", "bid"),
    headwater="SELECT id AS auction FROM auction WINDOW(RANGE 60 SECONDS SLIDE 10 SECONDS) "
    "EXCEPT ALL SELECT auction FROM bid WINDOW(RANGE 60 SECONDS SLIDE 10 SECONDS)",
    flink=f"SELECT id AS auction, window_end FROM {_flink_hop('auction', 10)} "
    f"EXCEPT ALL SELECT auction, window_end FROM {_flink_hop('bid', 10)}",
    flink_revises=True,
    spark=f"SELECT id AS auction, w.end AS window_end FROM (SELECT id, {_spark_hop(10)} AS w FROM auction) "
    f"EXCEPT ALL SELECT auction, w.end FROM (SELECT auction, {_spark_hop(10)} AS w FROM bid)",
    duckdb=_duckdb_except(_report(10), _interval("t", "until")),
    columns=("auction", "window_end"),
    intervals=_reports(10),
    duckdb_intervals=True,
    note="equal in the end; Flink tells rows at once and takes them back, and never forgets",
)

CASES = (
    Case("map", "map", _MAP, _MAP, _MAP, _MAP, ("auction", "bidder", "price", "ts")),
    Case("filter", "filter", _FILTER, _FILTER, _FILTER, _FILTER, ("auction", "price", "ts")),
    Case(
        name="tumbling-max",
        title="tumbling max, 10 s",
        headwater="SELECT window_end, MAX(price) AS highest FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), 10 SECONDS) "
        "GROUP BY window_start, window_end",
        flink="SELECT window_end, MAX(price) AS highest FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND)) "
        "GROUP BY window_start, window_end",
        spark="SELECT window.end AS window_end, MAX(price) AS highest FROM bid GROUP BY window(ts, '10 seconds')",
        duckdb=f"SELECT make_timestamp(({_report(10)}) * 1000) AS window_end, max(price) AS highest FROM bid GROUP BY 1",
        columns=("window_end", "highest"),
    ),
    _sliding(10),
    _sliding(1),
    _per_event("per-event", "per event, COUNT + SUM", (_COUNT, _SUM)),
    _per_event("per-event-max", "per event, COUNT + SUM + MAX", (_COUNT, _SUM, _MAX)),
    Case(
        name="join",
        title="windowed join",
        streams=("bid", "auction"),
        headwater="SELECT b.auction, b.bidder, b.price, b.ts, a.seller FROM bid WINDOW(RANGE 60 SECONDS) b "
        "JOIN auction WINDOW(RANGE 60 SECONDS) a ON b.auction = a.id AND b.ts < a.expires",
        flink="SELECT b.auction, b.bidder, b.price, b.ts, a.seller FROM bid b JOIN auction a ON b.auction = a.id "
        "AND b.ts BETWEEN a.ts - INTERVAL '59.999' SECOND AND a.ts + INTERVAL '59.999' SECOND AND b.ts < a.expires",
        spark="SELECT b.auction, b.bidder, b.price, b.ts, a.seller FROM bid b JOIN auction a ON b.auction = a.id "
        "AND b.ts > a.ts - INTERVAL 60 SECONDS AND b.ts < a.ts + INTERVAL 60 SECONDS AND b.ts < a.expires",
        duckdb="SELECT b.auction, b.bidder, b.price, b.ts, a.seller FROM bid b JOIN auction a ON b.auction = a.id "
        "AND b.ts > a.ts - INTERVAL 60 SECONDS AND b.ts < a.ts + INTERVAL 60 SECONDS AND b.ts < a.expires",
        columns=("auction", "bidder", "price", "ts", "seller"),
    ),
    Case(
        name="distinct-10",
        title="DISTINCT, 60 s / 10 s",
        headwater="SELECT DISTINCT auction FROM bid WINDOW(RANGE 60 SECONDS SLIDE 10 SECONDS)",
        flink="SELECT auction, window_end FROM "
        f"(SELECT DISTINCT auction, window_start, window_end FROM {_flink_hop('bid', 10)})",
        spark=f"SELECT auction, w.end AS window_end FROM (SELECT DISTINCT auction, {_spark_hop(10)} AS w FROM bid)",
        duckdb=_duckdb_distinct(_report(10), _interval("t", "until")),
        columns=("auction", "window_end"),
        intervals=_reports(10),
        duckdb_intervals=True,
        note="same rows; Headwater and DuckDB tell from when to when, the others with every window",
    ),
    Case(
        name="distinct",
        title="DISTINCT, per event",
        headwater="SELECT DISTINCT auction FROM bid WINDOW(RANGE 60 SECONDS)",
        flink=_NO_SUCH_WINDOW,
        spark=_NO_SUCH_WINDOW,
        duckdb=_duckdb_distinct(_EXACT, _EXACT_TIMES),
        columns=("auction", "window_end"),
        intervals=_EVERY_SECOND,
        duckdb_intervals=True,
        note="compared at every full second",
    ),
    _EXCEPT_10,
    Case(
        name="except-by-hand",
        title="EXCEPT ALL, 60 s / 10 s, others by hand",
        streams=("auction", "bid"),
        headwater=_EXCEPT_10.headwater,
        flink="SELECT auction, window_end FROM (SELECT auction, window_start, window_end, SUM(c) AS n FROM "
        "TABLE(HOP(TABLE both_streams, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '60' SECOND)) "
        "GROUP BY auction, window_start, window_end) WHERE n > 0",
        spark="SELECT auction, window.end AS window_end FROM (SELECT id AS auction, ts, 1 AS c FROM auction "
        f"UNION ALL SELECT auction, ts, -1 AS c FROM bid) GROUP BY auction, {_spark_hop(10)} HAVING SUM(c) > 0",
        duckdb=_EXCEPT_10.duckdb,
        columns=("auction", "window_end"),
        intervals=_reports(10),
        duckdb_intervals=True,
        note="Flink and Spark sum +1 and -1 per window, which here is the same, as no auction opens twice",
    ),
    Case(
        name="except",
        title="EXCEPT ALL, per event",
        streams=("auction", "bid"),
        headwater="SELECT id AS auction FROM auction WINDOW(RANGE 60 SECONDS) "
        "EXCEPT ALL SELECT auction FROM bid WINDOW(RANGE 60 SECONDS)",
        flink=_NO_SUCH_WINDOW,
        spark=_NO_SUCH_WINDOW,
        duckdb=_duckdb_except(_EXACT, _EXACT_TIMES),
        columns=("auction", "window_end"),
        intervals=_EVERY_SECOND,
        duckdb_intervals=True,
        note="compared at every full second",
    ),
    Case(
        name="last-10",
        title="last 10 rows per key, COUNT + SUM",
        headwater="SELECT auction, COUNT(*) AS n, SUM(price) AS total FROM bid WINDOW(PARTITION BY auction ROWS 10) "
        "GROUP BY auction",
        flink=_LAST_ROWS,
        spark=_LAST_ROWS,
        duckdb=_LAST_ROWS,
        columns=("auction", "ts", "n", "total"),
        intervals=_AT_BIDS,
        compared=_NO_TIES,
        note="equal at every bid of auctions without two bids in one millisecond (whose order only Headwater fixes)",
    ),
)

FLINK_VIEW = """CREATE VIEW both_streams AS
SELECT id AS auction, 1 AS c, ts FROM auction UNION ALL SELECT auction, -1, ts FROM bid"""
"""Both streams as one, for EXCEPT by hand."""
