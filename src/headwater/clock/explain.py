"""EXPLAIN HEARTBEAT: all that is known of the time of a query's streams, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headwater.clock.bounds import Bounds
from headwater.clock.clock import Clock
from headwater.clock.domains import domains_of
from headwater.clock.guarantees import notices_of_query, timeout_needed, told_by_source
from headwater.clock.relations import WALL
from headwater.clock.rules import Rules, StreamRules
from headwater.language.durations import shown_duration
from headwater.model.time import BEGINNING, render
from headwater.optimizer.physical.wait_labels import Labeled, assign_labels


def explain_heartbeat(
    rules: Rules,
    streams: Sequence[str],
    clock: Clock | None = None,
    *,
    plan: Labeled | None = None,
    links: Mapping[str, str] | None = None,
) -> str:
    """What a query over these streams waits for, as text.

    Parameters
    ----------
    rules
        Of all streams.
    streams
        Those that the query reads.
    clock
        Of a running engine: adds how far the streams are.
    plan
        The query's operators: adds the streams that each of them waits for.
    links
        From operators to those that they wait with; None: to save memory.
    """
    names = [s for s in dict.fromkeys(streams) if s in rules.streams]
    leaders = [WALL, *names]
    sections = [("streams", [_stream(rules.streams[name], rules) for name in names])]
    sections += [("bounds as declared", _matrix(rules, rules.relations.declared(), leaders))]
    derived = {e: b for e, b in _all_bounds(rules).items() if b != rules.relations.declared().get(e, ())}
    sections += [("bounds that follow along chains", _matrix(rules, derived, leaders))]
    sections += [("time domains", _domains(rules, names))]
    if plan is not None:
        labels = assign_labels(plan, links)
        sections += [("operators wait for", [f"{name}: {', '.join(sorted(label))}" for name, label in labels.items()])]
    sections += [("progress", _progress(rules, names))]
    if clock is not None:
        sections += [("now", [_now(clock, name) for name in names] + _blockers(clock, names))]
    return "\n".join(line for title, lines in sections if lines for line in (title, *(f"  {text}" for text in lines)))


def _stream(its: StreamRules, rules: Rules) -> str:
    if not its.has_time:
        says = "rows get the time at which they come" if its.stamped else "only its source says how far it is"
        return f"{its.name}: no time column; {says}"
    parts = [rules.reason(WALL, its.name, bound) for bound in rules.bounds.get((WALL, its.name), ())]
    parts += [rules.reason(its.name, its.name, bound) for bound in (*its.own, *its.rows)]
    parts += [its.text("PartitionSkew")] if its.partition_skew else []
    parts += [its.estimated.sql(unit=its.has_unit)] if its.estimated is not None else []
    parts += [f"HEARTBEAT FROM SOURCE ({its.heartbeat})"] if its.heartbeat else []
    parts += [_transport(its)]
    parts += [f"SENT AT {its.sent}"] if its.sent else []
    parts += [its.text("Timeout")] if its.timeout is not None else []
    parts += [its.text("IdleAfter")] if its.idle is not None else []
    return f"{its.name}: {'; '.join(dict.fromkeys(parts))}"


def _transport(its: StreamRules) -> str:
    if its.latency is None:
        return "ordered, latency unknown"
    if its.ordered and not its.latency:
        return "as it arrives"
    low = f"{shown_duration(its.low, unit=True)} to " if its.low else ""
    return f"{'ordered' if its.ordered else 'unordered'}, latency {low}{shown_duration(its.latency, unit=True)}"


def _all_bounds(rules: Rules) -> dict[tuple[str, str], Bounds]:
    return {**{(n, n): r.own for n, r in rules.streams.items() if r.own}, **rules.bounds}


def _matrix(rules: Rules, matrix: Mapping[tuple[str, str], Bounds], names: Sequence[str]) -> list[str]:
    return [
        f"{leader} -> {laggard}: {', '.join(_bound(rules, laggard, b.after, b.lag) for b in matrix[leader, laggard])}"
        for leader in names
        for laggard in names
        if laggard != WALL and matrix.get((leader, laggard))
    ]


def _bound(rules: Rules, laggard: str, after: int, lag: int) -> str:
    """A lag as the paper has it, strict: 0 is "newer than"."""
    unit = rules.streams[laggard].has_unit
    shown = "newer than it" if lag == 0 else f"at most {shown_duration(lag - 1, unit=unit)} older"
    return f"{shown} after {shown_duration(after, unit=True)}" if after else shown


def _domains(rules: Rules, names: Sequence[str]) -> list[str]:
    found = []
    for domain in domains_of(rules, [frozenset(names)]):
        if domain.streams & set(names):
            members = ", ".join(sorted(domain.streams))
            found.append(f"{members}: {domain.reason or 'no TIMEOUT'}")
    return found


def _progress(rules: Rules, names: Sequence[str]) -> list[str]:
    notices = [f"{n.code}: {n.message}" for n in notices_of_query(rules, names)]
    timed_out = {s for d in domains_of(rules, [frozenset(names)]) if d.timeout is not None for s in d.streams}
    told = [name for name in told_by_source(rules, names) if name not in timed_out]
    notices += [
        f"{name} is final as far as its source says, and no further: {_word(rules.streams[name])}" for name in told
    ]
    if not timeout_needed(rules, names) and not told:
        learned = any(rules.streams[n].estimated is not None for n in names)
        sure = "no TIMEOUT is needed, as far as bounds are learned" if learned else "no TIMEOUT is needed"
        notices.append(f"everything becomes final even if all streams fall silent: {sure}")
    return notices


def _word(its: StreamRules) -> str:
    """How the source of a stream says how far it is."""
    return f"HEARTBEAT FROM SOURCE ({its.heartbeat})" if its.heartbeat else "stable points"


def _now(clock: Clock, name: str) -> str:
    unit = clock.rules.streams[name].has_unit
    parts = [f"{name}: frontier {render(clock.frontier(name), timestamps=unit)}"]
    parts += [f"set by {clock.reason(name)}"] if clock.reason(name) else []
    newest, upcoming = clock.newest(name), clock.next_raise(name)
    parts += [f"newest row {render(newest, timestamps=unit)}"] if newest > BEGINNING else ["no row yet"]
    if upcoming is not None:
        frontier, due = render(upcoming.frontier, timestamps=unit), render(upcoming.due, timestamps=True)
        parts += [f"becomes {frontier} at {due} by {upcoming.reason}"]
    late = clock.late(name)
    parts += [f"{sum(late.values())} rows late"] if late else []
    return ", ".join(parts)


def _blockers(clock: Clock, names: Iterable[str]) -> list[str]:
    blockers = clock.blocked_by(names)
    return [f"held back by {', '.join(blockers)}"] if blockers else []
