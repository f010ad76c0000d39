"""Is a plan the same as another one, but for columns that have become wider?

It must say of every old row what the old plan has said of it. Operators do: what they compare and add up has equal values
(``model/wider_types.py``). An expression does where it is known to: a column; comparisons and arithmetic of whole numbers
and DECIMALs, whose results either fit their type or stop the query; any expression that has always seen the wider type. Not
the others: ``f > 0.1`` and ``f * f`` have other values for a DOUBLE than for the FLOAT that it was, and bits and hashes of a
number depend on how wide it is. What was shown could then not be taken back, and rows be kept that do not belong there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from attrs import evolve

from headwater.algebra import nodes as n
from headwater.algebra.expressions import plain_column, quoted, tokens
from headwater.language.types import duckdb_name
from headwater.model.schema import Schema, sql_name
from headwater.model.wider_types import has_float, holds_all_of
from headwater.operators.aggregates.measures import ADDITIVE, HOLISTIC
from headwater.runtime.plan_keys import narrow

_Types = Mapping[str, tuple[pa.DataType, pa.DataType]]
"""By column: its type before and now."""

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_LOGIC = {"AND", "OR", "NOT", "IS", "NULL", "IN", "BETWEEN", "DISTINCT", "FROM", "TRUE", "FALSE"}
_CHOICE = {"CASE", "WHEN", "THEN", "ELSE", "END", "COALESCE", "NULLIF", "GREATEST", "LEAST", "STRUCT_PACK"}
_NUMBERS = {"ABS", "SIGN", "CAST", "AS", "DECIMAL", "DOUBLE", "VARCHAR", *_WHOLE}
_COMPARISONS = {"=", "==", "<", ">", "<=", ">=", "<>", "!=", "(", ")", ",", ":="}
_EXACT = {"+", "-", "*"}


class UnlikeError(Exception):
    """The plans differ in more than the widths of columns; the text says where an expression is the reason."""


def check_wider(before: n.Plan, after: n.Plan) -> None:
    """Raises ``UnlikeError`` unless the plan says of rows of the old types what the old one said."""
    _check(narrow(before), narrow(after), {})


def is_wider_source(before: n.Source, after: n.Source) -> bool:
    """Have the columns that both have types that hold all old values, and are rows that change still found by these?

    A source brings a row as a FLOAT and takes it back as a DOUBLE: these need not be equal.
    """
    known = {f.name: f for f in after.columns}
    pairs = [(f, known[f.name]) for f in before.columns if f.name in known]
    if not all(holds_all_of(now.type, was.type) and was.nullable == now.nullable for was, now in pairs):
        return False
    other = {was.name for was, now in pairs if was.type != now.type and has_float(was.type)}
    return not other or not after.revisable or (bool(after.key) and not other & {*after.key})


def _check(old: n.Plan, new: n.Plan, done: dict[tuple[int, int], bool]) -> None:
    if (id(old), id(new)) in done:
        return
    if type(old) is not type(new):
        raise UnlikeError
    for below in zip(old.inputs, new.inputs, strict=True):
        _check(*below, done)
    if isinstance(old, n.Source) and isinstance(new, n.Source) and not is_wider_source(old, new):
        raise UnlikeError
    types = _types(old, new)
    for name in _attributes(type(old)):
        _check_value(getattr(old, name), getattr(new, name), types)
    done[id(old), id(new)] = True


def _attributes(kind: type[n.Plan]) -> list[str]:
    """All but its inputs."""
    return [a.name for a in kind.__attrs_attrs__ if not a.metadata.get("input")]  # type: ignore[attr-defined]


def _types(old: n.Plan, new: n.Plan) -> _Types:
    """What expressions of the node see."""
    sides = ["l.", "r."] if isinstance(old, n.Join) else [""] * len(old.inputs)
    pairs = zip(sides, old.inputs, new.inputs, strict=True)
    columns = [(side, zip(a.schema, b.schema, strict=True)) for side, a, b in pairs if len(a.schema) == len(b.schema)]
    return {f"{side}{was.name}": (was.type, now.type) for side, both in columns for was, now in both}


def _check_value(old: Any, new: Any, types: _Types) -> None:
    """One attribute of a node."""
    if type(old) is not type(new) and not isinstance(old, pa.DataType):
        raise UnlikeError
    match old:
        case n.Scalar():
            _check_value(old.type, new.type, types)
            if old.functions != new.functions:
                raise UnlikeError
            if not _is_exact(old, new, types):
                raise UnlikeError(_told(old, types) if _values(old) == _values(new) else "")
        case n.AggregateCall():
            _check_aggregate(old, new, types)
        case pa.DataType():
            if not holds_all_of(new, old):
                raise UnlikeError
        case Schema():
            _check_value(
                [(f.name, f.nullable, f.type) for f in old], [(f.name, f.nullable, f.type) for f in new], types
            )
        case tuple() | list():
            if len(old) != len(new):
                raise UnlikeError
            for was, now in zip(old, new, strict=True):
                _check_value(was, now, types)
        case _:
            if old != new:
                raise UnlikeError


def _check_aggregate(old: n.AggregateCall, new: n.AggregateCall, types: _Types) -> None:
    if evolve(old, type=new.type) != new:
        raise UnlikeError
    _check_value(old.type, new.type, types)
    was, now = types.get(old.argument or "", (None, None))
    if was != now and old.function not in ADDITIVE | HOLISTIC:
        raise UnlikeError(f'What "{old.function}" makes of a {sql_name(was)} it need not make of a {sql_name(now)}.')


def _told(scalar: n.Scalar, types: _Types) -> str:
    pairs = [types[c] for c in scalar.columns if c in types]
    kinds = [f"{sql_name(was)} and {sql_name(now)}" for was, now in pairs if was != now]
    between = f" between {', '.join(dict.fromkeys(kinds))}" if kinds else ""
    return f"The values of {scalar.sql} may differ{between}."


# -- expressions ------------------------------------------------------------------------------------------------------


def _is_exact(old: n.Scalar, new: n.Scalar, types: _Types) -> bool:
    """Has the new expression for each old row the value that the old one had?"""
    other = {c: types[c] for c in old.columns if c in types and types[c][0] != types[c][1]}
    if old == new and not other:
        return True
    if plain_column(old) is not None and plain_column(old) == plain_column(new):
        return True
    names = {quoted(c): duckdb_name(now) for c, (_, now) in other.items()}
    had, has = _words(old), _words(new)
    if _without_casts(had, names) == _without_casts(has, names) and _are_cast(had, names):
        return True
    whole = {quoted(c) for c, pair in types.items() if all(map(pa.types.is_integer, pair))}
    return _alike(had, whole) == _alike(has, whole) and _is_harmless(new, [was for was, _ in other.values()], types)


def _values(scalar: n.Scalar) -> list[str]:
    """The columns and constants of which it is made: others make another query."""
    return [token.text for token in tokens(scalar.sql) if token.kind in ("name", "number", "string")]


def _words(scalar: n.Scalar) -> list[str]:
    return [token.text for token in tokens(scalar.sql)]


def _cast(words: Sequence[str], at: int) -> tuple[str, str, int] | None:
    """(what, its type, where it ends) of ``CAST ( what AS type )`` that begins there, if it is of a single word."""
    if [word.upper() for word in words[at : at + 2]] != ["CAST", "("] or words[at + 3 : at + 4] != ["AS"]:
        return None
    end = words.index(")", at + 4)
    if "(" in words[at + 4 : end]:
        end = words.index(")", end + 1)
    return words[at + 2], "".join(words[at + 4 : end]), end + 1


def _without_casts(words: Sequence[str], types: Mapping[str, str]) -> list[str]:
    """With columns that are cast to these types as they are."""
    left, at = [], 0
    while at < len(words):
        found = _cast(words, at)
        if found is not None and types.get(found[0]) == found[1]:
            left.append(found[0])
            at = found[2]
        else:
            left.append(words[at])
            at += 1
    return left


def _are_cast(words: Sequence[str], types: Mapping[str, str]) -> bool:
    """Do these columns occur only as what they are cast to?"""
    casts = [found for at in range(len(words)) if (found := _cast(words, at)) and types.get(found[0]) == found[1]]
    return len(casts) == sum(word in types for word in words)


def _alike(words: Sequence[str], whole: set[str]) -> list[str]:
    """Without casts that leave a whole number the number that it is, and with one name for the types of such."""
    left = list(words)
    for at in range(len(left) - 1, -1, -1):  # from the innermost on
        found = _cast(left, at)
        if found is not None and (found[0] in whole or found[0].isdecimal()) and _is_whole(found[1]):
            left[at : found[2]] = [found[0]]
    for at, word in enumerate(left):
        if word in _WHOLE:
            left[at] = _WHOLE[-1]
        elif word == "DECIMAL" and left[at + 1 : at + 2] == ["("]:
            left[at + 2] = "digits"
    return left


def _is_whole(type_: str) -> bool:
    return type_ in _WHOLE or (type_.startswith("DECIMAL(") and type_.endswith(",0)"))


def _is_harmless(scalar: n.Scalar, other: Sequence[pa.DataType], types: _Types) -> bool:
    """Is it made only of what does not depend on how wide the types are that have changed?"""
    listed = tokens(scalar.sql)
    signs = {t.text for t in listed if t.kind == "sign"}
    named = [*(t.text for t in listed[1:]), ""]
    words = {t.text.upper() for t, after in zip(listed, named, strict=True) if t.kind == "word" and after != ":="}
    if all(map(pa.types.is_integer, other)):
        return signs <= _COMPARISONS | _EXACT | {"/", "%", "||"} and words <= _LOGIC | _CHOICE | _NUMBERS
    if all(pa.types.is_integer(t) or pa.types.is_decimal(t) for t in other):
        return signs <= _COMPARISONS | _EXACT and words <= _LOGIC | _CHOICE | _NUMBERS - {"DOUBLE", "VARCHAR"}
    # Of FLOATs only those are compared as what they are that meet no other type.
    alone = {types[c][0] for c in scalar.columns if c in types} == {pa.float32()}
    plain = not any(t.kind in ("number", "string") for t in listed)
    return alone and plain and signs <= _COMPARISONS and words <= _LOGIC | _CHOICE
