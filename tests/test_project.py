"""The project as a whole: sizes, versions, what the README promises."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import headwater

ROOT = Path(__file__).resolve().parents[1]
MAX_LINES = 500
MACHINE_PATH = re.compile(rb"(?<![\w.~-])/(?:work|root|home|Users)/")


def readme_commands() -> list[list[str]]:
    """The lines of the README's bash blocks, split into words."""
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    return [shlex.split(line, comments=True) for block in blocks for line in block.splitlines() if line.strip()]


def test_no_source_file_is_too_long():
    lengths = {
        path: len(path.read_bytes().splitlines())
        for folder in ("src", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MAX_LINES} == {}


def test_versions_agree():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert headwater.__version__ == declared
    assert metadata.version("headwater") == declared


def test_readme_shows_commands():
    assert {"bin/headwater", "bin/test"} <= {words[0] for words in readme_commands()}


@pytest.mark.parametrize("words", readme_commands(), ids=" ".join)
def test_readme_command_exists(words: list[str]):
    program, *arguments = words
    assert os.access(ROOT / program, os.X_OK)
    assert [path for path in arguments if "/" in path and not (ROOT / path).exists()] == []
    if program == "bin/headwater":
        options = {argument.partition("=")[0] for argument in arguments if argument.startswith("--")}
        call = [sys.executable, "-c", "from headwater.cli.main import main; main()", arguments[0], "--help"]
        # Wide, plain help: options are neither cut off nor wrapped in colours.
        environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
        done = subprocess.run(call, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        assert options - set(re.findall(r"--[\w-]+", done.stdout)) == set()


def test_no_file_names_a_path_of_one_machine():
    listing = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(listing, capture_output=True, check=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in names if (ROOT / name).is_file()]
    assert [str(path.relative_to(ROOT)) for path in files if MACHINE_PATH.search(path.read_bytes())] == []


def test_rates_are_told_with_per():
    """Rows per second, one tick per row: "a" reads as something else where a rate is meant."""
    rate = re.compile(r"\b(?:rows|events|elements|bytes|files) an? (?:second|minute|hour|tick|key|group|seller)\b")
    places = ("src", "benchmarks", "docs", "examples", "*.md")
    files = [p for place in places for p in (ROOT.glob(place) if "*" in place else (ROOT / place).rglob("*.*"))]
    told = [p for p in files if p.suffix in (".py", ".md", ".sql") and rate.search(p.read_text(encoding="utf-8"))]
    assert [str(path.relative_to(ROOT)) for path in told] == []
