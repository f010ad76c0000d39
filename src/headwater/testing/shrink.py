"""From a failing case to a small one that still fails, shown so that a person can rerun it by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from attrs import evolve

from headwater.algebra.nodes import AggregateCall, Plan, Source
from headwater.errors import StreamError
from headwater.expressions.nodes import Expression
from headwater.expressions.text import to_text
from headwater.model.element import Element
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.model.validity import StreamValidator
from headwater.testing.generate import Case, Streams
from headwater.testing.shape import sources
from headwater.testing.timeline import render_timeline


def shrink(case: Case, fails: Callable[[Case], bool], *, attempts: int = 400) -> Case:
    """Greedily drop plan levels and elements as long as the case still fails."""
    left = attempts
    smaller = True
    while smaller and left > 0:
        smaller = False
        for candidate in _smaller(case):
            left -= 1
            if left <= 0:
                break
            if fails(candidate):
                case, smaller = candidate, True
                break
    return case


def describe(case: Case) -> str:
    """The case as text: the plan, one node per line, and every stream as a timeline."""
    lines = [f"seed {case.seed}", *_tree(case.plan, "")]
    for source in sources(case.plan):
        lines.append(f"{source.name}{source.schema}: {render_timeline(case.streams[source.name])}")
    return "\n".join(lines)


def _smaller(case: Case) -> Iterator[Case]:
    for plan in _smaller_plans(case.plan):
        kept = {s.name: case.streams[s.name] for s in sources(plan)}
        yield Case(plan, kept, case.seed)
    for name, stream in case.streams.items():
        size = len(stream)
        while size > 0:
            for at in range(0, len(stream), size):
                rest = _valid(_source(case.plan, name).schema, [*stream[:at], *stream[at + size :]])
                if len(rest) < len(stream):
                    streams: Streams = {**case.streams, name: rest}
                    yield evolve(case, streams=streams)
            size //= 2


def _smaller_plans(plan: Plan) -> Iterator[Plan]:
    """Sub-plans first, then plans with one node less somewhere inside."""
    yield from (child for child in plan.inputs if not isinstance(child, Source))
    for i, child in enumerate(plan.inputs):
        fitting = [p for p in child.inputs if p.schema == child.schema]
        for replacement in [*fitting, *_smaller_plans(child)]:
            if replacement.schema == child.schema:
                yield plan.with_inputs(*plan.inputs[:i], replacement, *plan.inputs[i + 1 :])


def _source(plan: Plan, name: str) -> Source:
    return next(s for s in sources(plan) if s.name == name)


def _valid(schema: Schema, elements: Sequence[Element]) -> list[Element]:
    """The elements without those that are invalid now that others are gone."""
    validator = StreamValidator(schema)
    kept = []
    for element in elements:
        try:
            validator.check_element(element)
        except StreamError:
            continue
        kept.append(element)
    return kept


def _tree(plan: Plan, indent: str) -> Iterator[str]:
    yield f"{indent}{type(plan).__name__}({', '.join(_fields(plan))})"
    for child in plan.inputs:
        yield from _tree(child, indent + "  ")


def _fields(plan: Plan) -> Iterator[str]:
    for attribute in plan.__attrs_attrs__:  # type: ignore[attr-defined]
        if not attribute.metadata.get("input"):
            yield f"{attribute.name}={_text(getattr(plan, attribute.name))}"


def _text(value: object) -> str:
    if isinstance(value, Expression):
        return to_text(value)
    if isinstance(value, AggregateCall):
        distinct = "DISTINCT " if value.distinct else ""
        taken = f" FILTER {value.filter}" if value.filter else ""
        return f"{value.output}={value.function}({distinct}{value.argument or '*'}){taken}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, (Schema, pa.DataType)):
        return str(value)
    return "infinity" if value == INFINITY else repr(value)
