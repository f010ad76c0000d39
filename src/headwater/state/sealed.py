"""Small records as JSON that anybody can read and that cannot change unseen: the last field is a checksum of the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

_FIELD = b'"checksum":"'
_DIGITS = 32
_END = b'"}'


ANSWERS = "_headwater.json"
"""The record of a folder of answers: whose they are, and how far they are complete."""


MADE_OF = "headwater.files"
"""In the footer of a Parquet file of answers: the files that it was made of and their rows, in order, as JSON."""


def seal(record: Mapping[str, Any], *, indent: int | None = None) -> bytes:
    """The record as JSON, not empty, with its checksum as the last field.

    >>> seal({"tick": 7})
    b'{"tick":7,"checksum":"fe5354a8becf4ad7ed4eddba779f8bc5"}'
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(record, indent=indent, separators=separators).encode()
    body = text[:-1].rstrip(b"\n") + (b"," if indent is None else b",\n" + b" " * indent) + _FIELD
    return body + _digest(body) + _END


def unseal(data: bytes) -> dict[str, Any]:
    """The record, without the checksum. ``ValueError`` if it is not, byte for byte, what was written."""
    body, digest, end = data[: -_DIGITS - len(_END)], data[-_DIGITS - len(_END) : -len(_END)], data[-len(_END) :]
    if not body.endswith(_FIELD) or end != _END:
        raise ValueError("it does not end with a checksum")
    if _digest(body) != digest:
        raise ValueError("its content is not what was written: the checksum differs")
    record = json.loads(data)
    del record["checksum"]
    return record


def version_of(data: bytes, field: str) -> int | None:
    """The version that a record without a checksum has in that field: it is of a time when there were none."""
    try:
        record = json.loads(data)
    except ValueError:
        return None
    found = record.get(field) if isinstance(record, dict) and "checksum" not in record else None
    return found if type(found) is int else None


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGITS // 2).hexdigest().encode()
