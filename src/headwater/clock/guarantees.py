"""What can be said before any row has come: does time always advance, and who may hold it up (Srivastava & Widom 3.4)?

The theorem, as corrected (digest E6): a query needs no time-out exactly if every stream, diagonal included, ends up with
a lag of 0 behind every other one. Only bounds in time count, since rows may never come; no bound at all is an endless lag.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headwater.clock.along import goes_along
from headwater.clock.bounds import smallest_lag
from headwater.clock.domains import Domain, domains_of
from headwater.clock.lags import ENOUGH_ROWS
from headwater.clock.rules import Rules, StreamRules
from headwater.language.durations import shown_duration
from headwater.language.notices import Notice


class Lagging(NamedTuple):
    """A pair of streams (perhaps one and the same) for which silence leaves rows waiting."""

    leader: str
    laggard: str
    lag: int | None
    """Rows of the leader this far behind its newest one wait; None: all of them."""


def timeout_needed(rules: Rules, streams: Iterable[str]) -> list[Lagging]:
    """The pairs that make a time-out necessary for a query over these streams."""
    timed = _timed(rules, streams)
    found = []
    for leader in timed:
        for laggard in timed:
            lag = smallest_lag(rules.usable(leader, laggard))
            # What is learned reaches 0 at long delays as a rule, or time passes; but nobody vouches for it.
            its = rules.streams[laggard]
            learned = its.estimated is not None and (leader == laggard or its.learns_wall_clock)
            spoken_for = _speaks_itself(rules.streams[laggard]) or goes_along(rules, laggard)
            if lag != 0 and not learned and not spoken_for:
                found.append(Lagging(leader, laggard, lag))
    return found


def blocking(rules: Rules, streams: Iterable[str]) -> list[Lagging]:
    """The pairs of which the laggard, if it falls silent, blocks a query for ever while the leader goes on.

    A time-out does not help: it waits for all to be silent. IDLE AFTER does, and so does the wall clock. Heartbeats of
    the source help as long as it sends them.
    """
    known = _known(rules, streams)
    return [
        Lagging(leader, laggard, None)
        for laggard in known
        for leader in known
        if leader != laggard
        and not rules.usable(leader, laggard)
        and rules.streams[laggard].idle is None
        and not rules.streams[laggard].stamped
        and not goes_along(rules, laggard)
    ]


def told_by_source(rules: Rules, streams: Iterable[str]) -> list[str]:
    """The streams that are final only as far as their sources say: nothing else ever raises their frontiers to the end."""
    known = _known(rules, streams)
    return [name for name in known if _speaks_itself(rules.streams[name]) and not goes_along(rules, name)]


def notices_of_query(rules: Rules, streams: Sequence[str], *, together: Iterable[frozenset[str]] = ()) -> list[Notice]:
    """What to say when a query over these streams starts."""
    return [
        *_blocking_notices(rules, streams),
        *_timeout_notices(rules, streams, together),
        *(notice for name in _known(rules, streams) for notice in _latency_notices(rules, name)),
        *(notice for name in _known(rules, streams) for notice in _warmup_notices(rules.streams[name])),
    ]


def longest_wait(rules: Rules, streams: Iterable[str]) -> tuple[int, str]:
    """The longest delay and latency together after which a bound between these streams takes effect; and the bound."""
    names = set(streams)
    waits = [(0, "")]
    for laggard in names & rules.streams.keys():
        for leader in names & rules.streams.keys():
            latency = rules.streams[laggard].latency or 0
            waits += [(b.after + latency, rules.reason(leader, laggard, b)) for b in rules.usable(leader, laggard)]
    return max(waits)


def _timed(rules: Rules, streams: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(streams) if name in rules.streams and rules.streams[name].has_time]


def _known(rules: Rules, streams: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(streams) if name in rules.streams]


def _speaks_itself(rules: StreamRules) -> bool:
    """Does only the source say how far it is: by heartbeats, or by the stable points of a changelog?"""
    return rules.heartbeat is not None or not (rules.has_time or rules.stamped)


def _blocking_notices(rules: Rules, streams: Sequence[str]) -> list[Notice]:
    def is_learned(name: str) -> bool:
        return rules.streams[name].estimated is not None

    leaders: dict[str, list[str]] = {}
    for leader, laggard, _ in blocking(rules, streams):
        leaders.setdefault(laggard, []).append(f'"{leader}"')
    return [
        Notice(
            "CAN_BLOCK", f'stream "{name}" can block the query{"" if is_learned(name) else " for ever"}: {why}', hint
        )
        for name, its in leaders.items()
        for why, hint in (_why_it_blocks(rules.streams[name], its),)
    ]


def _why_it_blocks(its: StreamRules, leaders: Sequence[str]) -> tuple[str, str]:
    bounds = "Bound it (LAGS … BY AT MOST …)"
    along = ", say ALONG WALL CLOCK [WITHIN …]" if its.has_unit else ""
    idle = "or say IDLE AFTER … if others need not wait for it."
    if not its.has_time:
        return "only its source says how far it is", "Let its source send stable points also when nothing changes."
    if its.estimated is not None:
        rows = max(ENOUGH_ROWS, its.estimated.warmup_rows)
        return (
            f"until {rows:,} of its rows have come, nobody knows how far it lags {_all(leaders)}",
            f"{bounds}{along}, {idle}",
        )
    if its.heartbeat is not None:
        return f"only its source says how far it is ({its.heartbeat})", f"{bounds}{along}, {idle}"
    return f"no bound says how far it lags {_all(leaders)}", f"{bounds}{along}, let it send heartbeats, {idle}"


def _timeout_notices(rules: Rules, streams: Sequence[str], together: Iterable[frozenset[str]]) -> list[Notice]:
    domains = [d for d in domains_of(rules, (*together, frozenset(streams))) if d.streams & set(streams)]
    found = []
    for domain in domains:
        pairs = timeout_needed(rules, [s for s in streams if s in domain.streams])
        if domain.timeout is not None:
            found += _short_timeouts(rules, domain)
        elif pairs:
            message = f"the last rows wait for newer ones when the streams fall silent: {_shown_pairs(rules, pairs)}"
            found.append(Notice("TIMEOUT_NEEDED", message, _offered(rules, pairs)))
    return found


def _offered(rules: Rules, pairs: Sequence[Lagging]) -> str:
    """What would make the last rows final."""
    laggards = dict.fromkeys(pair.laggard for pair in pairs)
    clocks = [f'"{name}"' for name in laggards if rules.streams[name].has_unit]
    hint = "Declare TIMEOUT on one of the streams to make them final."
    if len(clocks) < len(laggards):
        return hint
    return f"{hint} Or ALONG WALL CLOCK [WITHIN …] on {_all(clocks, 'and')}: then time passes in silence."


def _latency_notices(rules: Rules, stream: str) -> list[Notice]:
    """Bounds that can never take effect."""
    bounds = {**rules.bounds, (stream, stream): rules.streams[stream].own}
    unusable = [
        rules.reason(leader, laggard, bound)
        for (leader, laggard), promised in bounds.items()
        if laggard == stream
        for bound in promised
        if bound not in rules.usable(leader, laggard)
    ]
    if not unusable:
        return []
    message = f'the LATENCY of stream "{stream}" is unknown, so {", ".join(dict.fromkeys(unusable))} promises nothing'
    hint = (
        "Declare LATENCY beside ORDERED TRANSPORT, or leave out both if the bounds describe the stream as it arrives."
    )
    return [Notice("UNKNOWN_LATENCY", message, hint)]


def _warmup_notices(its: StreamRules) -> list[Notice]:
    """Answers that stay empty at first."""
    if its.estimated is None or not its.estimated.warmup_rows:
        return []
    message = (
        f'nothing of stream "{its.name}" is final before {its.estimated.warmup_rows:,} of its rows have come:'
        " only then is it judged how far they are out of order"
    )
    hint = "Declare it: IN ORDER, or DISORDER …; or learn from the first row on: HEARTBEAT ESTIMATED (WARMUP 0 ROWS)."
    return [Notice("WARMUP", message, hint)]


def _short_timeouts(rules: Rules, domain: Domain) -> list[Notice]:
    """A time-out that fires while a bound still waits contradicts it silently (digest E19)."""
    wait, reason = longest_wait(rules, domain.streams)
    if domain.timeout is None or domain.timeout >= wait:
        return []
    longest = shown_duration(wait, unit=True)
    message = f"{domain.reason} is shorter than the {longest} after which {reason} takes effect"
    return [Notice("SHORT_TIMEOUT", message, "Rows that are within their bounds may be late.")]


def shown_lag(rules: Rules, pair: Lagging) -> str:
    """The pair as a person reads it."""
    unit = rules.streams[pair.laggard].has_unit
    lag = "without a bound" if pair.lag is None else f"up to {shown_duration(max(pair.lag - 1, 0), unit=unit)}"
    if pair.leader == pair.laggard:
        return f'"{pair.laggard}" may lag its own newest row {lag}'
    return f'"{pair.laggard}" may lag "{pair.leader}" {lag}'


def _shown_pairs(rules: Rules, pairs: Sequence[Lagging]) -> str:
    shown = [shown_lag(rules, pair) for pair in pairs[:3]]
    return ", ".join(shown) + (f" and {len(pairs) - 3} more" if len(pairs) > 3 else "")


def _all(names: Sequence[str], last: str = "or") -> str:
    return f" {last} ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
