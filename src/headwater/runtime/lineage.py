"""The levels of consistency that a query had before the one it has: a text, since it is part of the names of its states.

>>> lineage_after("", STRONG, 3)
'STRONG until 3; '
"""

from __future__ import annotations

from headwater.language.consistency import STRONG, Consistency


def lineage_after(lineage: str, level: Consistency, tick: int) -> str:
    """What is to be said of the past of a query whose level changes after this tick."""
    return f"{lineage}{level} until {tick}; "


def was_strong_first(lineage: str) -> bool:
    """Did a query that has changed its level begin with operators that wait for what is final?"""
    return lineage.startswith(f"{STRONG} until ")


def began_strong(lineage: str) -> bool:
    """Did a query that is strong now begin so?"""
    return not lineage or was_strong_first(lineage)


def strong_since(lineage: str, *, now: bool) -> bool:
    """Has a query become strong, or been so after it was something else? Then changes may wait above its operators."""
    later = lineage.partition("; ")[2] if was_strong_first(lineage) else lineage
    return bool(lineage) and (now or str(STRONG) in later)
