"""The whole corpus at once in one graph, in process: on several shards, with state in files, in other cuts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from query_together import differences, parts


def test_on_five_shards_with_state_in_files(tmp_path: Path):
    assert differences(list(parts(batch=12, speculative=False)), shards=5, folder=tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "shards"), [(None, 3), (4, 2)])
@pytest.mark.parametrize("speculative", [False, True], ids=["strong", "middle"])
def test_in_other_cuts(batch: int | None, shards: int, speculative: bool, tmp_path: Path):
    assert differences(list(parts(batch=batch, speculative=speculative)), shards=shards, folder=tmp_path) == []


_NAMES = """
import sys
sys.path.insert(0, sys.argv[1])
from query_together import parts
from headwater.runtime.stepping import graph_of
for part in parts(batch=None, speculative=False):
    if part.case.path.stem in ("joins", "subqueries", "grouping_sets", "set_operations"):
        print(part.prefix, *(node.key for node in graph_of(part.stepped).nodes))
"""


@pytest.mark.slow
def test_state_is_called_the_same_in_every_process():
    """A query is known again after a restart by the names of its operators: they must not depend on the order of sets."""
    told = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", _NAMES, str(Path(__file__).parent)]
        told.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert told[0]
    assert told[0] == told[1]
