"""CREATE FUNCTION: functions of the user's in every place of a query, in threads, in other processes, and when they fail."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve

from headwater.algebra.nodes import Aggregate, Plan
from headwater.algebra.plan_text import print_plan
from headwater.errors import HeadwaterError
from headwater.expressions.evaluation import Expressions
from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.functions import UserFunction, import_path
from headwater.model.time import INFINITY
from headwater.model.types import parse_sql_type
from headwater.optimizer.plan_query import plan_query
from headwater.runtime.lower import lower
from headwater.runtime.replay import load_script, replay
from headwater.runtime.stepping import by_hand
from headwater.settings import Settings
from headwater.testing import checks, oracle
from headwater.testing.checks import check_case
from headwater.testing.choices import Dice
from headwater.testing.generate import streams
from headwater.testing.plan_text import parse_plan

EXAMPLE = Path(__file__).parents[2] / "examples" / "functions"
SOURCE = """
import math
import pyarrow as pa
import pyarrow.compute as pc

def double(x): return pc.multiply(x, 2)
def triple(x): return pc.multiply(x, 3)
def add(x, y): return pc.add(x, y)
def is_big(x): return pc.greater(x, 1.0)
def null_to_one(x): return pc.fill_null(x, 1.0)
def same(x): return x
def one(): return pa.array([1.0])
def fails(x): raise ValueError("no good")
def short(x): return x[:-1]
def as_list(x): return x.to_pylist()
def as_text(x): return pc.cast(x, pa.string())
def chunked(x): return pa.chunked_array([x[:1], x[1:]])
def large(x): return x.cast(pa.large_string())
def nothing(x): return pa.nulls(len(x))

class Product:
    @staticmethod
    def init(x): return x
    @staticmethod
    def merge(s, x): return s * x
    @staticmethod
    def eval(s): return s

class Total:
    def init(self, x): return (x, 1)
    def merge(self, s, x): return (s[0] + x, s[1] + 1)
    def inverse(self, s, x): return (s[0] - x, s[1] - 1)
    def eval(self, s): return s[0]

class Largest:
    @staticmethod
    def init(x): return x
    @staticmethod
    def merge(s, x): return max(s, x)
    @staticmethod
    def eval(s): return s

