"""Two plans that must mean the same: their answers over random streams, by the oracle and by the operators."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from headwater.algebra.nodes import Plan
from headwater.model.delta import Delta
from headwater.model.element import Element, Stable
from headwater.testing.checks import CheckError, check_cases
from headwater.testing.choices import Dice
from headwater.testing.generate import Case, Streams, streams, whole
from headwater.testing.oracle import expected_histories
from headwater.testing.shape import sources

STREAMS_PER_QUERY = 25
"""How many streams the oracle answers at once."""


def check_equivalent(before: Plan, after: Plan, count: int, *, first: int = 0, run: bool = True) -> None:
    """Raise ``CheckError`` unless the two plans have the same history over so many random streams.

    The oracle answers for both; ``run``: and the operators must give the answer of the second one.
    """
    for begin in range(first, first + count, STREAMS_PER_QUERY):
        seeds = range(begin, min(begin + STREAMS_PER_QUERY, first + count))
        inputs = [streams(Dice(seed), before) for seed in seeds]
        _compare(before, after, inputs)
        if run:
            cases = zip(inputs, seeds, strict=True)
            check_cases([Case(after, as_read(its, before, after), seed) for its, seed in cases])


def as_read(its: Streams, before: Plan, after: Plan) -> Streams:
    """Streams for one plan as another one reads them: fewer of them, or fewer columns."""
    declared = {s.name: s.schema for s in sources(before)}
    found: dict[str, Sequence[Element]] = {}
    for source in sources(after):
        places = [declared[source.name].index(name) for name in source.schema.names]
        narrow = len(places) < len(declared[source.name])
        found[source.name] = [_narrowed(e, places) for e in its[source.name]] if narrow else its[source.name]
    return found


def _narrowed(element: Element, places: Sequence[int]) -> Element:
    return element if isinstance(element, Stable) else evolve(element, row=tuple(element.row[i] for i in places))


def _compare(before: Plan, after: Plan, inputs: Sequence[Streams]) -> None:
    questions = [{s.name: whole(s.schema, its[s.name]) for s in sources(before)} for its in inputs]
    ours = expected_histories(before, questions)
    theirs = expected_histories(
        after, [{s.name: q[s.name].select(s.schema) for s in sources(after)} for q in questions]
    )
    for question, one, two in zip(questions, ours, theirs, strict=True):
        if one != two:
            raise CheckError(
                f"before:\n{before}\nafter:\n{after}\nover\n{_shown(question)}\nbefore: {one}\nafter: {two}"
            )


def _shown(question: dict[str, Delta]) -> str:
    return "\n".join(f"{name}: {delta.to_batch().to_pylist()}" for name, delta in question.items())
