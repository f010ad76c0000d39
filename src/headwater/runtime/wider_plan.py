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
from headwater.expressions.casts import cast_text
from headwater.expressions.nodes import Call, Cast, Column, Expression, Literal, UserCall
from headwater.expressions.nodes import Field as Struct
from headwater.expressions.rewrite import plain_column, rewritten
from headwater.expressions.text import to_text
from headwater.model.schema import Schema
from headwater.model.types import duckdb_name, sql_name
from headwater.model.wider_types import has_float, holds_all_of
from headwater.runtime.plan_keys import narrow

_Types = Mapping[str, tuple[pa.DataType, pa.DataType]]
"""By column: its type before and now."""

_LOGIC = {"and", "or", "not", "is null", "is true", "is false", "in", "between", "guarded and", "guarded or"}
_COMPARISONS = {"=", "<", ">", "<=", ">=", "<>", "<=>", "is distinct from"}
_CHOICE = {"coalesce", "nullif", "greatest", "least", "named_struct"}
_EXACT = {"+", "-", "*", "negative", "abs", "sign"}
_OF_BIGINT = {"div", "bit_count", "bit_get"}
"""They take integers as BIGINTs, whatever they are."""
_SAFE = _LOGIC | _COMPARISONS | _CHOICE


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
        case Expression():
            _check_value(old.type, new.type, types)
            if old.functions != new.functions:
                raise UnlikeError
            if not _is_exact(old, new, types):
                raise UnlikeError(_difference(old, types) if _values(old) == _values(new) else "")
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
    if was != now and old.built_in is None:
        raise UnlikeError(f'What "{old.function}" makes of a {sql_name(was)} it need not make of a {sql_name(now)}.')


def _difference(scalar: Expression, types: _Types) -> str:
    pairs = [types[c] for c in scalar.columns if c in types]
    kinds = [f"{sql_name(was)} and {sql_name(now)}" for was, now in pairs if was != now]
    between = f" between {', '.join(dict.fromkeys(kinds))}" if kinds else ""
    return f"The values of {to_text(scalar)} may differ{between}."


# -- expressions ------------------------------------------------------------------------------------------------------


def _is_exact(old: Expression, new: Expression, types: _Types) -> bool:
    """Has the new expression for each old row the value that the old one had?"""
    other = {c: types[c] for c in old.columns if c in types and types[c][0] != types[c][1]}
    if (old == new and not other) or (plain_column(old) is not None and plain_column(old) == plain_column(new)):
        return True
    if _always_cast(old, other) == _always_cast(new, {}):
        return True
    return _alike(old) == _alike(new) and _is_harmless(new, [was for was, _ in other.values()], types)


def _values(scalar: Expression) -> list[Expression]:
    """The columns and constants of which it is made: others make another query."""
    leaves = (e for e in scalar.walk() if isinstance(e, (Column, Literal)))
    return [Column(e.name, pa.null()) if isinstance(e, Column) else e for e in leaves]


def _always_cast(scalar: Expression, other: _Types) -> Expression:
    """With the columns that are only seen as what they are cast to, which they are now."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Cast(Column(name), type_) if name in other and other[name][1] == type_:
                return Column(name, type_)
        return None

    return rewritten(scalar, change)


def _alike(scalar: Expression) -> Expression:
    """Without casts that leave a whole number the number that it is, and with one width for types of a kind."""
    match scalar:
        case Cast(Column() | Literal() as argument, type_) if _is_whole(argument.type) and _is_whole(type_):
            return _alike(argument)
        case Column(name):
            return Column(name, pa.null())
        case UserCall():
            return scalar
    changed = scalar.with_arguments(tuple(map(_alike, scalar.arguments)))
    type_ = _widest(scalar.type)
    real = pa.types.is_floating(type_) and not isinstance(scalar, Cast)  # what a FLOAT is cast to is another thing
    return evolve(changed, type=pa.float64() if real else type_)  # type: ignore[misc]


def _is_whole(type_: pa.DataType) -> bool:
    return pa.types.is_integer(type_) or (pa.types.is_decimal(type_) and type_.scale == 0)


def _widest(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(type_):
        return pa.decimal128(38, type_.scale)
    return pa.int64() if pa.types.is_integer(type_) else type_


def _is_harmless(scalar: Expression, other: Sequence[pa.DataType], types: _Types) -> bool:
    """Is it made only of what does not depend on how wide the types are that have changed?"""
    parts = list(scalar.walk())
    if any(isinstance(e, (UserCall, Struct)) for e in parts):
        return False
    calls = {e.name for e in parts if isinstance(e, Call)}
    casts = [e for e in parts if isinstance(e, Cast)]
    if all(map(pa.types.is_integer, other)):
        return calls <= _SAFE | _EXACT | _OF_BIGINT | {"/", "%", "||"} and all(map(_is_plain, casts))
    if all(pa.types.is_integer(t) or pa.types.is_decimal(t) for t in other):
        numbers = not any(pa.types.is_floating(e.type) or pa.types.is_string(e.type) for e in casts)
        return calls <= _SAFE | _EXACT and all(map(_is_plain, casts)) and numbers
    # Of FLOATs only those are compared as what they are that meet no other type.
    alone = {types[c][0] for c in scalar.columns if c in types} == {pa.float32()}
    return alone and calls <= _SAFE and not casts and not any(isinstance(e, Literal) for e in parts)


def _is_plain(cast: Cast) -> bool:
    """Does DuckDB convert it as it is, without anything around it?"""
    return cast_text(cast.argument.type, cast.type) == f"CAST({{0}} AS {duckdb_name(cast.type)})"
