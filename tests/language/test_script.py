"""Scripts as a whole: what statements leave behind, and texts as Krämer prints them."""

from __future__ import annotations

from types import ModuleType

import pytest

from headwater.algebra.nodes import Distinct, Join, Project, Source, TimeWindow
from headwater.errors import HeadwaterError, SqlError
from headwater.language.binder import bind_script
from headwater.language.catalog import Catalog, Connector, Derived
from headwater.language.notices import Notice
from headwater.language.parsing.base import check_extensible
from headwater.settings import Settings

BID = "CREATE STREAM bid (item INT, price DOUBLE);\n"


def test_a_declared_stream_keeps_its_source_and_its_time():
    script = bind_script(
        "CREATE STREAM OpenAuction(itemID INT, sellerID INT NOT NULL, start_price REAL, timestamp TIMESTAMP)\n"
        "  SOURCE establishConnection('port34100', 34100, retries => 3)\n"
        "  ORDERED BY timestamp;"
    )
    stream = script.catalog.get("openauction")
    assert str(stream.schema) == "(itemID INT, sellerID INT NOT NULL, start_price FLOAT, timestamp TIMESTAMP)"
    assert stream.source == Connector("establishConnection", ("port34100", 34100), (("retries", 3),))
    assert stream.time == "timestamp"
    assert script.result is None
    assert script.named == ()


@pytest.mark.parametrize(
    ("written", "type_"),
    [
        ("BOOLEAN", "BOOLEAN"),
        ("TINYINT", "TINYINT"),
        ("SMALLINT", "SMALLINT"),
        ("INTEGER", "INT"),
        ("BIGINT", "BIGINT"),
        ("REAL", "FLOAT"),
        ("DOUBLE", "DOUBLE"),
        ("DECIMAL", "DECIMAL(10,0)"),
        ("DECIMAL(12,3)", "DECIMAL(12,3)"),
        ("STRING", "STRING"),
        ("VARCHAR(10)", "STRING"),
        ("BINARY", "BINARY"),
        ("DATE", "DATE"),
        ("TIMESTAMP", "TIMESTAMP"),
        ("ARRAY<STRING>", "ARRAY<STRING>"),
        ("STRUCT<a: INT, b: ARRAY<DOUBLE>>", "STRUCT<a: INT, b: ARRAY<DOUBLE>>"),
    ],
)
def test_a_column_has_the_type_it_is_declared_with(written: str, type_: str):
    assert str(bind_script(f"CREATE STREAM s (x {written})").catalog.get("s").schema) == f"(x {type_})"


def test_time_may_be_called_timestamp_by():
    assert bind_script("CREATE STREAM s (x INT, t BIGINT) TIMESTAMP BY t").catalog.get("s").time == "t"


def test_names_do_not_depend_on_case_and_results_keep_the_case_of_the_query():
    script = bind_script("CREATE STREAM Bid (itemID INT); SELECT ITEMid, BID.itemid AS i FROM bID")
    assert script.result.plan.schema.names == ("ITEMid", "i")


def test_a_derived_stream_is_a_macro():
    script = bind_script(
        f"{BID} CREATE STREAM dear AS SELECT item FROM bid WINDOW(RANGE 5) WHERE price > 3;"
        "SELECT * FROM dear WINDOW(RANGE 2)"
    )
    (named,) = script.named
    assert named.name == "dear"
    assert script.result.plan == TimeWindow(named.plan, 2)
    assert script.catalog.get("dear").uses == {"bid"}


def test_a_catalog_lives_on_between_scripts():
    catalog = Catalog()
    bind_script(BID, catalog)
    bind_script("CREATE STREAM x AS SELECT item FROM bid", catalog)
    assert isinstance(bind_script("SELECT * FROM x", catalog).result.plan, Project)
    assert isinstance(catalog.get("X"), Derived)


def test_only_the_last_select_is_the_result():
    script = bind_script(f"{BID} SELECT item FROM bid; SELECT price FROM bid;")
    assert script.result.plan.schema.names == ("price",)


def test_a_dropped_stream_is_gone():
    script = bind_script(f"{BID} CREATE STREAM x AS SELECT * FROM bid; DROP STREAM x; DROP STREAM bid")
    assert script.named == ()
    assert script.catalog.names() == []


