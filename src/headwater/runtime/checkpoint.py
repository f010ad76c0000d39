"""What is kept between ticks: one manifest per tick, written whole and put in place by a rename.

    checkpoint/
      manifests/000000000012.json   the engine after tick 12, with a checksum
      newest.json                   the number of the last manifest, written after it: so one that is lost is missed
      segments/, staged/            what manifests name
      waiting/                      answers that are to be delivered together (``waiting.py``)

A tick is committed when its manifest is there. It names every state segment, how far time is in the streams, which batches
of the sources it covers, and the parts of answers that the sinks may not have got yet. Segments, staged parts and bundles
that no kept manifest names belong to attempts that failed: they are garbage, never a part of the truth.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from attrs import Factory, define, field

from headwater.errors import StateError
from headwater.runtime import points
from headwater.runtime.kept_names import check_segments, check_staged
from headwater.runtime.owner import Owner
from headwater.runtime.stage import Records
from headwater.runtime.staged_json import staged_from_json, staged_to_json
from headwater.runtime.system_views import Shown, kept_rows
from headwater.runtime.waiting import Waiting, waiting_ticks
from headwater.sinks.base import Sink, Staged
from headwater.state.filesystem import UNFINISHED, Folder
from headwater.state.folder_names import folder_name, name_of_folder
from headwater.state.manifest import state_segments
from headwater.state.sealed import seal, unseal, version_of

log = logging.getLogger("headwater")

FORMAT = 4
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""By format of a manifest: what makes one of the next format of it. A format that is not here is refused: until 3, states
were called by how plans were printed, and would not be found. ``tests/engine/test_kept_checkpoint.py`` keeps one of each."""
NEWEST = "newest.json"
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
    shown: Shown = Factory(dict)
    """What the system views show that queries read."""
    relations: dict[str, str] = Factory(dict)
    """By stream: relations whose standing rows are kept, as ``plan_data`` writes them."""
    described: dict[str, Any] = Factory(dict)
    """What the keys of records stand for, and the units of time: for people, nothing runs by it."""
    measured: dict[str, dict[str, Any]] = Factory(dict)
    """By stream: what its rows were like (``measured.py``), for the plans of queries to come."""

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
            "outputs": {name: [staged_to_json(p) for p in parts] for name, parts in self.outputs.items()},
            "diverted": {name: [staged_to_json(p) for p in parts] for name, parts in self.diverted.items()},
            "counts": self.counts,
            "origin": self.origin,
            "shown": self.shown,
            "relations": self.relations,
            "described": self.described,
            "measured": self.measured,
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Manifest:
        plain = ("tick", "shards", "clock", "frontiers", "newest", "batches", "queries", "counts", "origin")
        return cls(
            **{name: kept[name] for name in plain},
            records={int(shard): its for shard, its in kept["records"].items()},
            outputs={name: [staged_from_json(p) for p in parts] for name, parts in kept["outputs"].items()},
            diverted={name: [staged_from_json(p) for p in parts] for name, parts in kept["diverted"].items()},
            shown=kept_rows(kept["shown"]),
            relations=kept.get("relations", {}),
            described=kept.get("described", {}),
            measured=kept.get("measured", {}),
        )

    def segments(self) -> set[str]:
        """The names of all segments that it needs."""
        states = [r["state"] or {} for its in self.records.values() for r in its.values()]
        return {*state_segments(states), *state_segments(self.batches)}


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
    is_sure: bool = field(default=True, init=False)
    """Is the last manifest known to be the last? Otherwise nothing is deleted before the next tick is delivered."""
    _held: set[int] = field(factory=set, init=False)
    """Ticks whose staged parts wait to be delivered."""

    def open(self) -> Manifest | None:
        """Take the folder for this process alone; the last manifest, if there is one."""
        for name in ("manifests", "segments", "staged", "exchange"):
            (self.folder / name).make()
        self._owner = Owner(self.folder)
        self._held = waiting_ticks(self.folder)
        try:
            newest = self.newest()
            manifest = None if newest is None else self.read(newest)
            self.is_sure = newest is None or self.folder.exists(NEWEST)
            if manifest is not None:
                self._needed[manifest.tick] = manifest.segments()
                self._find_older(manifest.tick)
                self._check_sources(manifest)
            if self.is_sure:
                self.collect_orphans()
                self._forget_dropped_sources(manifest)
        except BaseException:
            self.close()
            raise
        return manifest

    def newest(self) -> int | None:
        """The last tick that was committed, if there is any. Raises ``StateError`` if its manifest has been lost."""
        noted, ticks = self._noted(), self.ticks()  # in this order: an engine may be at work here
        found = ticks[-1] if ticks else None
        if noted is None or (found is not None and found >= noted):
            return found
        back = "" if found is None else f" To go back to tick {found} instead, delete {NEWEST} in the same place:"
        raise StateError(
            "STATE_MISSING",
            f'the manifest "{self._manifests}/{_name(noted)}" does not exist',
            detail=f"Tick {noted} was committed: to go on from an earlier one could give wrong answers.",
            hint="Put the file back from a copy of the checkpoint."
            + (back and f"{back} sinks and Spark are then asked whether they have gone further."),
        )

    def _noted(self) -> int | None:
        """The number of the last manifest, as it was noted after it had been written."""
        try:
            noted = unseal(self.folder.read(NEWEST).to_pybytes())["tick"]
            return int(noted)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as problem:
            raise StateError(
                "STATE_DAMAGED",
                f'"{self.folder}/{NEWEST}" cannot be read',
                detail=str(problem),
                hint="Put it back from a copy of the checkpoint; or delete it, if you know that no manifest is missing.",
            ) from problem

    def _find_older(self, newest: int) -> None:
        """Manifests before the last one are there for readers only; one that is damaged is given up."""
        older = [tick for tick in self.ticks() if tick < newest]
        for tick in older[max(len(older) - self.keep + 1, 0) :]:
            try:
                self._needed[tick] = self.read(tick).segments()
            except StateError as problem:
                log.warning("an earlier manifest is given up, nothing needs it any more: %s", problem)

    def _check_sources(self, manifest: Manifest) -> None:
        """Spark must not have gone beyond the manifest: what it has committed it does not bring again."""
        known = {folder_name(stream): its["batch"] for stream, its in manifest.batches.items()}
        for name in self._sources.names() if not self.is_sure else known:
            last, batch = self._last_commit(name), known.get(name, -1)
            if last > batch:
                raise _behind(
                    f'the checkpoint "{self.folder}" is behind what Spark has read of stream "{name_of_folder(name)}"',
                    f"Spark has committed batch {last}, and {_name(manifest.tick)} knows of "
                    + (f"batch {batch}" if batch >= 0 else "none"),
                )

    def _last_commit(self, source: str) -> int:
        """The last batch that Spark has done with; -1: none."""
        commits = (self._sources / source / "commits").names()
        return max((int(name) for name in commits if name.isdigit()), default=-1)

    def check_sink(self, tick: int, sink: Sink, waiting: Waiting) -> None:
        """A sink must not have gone beyond the last manifest: it would take ticks that come for those that it has."""
        last = max(sink.last_tick, waiting.delivered)
        if last > tick:
            raise _behind(
                f'the checkpoint "{self.folder}" is behind the answers in "{sink.describe().get("path")}"',
                f"They go up to tick {last}, and {_name(tick)} is the last manifest",
            )

    def hold(self, ticks: set[int], last: int) -> None:
        """The staged parts of these ticks must stay, and those of the last; what was held and is not any more is deleted."""
        for tick in self._held - ticks - {last}:
            Folder(self.staging(tick), self.folder.files).delete_all()
        self._held = ticks

    @property
    def segments(self) -> str:
        return str(self.folder / "segments")

    def staging(self, tick: int) -> str:
        return str(self.folder / "staged" / f"{tick:0{_DIGITS}d}")

    def source(self, stream: str) -> str:
        """Where Spark keeps how far it has read a stream, as it names places."""
        place = self._sources / folder_name(stream)
        return Path(place.place).as_uri() if place.is_local else place.place

    def forget_source(self, stream: str) -> None:
        """A stream of that name begins anew. Only when no manifest speaks of it any more."""
        (self._sources / folder_name(stream)).delete_all()

    @property
    def _sources(self) -> Folder:
        return self.folder / "sources"

    def _forget_dropped_sources(self, manifest: Manifest | None) -> None:
        """A crash may come between a DROP and what it deletes. Spark has committed there what no manifest knows."""
        known = {folder_name(stream) for stream in (manifest.batches if manifest else ())}
        for name in self._sources.names():
            if name not in known and self._last_commit(name) >= 0:
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
        path, data = f"{self._manifests}/{_name(tick)}", b""
        try:
            data = self._manifests.read(_name(tick)).to_pybytes()
            kept = unseal(data)
            version = kept["format"]
            while version in UPGRADES:
                kept, version = UPGRADES[version](kept), version + 1
            if version == FORMAT:
                manifest = Manifest.from_json(kept)
                self._check_names(manifest, path)
                return manifest
        except FileNotFoundError:
            raise StateError("STATE_MISSING", f'the checkpoint has no manifest "{path}"') from None
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            version = version_of(data, "format")
            if version is None or version >= FORMAT:
                raise StateError(
                    "STATE_DAMAGED",
                    f'the manifest "{path}" cannot be read',
                    detail=str(problem) if isinstance(problem, ValueError) else f"It is no manifest: {problem!r}.",
                    hint="Put the file back from a copy of the checkpoint, or start with an empty checkpoint folder.",
                ) from problem
        raise StateError(
            "STATE_VERSION",
            f'the checkpoint "{self.folder}" has format {version}, and this version reads {FORMAT}',
            hint="Go on with the version that wrote it, or begin with an empty folder.",
        )

    def _check_names(self, manifest: Manifest, path: str) -> None:
        check_segments(manifest.segments(), path)
        for parts in (*manifest.outputs.values(), *manifest.diverted.values()):
            check_staged(parts, str(self.folder / "staged"), path)

    def commit(self, manifest: Manifest) -> None:
        """From here on the tick has happened."""
        if self._owner is not None:
            self._owner.check()
        if self.sync and self.folder.is_local:
            os.sync()  # everything that it names, whoever wrote it: segments, staged parts, delivered answers
        ready = partial(points.passed, points.IN_THE_MANIFEST)
        self._manifests.replace(_name(manifest.tick), seal(manifest.to_json()), sync=self.sync, ready=ready)
        self.folder.replace(NEWEST, seal({"tick": manifest.tick}), sync=self.sync)
        self._needed[manifest.tick] = manifest.segments()

    def tidy(self, tick: int, *, sweep: bool = False) -> None:
        """After a tick is committed and delivered: forget manifests beyond those kept, and what only they needed.

        Now and then, or if told so, also what attempts left behind that failed and were repeated.
        """
        if tick - 1 not in self._held:
            Folder(self.staging(tick - 1), self.folder.files).delete_all()
        dropped = sorted(self._needed)[: -self.keep]
        needed = set().union(*(names for t, names in self._needed.items() if t not in dropped))
        for old in dropped:
            self._manifests.delete(_name(old))
            points.passed(points.IN_THE_TIDYING)
            for name in self._needed.pop(old) - needed:
                (self.folder / "segments").delete(f"{name}.arrow")
        if sweep or tick % _SWEPT_EVERY == 0 or not self.is_sure:
            self.collect_orphans()
            self.is_sure = True

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
        kept = {f"{tick:0{_DIGITS}d}" for tick in (max(self._needed, default=0), *self._held)}
        for name in (self.folder / "staged").names():
            if name not in kept:
                (self.folder / "staged" / name).delete_all()
        return len(orphans)

    def close(self) -> None:
        if self._owner is not None:
            self._owner.release()
            self._owner = None


def _behind(message: str, detail: str) -> StateError:
    return StateError(
        "STATE_BEHIND",
        message,
        detail=f"{detail}: a later one was lost.",
        hint="Put it back from a copy of the checkpoint; or begin anew, with empty folders for checkpoint and answers.",
    )


def _name(tick: int) -> str:
    return f"{tick:0{_DIGITS}d}.json"
