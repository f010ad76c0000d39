"""Every operator in every variant against the oracle; see ``headwater.testing.checks`` for what is checked.

HEADWATER_CASES multiplies the number of cases.
"""

from __future__ import annotations

import pytest

from headwater.testing.cases import OPERATORS, STREAMS_A_PLAN, campaign, operator_cases, scaled

PIECES = 4
SLOW_CASES = 2000
SLOW_JOIN_CASES = 500  # of each of the four conditions, of each of the six kinds


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name: str):
    campaign(operator_cases(name, 0), scaled(3))


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_in_every_trial(name: str):
    campaign(([case] for batch in operator_cases(name, 1_000_000) for case in batch), scaled(2), thorough=True)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PIECES))
@pytest.mark.parametrize("name", OPERATORS)
def test_operator_at_length(name: str, piece: int):
    cases = SLOW_JOIN_CASES if name.startswith("join") else SLOW_CASES
    batches = scaled(cases // PIECES // STREAMS_A_PLAN)
    campaign(operator_cases(name, 1000 + piece * batches), batches)
