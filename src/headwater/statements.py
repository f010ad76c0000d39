"""What SQL statements do to an engine: they change its catalog and settings, and with these what runs; a mistake nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from headwater.errors import InputError
from headwater.language.binder import bind_script
from headwater.language.catalog import Catalog, Kind
from headwater.language.consistency import Consistency
from headwater.language.introspection import Answer
from headwater.language.script import Script
from headwater.language.system_views import Known, comes_with
from headwater.query import Run
from headwater.runs import Runs
from headwater.runtime.core import Core
from headwater.runtime.inputs import Inputs
from headwater.runtime.system_views import with_view_rows
from headwater.runtime.views.shown import with_counts, with_states
from headwater.settings import Settings


class Statements:
    """What has been declared and set."""

    def __init__(self, core: Core, inputs: Inputs, runs: Runs, *, python_functions: bool) -> None:
        self._core, self._inputs, self._runs = core, inputs, runs
        self.catalog, self.settings = Catalog(python_functions=python_functions), Settings()

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
        for name in ended:
            drop(name)
        self._inputs.open(catalog, folder)
        for run, level in levels:
            run.set_consistency(level)
        self.catalog, self.settings = catalog, script.settings
        self._core.ticks.step_bytes = int(script.settings.step_bytes)
        return script

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

    def shown(self, answer: Answer) -> str:
        """What SHOW and DESCRIBE say, with what only an engine knows."""
        views = {e.name.casefold() for e in self.catalog if e.kind is Kind.VIEW}
        picture, failed = self._core.picture(), self._inputs.loop.error is not None
        counted = with_counts(with_view_rows(answer, Known(picture.clock, picture.counts)), picture)
        return str(with_states(counted, picture, views=views, failed=failed))


def _is_undefined(run: Run, catalog: Catalog) -> bool:
    """Has the stream that it was started from been dropped?"""
    defined = run.query.defined_by
    return defined is not None and catalog.get(defined) is None
