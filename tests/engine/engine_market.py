"""A small market: files of bids and auctions that arrive in two folders, and queries of all kinds over them.

Each step brings one file of each stream, the next only after the last one is answered: so the ticks are always the same
ones, whatever happens in between. Some bids are late, some have no time.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import headwater as hw
from headwater.clock.progress import Progress
from headwater.runtime import points
from headwater.runtime.checkpoint import Checkpoint
from headwater.sinks.folder import Folder

STREAMS = """
CREATE STREAM bid (at INT, auction INT, price INT, bidder STRING)
    SOURCE parquet('{folder}/bid', malformed => 'divert')
    ORDERED BY at DISORDER 6 LATE ROWS DIVERT INTO bid_behind;
CREATE STREAM auction (at INT, id INT, seller STRING)
    SOURCE parquet('{folder}/auction') ORDERED BY at DISORDER 6;
CREATE STREAM visit (at INT, page STRING) SOURCE parquet('{folder}/visit') ORDERED BY at DISORDER 30;
"""
QUERIES = {
    "busy": "SELECT auction, COUNT(*) AS bids, MAX(price) AS best FROM bid WINDOW(RANGE 20) GROUP BY auction",
    "offers": (
        "SELECT a.seller, COUNT(*) AS bids, MAX(b.price) AS best FROM bid b WINDOW(RANGE 8) "
        "JOIN auction a WINDOW(RANGE 30) ON b.auction = a.id GROUP BY a.seller"
    ),
    "bidders": "SELECT DISTINCT bidder FROM bid WINDOW(RANGE 10)",
    "quiet": "SELECT id FROM auction WINDOW(RANGE 40) EXCEPT ALL SELECT auction FROM bid WINDOW(RANGE 10)",
    "lately": "SELECT bidder, SUM(price) AS paid FROM bid WINDOW(PARTITION BY bidder ROWS 3) GROUP BY bidder",
    "running": (
        "SELECT bidder, price, SUM(price) OVER w AS total, LAG(price) OVER w AS before, "
        "MAX(price) OVER (w ROWS 3 PRECEDING) AS best FROM bid WINDOW w AS (PARTITION BY bidder ORDER BY at)"
    ),
    "large": "SELECT at, auction, price FROM bid WHERE price > 80",
    "early": "SELECT auction, COUNT(*) AS bids FROM bid WINDOW(RANGE 15) GROUP BY auction CONSISTENCY MIDDLE",
    "behind": "SELECT bidder, price FROM bid_behind",
    "pages": "SELECT page FROM visit WHERE page <> 'home'",
}
STEPS = 5
_BIDS = pa.schema([("at", pa.int32()), ("auction", pa.int32()), ("price", pa.int32()), ("bidder", pa.string())])
_AUCTIONS = pa.schema([("at", pa.int32()), ("id", pa.int32()), ("seller", pa.string())])
_VISITS = pa.schema([("at", pa.int32()), ("page", pa.string())])


def bids(step: int, rows: int = 40) -> pa.Table:
    """In no order; from the second step on some that are late, and one without a time."""
    dice = random.Random(1000 + step)
    times = [step * 20 + dice.randrange(26) for _ in range(rows)]
    times[:2] = [times[0], None] if step == 0 else [step * 20 - 15, None]
    found = [
        {"at": at, "auction": dice.randrange(8), "price": dice.randrange(100), "bidder": dice.choice("abcdef")}
        for at in times
    ]
    return pa.Table.from_pylist(found, _BIDS)


def auctions(step: int, rows: int = 4) -> pa.Table:
    dice = random.Random(2000 + step)
    found = [
        {"at": step * 20 + dice.randrange(26), "id": dice.randrange(8), "seller": dice.choice("xyz")}
        for _ in range(rows)
    ]
    return pa.Table.from_pylist(found, _AUCTIONS)


def visits(step: int, rows: int = 6) -> pa.Table:
    dice = random.Random(3000 + step)
    found = [{"at": step * 20 + dice.randrange(26), "page": dice.choice(["home", "item", "bid"])} for _ in range(rows)]
    return pa.Table.from_pylist(found, _VISITS)


FILES = {"visit": visits, "auction": auctions, "bid": bids}


def place(folder: Path, stream: str, step: int) -> Path:
    return folder / stream / f"{step:04d}.parquet"


def bring(folder: Path, step: int, streams: Iterable[str] = FILES) -> None:
    """The files of a step appear, each of them whole."""
    for stream in streams:
        path = place(folder, stream, step)
        hidden = path.with_name(f"_{path.name}")
        pq.write_table(FILES[stream](step), hidden)
        os.utime(hidden, (1_000_000 + step, 1_000_000 + step))
        hidden.rename(path)


def open_market(
    folder: Path, *, queries: Mapping[str, str] = QUERIES, together: float = 0, **options: Any
) -> hw.Engine:
    """An engine with the streams declared and the queries started together, answers in files.

    ``together``: seconds whose answers go out together.
    """
    for name in FILES:
        (folder / name).mkdir(parents=True, exist_ok=True)
    engine = hw.connect(**{"runner": "inprocess", "shards": 2, "checkpoint": folder / "checkpoint", **options})
    engine.sql(STREAMS.format(folder=folder))
    with engine.held():
        for name, sql in queries.items():
            engine.sql(sql, name=name).start(hw.sinks.parquet(folder / "answers" / name, every=together))
    return engine


def run_market(
    folder: Path,
    *,
    steps: int = STEPS,
    end: bool = True,
    apart: bool = False,
    queries: Mapping[str, str] = QUERIES,
    **options: Any,
) -> None:
    """All steps that are not done yet; what a crash left half done comes first.

    ``apart``: each file is a tick of its own, so that they are the same ticks where every source comes when it likes.
    """
    for step in range(steps):  # a crash among the files of a step: they come together, or the ticks are others
        missing = [name for name in FILES if not place(folder, name, step).exists()]
        if not apart and 0 < len(missing) < len(FILES):
            bring(folder, step, missing)
    with open_market(folder, queries=queries, **options) as engine:
        engine.run_to_end(end_streams=False)
        for step in range(steps):
            for streams in [(name,) for name in FILES] if apart else [tuple(FILES)]:
                if not place(folder, streams[-1], step).exists():
                    with engine.held():
                        bring(folder, step, streams)
                    engine.run_to_end(end_streams=False)
        if end:
            engine.run_to_end()


# -- what is left -----------------------------------------------------------------------------------------------------


def answers(folder: Path, *, by_file: bool = True) -> dict[str, Any]:
    """By query, and by file unless told otherwise: the rows, sorted."""
    found: dict[str, Any] = {}
    for its in sorted((folder / "answers").iterdir()):
        files = {p.name: _rows(p, folder) for p in sorted(its.glob("*.parquet"))}
        found[its.name] = files if by_file else sorted(row for rows in files.values() for row in rows)
    return found


def by_tick(found: dict[str, Any]) -> dict[Any, list[str]]:
    """Answers by query and tick: in how many files they come depends on the shards, and on who ran the tick."""
    ticks: dict[Any, list[str]] = {}
    for query, files in found.items():
        for name, rows in files.items():
            ticks.setdefault((query, name.split("-")[1]), []).extend(rows)
    return {place: sorted(rows) for place, rows in ticks.items()}


def diverted(folder: Path) -> dict[str, Any]:
    """Late and malformed rows that were put aside, by stream and file."""
    kept = folder / "checkpoint" / "diverted"
    return {f"{p.parent.name}/{p.name}": _rows(p, folder) for p in sorted(kept.rglob("*.parquet"))}


def _rows(path: Path, folder: Path) -> list[str]:
    """Without the name of the folder, where rows hold it, as Spark writes it or as it is."""
    shown = map(repr, pq.read_table(path).to_pylist())
    return sorted(row.replace(f"file:{folder}", "").replace(str(folder), "") for row in shown)


def state(folder: Path) -> dict[str, Any]:
    """What the last manifest says, without names that are new in every run."""
    checkpoint = Checkpoint(folder / "checkpoint")
    manifest = checkpoint.read(checkpoint.ticks()[-1])
    records = {
        (shard, key): (record["heard"], record["promised"], record["rows"])
        for shard, its in manifest.records.items()
        for key, record in its.items()
    }
    # What was known when a query began: after a failure before its first tick, more files were there.
    queries = {name: {k: v for k, v in its.items() if k != "statistics"} for name, its in manifest.queries.items()}
    return {
        "frontiers": {name: Progress.from_manifest(its).frontier for name, its in manifest.clock["streams"].items()},
        "newest": manifest.newest,
        "counts": manifest.counts,
        "queries": queries,
        "records": records,
    }


def garbage(folder: Path) -> list[str]:
    """Files that nothing names any more."""
    checkpoint = Checkpoint(folder / "checkpoint")
    ticks = checkpoint.ticks()
    needed = {name for tick in ticks for name in checkpoint.read(tick).segments()}
    found = [p for p in (folder / "checkpoint" / "segments").iterdir() if p.stem not in needed]
    found += (folder / "checkpoint" / "manifests").glob("*.unfinished")
    found += [p for p in (folder / "checkpoint" / "staged").iterdir() if int(p.name) != ticks[-1]]
    found += (folder / "checkpoint" / "exchange").glob("*")
    found += (folder / "answers").glob("*/_staged/*")
    return sorted(str(p.relative_to(folder)) for p in found)


def outcome(folder: Path) -> dict[str, Any]:
    """All that must be the same whatever happened on the way."""
    return {"answers": answers(folder), "diverted": diverted(folder), "state": state(folder)}


def check(folder: Path, undisturbed: dict[str, Any]) -> None:
    found = outcome(folder)
    for what, expected in undisturbed.items():
        assert found[what] == expected, what
    assert garbage(folder) == []


def run_market_part_by_part(folder: Path) -> None:
    """The same, and a crash may come before any file of an answer is put in its place."""
    move = Folder.move

    def moved(self: Folder, old: str, new: str) -> None:
        points.passed("between two files")
        move(self, old, new)

    Folder.move = moved
    run_market(folder)
