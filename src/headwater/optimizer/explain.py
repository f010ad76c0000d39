"""A logical plan with what is expected of it: rates, state and when it expires, and the rules that made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from attrs import frozen

from headwater.algebra import nodes as n
from headwater.algebra.plan_text import print_plan
from headwater.algebra.properties import properties, unbounded_state
from headwater.expressions.text import to_text
from headwater.model.durations import length
from headwater.model.time import INFINITY, MICROSECONDS
from headwater.optimizer.cost import Estimate, Estimates, Statistics, estimate
from headwater.optimizer.labels import is_timed, label
from headwater.optimizer.optimize import Optimized, rules
from headwater.optimizer.outline import Box

_FIGURES = ("rate", "rows", "distinct", "nulls", "share")
"""Those that are worth a place, in their order."""
_POWERS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def outline(plan: n.Plan, *, statistics: Statistics | None = None, verbose: bool = False) -> Box:
    """The plan as boxes; equal parts are one box."""
    return _Outline(plan, estimate(plan, statistics), verbose=verbose).box(plan)


@frozen
class _Outline:
    plan: n.Plan
    estimates: Estimates
    verbose: bool

    @property
    def timed(self) -> bool:
        return is_timed(self.plan)

    def box(self, plan: n.Plan) -> Box:
        numbers = {node: i for i, node in enumerate(plan.walk())}
        growing = set(unbounded_state(plan))
        done: dict[n.Plan, Box] = {}
        for node in plan.walk():
            facts = self._facts(node, growing=node in growing)
            notes = self._notes(node) if self.verbose else ()
            inputs = tuple(done[child] for child in node.inputs)
            done[node] = Box(numbers[node], label(node, timed=self.timed), facts, notes, inputs)
        return done[plan]

    def _facts(self, node: n.Plan, *, growing: bool) -> tuple[tuple[str, str], ...]:
        found = self.estimates[node]
        facts = [("rate", rate(found, timed=self.timed))]
        if found.state.rows:
            facts.append(("state", f"{amount(found.state.rows)} rows, {size(found.state.bytes)}"))
            facts.append(("expires", "never" if growing or found.state.grows else self._expiry(node)))
        return tuple(facts)

    def _expiry(self, node: n.Plan) -> str:
        if isinstance(node, n.RowWindow):
            return f"after {node.rows:,} newer rows"
        first, *others = (properties(child).lifetime for child in node.inputs)
        if first is None or first == INFINITY or any(other != first for other in others):
            return "when its elements end"
        return f"after {length(first, timed=self.timed)}"

    def _notes(self, node: n.Plan) -> tuple[tuple[str, str], ...]:
        known = properties(node)
        notes = [("columns", ", ".join(map(str, known.schema)))]
        if known.keys:
            notes.append(("unique", " or ".join(f"({', '.join(sorted(key))})" for key in known.keys)))
        if known.lifetime is not None:
            notes.append(("lifetime", length(known.lifetime, timed=self.timed)))
        traits = [
            word for word, holds in (("ends in order", known.end_ordered), ("reducible", known.reducible)) if holds
        ]
        if traits:
            notes.append(("properties", ", ".join(traits)))
        notes.append(("alive", amount(self.estimates[node].alive)))
        return tuple(notes)


def rate(found: Estimate, *, timed: bool) -> str:
    """Elements per second, or per instant where time has no unit."""
    return _per_time(found.rate, timed=timed)


def _per_time(per_instant: float, *, timed: bool) -> str:
    many = per_instant * (MICROSECONDS["SECOND"] if timed else 1)
    return f"{amount(many)}/{'s' if timed else 'instant'}"


def figures_text(plan: n.Plan, reads: Mapping[str, Iterable[str]], statistics: Statistics) -> list[str]:
    """A line per stream: which figures are declared, measured, in the footers of its files; the others are guesses.

    ``reads``: by stream, the columns of which a figure matters.
    """
    lines, guessed = [], []
    filters = {to_text(node.predicate) for node in plan.walk() if isinstance(node, n.Filter)}
    for stream, columns in reads.items():
        by_origin: dict[str, list[str]] = {}
        for kind in _FIGURES:
            for name, (value, origin) in statistics.of(stream).figures.items():
                its_kind, _, about = name.partition("(")
                if its_kind == kind and (not about or about[:-1] in columns or about[:-1] in filters):
                    text = _per_time(value, timed=is_timed(plan)) if kind == "rate" else amount(value)
                    by_origin.setdefault(origin, []).append(f"{name.replace(chr(34), '')} {text}")
        if by_origin:
            known = "; ".join(f"{', '.join(texts)} ({origin})" for origin, texts in sorted(by_origin.items()))
            lines.append(f"Figures of {stream}: {known}; others guessed.")
        else:
            guessed.append(stream)
    return [*lines, f"Figures of {', '.join(guessed)}: guessed."] if guessed else lines


def amount(number: float) -> str:
    """``1.2 M``: three digits are all that an estimate is worth."""
    if number == float("inf"):
        return "∞"
    for power, sign in _POWERS:
        if number >= power:
            return f"{number / power:.3g} {sign}"
    return f"{number:.3g}"


def size(number: float) -> str:
    return f"{amount(number)}B" if number >= 1e3 else f"{number:.0f} B"


def story(before: n.Plan, made: Optimized, *, statistics: Statistics | None = None) -> list[str]:
    """Which rules changed what, and what it saved: for VERBOSE."""
    laws = {rule.name: rule for rule in rules()}
    uses = Counter(firing.rule for firing in made.firings)
    saved = estimate(before, statistics).cost.score, estimate(made.plan, statistics).cost.score
    lines = [f"Estimated cost {saved[0]:.4g} as written, {saved[1]:.4g} optimized; rules used:"]
    for name, count in uses.items():
        lines.append(f"  {name} x{count} ({made.seconds[name] * 1000:.1f} ms): {laws[name].law}")
    return lines if uses else ["No rule applies."]


def steps(made: Optimized) -> list[dict[str, str]]:
    """Every use of a rule, with the plan text before and after."""
    return [
        {"rule": firing.rule, "before": print_plan(firing.before), "after": print_plan(firing.after)}
        for firing in made.firings
    ]
