"""Statements beside queries: what CREATE leaves in the catalog, what DROP refuses, what SHOW and DESCRIBE answer."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from headwater.algebra.nodes import Constant, Istream, Project, Source, TimeWindow
from headwater.errors import SqlError
from headwater.language.binder import bind_script
from headwater.language.catalog import Catalog, Connector, Derived, Kind, Stream
from headwater.language.consistency import MIDDLE, STRONG, WEAK, Consistency, Level
from headwater.language.introspection import Answer, Explain, ExplainFormat, ExplainLevel
from headwater.model.time import INFINITY
from headwater.testing.checks import check_case
from headwater.testing.choices import Dice
from headwater.testing.generate import streams

BID = "CREATE STREAM bid (item INT, price DOUBLE);\n"


def entry(script: str, name: str = "q") -> Stream | Derived:
    found = bind_script(script).catalog.get(name)
    assert found is not None
    return found


def codes(script: str, catalog: Catalog | None = None) -> list[str]:
    return [notice.code for notice in bind_script(script, catalog).notices]


# -- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["TABLE", "RELATION"])
def test_a_relation_is_a_source_whose_elements_have_intervals(word: str):
    found = entry(f"CREATE {word} q (a INT NOT NULL, b STRING, PRIMARY KEY (b, a)) SOURCE files('x', format => 'csv')")
    assert found.kind is Kind.TABLE
    assert found.key == ("b", "a")
    assert found.source == Connector("files", ("x",), (("format", "csv"),))
    assert found.plan == Source("q", found.schema, chronons=False, revisable=True)


@pytest.mark.parametrize("columns", ["a INT PRIMARY KEY, b INT", "PRIMARY KEY (A) NOT ENFORCED, a INT, b INT"])
def test_a_key_is_said_of_a_column_or_of_the_table(columns: str):
    assert entry(f"CREATE TABLE q ({columns})").key == ("a",)


RELATION_QUERIES = [
    "SELECT * FROM person",
    "SELECT * FROM person WINDOW(RANGE 3)",
    "SELECT * FROM Istream(person) WINDOW(RANGE 2)",
    "SELECT * FROM Dstream(person)",
    "SELECT id, n FROM person, kind WHERE id = k",
    "SELECT id FROM person WHERE id NOT IN (SELECT k FROM kind)",
    "SELECT n, COUNT(*) AS c FROM person JOIN kind ON id = k GROUP BY n",
    "SELECT k FROM kind EXCEPT SELECT id FROM person",
]


@pytest.mark.parametrize("query", RELATION_QUERIES)
def test_relations_and_constants_mean_what_the_oracle_says(query: str):
    script = f"""CREATE TABLE person (id INT, name STRING);
                 CREATE TABLE kind (k INT, n STRING) AS VALUES (0, 'zero'), (1, 'one'), (1, 'eins'), (NULL, 'none');
                 {query}"""
    plan = bind_script(script).result.plan
    for seed in range(6):
        check_case(plan, streams(Dice(seed), plan), seed, thorough=False)


def test_a_table_of_values_has_columns_of_the_common_types():
    found = entry("CREATE TABLE q AS VALUES (1, 'a', 1.5), (2L, NULL, 2), (-3, 'c', CAST(4 AS DOUBLE))")
    assert str(found.plan.schema) == "(col1 BIGINT NOT NULL, col2 STRING, col3 DOUBLE NOT NULL)"
    assert found.plan == Constant(found.plan.schema, ((1, "a", 1.5), (2, None, 2.0), (-3, "c", 4.0)))
    assert found.kind is Kind.TABLE
    assert found.is_constant


def test_values_become_what_the_columns_are_declared_to_be():
    found = entry(
        "CREATE TABLE q (a TINYINT NOT NULL, b DECIMAL(5,2), c DATE, d STRING, e ARRAY<BIGINT>, f STRUCT<x: INT>)"
        " AS (VALUES (1, 2, '2026-01-02', 5, array(1, 2), named_struct('x', 7)), (2, 2.5, NULL, 'x', NULL, NULL))"
    )
    assert found.plan.rows == (
        (1, Decimal("2.00"), date(2026, 1, 2), "5", (1, 2), (("x", 7),)),
        (2, Decimal("2.50"), None, "x", None, None),
    )
    assert hash(found.plan) is not None


def test_values_may_be_computed():
    found = entry("CREATE TABLE q (a, b) AS VALUES (1 + 2 * 3, upper('x')), (abs(-4), concat('y', 1))")
    assert found.plan.rows == ((7, "X"), (4, "y1"))
    assert found.plan.schema.names == ("a", "b")


def test_a_single_value_needs_no_parentheses():
    assert entry("CREATE TABLE q AS VALUES 1, 2, 3").plan.rows == ((1,), (2,), (3,))


@pytest.mark.parametrize("kind", ["STREAM", "TABLE", "VIEW"])
def test_what_a_query_defines_is_a_macro_whatever_it_is_called(kind: str):
    script = bind_script(f"{BID} CREATE {kind} q AS SELECT item FROM bid [RANGE 5]; SELECT * FROM q [RANGE 2]")
    (named,) = script.named
    assert isinstance(named.plan, Project)
    assert script.result.plan == TimeWindow(named.plan, 2)
    assert script.catalog.get("q").kind is Kind(kind.lower())


def test_the_columns_of_a_query_may_get_other_names_and_wider_types():
    script = bind_script(f"{BID} CREATE TABLE q (a BIGINT, b) AS SELECT item, price FROM bid")
    assert str(script.named[0].plan.schema) == "(a BIGINT, b DOUBLE)"
    assert [f.name for f in script.catalog.get("q").fields] == ["a", "b"]


# -- replacing and dropping -------------------------------------------------------------------------------------------


def test_if_not_exists_leaves_what_there_is():
    catalog = Catalog()
    bind_script(BID, catalog)
    assert codes("CREATE STREAM IF NOT EXISTS bid (x INT); CREATE TABLE IF NOT EXISTS t (x INT)", catalog) == [
        "EXISTS_ALREADY"
    ]
    assert catalog.get("bid").schema.names == ("item", "price")
    assert catalog.get("t") is not None


def test_or_replace_replaces_what_nothing_uses():
    script = bind_script(
        f"{BID} CREATE STREAM q AS SELECT item FROM bid; CREATE OR REPLACE STREAM q AS SELECT price FROM bid"
    )
    assert [q.plan.schema.names for q in script.named] == [("price",)]
    assert entry(f"{BID} CREATE OR REPLACE STREAM bid (x INT)", "bid").schema.names == ("x",)


def test_a_replacement_with_a_mistake_leaves_the_old_one():
    catalog = Catalog()
    bind_script(BID, catalog)
    with pytest.raises(SqlError):
        bind_script("CREATE OR REPLACE STREAM bid (x INT, x INT)", catalog)
    assert catalog.get("bid").schema.names == ("item", "price")


def test_dropping():
    script = bind_script(
        f"{BID} CREATE TABLE t (x INT); CREATE VIEW v AS SELECT x FROM t; DROP VIEW v; DROP RELATION t; DROP STREAM bid"
    )
    assert script.catalog.names() == []
    assert script.named == ()
    assert codes("DROP TABLE IF EXISTS t; DROP FUNCTION IF EXISTS f") == ["NOTHING_TO_DROP", "NOTHING_TO_DROP"]


# -- EXPLAIN ----------------------------------------------------------------------------------------------------------

EXPLAINED = "SELECT item FROM bid WHERE price > 1"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("EXPLAIN {q}", ("optimized", "tree", False)),
        ("EXPLAIN LOGICAL {q}", ("logical", "tree", False)),
        ("EXPLAIN PHYSICAL VERBOSE {q}", ("physical", "tree", True)),
        ("EXPLAIN VERBOSE OPTIMIZED {q} FORMAT TEXT", ("optimized", "text", True)),
        ("EXPLAIN FORMAT MERMAID LOGICAL {q}", ("logical", "mermaid", False)),
        ("EXPLAIN {q} FORMAT JSON VERBOSE", ("optimized", "json", True)),
        ("explain (format json, verbose) {q}", ("optimized", "json", True)),
        ("EXPLAIN (VERBOSE, PHYSICAL, FORMAT = TREE) ({q})", ("physical", "tree", True)),
        ("EXPLAIN ({q}) LOGICAL", ("logical", "tree", False)),
        ("EXPLAIN WITH w AS ({q}) SELECT * FROM w FORMAT JSON", ("optimized", "json", False)),
        ("EXPLAIN SELECT item FROM bid FORMAT JSON", ("optimized", "json", False)),
        ("EXPLAIN SELECT item FROM bid [RANGE 5] VERBOSE", ("optimized", "tree", True)),
        ("EXPLAIN SELECT item FROM bid JOIN bid b USING (item) PHYSICAL", ("physical", "tree", False)),
    ],
)
def test_options_of_explain_stand_where_users_put_them(sql: str, expected: tuple[str, str, bool]):
    (asked,) = bind_script(BID + sql.format(q=EXPLAINED)).answers
    assert isinstance(asked, Explain)
    assert (asked.level.value, asked.format.value, asked.verbose) == expected
    assert asked.name == "query"


def test_a_named_query_can_be_explained_even_if_its_name_is_an_option():
    script = bind_script(
        f"{BID} CREATE STREAM verbose AS {EXPLAINED} CONSISTENCY MIDDLE; EXPLAIN verbose; EXPLAIN LOGICAL verbose VERBOSE"
    )
    first, second = script.answers
    assert first == Explain("verbose", first.plan, consistency=MIDDLE)
    assert first.plan is script.named[0].plan
    assert (second.level, second.format, second.verbose) == (ExplainLevel.LOGICAL, ExplainFormat.TREE, True)
    assert script.result is None


def test_words_of_explain_are_names_elsewhere():
    script = bind_script(
        f"{BID} SELECT format.item AS verbose FROM bid format; SELECT logical FROM bid physical(logical, x)"
    )
    assert script.result.plan.schema.names == ("logical",)


# -- SHOW and DESCRIBE ------------------------------------------------------------------------------------------------

SHOP = """
CREATE STREAM bid (item INT NOT NULL, price DOUBLE, ts TIMESTAMP)
  SOURCE kafka('bids', group => 'g') ORDERED BY ts DISORDER 90 SECONDS LATE ROWS DIVERT INTO bid_late;
