"""Aggregate functions that users define in Python.

    register_aggregate("product", init=lambda x: x, merge=lambda s, x: s * x, eval=lambda s: s, type="DOUBLE")
    register_vector_aggregate("spread", lambda values: pc.max(values).as_py() - pc.min(values).as_py(), type="DOUBLE")

or in SQL, by import path: ``CREATE AGGREGATE FUNCTION product(x DOUBLE) RETURNS DOUBLE AS 'module:Product'``, where the path
names an object (or a class, which is instantiated) with ``init``, ``merge`` and ``eval``, and perhaps ``inverse``; or else
a function of all values.

The interface is Krämer's (11.5.7): init, merge and eval for anything given by commutative applications of a binary
function. Python is called for every value, so such an aggregate is some hundred times slower than a built-in one; the
vectorised form is called once a snapshot. NULLs are left out, and without any value the result is NULL.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen

from headwater.errors import HeadwaterError
from headwater.model.arrays import Int64Array
from headwater.model.functions import import_path
from headwater.model.given_functions import find_given, receive
from headwater.model.schema import sql_type
from headwater.operators.measures import ADDITIVE, HOLISTIC

_RESERVED = ADDITIVE | HOLISTIC | {"STRING_AGG", "STDDEV", "VARIANCE"}


@frozen(kw_only=True)
class UserAggregate:
    """One registered function: either init, merge and eval, or a function of all values."""

    name: str
    type: pa.DataType
    init: Callable[[Any], Any] | None = None
    merge: Callable[[Any, Any], Any] | None = None
    eval: Callable[[Any], Any] | None = None
    inverse: Callable[[Any, Any], Any] | None = None
    """Takes a value out of the state again; only ever called for a value that is in it and not the last one."""
    vector: Callable[[pa.Array], Any] | None = None
    path: str | None = None
    """Where it was imported from, if by its path (CREATE AGGREGATE FUNCTION)."""

    @property
    def module(self) -> str | None:
        """The module that has to be imported for the function to be known in another process; None: cannot be."""
        modules = {f.__module__ for f in self._functions() if getattr(f, "__module__", None)}
        return modules.pop() if len(modules) == 1 and "__main__" not in modules else None

    def _functions(self) -> list[Callable[..., Any]]:
        functions = (self.init, self.merge, self.eval, self.inverse, self.vector)
        return [f for f in functions if f is not None]

    def __reduce__(self) -> tuple[Any, ...]:
        """Functions that another process can import travel by name; lambdas of a module by the module's registering."""
        if self.path is not None:
            return _load_with_code, (self.name, self.path, self.type, find_given(self.path))
        if self.module is not None and not all(map(_is_importable, self._functions())):
            return lookup, (self.name, self.module)
        fields = ("name", "type", "init", "merge", "eval", "inverse", "vector")
        return _rebuild, (tuple((f, getattr(self, f)) for f in fields),)

    def column(self, results: Callable[[], list[Any]]) -> pa.Array:
        """The results as a column; what goes wrong in the user's code is told as such."""
        try:
            return pa.array(results(), self.type)
        except HeadwaterError:
            raise
        except Exception as problem:
            hint = f"It is {self.path}." if self.path else ""
            reason = f"{type(problem).__name__}: {problem}"
            message = f'aggregate function "{self.name}" failed'
            raise HeadwaterError("EXPRESSION_FAILED", message, detail=reason, hint=hint) from problem

    def evaluate(self, lists: pa.Array) -> list[Any]:
        """The result for each list of values; NULL lists have none."""
        if self.vector is not None:
            return [None if values is None else _plain(self.vector(values)) for values in _arrays(lists)]
        assert self.init is not None
        assert self.merge is not None
        assert self.eval is not None
        results: list[Any] = []
        for values in lists.to_pylist():
            if not values:
                results.append(None)
                continue
            state = self.init(values[0])
            for value in values[1:]:
                state = self.merge(state, value)
            results.append(self.eval(state))
        return results

    def follow(self, low: Int64Array, high: Int64Array, weight: Int64Array, values: pa.Array, count: int) -> list[Any]:
        """As ``evaluate``, from ranges of snapshots: from one to the next only what changes is merged or taken out."""
        assert self.eval is not None
        plain, weights = values.to_pylist(), weight.tolist()
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

    def _without(self, state: Any, values: list[Any]) -> Any:
        assert self.inverse is not None
        for value in values:
            state = self.inverse(state, value)
        return state

    def _with(self, state: Any, value: Any, copies: int, *, empty: bool) -> Any:
        assert self.init is not None
        assert self.merge is not None
        if empty:
            state, copies = self.init(value), copies - 1
        for _ in range(copies):
            state = self.merge(state, value)
        return state


_registry: dict[str, UserAggregate] = {}


