"""``headwater state``: what a checkpoint keeps, read from its manifests alone. It may be in use meanwhile."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from headwater.clock.progress import Progress
from headwater.errors import InputError
from headwater.language.introspection import Answer
from headwater.model.time import BEGINNING, INFINITY
from headwater.runtime.checkpoint import FORMAT, Checkpoint, Manifest
from headwater.runtime.views.amounts import instant_text, size_text
from headwater.state.manifest import state_segments


def read_state(folder: str | Path) -> dict[str, Any]:
    """All of it as plain values: what ``--format json`` prints."""
    checkpoint = Checkpoint(folder)
    newest = checkpoint.newest()
    if newest is None:
        raise InputError(
            "NO_CHECKPOINT",
            f'there is no checkpoint in "{folder}"',
            detail="" if checkpoint.folder.exists() else "There is no such folder.",
            hint="Name the folder that was given as --checkpoint, or to connect(checkpoint=…).",
        )
    manifest = checkpoint.read(newest)
    return {
        "checkpoint": str(folder),
        "format": FORMAT,
        "tick": manifest.tick,
        "shards": manifest.shards,
        "manifests": checkpoint.ticks(),
        "streams": _streams(manifest),
        "queries": _queries(manifest),
        "operators": _operators(manifest),
    }


def _streams(manifest: Manifest) -> list[dict[str, Any]]:
    units = manifest.described.get("streams", {})
    clocks = {name: Progress.from_manifest(its) for name, its in manifest.clock.get("streams", {}).items()}
    names = {**clocks, **manifest.frontiers, **manifest.counts, **manifest.batches}
    found = []
    for name in sorted(names):
        counts, clock = manifest.counts.get(name, {}), clocks.get(name)
        batch = manifest.batches.get(name) or {}
        found.append(
            {
                "stream": name,
                "rows": counts.get("rows", 0),
                "late": counts.get("late", 0),
                "malformed": counts.get("bad", 0),
                "newest": _instant(manifest.newest.get(name, BEGINNING)),
                "frontier": _instant(clock.frontier if clock else manifest.frontiers.get(name, BEGINNING)),
                "timestamps": units.get(name, True),
                "because": clock.reason if clock else "",
                "late_by": dict(clock.late) if clock else {},
                "partitions": len(clock.parts) if clock else 0,
                "batch": batch.get("batch"),
                "offset": batch.get("offset"),
            }
        )
    return found


def _queries(manifest: Manifest) -> list[dict[str, Any]]:
    units = manifest.described.get("queries", {})
    return [
        {
            "query": name,
            "consistency": its["consistency"].lower(),
            "since": its["since"],
            "frontier": _instant(its["frontier"]),
            "timestamps": units.get(name, True),
            "rows_of_last_tick": sum(part.rows for part in manifest.outputs.get(name, ())),
        }
        for name, its in manifest.queries.items()
    ]


def _operators(manifest: Manifest) -> list[dict[str, Any]]:
    """By operator; what it keeps in each shard."""
    about = manifest.described.get("operators", {})
    units = manifest.described.get("queries", {})
    shards: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for shard, records in sorted(manifest.records.items()):
        for key, record in records.items():
            segments = len(list(state_segments(record["state"] or {})))
            kept = {"rows": record["rows"], "bytes": record["bytes"], "segments": segments}
            shards[key].append({"shard": shard, **kept, "frontier": _instant(record["promised"])})
    found = []
    for key, its in shards.items():
        queries = about.get(key, {}).get("queries", [])
        totals = {what: sum(shard[what] for shard in its) for what in ("rows", "bytes", "segments")}
        found.append(
            {
                "operator": about.get(key, {}).get("operator", "?"),
                "key": key,
                "queries": queries,
                **totals,
                "timestamps": all(units.get(q, True) for q in queries),
                "shards": its,
            }
        )
    order = list(about)
    return sorted(found, key=lambda o: order.index(o["key"]) if o["key"] in about else len(order))


def _instant(instant: int) -> int | str | None:
    """JSON has no infinities: null is before all time."""
    if instant == BEGINNING:
        return None
    return "infinity" if instant == INFINITY else instant


# -- as text ----------------------------------------------------------------------------------------------------------


def state_text(folder: str | Path, form: str) -> str:
    state = read_state(folder)
    if form == "json":
        return json.dumps(state, indent=2)
    kept = state["manifests"]
    rows, size = (sum(o[what] for o in state["operators"]) for what in ("rows", "bytes"))
    heading = (
        f"checkpoint {state['checkpoint']} (format {state['format']}): tick {state['tick']}, {state['shards']} "
        f"shard{'s' * (state['shards'] != 1)}, manifests {kept[0]} to {kept[-1]} kept, "
        f"state {rows:,} rows in {size_text(size)}"
    )
    tables = (_stream_table(state["streams"]), _query_table(state["queries"]), _operator_table(state["operators"]))
    return "\n\n".join([heading, *(str(table) for table in tables if table.rows)])


def _stream_table(streams: list[dict[str, Any]]) -> Answer:
    columns = ("stream", "rows", "late", "malformed", "newest", "final before", "batch")
    rows = tuple(
        (
            s["stream"],
            *(f"{s[what]:,}" for what in ("rows", "late", "malformed")),
            *(_shown(s[what], s) for what in ("newest", "frontier")),
            "-" if s["batch"] is None else str(s["batch"]),
        )
        for s in streams
    )
    return Answer("streams", columns, rows)


def _query_table(queries: list[dict[str, Any]]) -> Answer:
    columns = ("query", "consistency", "since tick", "final before")
    rows = tuple((q["query"], q["consistency"], str(q["since"]), _shown(q["frontier"], q)) for q in queries)
    return Answer("queries", columns, rows)


def _operator_table(operators: list[dict[str, Any]]) -> Answer:
    columns = ("operator", "for", "shard", "segments", "rows", "bytes", "final before")
    rows = tuple(
        (
            *((o["operator"], ", ".join(o["queries"])) if first else ("", "")),
            str(s["shard"]),
            *(f"{s[what]:,}" for what in ("segments", "rows", "bytes")),
            _shown(s["frontier"], o),
        )
        for o in operators
        for first, s in zip([True] + [False] * len(o["shards"]), o["shards"], strict=False)
    )
    return Answer("operators", columns, rows)


def _shown(instant: int | str | None, about: dict[str, Any]) -> str:
    if instant is None:
        known = BEGINNING
    else:
        known = INFINITY if instant == "infinity" else int(instant)
    return instant_text(known, timestamps=about["timestamps"])
