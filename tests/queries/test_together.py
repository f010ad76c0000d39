"""The whole corpus at once in one graph, in process: on several shards, with state in files, in other cuts."""

from __future__ import annotations

from pathlib import Path

import pytest
from query_together import differences, parts


def test_on_five_shards_with_state_in_files(tmp_path: Path):
    assert differences(list(parts(batch=None, speculative=False)), shards=5, folder=tmp_path) == []


def test_in_small_ticks_at_once_and_repaired():
    assert differences(list(parts(batch=2, speculative=True)), shards=2) == []


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("speculative", [False, True], ids=["strong", "middle"])
def test_in_other_cuts_with_state_in_files(batch: int, speculative: bool, tmp_path: Path):
    assert differences(list(parts(batch=batch, speculative=speculative)), shards=3, folder=tmp_path) == []
