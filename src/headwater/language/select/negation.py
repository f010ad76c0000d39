"""What takes results back when more arrives: DISTINCT, and tests that something is not there."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

_WORDS: dict[type[exp.Expr], str] = {
    exp.Exists: "NOT EXISTS",
    exp.In: "NOT IN",
    exp.All: "a comparison with ALL",
    exp.Any: "NOT … ANY",
}
_CONDITIONS = ("where", "having", "qualify")


def negation(node: exp.Select) -> tuple[str, exp.Expr] | None:
    """The first duplicate elimination or negation of a SELECT, and where it is; a join that fills up with NULL is one."""
    if node.args.get("distinct"):
        return "DISTINCT", node
    for join in node.args.get("joins") or ():
        side, kind = str(join.args.get("side") or ""), str(join.args.get("kind") or "")
        if kind == "ANTI" or (side and kind != "SEMI"):
            return f"{'ANTI' if kind == 'ANTI' else side} JOIN", join.this
    conditions = [node.args[clause].this for clause in _CONDITIONS if node.args.get(clause)]
    conditions += [join.args["on"] for join in node.args.get("joins") or () if join.args.get("on") is not None]
    return next((found for condition in conditions for found in _negated(condition)), None)


def _negated(condition: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    for node in condition.walk(prune=lambda n: isinstance(n, exp.Query)):
        if type(node) not in _WORDS or node.find(exp.Query) is None:
            continue
        inside, turned = node, isinstance(node, exp.All)
        while inside is not condition:
            assert inside.parent is not None
            inside = inside.parent
            turned ^= isinstance(inside, exp.Not)
        if turned:
            yield _WORDS[type(node)], node
