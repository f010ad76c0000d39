"""Functions of users: found by their import path, called on whole Arrow columns."""

from __future__ import annotations

import hashlib
import importlib
import re
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
from attrs import frozen

from headwater.errors import HeadwaterError
from headwater.model.given_functions import find_given, receive

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@frozen
class UserFunction:
    """``CREATE FUNCTION name(…) RETURNS … AS 'module:attribute'``: Arrow arrays in, one Arrow array out.

    It must give the same answer for the same values: it may be called for any number of rows, more than once for the
    same ones, and ahead of time for constants.
    """

    name: str
    """How the text of expressions calls it, in double quotes; no other definition has the same."""
    path: str
    """``package.module:attribute``"""
    parameters: tuple[pa.DataType, ...]
    returns: pa.DataType

    @classmethod
    def define(cls, name: str, path: str, parameters: tuple[pa.DataType, ...], returns: pa.DataType) -> UserFunction:
        """A definition under a name that tells it from every other one, so that a replaced one is never met again."""
        identity = f"{name.casefold()} {path} {parameters} {returns}"
        digest = hashlib.sha256(identity.encode()).hexdigest()[:8]
        return cls(f"{name}#{digest}", path, parameters, returns)

    def __reduce__(self) -> tuple[Any, ...]:
        """A function that was given as an object comes along."""
        return _with_code, (self.name, self.path, self.parameters, self.returns, find_given(self.path))

    @property
    def title(self) -> str:
        """What the user calls it."""
        return self.name.partition("#")[0]


def _with_code(
    name: str, path: str, parameters: tuple[pa.DataType, ...], returns: pa.DataType, code: Any
) -> UserFunction:
    if code is not None:
        receive(path, code)
    return UserFunction(name, path, parameters, returns)


def import_path(path: str) -> Any:
    """What ``package.module:attribute`` names, or what was given under the path; raises ``UNKNOWN_FUNCTION_PATH``.

    >>> import_path("math:sqrt")(9.0)
    3.0
    """
    given = find_given(path)
    if given is not None:
        return given
    if not _PATH.fullmatch(path):
        raise _unknown(f'"{path}" is no import path', hint="Write 'module:attribute'.")
    module_name, _, attributes = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as problem:
        missing = problem.name or ""
        if module_name == missing or module_name.startswith(f"{missing}."):
            hint = "It must lie where Python looks for modules, or beside the script."
            raise _unknown(f'there is no module "{missing}"', hint=hint) from problem
        raise _broken(module_name, problem) from problem
    except Exception as problem:  # whatever the module does when it is imported
        raise _broken(module_name, problem) from problem
    for part in attributes.split("."):
        if not hasattr(found, part):
            near = get_close_matches(part, dir(found), n=1)
            hint = f'Did you mean "{near[0]}"?' if near else ""
            raise _unknown(f'module "{module_name}" has no "{attributes}"', hint=hint)
        found = getattr(found, part)
    return found


def _unknown(message: str, *, detail: str = "", hint: str = "") -> HeadwaterError:
    return HeadwaterError("UNKNOWN_FUNCTION_PATH", message, detail=detail, hint=hint)


def _broken(module: str, problem: Exception) -> HeadwaterError:
    return _unknown(f'module "{module}" could not be imported', detail=f"{type(problem).__name__}: {problem}")
