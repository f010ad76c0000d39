"""Places in the text of a script: from a syntax node to an error that underlines it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from sqlglot import exp

from headwater.errors import SqlError


def error_at(text: str, start: int, end: int, code: str, message: str, *, detail: str = "", hint: str = "") -> SqlError:
    """An error about ``text[start:end]``; only its first line is underlined."""
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    newline = text.find("\n", start)
    stop = end if newline < 0 else min(end, newline)
    return SqlError(
        code, message, detail=detail, hint=hint, text=text, line=line, column=column, length=max(stop - start, 1)
    )


def span(node: exp.Expr) -> tuple[int, int] | None:
    """Where the node and all below it stand in the text, as [start, end) offsets; None if no token is known."""
    places = [n.meta for n in node.walk() if "start" in n.meta]
    if not places:
        return None
    return min(p["start"] for p in places), max(p["end"] for p in places) + 1


def error_on(
    text: str, node: exp.Expr | None, code: str, message: str, *, detail: str = "", hint: str = ""
) -> SqlError:
    """An error about a node; where the node has no place of its own, about the nearest one around it that has."""
    while node is not None:
        where = span(node)
        if where:
            return error_at(text, *where, code, message, detail=detail, hint=hint)
        node = node.parent
    return SqlError(code, message, detail=detail, hint=hint)


class OfText:
    """Whoever binds a text, and says where in it a mistake is."""

    text: str

    def error(self, node: exp.Expr | None, code: str, message: str, *, detail: str = "", hint: str = "") -> SqlError:
        return error_on(self.text, node, code, message, detail=detail, hint=hint)


def closest(word: str, candidates: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The candidate that was probably meant; case does not matter."""
    by_folded = {c.casefold(): c for c in candidates}
    found = get_close_matches(word.casefold(), by_folded, n=1, cutoff=cutoff)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, candidates: Iterable[str], *, all_of_them: str = "", cutoff: float = 0.6) -> str:
    """A hint for an unknown name: the closest one that exists, else what there is (``all_of_them`` introduces it)."""
    listed = list(candidates)
    near = closest(word, listed, cutoff=cutoff)
    if near:
        return f'Did you mean "{near}"?'
    return f"{all_of_them} {', '.join(listed)}." if all_of_them and listed else ""


def quoted_name_hint(name: str) -> str:
    """For a name in double quotes, which are those of text."""
    return f"For the name write `{name}` in backticks."