class Box: inner = Largest
def sum_of(values): return pc.sum(values)
def bad_total(values): raise KeyError("total")
def text_total(values): return "x"
"""
STREAMS = "CREATE STREAM s (k INT, x DOUBLE); CREATE STREAM t (k INT, y DOUBLE);\n"


@pytest.fixture(scope="module", autouse=True)
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A module with functions, where Python finds it."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "udf_samples.py").write_text(SOURCE)
    sys.path.append(str(folder))
    yield folder
    sys.path.remove(str(folder))
    sys.modules.pop("udf_samples", None)


def scalar(name: str, *types: str, returns: str = "DOUBLE", attribute: str | None = None) -> str:
    parameters = ", ".join(f"p{i} {t}" for i, t in enumerate(types or ("DOUBLE",)))
    return f"CREATE FUNCTION {name}({parameters}) RETURNS {returns} AS 'udf_samples:{attribute or name}';\n"


def run(plan: Plan, rows: list[tuple[Any, ...]], stream: str = "s") -> list[tuple[Any, ...]]:
    """The rows of the answer, each valid at instant 0."""
    runner = by_hand({"q": plan})
    (source,) = [node.schema for node in runner.layout.graph.nodes if node.source == stream]
    delta = Delta.from_rows(source, [(row, 0, 1, 1) for row in rows])
    step = runner.tick({stream: delta}, dict.fromkeys(runner.layout.graph.sources, INFINITY))["q"]
    return [row for row, _, _, weight in step.delta.rows() for _ in range(weight)]


# -- meaning ----------------------------------------------------------------------------------------------------------

DECLARED = (
    scalar("double")
    + scalar("triple")
    + scalar("add", "DOUBLE", "DOUBLE")
    + scalar("is_big", returns="BOOLEAN")
    + scalar("null_to_one")
)
QUERIES = [
    "SELECT k, double(x) AS d FROM s",
    "SELECT double(k) AS d, triple(double(x)) AS e, add(double(x), 1) AS f FROM s",
    "SELECT k FROM s WHERE is_big(x) AND k > 0",
    "SELECT k FROM s WHERE NOT is_big(null_to_one(x))",
    "SELECT s.k, y FROM s, t WHERE add(s.x, t.y) > 1",
    "SELECT s.k, y FROM s JOIN t ON double(s.x) = triple(t.y)",
    "SELECT s.k, y FROM s LEFT JOIN t ON s.k = t.k AND is_big(add(x, y))",
    "SELECT * FROM s WHERE EXISTS (SELECT 1 FROM t WHERE is_big(add(t.y, s.x)))",
    "SELECT * FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE is_big(add(t.y, s.x)))",
    "SELECT double(x) AS g, COUNT(*) AS n FROM s GROUP BY double(x)",
    "SELECT k, MAX(triple(x)) AS m FROM s WINDOW(RANGE 3) GROUP BY k HAVING is_big(MAX(x))",
    "SELECT k, SUM(x) FILTER (WHERE is_big(x)) AS m FROM s GROUP BY k",
    "SELECT CASE WHEN is_big(x) THEN double(x) ELSE x END AS c, add(2, 3) AS five FROM s",
    "SELECT double(x) AS v FROM s UNION ALL SELECT triple(y) FROM t",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_function_means_the_same_everywhere(query: str):
    script = bind_script(STREAMS + DECLARED + query)
    for plan in (script.result.plan, plan_query(script.result.plan, script.settings).plan):
        for seed in range(3):
            check_case(plan, streams(Dice(seed), plan), seed, thorough=False)


def test_a_plan_with_functions_can_be_printed_and_parsed():
    plan = bind_script(STREAMS + DECLARED + QUERIES[6]).result.plan
    assert parse_plan(print_plan(plan)) == plan


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("BOOLEAN", [True, None, False]),
        ("TINYINT", [1, None]),
        ("INT", [1, None, -5]),
        ("BIGINT", [2**62, None]),
        ("FLOAT", [0.5, None]),
        ("DOUBLE", [0.1, None]),
        ("DECIMAL(10,2)", [Decimal("1.25"), None]),
        ("DECIMAL(38,4)", [Decimal("12345678901234567890.1234"), None]),
        ("STRING", ["ä", None, ""]),
        ("BINARY", [b"\x00\xff", None]),
        ("DATE", [date(2026, 1, 2), None]),
        ("TIMESTAMP", [datetime(2026, 1, 2, 3, 4, 5, 6), None]),
        ("ARRAY<INT>", [[1, None], None, []]),
        ("STRUCT<a: INT, b: STRING>", [{"a": 1, "b": None}, None]),
    ],
)
def test_values_of_every_type_go_in_and_out(type_: str, values: list[Any]):
    script = f"CREATE STREAM s (v {type_}); {scalar('same', type_, returns=type_)} SELECT same(v) AS v FROM s"
    assert run(bind_script(script).result.plan, [(v,) for v in values]) == [(v,) for v in values]


@pytest.mark.parametrize(
    ("attribute", "returns", "expected"),
    [("chunked", "STRING", ["a", "b"]), ("large", "STRING", ["a", "b"]), ("nothing", "BIGINT", [None, None])],
)
def test_another_layout_of_the_type_will_do(attribute: str, returns: str, expected: list[Any]):
    declared = scalar("f", "STRING", returns=returns, attribute=attribute)
    plan = bind_script(f"CREATE STREAM s (v STRING); {declared} SELECT f(v) AS v FROM s").result.plan
    assert run(plan, [("a",), ("b",)]) == [(v,) for v in expected]


def test_a_function_may_have_no_parameters():
    plan = bind_script(
        f"{STREAMS} CREATE FUNCTION one() RETURNS DOUBLE AS 'udf_samples:one'; SELECT one() + x AS y FROM s"
    ).result.plan
    assert run(plan, [(1, 2.0), (1, 3.0)]) == [(3.0,), (4.0,)]


@pytest.mark.parametrize(
    ("parameter", "argument"),
    [
        ("DOUBLE", "k"),
        ("DOUBLE", "1.5"),
        ("DOUBLE", "'2.5'"),
        ("DOUBLE", "NULL"),
        ("BIGINT", "k"),
        ("DECIMAL(20,2)", "k"),
        ("STRING", "k"),
        ("STRING", "TRUE"),
        ("TIMESTAMP", "DATE '2026-01-01'"),
        ("DATE", "'2026-01-01'"),
        ("ARRAY<BIGINT>", "array(k)"),
    ],
)
def test_arguments_are_converted_as_spark_would(parameter: str, argument: str):
    declared = scalar("same", parameter, returns=parameter)
    plan = bind_script(f"{STREAMS} {declared} SELECT same({argument}) AS v FROM s").result.plan
    assert plan.schema.field("v").type == parse_sql_type(parameter)
    assert len(run(plan, [(1, 2.0)])) == 1


def test_a_replaced_function_is_never_met_again():
    script = bind_script(STREAMS + scalar("f", attribute="double") + "SELECT f(x) AS v FROM s")
    again = bind_script(
        scalar("f", attribute="triple").replace("CREATE", "CREATE OR REPLACE") + "SELECT f(x) AS v FROM s",
        script.catalog,
    )
    assert run(again.result.plan, [(1, 1.0)]) == [(3.0,)]
    assert run(script.result.plan, [(1, 1.0)]) == [(2.0,)]


def test_many_rows_are_computed_in_their_order():
    plan = bind_script(STREAMS + scalar("double") + "SELECT double(x) AS v FROM s").result.plan
    rows = [(1, float(i)) for i in range(10_000)]
    assert run(plan, rows) == [(2 * x,) for _, x in rows]


# -- threads and processes --------------------------------------------------------------------------------------------


def test_threads_have_connections_of_their_own():
    plan = bind_script(STREAMS + scalar("double") + "SELECT double(x) + 1 AS v FROM s").result.plan
    ((_, expression),) = plan.expressions
    shared = Expressions(plan.input.schema, [expression], [expression.type])

    def compute(n: int) -> list[float]:
        columns = [pa.array([1] * 50, pa.int32()), pa.array([float(n)] * 50)]
        return [v for _ in range(20) for v in shared.evaluate(columns, 50)[0].to_pylist()]

    with ThreadPoolExecutor(4) as pool:
        for n, found in enumerate(pool.map(compute, range(8))):
            assert set(found) == {2.0 * n + 1}


CHILD = """
import pickle, sys
from headwater.model.delta import Delta
from headwater.state.store import MemoryStore
operators, rows = pickle.load(sys.stdin.buffer)
delta, frontier = Delta.from_rows(operators[0][1], rows), 10
for operator, _ in operators:
    delta, frontier = operator.step(operator.new_state(MemoryStore()), (delta,), (frontier,))
