"""The market again, with sinks that get the answers of several ticks together, and a clock that is moved by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
from engine_market import FILES, QUERIES, STEPS, STREAMS, bring, garbage, place, state

import headwater as hw
from headwater.clock.wall import VirtualClock
from headwater.runtime import points
from headwater.sinks import parts
from headwater.sinks.base import Sink
from headwater.sinks.folder import Folder

SECOND = 1_000_000
TOGETHER = {name: QUERIES[name] for name in ("busy", "bidders", "large", "early")}
"""Final rows, rows for a Delta table, rows that need no state, a changelog."""


def sink_of(name: str, folder: Path, every: float, compact: int) -> Sink:
    place = folder / "answers" / name
    if name == "large":
        return hw.sinks.json(place, every=every)
    if name == "bidders":
        return hw.sinks.delta(place, every=every, compact=compact)
    sink = hw.sinks.parquet(place, every=every, compact=compact)
    sink.grace = 0.0
    return sink


def run_together(folder: Path, *, every: float = 2, steps: int = STEPS, compact: int = 0) -> None:
    """A step a second; what a crash left half done comes first. A second of the clock is a tick, two are a delivery."""
    with patch.object(parts, "INLINE_BYTES", 64):  # so that answers also wait as files
        _run_together(folder, every, steps, compact)


def _run_together(folder: Path, every: float, steps: int, compact: int) -> None:
    for name in FILES:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for step in range(steps):
        missing = [name for name in FILES if not place(folder, name, step).exists()]
        if 0 < len(missing) < len(FILES):
            bring(folder, step, missing)
    done = sum(place(folder, "bid", step).exists() for step in range(steps))
    clock = VirtualClock((1_000_000 + done) * SECOND)
    with hw.connect(runner="inprocess", shards=2, checkpoint=folder / "checkpoint", clock=clock) as engine:
        engine.sql(STREAMS.format(folder=folder))
        with engine.held():
            for name, sql in TOGETHER.items():
                engine.sql(sql, name=name).start(sink_of(name, folder, every, compact))
        engine._inputs.drain()
        for step in range(steps):
            if not place(folder, "bid", step).exists():
                with engine.held():
                    bring(folder, step)
                engine._inputs.drain()
                clock.advance(SECOND)
        engine.run_to_end()


def run_together_part_by_part(folder: Path, **options: Any) -> None:
    """The same, and a crash may come before any file of an answer is put in its place or taken away."""
    move, delete, replace = Folder.move, Folder.delete, Folder.replace

    def moved(self: Folder, old: str, new: str) -> None:
        points.passed("between two files")
        move(self, old, new)

    def deleted(self: Folder, name: str) -> None:
        points.passed("between two files")
        delete(self, name)

    def replaced(self: Folder, name: str, data: Any, **options: Any) -> None:
        points.passed("between two files")
        replace(self, name, data, **options)

    Folder.move, Folder.delete, Folder.replace = moved, deleted, replaced
    run_together(folder, **options)


def rows_of(folder: Path, name: str) -> list[str]:
    """All rows of an answer, sorted, whatever they are written in."""
    place = folder / "answers" / name
    if name == "bidders":
        import deltalake

        found = deltalake.DeltaTable(str(place)).to_pyarrow_table().to_pylist()
    elif name == "large":
        import json

        found = [json.loads(line) for file in place.glob("*.json") if file.name[0] != "_" for line in file.open()]
    else:
        found = [row for file in place.glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    return sorted(map(repr, found))


def deliveries(folder: Path, name: str) -> set[str]:
    """The ticks under whose numbers files came."""
    return {file.name.split("-")[1] for file in (folder / "answers" / name).glob("tick-*")}


def check_together(folder: Path, undisturbed: dict[str, Any]) -> None:
    for name in TOGETHER:
        expected = sorted(row for rows in undisturbed["answers"][name].values() for row in rows)
        assert rows_of(folder, name) == expected, name
    for name in TOGETHER:
        kept = {k: v for k, v in state(folder)["queries"][name].items() if k in ("key", "frontier", "closed", "since")}
        assert kept == {k: undisturbed["state"]["queries"][name][k] for k in kept}
    left = [str(p) for p in (folder / "checkpoint" / "waiting").rglob("0*")]
    assert garbage(folder) == [] == left
