"""Large campaigns try other cases with every commit, and what failed can be tried again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import seed_of_the_commit

from headwater.testing.cases import fresh

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TESTS = """
import pytest

@pytest.mark.slow
@pytest.mark.parametrize("piece", range(2))
def test_campaign(piece):
    assert piece == 0
"""


def run(folder: Path, **environment: str) -> str:
    """What pytest says of a failing campaign in a project of its own."""
    (folder / "conftest.py").write_text(CONFTEST.read_text("utf-8"), "utf-8")
    (folder / "test_some.py").write_text(TESTS, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q\nmarkers = slow: as ours\n", "utf-8")
    inherited = {k: v for k, v in os.environ.items() if k not in {"HEADWATER_SEED", "HEADWATER_CASES"}}
    inherited["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(command, env=inherited | environment, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout


def test_a_seed_is_moved(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HEADWATER_SEED", raising=False)
    assert fresh(7) == 7
    monkeypatch.setenv("HEADWATER_SEED", "100")
    assert fresh(7) == 107


def test_a_failing_campaign_says_how_to_try_its_cases_again(tmp_path: Path):
    said = run(tmp_path, HEADWATER_SEED="500", HEADWATER_CASES="0.15")
    assert "HEADWATER_SEED=500\n" in said
    assert "HEADWATER_SEED=500 HEADWATER_CASES=0.15 bin/test --slow 'test_some.py::test_campaign[1]'" in said


def test_every_commit_has_a_seed_of_its_own_and_none_is_needed(tmp_path: Path):
    assert seed_of_the_commit(tmp_path) == 20
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    asked = subprocess.run(
        ["git", "-C", str(tmp_path), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    assert seed_of_the_commit(tmp_path) == int(asked.stdout[:7], 16)
