"""Two plans that must mean the same: their answers over random streams, by the oracle and by the operators."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.algebra.nodes import Plan
from headwater.model.delta import Delta
from headwater.testing.checks import CheckError, check_cases
from headwater.testing.choices import Dice
from headwater.testing.generate import Case, Streams, streams, whole
from headwater.testing.oracle import expected_histories
from headwater.testing.shape import sources

STREAMS_A_QUERY = 25
"""How many streams the oracle answers at once."""


def check_equivalent(before: Plan, after: Plan, count: int, *, first: int = 0, run: bool = True) -> None:
    """Raise ``CheckError`` unless the two plans have the same history over so many random streams.

    The oracle answers for both; ``run``: and the operators must give the answer of the second one.
    """
    for begin in range(first, first + count, STREAMS_A_QUERY):
        seeds = range(begin, min(begin + STREAMS_A_QUERY, first + count))
        inputs = [streams(Dice(seed), before) for seed in seeds]
        _compare(before, after, inputs)
        if run:
            names = [s.name for s in sources(after)]
            cases = zip(inputs, seeds, strict=True)
            check_cases([Case(after, {n: its[n] for n in names}, seed) for its, seed in cases])


def _compare(before: Plan, after: Plan, inputs: Sequence[Streams]) -> None:
    questions = [{s.name: whole(s.schema, its[s.name]) for s in sources(before)} for its in inputs]
    needed = {s.name for s in sources(after)}
    ours = expected_histories(before, questions)
    theirs = expected_histories(after, [{name: q[name] for name in needed} for q in questions])
    for question, one, two in zip(questions, ours, theirs, strict=True):
        if one != two:
            raise CheckError(
                f"before:\n{before}\nafter:\n{after}\nover\n{_shown(question)}\nbefore: {one}\nafter: {two}"
            )


def _shown(question: dict[str, Delta]) -> str:
    return "\n".join(f"{name}: {delta.to_batch().to_pylist()}" for name, delta in question.items())
