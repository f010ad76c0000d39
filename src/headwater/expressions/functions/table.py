"""All scalar functions and operators, by name."""

from __future__ import annotations

from headwater.expressions.functions.arrays import ARRAYS
from headwater.expressions.functions.conditions import CONDITIONS
from headwater.expressions.functions.json import JSON
from headwater.expressions.functions.numbers import NUMBERS
from headwater.expressions.functions.operators import OPERATORS
from headwater.expressions.functions.record import Function
from headwater.expressions.functions.strings import STRINGS
from headwater.expressions.functions.times import TIMES

NAMED: dict[str, Function] = {**CONDITIONS, **NUMBERS, **STRINGS, **TIMES, **ARRAYS, **JSON}
"""Those that a query calls by name."""

SYNONYMS: dict[str, str] = {synonym: name for name, function in NAMED.items() for synonym in function.also}
"""Other names, and those that expressions have."""

FUNCTIONS: dict[str, Function] = {**NAMED, **OPERATORS}
"""Also operators; those that are not here mean the same to every engine."""
