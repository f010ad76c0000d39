"""What a declaration says of changes: the options ``changes``, ``ordered``, ``checked``, ``counted``, ``instants``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen
from sqlglot import exp

from headwater.language.changes import (
    ARRIVED,
    CHANGED,
    COUNT,
    DELETED,
    NEW_END,
    OP,
    ORIGINAL,
    SEQUENCE,
    SIGN,
    TIMESTAMP,
    ChangeFormat,
    Changes,
)
from headwater.language.text import OfText
from headwater.language.types import shown
from headwater.model.schema import Field

_OF_ELEMENTS = ("ordered", "checked", "counted", "instants")
_TAKEN = {
    ChangeFormat.HEADWATER: (OP, NEW_END, COUNT),
    ChangeFormat.DEBEZIUM: (SIGN, SEQUENCE, DELETED, CHANGED),
}


@frozen
class BoundChanges:
    """What the options come to."""

    changes: Changes | None = None
    numbered: bool = False

    @property
    def has_elements(self) -> bool:
        return self.changes is not None and self.changes.format is ChangeFormat.HEADWATER

    @property
    def time(self) -> Field | None:
        """The time that needs no column of the row: a change event has one of its own."""
        events = self.changes is not None and not self.has_elements
        return Field(CHANGED, TIMESTAMP) if events else None


class ChangeBinder(OfText):
    """Binds the options of one declaration."""

    def __init__(self, text: str, source: exp.Expr | None, columns: Iterable[exp.Expr]) -> None:
        self.text, self.columns = text, {c.name: c for c in columns}
        given = source.expressions if source is not None else ()
        self.options = {a.name.casefold(): a for a in given if isinstance(a, exp.PropertyEQ)}

    def bind(self) -> BoundChanges:
        format_ = self._one_of("changes", tuple(ChangeFormat))
        others = [self.options[name] for name in _OF_ELEMENTS if name in self.options]
        if others and format_ != ChangeFormat.HEADWATER:
            raise self.error(
                others[0],
                "CONFLICTING_CLAUSES",
                f'"{others[0].name}" says something of rows that carry their changes',
                hint="Add changes => 'headwater', or leave it out.",
            )
        if format_ is None:
            return BoundChanges()
        numbered = self._one_of("instants", ("timestamps", "numbers")) == "numbers"
        policy = self.options.get("malformed")
        changes = Changes(
            ChangeFormat(format_),
            ordered=self._flag("ordered", default=True),
            checked=self._flag("checked", default=True),
            lenient=policy is not None and policy.expression.name.casefold() == "divert",
            counted=self._flag("counted", default=False),
        )
        return BoundChanges(changes, numbered)

    def check(self, bound: BoundChanges, fields: Sequence[Field], time: Field | None) -> None:
        """Do the columns go with it?"""
        for field in fields:
            column = self.columns.get(field.name)
            if column is None:
                continue
            if bound.changes is not None:
                self._check_free(column, bound.changes.format)
            elif field.name == ARRIVED and field.type != TIMESTAMP:
                message = f'"{ARRIVED}" is when a row came, a TIMESTAMP, not {shown(field.type)}'
                raise self.error(column, "TYPE_MISMATCH", message)
            elif field.name == ORIGINAL:
                self._check_original(column, field, time)

    def _check_free(self, column: exp.Expr, format_: ChangeFormat) -> None:
        taken = (*_TAKEN[format_], ARRIVED, ORIGINAL)
        if column.name.casefold() in taken:
            message = f"\"{column.name}\" cannot be the name of a column beside changes => '{format_}'"
            raise self.error(column.this, "RESERVED_NAME", message, hint=f"Reserved are {', '.join(taken)}.")

    def _check_original(self, column: exp.Expr, field: Field, time: Field | None) -> None:
        """The time of a row before LATE ROWS ADJUST moved it; NULL where it was in time."""
        if time is None:
            hint = "Say which column it is: ORDERED BY column."
            raise self.error(column, "NO_TIME_COLUMN", f'"{ORIGINAL}" needs a time column', hint=hint)
        if field.type != time.type:
            message = f'"{ORIGINAL}" is of the type of the time column, {shown(time.type)}, not {shown(field.type)}'
            raise self.error(column, "TYPE_MISMATCH", message)
        if not field.nullable:
            message = f'"{ORIGINAL}" cannot be NOT NULL: rows that come in time have none'
            raise self.error(column, "TYPE_MISMATCH", message)

    def _one_of(self, name: str, choices: Sequence[str]) -> str | None:
        node = self.options.get(name)
        if node is None:
            return None
        value = node.expression.to_py() if isinstance(node.expression, exp.Literal) else None
        if not isinstance(value, str) or value.casefold() not in choices:
            listed = " or ".join(f"'{c}'" for c in choices)
            raise self.error(node, "WRONG_ARGUMENT", f'"{name}" must be {listed}, not {node.expression.sql()}')
        return value.casefold()

    def _flag(self, name: str, *, default: bool) -> bool:
        node = self.options.get(name)
        if node is None:
            return default
        if not isinstance(node.expression, exp.Boolean):
            raise self.error(node, "WRONG_ARGUMENT", f'"{name}" must be true or false, not {node.expression.sql()}')
        return bool(node.expression.to_py())