sys.stdout.buffer.write(pickle.dumps(list(delta.rows())))
"""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT double(x) AS v FROM s WHERE is_big(x)", [((4.0,), 0, 1, 1), ((6.0,), 0, 1, 1)]),
        ("SELECT product(double(x)) AS v FROM s", [((48.0,), 0, 1, 1)]),
    ],
)
def test_operators_work_in_another_process(samples: Path, query: str, expected: list[Any]):
    aggregate = "CREATE AGGREGATE FUNCTION product(x DOUBLE) RETURNS DOUBLE AS 'udf_samples:Product';"
    plan = bind_script(STREAMS + DECLARED + aggregate + query).result.plan
    nodes = lower({"q": plan}).nodes
    chain = [(n.operator, nodes[n.inputs[0]].schema) for n in nodes if n.operator is not None]
    rows = [((1, x), 0, 1, 1) for x in (1.0, 2.0, 3.0)]
    source = Path(oracle.__file__).parents[2]
    found = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=pickle.dumps((chain, rows)),
        env={**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{samples}"},
        capture_output=True,
        check=True,
    )
    assert pickle.loads(found.stdout) == expected
    assert found.stderr == b""


# -- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attribute", "message", "detail"),
    [
        ("fails", 'function "f" failed', "ValueError: no good ("),
        ("short", 'function "f" gave 1 values for 2 rows', ""),
        ("as_list", 'function "f" gave a list, not an Arrow array', ""),
        ("as_text", 'function "f" gave STRING, but it returns DOUBLE', ""),
        ("add", 'function "f" failed', "TypeError: add() missing 1 required positional argument: 'y'"),
    ],
)
@pytest.mark.parametrize("query", ["SELECT f(x) AS v FROM s", "SELECT x AS v FROM s WHERE f(x) > 0"])
def test_a_failing_function_is_named(attribute: str, message: str, detail: str, query: str):
    plan = bind_script(STREAMS + scalar("f", attribute=attribute) + query).result.plan
    for _ in range(2):
        with pytest.raises(HeadwaterError) as caught:
            run(plan, [(1, 2.0), (2, 3.0)])
        assert caught.value.code == "EXPRESSION_FAILED"
        assert caught.value.message == f'query "q": {message}'
        assert detail in caught.value.detail


def test_the_place_in_the_users_code_is_told(samples: Path):
    plan = bind_script(STREAMS + scalar("fails") + "SELECT fails(x) AS v FROM s").result.plan
    with pytest.raises(HeadwaterError) as caught:
        run(plan, [(1, 2.0)])
    line = SOURCE.splitlines().index('def fails(x): raise ValueError("no good")') + 1
    assert caught.value.detail == f"ValueError: no good ({samples / 'udf_samples.py'}, line {line})"
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_failure_of_one_expression_is_not_told_of_the_next():
    failing = bind_script(STREAMS + scalar("fails") + "SELECT fails(x) AS v FROM s").result.plan
    with pytest.raises(HeadwaterError):
        run(failing, [(1, 2.0)])
    other = bind_script("CREATE STREAM s (v STRING); SELECT CAST(v AS INT) AS v FROM s").result.plan
    with pytest.raises(HeadwaterError, match="could not compute"):
        run(other, [("x",)])


def test_a_broken_module_is_told_where_the_function_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "broken_udf.py").write_text("import no_such_thing_at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(HeadwaterError) as caught:
        bind_script("CREATE FUNCTION f(x INT) RETURNS INT AS 'broken_udf:f'")
    assert caught.value.code == "UNKNOWN_FUNCTION_PATH"
    assert caught.value.message == 'module "broken_udf" could not be imported'
    assert caught.value.detail == "ModuleNotFoundError: No module named 'no_such_thing_at_all'"


@pytest.mark.parametrize("path", ["", ":", "a:", ":b", "a b:c", "a:b:c", "../a:b", "a.:b"])
def test_a_path_is_a_module_and_an_attribute(path: str):
    with pytest.raises(HeadwaterError, match="is no import path"):
        import_path(path)


def test_the_name_in_a_plan_depends_on_the_whole_definition():
    names = {
        UserFunction.define(*definition).name
        for definition in [
            ("f", "a:b", (pa.int32(),), pa.int32()),
            ("f", "a:c", (pa.int32(),), pa.int32()),
            ("f", "a:b", (pa.int64(),), pa.int32()),
            ("f", "a:b", (pa.int32(),), pa.int64()),
            ("g", "a:b", (pa.int32(),), pa.int32()),
        ]
    }
    assert len(names) == 5
    assert {name.partition("#")[0] for name in names} == {"f", "g"}


# -- aggregates -------------------------------------------------------------------------------------------------------

AGGREGATES = [
    ("total", "SUM", "BIGINT", "Total"),
    ("total", "SUM", "DOUBLE", "sum_of"),
    ("largest", "MAX", "DOUBLE", "Largest"),
    ("largest", "MAX", "BIGINT", "Box.inner"),
]
"""A name, what it means, its type, and where it is."""


def with_built_in(plan: Plan, own: str, built_in: str) -> Plan:
    """The plan with a built-in aggregate in the place of the user's."""
    plan = plan.with_inputs(*(with_built_in(child, own, built_in) for child in plan.inputs))
    if not isinstance(plan, Aggregate):
        return plan
    calls = (evolve(c, function=built_in, parameters=()) if c.function == own else c for c in plan.calls)
    return evolve(plan, calls=tuple(calls))


