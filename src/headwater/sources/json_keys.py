"""Keys of JSON objects that are spelled otherwise than the columns: ``userid`` for a column ``userId``.

A key is a column's if it is spelled so; or else in another way of upper and lower case, if the object has only one such.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from headwater.model.arrays import BoolArray
from headwater.sources.columns import coalesce, list_lengths, nulls, valid

Spellings = Mapping[str, Collection[str]]
"""By column or field: the other ways in which it is spelled."""


def other_spellings(block: pa.Buffer, names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """How else these names are spelled among the keys; where all is well, at the price of one look at the text."""
    data = block.to_pybytes()
    folded = data.lower() if names else b""
    found: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys(names):
        texts = [text for text in _texts_like(_key(name), data, folded) if text != _key(name)]
        others = tuple(key for text in texts if isinstance(key := _loaded(text), str))
        if others:
            found[name] = others
    return found


def _loaded(text: str) -> str | None:
    """None: it is no JSON, and stands in a line that is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _texts_like(key: str, data: bytes, folded: bytes) -> list[str]:
    """The ways in which a key is spelled. Some may be values: a column that nobody looks for does no harm."""
    if not key.isascii():
        return sorted(set(re.findall(re.escape(key), data.decode("utf-8", "replace"), re.IGNORECASE)))
    small = key.lower().encode()
    if folded.count(small) == data.count(key.encode()):
        return []
    found = {data[match.start() : match.end()] for match in re.finditer(re.escape(small), folded)}
    return sorted(spelled.decode() for spelled in found)


def _key(name: str) -> str:
    """As it stands in the text, with its quotes."""
    return json.dumps(name, ensure_ascii=False)


def spelled_fields(fields: Sequence[pa.Field], spellings: Spellings) -> list[pa.Field]:
    """The fields under all their spellings, also inside of them."""
    found: dict[str, pa.Field] = {}
    for field in fields:
        type_ = _spelled_type(field.type, spellings)
        for name in (field.name, *spellings.get(field.name, ())):
            found.setdefault(name, pa.field(name, type_))
    return list(found.values())


def _spelled_type(type_: pa.DataType, spellings: Spellings) -> pa.DataType:
    if pa.types.is_list(type_):
        return pa.list_(_spelled_type(type_.value_type, spellings))
    if pa.types.is_struct(type_):
        return pa.struct(spelled_fields(list(type_), spellings))
    return type_


def as_declared(
    batch: pa.RecordBatch, fields: Sequence[pa.Field], spellings: Spellings
) -> tuple[pa.RecordBatch, BoolArray]:
    """The columns under their own names; and which rows have several spellings of one key, none of them the declared."""
    columns, unclear = _declared(batch.column, batch.num_rows, fields, spellings)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(fields))), unclear


def _declared(
    column: Callable[[str], pa.Array], rows: int, fields: Sequence[pa.Field], spellings: Spellings
) -> tuple[list[pa.Array], BoolArray]:
    unclear, columns = np.zeros(rows, np.bool_), []
    for field in fields:
        found = [_inside(column(name), field.type, spellings) for name in (field.name, *spellings.get(field.name, ()))]
        own, *others = (values for values, _ in found)
        many = np.sum([valid(values) for values in others], axis=0) > 1 if others else False
        unclear |= reduce(np.logical_or, (its for _, its in found)) | (nulls(own) & many)
        columns.append(reduce(coalesce, [own, *others]))
    return columns, unclear


def _inside(column: pa.Array, type_: pa.DataType, spellings: Spellings) -> tuple[pa.Array, BoolArray]:
    mask = column.is_null() if column.null_count else None
    if pa.types.is_struct(type_):
        parts = dict(zip((f.name for f in column.type), column.flatten(), strict=True))
        columns, unclear = _declared(parts.__getitem__, len(column), list(type_), spellings)
        return pa.StructArray.from_arrays(columns, fields=list(type_), mask=mask), unclear
    if pa.types.is_list(type_):
        values, within = _inside(column.flatten(), type_.value_type, spellings)
        lengths = list_lengths(column).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))
        unclear = np.zeros(len(column), np.bool_)
        unclear[np.repeat(np.arange(len(column)), lengths)[within]] = True
        return pa.ListArray.from_arrays(offsets, values, type=type_, mask=mask), unclear
    return column, np.zeros(len(column), np.bool_)
