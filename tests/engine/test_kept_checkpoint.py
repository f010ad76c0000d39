"""A checkpoint that was written once goes on for ever, or is refused: states are found by what they compute.

The folder ``kept`` has one checkpoint per format, written by the version of the package that had it first. When the format
changes, ``python tests/engine/test_kept_checkpoint.py`` adds the new one; the old ones stay, and are upgraded or refused.
"""

from __future__ import annotations

import random
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.runtime import checkpoint
from headwater.runtime.checkpoint import FORMAT

KEPT = Path(__file__).with_name("kept")
STREAMS = """
CREATE STREAM bid (at INT, auction BIGINT, price DOUBLE, bidder STRING) ORDERED BY at DISORDER 3;
CREATE STREAM auction (at INT, id BIGINT, seller STRING) ORDERED BY at DISORDER 3;
"""
QUERIES = {
    "busy": "SELECT auction, COUNT(*) AS n, AVG(price) AS mean FROM bid WINDOW(RANGE 20) WHERE price > 3 GROUP BY auction",
    "best": "SELECT auction, MAX(price) AS best, MEDIAN(price) AS half FROM bid WINDOW(RANGE 20 SLIDE 5) GROUP BY auction",
    "offers": "SELECT a.seller, b.price FROM bid b WINDOW(RANGE 8) JOIN auction a WINDOW(RANGE 30) ON b.auction = a.id",
    "alone": (
        "SELECT a.id, b.price FROM auction a WINDOW(RANGE 30) "
        "LEFT JOIN bid b WINDOW(RANGE 9) ON a.id = b.auction AND b.price > 5"
    ),
    "bidders": "SELECT DISTINCT upper(bidder) AS who FROM bid WINDOW(RANGE 10)",
    "quiet": "SELECT id FROM auction WINDOW(RANGE 40) EXCEPT ALL SELECT auction FROM bid WINDOW(RANGE 10)",
    "last": "SELECT bidder, SUM(price) AS paid FROM bid WINDOW(PARTITION BY bidder ROWS 3) GROUP BY bidder",
    "first": "SELECT bidder, price FROM bid WINDOW(RANGE 15) ORDER BY price DESC LIMIT 2",
    "visits": (
        "SELECT bidder, COUNT(*) AS n FROM SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(at), 4) "
        "GROUP BY bidder, window_start, window_end"
    ),
    "early": "SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 15) GROUP BY auction CONSISTENCY MIDDLE",
}


def rows(stream: str, step: int) -> list[dict[str, Any]]:
    dice = random.Random(f"{stream} {step}")
    times = [step * 10 + dice.randrange(13) for _ in range(12)]
    if stream == "auction":
        return [{"at": at, "id": dice.randrange(5), "seller": dice.choice("xyz")} for at in times[:4]]
    return [
        {"at": at, "auction": dice.randrange(5), "price": float(dice.randrange(12)), "bidder": dice.choice("abcd")}
        for at in times
    ]


def opened(folder: Path, answers: dict[str, list[str]] | None = None) -> hw.Engine:
    """``answers`` gets what comes out from now on, by query."""
    engine = hw.connect(runner="inprocess", shards=2, checkpoint=folder, keep=1)
    engine.sql(STREAMS)
    with engine.held():
        for name, sql in QUERIES.items():
            listed = [] if answers is None else answers.setdefault(name, [])
            engine.sql(sql, name=name).start(hw.sinks.foreach(partial(collect, listed)))
    return engine


def collect(listed: list[str], answer: pa.Table, tick: int) -> None:
    listed += map(repr, answer.to_pylist())


def bring(engine: hw.Engine, steps: range) -> None:
    for step in steps:
        for stream in ("auction", "bid"):
            engine.push(stream, rows(stream, step))


def test_the_checkpoint_of_this_format_is_kept():
    assert (KEPT / f"format-{FORMAT}").is_dir(), "run this file as a program: it adds the checkpoint of a new format"


@pytest.mark.parametrize("kept", sorted(KEPT.glob("format-*")), ids=lambda path: path.name)
def test_a_kept_checkpoint_goes_on(kept: Path, tmp_path: Path):
    shutil.copytree(kept, tmp_path / "old")
    with opened(tmp_path / "new") as engine:
        bring(engine, range(3))
    expected: dict[str, list[str]] = {}
    with opened(tmp_path / "new", expected) as engine:
        bring(engine, range(3, 6))
    answers: dict[str, list[str]] = {}
    with opened(tmp_path / "old", answers) as engine:
        assert engine.runs["busy"].since == 0
        bring(engine, range(3, 6))
    assert {name: sorted(rows) for name, rows in answers.items()} == {n: sorted(rows) for n, rows in expected.items()}
    assert all(expected.values())


def test_an_older_format_is_upgraded_if_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with opened(tmp_path / "c") as engine:
        bring(engine, range(2))
    monkeypatch.setattr(checkpoint, "FORMAT", FORMAT + 1)
    with pytest.raises(hw.HeadwaterError, match=f"STATE_VERSION.*has format {FORMAT}"):
        opened(tmp_path / "c")
    monkeypatch.setitem(checkpoint.UPGRADES, FORMAT, lambda kept: kept)
    with opened(tmp_path / "c") as engine:
        bring(engine, range(2, 3))
        assert engine.progress().tick > 4


if __name__ == "__main__":
    target = KEPT / f"format-{FORMAT}"
    shutil.rmtree(target, ignore_errors=True)
    with opened(target) as made:
        bring(made, range(3))
    sys.stdout.write(f"{target}: {sum(p.stat().st_size for p in target.rglob('*') if p.is_file()):,} bytes\n")