@pytest.mark.parametrize(
    ("clause", "consistency"), [("", None), ("CONSISTENCY STRONG", "strong"), ("consistency middle", "middle")]
)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM bid",
        "SELECT * FROM bid WHERE item > 1",
        "(SELECT item FROM bid) UNION ALL (SELECT item FROM bid)",
        "SELECT item FROM bid [RANGE 5] b GROUP BY item",
    ],
)
def test_a_query_says_how_consistent_it_is(query: str, clause: str, consistency: str | None):
    script = bind_script(f"{BID} CREATE STREAM x AS {query} {clause}; {query} {clause}")
    found = [q.consistency and q.consistency.level for q in (*script.named, script.result)]
    assert found == [consistency, consistency]


def test_a_stream_may_be_called_consistency_or_window():
    script = bind_script("CREATE STREAM consistency (window INT); SELECT window FROM consistency AS granularity")
    assert script.result.plan.schema.names == ("window",)


# -- notices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "keeper"),
    [
        ("SELECT COUNT(*) FROM bid [RANGE UNBOUNDED]", "an aggregate"),
        ("SELECT DISTINCT item FROM bid [ROWS UNBOUNDED]", "DISTINCT"),
        ("SELECT a.item FROM bid [RANGE UNBOUNDED] a, bid b WHERE a.item = b.item", "a join"),
        ("SELECT item FROM bid [RANGE UNBOUNDED] EXCEPT SELECT item FROM bid", "a set operation"),
        ("SELECT * FROM Istream(bid [RANGE UNBOUNDED])", "Istream"),
        ("SELECT * FROM bid WHERE item IN (SELECT item FROM bid [RANGE UNBOUNDED])", "a semi-join"),
        (
            "SELECT * FROM bid WHERE NOT EXISTS (SELECT 1 FROM bid [RANGE UNBOUNDED] b WHERE b.item = bid.item)",
            "an anti-join",
        ),
        ("SELECT * FROM (SELECT * FROM bid [RANGE UNBOUNDED]) [ROWS 5]", "a ROWS window"),
    ],
)
def test_unbounded_state_is_noticed_or_refused(sql: str, keeper: str):
    (notice,) = bind_script(BID + sql).notices
    assert notice.code == "UNBOUNDED_STATE"
    assert notice.message == f'{keeper} keeps state of stream "bid" for ever'
    with pytest.raises(SqlError, match="UNBOUNDED_STATE"):
        bind_script(f"SET unbounded_state = error; {BID} {sql}")


def test_an_unbounded_window_without_state_is_no_matter():
    script = bind_script(
        f"SET unbounded_state = error; {BID} SELECT item + 1 FROM bid [RANGE UNBOUNDED] WHERE price > 1"
    )
    assert script.notices == ()


def test_a_notice_is_given_once():
    script = bind_script(f"{BID} CREATE STREAM n AS SELECT COUNT(*) AS n FROM bid [RANGE UNBOUNDED]; SELECT * FROM n")
    assert len(script.notices) == 1
    assert str(script.notices[0]) == (
        'notice: UNBOUNDED_STATE: an aggregate keeps state of stream "bid" for ever\n'
        "  hint:   Give it a bound, for example: WINDOW(RANGE 1 HOUR)."
    )


def test_settings_can_be_given_from_outside():
    with pytest.raises(SqlError, match="UNBOUNDED_STATE"):
        bind_script(f"{BID} SELECT COUNT(*) FROM bid [RANGE UNBOUNDED]", settings=Settings(unbounded_state="error"))


def test_a_second_column_of_a_name_gets_a_number():
    script = bind_script(f"{BID} SELECT a.item, b.item, b.item AS Item FROM bid a, bid b")
    assert script.result.plan.schema.names == ("item", "item_2", "Item_3")
    assert script.notices[0] == Notice(
        "RENAMED_COLUMN", 'a second column "item" is called "item_2"', "Give it a name of its own with AS."
    )


def test_columns_without_a_name_are_called_what_they_are():
    script = bind_script(f"{BID} SELECT AVG(price), COUNT(*), (item), 2 * item FROM bid GROUP BY item")
    assert script.result.plan.schema.names == ("avg(price)", "count(*)", "item", "2 * item")


# -- texts as printed in the thesis -----------------------------------------------------------------------------------

THESIS = """
CREATE STREAM OpenAuction(itemID INT, sellerID INT, start_price REAL);
CREATE STREAM Bid(itemID INT, bid_price REAL, bidderID INT);
CREATE STREAM ClosedAuction(itemID INT);
CREATE STREAM Person(id INT, name STRING);
"""


