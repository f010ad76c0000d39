"""What is kept between ticks: one manifest a tick, written whole and put in place by a rename.

A tick is committed when its manifest is there. It names every state segment, how far time is in the streams, which batches
of the sources it covers, and the parts of answers that the sinks may not have got yet. Segments, staged parts and bundles
that no kept manifest names belong to attempts that failed: they are garbage, never a part of the truth.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from attrs import Factory, define, field

from headwater.clock.frontier import StreamClock
from headwater.errors import StateError
from headwater.runtime import points
from headwater.runtime.executor import Records
from headwater.sinks.base import Staged
from headwater.state.manifest import state_segments

FORMAT = 1
_DIGITS = 12
_SWEPT_EVERY = 100
"""Ticks between two searches for garbage."""


@define
class Manifest:
    """The engine after a tick."""

    tick: int = 0
    shards: int = 0
    records: Records = Factory(dict)
    clocks: dict[str, StreamClock] = Factory(dict)
    frontiers: dict[str, int] = Factory(dict)
    """Of streams without a clock."""
    newest: dict[str, int] = Factory(dict)
    batches: dict[str, Any] = Factory(dict)
    """By stream: the last batch of its source that is covered, and where to go on."""
    queries: dict[str, dict[str, Any]] = Factory(dict)
    """By name: the key of its root, since when it runs, how far its answer is."""
    outputs: dict[str, list[Staged]] = Factory(dict)
    """By query: what this tick answered."""
    diverted: dict[str, list[Staged]] = Factory(dict)
    """By stream: late and malformed rows of this tick that no query reads."""
    counts: dict[str, dict[str, int]] = Factory(dict)
    """By stream: rows, late rows, malformed rows since the beginning."""
    origin: str = Factory(lambda: uuid.uuid4().hex)
    """Tells this checkpoint from any other that may have begun in the same place."""
    described: dict[str, Any] = Factory(dict)
    """What the keys of records stand for, and the units of time: for people, nothing runs by it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "tick": self.tick,
            "shards": self.shards,
            "records": {str(shard): its for shard, its in self.records.items()},
            "clocks": {name: clock.to_manifest() for name, clock in self.clocks.items()},
            "frontiers": self.frontiers,
            "newest": self.newest,
            "batches": self.batches,
            "queries": self.queries,
            "outputs": {name: [_staged(p) for p in parts] for name, parts in self.outputs.items()},
            "diverted": {name: [_staged(p) for p in parts] for name, parts in self.diverted.items()},
            "counts": self.counts,
            "origin": self.origin,
            "described": self.described,
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Manifest:
        plain = ("tick", "shards", "frontiers", "newest", "batches", "queries", "counts", "origin")
        return cls(
            **{name: kept[name] for name in plain},
            records={int(shard): its for shard, its in kept["records"].items()},
            clocks={name: StreamClock.from_manifest(its) for name, its in kept["clocks"].items()},
            outputs={name: [_unstaged(p) for p in parts] for name, parts in kept["outputs"].items()},
            diverted={name: [_unstaged(p) for p in parts] for name, parts in kept["diverted"].items()},
            described=kept.get("described", {}),
        )

    def segments(self) -> set[str]:
        """The names of all segments that it needs."""
        return {
            name for its in self.records.values() for r in its.values() for name in state_segments(r["state"] or {})
        }


