"""Plan text: what every node looks like, that it reads back as the same plan, and what mistakes in it are called."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from textwrap import dedent

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from headwater.algebra import nodes as n
from headwater.algebra.plan_text import print_plan
from headwater.errors import HeadwaterError, SqlError
from headwater.expressions.nodes import Expression
from headwater.expressions.rewrite import typed_as
from headwater.language.binder import bind_script
from headwater.model.functions import UserFunction
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY
from headwater.model.types import parse_sql_type, sql_name
from headwater.testing import plans, strategies
from headwater.testing.cases import OPERATORS
from headwater.testing.choices import Dice
from headwater.testing.expression_text import bind_text
from headwater.testing.plan_text import parse_plan

S = n.Source("s", Schema.of(x="INT", y="STRING", f="BOOLEAN", k="BIGINT"))
T = n.Source("t", Schema.of(a="INT", b="STRING"))
LISTS = n.Source("l", Schema.of(k="BIGINT", a=pa.list_(pa.string())))
BOOLEAN = pa.bool_()


PAIR = Schema.of(**{"l.x": "INT", "l.y": "STRING", "l.f": "BOOLEAN", "l.k": "BIGINT", "r.a": "INT", "r.b": "STRING"})


def scalar(text: str, type_: str, *columns: str, functions: tuple[UserFunction, ...] = ()) -> Expression:
    return typed_as(bind_text(text, Schema((*S.columns, *PAIR)), functions), parse_sql_type(type_))


def bid(price: str = "DOUBLE", **flags: bool) -> n.Source:
    fields = Field("auction", pa.int64()), Field("price", parse_sql_type(price), nullable=False)
    return n.Source("bid", Schema(fields), **flags)


X, Y = scalar('"x"', "INT", "x"), scalar('"y"', "STRING", "y")
NESTED = pa.list_(pa.struct([("a", pa.int32()), ("b c", pa.decimal128(10, 2))]))
COUNT = n.AggregateCall("COUNT", "n", pa.int64())

NODES: list[tuple[str, n.Plan]] = [
    ("source bid (auction BIGINT, price DOUBLE NOT NULL) chronons final", bid(chronons=True, revisable=False)),
    ("source bid (auction BIGINT, price DECIMAL(10,2) NOT NULL) final", bid("DECIMAL(10,2)", revisable=False)),
    ("source bid (auction BIGINT, price STRING NOT NULL) chronons", bid("STRING", chronons=True)),
    ('source "a b" ("""q""" INT, date DATE)', n.Source("a b", Schema.of(**{'"q"': "INT", "date": "DATE"}))),
    ("source s (v ARRAY<STRUCT<a: INT, `b c`: DECIMAL(10,2)>>)", n.Source("s", Schema.of(v=NESTED))),
    ("source chronons ()", n.Source("chronons", Schema(()))),
    (
        "constant (id INT, name STRING) [(1, 'a'), (2, NULL)]",
        n.Constant(Schema.of(id="INT", name="STRING"), ((1, "a"), (2, None))),
    ),
    ("constant (id INT) []", n.Constant(Schema.of(id="INT"))),
    ("constant () [(), ()]", n.Constant(Schema(()), ((), ()))),
    (
        "constant (s STRING, d DATE, t TIMESTAMP, b BOOLEAN) "
        "[('it''s \"x\", (y)', DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05.000006', TRUE)]",
        n.Constant(
            Schema.of(s="STRING", d="DATE", t="TIMESTAMP", b="BOOLEAN"),
            (('it\'s "x", (y)', date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 6), True),),
        ),
    ),
    (
        "constant (p DECIMAL(10,2), x DOUBLE, z BINARY, l ARRAY<INT>) "
        "[(-1.25, 1e+30, X'00ff', [1, NULL]), (3, -infinity, X'', []), (NULL, 0.5, NULL, NULL)]",
        n.Constant(
            Schema.of(p=pa.decimal128(10, 2), x="DOUBLE", z="BINARY", l=pa.list_(pa.int32())),
            (
                (Decimal("-1.25"), 1e30, b"\x00\xff", (1, None)),
                (Decimal(3), -float("inf"), b"", ()),
                (None, 0.5, None, None),
            ),
        ),
    ),
    ('filter "x" > 10', n.Filter(S, scalar('"x" > 10', "BOOLEAN", "x"))),
    (
        """filter "y" IN ('a, "k" (', 'it''s') AND NOT "f" OR "y" LIKE '%\n%' AND "k" > 1""",
        n.Filter(
            S,
            scalar(
                """"y" IN ('a, "k" (', 'it''s') AND NOT "f" OR "y" LIKE '%\n%' AND "k" > 1""",
                "BOOLEAN",
                "y",
                "f",
                "k",
            ),
        ),
    ),
    (
        'project "y" INT = "x" + 1, "f", "w" = "x"',
        n.Project(
            S,
            (("y", scalar('"x" + 1', "INT", "x")), ("f", scalar('"f"', "BOOLEAN", "f")), ("w", X)),
        ),
    ),
    (
        """project "a" INT = 1, "b" STRING = '='""",
        n.Project(S, (("a", scalar("1", "INT")), ("b", scalar("'='", "STRING")))),
    ),
    ('project "x" BIGINT = CAST("x" AS BIGINT)', n.Project(S, (("x", scalar('"x"', "BIGINT", "x")),))),
    (
        'project "l" ARRAY<BOOLEAN> = ARRAY("x" < 1, "k" > 2), "d" DECIMAL(10,2) = CAST("x" AS DECIMAL(10,2)), "b" BOOLEAN '
        '= "x" >= "k"',
        n.Project(
            S,
            (
                ("l", scalar('ARRAY("x" < 1, "k" > 2)', "ARRAY<BOOLEAN>", "x", "k")),
                ("d", scalar('CAST("x" AS DECIMAL(10,2))', "DECIMAL(10,2)", "x")),
                ("b", scalar('"x" >= "k"', "BOOLEAN", "x", "k")),
            ),
        ),
    ),
    (
        # The x of the type is a field; so is the one after the point.
        """project "p" STRUCT<x: INT> = CAST(NULL AS STRUCT<x: INT>), "q" INT = NAMED_STRUCT('x', "x")."x" """.strip(),
        n.Project(
            S,
            (
                ("p", scalar("CAST(NULL AS STRUCT<x: INT>)", "STRUCT<x: INT>")),
                ("q", scalar('NAMED_STRUCT(\'x\', "x")."x"', "INT", "x")),
            ),
        ),
    ),
    ("project", n.Project(S, ())),
    ("union", n.Union((S, S))),
    ('inner join on "x" = "a", "y" = "b"', n.Join(S, T, n.JoinKind.INNER, (("x", "a"), ("y", "b")))),
    (
        'left join on "x" = "a" where "l.y" < "r.b"',
        n.Join(S, T, n.JoinKind.LEFT, (("x", "a"),), scalar('"l.y" < "r.b"', "BOOLEAN", "l.y", "r.b")),
    ),
    (
        """full join where "l.y" = ' where ' OR "r.b" = 'y'""",
        n.Join(S, T, n.JoinKind.FULL, (), scalar("\"l.y\" = ' where ' OR \"r.b\" = 'y'", "BOOLEAN", "l.y", "r.b")),
    ),
    ("right join", n.Join(S, T, n.JoinKind.RIGHT)),
    ('semi join on "x" = "a"', n.Join(S, T, n.JoinKind.SEMI, (("x", "a"),))),
    ('anti join on "x" = "a"', n.Join(S, T, n.JoinKind.ANTI, (("x", "a"),))),
    ("distinct", n.Distinct(S)),
    *((kind.value, n.SetOperation(S, S, kind)) for kind in n.SetKind),
    (
        'aggregate by "k", "y": COUNT(*) AS "n" BIGINT, SUM(DISTINCT "x") FILTER "f" AS "s" DOUBLE, '
        """LISTAGG("y", ',') AS "l" STRING, MAX("x") FILTER "f" AS "m" INT, "my fn"("x", 1, 0.5, NULL) AS "u" INT""",
        n.Aggregate(
            S,
            ("k", "y"),
            (
                COUNT,
                n.AggregateCall("SUM", "s", pa.float64(), "x", True, "f"),
                n.AggregateCall("LISTAGG", "l", pa.string(), "y", parameters=(",",)),
                n.AggregateCall("MAX", "m", pa.int32(), "x", filter="f"),
                n.AggregateCall("my fn", "u", pa.int32(), "x", parameters=(1, 0.5, None)),
            ),
        ),
    ),
    ('aggregate: COUNT(*) AS "n" BIGINT', n.Aggregate(S, (), (COUNT,))),
    ('aggregate by "k"', n.Aggregate(S, ("k",), ())),
    ("aggregate", n.Aggregate(S, (), ())),
    ('partial aggregate by "k": COUNT(*) AS "n" BIGINT', n.PreAggregate(S, ("k",), (COUNT,))),
    ("partial aggregate", n.PreAggregate(S, (), ())),
    ('await by "k"', n.Await(S, S, ("k",))),
    ("await", n.Await(S, S)),
    ("window range 10 slide 2", n.TimeWindow(S, 10, 2)),
    ("window range 10", n.TimeWindow(S, 10)),
    ("window range unbounded", n.TimeWindow(S, INFINITY)),
    ("window range unbounded slide 3", n.TimeWindow(S, INFINITY, 3)),
    ('window rows 10 slide 2 partition by "k"', n.RowWindow(S, 10, 2, ("k",))),
    ("window rows 10", n.RowWindow(S, 10)),
    (
        'hop size 10 slide 5 offset 1 as "window_start", "window_end" TIMESTAMP',
        n.HopWindow(S, 10, 5, 1),
    ),
    ('hop size 10 slide 10 as "from", "to" BIGINT', n.HopWindow(S, 10, 10, 0, "from", "to", pa.int64())),
    ('hop size 10 slide 10 offset -3 as "window_start", "window_end" TIMESTAMP', n.HopWindow(S, 10, 10, -3)),
    (
        'hop size 9 slide 5 offset 1 lifetime 2 as "a", "b" BIGINT',
        n.HopWindow(S, 9, 5, 1, "a", "b", pa.int64(), 2),
    ),
    (
        'session gap 5 partition by "k", "y" as "window_start", "window_end" BIGINT',
        n.SessionWindow(S, 5, ("k", "y"), time=pa.int64()),
    ),
    (
        'frames partition by "k": SUM("x") FILTER "f" rows 3 to 1 AS "s" BIGINT, '
        'COUNT(*) rows unbounded to peers AS "n" BIGINT, NTH_VALUE("y", 2) rows unbounded to 0 AS "m" STRING',
        n.Frames(
            S,
            (
                n.FrameCall("SUM", "s", pa.int64(), "x", "f", 3, 1),
                n.FrameCall("COUNT", "n", pa.int64(), peers=True),
                n.FrameCall("NTH_VALUE", "m", pa.string(), "y", nth=2),
            ),
            ("k",),
        ),
    ),
    ('session gap 5 as "a", "b" TIMESTAMP', n.SessionWindow(S, 5, (), "a", "b")),
    (
        'top 3 offset 1 by "x" desc nulls last, "y" partition by "k" as "rn"',
        n.TopK(S, (n.SortKey("x", True, False), n.SortKey("y")), 3, 1, ("k",), "rn"),
    ),
    (
        'top all offset 2 by "x" nulls last, "y" desc nulls first',
        n.TopK(S, (n.SortKey("x", False, False), n.SortKey("y", True, True)), INFINITY, 2),
    ),
    ('top 1 partition by "k"', n.TopK(S, (), 1, 0, ("k",))),
    ("granularity 60", n.Granularity(S, 60)),
    ("granularity 60 offset 59", n.Granularity(S, 60, 59)),
    ("sample 60", n.Sample(S, 60)),
    ("sample 60 offset -1", n.Sample(S, 60, -1)),
    ('stamp "instant"', n.Stamp(S, "instant")),
    ("split 1", n.Split(S, 1)),
    ("coalesce", n.Coalesce(S)),
    ("coalesce 10", n.Coalesce(S, 10)),
    ("istream", n.Istream(S)),
    ('unnest "a" as "x"', n.Unnest(LISTS, "a", "x")),
    ('unnest "a" as "x" place "n" outer', n.Unnest(LISTS, "a", "x", "n", outer=True)),
    ("dstream", n.Dstream(S)),
    ('to positive negative "sign"', n.ToPositiveNegative(S)),
    ('from positive negative "k"', n.FromPositiveNegative(S, "k")),
]


@pytest.mark.parametrize(("text", "plan"), NODES, ids=[text[:40] for text, _ in NODES])
def test_every_node_has_its_line(text: str, plan: n.Plan):
    assert plan.line() == text
    assert parse_plan(print_plan(plan)) == plan


def test_every_node_is_in_the_table():
    every = {kind for kind in vars(n).values() if isinstance(kind, type) and issubclass(kind, n.Plan)}
    abstract = {n.Plan}
    assert {type(plan) for _, plan in NODES} == every - abstract


def test_inputs_stand_below_their_node_in_order():
    plan = n.Distinct(n.Join(n.Filter(S, scalar('"f"', "BOOLEAN", "f")), n.TimeWindow(T, 5), n.JoinKind.INNER))
    text = """
        distinct
          inner join
            filter "f"
              source s (x INT, y STRING, f BOOLEAN, k BIGINT)
            window range 5
              source t (a INT, b STRING)
        """
    assert print_plan(plan) == dedent(text).strip()
    assert parse_plan(text) == plan


def test_functions_of_the_user_are_declared_before_the_tree():
    half = UserFunction("half of", "my.module:half", (pa.float64(), pa.int32()), pa.float64())
    one = UserFunction("one", "m:one", (), pa.int32())
    predicate = scalar('"half of"(CAST(1.0 AS DOUBLE), "x") > 1 AND "one"() = 1', "BOOLEAN", "x", functions=(half, one))
    chosen = (("a", scalar('"one"() + "x"', "INT", "x", functions=(one,))), ("one", X))
    plan = n.Project(n.Filter(S, predicate), chosen)
    text = """
        function "half of" (DOUBLE, INT) RETURNS DOUBLE AS 'my.module:half'
        function "one" () RETURNS INT AS 'm:one'
        project "a" INT = "one"() + "x", "one" = "x"
          filter "half of"(CAST(1.0 AS DOUBLE), "x") > 1 AND "one"() = 1
            source s (x INT, y STRING, f BOOLEAN, k BIGINT)
        """
    assert print_plan(plan) == dedent(text).strip()
    assert parse_plan(text) == plan


def test_two_functions_of_one_name_cannot_be_printed():
    first, second = (UserFunction("f", path, (), pa.bool_()) for path in ("m:a", "m:b"))
    plan = n.Filter(
        n.Filter(S, scalar('"f"()', "BOOLEAN", functions=(first,))), scalar('"f"()', "BOOLEAN", functions=(second,))
    )
    with pytest.raises(HeadwaterError, match='two functions of the name "f"'):
        print_plan(plan)


def test_comments_blank_lines_and_carriage_returns_say_nothing():
    text = '# it\'s a comment\r\n\r\n  filter "x" > 1   \r\n   # "deeper\r\n    source s (x INT)\r\n'
    assert print_plan(parse_plan(text)) == 'filter "x" > 1\n  source s (x INT)'


def test_expressions_lose_their_line_breaks_but_strings_do_not():
    plan = n.Filter(S, scalar("\"y\" =\n    'a\n  b'", "BOOLEAN", "y"))
    assert plan.line() == "filter \"y\" = 'a\n  b'"


def test_keywords_may_be_written_in_any_case_and_desc_puts_nulls_last():
    plan = parse_plan('TOP 2 BY "x" DESC\n  Source s (x int not null) CHRONONS')
    assert print_plan(plan) == 'top 2 by "x" desc nulls last\n  source s (x INT NOT NULL) chronons'


# -- random plans ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATORS)
def test_random_operators_read_back(name: str):
    for seed in range(20):
        plan = OPERATORS[name](Dice(seed))
        assert parse_plan(print_plan(plan)) == plan


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(strategies.plans(depth=4))
def test_random_plans_read_back(plan: n.Plan):
    assert parse_plan(print_plan(plan)) == plan


def test_many_random_plans_read_back():
    for seed in range(300):
        plan = plans.plan(Dice(seed), depth=1 + seed % 8)
        assert parse_plan(print_plan(plan)) == plan


QUERIES = [
    "SELECT x + 1 AS \"it's\", y LIKE '%,(%' AS b FROM s WHERE x BETWEEN 1 AND 2 OR y IN ('a', '\"x\"')",
    "SELECT COUNT(DISTINCT x) AS n, LISTAGG(y, ',') AS l FROM s WINDOW(ROWS 3 SLIDE 2) GROUP BY k HAVING SUM(x) > 1",
    "SELECT CASE WHEN s.x > 1 THEN 'a' ELSE t.b END AS c FROM s LEFT JOIN t ON s.x = t.a AND s.y < t.b",
    "SELECT CAST(x AS DECIMAL(10,2)) AS d, LOCATE('a', y) AS p, x % 2 = 0 AND f AS e FROM s [RANGE 10 SLIDE 2]",
    "SELECT * FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.a = s.x) AND x > ALL (SELECT a FROM t)",
    "SELECT v.a + v.b AS c, v.a AS a FROM u WHERE v.b > 1",
]


@pytest.mark.parametrize("query", QUERIES)
def test_plans_of_queries_read_back(query: str):
    script = "CREATE STREAM s (x INT, y STRING, f BOOLEAN, k BIGINT); CREATE STREAM t (a INT, b STRING);"
    script += "CREATE STREAM u (v STRUCT<a: INT, b: INT>);"
    bound = bind_script(f"{script} {query}").result
    assert bound is not None
    plan = bound.plan
    assert parse_plan(print_plan(plan)) == plan


# -- types ----------------------------------------------------------------------------------------------------------

TYPES = [
    "BIGINT",
    "DECIMAL(38,0)",
    "ARRAY<ARRAY<DATE>>",
    "STRUCT<a: INT, `b c`: ARRAY<STRUCT<d: STRING>>>",
    "STRUCT<>",
    "NULL",
]


@pytest.mark.parametrize("name", TYPES)
def test_types_read_back(name: str):
    assert sql_name(parse_sql_type(name)) == name


@pytest.mark.parametrize(
    "name",
    ["", "WORD", "DECIMAL", "DECIMAL(39,0)", "DECIMAL(2,3)", "ARRAY", "ARRAY<INT", "STRUCT<a INT>", "INT INT", "3"],
)
def test_what_is_no_type_is_refused(name: str):
    with pytest.raises(HeadwaterError) as failure:
        parse_sql_type(name)
    assert failure.value.code == "UNKNOWN_TYPE"


# -- mistakes -------------------------------------------------------------------------------------------------------

MISTAKES = [
    ("", "expected a plan, found the end of the line", 1),
    ("# nothing\n", "expected a plan, found the end of the line", 2),
    ("filtre x", "expected a node, found filtre", 1),
    ("window 10\n  source s (x INT)", "expected a node, found window", 1),
    ("distinct", "distinct needs 1 input, but has 0", 1),
    ("union\n  source s (x INT)", "union needs 2 or more inputs, but has 1", 1),
    ("source s (x INT)\n  source s (x INT)", "source needs 0 inputs, but has 1", 1),
    ("distinct\n   source s (x INT)", "expected 2 spaces before an input, found 3", 2),
    ("distinct\n    source s (x INT)", "expected 2 spaces before an input, found 4", 2),
    ("source s (x INT)\nsource s (x INT)", "expected 2 spaces before an input, found 0", 2),
    ("source s (x WORD)", "expected a type, such as BIGINT, found WORD", 1),
    ("source s (x INT", "expected ), found the end of the line", 1),
    ("source s (x INT) finally", "expected the end of the line, found finally", 1),
    ("constant (x INT) [(a)]", "expected a constant, such as 1, 'a' or NULL, found a", 1),
    ("constant (x DATE) [(DATE '2026-13-01')]", "expected a DATE constant, found DATE", 1),
    ("constant (x INT) [(1, 2)]", "expected ), found ,", 1),
    ("filter\n  source s (x INT)", "expected an expression, found the end of the line", 1),
    ('filter "x" = \'a\n  source s (x INT)', "expected another ' before the end of the text", 1),
    ("project x\n  source s (x INT)", "expected the name of a column in double quotes, found x", 1),
    ('project "z"\n  source s (x INT)', 'there is no column "z" in the input', 1),
    ('project "y" = "x" + 1\n  source s (x INT)', 'expected a column of the input in double quotes, found "x"', 1),
    ('project "y" INT "x"\n  source s (x INT)', 'expected =, found "x"', 1),
    (
        'project "x",\n  source s (x INT)',
        "expected the name of a column in double quotes, found the end of the line",
        1,
    ),
    (
        'inner join on "x" < "y"\n  source s (x INT)\n  source t (y INT)',
        "expected =, found <",
        1,
    ),
    ('inner join on "x" = "x"\n  source s (x INT)\n  source t (y INT)', 'there is no column "x" in the input', 1),
    (
        "union\n  source s (x INT)\n  source t (y STRING)",
        "expected two inputs of the same types, found (x INT) and (y STRING)",
        1,
    ),
    ('aggregate by "k"\n  source s (x INT)', 'there is no column "k" in the input', 1),
    ('aggregate: SUM(1) AS "n" INT\n  source s (x INT)', "expected * or a column in double quotes, found 1", 1),
    ('aggregate: SUM("x") AS "n"\n  source s (x INT)', "expected a type, such as BIGINT, found the end of the line", 1),
    ("window range ten\n  source s (x INT)", "expected a number of instants or unbounded, found ten", 1),
    ("window rows 3 partition by x\n  source s (x INT)", "expected a column in double quotes, found x", 1),
    ("hop size 10\n  source s (x INT)", "expected slide, found the end of the line", 1),
    ('hop size 10 slide 5 as "a"\n  source s (x INT)', "expected ,, found the end of the line", 1),
    (
        'hop size 9 slide 5 lifetime 6 as "a", "b" BIGINT\n  source s (x INT)',
        "expected a lifetime from 1 to the slide",
        1,
    ),
    (
        'hop size 9 slide 5 lifetime 0 as "a", "b" BIGINT\n  source s (x INT)',
        "expected a lifetime from 1 to the slide",
        1,
    ),
    ('top 3 by "x" nulls\n  source s (x INT)', "expected one of first, last, found the end of the line", 1),
    ("to positive negative sign\n  source s (x INT)", "expected the name of the sign in double quotes, found sign", 1),
    ("function f () RETURNS INT AS 'm:f'", "expected the name of the function in double quotes, found f", 1),
    ('function "f" () RETURNS INT\ndistinct', "expected AS, found the end of the line", 1),
    ("distinct\n  distinct\n    distinct\n      filter\n        source s (x INT)", "expected an expression", 4),
]


@pytest.mark.parametrize(("text", "message", "line"), MISTAKES, ids=[text[:40] for text, *_ in MISTAKES])
def test_a_mistake_says_where_it_is_and_what_was_expected(text: str, message: str, line: int):
    with pytest.raises(SqlError) as failure:
        parse_plan(text)
    assert failure.value.code == "PLAN_TEXT"
    assert failure.value.message.startswith(message)
    assert failure.value.line == line


def test_a_mistake_is_underlined():
    with pytest.raises(SqlError) as failure:
        parse_plan('distinct\n  project "z" = "x" + 1\n    source s (x INT)')
    shown = """
        PLAN_TEXT: expected a column of the input in double quotes, found "x"
          hint:   Anything else needs a type: "z" BIGINT = …
          line 2, column 17:    project "z" = "x" + 1
                                              ^^^"""
    assert str(failure.value) == dedent(shown).strip()
