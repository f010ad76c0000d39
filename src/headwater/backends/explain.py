"""EXPLAIN: a plan as written, as optimized, or as the operators that run; as a tree, plan text, JSON or a flowchart."""

from __future__ import annotations

from collections.abc import Collection

from headwater.algebra.nodes import Plan, Source
from headwater.algebra.plan_text import print_plan
from headwater.backends.spark.native_parts import NativePart, SparkRows, chain
from headwater.backends.spark.native_slices import Slices, slices_of
from headwater.clock.clock import Clock
from headwater.clock.explain import explain_heartbeat
from headwater.clock.rules import rules_of
from headwater.expressions.printing import quoted
from headwater.language.consistency import STRONG, Consistency
from headwater.language.emission import ON_START
from headwater.language.introspection import Answer, Explain, ExplainFormat, ExplainLevel
from headwater.operators.base import EVERY_COLUMN, Operator
from headwater.optimizer.cost import Statistics, estimate
from headwater.optimizer.explain import figures_text, outline, steps, story
from headwater.optimizer.optimize import Optimized
from headwater.optimizer.outline import Box, as_json, as_mermaid, as_tree
from headwater.optimizer.physical.memory_aware import labeled
from headwater.optimizer.plan_query import logical_only, plan_query
from headwater.runtime.graph import Graph
from headwater.runtime.known_statistics import declared_statistics
from headwater.runtime.layout import cut as levels_of
from headwater.runtime.lower import Lowering
from headwater.runtime.plan_keys import read_columns
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

    ``statistics``: what is known of the streams; None: what is declared.
    ``clock``: of an engine that runs, so that it can say how far time is.
    """
    settings = settings or Settings()
    statistics = declared_statistics(request.streams) if statistics is None else statistics
    made = plan_query(request.plan, settings, statistics=statistics, native=SparkRows(streams))
    if request.level is ExplainLevel.HEARTBEAT:
        aware = settings.memory_aware == "on"
        text = _heartbeat_text(request, made.logical, statistics, clock, memory_aware=aware)
        return f"{text}\n{_when_shown(request, made)}"
    plan = request.plan if request.level is ExplainLevel.LOGICAL else made.logical
    if request.format is ExplainFormat.TEXT and request.level is not ExplainLevel.PHYSICAL:
        return print_plan(plan)
    if request.level is ExplainLevel.PHYSICAL:
        opens = request.emission == ON_START
        root = physical(request.name, made, consistency=request.consistency or STRONG, opens=opens)
    else:
        root = outline(plan, statistics=statistics, verbose=request.verbose)
    text = _rendered(root, request, made, statistics)
    if request.format is not ExplainFormat.TREE or request.level is ExplainLevel.LOGICAL:
        return text
    known = figures_text(plan, read_columns(plan), statistics) if request.level is ExplainLevel.OPTIMIZED else []
    return "\n".join([text, "", *known, _when_shown(request, made)])


def shown(answer: Answer | Explain, settings: Settings) -> str:
    """What SHOW, DESCRIBE or EXPLAIN says, as text."""
    return str(answer) if isinstance(answer, Answer) else explain(answer, settings)


def _heartbeat_text(
    request: Explain, plan: Plan, statistics: Statistics | None, clock: Clock | None, *, memory_aware: bool
) -> str:
    """What a query waits for, from the promises of its streams to the labels of its operators.

    ``plan``: as it runs. ``clock``: of an engine that runs; without one, only what is declared.
    """
    running = clock if clock is not None and all(name in clock.progress for name in plan.streams) else None
    rules = running.rules if running is not None else rules_of(request.streams)  # nobody reads some of them yet
    estimates = estimate(plan, statistics)
    tree = labeled(plan, lambda node: estimates[node].rate)
    return explain_heartbeat(rules, plan.streams, running, plan=tree, links=None if memory_aware else {})


def _when_shown(request: Explain, made: Optimized) -> str:
    timestamps = all(stream.has_unit for stream in request.streams if stream.name in made.plan.streams)
    return when_shown(made.plan, request.emission, request.consistency, timestamps=timestamps)


def _rendered(root: Box, request: Explain, made: Optimized, statistics: Statistics) -> str:
    told = request.verbose and request.level is not ExplainLevel.LOGICAL
    made = made if request.level is ExplainLevel.PHYSICAL else logical_only(made)
    match request.format:
        case ExplainFormat.JSON:
            more = {"rules": steps(made)} if told else {}
            more |= {"statistics": known} if (known := statistics.to_manifest()) else {}
            return as_json(root, query=request.name, level=request.level.value, **more)
        case ExplainFormat.MERMAID:
            return as_mermaid(root)
    lines = [as_tree(root)]
    if told:
        lines += ["", *story(request.plan, made, statistics=statistics)]
    return "\n".join(lines)


# -- the operators that run -------------------------------------------------------------------------------------------


def physical(name: str, made: Optimized, *, consistency: Consistency = STRONG, opens: bool = False) -> Box:
    """The operators of one query, and where each of them runs; what it computes once and uses twice is one box.

    What is native runs in Spark itself, the rest in Python: with the source, or in a stage, after rows went to their shards.
    """
    plan, parts = made.plan, made.parts
    declared = {node.name: node.schema for node in made.logical.walk() if isinstance(node, Source)}
    graph = Graph()
    lowering = Lowering(graph)
    lowering.add_query(name, plan, consistency=consistency, opens=opens)
    native = {lowering.node_of(step) for part in parts for step in NativePart(0, part).steps}
    sliced = {slices.node for part in parts if (slices := _slices(graph, lowering, part, parts, plan)) is not None}
    layout = levels_of(graph)
    done: dict[int, Box] = {}
    for node in graph.nodes:
        if node.operator is None:
            facts = [("runs", "where the data comes in")]
            if node.source is not None and len(node.schema) < len(declared[node.source]):
                facts.append(("reads", ", ".join(node.schema.names)))
            done[node.id] = Box(node.id, f"source {node.source}", tuple(facts))
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
