"""INTERNAL windows: they bound what is kept, but results do not expire with them (Golab 3.3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from headwater.errors import SqlError
from headwater.language.parsing.syntax import StreamWindow, TableFunction
from headwater.language.select.negation import negation
from headwater.language.text import error_on

SIZED = ("RANGE", "ROWS", "SESSION")
"""The kinds of windows that rows leave."""


def own_windows(node: exp.Select) -> Iterator[StreamWindow]:
    """The windows of its own FROM clause, not those of sub-queries."""
    from_ = node.args.get("from_")
    waiting = [from_.this] if from_ is not None else []
    waiting += [join.this for join in node.args.get("joins") or ()]
    while waiting:
        item = waiting.pop(0)
        waiting += [join.this for join in item.args.get("joins") or ()]
        if isinstance(item, exp.Subquery) and not isinstance(item.this, exp.Query):  # (a JOIN b)
            waiting.append(item.this)
        if item.args.get("stream_window") is not None:
            yield item.args["stream_window"]


def is_internal(node: exp.Select) -> bool:
    """Do the results of the query not expire, whatever its windows do? Those under Wstream do not either."""
    return bool(node.args.get("internal")) or any(w.args.get("internal") for w in own_windows(node))


def check_internal(text: str, node: exp.Select, windows: Sequence[StreamWindow]) -> None:
    """All windows of the query are INTERNAL, and it takes no result back."""
    for window in windows:
        if window.this in SIZED and not window.args.get("internal"):
            raise error_on(
                text,
                window,
                "INTERNAL_WINDOW",
                "the windows of a query are INTERNAL, all or none",
                detail="Results of INTERNAL windows never expire, those of other windows do.",
                hint="Add INTERNAL, or window this stream in a sub-query.",
            )
    if (negated := negation(node)) is not None:
        what, place = negated
        raise error_on(
            text,
            place,
            "INTERNAL_WINDOW",
            f"{what} has no meaning over INTERNAL windows",
            detail="Results would have to be taken back, but never expire (Golab 3.3.2).",
            hint="Leave INTERNAL out; SELECT Istream(…) gives what is new.",
        )


def never_expires(text: str, place: exp.Expr, kind: str) -> SqlError:
    """The mistake to ask for a Dstream or Rstream of what only grows."""
    what = {"DSTREAM": "nothing leaves it", "RSTREAM": "it would be repeated at every instant"}[kind]
    message = f"{kind.capitalize()} has no meaning over INTERNAL windows"
    detail = f"The answer holds all results so far: {what}."
    return error_on(text, place, "INTERNAL_WINDOW", message, detail=detail, hint="Use Istream, or leave INTERNAL out.")


def check_inside(text: str, outer: exp.Expr, inner: exp.Expr) -> None:
    """A window inside of ``Dstream( … )``, ``Rstream( … )`` or TUMBLE cannot be INTERNAL; of ``Istream( … )`` it may."""
    window = inner.args.get("stream_window")
    if window is None or not window.args.get("internal"):
        return
    if isinstance(outer, TableFunction):
        hint = "Put the query with the INTERNAL window into a sub-query."
        raise error_on(
            text, window, "INTERNAL_WINDOW", f"a window inside of {outer.this.name} is not INTERNAL", hint=hint
        )
    if outer.this.name != "ISTREAM":
        raise never_expires(text, window, outer.this.name)
