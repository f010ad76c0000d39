"""The parser as an extension of sqlglot's."""

from __future__ import annotations

from sqlglot.dialects.spark import Spark

from headwater.language.parsing.statement_parsing import StatementParser

MEANT = {
    "parse",
    "error",
    "_parse_projections",
    "_parse_select_query",
    "_parse_table",
    "_parse_table_alias",
    "_parse_join",
    "_parse_group",
    "_parse_statement",
    "_parse_query_modifiers",
    "_parse_function_call",
}


def test_no_method_of_the_base_is_replaced_by_accident():
    ours = {
        name
        for kind in StatementParser.__mro__
        if kind.__module__.startswith("headwater.")
        for name, value in vars(kind).items()
        if callable(value) and not name.startswith("__")
    }
    assert ours & set(dir(Spark.Parser)) <= MEANT
