"""The jobs of the cookbook that are about Spark: a streaming DataFrame, exports, a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import cookbook
from tests.cluster import Cluster

ENVIRONMENT = {"PYTHONPATH": os.pathsep.join(sys.path), "SPARK_LOCAL_IP": "127.0.0.1"}


def on_spark(arguments: list[str], **environment: str) -> str:
    command = [sys.executable, "-c", "from headwater.cli.main import main; main()", *arguments]
    env = os.environ | ENVIRONMENT | environment
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("job", [job for job in cookbook.ON_SPARK if job != "cluster"])
def test_the_program_has_the_answer(job: str, tmp_path: Path):
    with cookbook.copied(job, tmp_path) as place:
        found = cookbook.computed_apart(place, ENVIRONMENT)
    assert cookbook.same(found, cookbook.by_query(cookbook.expected(job)))


@pytest.mark.slow
def test_script_and_program_run_on_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with Cluster(workers=2) as cluster:
        monkeypatch.setenv("MASTER", cluster.master_url)
        with cookbook.copied("cluster", tmp_path / "script"):
            assert cookbook.printed("cluster", on_spark) == cookbook.expected("cluster")
        with cookbook.copied("cluster", tmp_path / "program") as place:
            found = cookbook.computed_apart(place, ENVIRONMENT)
    assert cookbook.same(found, cookbook.by_query(cookbook.expected("cluster")))
