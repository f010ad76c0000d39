"""Which streams an operator waits for."""

from __future__ import annotations

from headwater.optimizer.physical.wait_labels import Labeled, assign_labels, memory_links

S1, S2, S3, S4, S5 = (Labeled(f"S{i}") for i in range(1, 6))
ALL = frozenset(("S1", "S2", "S3"))


def _two(selectivity: float) -> Labeled:
    return Labeled("O2", (Labeled("O1", (S1, S2), selectivity), S3), 0.5)


def _deep(*, first: float = 1.0, third: float = 1.0, fourth: float = 1.0) -> Labeled:
    lower = Labeled("O3", (Labeled("O1", (S1, S2), first), Labeled("O2", (S3,))), third)
    return Labeled("O5", (Labeled("O4", (lower, S4), fourth), S5))


def test_an_operator_waits_for_what_feeds_it():
    assert assign_labels(_two(0.5)) == {"O2": ALL, "O1": frozenset(("S1", "S2"))}


def test_a_proliferative_operator_waits_with_the_one_above():
    assert memory_links(_two(3.0)) == {"O1": "O2"}
    assert assign_labels(_two(3.0)) == {"O2": ALL, "O1": ALL}


def test_links_reach_to_where_the_chain_is_selective_again():
    plan = _deep(first=4.0, third=0.5, fourth=0.5)
    four = frozenset(("S1", "S2", "S3", "S4"))
    assert memory_links(plan) == {"O1": "O4"}
    assert assign_labels(plan) == {
        "O5": four | {"S5"},
        "O4": four,
        "O3": four,
        "O1": four,
        "O2": frozenset(("S3",)),
    }
    assert memory_links(_deep(first=4.0)) == {"O1": "O5"}, "the output of the root leaves the system"
