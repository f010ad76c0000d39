"""Comparisons of several values at once, written out: ``(a, b) = (1, 2)``, ``x = ANY (ARRAY[1, 2])``, ``s LIKE ANY (…)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from sqlglot import exp

from headwater.language.subqueries.conditions import COMPARISONS
from headwater.language.text import error_on

_QUERIES = (exp.Query, exp.Subquery)
_STRICT: dict[type[exp.Expr], type[exp.Expr]] = {exp.LTE: exp.LT, exp.GTE: exp.GT}
_QUANTIFIERS = {"ANY": exp.Or, "SOME": exp.Or, "ALL": exp.And}


def written_out(text: str, node: exp.Expr) -> exp.Expr | None:
    """The same in comparisons of single values; None if it is one already, or something else."""
    made = _written_out(text, node)
    if made is not None:
        made.parent = node.parent
    return made


def equations(node: exp.Expr) -> exp.Expr | None:
    """``(a, b) = (c, d)`` as ``a = c AND b = d``, of the same nodes; None if it is something else."""
    left, right = (_row(node.this), _row(node.expression)) if isinstance(node, exp.EQ) else ([], [])
    if not left or len(left) != len(right):
        return None
    parts = [exp.EQ(this=a, expression=b) for a, b in zip(left, right, strict=True)]
    made = _joined(exp.And, parts)
    made.parent = node.parent
    return made


def _written_out(text: str, node: exp.Expr) -> exp.Expr | None:
    match node:
        case exp.In() if node.args.get("unnest"):
            return _contains(node.args["unnest"].expressions[0], node.this)
        case exp.In() if (left := _row(node.this)) and not node.args.get("query"):
            rows = [_same_length(text, node, left, _row(e) or [e]) for e in node.expressions]
            return _joined(exp.Or, [_compared(exp.EQ, left, row) for row in rows])
        case exp.Like() | exp.ILike() if (found := _quantified(node.expression)) is not None:
            connective, patterns = found
            return _any_like(node, connective, patterns)
    if type(node) not in COMPARISONS and not isinstance(node, exp.NullSafeEQ):
        return None
    left, right = _row(node.this), _row(node.expression)
    if left and right:
        return _compared(type(node), left, _same_length(text, node, left, right))
    if (found := _quantified(node.expression)) is not None:
        return _any(text, node, *found)
    return None


def _row(node: exp.Expr) -> list[exp.Expr]:
    """The values of ``(a, b)`` or ``ROW(a, b)``; nothing if it is no such thing."""
    named = isinstance(node, exp.Anonymous) and node.name.upper() == "ROW"
    return list(node.expressions) if isinstance(node, exp.Tuple) or named else []


def _same_length(text: str, node: exp.Expr, left: Sequence[exp.Expr], right: list[exp.Expr]) -> list[exp.Expr]:
    if len(left) != len(right):
        message = f"a row of {len(left)} values cannot be compared with one of {len(right)}"
        raise error_on(text, node, "TYPE_MISMATCH", message)
    return right


def _compared(kind: type[exp.Expr], left: Sequence[exp.Expr], right: Sequence[exp.Expr]) -> exp.Expr:
    """Value by value; ``<`` and its like by the first values that differ."""
    pairs = list(zip(left, right, strict=True))
    if kind in (exp.EQ, exp.NullSafeEQ):
        return _joined(exp.And, [_single(kind, *pair) for pair in pairs])
    if kind is exp.NEQ:
        return _joined(exp.Or, [_single(kind, *pair) for pair in pairs])
    last = _single(kind, *pairs[-1])
    for pair in reversed(pairs[:-1]):
        later = exp.And(this=_single(exp.EQ, *pair), expression=last)
        last = exp.Or(this=_single(_STRICT.get(kind, kind), *pair), expression=later)
    return last


def _single(kind: Callable[..., exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return kind(this=left.copy(), expression=right.copy())


def _joined(connective: type[exp.Expr], parts: Sequence[exp.Expr]) -> exp.Expr:
    return reduce(lambda left, right: connective(this=left, expression=right), parts)


# -- ANY and ALL ------------------------------------------------------------------------------------------------------


def _quantified(node: exp.Expr) -> tuple[type[exp.Expr], exp.Expr] | None:
    """``ANY (…)``, ``SOME (…)`` or ``ALL (…)`` of something that is no sub-query."""
    if isinstance(node, (exp.Any, exp.All)) and not isinstance(node.this, _QUERIES):
        return (exp.Or if isinstance(node, exp.Any) else exp.And), node.this
    if isinstance(node, exp.Anonymous) and node.name.upper() in _QUANTIFIERS and node.expressions:
        listed = node.expressions
        return _QUANTIFIERS[node.name.upper()], listed[0] if len(listed) == 1 else exp.Tuple(expressions=listed)
    return None


def _items(node: exp.Expr) -> list[exp.Expr] | None:
    """The items of an array that is written out, or of a list in parentheses; None of any other array."""
    while isinstance(node, exp.Paren):
        node = node.this
    written = isinstance(node, exp.Anonymous) and node.name.upper() == "ARRAY"
    return list(node.expressions) if written or isinstance(node, (exp.Array, exp.Tuple)) else None


def _any(text: str, node: exp.Expr, connective: type[exp.Expr], array: exp.Expr) -> exp.Expr:
    items = _items(array)
    if items:
        return _joined(connective, [_single(type(node), node.this, item) for item in items])
    if isinstance(node, exp.EQ) and connective is exp.Or:
        return _contains(array, node.this)
    if isinstance(node, exp.NEQ) and connective is exp.And:
        return exp.Not(this=_contains(array, node.this))
    sign, word = COMPARISONS.get(type(node), "<=>"), "ANY" if connective is exp.Or else "ALL"
    smallest = (sign[0] == ">") == (connective is exp.Or)
    hint = f"Write … {sign} {'array_min' if smallest else 'array_max'}(…)." if sign[0] in "<>" and sign != "<>" else ""
    hint = hint or "Write = ANY (…) or <> ALL (…); or unnest the array."
    raise error_on(text, node, "UNSUPPORTED", f"{sign} {word} of an array is not supported", hint=hint)


def _contains(array: exp.Expr, item: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="array_contains", expressions=[array.copy(), item.copy()])


def _any_like(node: exp.Expr, connective: type[exp.Expr], patterns: exp.Expr) -> exp.Expr | None:
    items = _items(patterns)
    single = items if items is not None else [patterns]
    made = _joined(connective, [_single(type(node), node.this, item) for item in single])
    return exp.Not(this=made) if node.args.get("negate") else made
