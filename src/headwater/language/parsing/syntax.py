"""Syntax nodes of our own, beside those of sqlglot."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class Duration(exp.Expression):
    """``10 MINUTES`` or ``10``."""

    arg_types: ClassVar = {"this": True, "unit": False}


class StreamWindow(exp.Expression):
    """What stands in ``WINDOW( … )``; ``size`` is missing for UNBOUNDED and NOW, ``least`` is there beside a MAX."""

    arg_types: ClassVar = {
        "this": True,
        "size": False,
        "least": False,
        "slide": False,
        "partition": False,
        "internal": False,
    }


class Granularity(exp.Expression):
    """``this`` is the granule, or the finest one; then ``coarsest`` is there, too."""

    arg_types: ClassVar = {"this": True, "coarsest": False}


class OutputWindow(exp.Expression):
    """``Wstream(a, b)[ROWS 10]``: a window over the answer of the query in whose select list it stands."""

    arg_types: ClassVar = {"expressions": True, "window": True, "distinct": False}


class RelationToStream(exp.Expression):
    """``Istream(R)``, ``Dstream(R)`` or ``Rstream(R)`` in FROM; ``expression`` is the FROM item inside."""

    arg_types: ClassVar = {"this": True, "expression": True, "alias": False}


class TableFunction(exp.Expression):
    """TUMBLE, HOP, CUMULATE or SESSION in FROM; ``this`` is its name, ``data`` the FROM item that it is of."""

    arg_types: ClassVar = {
        "this": True,
        "data": False,
        "partition": False,
        "timecol": False,
        "size": False,
        "slide": False,
        "step": False,
        "gap": False,
        "offset": False,
        "alias": False,
    }


class ArrayRows(exp.Expression):
    """A row per item of an array, for each row of what stands before it in FROM.

    ``kind`` is UNNEST, EXPLODE, POSEXPLODE or INLINE; ``hidden``: it stood in the select list.
    """

    arg_types: ClassVar = {
        "this": True,
        "kind": True,
        "ordinality": False,
        "outer": False,
        "hidden": False,
        "alias": False,
    }


class Statistic(exp.Expression):
    """``distinct(column) => 500`` of a STATISTICS clause; ``this`` says what, of a column or of the whole stream."""

    arg_types: ClassVar = {"this": True, "column": False, "expression": True}


class CreateStream(exp.Expression):
    """A stream, table, view or sink (``kind``), declared by its columns or defined by a query or by rows of constants.

    A sink has a ``target``, a call, and may have a length of time, ``every``.
    """

    arg_types: ClassVar = {
        "this": True,
        "kind": True,
        "columns": False,
        "key": False,
        "source": False,
        "clauses": False,
        "statistics": False,
        "query": False,
        "values": False,
        "consistency": False,
        "emission": False,
        "target": False,
        "every": False,
        "replace": False,
        "if_not_exists": False,
    }


class TimeClause(exp.Expression):
    """``DISORDER 2 SECONDS`` and the like: ``this`` is its name, the rest depends on that."""

    arg_types: ClassVar = {
        "this": True,
        "amount": False,
        "after": False,
        "low": False,
        "high": False,
        "column": False,
        "computed": False,
        "stream": False,
        "other": False,
        "name": False,
        "rate": False,
        "options": False,
    }


class CreateFunction(exp.Expression):
    """``path`` is the text in quotes after AS."""

    arg_types: ClassVar = {
        "this": True,
        "parameters": False,
        "returns": True,
        "path": True,
        "aggregate": False,
        "replace": False,
        "if_not_exists": False,
    }


class Drop(exp.Expression):
    """``kind`` may be QUERY: one that runs."""

    arg_types: ClassVar = {"this": True, "kind": True, "if_exists": False}


class AlterQuery(exp.Expression):
    """``this`` is the name of a query, which gets another level of consistency."""

    arg_types: ClassVar = {"this": True, "consistency": True}


class SetOption(exp.Expression):
    arg_types: ClassVar = {"this": True, "value": True}


class ExplainStatement(exp.Expression):
    """``this`` is a query, or the name of one."""

    arg_types: ClassVar = {
        "this": True,
        "level": False,
        "format": False,
        "verbose": False,
        "consistency": False,
        "emission": False,
    }


class Show(exp.Expression):
    """``this`` says what: STREAMS, TABLES, SINKS, QUERIES or FUNCTIONS; ``origin`` is USER or SYSTEM for functions."""

    arg_types: ClassVar = {"this": True, "origin": False, "like": False}


class Describe(exp.Expression):
    """``this`` is a name or a query; ``kind`` what it must be, if that is said."""

    arg_types: ClassVar = {"this": True, "kind": False}


class ConsistencyClause(exp.Expression):
    """``this`` is STRONG, MIDDLE, WEAK or BLOCK; WEAK may have one length of time, BLOCK has two."""

    arg_types: ClassVar = {"this": True, "block": False, "remember": False, "wall": False}


class EmitClause(exp.Expression):
    """``this`` is ON START, ON CLOSE or EVERY, which has a period."""

    arg_types: ClassVar = {"this": True, "period": False}


class SelectStatement(exp.Expression):
    arg_types: ClassVar = {"this": True, "consistency": False, "emission": False}
