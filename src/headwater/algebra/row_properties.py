"""What is known of the rows of a plan's snapshots: columns that are never NULL, keys, columns of one value only.

Everything here is about single snapshots. An operator that is snapshot-reducible (Krämer 10.1, Lemma 10.1) has the
properties that its relational counterpart has; a window brings rows of several instants together, and only what holds
over all of time survives it. Rows count with their copies: where there is a key there are no duplicates. Values are
compared as DISTINCT does: NULL is equal to NULL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import singledispatch

import pyarrow as pa
from attrs import evolve, frozen

from headwater.algebra import nodes as n
from headwater.algebra.plan_values import literal
from headwater.expressions.facts import Facts, equal_pairs, facts, fixed_columns, is_never_null
from headwater.expressions.rewrite import is_constant, plain_column
from headwater.expressions.text import to_text
from headwater.model.schema import Field, Schema
from headwater.model.types import sql_type

_MOST_KEYS = 8
"""Keys beyond these are forgotten: joins multiply them."""

Key = frozenset[str]
_AT_MOST_ONE: Key = frozenset()


@frozen(eq=False)
class Rows:
    """What is known of the rows at every instant."""

    schema: Schema
    """The columns; those that are not nullable are never NULL."""
    keys: tuple[Key, ...] = ()
    """Sets of columns in which no two rows of a snapshot agree; none contains another. Empty set: at most one row."""
    uniform: frozenset[str] = frozenset()
    """Columns in which all rows of a snapshot agree."""
    constants: Mapping[str, str] = {}
    """Columns that have the same value at all times, with its SQL text; a part of ``uniform``."""


def rows_of(plan: n.Plan, inputs: Sequence[Rows]) -> Rows:
    """The properties of a node's rows, from those of its inputs."""
    return _rows(plan, *inputs)


# -- keys -----------------------------------------------------------------------------------------------------------


def _made(
    schema: Schema,
    keys: Collection[Key] = (),
    uniform: Iterable[str] = (),
    constants: Mapping[str, str] | None = None,
    equal: Sequence[tuple[str, str]] = (),
) -> Rows:
    """The properties in their simplest form: a column that never differs helps no key, nor does a second equal one."""
    always = constants or {}
    same = frozenset((*uniform, *always))
    for a, b in equal:
        if a in same or b in same:
            same |= {a, b}
    if not keys:
        return Rows(schema, (), same, always)
    reduced = _minimal({key - same for key in _with_equals(set(keys), equal)})
    if _AT_MOST_ONE in reduced:
        same = frozenset(schema.names)
    return Rows(schema, reduced, same, always)


def _with_equals(keys: set[Key], equal: Sequence[tuple[str, str]]) -> set[Key]:
    """Of two equal columns each can stand for the other, and no key needs both."""
    for a, b in equal:
        keys = {key - {b} if a in key else key for key in keys}
        keys |= {key - {a} | {b} for key in keys if a in key} | {key - {b} | {a} for key in keys if b in key}
    return keys


def _minimal(keys: Iterable[Key]) -> tuple[Key, ...]:
    kept: list[Key] = []
    for key in sorted(keys, key=lambda k: (len(k), sorted(k))):
        if len(kept) < _MOST_KEYS and not any(smaller <= key for smaller in kept):
            kept.append(key)
    return tuple(kept)


def _only_constants(below: Rows, schema: Schema | None = None, keys: Collection[Key] = ()) -> Rows:
    """Rows of several instants meet: no key holds, and only what is the same at all times stays the same."""
    return _made(below.schema if schema is None else schema, keys, constants=below.constants)


def _with_fields(below: Rows, *fields: Field) -> Schema:
    return Schema((*below.schema.fields, *fields))


def _nullable(fields: Iterable[Field]) -> tuple[Field, ...]:
    return tuple(Field(f.name, f.type) for f in fields)


def _known(schema: Schema, names: Iterable[str]) -> Schema:
    """The columns, some of them known not to be NULL."""
    known = frozenset(names)
    if not any(f.nullable and f.name in known for f in schema):
        return schema
    return Schema(tuple(Field(f.name, f.type, f.nullable and f.name not in known) for f in schema))


def _types(schema: Schema) -> dict[str, pa.DataType]:
    return {f.name: f.type for f in schema}


# -- a rule a node --------------------------------------------------------------------------------------------------


@singledispatch
def _rows(plan: n.Plan, *inputs: Rows) -> Rows:
    raise TypeError(f"no properties for {type(plan).__name__}")


