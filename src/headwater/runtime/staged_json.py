"""Staged parts of answers as JSON, in manifests and where they wait."""

from __future__ import annotations

from typing import Any

from headwater.sinks.base import Staged


def staged_to_json(part: Staged) -> list[Any]:
    return [part.rows, part.data.hex() if part.data is not None else None, part.path]


def staged_from_json(kept: list[Any]) -> Staged:
    rows, data, path = kept
    return Staged(rows, bytes.fromhex(data) if data is not None else None, path)
