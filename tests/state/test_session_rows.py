"""The rows of sessions: found by session, forgotten as a whole, and then gone from memory too."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.state.columns import Columns
from headwater.state.session_rows import SessionRows
from headwater.state.store import FileStore, MemoryStore

TYPES = {"column.0": pa.string(), "column.1": pa.int64()}


def add(rows, members, forgotten=()):
    """Rows (session, time, weight, text, number), and sessions that go."""
    session, time, weight, text, number = zip(*members, strict=True) if members else ((),) * 5
    columns = {
        "time": np.array(time, np.int64),
        "weight": np.array(weight, np.int64),
        "column.0": pa.array(text, pa.string()),
        "column.1": pa.array(number, pa.int64()),
    }
    rows.change(np.array(session, np.int64), Columns(columns), np.array(forgotten, np.int64))


def load(rows, sessions):
    which, columns = rows.load(np.array(sessions, np.int64))
    found = zip(
        columns["time"].tolist(), columns["weight"].tolist(), columns["column.0"].to_pylist(),
        columns["column.1"].to_pylist(), strict=True,
    )  # fmt: skip
    loaded = defaultdict(list)
    for i, row in zip(which.tolist(), found, strict=True):
        loaded[sessions[i]].append(row)
    return {session: sorted(members, key=repr) for session, members in loaded.items()}


@pytest.mark.parametrize("files", [False, True])
def test_random_changes_agree_with_a_dictionary(files, tmp_path: Path):
    rng = random.Random(files)
    rows = SessionRows(FileStore(tmp_path) if files else MemoryStore(), TYPES)
    kept, next_id = {}, 0
    for _ in range(40):
        chosen = [*rng.sample(sorted(kept), min(len(kept), 4)), next_id, next_id + 1]
        next_id += 2
        members = [
            (rng.choice(chosen), rng.randint(-9, 9), rng.randint(1, 3), rng.choice(["a", None]), rng.choice([1, None]))
            for _ in range(rng.randint(0, 12))
        ]
        grown = {member[0] for member in members}
        forgotten = [session for session in rng.sample(sorted(kept), min(len(kept), 2)) if session not in grown]
        add(rows, members, forgotten)
        for session, *row in members:
            kept.setdefault(session, []).append(tuple(row))
        for session in forgotten:
            del kept[session]
        assert rows.rows == sum(map(len, kept.values()))
        if kept:
            asked = rng.sample(sorted(kept), min(len(kept), 5))
            assert load(rows, asked) == {session: sorted(kept[session], key=repr) for session in asked}
            assert rows.counts(np.array(asked)).tolist() == [len(kept[session]) for session in asked]


def test_a_few_marks_forget_very_many_rows():
    rows = SessionRows(MemoryStore(), TYPES)
    add(rows, [(session, t, 1, "text", t) for session in range(4) for t in range(40_000)])
    full = rows.bytes
    add(rows, [(9, 0, 1, "kept", 0)], [0, 1, 2, 3])
    assert rows.rows == 1
    assert rows.bytes < full / 100
    assert load(rows, [9]) == {9: [(0, 1, "kept", 0)]}
    add(rows, [], [9])
    rows.clear()
    assert (rows.rows, rows.bytes, rows.segments()) == (0, 0, [])
