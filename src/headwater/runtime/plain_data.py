"""Values of our own classes as JSON and back: what tasks, files of a tick and the driver tell each other.

Nothing in the bytes names a class or a function: whoever reads says what is expected, and anything else is refused. So
bytes that somebody else has written can be wrong, but never do anything.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs
import numpy as np

from headwater.errors import StateError

Reader = Callable[[Any], Any]


def encode(value: Any) -> bytes:
    """Numbers, texts, bytes, lists, tuples, dictionaries by text or number, and attrs classes of them."""
    return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def decode(type_: Any, data: bytes) -> Any:
    """The value, if it is one of the type; raises ``StateError``.

    >>> decode(dict[int, tuple[str, ...]], encode({1: ("a", "b")}))
    {1: ('a', 'b')}
    """
    try:
        return _reader(type_)(json.loads(data))
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise StateError(
            "NOT_OUR_DATA", "what a task left behind cannot be read", detail=f"{type(problem).__name__}: {problem}"
        ) from problem


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, np.generic):
        return value.item()
    if attrs.has(type(value)):
        return {f.name: getattr(value, f.name) for f in attrs.fields(type(value))}
    raise TypeError(f"a {type(value).__name__} cannot be told as plain data")


@cache
def _reader(type_: Any) -> Reader:
    """What makes a value of the type from JSON."""
    origin, inner = get_origin(type_), get_args(type_)
    if type_ is Any:
        return lambda plain: plain
    if origin in (Union, UnionType):
        return _optional(inner)
    if origin in (dict, Mapping):
        return _dictionary(*inner)
    if origin is tuple and inner[-1] is not Ellipsis:
        return _fixed(tuple, [_reader(t) for t in inner])
    if origin in (list, tuple, Sequence):
        return _several(origin, _reader(inner[0]))
    if attrs.has(type_):
        return _attributes(type_)
    if isinstance(type_, type) and issubclass(type_, tuple):
        hints = get_type_hints(type_)
        return _fixed(lambda values: type_(*values), [_reader(hints[name]) for name in hints])
    return _ATOMS[type_]


def _optional(types: Sequence[Any]) -> Reader:
    (other,) = (t for t in types if t is not NoneType)
    read = _reader(other)
    return lambda plain: None if plain is None else read(plain)


def _dictionary(key: type, value: Any) -> Reader:
    read = _reader(value)
    named = int if key is int else str
    return lambda plain: {named(k): read(v) for k, v in _checked(plain, dict).items()}


def _several(origin: type, item: Reader) -> Reader:
    made = tuple if origin is tuple else list
    return lambda plain: made(map(item, _checked(plain, list)))


def _fixed(make: Callable[[Any], Any], items: Sequence[Reader]) -> Reader:
    return lambda plain: make([read(v) for read, v in zip(items, _checked(plain, list), strict=True)])


def _attributes(type_: Any) -> Reader:
    hints = get_type_hints(type_)
    readers = {f.name: _reader(hints[f.name]) for f in attrs.fields(type_)}

    def read(plain: Any) -> Any:
        return type_(**{name: readers[name](value) for name, value in _checked(plain, dict).items()})

    return read


def _checked(plain: Any, *types: type) -> Any:
    if type(plain) not in types:
        raise ValueError(f"{' or '.join(t.__name__ for t in types)} expected, not {type(plain).__name__}")
    return plain


def _bytes(plain: Any) -> bytes:
    try:
        return base64.b64decode(_checked(plain, str), validate=True)
    except binascii.Error as problem:
        raise ValueError(str(problem)) from problem


_ATOMS: dict[Any, Reader] = {
    int: lambda plain: _checked(plain, int),
    float: lambda plain: float(_checked(plain, int, float)),
    str: lambda plain: _checked(plain, str),
    bool: lambda plain: _checked(plain, bool),
    bytes: _bytes,
}
