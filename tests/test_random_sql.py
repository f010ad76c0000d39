"""Random SQL: one history with the optimizer, without it and without each rule, and it is DuckDB's answer to the text."""

from __future__ import annotations

import pytest

from headwater.testing.cases import fresh, scaled
from headwater.testing.sql_checks import check_random_sql

PIECES, QUERIES = 8, 5
SLOW_PIECES, SLOW_QUERIES = 24, 8


@pytest.mark.parametrize("piece", range(PIECES))
def test_random_queries(piece: int):
    count = scaled(QUERIES)
    for seed in range(piece * count, (piece + 1) * count):
        check_random_sql(seed)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(SLOW_PIECES))
def test_many_random_queries(piece: int):
    count = scaled(SLOW_QUERIES)
    for seed in range(10_000 + piece * count, 10_000 + (piece + 1) * count):
        check_random_sql(fresh(seed))
