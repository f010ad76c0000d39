"""Every operator in every variant against the oracle; see ``headwater.testing.checks`` for what is checked.

HEADWATER_CASES multiplies the number of cases.
"""

from __future__ import annotations

import pytest

from headwater.testing.cases import OPERATORS, STREAMS_A_PLAN, campaign, fresh, operator_cases, scaled

PIECES = 4
SLOW_CASES = {"join": 500, "aggregate sums": 700, "time window": 1000, "row window": 1000, "top-k": 500}
SLOW_CASES |= {"hop window": 700, "session window": 700, "constant": 500, "": 2000}
"""By the beginning of the name: at least 2,000 per operator, shared by its variants."""


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
    cases = next(count for prefix, count in SLOW_CASES.items() if name.startswith(prefix))
    batches = scaled(cases // PIECES // STREAMS_A_PLAN)
    campaign(operator_cases(name, fresh(1000 + piece * batches)), batches)
