"""Names of streams and queries as names of folders."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import headwater as hw
from headwater.sinks.diverted import diverted_streams, read_diverted
from headwater.state.folder_names import folder_name, name_of_folder

NAMES = [
    "../outside",
    "/abs",
    "..",
    ".",
    "",
    "a/b",
    "a\\b",
    "a%2Fb",
    "~",
    "a~b",
    "é",
    "x" * 300,
    "x" * 301,
    "\0",
    "C:",
    "%",
    "q",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_is_inside_of_where_it_is_put(name: str, tmp_path: Path):
    made = tmp_path / "inside" / folder_name(name)
    assert made.resolve().parent == (tmp_path / "inside").resolve()
    made.mkdir(parents=True)
    assert len(name) > 100 or name_of_folder(made.name) == name


def test_different_names_have_different_folders():
    folders = [folder_name(name) for name in NAMES]
    assert all(a.casefold() != b.casefold() for a, b in combinations(folders, 2))


def test_a_stream_of_any_name_keeps_its_rows_inside_of_the_checkpoint(tmp_path: Path):
    with hw.connect(runner="inprocess", checkpoint=tmp_path / "in" / "kept") as engine:
        engine.sql("CREATE STREAM `../../s` (x INT, at INT) SOURCE push(malformed => 'divert') ORDERED BY at IN ORDER")
        engine.sql("SELECT x FROM `../../s`").start()
        engine.push("../../s", [(1, 1), ("a", 2)])
    assert [p.name for p in tmp_path.iterdir()] == ["in"]
    assert [p.name for p in (tmp_path / "in").iterdir()] == ["kept"]
    assert diverted_streams(tmp_path / "in" / "kept") == ["../../s_bad"]
    assert len(read_diverted(tmp_path / "in" / "kept", "../../s_bad").rows()) == 1
