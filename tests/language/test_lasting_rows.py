"""Windows over rows that last: ROWS takes them segment by segment, whatever the length and the batch."""

from __future__ import annotations

import pytest

from headwater.language.binder import bind_script
from headwater.model.delta import Delta
from headwater.model.history import History
from headwater.model.time import INFINITY
from headwater.runtime.stepping import by_hand

SECOND = 1_000_000
TRIP = "CREATE STREAM trip (car INT, km INT, ts TIMESTAMP) ORDERED BY ts;"
ROWS = [(1, 10, 1), (2, 7, 3), (1, 12, 30), (1, 11, 34)]


@pytest.mark.parametrize("speculative", [False, True])
@pytest.mark.parametrize("length", [10, 13])
def test_the_last_row_of_a_windowed_sub_query_does_not_depend_on_the_batch(length: int, speculative: bool):
    query = f"SELECT car, km FROM (SELECT car, km FROM trip [RANGE {length} SECONDS]) [PARTITION BY car ROWS 1]"
    script = bind_script(TRIP + query)
    assert script.result is not None
    plan, schema = script.result.plan, script.catalog.sources()["trip"]
    found = []
    for size in (1, 2, 4):
        runner, out = by_hand({"q": plan}, speculative=speculative), []
        for first in range(0, len(ROWS), size):
            rows = [
                ((car, km, at * SECOND), at * SECOND, at * SECOND + 1, 1) for car, km, at in ROWS[first : first + size]
            ]
            last = rows[-1][1] if first + size < len(ROWS) else INFINITY
            out.append(runner.tick({"trip": Delta.from_rows(schema, rows)}, {"trip": last})["q"].delta)
        assert sum(map(len, out)) < 20
        found.append(History.of(plan.schema, out))
    assert found[0] == found[1] == found[2]
    # At 34 there are 12 and 11: of the rows of an instant the last is the largest. When 12 has left, 11 is alone.
    left = (30 + length) * SECOND
    for instant, expected in (
        (2 * SECOND, {(1, 10)}),
        (29 * SECOND, {(1, 10), (2, 7)}),
        (35 * SECOND, {(1, 12), (2, 7)}),
        (left, {(1, 11), (2, 7)}),
        (left + 3600 * SECOND, {(1, 11), (2, 7)}),
    ):
        assert set(found[0].snapshot(instant)) == expected


def test_rstream_over_rows_that_last_says_what_it_does():
    script = bind_script(TRIP + "SELECT RSTREAM(car) FROM trip [RANGE 10 SECONDS]")
    assert [notice.code for notice in script.notices] == ["LASTING_ROWS"]
    assert bind_script(TRIP + "SELECT RSTREAM(car) FROM trip").notices == ()
