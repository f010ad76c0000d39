"""The parts of a node's line in plan text, and how people read them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headwater.expressions.nodes import Expression
from headwater.expressions.printing import quoted
from headwater.expressions.text import to_text
from headwater.model.schema import Field, Schema
from headwater.model.types import sql_name

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def name_list(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


def after(words: str, names: Sequence[str]) -> str:
    """The names after these words; nothing if there are none."""
    return f" {words} {name_list(names)}" if names else ""


def plain_name(name: str) -> str:
    """Without quotes where it needs none."""
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)


def schema_text(schema: Schema) -> str:
    return f"({', '.join(map(_field, schema))})"


def _field(field: Field) -> str:
    return f"{plain_name(field.name)} {sql_name(field.type)}{'' if field.nullable else ' NOT NULL'}"


def offset_text(offset: int) -> str:
    return f" offset {offset}" if offset else ""


def readable(scalar: Expression) -> str:
    """Without the quotes around columns: for people only."""
    return to_text(scalar).replace('"', "")
