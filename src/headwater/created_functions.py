"""Functions that a program gives to an engine as objects, instead of naming a module that has them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.expressions.spark_values import quoted
from headwater.language.binder import bind_script
from headwater.language.types import shown
from headwater.model.given_functions import give

if TYPE_CHECKING:
    from headwater.backends.local import LocalBackend
    from headwater.statements import Statements


class CreatesFunctions:
    """The part of an engine that takes functions."""

    _statements: Statements
    _backend: LocalBackend
    _lock: threading.RLock

    def create_function(
        self,
        name: str,
        function: Callable[..., Any] | type | object,
        parameters: Mapping[str, str | pa.DataType],
        returns: str | pa.DataType,
        *,
        aggregate: bool | None = None,
        replace: bool = True,
    ) -> None:
        """Make a function of yours callable in SQL, wherever it was defined: a notebook's, a lambda, one made by another.

        On Spark it travels to the tasks by value, with the values it refers to as they are when a query starts.

        Parameters
        ----------
        name
            How SQL calls it.
        function
            A scalar one gets an Arrow array for each parameter and gives one of the same length. An aggregate is a class
            (or an object) with ``init``, ``merge``, ``eval`` and perhaps ``inverse``, or a function of an Arrow array for
            each parameter.
        parameters
            Their types by name, in order, as Arrow or SQL types.
        returns
            The type of the result.
        aggregate
            Is it one? If nothing is said: if it has ``init``, ``merge`` and ``eval``.
        replace
            May it take the place of one of the same name? Not while a query calls that.

        >>> import headwater as hw, pyarrow.compute as pc
        >>> engine = hw.connect(runner="inprocess")
        >>> engine.create_function("doubled", lambda x: pc.multiply(x, 2), {"x": "BIGINT"}, "BIGINT")
        >>> engine.sql("CREATE STREAM s (x BIGINT, at INT) ORDERED BY at")
        >>> run = engine.sql("SELECT doubled(x) AS y FROM s").start()
        >>> engine.push("s", [{"x": 21, "at": 1}], frontier=9)
        >>> run.snapshot(at=1).rows()
        [{'y': 42}]
        >>> engine.close()
        """
        if aggregate is None:
            aggregate = all(callable(getattr(function, step, None)) for step in ("init", "merge", "eval"))
        self._backend.check_function(name, function)
        listed = ", ".join(f"{quoted(parameter)} {_spelled(type_)}" for parameter, type_ in parameters.items())
        kind = f"{'OR REPLACE ' if replace else ''}{'AGGREGATE ' if aggregate else ''}FUNCTION"
        text = f"CREATE {kind} {quoted(name)}({listed}) RETURNS {_spelled(returns)} AS '{give(function)}'"
        with self._lock:
            declared = self._statements
            catalog = declared.catalog.copy()
            catalog.python_functions = True  # the program may what its SQL may not
            bind_script(text, catalog, declared.settings)
            catalog.python_functions = declared.catalog.python_functions
            declared.catalog = catalog


def _spelled(type_: str | pa.DataType) -> str:
    return type_ if isinstance(type_, str) else shown(type_)
