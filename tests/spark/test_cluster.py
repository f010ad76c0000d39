"""A real cluster on this machine: the package and modules get there, and a lost worker is made up for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headwater

SOURCES = Path(headwater.__file__).resolve().parents[1]

SCRIPT = """
import json
import sys
from pathlib import Path
from headwater.backends.spark import ship
from headwater.backends.spark.session import open_session
from tests.cluster import Cluster

folder = Path(sys.argv[1])
(folder / "modules" / "users_package").mkdir(parents=True)
(folder / "modules" / "users_package" / "__init__.py").write_text("")
(folder / "modules" / "users_package" / "factors.py").write_text("FACTOR = 21")

def mix(batches):
    import os
    import numpy as np
    import pyarrow as pa
    import headwater
    from headwater.kernels.hash import mix_all, unmix_all
    from users_package.factors import FACTOR

    for batch in batches:
        keys = np.asarray(batch.column(0)).view(np.uint64)
        same = bool((unmix_all(mix_all(keys)) == keys).all())
        answer = [os.getppid()], [headwater.__file__], [int(same) * FACTOR * batch.num_rows]
        yield pa.RecordBatch.from_arrays([pa.array(a) for a in answer], ["executor", "package", "rows"])

# The workers do not see the checkout, and keep what they are sent in a folder of this test.
environment = {"PYTHONPATH": None, "XDG_CACHE_HOME": str(folder / "cache")}
with Cluster(workers=2, environment=environment) as cluster:
    with open_session(cluster.master_url, config=cluster.settings) as session:
        ship.package(session.spark)
        ship.modules(session.spark, [folder / "modules"])

        def run(tasks):
            frame = session.spark.range(1000 * tasks, numPartitions=tasks)
            return frame.mapInArrow(mix, "executor long, package string, rows long").toArrow().to_pylist()

        both = run(8)
        cluster.kill_worker(0)
        one = run(8)
        print(json.dumps([session.local, session.shards, both, one]))
print(cluster.folder.exists())
"""


@pytest.mark.slow
def test_the_package_goes_to_a_cluster_and_a_killed_worker_is_made_up_for(tmp_path: Path):
    import json

    call = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    answer, folder_exists = done.stdout.splitlines()[-2:]
    local, shards, both, one = json.loads(answer)
    assert (local, shards) == (False, 2)
    assert len({row["executor"] for row in both}) == 2
    assert len({row["executor"] for row in one}) == 1
    assert all(row["package"].startswith(str(tmp_path / "cache")) for row in both + one)
    assert sum(row["rows"] for row in both) == sum(row["rows"] for row in one) == 21 * 8000
    assert folder_exists == "False"
    assert left_behind(tmp_path) == []


def environment() -> dict[str, str]:
    import os

    return os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])}


def left_behind(folder: Path) -> list[str]:
    """The processes that still have this folder in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return found
