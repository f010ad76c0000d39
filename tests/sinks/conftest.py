"""What the tests of the sinks share: a small answer, and a way to stage it as tasks do."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.sinks.base import Output, Sink, Staged

COUNTS = Schema.of(auction="BIGINT", n="BIGINT")


@pytest.fixture
def counts() -> Output:
    """Final answers with plain instants."""
    return Output("hot", COUNTS, timestamps=False, origin="here")


@pytest.fixture
def stage(tmp_path: Path) -> Callable[..., list[Staged]]:
    """Stage each list of (auction, n, start, end[, weight]) as one shard's part, through a stager that was pickled."""

    def staged(sink: Sink, tick: int, *shards: list[tuple[int, ...]]) -> list[Staged]:
        stager = pickle.loads(pickle.dumps(sink.stager()))
        parts = []
        for number, rows in enumerate(shards):
            delta = Delta.from_rows(sink.output.schema, [((a, n), s, e, *(w or [1])) for a, n, s, e, *w in rows])
            parts.append(stager.stage(tick, number, delta, str(tmp_path / "checkpoint" / "staging")))
        return parts

    return staged
