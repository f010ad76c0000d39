"""Random statements end in an answer or in an error of ours, never in a traceback."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headwater.errors import SqlError
from headwater.language.binder import bind_script
from headwater.testing.cases import fresh, scaled
from headwater.testing.fuzz import STREAMS, check, script

sys.path.append(str(Path(__file__).parent.parent / "queries"))
from query_corpus import files, read

CORPUS = [(case.streams, case.sql) for path in files() for case in read(path)]
FEW, MANY, PIECES = 200, 3000, 8


def run(first: int, count: int) -> None:
    for seed in range(first, first + count):
        text = script(seed, CORPUS)
        try:
            check(text)
        except Exception as problem:
            raise AssertionError(f"seed {seed}:\n{text}") from problem


def test_random_statements():
    run(0, scaled(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PIECES))
def test_many_random_statements(piece: int):
    count = scaled(MANY)
    run(fresh(10_000 + piece * count), count)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (" UNION ALL ".join(["SELECT x FROM u"] * 1000), "TOO_DEEP"),
        (" UNION ".join(f"SELECT x + {i} AS x FROM u" for i in range(250)), "TOO_DEEP"),
        (" EXCEPT ".join(["SELECT x FROM u"] * 300), "TOO_DEEP"),
        ("SELECT " + "(" * 3000 + "x" + ")" * 3000 + " FROM s", "TOO_DEEP"),
        ("SELECT x" + " + 1" * 3000 + " AS x FROM u", "TOO_DEEP"),
        ("SELECT x FROM u WHERE x = 1 OR x" + " + 1" * 3000 + " = 2", "TOO_DEEP"),
        ("SELECT * FROM (VALUES ()) v", "SYNTAX"),
        ("SELECT * FROM VALUES (), (1)", "SYNTAX"),
        ("END", "UNKNOWN_STATEMENT"),
        ("SELECT x FROM u; END;", "UNKNOWN_STATEMENT"),
        ("SELECT SESSION FROM VALUES", "SYNTAX"),
    ],
    ids=[
        *("unions", "distinct unions", "differences", "parentheses", "a sum", "a sum in a condition"),
        *("a row of nothing", "another row of nothing", "END", "END after a query", "no values"),
    ],
)
def test_what_once_was_a_traceback_is_an_error(text: str, code: str):
    with pytest.raises(SqlError) as error:
        bind_script(STREAMS + text)
    assert error.value.code == code


def test_a_long_condition_is_not_deep():
    chain = " OR ".join(f"x = {i} AND x < {i + 1}" for i in range(1500))
    assert bind_script(STREAMS + f"SELECT x FROM u WHERE {chain}").result is not None


def test_a_chain_of_unions_is_no_deep_plan():
    result = bind_script(STREAMS + " UNION ALL ".join(f"SELECT x + {i} AS x FROM u" for i in range(100))).result
    assert result is not None
    depth, level = 0, [result.plan]
    while level := [child for plan in level for child in plan.inputs]:
        depth += 1
    assert depth < 12


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x, (SELECT COUNT(*) FROM TUMBLE(TABLE s, DESCRIPTOR(t), INTERVAL '5' SECONDS)) FROM s",
        "SELECT x, EXISTS (SELECT 1 FROM HOP(TABLE s, DESCRIPTOR(t), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS)) FROM s",
        "SELECT x, (SELECT COUNT(*) FROM ISTREAM(u)) FROM s",
    ],
)
def test_table_functions_in_sub_queries_without_a_name(text: str):
    result = bind_script(STREAMS + text).result
    assert result is not None
    assert len(result.plan.schema.names) == 2


def test_a_sub_query_by_primary_key_is_one_row():
    result = bind_script(STREAMS + "SELECT x, (SELECT name FROM k WHERE k.id = s.x) AS name FROM s").result
    assert result is not None
    for query in ("SELECT x, (SELECT name FROM k WHERE k.id > s.x) FROM s", "SELECT x, (SELECT z FROM u) FROM s"):
        with pytest.raises(SqlError, match="more than one row"):
            bind_script(STREAMS + query)


def test_an_aggregate_over_nothing_has_a_row_if_so_set():
    for setting, plan in (("no_row", "Aggregate"), ("one_row", "Join")):
        result = bind_script(f"SET empty_aggregate = {setting}; {STREAMS} SELECT COUNT(*) AS n FROM u").result
        assert result is not None
        assert plan in [type(node).__name__ for node in (result.plan, *result.plan.inputs)]
