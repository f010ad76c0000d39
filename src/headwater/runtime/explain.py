"""EXPLAIN: a plan as written, as optimized, or as the operators that run; as a tree, plan text, JSON or a flowchart."""

from __future__ import annotations

from headwater.algebra.expressions import quoted
from headwater.algebra.nodes import Plan
from headwater.algebra.plan_text import print_plan
from headwater.language.consistency import MIDDLE
from headwater.language.introspection import Explain, ExplainFormat, ExplainLevel
from headwater.operators.base import EVERY_COLUMN, Operator
from headwater.optimizer.cost import Statistics
from headwater.optimizer.explain import outline, steps, story
from headwater.optimizer.optimize import Optimized
from headwater.optimizer.outline import Box, as_json, as_mermaid, as_tree
from headwater.runtime.graph import Graph, Node
from headwater.runtime.lower import lower
from headwater.runtime.planning import planned
from headwater.settings import Settings


def explain(request: Explain, settings: Settings | None = None, *, statistics: Statistics | None = None) -> str:
    """The text that answers an EXPLAIN."""
    made = planned(request.plan, settings or Settings(), statistics=statistics)
    plan = request.plan if request.level is ExplainLevel.LOGICAL else made.plan
    if request.format is ExplainFormat.TEXT and request.level is not ExplainLevel.PHYSICAL:
        return print_plan(plan)
    if request.level is ExplainLevel.PHYSICAL:
        root = physical(request.name, plan, speculative=request.consistency == MIDDLE)
    else:
        root = outline(plan, statistics=statistics, verbose=request.verbose)
    return _rendered(root, request, made, statistics)


def _rendered(root: Box, request: Explain, made: Optimized, statistics: Statistics | None) -> str:
    told = request.verbose and request.level is not ExplainLevel.LOGICAL
    match request.format:
        case ExplainFormat.JSON:
            rules = {"rules": steps(made)} if told else {}
            return as_json(root, query=request.name, level=request.level.value, **rules)
        case ExplainFormat.MERMAID:
            return as_mermaid(root)
    lines = [as_tree(root)]
    if told:
        lines += ["", *story(request.plan, made, statistics=statistics)]
    return "\n".join(lines)


# -- the operators that run -------------------------------------------------------------------------------------------


def physical(name: str, plan: Plan, *, speculative: bool) -> Box:
    """The graph of operators of one query; what it computes once and uses twice is one box."""
    graph = lower({name: plan}, speculative=speculative)
    done: dict[int, Box] = {}
    for node in graph.nodes:
        done[node.id] = _operator(node, graph, tuple(done[i] for i in node.inputs))
    return done[graph.queries[name]]


def _operator(node: Node, graph: Graph, inputs: tuple[Box, ...]) -> Box:
    operator = node.operator
    if operator is None:
        return Box(node.id, f"source {node.source}", (("runs", "where the data comes in"),))
    facts = [("routed", routed)] if (routed := _routed(operator)) else []
    described = {key: text for key, value in operator.describe().items() if (text := _shown(value))}
    about = ", ".join(f"{key} {text}" for key, text in described.items())
    label = f"{operator.name}{f' ({about})' if about else ''}"
    return Box(node.id, label, tuple(facts), (), inputs)


def _routed(operator: Operator) -> str:
    """How rows find their shard."""
    ways = []
    for columns in operator.routing():
        if columns is None:
            continue
        if columns == EVERY_COLUMN:
            ways.append("by the whole row")
        else:
            ways.append(f"by {', '.join(columns)}" if columns else "to one shard")
    return " | ".join(dict.fromkeys(ways))


def _shown(value: object) -> str:
    if value is None or value == () or value is False:
        return ""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value))
    if isinstance(value, dict):
        return ", ".join(name if text == quoted(name) else f"{text} AS {name}" for name, text in value.items())
    return str(value)
