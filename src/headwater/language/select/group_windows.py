"""GROUP BY window(ts, '10 minutes') and session_window(ts, '5 minutes'), as users of Spark write HOP and SESSION.

The call becomes a column ``window`` (or ``session_window``), a STRUCT of the window's start and end, of the rows that are
grouped; what else the query says of the call means that column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import HopWindow, Plan, SessionWindow
from headwater.algebra.properties import RowTimes, row_times
from headwater.errors import SqlError
from headwater.expressions import nodes
from headwater.language.catalog import Stream
from headwater.language.expressions import ExpressionBinder
from headwater.language.parsing.syntax import Duration
from headwater.language.predicates import struct
from headwater.language.relations.joins import with_columns
from headwater.language.relations.table_functions import Around, at_their_times, hop, type_of_time
from headwater.language.relations.windows import instants
from headwater.language.scope import Bound, Column, Item, NameSource, Relation, Scope, project, reference
from headwater.language.select.flink_windows import field_of, fields, in_sparks_words, is_flink_window, names_a_field
from headwater.language.text import error_on

_CALL = "window_call"
_WRITTEN = "'{}'"
_PARAMETERS = {"window": "(time, size [, slide [, start]])", "session_window": "(time, gap)"}
_LENGTH = re.compile(r"\s*(?:interval\s+)?([-+]?[\d.]+)\s+([a-z]+)\s*", re.IGNORECASE)


def with_window_column(text: str, node: exp.Select) -> exp.Select:
    """The query with a column in place of its call in GROUP BY, if it has one."""
    group = node.args.get("group")
    calls = [e for e in (g.unnest() for g in group.expressions) if is_window_call(e)] if group is not None else []
    if len(calls) > 1:
        raise error_on(text, calls[1], "UNSUPPORTED", "GROUP BY can have one window only")
    written = calls[0] if calls else None
    if written is None and not any(map(names_a_field, node.find_all(exp.Anonymous))):
        return node

    def replaced(inner: exp.Expr) -> exp.Expr:
        if inner.find_ancestor(exp.Query) is not None:  # another query's
            return inner
        if names_a_field(inner):
            return field_of(text, written, inner)
        if inner != written or is_flink_window(inner):
            return inner
        return exp.Column(this=exp.to_identifier(inner.name.lower()).update_positions(inner))

    rewritten = node.copy()
    for key in ("expressions", "group", "having", "qualify", "order"):
        value = rewritten.args.get(key)
        if isinstance(value, list):
            rewritten.set(key, [v.transform(replaced) for v in value])
        elif value is not None:
            rewritten.set(key, value.transform(replaced))
    if written is not None:
        rewritten.set(_CALL, in_sparks_words(text, written))
    if written is not None and is_flink_window(written):
        keys = [[g] if g.unnest() != written else _ends_of(written) for g in rewritten.args["group"].expressions]
        rewritten.args["group"].set("expressions", [key for listed in keys for key in listed])
    return rewritten


def _ends_of(call: exp.Expr) -> list[exp.Expr]:
    return [exp.column(exp.to_identifier(name).update_positions(call)) for name in fields(call.name)]


def is_window_call(node: exp.Expr) -> bool:
    """Of GROUP BY: Spark's or Flink's."""
    return is_flink_window(node) or (isinstance(node, exp.Anonymous) and node.name.lower() in _PARAMETERS)


class GroupWindow:
    """The window of one query's GROUP BY: first its column, and the rows with it once the keys are known."""

    def __init__(
        self, call: exp.Expr, scope: Scope, names: NameSource, times: RowTimes, streams: Sequence[Stream]
    ) -> None:
        self._scope, self._call, self._times, self._streams = scope, call, times, streams
        name, arguments = call.name.lower(), call.expressions
        written = call.meta.get("written")
        most = 4 if name == "window" else 2
        if not 2 <= len(arguments) <= most:
            message = f'function "{name}" takes {"2 to 4" if most == 4 else "2"} arguments, not {len(arguments)}'
            raise self.error(call, "WRONG_ARGUMENTS", message, hint=f"Write {name}{_PARAMETERS[name]}.")
        time = ExpressionBinder(scope, "GROUP BY").bind(arguments[0])
        self._time = type_of_time(scope.text, time, scope.items, written or name, times)
        self._lengths = [self._length(a) for a in arguments[1:]]
        self._ends = (names.unique("window_start"), names.unique("window_end"))
        self._names = names
        self.sessions: SessionWindow | None = None
        """Those of session_window, once the rows are known: they never end."""
        type_ = pa.struct([("start", self._time), ("end", self._time)])
        self.column = Column(name, names.unique(name), type_, nullable=False)
        self._visible: tuple[Column, ...] = (self.column,)
        if written is not None:
            pairs = zip(fields(written), self._ends, strict=True)
            self._visible = tuple(Column(shown, end, self._time, nullable=False) for shown, end in pairs)

    @classmethod
    def of(cls, node: exp.Select, scope: Scope, names: NameSource, plan: Plan, around: Around) -> GroupWindow | None:
        """That of a query over the rows of a plan, if it has one."""
        call = node.args.get(_CALL)
        if call is None:
            return None
        return cls(call, scope, names, row_times(plan, around.time_column), around.times(plan))

    def error(self, node: exp.Expr, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self._scope.text, node, code, message, hint=hint)

    def announced(self, relation: Relation) -> Relation:
        """The column is in sight, or both ends of Flink's window; the plan does not have them yet."""
        return evolve(relation, items=(*relation.items, Item(self._visible)))

    def over(self, relation: Relation, keys: Sequence[Bound]) -> Relation:
        """The rows in their windows; sessions are those of the other keys."""
        plan, text = at_their_times(relation.plan, self._times), self._scope.text
        if self.column.name == "window":
            size, slide, offset = hop(text, *[*self._lengths, None, None][:3], times=self._streams, written=_WRITTEN)
            windowed: Plan = HopWindow(plan, size, slide, offset, *self._ends, self._time)
        else:
            ours = {c.internal for c in self._visible}
            others = [k for k in keys if k.column not in ours]
            plan, partition = with_columns(plan, others, self._names)
            gap = instants(text, self._lengths[0], "the gap of a session", self._streams, _WRITTEN)
            windowed = SessionWindow(plan, gap, tuple(dict.fromkeys(partition)), *self._ends, self._time)
            self.sessions = windowed
        if self.column not in self._visible:
            return relation.over(windowed)
        ends = zip(("start", "end"), (nodes.Column(e, self._time) for e in self._ends), strict=True)
        kept = [(f.name, reference(f)) for f in plan.schema]
        return relation.over(project(windowed, [*kept, (self.column.internal, struct(dict(ends)))]))

    def _length(self, node: exp.Expr) -> exp.Expr:
        """``'10 minutes'``, ``INTERVAL '10' MINUTES``, or a number of instants."""
        number = unit = None
        if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) and node.args.get("unit"):
            number, unit = node.this.name, node.args["unit"].name
        elif isinstance(node, exp.Literal) and (written := _LENGTH.fullmatch(node.name)) and node.is_string:
            number, unit = written[1], written[2]
        elif isinstance(node, exp.Literal) and not node.is_string:
            number = node.name
        if number is None:
            hint = "Write a number and a unit, for example: '10 minutes'."
            raise self.error(node, "WINDOW_SIZE", "the lengths of a window must be constants", hint=hint)
        place = node if "start" in node.meta else node.find(exp.Literal) or node
        duration = Duration(this=number, unit=None if unit is None else exp.var(unit).update_positions(place))
        return duration.update_positions(place)
