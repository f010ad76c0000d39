"""The jobs of ``examples/cookbook``: each a folder with a script, a program, input and the answer of both.

The first comment lines of ``query.sql`` have the commands that run it; what they print is ``answer.jsonl``. ``program.py``
has the same answer in ``answer``: a result, rows, or one of these per query; or it has tests, which pass.

    PYTHONPATH=src python tests/cookbook.py          writes the answers of today: look at the difference before you keep it
    PYTHONPATH=src python tests/cookbook.py a_job    runs its program here, and prints its answer as JSON
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import date, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "cookbook"
JOBS = sorted(path.parent.name for path in FOLDER.glob("*/query.sql"))
ON_SPARK = sorted(
    job for job in JOBS if re.search(r"pyspark|MASTER|to_spark", (FOLDER / job / "program.py").read_text())
)
"""Those whose programs are about Spark."""

Row = dict[str, Any]
Run = Callable[[list[str]], str]


@contextmanager
def copied(job: str, folder: Path) -> Iterator[Path]:
    """A copy of the job as the current folder, since some leave something behind. Files are as old as their names say."""
    place, before, path = folder / job, Path.cwd(), list(sys.path)
    shutil.copytree(FOLDER / job, place)
    for number, file in enumerate(sorted(place.rglob("*.*"))):
        os.utime(file, (1_772_000_000 + number, 1_772_000_000 + number))
    os.chdir(place)
    try:
        yield place
    finally:
        os.chdir(before)
        sys.path[:] = path
        sys.modules.pop("functions", None)


def commands(job: str) -> list[list[str]]:
    """Those in the comments of its script."""
    lines = (FOLDER / job / "query.sql").read_text(encoding="utf-8").splitlines()
    return [shlex.split(os.path.expandvars(line[5:])) for line in lines if line.startswith("--   ")]


def printed(job: str, run: Run) -> list[str]:
    """What the commands print, in order; ``headwater`` itself is run by ``run``."""
    lines: list[str] = []
    for program, *arguments in commands(job):
        if program == "cp":
            shutil.copy(*arguments)
        else:
            assert program == "headwater", program
            lines += run(arguments).splitlines()
    return sorted(lines, key=_order)


def expected(job: str) -> list[str]:
    return (FOLDER / job / "answer.jsonl").read_text(encoding="utf-8").splitlines()


def computed(place: Path) -> dict[str, list[Row]] | None:
    """What the program of the folder has in ``answer``, by query; None: it has tests instead, which have passed."""
    with redirect_stdout(sys.stderr):
        found = runpy.run_path(str(place / "program.py"))
    if "answer" not in found:
        tests = [value for name, value in found.items() if name.startswith("test_")]
        assert tests, "there is neither an answer nor a test"
        for test in tests:
            test()
        return None
    answer = found["answer"]
    by_query = answer if isinstance(answer, dict) else {"query": answer}
    return {name: _rows(rows) for name, rows in by_query.items()}


def computed_apart(place: Path, environment: dict[str, str]) -> dict[str, list[Row]]:
    """The same in a process of its own, which may start and end a Spark."""
    ran = subprocess.run(
        [sys.executable, __file__, str(place)],
        capture_output=True, text=True, timeout=400, check=False, env=os.environ | environment,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    return json.loads(ran.stdout.splitlines()[-1])


def by_query(lines: Iterable[str]) -> dict[str, list[Row]]:
    """The rows of an answer; ``headwater replay`` says the same in other words."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in map(json.loads, lines):
        found[row.pop("_query")].append(row)
    return dict(found)


def same(some: dict[str, list[Row]], others: dict[str, list[Row]]) -> bool:
    """Do they say that the same rows hold at the same times? Changes must be the same one by one."""
    return {name: joined(rows) for name, rows in some.items() if rows} == {
        name: joined(rows) for name, rows in others.items() if rows
    }


def joined(rows: Iterable[Row]) -> list[str]:
    """Rows in order; those that follow each other without a gap and are equal otherwise are one."""
    spans: defaultdict[str, list[list[Any]]] = defaultdict(list)
    for row in rows:
        rest = {name: value for name, value in row.items() if name not in ("_start", "_end")}
        key = row if "_op" in row else rest
        spans[json.dumps(key, sort_keys=True)].append([row["_start"], row["_end"] or "~"])
    found = []
    for key, times in spans.items():
        kept: list[list[Any]] = []
        for start, end in sorted(times):
            if kept and kept[-1][1] == start and '"_op"' not in key:
                kept[-1][1] = end
            else:
                kept.append([start, end])
        found += [f"{key} {start} {end}" for start, end in kept]
    return sorted(found)


def _rows(answer: Any) -> list[Row]:
    rows = answer if isinstance(answer, list) else answer.rows()
    return json.loads(json.dumps(rows, default=_plain))


def _plain(value: Any) -> str:
    """As JSON lines have it: times without zeros at their end."""
    text = value.isoformat() if isinstance(value, (datetime, date)) else str(value)
    return text.rstrip("0") if isinstance(value, datetime) and value.microsecond else text


def _order(line: str) -> tuple[Any, ...]:
    """By query, tick and time."""
    row = json.loads(line)
    return row.get("_query", ""), row.get("_tick", 0), str(row.get("_start", row.get("start"))), line


def _update() -> None:
    import tempfile

    from typer.testing import CliRunner

    from headwater.cli.main import app

    for job in JOBS:
        if job != "cluster":
            with tempfile.TemporaryDirectory() as made, copied(job, Path(made)):
                lines = printed(job, lambda arguments: CliRunner().invoke(app, arguments).stdout)
            (FOLDER / job / "answer.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        os.chdir(sys.argv[1])
        print(json.dumps(computed(Path(sys.argv[1]))))
    else:
        _update()
