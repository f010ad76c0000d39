"""Aggregates over nothing: in SQL a query that aggregates all its rows has one row, also where there are none; COUNT is 0.

In the algebra an empty snapshot has no aggregate (Krämer 8.9, erratum E20), and so it is at the top of a query and in
FROM, unless ``SET empty_aggregate = one_row``. In an expression a sub-query means what it means in SQL. Mostly it is a
value, and joined to the rows around it by an outer join: what that does not find has the value of the empty aggregate.
Where the row itself matters (EXISTS, IN, HAVING, LIMIT, FROM), it is put in: for the values of the outer columns that the
sub-query names, or, if it names none, as long as constants are valid, [0, infinity).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Constant, JoinKind
from headwater.expressions import nodes
from headwater.expressions.nodes import Call, Expression, Literal
from headwater.expressions.rewrite import is_call, over
from headwater.language.predicates import null, whole_number
from headwater.language.relations.internal_windows import is_internal
from headwater.language.relations.joins import join
from headwater.language.scope import Bound, Column, NameSource, Relation, project, reference
from headwater.language.select.aggregates import calls_aggregate
from headwater.language.select.select_list import relation_to_stream
from headwater.language.subqueries.correlation import Correlation, same
from headwater.model.schema import Field, Schema

_MARK = "empty aggregate"
_ROW, _VALUE, _ROW_UNLESS_NULL = "a row", "a value", "a row unless its value is NULL"
_STRICT = frozenset({"+", "-", "*", "/", "negative"})


def aggregates_all(node: exp.Expr) -> bool:
    """Is it a SELECT that makes one row of all its rows?"""
    if not isinstance(node, exp.Select) or node.args.get("group") is not None:
        return False
    if relation_to_stream(node) is not None or is_internal(node):  # what is new at an instant, not what there is
        return False
    return node.args.get("having") is not None or any(calls_aggregate(e) for e in node.expressions)


def is_value(node: exp.Select) -> bool:
    """Is all that matters of such a SELECT what it gives, and not whether there is a row?"""
    row = any(node.args.get(clause) for clause in ("having", "qualify", "limit", "offset", "distinct"))
    return not row and not any(e.find(exp.Query, exp.Subquery) for e in node.expressions)


def ask_for_value(node: exp.Select) -> None:
    """The block of the SELECT shall say what it gives where it has no row."""
    node.meta[_MARK] = _VALUE


def ask_for_row(node: exp.Expr) -> None:
    """The SELECTs whose rows are the answer of the query shall have one where they aggregate nothing."""
    for select in _answers(node):
        if aggregates_all(select):
            select.meta[_MARK] = _ROW


def ask_for_row_unless_null(node: exp.Select) -> None:
    """A row where it aggregates nothing, unless that is NULL throughout: then no row says the same, and costs no join."""
    node.meta[_MARK] = _ROW_UNLESS_NULL


def ask_for_rows_in_from(node: exp.Expr) -> None:
    """The same of the queries in FROM, as far as no window is between."""
    for select in _answers(node):
        from_ = select.args.get("from_")
        items = [*([from_.this] if from_ is not None else ()), *(j.this for j in select.args.get("joins") or ())]
        for item in items:
            if item.args.get("stream_window") is not None:
                continue
            if isinstance(item, exp.Table):
                item.meta[_MARK] = _ROW
            if isinstance(item, exp.Subquery):
                ask_for_row(item)
                ask_for_rows_in_from(item)


def ask_for_rows(node: exp.Expr, *, of: Collection[str]) -> bool:
    """Both of the query of a WITH. Does it make a difference, if it does for those of these names?"""
    ask_for_row(node)
    ask_for_rows_in_from(node)
    marked = [found for found in node.walk() if is_asked_for_rows(found)]
    return any(not isinstance(found, exp.Table) or found.name.casefold() in of for found in marked)


def is_asked_for_rows(node: exp.Expr) -> bool:
    return node.meta.get(_MARK) == _ROW


def wants_value(node: exp.Select) -> bool:
    return node.meta.get(_MARK) == _VALUE


def wants_row(node: exp.Select, outputs: Sequence[Bound], results: Mapping[str, Column], *, by_default: bool) -> bool:
    """``outputs``: what it selects, over the ``results`` of its aggregates."""
    if not aggregates_all(node):
        return False
    mark = node.meta.get(_MARK)
    if mark == _ROW_UNLESS_NULL:
        return bool(of_nothing(outputs, results))
    return mark == _ROW or (by_default and mark != _VALUE)


def _answers(node: exp.Expr) -> Iterator[exp.Expr]:
    match node:
        case exp.Subquery():
            yield from _answers(node.this)
        case exp.SetOperation():
            yield from _answers(node.this)
            yield from _answers(node.expression)
        case exp.Select():
            yield node


def of_nothing(outputs: Sequence[Bound], results: Mapping[str, Column]) -> tuple[Bound, ...]:
    """What expressions over aggregates are where there is nothing to aggregate; empty if they are all NULL."""
    if all(_is_null_of_nothing(output, results) for output in outputs):
        return ()
    return tuple(_of_nothing(output, results) for output in outputs)


def _is_null_of_nothing(output: Bound, results: Mapping[str, Column]) -> bool:
    """Is it plain arithmetic with an aggregate other than COUNT?"""
    parts = list(output.expression.walk())
    strict = all(isinstance(p, (nodes.Column, Literal)) or is_call(p, *_STRICT) for p in parts)
    read = (results.get(name) for name in output.columns)
    return strict and any(column is not None and column.nullable for column in read)


def _of_nothing(output: Bound, results: Mapping[str, Column]) -> Bound:
    """A COUNT, which is never NULL, is 0; any other aggregate is NULL."""
    values = {name: null(c.type) if c.nullable else whole_number(0, c.type) for name, c in results.items()}
    return evolve(output, expression=over(output.expression, values))


def with_a_row(
    groups: Relation, names: NameSource, copies: Sequence[Bound], correlation: Correlation | None, origin: exp.Expr
) -> Relation:
    """The one group of all rows, also where there are none; ``copies``: its columns for those of the outer query."""
    taken: dict[str | None, Column] = {}
    if correlation is None:
        one = Field(names.unique("one"), pa.bool_(), nullable=False)
        left = Relation(Constant(Schema((one,)), ((True,),)), ())
        predicates: list[Bound] = []
    else:
        left, carried = correlation.part(names)
        pairs = list(zip(carried.values(), copies, strict=True))
        predicates = [same(Bound.of_column(ours, origin), theirs) for ours, theirs in pairs]
        taken = {theirs.column: ours for ours, theirs in pairs}
    columns = {c.internal: c for c in groups.columns}
    joined = join(left, groups, JoinKind.LEFT, predicates, names)
    shown: list[tuple[str, Expression]] = []
    for field in groups.plan.schema:
        column = columns[field.name]
        if field.name in taken:
            shown.append((field.name, reference(taken[field.name])))
        elif column.nullable:
            shown.append((field.name, reference(column)))
        else:
            counted = (nodes.Column(field.name, column.type), whole_number(0, column.type))
            shown.append((field.name, Call("coalesce", counted, column.type)))
    return groups.over(project(joined.plan, shown))
