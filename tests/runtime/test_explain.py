"""EXPLAIN in its levels and formats."""

from __future__ import annotations

import json

import pytest

from headwater.algebra.plan_text import print_plan
from headwater.backends.explain import explain
from headwater.language.binder import bind_script
from headwater.language.introspection import Explain, ExplainFormat, ExplainLevel
from headwater.optimizer.plan_query import plan_query
from headwater.settings import Settings
from headwater.testing.plan_text import parse_plan

STREAMS = "CREATE STREAM bid (auction BIGINT, price DOUBLE, ts TIMESTAMP) ORDERED BY ts;"
HIGHEST = """SELECT auction, price FROM bid WINDOW(RANGE 10 MINUTES)
    WHERE price = (SELECT MAX(price) FROM bid WINDOW(RANGE 10 MINUTES)) AND auction > 3"""


def asked(query: str, **options: object) -> Explain:
    result = bind_script(STREAMS + query).result
    assert result is not None
    return Explain("query", result.plan, **options)  # type: ignore[arg-type]


def test_a_tree_at_a_glance():
    assert explain(asked(HIGHEST)) == (
        "Project auction, price                rate 392 k/s\n"
        "└─ Inner join on price = max          rate 392 k/s, state 223 k rows, 8.02 MB, expires when its elements end\n"
        "   ├─ Project auction, price          rate 330/s\n"
        "   │  └─ Window RANGE 10 MINUTES      rate 330/s\n"
        "   │     └─ Filter auction > 3        rate 330/s\n"
        "   │        └─ #1 Source bid          rate 1 k/s\n"
        "   └─ Aggregate: MAX(price) AS max    rate 2 k/s, state 600 k rows, 15 MB, expires after 10 MINUTES\n"
        "      └─ Project price                rate 1 k/s\n"
        "         └─ Window RANGE 10 MINUTES   rate 1 k/s\n"
        "            └─ #1 (shared, above)\n\n"
        "Figures of bid: guessed.\n"
        "In memory and on the terminal (EMIT ON START) a row shows when its start is final; its end follows when that is.\n"
        "Elsewhere (EMIT ON CLOSE) a row shows when both its ends are final, up to 10 MINUTES after it began."
    )


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT auction FROM bid WHERE price > 3", "A row shows with both its ends as soon as these are known"),
        ("SELECT auction FROM bid WINDOW(ROWS 1) EMIT ON CLOSE", "when both its ends are final, which may never be."),
        ("SELECT MAX(price) AS m FROM bid [RANGE 1 MINUTE] EMIT ON START", "EMIT ON START: a row shows when its start"),
        ("SELECT MAX(price) AS m FROM bid [RANGE 1 MINUTE] EMIT EVERY 5 SECONDS", "EMIT EVERY 5 SECONDS: the whole"),
        ("SELECT MAX(price) AS m FROM bid [RANGE 1 MINUTE] CONSISTENCY MIDDLE", "as soon as it follows from what has"),
    ],
)
def test_when_a_row_shows(query: str, says: str):
    for level in ("", "PHYSICAL", "HEARTBEAT"):
        (request,) = bind_script(f"{STREAMS} EXPLAIN {level} {query}").answers
        assert isinstance(request, Explain)
        assert says in explain(request)


def test_the_plan_as_written_shares_what_is_written_twice():
    text = explain(asked(HIGHEST, level=ExplainLevel.LOGICAL))
    assert "Semi join on price = max" in text
    assert text.count("Window RANGE 10 MINUTES") == 1
    assert "(shared, above)" in text


def test_the_text_can_be_parsed_again():
    request = asked(HIGHEST, format=ExplainFormat.TEXT)
    text = explain(request)
    assert parse_plan(text) == plan_query(request.plan, Settings()).logical
    written = explain(asked(HIGHEST, format=ExplainFormat.TEXT, level=ExplainLevel.LOGICAL))
    assert parse_plan(written) == request.plan
    assert written == print_plan(request.plan)


def test_json_names_every_node_once():
    found = json.loads(explain(asked(HIGHEST, format=ExplainFormat.JSON, verbose=True)))
    ids = [node["id"] for node in found["nodes"]]
    assert len(ids) == len(set(ids))
    assert found["root"] in ids
    assert {i for node in found["nodes"] for i in node["inputs"]} <= set(ids)
    assert {"rate", "columns"} <= found["nodes"][0].keys()
    assert "semi_join_of_unique" in [step["rule"] for step in found["rules"]]


def test_a_flowchart_links_inputs_to_what_reads_them():
    lines = explain(asked("SELECT price FROM bid WHERE price < 3", format=ExplainFormat.MERMAID)).splitlines()
    assert lines[0] == "flowchart BT"
    assert '  n1["Filter price &lt; 3<br/><small>rate 330/s</small>"]' in lines
    assert "  n0 --> n1" in lines


def test_verbose_tells_columns_properties_and_rules():
    text = explain(asked(HIGHEST, verbose=True))
    assert "· unique: ()" in text
    assert "· lifetime: 10 MINUTES" in text
    assert "rules used:" in text
    assert "semi_join_of_unique x1" in text
    assert "No rule applies." in explain(asked("SELECT * FROM bid", verbose=True))


def test_the_operators_that_run():
    text = explain(asked(HIGHEST, level=ExplainLevel.PHYSICAL))
    assert "join (keys price = max)" in text
    assert "routed by price | by max" in text
    assert "routed to one shard" in text


def test_what_spark_does_by_itself_is_told():
    told = "runs Spark"
    stateless = explain(asked("SELECT auction FROM bid WHERE price > 3", level=ExplainLevel.PHYSICAL))
    assert stateless.count(told) == 2
    assert "Python" not in stateless
    python = explain(asked("SELECT auction FROM bid WHERE sin(price) > 0", level=ExplainLevel.PHYSICAL))
    assert 'filter (predicate SIN("price") > 0)   runs Python' in python
    staged = explain(asked(HIGHEST, level=ExplainLevel.PHYSICAL))
    assert "runs Python, stage 2, routed by price | by max" in staged
    assert "time window (size 600000000, slide 1)   runs Python\n" in staged
    assert 'filter (predicate "auction" > 3)' in staged


def test_state_that_never_expires_says_so():
    text = explain(asked("SELECT auction, MAX(price) AS m FROM bid WINDOW(RANGE UNBOUNDED) GROUP BY auction"))
    assert "expires never" in text


@pytest.mark.parametrize("level", ExplainLevel)
@pytest.mark.parametrize("form", ExplainFormat)
def test_every_level_has_every_format(level: ExplainLevel, form: ExplainFormat):
    assert explain(asked(HIGHEST, level=level, format=form))
