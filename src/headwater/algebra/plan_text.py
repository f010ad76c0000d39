"""Plans as text that people and tests read and write: one node per line, its inputs below it, two spaces further in.

    aggregate by "auction": COUNT(*) AS "n" BIGINT
      window range 10 slide 2
        filter "price" > 10
          source bid (auction BIGINT, price DOUBLE NOT NULL) chronons final

``parse_plan(print_plan(plan)) == plan``. A node
that is shared is written at each of its places. Functions of users are declared on lines before the tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.algebra import nodes as n
from headwater.errors import HeadwaterError
from headwater.expressions.printing import quoted
from headwater.model.functions import UserFunction
from headwater.model.types import sql_name, string_literal


def print_plan(plan: n.Plan) -> str:
    """The plan as text, without a line break at the end.

    >>> print(print_plan(n.Distinct(n.Source("s", Schema.of(x="INT"), chronons=True))))
    distinct
      source s (x INT) chronons
    """
    return "\n".join([*_declarations(plan), *_tree(plan)])


def _tree(plan: n.Plan) -> Iterator[str]:
    waiting = [(plan, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield "  " * depth + node.line()
        waiting += [(child, depth + 1) for child in reversed(node.inputs)]


def _declarations(plan: n.Plan) -> Iterator[str]:
    declared: dict[str, UserFunction] = {}
    for function in (f for node in plan.walk() for scalar in node.scalars for f in scalar.functions):
        known = declared.setdefault(function.name, function)
        if known != function:
            raise HeadwaterError("PLAN_TEXT", f'the plan calls two functions of the name "{function.name}"')
    for function in declared.values():
        taken = ", ".join(sql_name(t) for t in function.parameters)
        returned = sql_name(function.returns)
        yield f"function {quoted(function.name)} ({taken}) RETURNS {returned} AS {string_literal(function.path)}"
