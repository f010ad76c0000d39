"""Random typed plans: every logical operator, over one to three sources, small enough for the oracle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa
from attrs import evolve

from headwater.algebra.nodes import (
    FRAME_AGGREGATES,
    Aggregate,
    AggregateCall,
    Coalesce,
    Constant,
    Distinct,
    Dstream,
    Filter,
    FrameCall,
    Frames,
    Granularity,
    HopWindow,
    Istream,
    Join,
    JoinKind,
    Plan,
    Project,
    RowWindow,
    Sample,
    SessionWindow,
    SetKind,
    SetOperation,
    SortKey,
    Source,
    Split,
    Stamp,
    TimeWindow,
    TopK,
    Union,
    Unnest,
)
from headwater.expressions.aggregates import AGGREGATES, packed
from headwater.expressions.nodes import Call, Cast, Column, Expression, Literal
from headwater.expressions.rewrite import column
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.model.types import sql_name, sql_type
from headwater.testing.choices import Choices
from headwater.testing.expression_text import bind_text
from headwater.testing.generate import DECIMAL, NUMBERS, PAIR, row
from headwater.testing.shape import grows_for_ever

_COMMON_TYPES = [sql_type(name) for name in ("BIGINT", "STRING", "DOUBLE", "BOOLEAN", "INT")]
_RARE_TYPES = [sql_type(name) for name in ("SMALLINT", "FLOAT", "DATE", "TIMESTAMP", "BINARY")]
_RARE_TYPES += [DECIMAL, NUMBERS, PAIR]
_LITERALS = {
    pa.int32(): "1",
    pa.int64(): "1",
    pa.float64(): "1.0",
    pa.string(): "'b'",
    pa.bool_(): "true",
    pa.int16(): "1",
    pa.float32(): "1.0",
    pa.date32(): "DATE '2026-01-02'",
    pa.timestamp("us"): "TIMESTAMP '2026-01-01 12:00:00'",
    pa.binary(): "'b'::BLOB",
    DECIMAL: "1.25",
}
_CROWD = 48
"""About how many rows an instant may have before a plan stops growing wider."""


def quoted(name: str) -> str:
    return f'"{name}"'


def schema(choices: Choices, prefix: str = "", *, columns: int = 3) -> Schema:
    """One to three columns; the first is a BIGINT or a STRING, so that there is something to group and join by."""
    types = [choices.pick(_COMMON_TYPES[:2])]
    for _ in range(choices.integer(0, columns - 1)):
        types.append(choices.pick(_RARE_TYPES if choices.chance(20) else _COMMON_TYPES))
    return Schema.of(**{f"{prefix}{'kvwxyz'[i]}": t for i, t in enumerate(types)})


def source(choices: Choices, name: str, prefix: str = "", *, columns: int = 3) -> Source:
    return Source(
        name, schema(choices, prefix, columns=columns), chronons=choices.chance(40), revisable=choices.chance(75)
    )


def constant(choices: Choices, prefix: str = "") -> Constant:
    """Up to four rows of the common types."""
    types = [choices.pick(_COMMON_TYPES[:2]), *(choices.pick(_COMMON_TYPES) for _ in range(choices.integer(0, 1)))]
    columns = Schema.of(**{f"{prefix}{'kv'[i]}": t for i, t in enumerate(types)})
    return Constant(columns, tuple(row(choices, columns) for _ in range(choices.integer(0, 4))))


# -- expressions ----------------------------------------------------------------------------------------------------


def predicate(choices: Choices, of: Schema) -> Expression:
    """A BOOLEAN over one or two columns."""
    field = choices.pick(of.fields)
    name = quoted(field.name)
    literal = _LITERALS.get(field.type)
    if literal is None or choices.chance(15):
        text = f"{name} IS NOT NULL"
    elif field.type == pa.bool_():
        text = choices.pick([name, f"NOT {name}"])
    else:
        others = [f for f in of if f.type == field.type and f.name != field.name]
        if others and choices.chance(30):
            text = f"{name} <= {quoted(choices.pick(others).name)}"
        else:
            text = f"{name} {choices.pick(['>=', '<', '<>', '='])} {literal}"
    if choices.chance(15):
        text = f"({text}) OR {name} IS NULL"
    return bind_text(text, of)


def expression(choices: Choices, of: Schema) -> Expression:
    """A column, or something simple made of one."""
    field = choices.pick(of.fields)
    name = quoted(field.name)
    if choices.chance(50):
        return column(field)
    if pa.types.is_integer(field.type):
        text = choices.pick([f"{name} + 1", f"{name} % 2", f"-{name}", f"coalesce({name}, 7)"])
        return bind_text(f"CAST({text} AS {sql_name(field.type)})", of)
    if field.type == pa.float64():
        return bind_text(choices.pick([f"{name} * 2.0", f"coalesce({name}, 0.0)"]), of)
    if field.type == pa.string():
        return bind_text(choices.pick([f"{name} || 'x'", f"upper({name})", f"coalesce({name}, 'n')"]), of)
    return bind_text(f"{name} IS NULL", of)


def project(choices: Choices, plan: Plan) -> Project:
    count = choices.integer(1, 3)
    return Project(plan, tuple((f"p{i}", expression(choices, plan.schema)) for i in range(count)))


def conform(choices: Choices, plan: Plan, like: Schema) -> Plan:
    """The plan with columns of the given types; missing ones become NULL."""
    if plan.schema.types == like.types:
        return plan
    chosen = []
    for field in like:
        fitting = [f for f in plan.schema if f.type == field.type]
        missing = Cast(Literal(None, pa.null()), field.type)
        chosen.append((field.name, column(choices.pick(fitting)) if fitting else missing))
    return Project(plan, tuple(chosen))


# -- operators ------------------------------------------------------------------------------------------------------


def join(choices: Choices, left: Plan, right: Plan, *, kind: JoinKind | None = None, how: str | None = None) -> Join:
    """``how``: equi, theta (no key), both, or cross."""
    if set(left.schema.names) & set(right.schema.names):
        left, right = _prefixed(left, "a_"), _prefixed(right, "b_")
    kind = choices.pick(list(JoinKind)) if kind is None else kind
    pairs = [(a.name, b.name) for a in left.schema for b in right.schema if a.type == b.type and a.type in _LITERALS]
    how = choices.pick(["equi", "equi", "both", "theta", "cross"]) if how is None else how
    if not pairs and how != "cross":
        one = [fresh(name, left.schema.names + right.schema.names) for name in ("a_one", "b_one")]
        left, right = _with_constant(left, one[0]), _with_constant(right, one[1])
        pairs = [(one[0], one[1])]
    keys: tuple[tuple[str, str], ...] = ()
    residual = None
    if how in ("equi", "both"):
        keys = tuple(dict.fromkeys(choices.pick(pairs) for _ in range(choices.pick([1, 1, 2]))))
    if how in ("theta", "both"):
        a, b = choices.pick(pairs)
        sides = Column(f"l.{a}", left.schema.field(a).type), Column(f"r.{b}", right.schema.field(b).type)
        residual = Call(choices.pick(["<", "<=", "<>"]), sides, pa.bool_())
    return Join(left, right, kind, keys, residual)


def _prefixed(plan: Plan, prefix: str) -> Project:
    return Project(plan, tuple((prefix + f.name, column(f)) for f in plan.schema))


def _with_constant(plan: Plan, name: str) -> Project:
    kept = tuple((f.name, column(f)) for f in plan.schema)
    return Project(plan, (*kept, (name, Cast(Literal("1", pa.int32()), pa.int64()))))


def call(choices: Choices, of: Schema, output: str, functions: Sequence[str] | None = None) -> AggregateCall:
    """One aggregate that the columns allow; COUNT(*) when none of the wished functions fits."""
    options: list[tuple[str, str, pa.DataType]] = []
    for field in of:
        options += [(f, field.name, t) for f, t in _functions_of(field.type) if functions is None or f in functions]
    flags = [f.name for f in of if f.type == pa.bool_()]
    chosen = choices.pick(flags) if flags and choices.chance(35) else None
    if not options or (choices.chance(20) and (functions is None or "COUNT" in functions)):
        return AggregateCall("COUNT", output, pa.int64(), filter=chosen)
    function, argument, type_ = choices.pick(options)
    distinct = choices.chance(25) and not AGGREGATES[function].deaf
    parameters = choices.pick(AGGREGATES[function].samples)
    return AggregateCall(function, output, type_, argument, distinct, chosen, parameters)


def _functions_of(type_: pa.DataType) -> list[tuple[str, pa.DataType]]:
    """The aggregates of such a column and their types; not those that DuckDB computes in decimals."""
    known = [a for a in AGGREGATES.values() if a.counts or type_ in _LITERALS or pa.types.is_struct(type_)]
    if pa.types.is_struct(type_):
        known = [a for a in known if a.name != "ARRAY_AGG"]  # DuckDB sorts NULLs in them otherwise
    found = [(a.name, a.result(type_)) for a in known]
    return [(f, t) for f, t in found if t is not None and not (type_ == DECIMAL and pa.types.is_floating(t))]


FRAMED = tuple(name for name in FRAME_AGGREGATES if AGGREGATES[name].exact)
"""The aggregates that frames take, of which the same is true."""

EXACT = tuple(name for name, aggregate in AGGREGATES.items() if aggregate.exact)
"""The aggregates for the inside of a plan: their values are the same to the last bit in every order of arithmetic."""


def aggregate(
    choices: Choices, plan: Plan, functions: Sequence[str] | None = EXACT, *, keys: int | None = None
) -> Aggregate:
    pairs = functions is not None and all(AGGREGATES[f].form == "pair" for f in functions)
    plan = _packed(choices, plan) if choices.chance(100 if pairs else 30) else plan
    names = plan.schema.names
    many = choices.pick([1, 1, 0, 2]) if keys is None else keys
    chosen = tuple(dict.fromkeys(choices.pick(names) for _ in range(min(many, len(names)))))
    calls = tuple(call(choices, plan.schema, fresh(f"c{i}", chosen), functions) for i in range(choices.integer(1, 3)))
    return Aggregate(plan, chosen, calls)


def _packed(choices: Choices, plan: Plan) -> Plan:
    """The plan with two of its columns as one STRUCT besides: arguments of an aggregate that takes two."""
    numbers = [f for f in plan.schema if f.type in (pa.int32(), pa.int64(), pa.float64())]
    plain = [f for f in plan.schema if f.type in _LITERALS]
    if not plain:
        return plan
    pair = [choices.pick(numbers if numbers and choices.chance(50) else plain) for _ in range(2)]
    values = [column(field) for field in pair]
    argument = packed(values, unless_null=choices.pick([[], values[:1], values]))
    kept = tuple((f.name, column(f)) for f in plan.schema)
    return Project(plan, (*kept, (fresh("pair", plan.schema.names), argument)))


def fresh(name: str, taken: Collection[str]) -> str:
    """A name that is not taken."""
    while name in taken:
        name += "_"
    return name


def time_window(choices: Choices, plan: Plan) -> TimeWindow:
    size = choices.pick([2, 3, 5, 1, 4, INFINITY])
    return TimeWindow(plan, size, choices.pick([1, 1, 2, 3, 5]))


def row_window(choices: Choices, plan: Plan) -> RowWindow:
    partition = choices.pick([(), (), plan.schema.names[:1], plan.schema.names[-1:]])
    return RowWindow(plan, choices.pick([1, 2, 3, 5]), choices.pick([1, 1, 2, 3]), tuple(partition))


def frames(choices: Choices, plan: Plan, functions: Sequence[str] | None = None) -> Frames:
    """Up to three functions of rows before each row; values of single rows among them."""
    partition = choices.pick([plan.schema.names[:1], (), plan.schema.names[-1:], plan.schema.names[:2]])
    calls = []
    for i in range(choices.integer(1, 3)):
        made = call(choices, plan.schema, fresh(f"f{i}", plan.schema.names), FRAMED if functions is None else functions)
        first, last = choices.pick([(1, 0), (3, 0), (INFINITY, 0), (2, 1), (4, 2), (1, 1), (0, 0), (INFINITY, 1)])
        framed = FrameCall(made.function, made.output, made.type, made.argument, made.filter, first, last)
        if choices.chance(35):
            field = choices.pick(plan.schema.fields)
            nth = choices.pick([1, 0, 2, 3])
            name = "NTH_VALUE" if nth else "LAST_VALUE"
            framed = FrameCall(name, made.output, field.type, field.name, None, first, last, nth=nth)
        peers = first == INFINITY and not last and choices.chance(50)
        calls.append(evolve(framed, peers=peers))
    return Frames(plan, tuple(calls), tuple(partition))


def top_k(choices: Choices, plan: Plan, *, limit: int | None = None, ranked: bool | None = None) -> TopK:
    """The first rows in an order of up to two columns, perhaps a partition, perhaps with their numbers."""
    names = plan.schema.names
    columns = dict.fromkeys(choices.pick(names) for _ in range(choices.pick([1, 1, 2, 0])))
    order = tuple(SortKey(name, choices.chance(50), choices.chance(50)) for name in columns)
    chosen = choices.pick([1, 2, 3, 5, INFINITY]) if limit is None else limit
    offset = choices.pick([0, 0, 0, 1, 2])
    partition = choices.pick([(), (), names[:1], names[-1:], names[:2]])
    rank = fresh("number", names) if (choices.chance(40) if ranked is None else ranked) else None
    return TopK(plan, order, chosen, offset, tuple(partition), rank)


def hop_window(choices: Choices, plan: Plan) -> HopWindow:
    size, slide = choices.pick([4, 2, 3, 5, 1]), choices.pick([2, 4, 1, 3, 5, 7])
    offset, lifetime = choices.pick([0, 0, 1, -3]), choices.pick([None, None, 1, (slide + 1) // 2])
    return HopWindow(plan, size, slide, offset, *_window_columns(choices, plan), lifetime)


def session_window(choices: Choices, plan: Plan) -> SessionWindow:
    partition = choices.pick([plan.schema.names[:1], (), plan.schema.names[-1:], plan.schema.names[:2]])
    return SessionWindow(plan, choices.pick([2, 1, 3, 5]), tuple(partition), *_window_columns(choices, plan))


def unnest(choices: Choices, plan: Plan) -> Unnest:
    """Of a column that is an array, or of one that is made of a column; with or without places and empty arrays."""
    arrays = [f.name for f in plan.schema if pa.types.is_list(f.type)]
    if not arrays:
        field = choices.pick(plan.schema.fields)
        items = (column(field), *([column(field)] if choices.chance(50) else []))
        made = Call("array", items, pa.list_(field.type))
        arrays = [fresh("items", plan.schema.names)]
        plan = Project(plan, (*((f.name, column(f)) for f in plan.schema), (arrays[0], made)))
    place = fresh("place", plan.schema.names) if choices.chance(40) else None
    return Unnest(plan, choices.pick(arrays), fresh("item", plan.schema.names), place, choices.chance(40))


def aggregate_windows(choices: Choices, plan: HopWindow | SessionWindow) -> Aggregate:
    """One row per window, or per window and value of a column."""
    keys = (*choices.pick([plan.schema.names[:1], ()]), plan.start, plan.end)
    functions = ("COUNT", "SUM", "AVG", "MIN", "MAX")
    calls = tuple(call(choices, plan.schema, f"c{i}", functions) for i in range(choices.integer(1, 2)))
    return Aggregate(plan, keys, calls)


def refreshed(choices: Choices, plan: Plan) -> Sample:
    """An aggregate over a window that slides, once per slide (Golab 3.4)."""
    slide = choices.pick([2, 3, 5, 4])
    window = TimeWindow(plan, slide * choices.pick([1, 1, 2]) + choices.pick([0, 0, 1]), slide)
    return Sample(aggregate(choices, window), slide, -1)


def _window_columns(choices: Choices, plan: Plan) -> tuple[str, str, pa.DataType]:
    start, end = (fresh(name, plan.schema.names) for name in ("window_start", "window_end"))
    return start, end, choices.pick([pa.int64(), pa.timestamp("us")])


# -- whole plans ----------------------------------------------------------------------------------------------------

_UNARY: list[tuple[int, Callable[[Choices, Plan], Plan]]] = [
    (3, lambda c, p: Filter(p, predicate(c, p.schema))),
    (3, project),
    (4, aggregate),
    (3, time_window),
    (3, row_window),
    (1, hop_window),
    (1, session_window),
    (2, frames),
    (2, lambda c, p: Distinct(p)),
    (2, top_k),
    (1, lambda c, p: Granularity(p, c.pick([2, 3, 4]))),
    (1, lambda c, p: Sample(p, c.pick([2, 3, 4]), c.pick([0, -1]))),
    (1, lambda c, p: Stamp(p, fresh("instant", p.schema.names))),
    (1, lambda c, p: Split(p, c.pick([1, 2, 3]))),
    (1, unnest),
    (1, lambda c, p: Coalesce(p, c.pick([INFINITY, 1, 2, 4]))),
    (1, lambda c, p: Istream(p)),
    (1, lambda c, p: Dstream(p)),
]
_UNARY_WEIGHTED = [make for weight, make in _UNARY for _ in range(weight)]


def plan(choices: Choices, *, depth: int = 3) -> Plan:
    """A plan at least ``depth`` operators deep over one to three sources; no window in it grows for ever by itself."""
    names = ["s", "t", "u"][: choices.integer(1, 3)]
    return plan_over(choices, [source(choices, name) for name in names], depth=depth)


def plan_over(choices: Choices, sources: Sequence[Source], *, depth: int = 3) -> Plan:
    """The same over some of these sources."""
    return _grow(choices, sources, depth)


def _grow(choices: Choices, made: Sequence[Source], depth: int) -> Plan:
    if depth == 0:
        return choices.pick(made)
    below = _grow(choices, made, depth - 1)
    for _ in range(8):
        candidate = _above(choices, made, below, depth)
        if crowd(candidate) <= _CROWD and not grows_for_ever(candidate, ()):
            return candidate
    return Distinct(below)


def _above(choices: Choices, made: Sequence[Source], below: Plan, depth: int) -> Plan:
    if choices.chance(65):
        return choices.pick(_UNARY_WEIGHTED)(choices, below)
    other: Plan = (
        constant(choices) if choices.chance(8) else _grow(choices, made, choices.integer(0, max(depth - 2, 0)))
    )
    left, right = (below, other) if choices.chance(70) else (other, below)
    kind = choices.pick(["join", "join", "set", "union"])
    if kind == "join":
        return join(choices, left, right)
    right = conform(choices, right, left.schema)
    return Union((left, right)) if kind == "union" else SetOperation(left, right, choices.pick(list(SetKind)))


def crowd(plan: Plan) -> float:
    """About how many rows the answer has at an instant."""
    below = [crowd(child) for child in plan.inputs]
    if isinstance(plan, Source):
        return 1 if plan.chronons else 4
    if isinstance(plan, TimeWindow):
        return below[0] * (20 if plan.unbounded else plan.size)
    if isinstance(plan, Constant):
        return len(plan.rows)
    if isinstance(plan, Unnest):
        return below[0] * 2
    if isinstance(plan, (HopWindow, SessionWindow)):
        return below[0] * (plan.size if isinstance(plan, HopWindow) else 20)
    if isinstance(plan, RowWindow):
        return plan.rows * (3 if plan.partition else 1)
    if isinstance(plan, Join):
        return below[0] * (1 if plan.kind in (JoinKind.SEMI, JoinKind.ANTI) else 1 + below[1] / (3 if plan.keys else 1))
    if isinstance(plan, TopK):
        return min(below[0], plan.limit * (3 if plan.partition else 1))
    if isinstance(plan, (Distinct, Aggregate)):
        return min(below[0], 6)
    return sum(below)
