"""Every operator's state can be saved, read back, and spread over other shards, in mid-run."""

from __future__ import annotations

import pytest

from headwater.testing.cases import OPERATORS, operator_cases
from headwater.testing.checks import check_cases


@pytest.mark.parametrize("name", OPERATORS)
def test_a_restarted_run_is_as_good_as_an_undisturbed_one(name: str):
    for batch in [b for b, _ in zip(operator_cases(name, 7_000_000), range(2))]:
        check_cases(batch, kinds=["restarted"])
