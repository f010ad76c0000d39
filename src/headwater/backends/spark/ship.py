"""Send the package, and modules of users, to machines that do not have them."""

from __future__ import annotations

import io
import os
import re
import socket
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import headwater
from headwater.backends.spark import survey
from headwater.errors import HeadwaterError, InputError
from headwater.model.given_functions import all_given

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

REQUIRED = ("attrs", "duckdb", "numba", "numpy", "pandas", "pyarrow")
"""The packages that tasks import; these are compiled, so they cannot be sent along."""

_MOST_BYTES = 64 << 20
_LIKE_BEFORE = (1980, 1, 1, 0, 0, 0)  # equal files make equal archives, whenever they were written

_outbox: list[tempfile.TemporaryDirectory[str]] = []
"""Where archives lie while executors may fetch them; removed when the process ends."""


def provide_package(spark: SparkSession) -> None:
    """See that every worker has what tasks import; raises ``WORKER_PACKAGES`` or ``WORKER_PYTHON``.

    This package is sent unless all of them have the very same one. The packages it needs are compiled: they must be there.
    """
    context = spark.sparkContext
    tasks = max(context.defaultParallelism, 2)
    try:
        answers = context.parallelize(range(tasks), tasks).mapPartitions(_question()).collect()
    except Exception as problem:  # whatever keeps a worker from starting; Spark wraps it into a Java error
        raise _worker_problem(context, problem) from problem
    lacking = {host: missing for host, missing, _ in answers if missing}
    if lacking:
        raise _missing(context, lacking)
    if any(digest != survey.digest(_folder()) for _, _, digest in answers):
        package(spark)


def package(spark: SparkSession) -> None:
    """Send this package; tasks use it instead of any that is installed, so that it is the driver's."""
    files = _read(_folder(), "package/headwater/")
    digest = survey.digest(_folder())
    stub = Path(__file__).with_name("unpack.py").read_text().replace("DIGEST_OF_THE_PACKAGE", digest)
    _send(spark.sparkContext, f"headwater_{digest}.zip", files | {"headwater/__init__.py": stub.encode()})


def modules(spark: SparkSession, paths: Iterable[str | os.PathLike[str]]) -> None:
    """Make modules importable in tasks: folders with modules and packages, single ``.py`` files, or zip and wheel archives.

    On one machine the tasks look into the folders themselves; on a cluster they get a copy as it is now.
    """
    context = spark.sparkContext
    for path in map(Path, paths):
        if not path.exists():
            raise InputError("NO_MODULES", f'there is no folder or file "{path}" to find modules in')
        if is_local(context):
            add_python_path(context, path.parent if path.suffix == ".py" or _is_package(path) else path)
            continue
        if path.suffix in {".zip", ".whl", ".egg"}:
            _add(context, path.resolve())
            continue
        files = _modules_in(path)
        if sum(map(len, files.values())) > _MOST_BYTES:
            raise InputError(
                "TOO_MANY_MODULES",
                f'cannot send folder "{path}" to the tasks: its modules have more than {_MOST_BYTES >> 20} MB',
                hint="Put the modules that functions need into a folder of their own.",
            )
        if files:
            _send(context, f"modules_{survey.digest_of(files)}.zip", files)


def add_python_path(context: SparkContext, path: Path) -> None:
    """Let the Python workers that start from now on look there for modules."""
    folders = [folder for folder in context.environment.get("PYTHONPATH", "").split(os.pathsep) if folder]
    if str(path.resolve()) not in folders:
        context.environment["PYTHONPATH"] = os.pathsep.join([*folders, str(path.resolve())])


def pickled(value: Any, what: str) -> bytes:
    """For tasks of this driver. Functions that were given as objects go by value, and so do modules of the program's own.

    Raises ``CANNOT_SHIP``: tasks are other processes, on other machines perhaps.
    """
    from pyspark import cloudpickle

    names = {getattr(code, "__module__", None) for code in all_given()}
    modules = [m for m in map(sys.modules.get, sorted(filter(None, names))) if m is not None and _is_own(m)]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        return cloudpickle.dumps(value)
    except Exception as problem:  # whatever an object does when it is pickled
        raise InputError(
            "CANNOT_SHIP",
            f"{what} cannot be sent to the tasks of Spark",
            detail=f"{type(problem).__name__}: {problem}",
            hint="Functions must not hold on to connections, locks, open files or Spark: make them inside, when called.",
        ) from problem
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _is_own(module: ModuleType) -> bool:
    """A module of the program's, which tasks need not find: neither installed nor of Python's own, nor this package."""
    file = getattr(module, "__file__", None)
    if module.__name__ == "__main__" or file is None:
        return False
    installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders = [*filter(None, installed), str(_folder())]
    return not any(Path(file).resolve().is_relative_to(Path(folder).resolve()) for folder in folders)