@pytest.mark.parametrize(("name", "meaning", "type_", "attribute"), AGGREGATES)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, {f}(v) AS f FROM s WINDOW(RANGE 4) GROUP BY k",
        "SELECT {f}(k) AS f FROM s",
        "SELECT k, {f}(DISTINCT v) AS f, COUNT(*) AS n, {f}(v) FILTER (WHERE v > 0) AS p FROM s GROUP BY k",
        "SELECT k FROM s GROUP BY k HAVING {f}(v) > 1",
    ],
)
def test_an_aggregate_means_what_a_built_in_one_does(
    name: str, meaning: str, type_: str, attribute: str, query: str, monkeypatch: pytest.MonkeyPatch
):
    script = f"""CREATE STREAM s (k INT, v {type_});
                 CREATE AGGREGATE FUNCTION {name}(x {type_}) RETURNS {type_} AS 'udf_samples:{attribute}';
                 {query.format(f=name)}"""
    plan = bind_script(script).result.plan
    judged = with_built_in(plan, name.upper(), meaning)
    assert judged != plan
    monkeypatch.setattr(checks, "expected_histories", lambda _, cases: oracle.expected_histories(judged, cases))
    for form in (plan, plan_query(plan, Settings()).plan):
        for seed in range(3):
            check_case(form, streams(Dice(seed), plan), seed, thorough=False)