@_rows.register
def _(plan: n.Source) -> Rows:
    """Of a table that is made of change events each key has one row at a time."""
    return _made(plan.columns, [frozenset(plan.key)]) if plan.events and plan.key else Rows(plan.columns)


_EXACT = frozenset(map(sql_type, ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "STRING", "DATE", "TIMESTAMP")))


def _is_exact(type_: pa.DataType) -> bool:
    """Are equal values of the type the same in every respect? 0.0 equals -0.0, but not after 1 / x."""
    return type_ in _EXACT


@_rows.register
def _(plan: n.Constant) -> Rows:
    """The rows themselves are known (17.4)."""
    columns = list(zip(*plan.rows, strict=True)) if plan.rows else [()] * len(plan.columns)
    pairs = list(zip(plan.columns, columns, strict=True))
    fields = tuple(Field(f.name, f.type, f.nullable and any(v is None for v in values)) for f, values in pairs)
    exact = {f.name: values for f, values in pairs if _is_exact(f.type)}
    many = len(plan.rows)
    keys = [frozenset((name,)) for name, values in exact.items() if len(set(values)) == many]
    if many <= 1:
        keys = [_AT_MOST_ONE]
    elif exact and len(set(zip(*exact.values(), strict=True))) == many:
        keys.append(frozenset(exact))
    fixed = {name: literal(values[0]) for name, values in exact.items() if len(set(values)) == 1}
    return _made(Schema(fields), keys, constants=fixed)


@_rows.register
def _(plan: n.Filter, below: Rows) -> Rows:
    """A part of the rows (8.1), of which the predicate says more."""
    found = facts(plan.predicate)
    if found == _NO_FACTS:
        return below
    types = _types(below.schema)
    fixed = {**below.constants, **{name: to_text(c) for name, c in fixed_columns(found, types).items()}}
    schema = _known(below.schema, found.known)
    return _made(schema, below.keys, below.uniform, fixed, equal_pairs(found, types))


_NO_FACTS = Facts()


@_rows.register
def _(plan: n.Project, below: Rows) -> Rows:
    """One row for each row (8.2): a key survives if all its columns do."""
    fields_below = {f.name: f for f in below.schema}
    names: dict[str, str] = {}
    equal: list[tuple[str, str]] = []
    fixed: dict[str, str] = {}
    same: set[str] = set()
    fields = []
    for name, scalar in plan.expressions:
        column = plain_column(scalar)
        if column is not None and column in fields_below and fields_below[column].type == scalar.type:
            fields.append(Field(name, scalar.type, fields_below[column].nullable))
            if names.setdefault(column, name) != name:
                equal.append((names[column], name))
            if column in below.uniform:
                same.add(name)
            if column in below.constants:
                fixed[name] = below.constants[column]
            continue
        fields.append(Field(name, scalar.type, not is_never_null(scalar)))
        if is_constant(scalar) and not scalar.functions:
            fixed[name] = to_text(scalar)
        elif not scalar.functions and all(
            c in below.uniform and _is_exact(fields_below[c].type) for c in scalar.columns
        ):
            same.add(name)
    keys = [frozenset(names[c] for c in key) for key in below.keys if names.keys() >= key]
    return _made(Schema(tuple(fields)), keys, same, fixed, equal)


def _united(left: Rows, right: Rows) -> Rows:
    """Rows of both sides: what is the same constant in both stays one (8.3, 8.13)."""
    fields, fixed = [], {}
    for ours, theirs in zip(left.schema, right.schema, strict=True):
        fields.append(Field(ours.name, ours.type, ours.nullable or theirs.nullable))
        value = left.constants.get(ours.name)
        if value is not None and value == right.constants.get(theirs.name):
            fixed[ours.name] = value
    return Rows(Schema(tuple(fields)), (), frozenset(fixed), fixed)


@_rows.register
def _(plan: n.Union, left: Rows, right: Rows) -> Rows:
    return _united(left, right)


@_rows.register
def _(plan: n.Distinct, below: Rows) -> Rows:
    """One copy of each row (8.5): at the latest all columns together are a key."""
    return below if below.keys else _made(below.schema, [_all(below)], below.uniform, below.constants)


def _all(rows: Rows) -> Key:
    return frozenset(rows.schema.names)


