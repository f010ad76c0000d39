"""The engine on a real standalone cluster: three queries, a worker killed in mid-run, the right answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headwater

SOURCES = Path(headwater.__file__).resolve().parents[1]
ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import json, sys
import headwater as hw
from tests.cluster import Cluster

STREAMS = '''
    CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, ts TIMESTAMP)
      SOURCE nexmark('bid', rate => 5000, events => 60000, paced => false, disorder => '1 second', rows_per_tick => 9000)
      ORDERED BY ts DISORDER 1 SECOND;
    CREATE STREAM auction (id BIGINT, category BIGINT, ts TIMESTAMP)
      SOURCE nexmark('auction', rate => 5000, events => 60000, paced => false, disorder => '1 second', rows_per_tick => 600)
      ORDERED BY ts DISORDER 1 SECOND
'''
QUERIES = {
    "counts": "SELECT auction, COUNT(*) AS n, MAX(price) AS top FROM bid WINDOW(RANGE 1 SECOND) GROUP BY auction",
    "matches": "SELECT b.auction, a.category FROM bid b WINDOW(RANGE 1 SECOND), auction a WINDOW(RANGE 2 SECONDS) "
               "WHERE b.auction = a.id",
    "bidders": "SELECT DISTINCT bidder FROM bid WINDOW(RANGE 1 SECOND)",
}


def answers(engine, between=lambda: None):
    engine.sql(STREAMS)
    with engine.held():
        runs = {name: engine.sql(text, name=name).start(hw.sinks.memory()) for name, text in QUERIES.items()}
    between()
    engine.run_to_end()
    found = {}
    for name, run in runs.items():
        table = run.history().to_arrow()
        found[name] = [table.num_rows, hash_of(table)]
    found["ticks"] = engine.progress().tick
    return found


def hash_of(history):
    import duckdb
    return str(duckdb.sql("SELECT SUM(CAST(hash(CAST(t AS VARCHAR)) AS HUGEINT)) FROM history AS t").fetchall())


with hw.connect(runner="inprocess") as engine:
    expected = answers(engine)

with Cluster(workers=2) as cluster:
    with hw.connect(cluster.master_url, config=cluster.settings, shards=2, checkpoint=sys.argv[1], small_tick=0) as engine:
        def lose_a_worker():
            while engine.progress().tick < 2:
                engine.wait(0.2)
            cluster.kill_worker(0)
        found = answers(engine, lose_a_worker)
print(json.dumps({"same": {n: expected[n] == found[n] for n in QUERIES},
                  "rows": {n: found[n][0] for n in QUERIES}, "ticks": found["ticks"]}))
"""


@pytest.mark.slow
def test_a_lost_worker_changes_no_answer(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), str(tmp_path / "checkpoint")]
    ran = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
        env={"PYTHONPATH": f"{SOURCES}{os.pathsep}{ROOT}", **_environment()},
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["same"] == {"counts": True, "matches": True, "bidders": True}
    assert all(told["rows"].values())
    assert told["ticks"] > 3


def _environment() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
