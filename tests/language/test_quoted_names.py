"""Names in double quotes are text, as in Spark: a notice where a name was probably meant."""

from __future__ import annotations

import pytest

from headwater.errors import SqlError
from headwater.language.binder import bind_script

STREAMS = "CREATE STREAM s (x INT, day STRING, item STRING);\n"


def told(text: str) -> list[str]:
    return [n.message.split('"')[1] for n in bind_script(STREAMS + text).notices if n.code == "QUOTED_NAME"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('SELECT "day" FROM s', ["day"]),
        ('SELECT "Day" AS d FROM s', ["Day"]),
        ('SELECT "something" FROM s', ["something"]),
        ('SELECT "day", COUNT(*) AS n FROM s GROUP BY "day"', ["day"]),
        ("SELECT x FROM s WHERE \"item\" = 'lamp'", ["item"]),
        ('SELECT x FROM s WHERE item = "day"', ["day"]),
        ('SELECT x AS total FROM s ORDER BY "total" LIMIT 3', ["total"]),
        ('SELECT upper("item") AS u FROM s', ["item"]),
        ('SELECT ROW_NUMBER() OVER (PARTITION BY "day" ORDER BY x) AS r FROM s', ["day"]),
        ('WITH w AS (SELECT "day" FROM s) SELECT * FROM w', ["day"]),
        ('SELECT x FROM s WHERE item IN (SELECT "item" FROM s)', ["item"]),
        ('CREATE STREAM v AS SELECT "day" FROM s', ["day"]),
    ],
)
def test_a_name_in_double_quotes_is_noticed(text: str, names: list[str]):
    assert told(text) == names


def test_the_notice_says_what_to_write():
    (notice,) = bind_script(f'{STREAMS}SELECT "day" FROM s').notices
    assert str(notice) == (
        'notice: QUOTED_NAME: "day" is text here, as in Spark, and no name\n'
        "  hint:   For the name write `day` in backticks."
    )
    assert told("SELECT `day` FROM s") == []


@pytest.mark.parametrize(
    "text",
    [
        'SELECT x FROM s WHERE item = "lamp"',
        'SELECT x FROM s WHERE item IN ("lamp", "vase")',
        "SELECT 'day' AS d FROM s WHERE item = 'day'",
        'SELECT x AS "day" FROM s',
        'SELECT concat(item, "!") AS loud FROM s',
        'SELECT CASE WHEN x > 1 THEN "many" ELSE "one" END AS c FROM s',
        'SELECT x FROM s WHERE item LIKE "l%"',
    ],
)
def test_text_in_double_quotes_is_text(text: str):
    assert told(text) == []


@pytest.mark.parametrize("text", ['SELECT x FROM "s"', 'CREATE STREAM v ("x" INT)'])
def test_where_only_a_name_can_stand_it_is_a_mistake_with_that_hint(text: str):
    with pytest.raises(SqlError, match="SYNTAX") as caught:
        bind_script(STREAMS + text)
    assert "in backticks" in caught.value.hint