@_rows.register
def _(plan: n.SetOperation, left: Rows, right: Rows) -> Rows:
    kind = n.SetKind
    if plan.kind is kind.MAX_UNION:  # max(n1, n2) (8.13)
        both = _united(left, right)
        return _made(both.schema, [_all(both)] if left.keys and right.keys else (), (), both.constants)
    keys, same, fixed, schema = set(left.keys), left.uniform, left.constants, left.schema
    if plan.kind in (kind.INTERSECT, kind.INTERSECT_ALL):  # at most n1 and at most n2 copies (8.12)
        ours = dict(zip(right.schema.names, left.schema.names, strict=True))
        keys |= {frozenset(ours[c] for c in key) for key in right.keys}
        same = same.union(ours[c] for c in right.uniform)
        fixed = {**{ours[c]: value for c, value in right.constants.items()}, **fixed}
        schema = _known(schema, (ours[f.name] for f in right.schema if not f.nullable))
    if plan.kind in (kind.EXCEPT, kind.INTERSECT) and not keys:
        keys.add(_all(left))
    return _made(schema, keys, same, fixed)


# -- joins ----------------------------------------------------------------------------------------------------------


@_rows.register
def _(plan: n.Join, left: Rows, right: Rows) -> Rows:
    """⋈, outer joins, ⋉ and ▷ (8.10): keys are equal in pairs, NULL equals nothing."""
    kind = n.JoinKind
    if plan.kind is kind.ANTI:
        return left
    types, others = _types(left.schema), _types(right.schema)
    pairs = [(a, b) for a, b in plan.keys if types.get(a) == others.get(b)]
    ours, theirs = _matched(plan)
    if plan.kind is kind.SEMI:
        return Rows(_known(left.schema, ours), left.keys, left.uniform, left.constants)
    match plan.kind:
        case kind.LEFT:
            return _padded(left, right, pairs)
        case kind.RIGHT:
            padded = _padded(right, left, [(b, a) for a, b in pairs])
            return evolve(padded, schema=Schema(_nullable(left.schema) + right.schema.fields))
        case kind.FULL:
            return _full(left, right)
    keys = _pair_keys(left, right, pairs) + _pair_keys(right, left, [(b, a) for a, b in pairs])
    schema = Schema(_known(left.schema, ours).fields + _known(right.schema, theirs).fields)
    return _made(schema, keys, left.uniform | right.uniform, {**left.constants, **right.constants}, pairs)


def _matched(plan: n.Join) -> tuple[set[str], set[str]]:
    """The columns of either side that are not NULL in a pair that matches."""
    ours, theirs = {a for a, _ in plan.keys}, {b for _, b in plan.keys}
    if plan.residual is not None:
        for name in facts(plan.residual).known:
            (ours if name.startswith("l.") else theirs).add(name[2:])
    return ours, theirs


def _pair_keys(left: Rows, right: Rows, pairs: Sequence[tuple[str, str]]) -> list[Key]:
    """Keys of the matching pairs: a key of either side, less what is equal to a column of the left one.

    Where the right side has a key among the columns that are compared, nothing is left of it: each left row has one
    partner at most.
    """
    partners = {b for _, b in pairs}
    unique = any(key <= partners for key in right.keys)
    found = list(left.keys) if unique else []
    for ours in left.keys:
        equal = {b for a, b in pairs if a in ours}
        found += [ours | (theirs - equal) for theirs in right.keys]
    return found


def _padded(kept: Rows, other: Rows, pairs: Sequence[tuple[str, str]]) -> Rows:
    """A left outer join: every left row is in the answer, with its partners or with NULLs.

    The keys of pairs hold: rows of different left rows differ in the left key, and a row with NULLs is alone.
    """
    schema = Schema(kept.schema.fields + _nullable(other.schema))
    return _made(schema, _pair_keys(kept, other, pairs), kept.uniform, kept.constants)


def _full(left: Rows, right: Rows) -> Rows:
    """Both sides padded: a lone left row and a lone right row differ only by a key column that is never NULL itself."""
    never = {f.name for rows in (left, right) for f in rows.schema if not f.nullable}
    keys = [a | b for a in left.keys for b in right.keys if (a | b) & never]
    return _made(Schema(_nullable(left.schema) + _nullable(right.schema)), keys)


# -- aggregation and order ------------------------------------------------------------------------------------------

_NOT_NULL_OVER_VALUES = frozenset({"SUM", "AVG", "MIN", "MAX", "MEDIAN", "ARRAY_AGG", "LISTAGG"})


