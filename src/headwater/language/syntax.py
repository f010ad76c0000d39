"""Syntax nodes of our own, beside those of sqlglot."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class Duration(exp.Expression):
    """``10 MINUTES`` or ``10``."""

    arg_types: ClassVar = {"this": True, "unit": False}


class StreamWindow(exp.Expression):
    """What stands in ``WINDOW( … )``; ``size`` is missing for UNBOUNDED and NOW."""

    arg_types: ClassVar = {"this": True, "size": False, "slide": False, "partition": False}


class Granularity(exp.Expression):
    arg_types: ClassVar = {"this": True}


class RelationToStream(exp.Expression):
    """``Istream(R)``, ``Dstream(R)`` or ``Rstream(R)`` in FROM; ``expression`` is the FROM item inside."""

    arg_types: ClassVar = {"this": True, "expression": True, "alias": False}


class CreateStream(exp.Expression):
    arg_types: ClassVar = {
        "this": True,
        "columns": False,
        "source": False,
        "time": False,
        "query": False,
        "consistency": False,
    }


class DropStream(exp.Expression):
    arg_types: ClassVar = {"this": True}


class SetOption(exp.Expression):
    arg_types: ClassVar = {"this": True, "value": True}


class SelectStatement(exp.Expression):
    arg_types: ClassVar = {"this": True, "consistency": False}
