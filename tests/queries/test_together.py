"""The whole corpus at once in one graph, in process: on several shards, with state in files, in other cuts."""

from __future__ import annotations

from pathlib import Path

import pytest
from query_together import differences, parts


def test_on_five_shards_with_state_in_files(tmp_path: Path):
    assert differences(list(parts(batch=8, speculative=False)), shards=5, folder=tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "shards"), [(None, 3), (1, 2), (3, 1)])
@pytest.mark.parametrize("speculative", [False, True], ids=["strong", "middle"])
def test_in_other_cuts(batch: int | None, shards: int, speculative: bool, tmp_path: Path):
    assert differences(list(parts(batch=batch, speculative=speculative)), shards=shards, folder=tmp_path) == []
