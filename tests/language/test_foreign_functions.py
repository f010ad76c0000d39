"""Functions of other systems: what is said of them can be written."""

from __future__ import annotations

import re

import pytest

from headwater.errors import SqlError
from headwater.language.binder import bind_script
from headwater.language.functions.foreign_functions import HINTS
from headwater.language.functions.registry import known_functions
from headwater.language.functions.special_functions import SPECIAL_FUNCTIONS

FORMS = {"unnest", "values", "tumble", "hop", "session", "cumulate", "descriptor", "window", "over", "row_number"}
FORMS |= {"heartbeat", "rate", "t", "s", "0"}
"""Of FROM and OVER; aliases."""


@pytest.mark.parametrize("name", HINTS)
def test_a_hint_names_functions_that_there_are(name: str):
    known = {*known_functions(), *SPECIAL_FUNCTIONS}
    assert name not in known
    assert {word.lower() for word in re.findall(r"(\w+) ?\(", HINTS[name])} - {"decimal"} <= known | FORMS


def test_the_hint_is_shown_and_other_names_are_guessed():
    stream = "CREATE STREAM s (a ARRAY<INT>);"
    with pytest.raises(SqlError, match=r"Write size\(a\)"):
        bind_script(f"{stream} SELECT ARRAY_LENGTH(a) AS n FROM s")
    with pytest.raises(SqlError, match='Did you mean "array_sort"'):
        bind_script(f"{stream} SELECT array_sorts(a) AS n FROM s")
