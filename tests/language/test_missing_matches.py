"""Flink's ``REGEXP_EXTRACT(…) IS NOT NULL`` would be true of every row here."""

from __future__ import annotations

import pytest

from headwater.language.binder import bind_script

STREAM = "CREATE STREAM s (url STRING, x INT);"
FOUND = "regexp_extract(url, 'a(b)', 1)"


def codes(sql: str) -> list[str]:
    return [notice.code for notice in bind_script(STREAM + sql).notices]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT x FROM s WHERE {FOUND} IS NOT NULL",
        f"SELECT x FROM s WHERE x > 1 AND ({FOUND}) IS NULL",
        f"SELECT COALESCE({FOUND}, 'none') AS y FROM s",
        f"CREATE STREAM t AS SELECT CASE WHEN {FOUND} IS NULL THEN 1 END AS y FROM s",
    ],
)
def test_asking_for_null_is_told_once(sql: str):
    assert codes(sql) == ["NO_MATCH"]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {FOUND} AS y FROM s",
        f"SELECT x FROM s WHERE {FOUND} <> ''",
        f"SELECT x FROM s WHERE NULLIF({FOUND}, '') IS NOT NULL",
        "SELECT COALESCE(url, 'none') AS y FROM s WHERE url IS NOT NULL",
    ],
)
def test_others_are_left_alone(sql: str):
    assert codes(sql) == []
