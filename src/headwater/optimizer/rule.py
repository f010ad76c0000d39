"""What a law is to the optimizer: an equation between plans, its condition, and a rewriting at one node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import frozen

from headwater.algebra.nodes import Plan
from headwater.expressions.nodes import Expression
from headwater.model.schema import Schema
from headwater.optimizer.estimation.estimates import Estimate


class Native(Protocol):
    """What another engine than Python can do with rows that it has: a backend says so."""

    def has(self, stream: str) -> bool:
        """Are the rows of the stream there?"""
        ...

    def carries(self, schema: Schema) -> bool:
        """Can it have rows of these columns?"""
        ...

    def computes(self, scalar: Expression) -> bool:
        """Can it compute the expression, of rows of these columns, exactly as Python does?"""
        ...


class Context(Protocol):
    """What a rewriting may ask for."""

    @property
    def native(self) -> Native: ...

    def cost(self, plan: Plan) -> float:
        """The estimated cost of a plan; shared parts count once."""
        ...

    def estimate(self, plan: Plan) -> Estimate:
        """What is expected of the plan's output."""
        ...


Rewriting = Callable[..., Plan | None]
"""The plan that may stand in the node's place, or None where the law does not apply."""


@frozen
class Rule:
    """A law, and how to use it at a node.

    A ``choice`` is a law that may pay or not: it is used only where the whole plan becomes cheaper. A ``physical`` one is
    used once the plan is chosen: it says how that plan runs. One that needs to see the ``whole`` plan is tried at its root.
    """

    name: str
    law: str
    condition: str
    source: str
    """Where the law comes from."""
    on: tuple[type[Plan], ...]
    """The nodes at which it can begin."""
    rewrite: Rewriting
    choice: bool = False
    physical: bool = False
    whole: bool = False

    @property
    def kind(self) -> str:
        return "choice" if self.choice else "physical" if self.physical else "law"

    def __call__(self, plan: Plan, context: Context) -> Plan | None:
        return self.rewrite(plan, context)


def rule(
    *on: type[Plan],
    law: str,
    source: str,
    condition: str = "none",
    choice: bool = False,
    physical: bool = False,
    whole: bool = False,
) -> Callable[[Rewriting], Rule]:
    """Make a function ``(node, context) -> Plan | None`` the rule of its name."""

    def made(rewrite: Rewriting) -> Rule:
        return Rule(rewrite.__name__, law, condition, source, on, rewrite, choice, physical, whole)

    return made
