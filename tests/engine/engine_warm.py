"""Imported once by the server from which the tests' processes are forked: kernels are loaded, everything has run before."""

from __future__ import annotations

import tempfile
from pathlib import Path

from engine_market import run_market

with tempfile.TemporaryDirectory() as folder:
    run_market(Path(folder), steps=2)
