"""Conditions on sub-queries, recognised in the syntax: EXISTS, IN, ANY, ALL and comparisons with one row."""

from __future__ import annotations

from attrs import evolve, frozen
from sqlglot import exp

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.GTE: ">=",
    exp.GT: ">",
    exp.LTE: "<=",
}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_QUANTIFIED = (exp.Any, exp.All)
_QUERIES = (exp.Query, exp.Subquery)


@frozen
class Condition:
    """``outer operator quantifier (query)`` in normal form."""

    kind: str
    """EXISTS, IN, ANY, ALL, or VALUE for a comparison with a sub-query of one row."""
    node: exp.Expr
    query: exp.Expr
    outer: tuple[exp.Expr, ...] = ()
    """What the columns of the sub-query are compared with."""
    operator: str = "="
    negated: bool = False
    """Only for EXISTS and IN; elsewhere another operator says it."""

    def negate(self) -> Condition:
        """True exactly where this one is false."""
        match self.kind:
            case "ANY":
                return evolve(self, kind="ALL", operator=NEGATED[self.operator])
            case "ALL":
                return evolve(self, kind="ANY", operator=NEGATED[self.operator])
            case "VALUE":
                return evolve(self, operator=NEGATED[self.operator])
        return evolve(self, negated=not self.negated)


def recognise(node: exp.Expr) -> Condition | None:
    """The condition on a sub-query that the node is; None if it is something else."""
    match node:
        case exp.Paren():
            return recognise(node.this)
        case exp.Not():
            inner = recognise(node.this)
            return inner.negate() if inner else None
        case exp.Exists():
            return Condition("EXISTS", node, node.this)
        case exp.In() if node.args.get("query"):
            return Condition("IN", node, node.args["query"], _operands(node.this))
    if type(node) not in COMPARISONS:
        return None
    left, right, operator = node.this, node.expression, COMPARISONS[type(node)]
    if isinstance(left, (*_QUANTIFIED, exp.Subquery)) and not isinstance(right, (*_QUANTIFIED, exp.Subquery)):
        left, right, operator = right, left, _FLIPPED[operator]
    if isinstance(right, _QUANTIFIED) and isinstance(right.this, _QUERIES):
        kind = type(right).__name__.upper()
        # = ANY and <> ALL are IN and NOT IN, and computed as these.
        if (kind, operator) in (("ANY", "="), ("ALL", "<>")):
            return Condition("IN", node, right.this, _operands(left), negated=kind == "ALL")
        return Condition(kind, node, right.this, _operands(left), operator)
    if isinstance(right, exp.Subquery):
        return Condition("VALUE", node, right, _operands(left), operator)
    return None


def _operands(node: exp.Expr) -> tuple[exp.Expr, ...]:
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node,)


def as_value(node: exp.Expr) -> Condition | None:
    """The condition, if it must be computed as one: comparisons with one value are plain expressions."""
    condition = None if isinstance(node, exp.Paren) else recognise(node)
    if condition is not None and condition.kind == "VALUE" and len(condition.outer) == 1:
        return None
    return condition


def only_truth_matters(predicate: exp.Expr) -> set[int]:
    """The parts of a predicate that may be false instead of NULL, by their ids: operands of AND and OR."""
    match predicate:
        case exp.And() | exp.Or():
            return only_truth_matters(predicate.this) | only_truth_matters(predicate.expression)
        case exp.Paren():
            return only_truth_matters(predicate.this)
    return {id(predicate)}


def conditions_of_cases(node: exp.Expr) -> set[int]:
    """The same for what stands after WHEN, anywhere in the expression."""
    cases = [c for c in node.find_all(exp.Case) if c.this is None]
    return {part for case in cases for branch in case.args["ifs"] for part in only_truth_matters(branch.this)}
