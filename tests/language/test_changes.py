"""What is declared of changes becomes a plan over what the source brings."""

from __future__ import annotations

import pytest

from headwater.algebra.nodes import Source
from headwater.algebra.plan_text import print_plan
from headwater.language.binder import bind_script
from headwater.language.catalog import Stream
from headwater.runtime.recording import over_recorded
from headwater.testing.plan_text import parse_plan


def declared(text: str) -> Stream:
    found = bind_script(f"CREATE TABLE t {text}").catalog.get("t")
    assert isinstance(found, Stream)
    return found


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("(x INT)", "source t (x INT)"),
        ("(x INT) SOURCE json('in')", "source t (x INT)"),
        ("(x INT) SOURCE json('in', changes => 'headwater')", "source t (x INT) checked"),
        ("(x INT) SOURCE json('in', changes => 'headwater', checked => false)", "source t (x INT)"),
        ("(x INT) SOURCE json('in', changes => 'headwater', ordered => false)", "source t (x INT) unordered"),
        ("(x INT) SOURCE json('in', changes => 'headwater', malformed => 'divert')", "source t (x INT) unordered"),
        (
            "(x INT) SOURCE json('in', changes => 'debezium')",
            "source t (x INT) events",
        ),
        (
            "(x INT PRIMARY KEY, y INT) SOURCE json('in', changes => 'debezium')",
            'source t (x INT NOT NULL, y INT) events key "x"',
        ),
    ],
)
def test_the_plan_of_a_changing_table(text: str, plan: str):
    found = declared(text).plan
    assert print_plan(found) == plan
    assert parse_plan(print_plan(found)) == found


def test_users_see_the_columns_that_they_declare():
    table = declared("(x INT PRIMARY KEY, y STRING) SOURCE json('in', changes => 'debezium')")
    assert table.plan.schema.names == ("x", "y")
    assert table.brought.names == ()
    assert "payload" in table.optional.names


@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_a_recording_has_the_rows_of_the_table(key: str):
    table = declared(f"(x INT{key}, y STRING) SOURCE json('in', changes => 'debezium')")
    found = over_recorded(table.plan, {"t": False})
    assert found == Source("t", table.plan.schema)


@pytest.mark.parametrize(
    ("text", "stamped", "unit"),
    [
        ("(x INT) SOURCE json('in')", True, True),
        ("(x INT)", False, True),
        ("(x INT) SOURCE json('in', changes => 'headwater')", False, True),
        ("(x INT) SOURCE json('in', changes => 'headwater', instants => 'numbers')", False, False),
        ("(x INT) SOURCE json('in', changes => 'debezium')", False, True),
        ("(x INT) SOURCE json('in', changes => 'debezium') ORDERED BY x", False, False),
        ("(x INT) SOURCE json('in') ORDERED BY x", False, False),
    ],
)
def test_where_the_time_of_rows_comes_from(text: str, stamped: bool, unit: bool):
    table = declared(text)
    assert (table.stamped_on_arrival, table.has_unit) == (stamped, unit)


def test_windows_need_no_time_column_of_a_table_of_events():
    table = "CREATE TABLE t (x INT, y INT) SOURCE json('in', changes => 'debezium');"
    script = bind_script(f"{table} SELECT x, window_end FROM ISTREAM(t) WINDOW(PARTITION BY x SESSION 10 MINUTES)")
    assert script.result is not None
    assert script.result.plan.schema.names == ("x", "window_end")
