"""What is committed: the manifest of the last tick, and the folder that keeps it, if there is one."""

from __future__ import annotations

import threading
from pathlib import Path

from headwater.runtime.checkpoint import Checkpoint, Manifest
from headwater.runtime.delivery import Delivery
from headwater.runtime.temporary import make_folder, remove_folder
from headwater.sinks.diverted import deliver_diverted
from headwater.state.filesystem import Folder
from headwater.state.store import FileStore


class Committed:
    """The last committed tick. Without a checkpoint it is in memory only, or (``durable``) in a folder that goes with it."""

    def __init__(self, place: str | Path | None, *, shards: int, durable: bool, keep: int, sync: bool) -> None:
        self.lock = threading.RLock()
        """Held while a tick runs, and while queries and streams come and go."""
        self._temporary = make_folder() if place is None and durable else None
        place = place if place is not None else self._temporary
        self.checkpoint = None if place is None else Checkpoint(Folder(place), keep, sync)
        kept = None if self.checkpoint is None else self.checkpoint.open()
        self.store = None if self.checkpoint is None else FileStore(self.checkpoint.segments)
        self.manifest = kept or Manifest(shards=shards)
        if kept is None:
            self.commit_again()  # sinks are told whose answers they get before the first tick
        self.deliver_diverted()  # those of the last tick may not have been kept before a crash

    def commit(self, manifest: Manifest) -> None:
        """From here on the tick has happened."""
        if self.checkpoint is not None:
            self.checkpoint.commit(manifest)
        self.manifest = manifest

    def commit_again(self) -> None:
        """The last tick stays as it is, but something that it knew is forgotten; also after a crash."""
        self.commit(self.manifest)

    def covers(self, delivery: Delivery) -> bool:
        """Is the batch part of a committed tick already? Only Spark brings one again; who is asked begins at the offset."""
        kept = self.manifest.batches.get(delivery.stream, {})
        known, batch = kept.get("batch"), delivery.batch
        return delivery.offset is None and kept.get("offset") is None and None not in (batch, known) and batch <= known

    def tidy(self, *, sweep: bool) -> None:
        """After the last tick is delivered: forget what only earlier ones needed."""
        if self.checkpoint is not None:
            self.checkpoint.tidy(self.manifest.tick, sweep=sweep)

    def deliver_diverted(self) -> None:
        """Put aside for good the rows of the last tick that no query took."""
        for stream, parts in self.manifest.diverted.items():
            deliver_diverted(self.aside, stream, self.manifest.tick, parts)

    @property
    def aside(self) -> str:
        """The folder of rows that no query took: the checkpoint, or one that goes with the engine."""
        if self.checkpoint is not None:
            return str(self.checkpoint.folder)
        self._temporary = self._temporary or make_folder()
        return self._temporary

    def forget_stream(self, stream: str, states: set[str]) -> None:
        """A stream is dropped, and with it the states of these keys."""
        kept = self.manifest
        kept.records = {n: {k: r for k, r in of.items() if k not in states} for n, of in kept.records.items()}
        named = (
            kept.batches,
            kept.newest,
            kept.counts,
            kept.frontiers,
            kept.relations,
            kept.measured,
            kept.described.get("times", {}),
        )
        for known in named:
            known.pop(stream, None)
        self.commit_again()
        if self.checkpoint is not None:
            self.checkpoint.forget_source(stream)

    def close(self) -> None:
        if self.checkpoint is not None:
            self.checkpoint.close()
        if self._temporary is not None:
            remove_folder(self._temporary)
