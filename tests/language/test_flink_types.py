"""Types as Flink writes them: ROW<…>, as in the tables of NEXMark."""

from __future__ import annotations

from headwater.language.binder import bind_script

TABLE = """
CREATE TABLE event (
    kind INT,
    person ROW<id BIGINT, home ROW<city VARCHAR, zip INT>, at TIMESTAMP(3)>,
    bid ROW<auction BIGINT, at TIMESTAMP(3)>,
    at AS CASE WHEN kind = 0 THEN person.at ELSE bid.at END,
    WATERMARK FOR at AS at - INTERVAL '4' SECOND
);
"""


def test_a_row_is_a_struct():
    script = bind_script(TABLE + "SELECT person.home.city AS city, bid.auction, at FROM event WHERE kind < 2")
    assert script.result is not None
    assert str(script.result.plan.schema) == "(city STRING, auction BIGINT, at TIMESTAMP)"


def test_a_column_may_be_called_row():
    script = bind_script("CREATE STREAM s (row INT, x ROW<y INT>); SELECT row FROM s WHERE row < 3 AND x.y > 1")
    assert script.result is not None
    assert str(script.result.plan.schema) == "(row INT)"
