"""A condition that cannot be computed for a row does not matter where another one drops the row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.algebra.nodes import Filter, Join
from headwater.errors import HeadwaterError
from headwater.expressions.rewrite import can_fail
from headwater.language.binder import bind_script
from headwater.optimizer.plan_query import plan_query
from headwater.runtime.replay import replay

DECLARED = "CREATE STREAM s (k INT, v STRING, w STRING); CREATE STREAM other (k INT, good BOOLEAN);"
ROWS = [
    ("s", {"k": 1, "v": "NA", "w": "7"}),
    ("s", {"k": 2, "v": "5", "w": "NA"}),
    ("s", {"k": 3, "v": "0", "w": "8"}),
    ("s", {"k": 4, "v": "9", "w": "9"}),
    ("other", {"k": 2, "good": True}),
    ("other", {"k": 4, "good": True}),
    ("other", {"k": 1, "good": False}),
]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps({"stream": name, "kind": "insert", "row": row, "start": 1, "end": 9}) for name, row in ROWS]
    path.write_text("\n".join(lines))
    return path


def answer(sql: str, recording: Path, settings: str = "") -> list[object]:
    script = bind_script(f"{settings} {DECLARED} {sql}")
    lines = replay(script, recording, history=True)
    return sorted((next(iter(json.loads(line)["row"].values())) for line in lines), key=str)


GUARDED = {
    "SELECT v FROM (SELECT v FROM s WHERE v <> 'NA') WHERE CAST(v AS INT) > 1": ["5", "9"],
    "SELECT v FROM s WHERE v <> 'NA' AND CAST(v AS INT) > 1": ["5", "9"],
    "SELECT v FROM s WHERE CAST(v AS INT) > 1 AND v <> 'NA'": ["5", "9"],
    "SELECT v FROM s WHERE v = 'NA' OR CAST(v AS INT) > 5": ["9", "NA"],
    "SELECT v FROM s WHERE NOT (v = 'NA' OR CAST(v AS INT) > 5)": ["0", "5"],
    "SELECT v FROM s WHERE CASE WHEN v <> 'NA' THEN CAST(v AS INT) > 1 END": ["5", "9"],
    "SELECT v <> 'NA' AND CAST(v AS INT) > 1 AS x FROM s": [False, True],
    "SELECT CASE WHEN v = 'NA' THEN -1 ELSE CAST(v AS INT) END AS x FROM s": [-1, 0, 5, 9],
    "SELECT CAST(v AS INT) AS x FROM s WHERE v <> 'NA'": [0, 5, 9],
    # Each may drop what the other cannot compute.
    "SELECT v FROM s WHERE CAST(v AS INT) > 6 AND CAST(w AS INT) > 7": ["9"],
    # Joins drop rows too, on either side.
    "SELECT v FROM s JOIN other ON s.k = other.k WHERE good AND CAST(v AS INT) > 1": ["5", "9"],
    "SELECT v FROM s JOIN other ON s.k = other.k AND good AND CAST(v AS INT) > 1": ["5", "9"],
    "SELECT v FROM s JOIN other ON s.k = other.k AND CAST(v AS INT) > other.k AND good": ["5", "9"],
    "SELECT v FROM s LEFT JOIN other ON s.k = other.k WHERE CAST(v AS INT) > 1 AND good": ["5", "9"],
    "SELECT v FROM s WHERE k IN (SELECT k FROM other WHERE good) AND CAST(v AS INT) > 1": ["5", "9"],
    "SELECT v FROM (SELECT v FROM s INTERSECT SELECT v FROM s WHERE v <> 'NA') WHERE CAST(v AS INT) > 1": ["5", "9"],
    "SELECT v FROM (SELECT v, COUNT(*) AS n FROM s WHERE v <> 'NA' GROUP BY v) WHERE CAST(v AS INT) > 1": ["5", "9"],
    "SELECT v FROM (SELECT v, COUNT(*) AS n, MAX(v) AS m FROM s GROUP BY v) WHERE CAST(v AS INT) > 1 AND m <> 'NA'": [
        "5",
        "9",
    ],
    "SELECT SUM(CAST(v AS INT)) FILTER (WHERE v <> 'NA') AS x FROM s": [14],
}


@pytest.mark.parametrize("settings", ["", "SET optimizer = off;"])
@pytest.mark.parametrize("sql", GUARDED)
def test_a_guard_protects(sql: str, settings: str, recording: Path):
    assert answer(sql, recording, settings) == GUARDED[sql]


def test_what_no_guard_drops_stops_the_query(recording: Path):
    with pytest.raises(HeadwaterError, match="could not compute"):
        answer("SELECT v FROM s WHERE k < 3 AND CAST(v AS INT) > 1", recording)


def test_an_equation_that_can_fail_still_joins(recording: Path):
    sql = "SELECT v FROM s, other WHERE CAST(w AS INT) + 2 = CAST(other.k AS INT) * 3 AND w <> 'NA' AND v <> 'NA'"
    script = bind_script(f"{DECLARED} {sql}")
    assert script.result is not None
    assert [node.keys for node in script.result.plan.walk() if isinstance(node, Join)] != [()]
    assert answer(sql, recording) == []


def test_conditions_that_can_fail_stay_above_a_join():
    sql = "SELECT v FROM s JOIN other ON s.k = other.k WHERE good AND s.k > 1 AND CAST(v AS INT) > 1"
    script = bind_script(f"{DECLARED} {sql}")
    assert script.result is not None
    plan = plan_query(script.result.plan, script.settings).logical
    below = [f for node in plan.walk() if isinstance(node, Join) for f in node.walk() if isinstance(f, Filter)]
    assert below, "the others go to the sides"
    assert not any(can_fail(f.predicate) for f in below)