def _question() -> Any:
    """A function that is sent by value, with the text of the module it runs: a worker may not have any of this."""
    text, required = Path(survey.__file__).read_text(), REQUIRED

    def ask(_: Iterator[int]) -> Iterator[tuple[str, list[str], str]]:
        names: dict[str, Any] = {}
        exec(text, names)
        yield names["survey"](required)

    return ask


def _missing(context: SparkContext, lacking: dict[str, list[str]]) -> HeadwaterError:
    names = sorted({name for missing in lacking.values() for name in missing})
    where = "of this machine" if is_local(context) else f"on {', '.join(sorted(lacking))}"
    return HeadwaterError(
        "WORKER_PACKAGES",
        f"the Python of Spark's workers lacks {', '.join(names)}",
        detail=f'It is "{context.pythonExec}" {where}.',
        hint=f"Wherever tasks run: {context.pythonExec} -m pip install {' '.join(names)}",
    )


def _worker_problem(context: SparkContext, problem: Exception) -> HeadwaterError:
    said = str(problem)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    versions = re.search(r"PYTHON_VERSION_MISMATCH\][^\n]*?(\d+\.\d+)", said)
    if versions:
        return HeadwaterError(
            "WORKER_PYTHON",
            f"Spark's workers run Python {versions[1]}, the driver on {socket.gethostname()} runs {here}",
            detail=f'The workers run "{context.pythonExec}".',
            hint=f"Install Python {here} on the cluster and name it in PYSPARK_PYTHON before Spark starts.",
        )
    if "Cannot run program" in said:
        return HeadwaterError(
            "WORKER_PYTHON",
            f'there is no "{context.pythonExec}" on a machine of the cluster',
            hint=f"Name its Python {here} in PYSPARK_PYTHON before Spark starts.",
        )
    return HeadwaterError(
        "WORKER_PYTHON", "the Python workers of Spark could not start", detail=said.strip().splitlines()[-1]
    )


def is_local(context: SparkContext) -> bool:
    """Are the driver and all tasks on one machine?"""
    return str(context.master).startswith("local")


def _is_package(path: Path) -> bool:
    return (path / "__init__.py").is_file()


def _folder() -> Path:
    return Path(headwater.__file__).resolve().parent


def _read(folder: Path, prefix: str) -> dict[str, bytes]:
    return {prefix + name: (folder / name).read_bytes() for name in survey.package_files(folder)}


def _modules_in(path: Path) -> dict[str, bytes]:
    """A module; a package; or the modules of a folder and the packages in it, but not whatever else lies there."""
    path = path.resolve()
    if path.is_file():
        return {path.name: path.read_bytes()}
    if _is_package(path):
        return _read(path, f"{path.name}/")
    files = {inner.name: inner.read_bytes() for inner in path.glob("*.py")}
    for inner in filter(_is_package, path.iterdir()):
        files |= _read(inner, f"{inner.name}/")
    return files


def _send(context: SparkContext, name: str, files: dict[str, bytes]) -> None:
    """Send an archive, unless one of the same content was sent before: its name tells."""
    if not _outbox:
        _outbox.append(tempfile.TemporaryDirectory(prefix="headwater-"))
    archive = Path(_outbox[0].name) / name
    if not archive.exists():
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as writer:
            for member, data in files.items():
                writer.writestr(zipfile.ZipInfo(member, _LIKE_BEFORE), data, zipfile.ZIP_DEFLATED)
        archive.write_bytes(packed.getvalue())
    _add(context, archive)


def _add(context: SparkContext, archive: Path) -> None:
    if any(url.rsplit("/", 1)[-1] == archive.name for url in context.listFiles):
        return
    path = list(sys.path)
    context.addPyFile(str(archive))
    sys.path[:] = path  # addPyFile puts it on the driver's path as well, which has the real thing
