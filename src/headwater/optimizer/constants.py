"""Expressions without columns: their values, and the literals that stand for them."""

from __future__ import annotations

import datetime
import decimal
import math
from functools import lru_cache

import duckdb
import pyarrow as pa
from attrs import evolve, frozen

from headwater.algebra.expressions import Scalar, column_names, tokens
from headwater.language.types import duckdb_name, infer
from headwater.operators.expression import connection

_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")


@frozen
class Known:
    """A value that has been computed; it may be NULL."""

    value: object


@lru_cache(maxsize=1024)
def _computed(sql: str) -> Known | None:
    try:
        ((found,),) = connection().execute(f"SELECT {sql}").fetchall()
    except duckdb.Error:
        return None  # it fails at run time, if a row gets there
    return Known(found)


def value(scalar: Scalar) -> Known | None:
    """The value of an expression without columns; None if it cannot be computed now."""
    if scalar.columns or scalar.functions:
        return None
    return _computed(f"CAST({scalar.sql} AS {duckdb_name(scalar.type)})")


def is_literal(scalar: Scalar) -> bool:
    """Is there nothing to compute: a single token, or a cast of one?"""
    listed = tokens(scalar.sql)
    if len(listed) == 1:
        return True
    inside = [t for t in listed if t.kind in ("string", "number")]
    return listed[0].is_word("CAST") and (len(inside) <= 1 or pa.types.is_decimal(scalar.type))


def literal(scalar: Scalar) -> Scalar | None:
    """The value as text of the same type; None for what has no simple text."""
    known = value(scalar)
    text = None if known is None else _text(known.value, scalar.type)
    return None if text is None else evolve(scalar, sql=text)


def _text(found: object, type_: pa.DataType) -> str | None:
    spelled = duckdb_name(type_)
    match found:
        case None:
            return f"CAST(NULL AS {spelled})"
        case bool():
            return "TRUE" if found else "FALSE"
        case int():
            return f"CAST({found} AS {spelled})"
        case str() if pa.types.is_string(type_):  # times that Python cannot hold come as texts, too
            return "'" + found.replace("'", "''") + "'" if found.isprintable() else None
        case float() if math.isfinite(found):
            return f"CAST({found!r} AS {spelled})"
        case decimal.Decimal() | datetime.datetime() | datetime.date():
            return f"CAST('{found}' AS {spelled})"
    return None


def with_folded_sides(predicate: Scalar) -> Scalar:
    """``"x" < 1 + 2`` as ``"x" < 3``: a side of a comparison that reads no column is computed."""
    listed = tokens(predicate.sql)
    depth = 0
    for i, token in enumerate(listed):
        depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "sign" else 0
        if depth == 0 and token.text in _COMPARISONS and token.kind == "sign":
            return _folded_at(predicate, i)
    return predicate


def _folded_at(predicate: Scalar, place: int) -> Scalar:
    listed = tokens(predicate.sql)
    if any(t.kind == "word" and t.text.upper() in ("AND", "OR", "NOT", "CASE", "BETWEEN", "IS", "IN") for t in listed):
        return predicate  # the comparison may not be the outermost operator
    sign = listed[place]
    sides = [predicate.sql[: sign.start].strip(), predicate.sql[sign.end :].strip()]
    folded = [_side(text, predicate) for text in sides]
    return predicate if folded == sides else evolve(predicate, sql=f"{folded[0]} {sign.text} {folded[1]}")


def _side(text: str, predicate: Scalar) -> str:
    if column_names(text) or predicate.functions or len(tokens(text)) < 2:
        return text
    try:
        type_, inexact = infer(text, ())
    except (duckdb.Error, KeyError):
        return text
    scalar = Scalar(text, type_)
    if inexact or is_literal(scalar):
        return text
    done = literal(scalar)
    return text if done is None else done.sql
