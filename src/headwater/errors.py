"""Every error a user can meet: one hierarchy, stable codes, a hint how to go on.

HeadwaterError
├── SqlError          the text of a query or script is wrong (line, column, underlined source)
├── StreamError       the elements of a stream break its rules
├── InputError        a file or an argument cannot be read as what it should be
└── StateError        kept state cannot be read back
"""

from __future__ import annotations

from typing import Any


class HeadwaterError(Exception):
    """A mistake that the user can mend: ``code``, ``message``, optional ``detail`` and ``hint``.

    The fields are kept in ``args`` so that the error survives pickling between processes.
    """

    def __init__(self, code: str, message: str, *, detail: str = "", hint: str = "") -> None:
        super().__init__(code, message, detail, hint)

    def of(self, whose: str) -> HeadwaterError:
        """The same error, which says whose it is.

        >>> print(InputError("BAD", "this is wrong").of('query "a"'))
        BAD: query "a": this is wrong
        """
        error = _rebuild(type(self), self.args, self.__dict__)
        error.args = (self.code, f"{whose}: {self.message}", *self.args[2:])
        return error

    def hinting(self, more: str) -> HeadwaterError:
        """The same error with a hint more.

        >>> print(InputError("BAD", "this is wrong", hint="Say a.").hinting("Or b."))
        BAD: this is wrong
          hint:   Say a. Or b.
        """
        error = _rebuild(type(self), self.args, self.__dict__)
        error.args = (*self.args[:3], " ".join(filter(None, (self.hint, more))), *self.args[4:])
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)

    @property
    def code(self) -> str:
        return self.args[0]

    @property
    def message(self) -> str:
        return self.args[1]

    @property
    def detail(self) -> str:
        return self.args[2]

    @property
    def hint(self) -> str:
        return self.args[3]

    def _render_traceback_(self) -> list[str]:
        """In notebooks the message alone: IPython asks for this."""
        return str(self).splitlines()

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.message}"]
        if self.detail:
            lines.append(f"  detail: {self.detail}")
        if self.hint:
            lines.append(f"  hint:   {self.hint}")
        return "\n".join(lines)


def _rebuild(kind: type[HeadwaterError], args: tuple[Any, ...], fields: dict[str, Any]) -> HeadwaterError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class SqlError(HeadwaterError):
    """A statement cannot be understood or cannot be run; knows where in the text."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        detail: str = "",
        hint: str = "",
        text: str = "",
        line: int = 0,
        column: int = 0,
        length: int = 1,
    ) -> None:
        super().__init__(code, message, detail=detail, hint=hint)
        self.text, self.line, self.column, self.length = text, line, column, max(length, 1)

    def __str__(self) -> str:
        shown = super().__str__()
        lines = self.text.splitlines()
        if not 1 <= self.line <= len(lines):
            return shown
        prefix = f"  line {self.line}, column {self.column}:  "
        source = lines[self.line - 1].replace("\t", " ")
        marks = " " * (len(prefix) + self.column - 1) + "^" * self.length
        return f"{shown}\n{prefix}{source}\n{marks}"


class StreamError(HeadwaterError):
    """Elements that no valid physical stream may contain."""


class InputError(HeadwaterError):
    """A file, a line of it, or an argument that cannot be used."""


class StateError(HeadwaterError):
    """State on disk that is missing, damaged or of another version."""


# -- as plain data ----------------------------------------------------------------------------------------------------

_KINDS: dict[str, type[HeadwaterError]] = {
    kind.__name__: kind for kind in (HeadwaterError, SqlError, StreamError, InputError, StateError)
}
_TEXTS = ("code", "message", "detail", "hint")
_PLACE = ("line", "column", "length")


def error_data(error: HeadwaterError) -> dict[str, str | int]:
    """The error as texts and numbers: which of the kinds above it is, what it says, and where in the SQL."""
    kind = next(k for k in type(error).__mro__ if k in _KINDS.values())
    plain: dict[str, str | int] = {"kind": kind.__name__, **{name: str(getattr(error, name)) for name in _TEXTS}}
    if isinstance(error, SqlError):
        plain |= {"text": error.text, **{name: getattr(error, name) for name in _PLACE}}
    return plain


def error_of(plain: dict[str, Any]) -> HeadwaterError:
    """The error that ``error_data`` describes; raises ``ValueError`` for anything else.

    >>> error_of(error_data(InputError("NO_FILE", "there is no file"))).code
    'NO_FILE'
    """
    kind = _KINDS.get(plain.get("kind", ""))
    names, places = _TEXTS, ()
    if kind is SqlError:
        names, places = (*_TEXTS, "text"), _PLACE
    fits = kind is not None and plain.keys() == {"kind", *names, *places}
    if not fits or any(type(plain[n]) is not str for n in names) or any(type(plain[n]) is not int for n in places):
        raise ValueError("not what an error tells of itself")
    assert kind is not None
    code, message, *_ = (plain[name] for name in _TEXTS)
    return kind(code, message, **{name: plain[name] for name in (*names, *places) if name not in ("code", "message")})
