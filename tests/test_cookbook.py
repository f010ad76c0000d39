"""The jobs of the cookbook answer what they say, as a script and as a program. Those about Spark: ``tests/spark``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import cookbook
from typer.testing import CliRunner

from headwater.cli.main import app


def run(arguments: list[str]) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("job", [job for job in cookbook.JOBS if job != "cluster"])
def test_the_script_prints_its_answer(job: str, tmp_path: Path):
    with cookbook.copied(job, tmp_path):
        assert cookbook.printed(job, run) == cookbook.expected(job)


@pytest.mark.parametrize("job", [job for job in cookbook.JOBS if job not in cookbook.ON_SPARK])
def test_the_program_has_the_same_answer(job: str, tmp_path: Path):
    with cookbook.copied(job, tmp_path) as place:
        found = cookbook.computed(place)
    assert found is None or cookbook.same(found, cookbook.by_query(cookbook.expected(job)))


def test_every_job_is_there_and_told():
    told = (cookbook.FOLDER.parents[1] / "docs" / "cookbook.md").read_text(encoding="utf-8")
    assert len(cookbook.JOBS) >= 20
    assert [job for job in cookbook.JOBS if f"examples/cookbook/{job}/query.sql" not in told] == []


def test_another_answer_is_noticed():
    row = {"n": 1, "_start": "2026-03-02T09:00:00", "_end": "2026-03-02T09:01:00"}
    later = {"n": 1, "_start": "2026-03-02T09:01:00", "_end": None}
    both = {"n": 1, "_start": "2026-03-02T09:00:00", "_end": None}
    assert cookbook.same({"query": [row, later]}, {"query": [both], "empty": []})
    assert not cookbook.same({"query": [row]}, {"query": [both]})
    assert not cookbook.same({"query": [row]}, {"query": [row, row]})
    assert not cookbook.same({"query": [row]}, {"other": [row]})
