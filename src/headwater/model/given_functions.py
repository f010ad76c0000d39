"""Functions that a program hands over as objects: of a notebook, made by other functions, lambdas.

They have no place to be imported from, so they get a path of their own, ``module:name#digest``, and are found by it in the
process that they were given to. Another path stands for another code: what is defined anew and the same is the same, also
after a restart; what does something else is another function. To other processes they travel with whatever calls them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_given: dict[str, Any] = {}
"""By path."""
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_DEEPEST = 12
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def give(code: Any) -> str:
    """The path by which it is found from now on."""
    module, name = getattr(code, "__module__", None), getattr(code, "__qualname__", type(code).__qualname__)
    digest = hashlib.sha256("\n".join(_identity(code)).encode()).hexdigest()[:12]
    path = f"{module or '__main__'}:{name}#{digest}"
    _given[path] = code
    return path


def receive(path: str, code: Any) -> None:
    """It was given to another process, and has come here with what calls it."""
    _given[path] = code


def find_given(path: str) -> Any:
    """What was given under the path, or None."""
    return _given.get(path)


def all_given() -> list[Any]:
    return list(_given.values())


def _identity(value: Any, above: frozenset[int] = frozenset()) -> Iterator[str]:
    """What it does, as texts that are the same in the next process, as far as that can be known."""
    yield type(value).__qualname__
    if isinstance(value, _PLAIN):
        yield repr(value)
        return
    if id(value) in above or len(above) > _DEEPEST:
        yield "and so on"
        return
    parts = _parts(value)
    if parts is None:
        yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', id(value))}"
        return
    for part in parts:
        yield from _identity(part, above | {id(value)})


def _parts(value: Any) -> Iterable[Any] | None:
    """What makes it what it is; None: nothing is known of it but that it is this object."""
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, value.co_varnames, value.co_freevars, value.co_consts
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_set(cell)]
        return value.__code__, value.__defaults__, value.__kwdefaults__, cells
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, ModuleType):
        return (value.__name__,)
    if isinstance(value, type):
        named = [n for n in vars(value) if not n.startswith("__") or n in ("__init__", "__call__")]
        return (value.__qualname__, [(n, vars(value)[n]) for n in sorted(named)]) if _is_python(value) else None
    return (type(value), vars(value)) if hasattr(value, "__dict__") and _is_python(type(value)) else None


def _is_python(kind: type) -> bool:
    """Was it made by a class statement?"""
    return bool(kind.__flags__ & _HEAP_TYPE)


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
