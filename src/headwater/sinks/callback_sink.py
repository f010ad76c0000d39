"""A user's function, called with every tick's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from headwater.sinks.base import Output, Sink, Staged, Stager
from headwater.sinks.parts import TableStager, read_table
from headwater.sinks.tables import arrow_schema, check_names


class CallbackSink(Sink):
    """Calls ``function(table, tick)`` in the driver, in the order of the ticks, for each that has rows.

    What the function raises stops the query; the tick is not done then, and comes again after a restart.
    """

    takes_changes = True

    def __init__(self, function: Callable[[pa.Table, int], object]) -> None:
        self.function = function
        self._last = -1

    def open(self, output: Output) -> None:
        super().open(output)
        check_names(output)
        self._last = -1

    def stager(self) -> Stager:
        return TableStager(self.output)

    def deliver(self, tick: int, parts: Sequence[Staged], frontier: int) -> None:
        if tick <= self._last:
            return
        if parts:
            self.function(read_table(parts, arrow_schema(self.output)), tick)
        self._last = tick

    def describe(self) -> dict[str, Any]:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return {"sink": "foreach", "function": name, "delivery": str(self.guarantee)}
