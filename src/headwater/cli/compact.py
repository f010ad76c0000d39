"""``headwater compact``: small files of answers become few."""

from __future__ import annotations

from headwater.sinks.compaction import compact_folder
from headwater.sinks.folder import Folder


def compact(place: str) -> str:
    """What to say when it is done: how many small files there were and are."""
    folder = Folder(place)
    if folder.exists("_delta_log"):
        from headwater.sinks.delta_sink import compact_table

        before, after = compact_table(str(folder))
        return f"{place}: {before} files are {after} now"
    before, after = compact_folder(folder)
    return f"{place}: {before} small files are {after} now" if before else f"{place}: there is nothing to do"
