"""EXPLAIN: a plan as written, as optimized, or as the operators that run; as a tree, plan text, JSON or a flowchart."""

from __future__ import annotations

from collections.abc import Collection

from headwater.algebra.expressions import quoted
from headwater.algebra.nodes import Plan, Source
from headwater.algebra.plan_text import print_plan
from headwater.backends.spark.native_parts import NativePart, chain, marked
from headwater.backends.spark.native_slices import Slices, slices_of
from headwater.clock.clock import Clock
from headwater.language.consistency import STRONG, Consistency
from headwater.language.emission import ON_START
from headwater.language.introspection import Explain, ExplainFormat, ExplainLevel
from headwater.operators.base import EVERY_COLUMN, Operator
from headwater.optimizer.cost import Statistics
from headwater.optimizer.explain import outline, steps, story
from headwater.optimizer.optimize import Optimized
from headwater.optimizer.outline import Box, as_json, as_mermaid, as_tree
from headwater.runtime.explain_time import heartbeat_text
from headwater.runtime.graph import Graph
from headwater.runtime.layout import cut as levels_of
from headwater.runtime.lower import Lowering
from headwater.runtime.planning import deployed, planned
from headwater.runtime.when_shown import when_shown
from headwater.settings import Settings


def explain(
    request: Explain,
    settings: Settings | None = None,
    *,
    statistics: Statistics | None = None,
    streams: Collection[str] | None = None,
    clock: Clock | None = None,
) -> str:
    """The text that answers an EXPLAIN. ``streams``: those whose rows Spark has by itself; None: it may have all.

    ``clock``: of an engine that runs, so that it can say how far time is.
    """
    settings = settings or Settings()
    made = planned(request.plan, settings, statistics=statistics)
    if request.level is ExplainLevel.HEARTBEAT:
        aware = settings.memory_aware == "on"
        text = heartbeat_text(request, made.plan, memory_aware=aware, statistics=statistics, clock=clock)
        return f"{text}\n{_when_shown(request, made, settings)}"
    plan = request.plan if request.level is ExplainLevel.LOGICAL else made.plan
    if request.format is ExplainFormat.TEXT and request.level is not ExplainLevel.PHYSICAL:
        return print_plan(plan)
    if request.level is ExplainLevel.PHYSICAL:
        plan = deployed(made.plan, settings)
        opens = request.emission == ON_START
        root = physical(request.name, plan, consistency=request.consistency or STRONG, streams=streams, opens=opens)
    else:
        root = outline(plan, statistics=statistics, verbose=request.verbose)
    text = _rendered(root, request, made, statistics)
    if request.format is not ExplainFormat.TREE or request.level is ExplainLevel.LOGICAL:
        return text
    return f"{text}\n\n{_when_shown(request, made, settings)}"


def _when_shown(request: Explain, made: Optimized, settings: Settings) -> str:
    read = {node.name for node in made.plan.walk() if isinstance(node, Source)}
    timestamps = all(stream.has_unit for stream in request.streams if stream.name in read)
    return when_shown(deployed(made.plan, settings), request.emission, request.consistency, timestamps=timestamps)


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


def physical(
    name: str,
    plan: Plan,
    *,
    consistency: Consistency = STRONG,
    streams: Collection[str] | None = None,
    opens: bool = False,
) -> Box:
    """The operators of one query, and where each of them runs; what it computes once and uses twice is one box.

    What is native runs in Spark itself, the rest in Python: with the source, or in a stage, after rows went to their shards.
    """
    read = {node.name for node in plan.walk() if isinstance(node, Source)}
    plan, parts = marked(plan, [stream for stream in read if streams is None or stream in streams])
    graph = Graph()
    lowering = Lowering(graph)
    lowering.add_query(name, plan, consistency=consistency, opens=opens)
    native = {lowering.node_of(step) for part in parts for step in NativePart(0, part).steps}
    sliced = {slices.node for part in parts if (slices := _slices(graph, lowering, part, parts, plan)) is not None}
    layout = levels_of(graph)
    done: dict[int, Box] = {}
    for node in graph.nodes:
        if node.operator is None:
            done[node.id] = Box(node.id, f"source {node.source}", (("runs", "where the data comes in"),))
            continue
        level = layout.level_of[node.id]
        runs = "Spark" if node.id in native else f"Python, stage {level}" if level else "Python"
        runs = "Spark while it makes one row of four, else Python" if node.id in sliced else runs
        done[node.id] = _operator(node.id, node.operator, runs, tuple(done[i] for i in node.inputs))
    return done[graph.queries[name]]


def _slices(graph: Graph, lowering: Lowering, part: Plan, parts: Collection[Plan], plan: Plan) -> Slices | None:
    """The partial aggregate over a part, if it is the only part of its stream."""
    if sum(chain(other)[0] == chain(part)[0] for other in parts) > 1:
        return None
    return slices_of(graph, NativePart(lowering.node_of(part), part), [plan])


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
