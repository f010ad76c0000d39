"""What is said before any row has come."""

from __future__ import annotations

from tests.clock.worlds import rules_of_sql, seen_of

from headwater.clock.clock import Clock
from headwater.clock.explain import explain_heartbeat
from headwater.clock.guarantees import Lagging, blocking, notices_of_query, timeout_needed
from headwater.optimizer.physical.wait_labels import Labeled

TWO = """
    CREATE STREAM temps (ts TIMESTAMP) ORDERED BY ts IN ORDER LAGS press BY AT MOST 5 SECONDS LATENCY 1 SECOND;
    CREATE STREAM press (ts TIMESTAMP) ORDERED BY ts STRICTLY INCREASING {more};
"""


def _codes(notices):
    return [n.code for n in notices]


def test_pairs_that_make_a_time_out_necessary():
    rules = rules_of_sql(TWO.format(more=""))
    found = timeout_needed(rules, ["temps", "press"])
    assert found == [
        Lagging("temps", "temps", 1),
        Lagging("temps", "press", None),
        Lagging("press", "temps", 5_000_001),
    ]
    notices = {n.code: n for n in notices_of_query(rules, ["temps", "press"])}
    assert set(notices) == {"TIMEOUT_NEEDED", "CAN_BLOCK"}
    assert '"temps" may lag "press" up to 5 SECONDS' in notices["TIMEOUT_NEEDED"].message


def test_a_stream_that_can_block_a_query_is_named():
    rules = rules_of_sql(TWO.format(more=""))
    assert blocking(rules, ["temps", "press"]) == [Lagging("temps", "press", None)]
    (notice,) = [n for n in notices_of_query(rules, ["temps", "press"]) if n.code == "CAN_BLOCK"]
    assert notice.message == 'stream "press" can block the query for ever: no bound says how far it lags "temps"'
    assert not blocking(rules, ["temps"])


def test_idle_after_and_time_outs_settle_it():
    rules = rules_of_sql(TWO.format(more="IDLE AFTER 10 SECONDS TIMEOUT 1 MINUTE"))
    assert notices_of_query(rules, ["temps", "press"]) == []


def test_no_time_out_is_needed_if_all_lags_end_at_zero():
    rules = rules_of_sql("""
        CREATE STREAM a (t BIGINT) ORDERED BY t TOKENS FROM c TAKING BETWEEN 1 SECOND AND 2 SECONDS;
        CREATE STREAM b (t BIGINT) ORDERED BY t TOKENS FROM c TAKING BETWEEN 1 SECOND AND 5 SECONDS;
    """)
    assert timeout_needed(rules, ["a", "b"]) == []
    assert notices_of_query(rules, ["a", "b"]) == []
    assert "no TIMEOUT is needed" in explain_heartbeat(rules, ["a", "b"])


def test_bounds_that_count_rows_do_not_make_a_time_out_needless():
    rules = rules_of_sql("CREATE STREAM s (t BIGINT) ORDERED BY t IN ORDER ROWS PER TIMESTAMP AT MOST 3;")
    assert timeout_needed(rules, ["s"]) == [Lagging("s", "s", 1)]


def test_a_time_out_below_the_bounds_is_told():
    rules = rules_of_sql("""
        CREATE STREAM a (ts TIMESTAMP) ORDERED BY ts IN ORDER TIMEOUT 4 SECONDS;
        CREATE STREAM b (ts TIMESTAMP) ORDERED BY ts IN ORDER LAGS a BY AT MOST 1 SECOND AFTER 3 SECONDS LATENCY 2 SECONDS;
    """)
    (notice,) = (n for n in notices_of_query(rules, ["b"]) if n.code == "SHORT_TIMEOUT")
    assert notice.message == (
        "TIMEOUT 4 SECONDS is shorter than the 5 SECONDS after which LAGS a BY AT MOST 1 SECOND AFTER 3 SECONDS takes effect"
    )
    assert "SHORT_TIMEOUT" in _codes(notices_of_query(rules, ["a"]))


def test_bounds_that_can_never_take_effect_are_told():
    rules = rules_of_sql(
        "CREATE STREAM s (t BIGINT) ORDERED BY t IN ORDER DISORDER 0 AFTER 1 SECOND ORDERED TRANSPORT;"
    )
    assert "UNKNOWN_LATENCY" not in _codes(notices_of_query(rules, ["s"]))  # needless beside IN ORDER
    rules = rules_of_sql(
        "CREATE STREAM s (t BIGINT) ORDERED BY t DISORDER 9 DISORDER 0 AFTER 1 SECOND ORDERED TRANSPORT;"
    )
    (notice,) = (n for n in notices_of_query(rules, ["s"]) if n.code == "UNKNOWN_LATENCY")
    assert "DISORDER 0 AFTER 1 SECOND promises nothing" in notice.message


