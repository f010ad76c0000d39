"""The functions that SQL may call: nothing else is passed through to an engine.

The scalar ones are rows of ``headwater.expressions.functions``, of which ``special_functions`` says how some are read;
aggregates are rows of ``headwater.expressions.aggregates``.
"""

from __future__ import annotations

from headwater.expressions import aggregates
from headwater.expressions.aggregates import Aggregate
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
AGGREGATES: dict[str, Aggregate] = {name: a for a in aggregates.AGGREGATES.values() for name in a.names}
"""By what SQL calls them."""


def known_functions() -> list[str]:
    """All names, for suggestions."""
    return sorted({*SCALARS, *AGGREGATES, *SPECIAL_FORMS})