@_rows.register
def _(plan: n.Aggregate, below: Rows) -> Rows:
    """A row a group (8.15), at most one without keys (8.9); there are no empty groups."""
    fields_below = {f.name: f for f in below.schema}
    group = frozenset(plan.keys)
    fields = [fields_below[name] for name in plan.keys]
    for call in plan.calls:
        over_values = call.argument is not None and not fields_below[call.argument].nullable and call.filter is None
        known = call.function == "COUNT" or (call.function in _NOT_NULL_OVER_VALUES and over_values)
        fields.append(Field(call.output, call.type, nullable=not known))
    keys = [group, *(key for key in below.keys if key <= group)]
    fixed = {name: value for name, value in below.constants.items() if name in group}
    return _made(Schema(tuple(fields)), keys, below.uniform & group, fixed)


@_rows.register
def _(plan: n.PreAggregate, below: Rows) -> Rows:
    """Other rows of the same keys."""
    group = frozenset(plan.keys)
    fixed = {name: value for name, value in below.constants.items() if name in group}
    return _made(plan.schema, [], below.uniform & group, fixed)


@_rows.register
def _(plan: n.Await, below: Rows, other: Rows) -> Rows:
    return below


@_rows.register
def _(plan: n.TopK, below: Rows) -> Rows:
    """A part of the rows; the rank numbers them in each partition."""
    keys = list(below.keys)
    schema = below.schema
    if plan.rank is not None:
        schema = _with_fields(below, Field(plan.rank, pa.int32(), nullable=False))
        keys.append(frozenset((*plan.partition, plan.rank)))
    if plan.limit <= 1:
        keys.append(frozenset(plan.partition))
    return _made(schema, keys, below.uniform, below.constants)


# -- windows and time -----------------------------------------------------------------------------------------------


@_rows.register
def _(plan: n.TimeWindow, below: Rows) -> Rows:
    """Rows of ``size`` instants meet (8.17, 17.1); those of one instant are a snapshot of the input."""
    return below if plan.size == 1 else _only_constants(below)


@_rows.register
def _(plan: n.RowWindow, below: Rows) -> Rows:
    """The last rows of each partition (8.18, 8.19), whenever they came; one row is alone in its partition."""
    return _only_constants(below, keys=[frozenset(plan.partition)] if plan.rows == 1 else ())


@_rows.register
def _(plan: n.HopWindow, below: Rows) -> Rows:
    """At no instant two windows are reported, so all rows have its ends; keys survive if it is one instant long."""
    ends = (plan.start, plan.end)
    schema = _with_fields(below, *(Field(name, plan.time, nullable=False) for name in ends))
    if plan.size == 1:
        return _made(schema, below.keys, below.uniform | set(ends), below.constants)
    return _made(schema, (), (*below.constants, *ends), below.constants)


@_rows.register
def _(plan: n.SessionWindow, below: Rows) -> Rows:
    """The rows of all sessions that are over."""
    ends = (Field(name, plan.time, nullable=False) for name in (plan.start, plan.end))
    return _only_constants(below, _with_fields(below, *ends))


@_rows.register(n.Granularity)
@_rows.register(n.Sample)
@_rows.register(n.Split)
@_rows.register(n.Coalesce)
@_rows.register(n.Istream)
@_rows.register(n.Dstream)
def _(plan: n.Plan, below: Rows) -> Rows:
    """Each snapshot is a snapshot of the input or a part of one.

    Split and coalesce change no snapshot (12.2, 12.3). Granularity shows that of the last granule (20.1), a sample that at
    t or nothing, Istream a part of that at t, Dstream of that at t-1 (17.3, 17.4).
    """
    return below


@_rows.register
def _(plan: n.Stamp, below: Rows) -> Rows:
    """All rows of a snapshot have its instant."""
    schema = _with_fields(below, Field(plan.column, pa.int64(), nullable=False))
    return _made(schema, below.keys, below.uniform | {plan.column}, below.constants)


@_rows.register
def _(plan: n.ToPositiveNegative, below: Rows) -> Rows:
    """What came at t and what went: parts of two snapshots, told apart by the sign."""
    schema = _with_fields(below, Field(plan.sign, pa.int32(), nullable=False))
    return _only_constants(below, schema, [key | {plan.sign} for key in below.keys])


@_rows.register
def _(plan: n.FromPositiveNegative, below: Rows) -> Rows:
    """All that came and did not go: rows of several instants."""
    schema = Schema(tuple(f for f in below.schema if f.name != plan.sign))
    fixed = {name: value for name, value in below.constants.items() if name != plan.sign}
    return _made(schema, constants=fixed)
