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
from headwater.runtime.graph import Node
from headwater.runtime.layout import cut as levels_of
from headwater.runtime.lower import lower
from headwater.runtime.planning import planned
from headwater.runtime.spark.prefix import cut
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
    """The operators of one query, and where each of them runs; what it computes once and uses twice is one box.

    Native parts run in Spark itself, the others in Python: with the source, or in a stage, after rows went to their shards.
    """
    native, rest = cut(plan)
    graph = lower({name: rest}, speculative=speculative)
    layout = levels_of(graph)
    boxes = _Boxes()
    done: dict[int, Box] = {}
    for node in graph.nodes:
        if node.source in native:
            done[node.id] = boxes.native(native[node.source])
        else:
            level = layout.level_of[node.id]
            runs = f"Python, stage {level}" if level else "Python"
            done[node.id] = boxes.of(node, runs, tuple(done[i] for i in node.inputs))
    return done[graph.queries[name]]


class _Boxes:
    """Numbers the boxes of several graphs; a source is the same box in all of them."""

    def __init__(self) -> None:
        self._sources: dict[str, Box] = {}
        self._made = 0

    def native(self, part: Plan) -> Box:
        """The operators of a native part, as Spark's own."""
        graph = lower({"part": part}, speculative=True)
        done: dict[int, Box] = {}
        for node in graph.nodes:
            done[node.id] = self.of(node, "Spark", tuple(done[i] for i in node.inputs))
        return done[graph.queries["part"]]

    def of(self, node: Node, runs: str, inputs: tuple[Box, ...]) -> Box:
        if node.operator is None:
            assert node.source is not None
            if node.source not in self._sources:
                box = Box(self._next(), f"source {node.source}", (("runs", "where the data comes in"),))
                self._sources[node.source] = box
            return self._sources[node.source]
        return _operator(self._next(), node.operator, runs, inputs)

    def _next(self) -> int:
        self._made += 1
        return self._made - 1


def _operator(id_: int, operator: Operator, runs: str, inputs: tuple[Box, ...]) -> Box:
    facts = [("runs", runs)]
    if routed := _routed(operator):
        facts.append(("routed", routed))
    described = {key: text for key, value in operator.describe().items() if (text := _shown(value))}
    about = ", ".join(f"{key} {text}" for key, text in described.items())
    label = f"{operator.name}{f' ({about})' if about else ''}"
    return Box(id_, label, tuple(facts), (), inputs)


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
