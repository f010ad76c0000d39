"""NEXMark in Flink's words (``nexmark/flink.txt``): what each query does here, and the text that gives Flink's answer.

Over the same rows, the answer is compared with DuckDB's: of all rows, as Flink's answer is in the end.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import headwater as hw
from headwater.errors import SqlError
from headwater.language.binder import bind_script
from headwater.sources.nexmark_generator import NexmarkGenerator

TABLES = """
CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING)
  ORDERED BY dateTime DISORDER 4 SECONDS;
CREATE STREAM auction (id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
                       expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING)
  ORDERED BY dateTime DISORDER 4 SECONDS;
CREATE STREAM person (id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING,
                      dateTime TIMESTAMP, extra STRING)
  ORDERED BY dateTime DISORDER 4 SECONDS;
CREATE TABLE side_input (key BIGINT, value STRING) AS VALUES (1001, 'a'), (1002, 'b'), (1003, 'c');
"""
TEXT = (Path(__file__).parent / "nexmark" / "flink.txt").read_text(encoding="utf-8")
QUERIES = {
    name: sql.strip() for name, sql in re.findall(r"^\[(q\d+)\]\n(.*?)(?=^\[|\Z)", TEXT, re.DOTALL | re.MULTILINE)
}
RUNS = ("q0", "q1", "q2", "q5", "q8", "q10", "q11", "q14", "q22")
"""They mean here what they mean in Flink."""
NOTICED = dict.fromkeys(("q3", "q4", "q6", "q9", "q15", "q16", "q17", "q18", "q19", "q20", "q23"), "ONE_INSTANT") | {
    "q7": "CLOSED_WINDOW",
    "q21": "NO_MATCH",
}
REFUSED = {"q12": "PROCTIME", "q13": "PROCTIME"}
FOR_EVER = {
    "bid": "bid [RANGE UNBOUNDED]",
    "auction": "auction [RANGE UNBOUNDED]",
    "person": "person [RANGE UNBOUNDED]",
}


def without_end(sql: str, *aliases: str) -> str:
    """What the notice says: streams whose rows count for ever."""
    for name, windowed in FOR_EVER.items():
        sql = re.sub(rf"(FROM|JOIN|,) {name}\b", rf"\1 {windowed}", sql)
    return sql


REWRITTEN = {name: without_end(QUERIES[name]) for name in NOTICED if name not in ("q6", "q7", "q18", "q21")} | {
    "q18": "SELECT auction, bidder, price, channel FROM bid [PARTITION BY bidder, auction ROWS 1]",
    "q7": QUERIES["q7"].replace("FROM bid B", "FROM bid [RANGE 11 SECONDS] B"),
    "q12": QUERIES["q12"].replace("(SELECT *, PROCTIME() AS p_time FROM bid)", "bid").replace("p_time", "dateTime"),
    "q22": "SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5) FROM bid",
    "q21": re.sub(r"REGEXP_EXTRACT\(.*?, 2\)", r"NULLIF(\g<0>, '')", QUERIES["q21"]),
    "q13": """SELECT B.auction, B.bidder, B.price, B.dateTime, S.value
              FROM bid AS B JOIN side_input AS S ON MOD(B.auction, 10000) = S.key""",
}
OF_DUCKDB = {
    "q13": REWRITTEN["q13"],
    "q21": REWRITTEN["q21"],
    "q22": REWRITTEN["q22"],
    "q7": """WITH m AS (SELECT max(price) AS price, time_bucket(INTERVAL 10 SECOND, dateTime) + INTERVAL 10 SECOND AS until
                        FROM bid GROUP BY until)
             SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra FROM bid b JOIN m ON b.price = m.price
             WHERE b.dateTime BETWEEN m.until - INTERVAL 10 SECOND AND m.until""",
    "q8": """SELECT DISTINCT p.id, p.name, time_bucket(INTERVAL 10 SECOND, p.dateTime) FROM person p JOIN auction a
             ON p.id = a.seller
             AND time_bucket(INTERVAL 10 SECOND, p.dateTime) = time_bucket(INTERVAL 10 SECOND, a.dateTime)""",
    "q11": """WITH a AS (SELECT *, dateTime - lag(dateTime) OVER w > INTERVAL 10 SECOND AS fresh FROM bid
                         WINDOW w AS (PARTITION BY bidder ORDER BY dateTime)),
                   b AS (SELECT *, count_if(coalesce(fresh, FALSE)) OVER (PARTITION BY bidder ORDER BY dateTime) AS n FROM a)
              SELECT bidder, count(*), min(dateTime), max(dateTime) + INTERVAL 10 SECOND FROM b GROUP BY bidder, n""",
    "q12": """SELECT bidder, count(*), time_bucket(INTERVAL 10 SECOND, dateTime) AS since, since + INTERVAL 10 SECOND
              FROM bid GROUP BY bidder, since""",
    "q18": """SELECT auction, bidder, price, channel FROM bid
              QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) = 1""",
}


@pytest.fixture(scope="module")
def rows() -> dict[str, pa.Table]:
    """A few seconds of NEXMark's events under Flink's names."""
    made = {
        kind: pa.table(NexmarkGenerator(kind, rate=60, seed=7).batch(0, 2500)) for kind in ("person", "auction", "bid")
    }
    connection = duckdb.connect()
    for kind, table in made.items():
        connection.register(f"made_{kind}", table)
    chosen = {
        "bid": """auction, bidder, price, channel, 'https://x.com/a/b/item.htm?query=1'
                  || CASE WHEN price % 3 > 0 THEN '&channel_id=' || (price % 7) ELSE '' END AS url,
                  ts AS dateTime, repeat('c', (price % 5)::INT) || 'x' AS extra""",
        "auction": """id, item AS itemName, item AS description, initial_bid AS initialBid, reserve, ts AS dateTime, expires,
                      seller, category, 'e' AS extra""",
        "person": "id, name, email AS emailAddress, credit_card AS creditCard, city, state, ts AS dateTime, 'e' AS extra",
    }
    return {
        kind: connection.sql(f"SELECT {columns} FROM made_{kind}").to_arrow_table() for kind, columns in chosen.items()
    }


def answered(sql: str, rows: dict[str, pa.Table]) -> Counter:
    """What is there in the end, or was there while it was valid."""
    engine = hw.connect(runner="inprocess")
    engine.sql(TABLES)
    run = engine.sql(sql).start()
    for name, table in rows.items():
        engine.push(name, table)
    engine.run_to_end()
    found = run.history().rows()
    engine.close()
    lasting = any(row["_end"] is None for row in found)
    kept = [row for row in found if not lasting or row["_end"] is None]
    return Counter(_values(list(row.values())[:-2]) for row in kept)


def judged(sql: str, rows: dict[str, pa.Table]) -> Counter:
    connection = duckdb.connect()
    for name, table in rows.items():
        connection.register(name, table)
    side_input = "(VALUES (1001, 'a'), (1002, 'b'), (1003, 'c')) v(key, value)"
    connection.execute(f"CREATE TABLE side_input AS SELECT * FROM {side_input}")
    sql = sql.replace("CHAR_LENGTH", "LENGTH").replace("INTERVAL '10' SECOND", "INTERVAL 10 SECOND")
    sql = sql.replace("'yyyy-MM-dd'", "'%Y-%m-%d'").replace("'HH:mm'", "'%H:%M'").replace("DATE_FORMAT", "strftime")
    return Counter(_values(row) for row in connection.execute(sql).fetchall())


def _values(row: Any) -> tuple[Any, ...]:
    """Sums of decimals and of doubles are alike to four places."""
    exact = (int, str, type(None))
    return tuple(v if isinstance(v, exact) or not hasattr(v, "__float__") else round(float(v), 4) for v in row)


def test_every_query_is_there():
    assert list(QUERIES) == [f"q{number}" for number in range(24)]


@pytest.mark.parametrize("name", RUNS)
def test_it_means_the_same(name: str):
    assert bind_script(TABLES + QUERIES[name]).notices == ()


@pytest.mark.parametrize("name", NOTICED)
def test_a_notice_says_what_to_write(name: str):
    codes = [notice.code for notice in bind_script(TABLES + QUERIES[name]).notices if notice.hint]
    assert NOTICED[name] in codes


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_what_to_write(name: str):
    with pytest.raises(SqlError, match=REFUSED[name]) as caught:
        bind_script(TABLES + QUERIES[name])
    assert caught.value.hint


@pytest.mark.parametrize("name", [n for n in RUNS if n != "q5"])
def test_the_answer_is_flinks(name: str, rows: dict[str, pa.Table]):
    found = answered(QUERIES[name], rows)
    assert found
    assert found == judged(OF_DUCKDB.get(name, QUERIES[name]), rows)


def test_the_hot_items_of_each_window_are_flinks(rows: dict[str, pa.Table]):
    engine = hw.connect(runner="inprocess")
    engine.sql(TABLES)
    run = engine.sql(QUERIES["q5"]).start()
    for name, table in rows.items():
        engine.push(name, table)
    engine.run_to_end()
    for end in range(2, 60, 2):
        found = Counter(tuple(row.values()) for row in run.snapshot(at=end * 1_000_000).rows())
        within = f"dateTime >= make_timestamp({end - 10} * 1000000) AND dateTime < make_timestamp({end} * 1000000)"
        counted = f"SELECT auction, count(*) AS n FROM bid WHERE {within} GROUP BY auction"
        assert found == judged(f"SELECT auction, n FROM ({counted}) QUALIFY n = max(n) OVER ()", rows), end
    engine.close()


@pytest.mark.parametrize("name", REWRITTEN)
def test_the_text_to_write_gives_flinks_answer(name: str, rows: dict[str, pa.Table]):
    found = answered(REWRITTEN[name], rows)
    assert found
    assert found == judged(OF_DUCKDB.get(name, QUERIES[name]), rows)