def test_a_stray_comma_is_tolerated():
    clean = bind_script(f"{THESIS} SELECT itemID FROM Bid WHERE itemID > 1 GROUP BY itemID").result.plan
    assert bind_script(f"{THESIS} SELECT itemID FROM Bid, WHERE itemID > 1 GROUP BY itemID").result.plan == clean
    clean = bind_script(f"{THESIS} SELECT itemID FROM Bid B GROUP BY itemID").result.plan
    assert bind_script(f"{THESIS} SELECT itemID FROM Bid B, GROUP BY itemID").result.plan == clean


def test_a_stream_may_be_called_by_its_name_in_spite_of_its_alias():
    plan = bind_script(
        f"{THESIS} SELECT OpenAuction.* FROM OpenAuction O WINDOW(RANGE 5 HOURS), ClosedAuction C "
        "WHERE O.itemID = C.itemID"
    ).result.plan
    assert plan.schema.names == ("itemID", "sellerID", "start_price")
    assert isinstance(plan.inputs[0], Join)


def test_an_outer_stream_is_not_hidden_by_that():
    plan = bind_script(
        f"{THESIS} SELECT itemID FROM Bid WHERE EXISTS (SELECT 1 FROM Bid B WHERE B.bidderID = Bid.itemID)"
    ).result.plan
    (joined,) = plan.inputs
    assert joined.keys == (("itemID", "sub.bidderID"),)


def test_example_17_7_with_its_bare_sub_select_and_distinct_tuple():
    plan = bind_script(
        f"{THESIS} CREATE STREAM NewPersonStream AS SELECT P.id, P.name FROM Istream(Person) P;\n"
        "SELECT DISTINCT(P.id, P.name)\n"
        "FROM SELECT P.id, P.name\n"
        "     FROM NewPersonStream WINDOW(RANGE 12 HOURS) P, OpenAuction O\n"
        "     WHERE P.id = O.sellerID;"
    ).result.plan
    assert isinstance(plan, Distinct)
    assert plan.schema.names == ("id", "name")


def test_aliases_stand_before_or_after_the_window():
    before = bind_script(f"{THESIS} SELECT b.* FROM Bid b WINDOW(RANGE 5)").result.plan
    after = bind_script(f"{THESIS} SELECT b.* FROM Bid WINDOW(RANGE 5) AS b").result.plan
    assert before == after == TimeWindow(Source("Bid", bind_script(THESIS).catalog.get("bid").schema), 5)


# -- the parser -------------------------------------------------------------------------------------------------------


def test_a_compiled_sqlglot_is_refused():
    compiled = ModuleType("sqlglot.parser")
    compiled.__file__ = "sqlglot/parser.cpython-311-x86_64-linux-gnu.so"
    with pytest.raises(HeadwaterError, match="pip uninstall sqlglotc"):
        check_extensible(compiled)


def test_comments_and_empty_statements_are_nothing():
    assert bind_script(f"-- first\n;{BID} /* second */;; ; -- last").catalog.names() == ["bid"]


def test_every_select_has_a_name_of_its_own():
    script = bind_script(BID + "SELECT item FROM bid; SELECT price FROM bid; SELECT * FROM bid;")
    assert [(q.name, q.plan.schema.names) for q in script.queries] == [
        ("query_1", ("item",)),
        ("query_2", ("price",)),
        ("query", ("item", "price")),
    ]
    assert script.result is script.queries[-1]


def test_names_of_selects_are_none_that_are_given():
    script = bind_script(
        BID + "SELECT item FROM bid; CREATE STREAM Query_1 AS SELECT price FROM bid; SELECT 1 FROM bid;"
    )
    assert [q.name for q in script.queries] == ["Query_1", "query_2", "query"]


def test_questions_see_the_selects_so_far():
    text = (
        "SELECT item FROM bid; DESCRIBE query; SELECT price FROM bid; SHOW QUERIES; DESCRIBE query_1; DESCRIBE query;"
    )
    first, shown, earlier, last = bind_script(BID + text).answers
    assert [row[0] for row in first.rows] == ["item"]
    assert [row[0] for row in shown.rows] == ["query_1", "query"]
    assert [row[0] for row in earlier.rows] == ["item"]
    assert [row[0] for row in last.rows] == ["price"]