def test_explain_heartbeat_tells_everything():
    rules = rules_of_sql("""
        CREATE STREAM a (t BIGINT) ORDERED BY t DISORDER 2 TIMEOUT 30 SECONDS;
        CREATE STREAM b (t BIGINT) ORDERED BY t IN ORDER LAGS a BY AT MOST 4 LATENCY 1 SECOND TRANSITIVE;
        CREATE STREAM c (t BIGINT) ORDERED BY t IN ORDER LAGS b BY AT MOST 1 TRANSITIVE IDLE AFTER 9 SECONDS;
        CREATE STREAM d (t BIGINT) ORDERED BY t;
    """)
    clock = Clock.of(rules).after({"a": [seen_of([10])]}, 0, together=["abc"])
    plan = Labeled("join", (Labeled("filter", (Labeled("a"),)), Labeled("b"), Labeled("c")))
    assert explain_heartbeat(rules, ["a", "b", "c"], clock, plan=plan) == EXPLAINED
    assert "HEARTBEAT ESTIMATED (" in explain_heartbeat(rules, ["d"])


EXPLAINED = """\
streams
  a: DISORDER 2; as it arrives; TIMEOUT 30 SECONDS
  b: IN ORDER; unordered, latency 1 SECOND
  c: IN ORDER; as it arrives; IDLE AFTER 9 SECONDS
bounds as declared
  a -> a: at most 2 older
  a -> b: at most 4 older
  b -> b: at most 0 older
  b -> c: at most 1 older
  c -> c: at most 0 older
bounds that follow along chains
  a -> c: at most 6 older
time domains
  a, b, c: TIMEOUT 30 SECONDS
operators wait for
  join: a, b, c
  filter: a
progress
  CAN_BLOCK: stream "a" can block the query for ever: no bound says how far it lags "b" or "c"
  CAN_BLOCK: stream "b" can block the query for ever: no bound says how far it lags "c"
now
  a: frontier 8, set by DISORDER 2, newest row 10
  b: frontier the beginning, no row yet, becomes 6 at 1970-01-01 00:00:01 by LAGS a BY AT MOST 4
  c: frontier 4, set by TRANSITIVE bounds from a, no row yet
  held back by b"""


TOLD = """
    CREATE STREAM told (ts TIMESTAMP, hb TIMESTAMP) ORDERED BY ts HEARTBEAT FROM SOURCE (hb) {more};
    CREATE STREAM changed (x INT);
    CREATE STREAM other (ts TIMESTAMP) ORDERED BY ts STRICTLY INCREASING {more};
"""


def test_a_stream_that_only_its_source_speaks_for_is_not_called_final():
    rules = rules_of_sql(TOLD.format(more=""))
    for name, word in (("told", "HEARTBEAT FROM SOURCE (hb)"), ("changed", "stable points")):
        text = explain_heartbeat(rules, [name])
        assert f"{name} is final as far as its source says, and no further: {word}" in text
        assert "everything becomes final" not in text
        messages = [n.message for n in notices_of_query(rules, [name, "other"]) if n.code == "CAN_BLOCK"]
        assert any(
            m.startswith(f'stream "{name}" can block the query for ever: only its source says') for m in messages
        )


def test_a_time_out_and_the_wall_clock_speak_for_it_too():
    for more in ("TIMEOUT 1 MINUTE", "ALONG WALL CLOCK"):
        text = explain_heartbeat(rules_of_sql(TOLD.format(more=more)), ["told"])
        assert "everything becomes final" in text
        assert "no further" not in text


def test_what_is_learned_only_after_many_rows_says_so():
    for clause, rows in (
        ("", 0),
        ("HEARTBEAT ESTIMATED (WALL CLOCK)", 1000),
        ("HEARTBEAT ESTIMATED (WARMUP 7 ROWS)", 7),
    ):
        rules = rules_of_sql(f"CREATE STREAM s (ts TIMESTAMP) ORDERED BY ts {clause};")
        told = f'WARMUP: nothing of stream "s" is final before {rows:,} of its rows have come'
        assert (told in explain_heartbeat(rules, ["s"])) == bool(rows)
        assert ("WARMUP" in _codes(notices_of_query(rules, ["s"]))) == bool(rows)
