"""Names in double quotes, which are text here as in Spark; elsewhere they are names, and were probably meant as such."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from headwater.language.catalog import Catalog
from headwater.language.notices import Notice
from headwater.language.system_views import find_entry
from headwater.language.text import quoted_name_hint

_PLACES = (exp.Group, exp.Order, exp.Ordered, exp.Window)
"""Where nobody writes a constant."""


def quoted_names(text: str, catalog: Catalog, query: exp.Expr) -> list[Notice]:
    """A notice per text in double quotes that stands where a name would, or is the name of something in sight."""
    known = {name.casefold() for name in _names(catalog, query)}
    found = [
        literal.this
        for literal in query.find_all(exp.Literal)
        if _is_double_quoted(text, literal) and (literal.this.casefold() in known or _stands_for_name(literal))
    ]
    return [
        Notice("QUOTED_NAME", f'"{name}" is text here, as in Spark, and no name', quoted_name_hint(name))
        for name in dict.fromkeys(found)
    ]


def _is_double_quoted(text: str, literal: exp.Literal) -> bool:
    start = literal.meta.get("start")
    return literal.is_string and start is not None and text[start : start + 1] == '"'


def _stands_for_name(literal: exp.Literal) -> bool:
    """Is it a whole item of the select list, or of GROUP BY, ORDER BY or PARTITION BY?"""
    around = literal.parent
    if isinstance(around, exp.Alias):
        around = around.parent
    if isinstance(around, exp.Select):
        return literal.arg_key == "expressions" or isinstance(literal.parent, exp.Alias)
    return isinstance(around, _PLACES)


def _names(catalog: Catalog, query: exp.Expr) -> Iterator[str]:
    """The columns of all streams that the query reads, and the names that it gives."""
    yield from (alias.alias for alias in query.find_all(exp.Alias))
    tables: Iterable[exp.Table] = query.find_all(exp.Table)
    for table in tables:
        entry = find_entry(catalog, table.name)
        yield from (field.name for field in entry.fields) if entry is not None else ()
