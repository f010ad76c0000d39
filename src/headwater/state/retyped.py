"""A saved state whose columns get wider types: its segments written once more, everything else as it was.

Hashes, words and times do not depend on how wide a value is (``model/wider_types.py``), so only the columns that keep values
as they are change; rows stay in their places. Old segments are not touched: whoever names them can still read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from headwater.model.wider_types import as_wider
from headwater.state.manifest import is_segment
from headwater.state.store import Store

KeptTypes = dict[tuple[str, str], pa.DataType]
"""By layout and column: the types of values that are kept as they are. A layout is the beginning of a path of names and
numbers through the saved state (``sides.0.``); all of it: ``""``."""


def with_types(saved: Any, types: KeptTypes, store: Store, *, at: str = "") -> Any:
    """What ``State.to_manifest`` told, with segments whose columns have these types. O(state)."""
    if isinstance(saved, Mapping):
        if is_segment(saved):
            mine = {column: type_ for (layout, column), type_ in types.items() if at.startswith(layout)}
            return _written_again(saved, mine, store) if mine else saved
        return {name: with_types(part, types, store, at=f"{at}{name}.") for name, part in saved.items()}
    if isinstance(saved, list):
        return [with_types(part, types, store, at=f"{at}{i}.") for i, part in enumerate(saved)]
    return saved


def _written_again(saved: Mapping[str, Any], types: Mapping[str, pa.DataType], store: Store) -> Any:
    segment = store.open(dict(saved))
    columns = segment.columns
    found = {name: types[_bare(name)] for name in columns if _bare(name) in types}
    if not found:
        return saved
    wider = columns | {name: as_wider(columns[name], type_) for name, type_ in found.items()}
    return store.write(wider, rows=segment.rows, least=segment.least, most=segment.most).to_manifest()


def _bare(name: str) -> str:
    """Without what groups and queues put before the names of their columns."""
    return name.removeprefix("row.").removeprefix("scalar.")
