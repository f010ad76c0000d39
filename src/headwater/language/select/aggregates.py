"""GROUP BY and aggregates: what is computed below, per group, and above."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Aggregate, AggregateCall, Constant, Distinct, Plan, Union
from headwater.errors import SqlError
from headwater.expressions import nodes
from headwater.expressions.aggregates import AGGREGATES
from headwater.expressions.nodes import Call, Case, Expression, Literal
from headwater.expressions.rewrite import can_fail, rewritten
from headwater.language.expressions import ExpressionBinder, Hook
from headwater.language.functions.user_functions import find_aggregate_function, is_aggregate
from headwater.language.predicates import all_of, is_there, null, whole_number
from headwater.language.relations.joins import with_columns
from headwater.language.scope import Bound, Column, Item, NameSource, Relation, Scope, project, reference
from headwater.language.select.aggregate_arguments import AggregateArguments, Given, Written
from headwater.language.text import error_on
from headwater.model.schema import Schema

GROUPING_FUNCTIONS = frozenset({"grouping", "grouping_id", "group_id"})
NO_ROWS = Relation(Constant(Schema(())), ())
"""For a grouping whose rows are known only later (``Grouping.over``)."""
_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_MOST_BITS = 63


def calls_aggregate(node: exp.Expr | None) -> bool:
    """True when the expression itself, not a sub-query in it, calls an aggregate.

    ``SUM(x) OVER (…)`` is none, but what it is computed of may be: ``SUM(SUM(x)) OVER (…)``.
    """
    if node is None:
        return False
    found = node.walk(prune=lambda n: isinstance(n, (exp.Query, exp.Subquery)))
    return any(_is_aggregate(n) and not _has_window(n) for n in found)


def _has_window(node: exp.Expr) -> bool:
    while isinstance(node.parent, _AROUND) and node.arg_key == "this":
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.GroupConcat) or (
        isinstance(node, exp.Anonymous) and (is_aggregate(node.name) or node.name.lower() in GROUPING_FUNCTIONS)
    )


class Grouping:
    """Collects the keys and aggregate calls of one query block and builds the node for them.

    Expressions of SELECT and HAVING are bound over the input first, calls as columns of the result; ``lift`` then
    replaces the keys in them. What still refers to the input had to be grouped.
    """

    def __init__(
        self,
        relation: Relation,
        scope: Scope,
        names: NameSource,
        *,
        inner: Hook | None = None,
        subquery: Hook | None = None,
    ) -> None:
        self.relation, self.scope, self.names = relation, scope, names
        self._inner, self._subquery = inner, subquery
        self._keys: list[Bound] = []
        self._sets: list[tuple[int, ...]] = [()]
        self._indicators: dict[tuple[int, ...], Column] = {}
        self._repeated: Column | None = None
        self._calls: dict[tuple[object, ...], tuple[AggregateCall, Bound | None, Bound | None]] = {}
        self._results: dict[str, Column] = {}
        self._key_names: dict[Expression, str] = {}

    def error(self, node: exp.Expr, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.scope.text, node, code, message, hint=hint)

    # -- collecting -------------------------------------------------------------------------------------------------

    def group_by(self, keys: Sequence[Bound], sets: Sequence[tuple[int, ...]]) -> None:
        """The keys, and for every grouping set the numbers of its keys."""
        self._keys, self._sets = list(keys), list(sets)

    def add_key(self, key: Bound) -> None:
        """A key of all grouping sets."""
        number = next((i for i, k in enumerate(self._keys) if k.expression == key.expression), len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        self._sets = [s if number in s else (*s, number) for s in self._sets]

    def call(self, node: exp.Expr) -> Bound:
        """The hook for aggregates: the call as a column of the result, or what is made of some."""
        written, condition = self._written(node)
        if written is None:
            return self._indicator(node, node, node.name.upper())
        function = written.function
        given = AggregateArguments(self.scope, self._inner, self._subquery).of(written)
        if function.where is not None and given.argument is not None:
            there = Bound(function.where(given.argument.expression), False, node)
            condition = there if condition is None else all_of([condition, there])
        if given.shares is None:
            found = self._column(written, given, condition, node)
        else:
            parts = [self._column(written, evolve(given, parameters=p), condition, node) for p in given.shares]
            whole = Call("array", tuple(p.expression for p in parts), pa.list_(parts[0].type))
            found = Bound(Case(((is_there(parts[0]).expression, whole),), whole.type), True, node)
        return found if function.shows is None else Bound(function.shows(found.expression), False, node)

    def _written(self, node: exp.Expr) -> tuple[Written | None, Bound | None]:
        """The call without what stands around it, and its FILTER; no call where it is GROUPING or its like."""
        origin, condition, within, ignores = node, None, None, None
        while isinstance(node, _AROUND):
            match node:
                case exp.Filter():
                    binder = ExpressionBinder(self.scope, "FILTER", aggregate=self._inner, subquery=self._subquery)
                    condition = binder.predicate(node.expression.this)
                case exp.WithinGroup():
                    within = node.expression
                case _:
                    ignores = isinstance(node, exp.IgnoreNulls)
            node = node.this
        name = str(node.meta.get("name") or node.name)
        if origin is node and name.lower() in GROUPING_FUNCTIONS:
            return None, None
        function = find_aggregate_function(name)
        if function is None:
            what = "FILTER" if isinstance(origin, exp.Filter) else "WITHIN GROUP" if within is not None else "NULLS"
            raise self.error(origin, "WRONG_ARGUMENTS", f'"{name}" is no aggregate, so it takes no {what}')
        return Written(node, name.upper(), function, within, ignores), condition

    def _column(self, call: Written, given: Given, condition: Bound | None, origin: exp.Expr) -> Bound:
        """The column of one aggregate of the algebra; equal ones are computed once."""
        function, argument = call.function, given.argument
        parameters = (*function.constants, *given.parameters)
        computed = AGGREGATES[given.function] if given.function else function
        type_ = pa.int64() if argument is None else computed.result(argument.type)
        assert type_ is not None
        if argument is not None and function.of is not None:
            argument = Bound(function.of(argument.expression), True, argument.origin)
        if argument is not None and condition is not None and can_fail(argument.expression):
            argument = _where(condition, argument)
        name = computed.means or computed.name
        key = (
            name,
            argument.expression if argument else None,
            given.distinct,
            condition.expression if condition else None,
            parameters,
        )
        if key not in self._calls:
            output = self.names.unique(call.name.lower())
            found = AggregateCall(name, output, type_, None, given.distinct, None, parameters)
            self._calls[key] = found, argument, condition
            self._results[output] = Column(output, output, type_, not function.counts)
        return Bound.of_column(self._results[self._calls[key][0].output], origin)

    def _indicator(self, origin: exp.Expr, node: exp.Expr, name: str) -> Bound:
        """GROUPING(a, b): a bit for each expression, set in rows of grouping sets that do not have it."""
        if name == "GROUP_ID":
            return self._repetition(node)
        known = {key.expression: number for number, key in enumerate(self._keys)}
        numbers = []
        for argument in node.expressions:
            number = known.get(ExpressionBinder(self.scope, name).bind(argument.unnest()).expression)
            if number is None:
                raise self.error(argument, "NOT_GROUPED", f"{name} takes expressions of GROUP BY only")
            numbers.append(number)
        if not numbers and name == "GROUPING":
            raise self.error(node, "WRONG_ARGUMENTS", 'function "GROUPING" takes at least 1 argument, not 0')
        chosen = tuple(numbers or range(len(self._keys)))
        if len(chosen) > _MOST_BITS:
            raise self.error(node, "WRONG_ARGUMENTS", f"{name} takes at most {_MOST_BITS} expressions")
        if chosen not in self._indicators:
            output = self.names.unique(name.lower())
            type_ = pa.int8() if name == "GROUPING" and len(chosen) == 1 else pa.int64()  # as in Spark
            self._indicators[chosen] = Column(output, output, type_, nullable=False)
        return Bound.of_column(self._indicators[chosen], origin)

    def _repetition(self, node: exp.Expr) -> Bound:
        """GROUP_ID(): how many of the grouping sets before are the same one, so that rows of it can be told apart."""
        if node.expressions:
            message = f'function "GROUP_ID" takes no arguments, not {len(node.expressions)}'
            raise self.error(node, "WRONG_ARGUMENTS", message)
        if self._repeated is None:
            output = self.names.unique("group_id")
            self._repeated = Column(output, output, pa.int64(), nullable=False)
        return Bound.of_column(self._repeated, node)

    # -- building ---------------------------------------------------------------------------------------------------

    def over(self, relation: Relation, lift: Callable[[Bound], Bound]) -> tuple[Plan, list[Column]]:
        """Sets the grouping on rows that are known only now; gives them with the keys as columns.

        ``lift`` makes expressions over these rows of those that were bound: calls may contain aggregates of another
        grouping (``inner``).
        """
        lifted = [lift(key) for key in self._keys]
        plan, names = with_columns(relation.plan, lifted, self.names)
        columns = [Column(n, n, k.type, k.nullable) for n, k in zip(names, lifted, strict=True)]
        self._keys = [Bound.of_column(c, k.origin) for c, k in zip(columns, lifted, strict=True)]
        self._calls = {
            key: (call, lift(argument) if argument else None, lift(condition) if condition else None)
            for key, (call, argument, condition) in self._calls.items()
        }
        self.relation = relation.over(plan)
        return plan, columns

    def build(self) -> Relation:
        """The input with keys, arguments and conditions as columns, then the node; its columns are the new scope."""
        arguments = [a for _, a, _ in self._calls.values() if a is not None]
        conditions = [c for *_, c in self._calls.values() if c is not None]
        plan, read = with_columns(self.relation.plan, [*self._keys, *arguments, *conditions], self.names)
        key_names, read = read[: len(self._keys)], read[len(self._keys) :]
        argument_names = iter(read[: len(arguments)])
        condition_names = iter(read[len(arguments) :])
        calls = tuple(
            evolve(
                call,
                argument=next(argument_names) if argument is not None else None,
                filter=next(condition_names) if condition is not None else None,
            )
            for call, argument, condition in self._calls.values()
        )
        if not calls and () in self._sets:  # one row stands for all of them
            calls = (AggregateCall("COUNT", self.names.unique("rows"), pa.int64()),)
            self._results[calls[0].output] = Column(calls[0].output, calls[0].output, pa.int64(), nullable=False)
        everywhere = set.intersection(*(set(s) for s in self._sets))
        for number, (name, key) in enumerate(zip(key_names, self._keys, strict=True)):
            self._results[name] = Column(name, name, key.type, key.nullable or number not in everywhere)
        self._key_names = {key.expression: name for name, key in zip(key_names, self._keys, strict=True)}
        used = {*key_names, *(c.argument for c in calls), *(c.filter for c in calls)}
        kept = [(f.name, reference(f)) for f in plan.schema if f.name in used]
        if plan is not self.relation.plan and kept:
            plan = project(plan, kept)
        before = [sum(set(other) == set(s) for other in self._sets[:i]) for i, s in enumerate(self._sets)]
        plan = Union.of([self._grouped(plan, key_names, s, calls, n) for s, n in zip(self._sets, before, strict=True)])
        added = [*self._indicators.values(), *([self._repeated] if self._repeated is not None else ())]
        columns = {**self._results, **{c.internal: c for c in added}}
        return Relation(plan, (Item(tuple(columns[name] for name in plan.schema.names)),))

    def _grouped(
        self,
        plan: Plan,
        key_names: Sequence[str],
        numbers: Sequence[int],
        calls: tuple[AggregateCall, ...],
        repetition: int,
    ) -> Plan:
        """The groups of one grouping set, with all keys: NULL where the set does not have them."""
        keys = tuple(key_names[i] for i in sorted(numbers))
        groups: Plan = Aggregate(plan, keys, calls)
        if not calls:
            groups = Distinct(project(plan, [(k, reference(plan.schema.field(k))) for k in keys]))
        columns: list[tuple[str, Expression]] = [
            (name, reference(self._results[name]) if name in keys else null(self._results[name].type))
            for name in key_names
        ]
        columns += [(c.output, nodes.Column(c.output, c.type)) for c in calls]
        for chosen, column in self._indicators.items():
            bits = int("".join("0" if i in numbers else "1" for i in chosen), 2)
            columns.append((column.internal, whole_number(bits, column.type)))
        if self._repeated is not None:
            columns.append((self._repeated.internal, whole_number(repetition, self._repeated.type)))
        return project(groups, columns)

    @property
    def calls(self) -> tuple[tuple[AggregateCall, Bound | None, Bound | None], ...]:
        """The calls so far, each with its argument and its condition."""
        return tuple(self._calls.values())

    @property
    def results(self) -> Mapping[str, Column]:
        """The calls as columns of the result."""
        return {call.output: self._results[call.output] for call, *_ in self._calls.values()}

    def lift(self, bound: Bound) -> Bound:
        """An expression over the input as one over the groups (after ``build``)."""
        below = set(self.relation.plan.schema.names)
        used: list[Column] = []

        def key_column(key: Expression) -> Expression:
            used.append(self._results[self._key_names[key]])
            return reference(used[-1])

        def lifted(part: Expression) -> Expression | None:
            if part in self._key_names and (part is bound.expression or not isinstance(part, Literal)):
                return key_column(part)
            if isinstance(part, nodes.Column) and part.name in below:
                raise self._not_grouped(bound.origin, part.name)
            if isinstance(part, Call) and (key := self._connected_key(part)) is not None:
                return rewritten(_with_run(part, key, key_column(key)), lifted)
            return None

        expression = rewritten(bound.expression, lifted)
        return evolve(bound, expression=expression, nullable=bound.nullable or any(c.nullable for c in used))

    def _connected_key(self, part: Call) -> Call | None:
        """A key that is some of the conditions that the part connects: ``a AND b`` in ``a AND b AND c``."""
        if part.name not in ("and", "or"):
            return None
        keys = (key for key in self._key_names if isinstance(key, Call) and key.name == part.name)
        return next((key for key in keys if _run(part, key) is not None), None)

    def _not_grouped(self, origin: exp.Expr, internal: str) -> SqlError:
        visible = {c.internal: c.name for c in self.relation.columns}
        name = visible.get(internal, internal)
        return self.error(
            self._place(origin, internal) or origin,
            "NOT_GROUPED",
            f'column "{name}" is neither in GROUP BY nor inside an aggregate',
            hint=f"Add it to GROUP BY, or take one value of it, for example: MAX({name}).",
        )

    def _place(self, node: exp.Expr, internal: str) -> exp.Expr | None:
        """Where in an expression the column is named outside of keys and aggregates."""
        if isinstance(node, exp.Query) or _is_aggregate(node):
            return None
        try:
            expression = ExpressionBinder(self.scope, "").bind(node).expression
        except SqlError:
            expression = None
        if expression in self._key_names:
            return None
        if isinstance(node, exp.Column):
            return node.this if expression is not None and internal in expression.columns else None
        return next(filter(None, (self._place(child, internal) for child in node.iter_expressions())), None)


def _run(part: Call, key: Call) -> int | None:
    """Where the arguments of the key stand among those of the part."""
    length = len(key.arguments)
    places = range(len(part.arguments) - length + 1)
    return next((i for i in places if part.arguments[i : i + length] == key.arguments), None)


def _with_run(part: Call, key: Call, column: Expression) -> Call:
    place = _run(part, key)
    assert place is not None
    rest = part.arguments[place + len(key.arguments) :]
    return part.with_arguments((*part.arguments[:place], column, *rest))


def _where(condition: Bound, argument: Bound) -> Bound:
    """The argument of an aggregate with FILTER, not computed where the condition is not true."""
    case = Case(((condition.expression, argument.expression),), argument.type)
    return Bound(case, True, argument.origin)
