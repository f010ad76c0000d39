"""The functions that may stand after TO in CREATE SINK, and the sinks they make.

A connector is one record: what it is given, and what makes the sink of that. What it writes into, if several must not write
into the same, is its ``path``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from attrs import frozen

from headwater import sinks
from headwater.errors import InputError
from headwater.language import arguments as kinds
from headwater.language.arguments import Arguments, Parameter
from headwater.language.catalog import Target
from headwater.language.text import did_you_mean
from headwater.sinks.base import Sink


@frozen
class SinkConnector:
    """One function: what it takes, and the sink that it makes of the values by name."""

    parameters: tuple[Parameter, ...]
    make: Callable[..., Sink]
    shared: bool = False
    """May several sinks write into one place?"""


def _place(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise kinds.WrongArgumentError("a folder, or the address of one")
    return value


def _most_files(value: Any) -> int:
    if value is False:
        return 0
    number = kinds.whole(value)
    if number < 0 or number == 1:
        raise kinds.WrongArgumentError("a whole number from 2 on, or false")
    return number


_COMPACT = Parameter("compact", _most_files, default=0)
_PATH = Parameter("path", _place, required=True, place=0)
CONNECTORS: dict[str, SinkConnector] = {
    "parquet": SinkConnector(
        (_PATH, Parameter("compression", kinds.one_of("snappy", "zstd", "lz4", "none"), default="snappy"), _COMPACT),
        sinks.parquet,
    ),
    "csv": SinkConnector((_PATH,), sinks.csv),
    "json": SinkConnector((_PATH,), sinks.json),
    "delta": SinkConnector(
        (_PATH, Parameter("partition_by", kinds.texts, default=()), _COMPACT), sinks.delta, shared=True
    ),
    "console": SinkConnector(
        (
            Parameter("rows", kinds.between(1, 10**6), default=20),
            Parameter("form", kinds.one_of("table", "lines"), default="table"),
        ),
        sinks.console,
    ),
    "noop": SinkConnector((), sinks.noop),
}


def make_sink(name: str, target: Target, *, base_folder: Path) -> Sink:
    """The sink that CREATE SINK declares, which nothing is written by yet; relative paths are from the base folder.

    Raises
    ------
    InputError
        With the name of the sink, for a function, option or argument that cannot be.
    """
    connector = target.connector
    known = CONNECTORS.get(connector.name.casefold())
    if known is None:
        hint = did_you_mean(connector.name.casefold(), CONNECTORS, all_of_them="There are")
        raise InputError("UNKNOWN_SINK", f'sink "{name}": there is no sink function "{connector.name}"', hint=hint)
    values = Arguments(f'{connector.name} of sink "{name}"', connector).bound(known.parameters)
    if "path" in values:
        values["path"] = _absolute(values["path"], base_folder)
    sink = known.make(**values)
    sink.every = target.every
    return sink


def check_targets(declared: Iterable[tuple[str, Target, Path]]) -> None:
    """All sinks of an engine or a script, each with its name and base folder: can they be made, and side by side?"""
    writers: dict[str, str] = {}
    for name, target, folder in declared:
        place = make_sink(name, target, base_folder=folder).describe().get("path")
        if place is None or CONNECTORS[target.connector.name.casefold()].shared:
            continue
        if place in writers:
            raise InputError(
                "SHARED_FOLDER",
                f'sinks "{writers[place]}" and "{name}" cannot both write into "{place}"',
                hint="Give each a folder of its own: readers could not tell the rows apart.",
            )
        writers[place] = name


def _absolute(path: str, base: Path) -> str:
    return path if "://" in path or path.startswith("~") else os.path.normpath(base / path)