def _sync_names(folder: Path) -> None:
    """A file is only there for good when its folder is on the disk too."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _staged(part: Staged) -> list[Any]:
    return [part.rows, part.data.hex() if part.data is not None else None, part.path]


def _unstaged(kept: list[Any]) -> Staged:
    rows, data, path = kept
    return Staged(rows, bytes.fromhex(data) if data is not None else None, path)


@define
class Checkpoint:
    """A folder with the manifests of the last ticks and everything that they name."""

    folder: Path
    keep: int = 3
    """So many manifests stay, for readers that are pinned to one."""
    sync: bool = False
    """Wait until the disk has it: survives a loss of power, not only of the process."""
    _lock: IO[str] | None = field(default=None, init=False)
    _needed: dict[int, set[str]] = field(factory=dict, init=False)
    """By kept manifest: the segments that it names."""

    def open(self) -> Manifest | None:
        """Take the folder for this process alone; the last manifest, if there is one."""
        for name in ("manifests", "segments", "staged", "exchange"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self._take_lock()
        try:
            ticks = self.ticks()
            manifest = self.read(ticks[-1]) if ticks else None
            for tick in ticks[-self.keep :]:
                self._needed[tick] = self.read(tick).segments()
            self.collect_orphans()
            self._forget_dropped_sources(manifest)
        except BaseException:
            self.close()
            raise
        return manifest

    @property
    def segments(self) -> str:
        return str(self.folder / "segments")

    def staging(self, tick: int) -> str:
        return str(self.folder / "staged" / f"{tick:0{_DIGITS}d}")

    def source(self, stream: str) -> Path:
        """Where Spark keeps how far it has read a stream."""
        return self.folder / "sources" / quote(stream, safe="").replace(".", "%2E")

    def forget_source(self, stream: str) -> None:
        """A stream of that name begins anew. Only when no manifest speaks of it any more."""
        shutil.rmtree(self.source(stream), ignore_errors=True)

    def _forget_dropped_sources(self, manifest: Manifest | None) -> None:
        """A crash may come between a DROP and what it deletes. Spark has committed there what no manifest knows."""
        known = {self.source(stream) for stream in (manifest.batches if manifest else ())}
        for place in (self.folder / "sources").glob("*"):
            if place not in known and any((place / "commits").glob("[0-9]*")):
                shutil.rmtree(place, ignore_errors=True)

    @property
    def exchange(self) -> str:
        return str(self.folder / "exchange")

    def ticks(self) -> list[int]:
        """The ticks whose manifests are there."""
        return sorted(int(p.stem) for p in (self.folder / "manifests").glob("*.json") if p.stem.isdigit())

    def read(self, tick: int) -> Manifest:
        path = self._path(tick)
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["format"] == FORMAT:
                return Manifest.from_json(kept)
        except FileNotFoundError:
            raise StateError("STATE_MISSING", f'the checkpoint has no manifest "{path}"') from None
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise StateError(
                "STATE_DAMAGED",
                f'the manifest "{path}" cannot be read',
                detail=str(problem) if isinstance(problem, ValueError) else f"It is no manifest: {problem!r}.",
                hint="Put the file back from a copy of the checkpoint, or start with an empty checkpoint folder.",
            ) from problem
        raise StateError(
            "STATE_VERSION",
            f'the checkpoint "{self.folder}" has format {kept["format"]}, and this version reads {FORMAT}',
            hint="Go on with the version that wrote it, or begin with an empty folder.",
        )

    def commit(self, manifest: Manifest) -> None:
        """From here on the tick has happened."""
        path = self._path(manifest.tick)
        partial = path.with_suffix(".partial")
        try:
            if self.sync:
                os.sync()  # everything that it names, whoever wrote it: segments, staged parts, delivered answers
            with partial.open("w", encoding="utf-8") as file:
                json.dump(manifest.to_json(), file, separators=(",", ":"))
                if self.sync:
                    file.flush()
                    os.fsync(file.fileno())
            points.passed(points.IN_THE_MANIFEST)
            partial.replace(path)
            if self.sync:
                _sync_names(path.parent)
        except OSError as problem:
            partial.unlink(missing_ok=True)
            raise StateError(
                "STATE_UNWRITABLE",
                f'could not commit tick {manifest.tick} in "{self.folder}": {problem.strerror}',
                hint="Make room, or mend the folder, and start again: the tick runs again.",
            ) from problem
        self._needed[manifest.tick] = manifest.segments()

    def tidy(self, tick: int, *, sweep: bool = False) -> None:
        """After a tick is committed and delivered: forget manifests beyond those kept, and what only they needed.

        Now and then, or if told so, also what attempts left behind that failed and were repeated.
        """
        shutil.rmtree(self.staging(tick - 1), ignore_errors=True)
        dropped = sorted(self._needed)[: -self.keep]
        needed = set().union(*(names for t, names in self._needed.items() if t not in dropped))
        for old in dropped:
            self._path(old).unlink(missing_ok=True)
            points.passed(points.IN_THE_TIDYING)
            for name in self._needed.pop(old) - needed:
                (self.folder / "segments" / f"{name}.arrow").unlink(missing_ok=True)
        if sweep or tick % _SWEPT_EVERY == 0:
            self.collect_orphans()

    def collect_orphans(self) -> int:
        """Delete what no kept manifest names: segments and parts of attempts that failed. How many segments there were."""
        needed = set().union(*self._needed.values())
        orphans = [p for p in (self.folder / "segments").glob("*.arrow") if p.stem not in needed]
        for path in orphans:
            path.unlink(missing_ok=True)
        for path in (self.folder / "manifests").glob("*.partial"):
            path.unlink(missing_ok=True)
        for tick in self.ticks():
            if tick not in self._needed:  # a crash came before it was forgotten, or fewer are kept now
                self._path(tick).unlink(missing_ok=True)
        shutil.rmtree(self.folder / "exchange", ignore_errors=True)
        last = max(self._needed, default=0)
        for path in (self.folder / "staged").iterdir():
            if path.name != f"{last:0{_DIGITS}d}":
                shutil.rmtree(path, ignore_errors=True)
        return len(orphans)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _path(self, tick: int) -> Path:
        return self.folder / "manifests" / f"{tick:0{_DIGITS}d}.json"

    def _take_lock(self) -> None:
        lock = (self.folder / "lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise StateError(
                "CHECKPOINT_IN_USE",
                f'the checkpoint "{self.folder}" is used by another process',
                hint="Stop that one first, or choose another folder.",
            ) from None
        self._lock = lock