def register_aggregate(
    name: str,
    *,
    init: Callable[[Any], Any],
    merge: Callable[[Any, Any], Any],
    eval: Callable[[Any], Any],
    type: pa.DataType | str,
    inverse: Callable[[Any, Any], Any] | None = None,
) -> UserAggregate:
    """Make an aggregate known under a name, for SQL in any case of letters.

    Parameters
    ----------
    init
        The state of one value.
    merge
        A new state from a state and one more value. The old state may still be in use: do not change it.
    eval
        The result from a state.
    type
        Of the result, as Arrow or SQL type.
    inverse
        A new state from a state and a value that leaves it. With it a sliding window costs as much as changes from
        one snapshot to the next, without it as much as each snapshot holds.

    >>> product = register_aggregate(
    ...     "product", init=lambda x: x, merge=lambda s, x: s * x, eval=lambda s: s, type="DOUBLE"
    ... )
    >>> product.evaluate(pa.array([[2.0, 3.0], None]))
    [6.0, None]
    """
    return _register(
        UserAggregate(name=_name(name), type=_type(type), init=init, merge=merge, eval=eval, inverse=inverse)
    )


def register_vector_aggregate(name: str, function: Callable[[pa.Array], Any], type: pa.DataType | str) -> UserAggregate:
    """Make an aggregate known that gets all values of a snapshot as one Arrow array, in ascending order.

    >>> last = register_vector_aggregate("last_of", lambda values: values[-1], "BIGINT")
    >>> last.evaluate(pa.array([[2, 3], None]))
    [3, None]
    """
    return _register(UserAggregate(name=_name(name), type=_type(type), vector=function))


def lookup(name: str, module: str | None = None) -> UserAggregate:
    """The aggregate of that name; where it is not known yet, the module that registers it is imported."""
    key = name.upper()
    if key not in _registry and module is not None:
        importlib.import_module(module)
    if key not in _registry:
        raise HeadwaterError(
            "UNKNOWN_AGGREGATE",
            f'aggregate function "{name}" does not exist',
            hint="Register it with register_aggregate, in a module that every process imports.",
        )
    return _registry[key]


def _load_with_code(name: str, path: str, type_: pa.DataType, code: Any) -> UserAggregate:
    if code is not None:
        receive(path, code)
    return load_aggregate(name, path, type_)


def load_aggregate(name: str, path: str, type_: pa.DataType) -> UserAggregate:
    """The aggregate that ``module:attribute`` names, under the name and with the result type that SQL gives it."""
    found = import_path(path)
    if isinstance(found, UserAggregate):
        return evolve(found, name=name, type=type_, path=path)
    if isinstance(found, type):
        found = _made(found, path)
    steps = {step: getattr(found, step, None) for step in ("init", "merge", "eval", "inverse")}
    if all(callable(steps[step]) for step in ("init", "merge", "eval")):
        return UserAggregate(name=name, type=type_, path=path, **steps)
    if callable(found):
        return UserAggregate(name=name, type=type_, path=path, vector=found)
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


def find_aggregate(function: str, type_: pa.DataType, parameters: Sequence[object]) -> UserAggregate:
    """What a call in a plan means: by the path among its parameters (as from SQL), else by its registered name."""
    if parameters:
        return load_aggregate(function, str(parameters[0]), type_)
    return lookup(function)


def is_registered(name: str) -> bool:
    return name.upper() in _registry


def _register(aggregate: UserAggregate) -> UserAggregate:
    """The newest definition counts: a notebook may run a cell twice."""
    _registry[aggregate.name] = aggregate
    return aggregate


def _name(name: str) -> str:
    if not name.isidentifier():
        raise HeadwaterError("AGGREGATE_NAME", f'"{name}" cannot be the name of an aggregate function')
    if name.upper() in _RESERVED:
        raise HeadwaterError(
            "AGGREGATE_NAME", f'aggregate function "{name}" is built in', hint="Choose another name for yours."
        )
    return name.upper()


def _type(type_: pa.DataType | str) -> pa.DataType:
    return sql_type(type_) if isinstance(type_, str) else type_


def _arrays(lists: pa.Array) -> list[pa.Array | None]:
    return [scalar.values if scalar.is_valid else None for scalar in lists]


def _plain(result: Any) -> Any:
    return result.as_py() if isinstance(result, pa.Scalar) else result


def _is_importable(function: Callable[..., Any]) -> bool:
    """Can pickle find it again under its module and name?"""
    try:
        found: Any = importlib.import_module(function.__module__)
        for part in function.__qualname__.split("."):
            found = getattr(found, part)
    except (AttributeError, ImportError):
        return False
    return found is function


def _rebuild(fields: tuple[tuple[str, Any], ...]) -> UserAggregate:
    return UserAggregate(**dict(fields))
