"""What becomes of a query's answer as time goes on: Istream, Dstream, Rstream, INTERNAL windows, restore (Golab 3.3, 3.4).

Over INTERNAL windows results do not expire: the answer is the stream of all results, each at the instant at which it came
to be. An aggregate or a top-k is one answer of the whole window, and with SLIDE there is one at every refresh, equal to
the last one or not. Any other result is born of rows that arrived, and every one counts: rows are stamped with their
arrival, so that equal results of different rows are not the same.

With restore, a query that is refreshed every SLIDE also tells what came and went since the last refresh. For that it runs
without the SLIDE; what it shows is put off until the refresh. Let τ_r be the answer at the refresh r, and B_r what was
born since the one before. Istream-restore shows B_r. Rstream-restore shows the larger multiplicity of τ_r and B_r: all
that is there, and what was born and is gone.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen
from sqlglot import exp

from headwater.algebra.nodes import Granularity, Istream, Plan, Sample, SetKind, SetOperation, TimeWindow
from headwater.errors import SqlError
from headwater.language.notices import Notice
from headwater.language.parsing.syntax import RelationToStream, StreamWindow, TableFunction
from headwater.language.relations.from_items import RELATION_TO_STREAM
from headwater.language.relations.internal_windows import SIZED, check_internal, never_expires, own_windows
from headwater.language.relations.windows import instants
from headwater.language.scope import Column, project, reference
from headwater.language.select.aggregates import calls_aggregate
from headwater.language.select.negation import negation
from headwater.language.select.ordering import chooses_rows
from headwater.language.select.select_list import relation_to_stream
from headwater.language.text import error_on

_RESTORED = ("ISTREAM-RESTORE", "RSTREAM-RESTORE")


@frozen
class OutputStream:
    """How the answer of one SELECT becomes what it gives."""

    query: exp.Select
    """The query whose answer it is: as written, or without SLIDE."""
    kind: str | None = None
    """ISTREAM, DSTREAM, RSTREAM, INTERNAL, ISTREAM-RESTORE, RSTREAM-RESTORE; None: the answer itself."""
    period: int | None = None
    """How many instants lie between two refreshes, where that matters."""
    stamped: bool = False
    """Does every result count? Then rows carry the instant of their arrival."""

    @property
    def compares_instants(self) -> bool:
        return self.kind not in (None, "RSTREAM")

    def applied(self, plan: Plan, columns: Sequence[Column]) -> Plan:
        """The stream, from a plan that has these columns, and stamps beside them."""

        def visible(stream: Plan) -> Plan:
            return project(stream, [(c.name, reference(c)) for c in columns])

        period = self.period or 1
        match self.kind:
            case None:
                return plan
            case "INTERNAL" if self.period is not None:
                return Sample(visible(plan), period, period - 1)
            case "INTERNAL":
                return visible(Istream(plan))
            case "ISTREAM-RESTORE":
                return Sample(visible(TimeWindow(Istream(plan), period, period)), period, period - 1)
            case "RSTREAM-RESTORE":
                there, born = Granularity(plan, period, period - 1), TimeWindow(Istream(plan), period, period)
                return visible(SetOperation(there, born, SetKind.MAX_UNION))
        return RELATION_TO_STREAM[self.kind](plan)


def output_stream(text: str, node: exp.Select, notices: list[Notice]) -> OutputStream:
    """What a SELECT makes of its answer, from its text."""
    kind, windows = relation_to_stream(node), list(own_windows(node))
    internal = next((w for w in windows if w.args.get("internal")), None)
    if kind in _RESTORED:
        return _restored(text, node, kind)
    if internal is None and not node.args.get("internal"):
        return OutputStream(node, kind)
    if kind in ("DSTREAM", "RSTREAM"):
        raise never_expires(text, internal or node, kind)
    if internal is not None:
        check_internal(text, node, windows)
    elif (negated := negation(node)) is not None:
        notices.append(_kept_on(negated[0]))
    period = _refreshes(text, windows) if _is_one_answer(node) else None
    return OutputStream(node, "INTERNAL", period, stamped=_counts_every_result(node))


# -- windows of the query ---------------------------------------------------------------------------------------------


def _is_one_answer(node: exp.Select) -> bool:
    """Is it computed of all rows together, group by group?"""
    grouped = any(node.args.get(clause) for clause in ("group", "having"))
    return grouped or chooses_rows(node) or any(calls_aggregate(e) for e in node.expressions)


def _counts_every_result(node: exp.Select) -> bool:
    return not _is_one_answer(node) and not node.args.get("distinct")


def _refreshes(text: str, windows: Sequence[StreamWindow]) -> int | None:
    """The SLIDE of all windows; None if there is an answer whenever something changes."""
    sized = [w for w in windows if w.this in SIZED]
    sliding = [w for w in sized if w.this == "RANGE" and w.args.get("slide") is not None]
    if not sliding:
        return None
    period = _slide(text, sliding[0])
    for window in sized:
        if window not in sliding or _slide(text, window) != period:
            raise _uneven(text, window)
    return period


def _slide(text: str, window: StreamWindow) -> int:
    return instants(text, window.args["slide"], "the slide of a window")


def _uneven(text: str, window: StreamWindow) -> SqlError:
    return error_on(
        text,
        window,
        "WINDOW_SLIDE",
        "all windows must have the same SLIDE",
        detail="Where they are refreshed at different times, there is no one time of the answer.",
        hint="Give every window RANGE … SLIDE … with the same SLIDE.",
    )


def _kept_on(what: str) -> Notice:
    message = f"Wstream keeps results of {what} that do not hold any more"
    return Notice("EXPIRED_RESULTS", message, "Without Wstream the answer is always that of the moment.")


# -- restore ----------------------------------------------------------------------------------------------------------


def _restored(text: str, node: exp.Select, kind: str) -> OutputStream:
    """The same query, not refreshed but at once; everything that it reads has the one SLIDE."""
    windows = [w for w in _everywhere(node) if isinstance(w, StreamWindow) and w.this in SIZED]
    name = f"{kind.partition('-')[0].capitalize()}-restore"
    for window in windows:
        if window.args.get("internal"):
            message = f"{name} has no meaning over INTERNAL windows"
            detail = "It shows what expired too soon to be seen, and results of INTERNAL windows never expire."
            raise error_on(text, window, "INTERNAL_WINDOW", message, detail=detail, hint="Leave INTERNAL out.")
    period = _refreshes(text, windows)
    if period is None:
        place = windows[0] if windows else node
        detail = "It shows what came and went between two refreshes."
        hint = "For example: [RANGE 1 MINUTE SLIDE 10 SECONDS]."
        raise error_on(text, place, "WINDOW_SLIDE", f"{name} needs windows with a SLIDE", detail=detail, hint=hint)
    for item in _everywhere(node):
        if isinstance(item, (TableFunction, RelationToStream)):
            what = item.this.name if isinstance(item, TableFunction) else item.this.name.capitalize()
            hint = "Give it a name, WITH … AS, and read from that."
            raise error_on(text, item, "UNSUPPORTED", f"{name} cannot look into {what}", hint=hint)
    at_once = node.copy()
    for window in _everywhere(at_once):
        if isinstance(window, StreamWindow):
            window.set("slide", None)
    return OutputStream(at_once, kind, period, stamped=_counts_every_result(node))


def _everywhere(node: exp.Select) -> list[exp.Expr]:
    """The query and its sub-queries, but not what has a name of its own (WITH)."""
    return list(node.walk(prune=lambda n: isinstance(n, exp.With)))
