"""The captions of nodes in EXPLAIN."""

from __future__ import annotations

from headwater.optimizer.labels import label
from headwater.testing.plan_text import parse_plan


def test_a_condition_of_a_join_is_shown_as_it_was_written():
    plan = parse_plan(
        """
inner join on "k" = "a" where "l.seller.ts" < "r.ts" AND "r.who" = 'Dr. l. X'
  source s (k BIGINT, "seller.ts" BIGINT)
  source t (a BIGINT, ts BIGINT, who STRING)""".strip()
    )
    assert label(plan, timed=False) == "Inner join on k = a AND seller.ts < ts AND who = 'Dr. l. X'"
