"""From plan text back to plans: lines by their indentation, then a rule for each kind of node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from attrs import frozen

from headwater.algebra import nodes as n
from headwater.algebra.plan_cursor import Bind, Cursor
from headwater.expressions.nodes import Expression
from headwater.expressions.printing import quoted
from headwater.expressions.rewrite import column, plain_column
from headwater.model.functions import UserFunction
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY

_LINE = re.compile(r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\n'"])*""")


def parse_plan(text: str, bind: Bind) -> n.Plan:
    """The plan that the text describes; blank lines and lines that begin with # say nothing. ``bind`` reads expressions.

    Raises a ``SqlError`` with the code PLAN_TEXT that says where it expected what.
    """
    functions: list[UserFunction] = []
    lines: list[_Line] = []
    for start, end in _lines(text):
        cursor = Cursor(text, start, end)
        if not lines and cursor.accept("function"):
            functions.append(_function(cursor))
        else:
            lines.append(_Line(text, start, end, cursor.at - start))
    if not lines:
        raise Cursor(text, len(text), len(text)).expected("a plan")
    return _build(lines, functions, bind)


# -- lines ----------------------------------------------------------------------------------------------------------


@frozen
class _Line:
    """A node's line: where it is in the text, and how far it is indented."""

    text: str
    start: int
    end: int
    indent: int

    def cursor(self, functions: Sequence[UserFunction] = (), bind: Bind | None = None) -> Cursor:
        return Cursor(self.text, self.start, self.end, functions, bind)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Where each line that says something begins and ends; a line break inside of quotes does not end it."""
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        physical = text[at:end].strip()
        if physical and not physical.startswith("#"):
            found = _LINE.match(text, at)
            end = found.end() if found else end
            if end < len(text) and text[end] != "\n":
                raise Cursor(text, end, len(text)).mistake(f"expected another {text[end]} before the end of the text")
            yield at, end
        at = end + 1


def _depths(lines: Sequence[_Line]) -> list[int]:
    """How deep in the tree each line stands; the first is the root."""
    depths = [0]
    for line in lines[1:]:
        depth, odd = divmod(line.indent - lines[0].indent, 2)
        if odd or not 1 <= depth <= depths[-1] + 1:
            allowed = [str(lines[0].indent + 2 * d) for d in range(1, depths[-1] + 2)]
            message = f"expected {' or '.join(allowed)} spaces before an input, found {line.indent}"
            raise line.cursor().mistake(message)
        depths.append(depth)
    return depths


def _build(lines: Sequence[_Line], functions: Sequence[UserFunction], bind: Bind) -> n.Plan:
    """From the last line to the first, so that a node's inputs are there before it."""
    depths = _depths(lines)
    built: list[tuple[int, n.Plan]] = []
    for line, depth in zip(reversed(lines), reversed(depths), strict=True):
        inputs = []
        while built and built[-1][0] == depth + 1:
            inputs.append(built.pop()[1])
        built.append((depth, _node(line.cursor(functions, bind), inputs)))
    return built[0][1]


def _node(cursor: Cursor, inputs: Sequence[n.Plan]) -> n.Plan:
    start = cursor.at
    for words, (needed, rule) in _RULES.items():
        if cursor.accept(*words.split()):
            if len(inputs) != needed:
                many = f"{needed} input{'' if needed == 1 else 's'}"
                message = f"{words} needs {many}, but has {len(inputs)}"
                raise cursor.mistake(message, at=start, length=cursor.at - start)
            plan = rule(cursor, *inputs)
            cursor.finish()
            return plan
    raise cursor.expected("a node", hint=f"The nodes are {', '.join(_RULES)}.")


def _function(cursor: Cursor) -> UserFunction:
    name = cursor.name("the name of the function in double quotes")
    cursor.expect("(")
    parameters = () if cursor.accept(")") else cursor.listed(cursor.type)
    if parameters:
        cursor.expect(")")
    cursor.expect("RETURNS")
    returns = cursor.type()
    cursor.expect("AS")
    path = cursor.string("the path of the function, as in 'module:attribute'")
    cursor.finish()
    return UserFunction(name, path, parameters, returns)


# -- a rule a node --------------------------------------------------------------------------------------------------


def _source(cursor: Cursor) -> n.Plan:
    name, columns = cursor.plain_name("the name of a stream"), cursor.schema()
    chronons = cursor.accept("chronons")
    revisable = not cursor.accept("final")
    unordered, checked = cursor.accept("unordered"), cursor.accept("checked")
    events = cursor.accept("events")
    key = cursor.listed(lambda: cursor.column(columns)) if events and cursor.accept("key") else ()
    flags = {"chronons": chronons, "revisable": revisable, "unordered": unordered, "checked": checked}
    return n.Source(name, columns, **flags, events=events, key=key)


def _constant(cursor: Cursor) -> n.Plan:
    columns = cursor.schema()
    rows: list[tuple[object, ...]] = []
    cursor.expect("[")
    while not cursor.accept("]"):
        if rows:
            cursor.expect(",")
        rows.append(_row(cursor, columns))
    return n.Constant(columns, tuple(rows))


