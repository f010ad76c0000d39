"""What CONTRIBUTING says of operators is all that it takes to add one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_an_operator_of_many_inputs_can_be_added():
    """Plan text, plans as data, optimizer, lowering, shards, restarts, retractions: in every form of the battery."""
    script = Path(__file__).with_name("added_operator.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
