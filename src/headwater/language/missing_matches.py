"""``regexp_extract(…) IS NULL``: Flink's is NULL where nothing matches, here as in Spark it is an empty text."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headwater.language.notices import Notice

_EXTRACTS = ("regexp_extract", "regexp_substr")
_FIRST_OF = ("coalesce", "nvl", "ifnull")


def missing_matches(query: exp.Expr) -> list[Notice]:
    """A notice per function whose answer is asked for NULL, which it only is where its text is NULL."""
    names = dict.fromkeys(node.name.lower() for node in _asked_for_null(query) if isinstance(node, exp.Anonymous))
    return [
        Notice(
            "NO_MATCH",
            f'function "{name}" gives an empty text where nothing matches, as in Spark, and not NULL',
            f"For Flink's meaning write NULLIF({name}(…), '').",
        )
        for name in names
        if name in _EXTRACTS
    ]


def _asked_for_null(query: exp.Expr) -> Iterator[exp.Expr]:
    for node in query.find_all(exp.Is, exp.Anonymous):
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            yield node.this.unnest()
        elif isinstance(node, exp.Anonymous) and node.name.lower() in _FIRST_OF and node.expressions:
            yield node.expressions[0].unnest()