def _row(cursor: Cursor, columns: Schema) -> tuple[object, ...]:
    cursor.expect("(")
    values: list[object] = []
    for type_ in columns.types:
        if values:
            cursor.expect(",")
        values.append(cursor.constant(type_))
    cursor.expect(")")
    return tuple(values)


def _filter(cursor: Cursor, below: n.Plan) -> n.Plan:
    return n.Filter(below, cursor.expression(pa.bool_(), below.schema))


def _project(cursor: Cursor, below: n.Plan) -> n.Plan:
    if cursor.at == cursor.end:
        return n.Project(below, ())
    schema = below.schema
    return n.Project(below, cursor.listed(lambda: _expression(cursor, schema)))


def _expression(cursor: Cursor, schema: Schema) -> tuple[str, Expression]:
    """``"z"``, ``"w" = "x"`` or ``"y" INT = "x" + 1``."""
    start = cursor.at
    name = cursor.name("the name of a column in double quotes")
    if cursor.at == cursor.end or cursor.accept(","):
        cursor.at = start
        return name, _reference(cursor.column(schema), schema)
    type_ = None if cursor.accept("=") else cursor.type()
    if type_ is not None:
        cursor.expect("=")
        return name, cursor.expression(type_, schema)
    start = cursor.at
    found = plain_column(cursor.expression(None, schema))
    if found is None:
        cursor.at = start
        hint = f"Anything else needs a type: {quoted(name)} BIGINT = …"
        raise cursor.expected("a column of the input in double quotes", hint=hint)
    return name, _reference(found, schema)


def _reference(name: str, schema: Schema) -> Expression:
    return column(schema.field(name))


def _union(cursor: Cursor, left: n.Plan, right: n.Plan) -> n.Plan:
    _same_types(cursor, left, right)
    return n.Union(left, right)


def _set_operation(kind: n.SetKind) -> Callable[[Cursor, n.Plan, n.Plan], n.Plan]:
    def rule(cursor: Cursor, left: n.Plan, right: n.Plan) -> n.Plan:
        _same_types(cursor, left, right)
        return n.SetOperation(left, right, kind)

    return rule


def _same_types(cursor: Cursor, left: n.Plan, right: n.Plan) -> None:
    if left.schema.types != right.schema.types:
        raise cursor.mistake(f"expected two inputs of the same types, found {left.schema} and {right.schema}")


def _join(kind: n.JoinKind) -> Callable[[Cursor, n.Plan, n.Plan], n.Plan]:
    def rule(cursor: Cursor, left: n.Plan, right: n.Plan) -> n.Plan:
        ours, theirs = left.schema, right.schema
        keys = cursor.listed(lambda: _key(cursor, ours, theirs)) if cursor.accept("on") else ()
        residual = None
        if cursor.accept("where"):
            pair = (Field(f"{side}.{f.name}", f.type, f.nullable) for side, s in (("l", ours), ("r", theirs)) for f in s)
            residual = cursor.expression(pa.bool_(), Schema(tuple(pair)))
        return n.Join(left, right, kind, keys, residual)

    return rule


def _key(cursor: Cursor, left: Schema, right: Schema) -> tuple[str, str]:
    ours = cursor.column(left, "a column of the left input in double quotes")
    cursor.expect("=")
    return ours, cursor.column(right, "a column of the right input in double quotes")


def _aggregate(cursor: Cursor, below: n.Plan) -> n.Plan:
    schema = below.schema
    keys = cursor.listed(lambda: cursor.column(schema)) if cursor.accept("by") else ()
    calls = cursor.listed(lambda: _call(cursor, schema)) if cursor.accept(":") else ()
    return n.Aggregate(below, keys, calls)


def _partial_aggregate(cursor: Cursor, below: n.Plan) -> n.Plan:
    whole = _aggregate(cursor, below)
    assert isinstance(whole, n.Aggregate)
    return n.PreAggregate(below, whole.keys, whole.calls)


def _await(cursor: Cursor, below: n.Plan, other: n.Plan) -> n.Plan:
    return n.Await(below, other, cursor.listed(lambda: cursor.column(below.schema)) if cursor.accept("by") else ())


def _call(cursor: Cursor, schema: Schema) -> n.AggregateCall:
    function = cursor.plain_name("an aggregate, such as COUNT")
    cursor.expect("(")
    distinct = cursor.accept("DISTINCT")
    argument = None if cursor.accept("*") else cursor.column(schema, "* or a column in double quotes")
    parameters = cursor.listed(cursor.constant) if cursor.accept(",") else ()
    cursor.expect(")")
    condition = cursor.column(schema) if cursor.accept("FILTER") else None
    cursor.expect("AS")
    output = cursor.name("the name of the result in double quotes")
    return n.AggregateCall(function, output, cursor.type(), argument, distinct, condition, parameters)


def _time_window(cursor: Cursor, below: n.Plan) -> n.Plan:
    size = INFINITY if cursor.accept("unbounded") else cursor.integer("a number of instants or unbounded")
    return n.TimeWindow(below, size, _slide(cursor))


