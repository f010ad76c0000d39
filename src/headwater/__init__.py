"""Headwater: continuous queries with exact temporal semantics over unbounded, disordered, revisable streams.

>>> import headwater as hw
>>> engine = hw.connect(runner="inprocess")
>>> engine.sql("CREATE STREAM bid (auction INT, price DOUBLE, at INT) ORDERED BY at")
>>> run = engine.sql("SELECT auction, COUNT(*) AS bids FROM bid WINDOW(RANGE 10) GROUP BY auction").start()
>>> engine.push("bid", [{"auction": 1, "price": 9.5, "at": 3}, {"auction": 1, "price": 11.0, "at": 7}])
>>> engine.run_to_end()
>>> run.snapshot(at=8).rows()
[{'auction': 1, 'bids': 2}]
>>> engine.close()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater import sinks
    from headwater.clock.wall import VirtualClock
    from headwater.engine import Engine, connect
    from headwater.errors import HeadwaterError, InputError, SqlError, StateError, StreamError
    from headwater.language.notices import HeadwaterNotice
    from headwater.query import Query, Run
    from headwater.result import Result

__version__ = "0.1.0"
__all__ = [
    "Engine",
    "HeadwaterError",
    "HeadwaterNotice",
    "InputError",
    "Query",
    "Result",
    "Run",
    "SqlError",
    "StateError",
    "StreamError",
    "VirtualClock",
    "connect",
    "sinks",
]

_PLACES = {
    "Engine": "headwater.engine",
    "HeadwaterError": "headwater.errors",
    "HeadwaterNotice": "headwater.language.notices",
    "InputError": "headwater.errors",
    "Query": "headwater.query",
    "Result": "headwater.result",
    "Run": "headwater.query",
    "SqlError": "headwater.errors",
    "StateError": "headwater.errors",
    "StreamError": "headwater.errors",
    "VirtualClock": "headwater.clock.wall",
    "connect": "headwater.engine",
}


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used: the command line starts faster without them."""
    import importlib

    if name == "sinks":
        return importlib.import_module("headwater.sinks")
    if name not in _PLACES:
        raise AttributeError(f"module 'headwater' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    """What users are meant to use, and nothing of how it is made."""
    return [*__all__, "__version__"]
