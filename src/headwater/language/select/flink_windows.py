"""GROUP BY TUMBLE(ts, …), HOP and SESSION with TUMBLE_START(ts, …) and the like, as older texts for Flink have them.

They are Spark's ``window(…)`` and ``session_window(…)`` in other words; the rows are grouped by both ends of the window,
and the auxiliary functions are these.
"""

from __future__ import annotations

from sqlglot import exp

from headwater.language.text import error_on, span

_WINDOWS: dict[str, tuple[str, tuple[int, ...]]] = {
    "TUMBLE": ("window", (0, 1)),
    "HOP": ("window", (0, 2, 1)),  # Flink has the slide before the size
    "SESSION": ("session_window", (0, 1)),
}
"""What each is called in Spark, and which of its arguments stand where there."""
_EXAMPLES = {
    "TUMBLE": "TUMBLE(ts, INTERVAL '1' MINUTE)",
    "HOP": "HOP(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTES), the slide before the size",
    "SESSION": "SESSION(ts, INTERVAL '5' MINUTES)",
}
_FIELDS = ("START", "END", "ROWTIME", "PROCTIME")


def is_flink_window(node: exp.Expr) -> bool:
    """``TUMBLE(ts, …)`` where an expression stands."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in _WINDOWS


def names_a_field(node: exp.Expr) -> bool:
    """``TUMBLE_START(ts, …)`` and the like."""
    window, _, field = node.name.upper().partition("_")
    return isinstance(node, exp.Anonymous) and window in _WINDOWS and field in _FIELDS


def in_sparks_words(text: str, call: exp.Expr) -> exp.Expr:
    """The call of GROUP BY as ``window(…)`` or ``session_window(…)``; others as they are."""
    if not is_flink_window(call):
        return call
    name = call.name.upper()
    spark, places = _WINDOWS[name]
    if len(call.expressions) != len(places):
        message = f"{name} takes {len(places)} arguments in GROUP BY, not {len(call.expressions)}"
        raise error_on(text, call, "WRONG_ARGUMENTS", message, hint=f"For example: GROUP BY {_EXAMPLES[name]}.")
    found = exp.Anonymous(this=spark, expressions=[call.expressions[i].copy() for i in places])
    found.update_positions(call)
    found.meta["written"] = name
    return found


def fields(written: str) -> tuple[str, str]:
    """What the ends of the window are called: ``tumble_start`` and ``tumble_end``."""
    return f"{written.lower()}_start", f"{written.lower()}_end"


def field_of(text: str, call: exp.Expr | None, node: exp.Expr) -> exp.Expr:
    """What ``TUMBLE_START(…)`` and the like mean in a query whose GROUP BY has the call."""
    window, _, field = node.name.upper().partition("_")
    if field == "PROCTIME":
        hint = f"Time is in the data: order the stream by a column (ORDERED BY), and write {window}_END."
        raise error_on(text, node, "UNSUPPORTED", f"{node.name} is not supported", hint=hint)
    if call is None or call.name.upper() != window or call.expressions != node.expressions:
        end = "start" if field == "START" else "end"
        raise error_on(
            text,
            node,
            "WRONG_ARGUMENTS",
            f"{node.name.upper()} needs a {window} with the same arguments in GROUP BY",
            hint=f"Write GROUP BY {window}{_arguments(text, node)}; "
            f"or FROM {window}(TABLE s, DESCRIPTOR(ts), …) and window_{end}.",
        )
    start, end = (exp.column(exp.to_identifier(name).update_positions(node)) for name in fields(window))
    if field != "ROWTIME":
        return start if field == "START" else end
    millisecond = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("MILLISECOND"))
    return exp.Sub(this=end, expression=millisecond)


def _arguments(text: str, node: exp.Expr) -> str:
    """As they are written, in their parentheses."""
    start, end = span(node) or (0, 0)
    opening, closing = text.find("(", start), text.find(")", end)
    return text[opening : closing + 1] if 0 <= opening < closing else "(…)"