def _row_window(cursor: Cursor, below: n.Plan) -> n.Plan:
    rows = cursor.integer("a number of rows")
    return n.RowWindow(below, rows, _slide(cursor), _partition(cursor, below))


def _slide(cursor: Cursor) -> int:
    return cursor.integer("a number") if cursor.accept("slide") else 1


def _offset(cursor: Cursor) -> int:
    return cursor.integer("a number") if cursor.accept("offset") else 0


def _partition(cursor: Cursor, below: n.Plan) -> tuple[str, ...]:
    return cursor.listed(lambda: cursor.column(below.schema)) if cursor.accept("partition", "by") else ()


def _hop_window(cursor: Cursor, below: n.Plan) -> n.Plan:
    cursor.expect("size")
    size = cursor.integer("a number of instants")
    cursor.expect("slide")
    slide = cursor.integer("a number of instants")
    offset, lifetime = _offset(cursor), _lifetime(cursor, slide)
    return n.HopWindow(below, size, slide, offset, *_ends(cursor), lifetime)


def _lifetime(cursor: Cursor, slide: int) -> int | None:
    if not cursor.accept("lifetime"):
        return None
    start = cursor.at
    lifetime = cursor.integer("a number of instants")
    if not 1 <= lifetime <= slide:
        message = f"expected a lifetime from 1 to the slide, {slide}, found {lifetime}"
        raise cursor.mistake(message, at=start, length=cursor.at - start)
    return lifetime


def _session_window(cursor: Cursor, below: n.Plan) -> n.Plan:
    cursor.expect("gap")
    gap = cursor.integer("a number of instants")
    return n.SessionWindow(below, gap, _partition(cursor, below), *_ends(cursor))


def _ends(cursor: Cursor) -> tuple[str, str, pa.DataType]:
    cursor.expect("as")
    start = cursor.name("the name of the window's start in double quotes")
    cursor.expect(",")
    return start, cursor.name("the name of the window's end in double quotes"), cursor.type()


def _top(cursor: Cursor, below: n.Plan) -> n.Plan:
    limit = INFINITY if cursor.accept("all") else cursor.integer("a number of rows or all")
    offset = _offset(cursor)
    order = cursor.listed(lambda: _sort_key(cursor, below.schema)) if cursor.accept("by") else ()
    partition = _partition(cursor, below)
    rank = cursor.name("the name of the rank in double quotes") if cursor.accept("as") else None
    return n.TopK(below, order, limit, offset, partition, rank)


def _sort_key(cursor: Cursor, schema: Schema) -> n.SortKey:
    column = cursor.column(schema)
    descending = cursor.accept("desc")
    if not descending:
        cursor.accept("asc")
    if cursor.accept("nulls"):
        return n.SortKey(column, descending, cursor.choice({"first": True, "last": False}))
    return n.SortKey(column, descending, nulls_first=not descending)  # Spark's defaults


def _granularity(cursor: Cursor, below: n.Plan) -> n.Plan:
    return n.Granularity(below, cursor.integer("a number of instants"), _offset(cursor))


def _sample(cursor: Cursor, below: n.Plan) -> n.Plan:
    return n.Sample(below, cursor.integer("a number of instants"), _offset(cursor))


def _stamp(cursor: Cursor, below: n.Plan) -> n.Plan:
    return n.Stamp(below, cursor.name("the name of the instant in double quotes"))


def _split(cursor: Cursor, below: n.Plan) -> n.Plan:
    return n.Split(below, cursor.integer("a number of instants"))


def _coalesce(cursor: Cursor, below: n.Plan) -> n.Plan:
    return n.Coalesce(below, INFINITY if cursor.at == cursor.end else cursor.integer("a number of instants"))


_SIGN = "the name of the sign in double quotes"

_RULES: dict[str, tuple[int, Callable[..., n.Plan]]] = {
    "source": (0, _source),
    "constant": (0, _constant),
    "filter": (1, _filter),
    "project": (1, _project),
    "union": (2, _union),
    **{f"{kind.value} join": (2, _join(kind)) for kind in n.JoinKind},
    "distinct": (1, lambda cursor, below: n.Distinct(below)),
    # "except all" before "except"
    **{kind.value: (2, _set_operation(kind)) for kind in sorted(n.SetKind, key=lambda k: -len(k.value))},
    "aggregate": (1, _aggregate),
    "partial aggregate": (1, _partial_aggregate),
    "await": (2, _await),
    "window range": (1, _time_window),
    "window rows": (1, _row_window),
    "hop": (1, _hop_window),
    "session": (1, _session_window),
    "top": (1, _top),
    "granularity": (1, _granularity),
    "sample": (1, _sample),
    "stamp": (1, _stamp),
    "split": (1, _split),
    "coalesce": (1, _coalesce),
    "istream": (1, lambda cursor, below: n.Istream(below)),
    "dstream": (1, lambda cursor, below: n.Dstream(below)),
    "to positive negative": (1, lambda cursor, below: n.ToPositiveNegative(below, cursor.name(_SIGN))),
    "from positive negative": (1, lambda cursor, below: n.FromPositiveNegative(below, cursor.name(_SIGN))),
}
"""By the words that a line begins with: how many inputs the node has, and what reads the rest of the line."""
