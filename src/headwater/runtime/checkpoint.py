"""What is kept between ticks: one manifest a tick, written whole and put in place by a rename.

A tick is committed when its manifest is there. It names every state segment, how far time is in the streams, which batches
of the sources it covers, and the parts of answers that the sinks may not have got yet. Segments, staged parts and bundles
that no kept manifest names belong to attempts that failed: they are garbage, never a part of the truth.
"""

from __future__ import annotations

import json
import os
import uuid
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attrs import Factory, define, field

from headwater.errors import StateError
from headwater.runtime import points
from headwater.runtime.executor import Records
from headwater.runtime.owner import Owner
from headwater.sinks.base import Staged
from headwater.state.filesystem import UNFINISHED, Folder
from headwater.state.manifest import state_segments

FORMAT = 2
_DIGITS = 12
_SWEPT_EVERY = 100
"""Ticks between two searches for garbage."""


@define
class Manifest:
    """The engine after a tick."""

    tick: int = 0
    shards: int = 0
    records: Records = Factory(dict)
    clock: dict[str, Any] = Factory(dict)
    """How far time is in the streams that have rules for it (``Clock.to_manifest``)."""
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
    shown: list[list[Any]] = Factory(list)
    """What the view ``heartbeats`` shows, if a query reads it."""
    described: dict[str, Any] = Factory(dict)
    """What the keys of records stand for, and the units of time: for people, nothing runs by it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "tick": self.tick,
            "shards": self.shards,
            "records": {str(shard): its for shard, its in self.records.items()},
            "clock": self.clock,
            "frontiers": self.frontiers,
            "newest": self.newest,
            "batches": self.batches,
            "queries": self.queries,
            "outputs": {name: [_staged(p) for p in parts] for name, parts in self.outputs.items()},
            "diverted": {name: [_staged(p) for p in parts] for name, parts in self.diverted.items()},
            "counts": self.counts,
            "origin": self.origin,
            "shown": self.shown,
            "described": self.described,
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Manifest:
        plain = ("tick", "shards", "clock", "frontiers", "newest", "batches", "queries", "counts", "origin", "shown")
        return cls(
            **{name: kept[name] for name in plain},
            records={int(shard): its for shard, its in kept["records"].items()},
            outputs={name: [_unstaged(p) for p in parts] for name, parts in kept["outputs"].items()},
            diverted={name: [_unstaged(p) for p in parts] for name, parts in kept["diverted"].items()},
            described=kept.get("described", {}),
        )

    def segments(self) -> set[str]:
        """The names of all segments that it needs."""
        return {
            name for its in self.records.values() for r in its.values() for name in state_segments(r["state"] or {})
        }


def _staged(part: Staged) -> list[Any]:
    return [part.rows, part.data.hex() if part.data is not None else None, part.path]


def _unstaged(kept: list[Any]) -> Staged:
    rows, data, path = kept
    return Staged(rows, bytes.fromhex(data) if data is not None else None, path)


@define
class Checkpoint:
    """A folder with the manifests of the last ticks and everything that they name: a path, or a URI that pyarrow knows."""

    folder: Folder = field(converter=lambda place: place if isinstance(place, Folder) else Folder(place))
    keep: int = 3
    """So many manifests stay, for readers that are pinned to one."""
    sync: bool = False
    """Wait until the disk has it: survives a loss of power, not only of the process."""
    _owner: Owner | None = field(default=None, init=False)
    _needed: dict[int, set[str]] = field(factory=dict, init=False)
    """By kept manifest: the segments that it names."""

    def open(self) -> Manifest | None:
        """Take the folder for this process alone; the last manifest, if there is one."""
        for name in ("manifests", "segments", "staged", "exchange"):
            (self.folder / name).make()
        self._owner = Owner(self.folder)
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

    def source(self, stream: str) -> str:
        """Where Spark keeps how far it has read a stream, as it names places."""
        place = self._sources / _source_name(stream)
        return Path(place.place).as_uri() if place.is_local else place.place

    def forget_source(self, stream: str) -> None:
        """A stream of that name begins anew. Only when no manifest speaks of it any more."""
        (self._sources / _source_name(stream)).delete_all()

    @property
    def _sources(self) -> Folder:
        return self.folder / "sources"

    def _forget_dropped_sources(self, manifest: Manifest | None) -> None:
        """A crash may come between a DROP and what it deletes. Spark has committed there what no manifest knows."""
        known = {_source_name(stream) for stream in (manifest.batches if manifest else ())}
        for name in self._sources.names():
            commits = (self._sources / name / "commits").names()
            if name not in known and any(commit.isdigit() for commit in commits):
                (self._sources / name).delete_all()

    @property
    def exchange(self) -> str | None:
        """Where tasks of one machine leave bundles for each other; None: the folder is on no machine."""
        return str(self.folder / "exchange") if self.folder.is_local else None

    @property
    def _manifests(self) -> Folder:
        return self.folder / "manifests"

    def ticks(self) -> list[int]:
        """The ticks whose manifests are there."""
        stems = (name.removesuffix(".json") for name in self._manifests.names() if name.endswith(".json"))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def read(self, tick: int) -> Manifest:
        path = f"{self._manifests}/{_name(tick)}"
        try:
            kept = json.loads(self._manifests.read(_name(tick)).to_pybytes())
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
        if self._owner is not None:
            self._owner.check()
        if self.sync and self.folder.is_local:
            os.sync()  # everything that it names, whoever wrote it: segments, staged parts, delivered answers
        data = json.dumps(manifest.to_json(), separators=(",", ":")).encode()
        ready = partial(points.passed, points.IN_THE_MANIFEST)
        self._manifests.replace(_name(manifest.tick), data, sync=self.sync, ready=ready)
        self._needed[manifest.tick] = manifest.segments()

    def tidy(self, tick: int, *, sweep: bool = False) -> None:
        """After a tick is committed and delivered: forget manifests beyond those kept, and what only they needed.

        Now and then, or if told so, also what attempts left behind that failed and were repeated.
        """
        Folder(self.staging(tick - 1), self.folder.files).delete_all()
        dropped = sorted(self._needed)[: -self.keep]
        needed = set().union(*(names for t, names in self._needed.items() if t not in dropped))
        for old in dropped:
            self._manifests.delete(_name(old))
            points.passed(points.IN_THE_TIDYING)
            for name in self._needed.pop(old) - needed:
                (self.folder / "segments").delete(f"{name}.arrow")
        if sweep or tick % _SWEPT_EVERY == 0:
            self.collect_orphans()

    def collect_orphans(self) -> int:
        """Delete what no kept manifest names: segments and parts of attempts that failed. How many segments there were."""
        needed = set().union(*self._needed.values())
        segments = self.folder / "segments"
        orphans = [n for n in segments.names() if n.endswith(".arrow") and n.removesuffix(".arrow") not in needed]
        for name in orphans:
            segments.delete(name)
        for name in self._manifests.names():
            if name.endswith(UNFINISHED):
                self._manifests.delete(name)
        for tick in self.ticks():
            if tick not in self._needed:  # a crash came before it was forgotten, or fewer are kept now
                self._manifests.delete(_name(tick))
        (self.folder / "exchange").delete_all()
        last = f"{max(self._needed, default=0):0{_DIGITS}d}"
        for name in (self.folder / "staged").names():
            if name != last:
                (self.folder / "staged" / name).delete_all()
        return len(orphans)

    def close(self) -> None:
        if self._owner is not None:
            self._owner.release()
            self._owner = None


def _name(tick: int) -> str:
    return f"{tick:0{_DIGITS}d}.json"


def _source_name(stream: str) -> str:
    return quote(stream, safe="").replace(".", "%2E")
