"""``headwater state``: what a checkpoint keeps, told from its manifests alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import headwater as hw
from headwater.state.sealed import seal, unseal

STREAM = "CREATE STREAM bid (auction INT, price INT, at INT) ORDERED BY at DISORDER 2"
QUERIES = {
    "counts": "SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 10) GROUP BY auction",
    "dear": "SELECT auction, n FROM (SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 10) GROUP BY auction) WHERE n > 1",
    "pairs": "SELECT x.price, y.price AS b FROM bid x WINDOW(RANGE 5), bid y WINDOW(RANGE 5) WHERE x.auction = y.auction",
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of two shards after four ticks."""
    folder = tmp_path_factory.mktemp("state") / "kept"
    with hw.connect(runner="inprocess", checkpoint=folder, shards=2) as engine:
        engine.sql(STREAM)
        with engine.held():
            for name, text in QUERIES.items():
                engine.sql(text, name=name).start(hw.sinks.noop())
        for at in (10, 11, 12, 20):
            engine.push("bid", [{"auction": a, "price": a * at, "at": at} for a in range(5)])
        engine.push("bid", [{"auction": 0, "price": 0, "at": 3}])
    return folder


@pytest.fixture
def checkpoint(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "kept"))


def state(command: Callable, checkpoint: Path) -> dict:
    outcome = command("state", checkpoint, "--format", "json")
    assert outcome.status == 0
    return json.loads(outcome.out)


def test_it_tells_streams_queries_and_operators(command: Callable, checkpoint: Path):
    found = state(command, checkpoint)
    assert [found[what] for what in ("format", "tick", "shards", "manifests")] == [4, 5, 2, [3, 4, 5]]
    (bid,) = [s for s in found["streams"] if s["stream"] == "bid"]
    assert [bid[what] for what in ("rows", "late", "malformed", "newest", "frontier")] == [20, 1, 0, 20, 18]
    assert [(q["query"], q["consistency"], q["since"]) for q in found["queries"]] == [
        ("counts", "strong", 0),
        ("dear", "strong", 0),
        ("pairs", "strong", 0),
    ]
    operators = {tuple(o["queries"]): o for o in found["operators"]}
    assert operators["counts", "dear"]["operator"] == "aggregate"
    assert operators["pairs",]["operator"] == "join"
    assert [s["shard"] for s in operators["pairs",]["shards"]] == [0, 1]


def test_its_figures_are_those_of_the_segments(command: Callable, checkpoint: Path):
    operators = state(command, checkpoint)["operators"]
    for operator in operators:
        for what in ("rows", "bytes", "segments"):
            assert operator[what] == sum(shard[what] for shard in operator["shards"])
    assert all(operator["rows"] > 0 for operator in operators)


def test_the_table_says_the_same(command: Callable, checkpoint: Path):
    text = command("state", checkpoint).out
    assert f"checkpoint {checkpoint} (format 4): tick 5, 2 shards, manifests 3 to 5 kept, state " in text
    lines = [line.split() for line in text.splitlines()]
    assert ["bid", "20", "1", "0", "20", "18", "-"] in lines
    assert ["counts", "strong", "0"] in [line[:3] for line in lines]
    assert ["aggregate", "counts,", "dear", "0"] in [line[:4] for line in lines]


def test_no_segment_is_needed(command: Callable, checkpoint: Path):
    shutil.rmtree(checkpoint / "segments")
    assert command("state", checkpoint).status == 0


def test_it_may_be_in_use(command: Callable, checkpoint: Path):
    with hw.connect(runner="inprocess", checkpoint=checkpoint):
        assert command("state", checkpoint).status == 0


@pytest.mark.parametrize("made", [True, False])
def test_a_folder_without_a_checkpoint(command: Callable, tmp_path: Path, made: bool):
    folder = tmp_path / "nothing"
    if made:
        folder.mkdir()
    outcome = command("state", folder)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f'NO_CHECKPOINT: there is no checkpoint in "{folder}"\n')
    assert ("There is no such folder." in outcome.err) is not made
    assert list(folder.iterdir() if made else ()) == [], "looking makes nothing"


def test_another_format(command: Callable, checkpoint: Path):
    path = checkpoint / "manifests" / "000000000005.json"
    path.write_bytes(seal({**unseal(path.read_bytes()), "format": 99}))
    outcome = command("state", checkpoint)
    assert outcome.status == 2
    assert outcome.err.startswith(
        f'STATE_VERSION: the checkpoint "{checkpoint}" has format 99, and this version reads 4'
    )


@pytest.mark.parametrize("text", ["{", '{"format": 4}', '{"format": 4, "tick": 5, "shards": 2, "records": []}', "[]"])
def test_a_damaged_manifest(command: Callable, checkpoint: Path, text: str):
    (checkpoint / "manifests" / "000000000005.json").write_text(text)
    outcome = command("state", checkpoint)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("STATE_DAMAGED: the manifest ")
    assert "Traceback" not in outcome.err
