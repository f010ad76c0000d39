"""``headwater explain``: what the queries of a script do, and the rules of the optimizer."""

from __future__ import annotations

from headwater.backends.explain import shown
from headwater.language.catalog import Stream
from headwater.language.introspection import Explain, ExplainFormat, ExplainLevel
from headwater.language.script import Script, no_query
from headwater.optimizer.optimize import rules


def script_text(script: Script, level: str, form: str, *, verbose: bool) -> str:
    """The answers to the script's questions; or else its queries explained, each under its name if there are several."""
    if script.answers:
        return "\n\n".join(shown(answer, script.settings) for answer in script.answers)
    requests = _requests(script, ExplainLevel(level), ExplainFormat(form), verbose=verbose)
    if len(requests) == 1:
        return shown(requests[0], script.settings)
    return "\n\n".join(f"{r.name}:\n{shown(r, script.settings)}" for r in requests)


def _requests(script: Script, level: ExplainLevel, form: ExplainFormat, *, verbose: bool) -> list[Explain]:
    queries = list(script.selects or script.named)
    if not queries:
        raise no_query(script)
    streams = tuple(entry for entry in script.catalog if isinstance(entry, Stream))
    return [Explain(q.name, q.plan, level, form, verbose, q.consistency, streams) for q in queries]


_KINDS = {"choice": " (a choice: used where it is cheaper)", "physical": " (physical: how the chosen plan runs)"}


def rules_text() -> str:
    """Every rule with its law, its condition and where it comes from."""
    lines = []
    for rule in rules():
        lines += [f"{rule.name}{_KINDS.get(rule.kind, '')}", f"    {rule.law}"]
        lines += [f"    if {rule.condition}"] if rule.condition != "none" else []
        lines.append(f"    {rule.source}")
    return "\n".join(lines)