@pytest.mark.parametrize(
    ("attribute", "detail"),
    [("bad_total", "KeyError: 'total'"), ("text_total", "ArrowInvalid: Could not convert 'x' with type str")],
)
def test_a_failing_aggregate_is_named(attribute: str, detail: str):
    declared = f"CREATE AGGREGATE FUNCTION total(x DOUBLE) RETURNS DOUBLE AS 'udf_samples:{attribute}';"
    plan = bind_script(f"{STREAMS} {declared} SELECT total(x) AS v FROM s").result.plan
    with pytest.raises(HeadwaterError) as caught:
        run(plan, [(1, 2.0)])
    assert caught.value.message == 'query "q": aggregate function "TOTAL" failed'
    assert detail in caught.value.detail


# -- scripts ----------------------------------------------------------------------------------------------------------


def test_the_example_runs_and_q1_of_the_thesis_with_it():
    script = load_script(EXAMPLE / "queries.sql")
    lines = replay(script, EXAMPLE / "events.jsonl", history=True)
    assert lines == [
        '{"stream":"Euros","start":1,"end":2,"count":1,"row":{"itemID":7,"euros":9.2,"bidderID":1}}',
        '{"stream":"Euros","start":3,"end":4,"count":1,"row":{"itemID":7,"euros":36.8,"bidderID":2}}',
        '{"stream":"Euros","start":4,"end":5,"count":1,"row":{"itemID":8,"euros":4.6,"bidderID":2}}',
        '{"stream":"Euros","start":6,"end":7,"count":1,"row":{"itemID":8,"euros":null,"bidderID":3}}',
        '{"stream":"Typical","start":1,"end":3,"count":1,"row":{"itemID":7,"typical":10.0,"spread":0.0}}',
        '{"stream":"Typical","start":3,"end":11,"count":1,"row":{"itemID":7,"typical":20.0,"spread":30.0}}',
        '{"stream":"Typical","start":4,"end":14,"count":1,"row":{"itemID":8,"typical":5.0,"spread":0.0}}',
        '{"stream":"Typical","start":11,"end":13,"count":1,"row":{"itemID":7,"typical":40.0,"spread":0.0}}',
        '{"stream":"Typical","start":14,"end":16,"count":1,"row":{"itemID":8,"typical":null,"spread":null}}',
    ]


def test_modules_beside_a_script_can_be_imported(tmp_path: Path):
    (tmp_path / "beside_the_script.py").write_text("def f(x): return x")
    (tmp_path / "script.sql").write_text("CREATE FUNCTION f(x INT) RETURNS INT AS 'beside_the_script:f'")
    before = list(sys.path)
    try:
        assert load_script(tmp_path / "script.sql").catalog.function("F") is not None
        assert sys.path == [*before, str(tmp_path)]  # what is installed is found first
    finally:
        sys.path[:] = before
