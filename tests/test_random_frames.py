"""OVER (… ORDER BY ts …): random queries have DuckDB's answer over the whole of random streams, however these come."""

from __future__ import annotations

import pytest

from headwater.testing.cases import fresh, scaled
from headwater.testing.random_frames import check_framed_sql

PIECES, QUERIES = 6, 8
SLOW_PIECES, SLOW_QUERIES = 8, 30


@pytest.mark.parametrize("piece", range(PIECES))
def test_random_frames(piece: int):
    count = scaled(QUERIES)
    for seed in range(piece * count, (piece + 1) * count):
        check_framed_sql(seed)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(SLOW_PIECES))
def test_many_random_frames(piece: int):
    count = scaled(SLOW_QUERIES)
    for seed in range(10_000 + piece * count, 10_000 + (piece + 1) * count):
        check_framed_sql(fresh(seed))
