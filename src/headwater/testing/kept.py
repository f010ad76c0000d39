"""Take a running graph down and up again: all state saved, read back by another store, on another number of shards."""

from __future__ import annotations

import json

from headwater.runtime.inprocess import Runner
from headwater.state.manifest import state_segments
from headwater.state.store import FileStore


def restart(runner: Runner, shards: int) -> None:
    """Go on from what the manifests say, and nothing else, on so many shards; the runner keeps its state in files."""
    assert isinstance(runner._store, FileStore)
    store = FileStore(runner._store.folder)
    for cell in runner._cells.values():
        operator = cell._operator
        written = json.dumps([operator.save(state) for state in cell._states])
        states = [operator.restore(manifest, store) for manifest in json.loads(written)]
        if any(operator.routing()) and shards != len(states):
            states = operator.reshard(states, shards, store)
        cell._states = states
    runner._store = store


def saved_segments(runner: Runner) -> list[str]:
    """The names of the segments that the manifests of all operators refer to."""
    saved = [cell._operator.save(state) for cell in runner._cells.values() for state in cell._states]
    return list(state_segments(saved))
