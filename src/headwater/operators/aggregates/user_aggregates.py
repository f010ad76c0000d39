"""Aggregate functions that users define in Python.

``CREATE AGGREGATE FUNCTION product(x DOUBLE) RETURNS DOUBLE AS 'module:Product'``: the path names an object (or a class,
which is instantiated) with ``init``, ``merge`` and ``eval``, and perhaps ``inverse``; or else a function of all values.

The interface is Krämer's (11.5.7): init, merge and eval for anything given by commutative applications of a binary
function. Python is called for every value, so such an aggregate is some hundred times slower than a built-in one; the
vectorised form is called once per snapshot. NULLs are left out, and without any value the result is NULL. Where it has
several parameters a value is a STRUCT of them: init, merge and inverse take each by itself, a function an array for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from headwater.errors import HeadwaterError
from headwater.model.arrays import Int64Array
from headwater.model.functions import import_path
from headwater.model.given_functions import find_given, receive


@frozen(kw_only=True)
class UserAggregate:
    """Either init, merge and eval, or a function of all values."""

    name: str
    type: pa.DataType
    path: str
    """Where it is found: travels in its place."""
    init: Callable[..., Any] | None = None
    merge: Callable[..., Any] | None = None
    eval: Callable[[Any], Any] | None = None
    inverse: Callable[..., Any] | None = None
    """Takes a value out of the state again; only ever called for a value that is in it and not the last one."""
    vector: Callable[..., Any] | None = None
    several: bool = False
    """Has it more than one parameter? Then values are STRUCTs."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_with_code, (self.name, self.path, self.type, self.several, find_given(self.path))

    def column(self, results: Callable[[], list[Any]]) -> pa.Array:
        """The results as a column; what goes wrong in the user's code is told as such."""
        try:
            return pa.array(results(), self.type)
        except HeadwaterError:
            raise
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}"
            message = f'aggregate function "{self.name}" failed'
            raise HeadwaterError("EXPRESSION_FAILED", message, detail=reason, hint=f"It is {self.path}.") from problem

    def evaluate(self, lists: pa.Array) -> list[Any]:
        """The result for each list of values; NULL lists have none."""
        if self.vector is not None:
            of = [None if values is None else self._columns(values) for values in _arrays(lists)]
            return [None if columns is None else _plain(self.vector(*columns)) for columns in of]
        assert self.init is not None
        assert self.merge is not None
        assert self.eval is not None
        results: list[Any] = []
        for column in _arrays(lists):
            values = [] if column is None else self._arguments(column)
            if not values:
                results.append(None)
                continue
            state = self.init(*values[0])
            for value in values[1:]:
                state = self.merge(state, *value)
            results.append(self.eval(state))
        return results

    def _columns(self, values: pa.Array) -> list[pa.Array]:
        """An array for each parameter."""
        return values.flatten() if self.several else [values]

    def _arguments(self, values: pa.Array) -> list[tuple[Any, ...]]:
        """The arguments of each value."""
        return list(zip(*(column.to_pylist() for column in self._columns(values)), strict=True))

    def follow(self, low: Int64Array, high: Int64Array, weight: Int64Array, values: pa.Array, count: int) -> list[Any]:
        """As ``evaluate``, from ranges of snapshots: from one to the next only what changes is merged or taken out."""
        assert self.eval is not None
        plain, weights = self._arguments(values), weight.tolist()
        enters, leaves = np.argsort(low, kind="stable"), np.argsort(high, kind="stable")
        entering = np.searchsorted(low[enters], np.arange(count), side="right").tolist()
        leaving = np.searchsorted(high[leaves], np.arange(count), side="right").tolist()
        i = j = held = 0
        state: Any = None
        results: list[Any] = []
        for snapshot in range(count):
            gone = leaves[j : leaving[snapshot]].tolist()
            held -= sum(weights[row] for row in gone)
            if held:
                state = self._without(state, [plain[row] for row in gone for _ in range(weights[row])])
            for row in enters[i : entering[snapshot]].tolist():
                state = self._with(state, plain[row], weights[row], empty=held == 0)
                held += weights[row]
            i, j = entering[snapshot], leaving[snapshot]
            results.append(self.eval(state) if held else None)
        return results

    def _without(self, state: Any, values: list[tuple[Any, ...]]) -> Any:
        assert self.inverse is not None
        for value in values:
            state = self.inverse(state, *value)
        return state

    def _with(self, state: Any, value: tuple[Any, ...], copies: int, *, empty: bool) -> Any:
        assert self.init is not None
        assert self.merge is not None
        if empty:
            state, copies = self.init(*value), copies - 1
        for _ in range(copies):
            state = self.merge(state, *value)
        return state


def _load_with_code(name: str, path: str, type_: pa.DataType, several: bool, code: Any) -> UserAggregate:
    if code is not None:
        receive(path, code)
    return load_aggregate(name, path, type_, several=several)


def load_aggregate(name: str, path: str, type_: pa.DataType, *, several: bool = False) -> UserAggregate:
    """The aggregate that ``module:attribute`` names, under the name and with the result type that SQL gives it."""
    found = import_path(path)
    if isinstance(found, type):
        found = _made(found, path)
    steps = {step: getattr(found, step, None) for step in ("init", "merge", "eval", "inverse")}
    if all(callable(steps[step]) for step in ("init", "merge", "eval")):
        return UserAggregate(name=name, type=type_, path=path, several=several, **steps)
    if callable(found):
        return UserAggregate(name=name, type=type_, path=path, several=several, vector=found)
    raise HeadwaterError(
        "UNKNOWN_FUNCTION_PATH",
        f'"{path}" is no aggregate function',
        hint="It must have init, merge and eval, or be a function of an Arrow array.",
    )


def _made(kind: type, path: str) -> Any:
    try:
        return kind()
    except Exception as problem:  # whatever the class does when it is called
        raise HeadwaterError(
            "UNKNOWN_FUNCTION_PATH",
            f'class "{path}" could not be instantiated as an aggregate function',
            detail=f"{type(problem).__name__}: {problem}",
            hint="It is called without arguments: give them defaults, or name an object that is made already.",
        ) from problem


def _arrays(lists: pa.Array) -> list[pa.Array | None]:
    return [scalar.values if scalar.is_valid else None for scalar in lists]


def _plain(result: Any) -> Any:
    return result.as_py() if isinstance(result, pa.Scalar) else result
