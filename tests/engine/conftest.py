"""The helpers of this folder can be imported by its tests, and by the processes that they start."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from engine_market import outcome, run_market
from tests.crash import preload

preload("engine_warm")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the market comes to when nothing happens."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run_market(folder)
    return outcome(folder)
