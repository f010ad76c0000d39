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
