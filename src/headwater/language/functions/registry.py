"""The functions that SQL may call: nothing else is passed through to an engine.

They are rows of ``headwater.expressions.functions`` and ``aggregates``; ``special_functions`` says how some are read.
"""

from __future__ import annotations

from headwater.expressions.aggregates import BY_SQL_NAME
from headwater.expressions.functions.record import Function
from headwater.expressions.functions.table import NAMED, SYNONYMS
from headwater.language.functions.special_functions import SPECIAL_FUNCTIONS

_UNDER_ALL_NAMES = {**NAMED, **{synonym: NAMED[name] for synonym, name in SYNONYMS.items()}}
SCALARS: dict[str, Function] = {n: f for n, f in _UNDER_ALL_NAMES.items() if n not in SPECIAL_FUNCTIONS}
"""The functions of plain values."""
UNREPEATABLE = frozenset(
    {
        *(
            "curdate",
            "current_date",
            "current_time",
            "current_timestamp",
            "localtime",
            "localtimestamp",
            "now",
            "sysdate",
        ),
        *("rand", "randn", "random", "randstr", "shuffle", "uniform", "uuid", "monotonically_increasing_id"),
        *("current_catalog", "current_database", "current_schema", "current_timezone", "current_user", "session_user"),
        *("input_file_name", "spark_partition_id", "user", "version"),
    }
)
"""Functions that other systems have and this one refuses: the same input must always give the same answer."""

SPECIAL_FORMS = ("cast", "try_cast", "extract", "position", "substring", "trim")
"""Calls with a grammar of their own."""


def known_functions() -> list[str]:
    """All names, for suggestions."""
    return sorted({*SCALARS, *BY_SQL_NAME, *SPECIAL_FORMS})
