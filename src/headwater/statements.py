"""What SQL statements do to an engine: they change its catalog and settings, and with these what runs; a mistake nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from headwater.errors import InputError
from headwater.language.binder import bind_script
from headwater.language.catalog import Catalog, Derived, Kind
from headwater.language.consistency import Consistency
from headwater.language.introspection import Answer
from headwater.language.notices import Notice
from headwater.language.script import Script
from headwater.language.system_views import Known, comes_with
from headwater.query import Run
from headwater.result import Listing
from headwater.runs import Runs
from headwater.runtime.core import Core
from headwater.runtime.inputs import Inputs
from headwater.runtime.system_views import with_view_rows
from headwater.runtime.views.shown import with_counts, with_states
from headwater.settings import Settings
from headwater.sinks.base import Sink
from headwater.sinks.connectors import check_targets, make_sink


class Statements:
    """What has been declared and set."""

    def __init__(self, core: Core, inputs: Inputs, runs: Runs, *, python_functions: bool) -> None:
        self._core, self._inputs, self._runs = core, inputs, runs
        self.catalog, self.settings = Catalog(python_functions=python_functions), Settings()
        self.started: set[str | None] = set()
        """The names of the streams and sinks whose queries have been started."""
        self._folders: dict[str, Path] = {}
        """By folded name of a sink: the folder of the script that declares it, where its relative paths begin."""

    def run(self, text: str, folder: Path, *, drop: Callable[[str], None]) -> Script:
        """Let statements take effect; ``drop``: how queries end."""
        catalog, runs = self.catalog.copy(), list(self._runs)
        script = bind_script(
            text, catalog, self.settings, running=[run.bound for run in runs], awaited=self._core.awaited
        )
        ended = dict.fromkeys([*script.ended, *(run.name for run in runs if _is_undefined(run, catalog))])
        kept = [run for run in runs if run.name not in ended]
        self._check_dropped(catalog, kept)
        levels = self._levels(script, kept)
        folders = {sink.name.casefold(): self._folder_of(sink, folder) for sink in _sinks(catalog)}
        check_targets((s.name, s.target, folders[s.name.casefold()]) for s in _sinks(catalog) if s.target is not None)
        for name in ended:
            drop(name)
        self._inputs.open(catalog, folder)
        for run, level in levels:
            run.set_consistency(level)
        self.catalog, self.settings, self._folders = catalog, script.settings, folders
        self._core.ticks.step_bytes = int(script.settings.step_bytes)
        return script

    def sink_maker(self, name: str) -> Callable[[], Sink] | None:
        """What makes the sink of that name; None if there is none."""
        found = self.catalog.get(name)
        if not isinstance(found, Derived) or found.target is None:
            return None
        return partial(make_sink, found.name, found.target, base_folder=self._folders[name.casefold()])

    def not_started(self) -> tuple[Notice, ...]:
        """Of sinks that are declared and were never started: nothing goes there, and nobody would notice."""
        hint = "Start its query: engine.sql(…) and engine.script(…).queries give it, query.start() lets it run."
        sinks = [sink.name for sink in _sinks(self.catalog) if sink.name not in self.started]
        return tuple(Notice("NOT_STARTED", f'sink "{name}" does not run', hint) for name in sinks)

    def _folder_of(self, sink: Derived, folder: Path) -> Path:
        """The one that it was declared in, unless it is new."""
        before = self.catalog.get(sink.name)
        same = isinstance(before, Derived) and before.target is sink.target
        return self._folders[sink.name.casefold()] if same else folder

    def _levels(self, script: Script, runs: Sequence[Run]) -> list[tuple[Run, Consistency]]:
        """Which queries go on with which level; an ``InputError`` if one cannot."""
        altered = script.altered
        levels = [(run, altered[which]) for run in runs for which in run.names & altered.keys()]
        for run, level in levels:
            self._core.deployment.check_level(run.name, level)
        return levels

    def _check_dropped(self, catalog: Catalog, runs: Sequence[Run]) -> None:
        """What runs must not lose its streams."""
        for run in runs:
            for name in [comes_with(self.catalog, name) for name in run.query.plan.streams]:
                known = self.catalog.get(name)
                if known is not None and catalog.get(name) is not known:
                    raise InputError(
                        "STREAM_IN_USE",
                        f'stream "{name}" cannot be dropped: query "{run.name}" reads it',
                        hint="Stop the query first.",
                    )

    def shown(self, answer: Answer) -> Listing:
        """What SHOW and DESCRIBE say, with what only an engine knows."""
        views = {e.name.casefold() for e in self.catalog if e.kind is Kind.VIEW}
        picture, failed = self._core.picture(), self._inputs.loop.error is not None
        counted = with_counts(with_view_rows(answer, Known(picture.clock, picture.counts)), picture)
        told = with_states(counted, picture, views=views, failed=failed)
        return Listing(str(told), told.columns, told.rows)


def _sinks(catalog: Catalog) -> list[Derived]:
    return [entry for entry in catalog if isinstance(entry, Derived) and entry.target is not None]


def _is_undefined(run: Run, catalog: Catalog) -> bool:
    """Has the stream that it was started from been dropped?"""
    defined = run.query.defined_by
    return defined is not None and catalog.get(defined) is None
