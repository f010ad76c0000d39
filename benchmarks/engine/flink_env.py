"""Flink in a Python environment of its own: its packages do not go together with ours. Installed when first needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

VERSION = "2.3"
_PYTHONS = ((3, 12), (3, 11), (3, 10), (3, 9))
"""Those that its wheels are built for."""
_INSTALL_SECONDS = 900


class NoFlinkError(Exception):
    """Why there is no Flink here."""


def flink_python(cache: Path) -> Path:
    """The Python of an environment with Flink, in the cache."""
    root = cache / f"flink-{VERSION}"
    if not root.exists():
        _install(root)
    return root / "bin" / "python"


def _install(root: Path) -> None:
    """All of it or nothing. An environment may be renamed, as long as its Python is called directly."""
    interpreter = _interpreter()
    root.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=root.parent, prefix=f".{root.name}-"))
    python = str(partial / "bin" / "python")
    try:
        _run([interpreter, "-m", "venv", str(partial)], "make an environment for Flink")
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"apache-flink=={VERSION}.*"]
        _run([python, *install], f"install Flink {VERSION}")
        _run([python, "-c", "import pyflink.table"], f"import Flink {VERSION}")
        partial.rename(root)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _interpreter() -> str:
    """A Python that Flink runs on: this one if it can."""
    if sys.version_info[:2] in _PYTHONS:
        return sys.executable
    for major, minor in _PYTHONS:
        found = shutil.which(f"python{major}.{minor}")
        if found and not subprocess.run([found, "-c", "import venv"], capture_output=True, check=False).returncode:
            return found
    known = ", ".join(f"{major}.{minor}" for major, minor in reversed(_PYTHONS))
    raise NoFlinkError(f"Flink {VERSION} runs on Python {known}, and there is none")


def _run(command: Sequence[str], purpose: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NoFlinkError(f"could not {purpose}: {problem}") from problem
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise NoFlinkError(f"could not {purpose}: {said[-1].strip() if said else 'nothing was said'}")
