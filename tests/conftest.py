"""How tests are dealt out to processes, and which random cases the large campaigns try."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SEED = "HEADWATER_SEED"
_WITHOUT_GIT = 20


def seed_of_the_commit(folder: Path) -> int:
    """Another one with every commit, so that what the slow step has tried grows with time."""
    try:
        asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False, cwd=folder)
    except OSError:
        return _WITHOUT_GIT
    return int(asked.stdout[:7], 16) if asked.returncode == 0 else _WITHOUT_GIT


def pytest_configure(config: pytest.Config) -> None:
    """Told to the processes that run the tests, and to their children, by the environment."""
    told = os.environ.get(SEED) or str(seed_of_the_commit(config.rootpath))
    if not told.isdecimal():
        raise pytest.UsageError(f"{SEED} is a whole number, not {told!r}")
    os.environ[SEED] = told


def pytest_sessionstart(session: pytest.Session) -> None:
    """Not by a header, which a quiet run does not show."""
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"random cases of slow tests: {SEED}={os.environ[SEED]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failure of a large campaign tells how to try the same cases again."""
    report: Any = yield
    if report.failed and item.get_closest_marker("slow") is not None:
        told = f"{SEED}={os.environ[SEED]} HEADWATER_CASES={os.environ.get('HEADWATER_CASES', '1')}"
        report.sections.append(("the same cases again", f"{told} bin/test --slow '{item.nodeid}'"))
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests on Spark go to one process, since each process would start a Spark of its own; the others wherever."""
    from xdist.scheduler import LoadScopeScheduling

    class OneSpark(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith("tests/spark/") else nodeid

    return OneSpark(config, log)