CREATE TABLE person (id INT PRIMARY KEY, name STRING);
CREATE TABLE kind AS VALUES (1, 'a');
CREATE VIEW rich AS SELECT item FROM bid WHERE price > 100;
CREATE STREAM counts AS SELECT COUNT(*) AS n FROM bid [RANGE 1 MINUTE] CONSISTENCY MIDDLE;
"""


def answer(sql: str) -> Answer:
    (found,) = bind_script(SHOP + sql).answers
    assert isinstance(found, Answer)
    return found


def test_show_streams():
    shown = answer("SHOW STREAMS")
    assert shown.columns == ("stream", "columns", "time", "source", "promises")
    assert shown.rows == (
        (
            "bid",
            "item INT NOT NULL, price DOUBLE, ts TIMESTAMP",
            "ts",
            "kafka('bids', group => 'g')",
            "DISORDER 90 SECONDS LATE ROWS DIVERT INTO bid_late",
        ),
        ("bid_late", "item INT NOT NULL, price DOUBLE, ts TIMESTAMP", "", "late rows of bid", ""),
        ("counts", "n BIGINT NOT NULL", "", "query", ""),
    )


def test_show_tables_and_views():
    assert answer("SHOW TABLES").rows == (
        ("kind", "table", "col1 INT NOT NULL, col2 STRING NOT NULL", "", "constant"),
        ("person", "table", "id INT NOT NULL, name STRING", "id", ""),
        ("rich", "view", "item INT NOT NULL", "", "query"),
    )
    assert [row[0] for row in answer("SHOW VIEWS").rows] == ["rich"]
    assert [row[0] for row in answer("SHOW RELATIONS LIKE 'p%'").rows] == ["person"]


def test_show_queries():
    assert answer("SELECT * FROM person; SHOW QUERIES").rows == (
        ("rich", "item INT NOT NULL", "STRONG", "-", "bid"),
        ("counts", "n BIGINT NOT NULL", "MIDDLE", "at once", "bid"),
        ("query", "id INT NOT NULL, name STRING", "STRONG", "by sink", "person"),
    )


def test_show_functions():
    script = "CREATE FUNCTION shout(x STRING) RETURNS STRING AS 'operator:neg'; "
    assert answer(f"{script} SHOW USER FUNCTIONS").rows == (("shout", "scalar", "x STRING", "operator:neg"),)
    listed = {row[0]: row[1:] for row in answer(f"{script} SHOW FUNCTIONS").rows}
    assert listed["upper"] == ("scalar", "1 argument", "built in")
    assert listed["sum"][0] == "aggregate"
    assert "shout" in listed
    assert "shout" not in {row[0] for row in answer(f"{script} SHOW SYSTEM FUNCTIONS").rows}
    assert [row[0] for row in answer("SHOW FUNCTIONS LIKE 'regexp*'").rows] == sorted(
        name for name in listed if name.startswith("regexp")
    )


@pytest.mark.parametrize(
    ("sql", "names"),
    [("LIKE 'BID%'", ["bid", "bid_late"]), ("LIKE '_id'", ["bid"]), ("'*late'", ["bid_late"]), ("LIKE 'x.*'", [])],
)
def test_patterns_are_those_of_like_and_of_spark(sql: str, names: list[str]):
    assert [row[0] for row in answer(f"SHOW STREAMS {sql}").rows] == names


def test_describe():
    assert answer("DESCRIBE bid").rows == (
        ("item", "INT", "no", ""),
        ("price", "DOUBLE", "yes", ""),
        ("ts", "TIMESTAMP", "yes", "time"),
    )
    assert answer("DESC TABLE person").rows == (("id", "INT", "no", "key"), ("name", "STRING", "yes", ""))
    assert answer("DESCRIBE QUERY counts").rows == answer("DESCRIBE SELECT COUNT(*) AS n FROM bid").rows
    assert answer("SELECT * FROM person; DESCRIBE QUERY query").title == "DESCRIBE query"
    assert answer("DESCRIBE FUNCTION upper").rows == (
        ("name", "upper"),
        ("kind", "scalar"),
        ("arguments", "1 argument"),
        ("path", "built in"),
    )


def test_an_answer_is_that_of_its_place_in_the_script():
    before, after = bind_script(f"SHOW STREAMS; {BID} SHOW STREAMS").answers
    assert before.rows == ()
    assert len(after.rows) == 1


def test_an_answer_is_aligned_text():
    shown = str(answer("DESCRIBE person"))
    assert shown == (
        "column  type    nullable  role\n"
        "------  ------  --------  ----\n"
        "id      INT     no        key\n"
        "name    STRING  yes"
    )


# -- CONSISTENCY ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("CONSISTENCY STRONG", STRONG),
        ("CONSISTENCY MIDDLE", MIDDLE),
        ("CONSISTENCY WEAK", WEAK),
        ("CONSISTENCY BLOCK 0 REMEMBER UNBOUNDED", MIDDLE),
        ("CONSISTENCY BLOCK UNBOUNDED REMEMBER UNBOUNDED", STRONG),
        ("CONSISTENCY BLOCK 0 SECONDS REMEMBER 0", WEAK),
        ("CONSISTENCY BLOCK 2 REMEMBER 5", Consistency(Level.BLOCK, 2, 5)),
        ("CONSISTENCY BLOCK 2 SECONDS REMEMBER UNBOUNDED", Consistency(Level.BLOCK, 2_000_000, INFINITY, unit=True)),
    ],
)
def test_consistency_is_a_point_of_the_spectrum(clause: str, expected: Consistency):
    script = bind_script(f"{BID} CREATE STREAM q AS {EXPLAINED} {clause}; SELECT * FROM bid {clause}")
    assert script.result.consistency == expected
    assert script.named[0].consistency == expected
    assert script.catalog.get("q").consistency == expected


def test_consistency_prints_as_it_is_written():
    texts = ["WEAK", "BLOCK 2 REMEMBER 5", "BLOCK 2 SECONDS REMEMBER UNBOUNDED", "BLOCK 90 SECONDS REMEMBER 2 HOURS"]
    for text in texts:
        assert str(bind_script(f"{BID} SELECT * FROM bid CONSISTENCY {text}").result.consistency) == text


# -- scripts ----------------------------------------------------------------------------------------------------------


def test_istream_of_a_relation_is_a_stream_of_its_insertions():
    script = bind_script("CREATE RELATION person (id INT); CREATE STREAM new AS SELECT p.id FROM Istream(person) p")
    assert script.named[0].plan == Istream(Source("person", script.catalog.get("person").schema))
