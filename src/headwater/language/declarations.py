"""CREATE STREAM, TABLE and VIEW: from the statement to what the catalog keeps of it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Plan
from headwater.expressions.rewrite import typed_as
from headwater.expressions.types import common_type
from headwater.language.catalog import Catalog, Connector, Derived, Kind, Stream, Target
from headwater.language.change_binding import ChangeBinder
from headwater.language.computed import Computed, ComputedBinder, name_of_time
from headwater.language.durations import wall_clock
from headwater.language.parsing.syntax import CreateStream
from headwater.language.relations.constants import bind_values, check_key
from headwater.language.relations.from_items import Output
from headwater.language.scope import project, reference
from headwater.language.statistics_clause import bind_statistics
from headwater.language.text import OfText, did_you_mean, error_on
from headwater.language.time_binding import StreamReference, TimeBinder, TimeRules
from headwater.language.time_clauses import LatePolicy, LateRows
from headwater.language.types import declared_type, shown, types_hint, written_type
from headwater.model.schema import RESERVED, Field, Schema


class Declaration(OfText):
    """Binds one CREATE statement that declares columns."""

    def __init__(self, text: str, catalog: Catalog, node: CreateStream) -> None:
        self.text, self.catalog, self.node = text, catalog, node
        self.name, self.kind = node.this.name, Kind(node.args["kind"].lower())

    def declared(self) -> tuple[Stream, TimeRules]:
        """A stream or relation whose elements come from outside."""
        fields, computed = self.with_computed(self.fields())
        key = self.key(fields)
        fields = [evolve(f, nullable=f.nullable and f.name not in key) for f in fields]
        source = self.node.args.get("source")
        binder = ChangeBinder(self.text, source, self.node.args.get("columns") or ())
        bound = binder.bind()
        if computed and bound.time is not None:
            raise self.error(
                self.node.this,
                "UNSUPPORTED",
                f'the rows of "{self.name}" are images inside of change events, of which nothing can be computed here',
                hint="Compute it in a query: CREATE VIEW other AS SELECT *, timestamp_millis(ts) AS t FROM …",
            )
        times = TimeBinder(self.text, self.name, fields, implicit=bound.time, elements=bound.has_elements)
        rules = times.bind(self.node.args.get("clauses") or ())
        binder.check(bound, fields, times.time)
        stream = Stream(
            self.name,
            Schema(tuple(fields)),
            _connector(source),
            rules.time,
            rules.clauses,
            self.kind,
            key,
            changes=bound.changes,
            numbered=bound.numbered,
            computed=tuple((c.field.name, c.expression) for c in computed),
        )
        statistics = bind_statistics(self.text, self.node.args.get("statistics") or (), stream)
        return evolve(stream, statistics=statistics), rules

    def check_not_computed(self) -> None:
        """What a query or VALUES define computes its columns there."""
        found = next((c for c in self.node.args.get("columns") or () if c.args.get("computed") is not None), None)
        if found is not None:
            raise self.error(
                found,
                "SYNTAX",
                f'column "{found.name}" is computed, but "{self.name}" is defined by what stands after AS',
                hint=f"Compute it there: SELECT …, {found.args['computed'].sql(dialect='spark')} AS {found.name}.",
            )

    def constant(self) -> Derived:
        """A relation given by VALUES."""
        self.check_not_computed()
        written = self.node.args.get("columns")
        rows = self.node.args["values"].expressions
        if written and all(c.args.get("kind") is not None for c in written):
            plan = bind_values(self.text, rows, self.fields())
        else:
            plan = bind_values(self.text, rows)
            if written:
                self._check_count(len(plan.schema))
                names = self.names()
                plan = bind_values(
                    self.text, rows, [Field(n, f.type, f.nullable) for n, f in zip(names, plan.schema, strict=True)]
                )
        key = self.key(plan.schema.fields)
        if key:
            check_key(self.text, self.node.args["key"], plan, key)
        return Derived(self.name, plan, plan.schema.fields, kind=self.kind, key=key)

    def renamed(self, output: Output) -> tuple[Plan, tuple[Field, ...]]:
        """The result of a query under the declared names, as the declared types where they are wider."""
        self.check_not_computed()
        found = tuple(Field(c.name, c.type, c.nullable) for c in output.columns)
        written = self.node.args.get("columns")
        if not written:
            return output.plan, found
        self._check_count(len(found))
        expressions, fields = [], []
        for column, name, have, source in zip(written, self.names(), found, output.columns, strict=True):
            type_ = self.type(column.args["kind"]) if column.args.get("kind") is not None else have.type
            if type_ != have.type and common_type(type_, have.type) != type_:
                message = f'column "{name}" of type {shown(type_)} cannot hold {shown(have.type)}'
                raise self.error(column, "TYPE_MISMATCH", message, hint="Convert it in the query with CAST.")
            expressions.append((name, typed_as(reference(source), type_)))
            fields.append(Field(name, type_, have.nullable))
        return project(output.plan, expressions), tuple(fields)

    # -- columns ----------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of the declared columns, each once."""
        seen: set[str] = set()
        for column in self.node.args["columns"]:
            if column.name.casefold() in seen:
                message = f'{self.kind.value} "{self.name}" has more than one column "{column.name}"'
                raise self.error(column.this, "DUPLICATE_COLUMN", message)
            if column.name.casefold() in RESERVED:
                message = f'"{column.name}" cannot be the name of a column'
                hint = f"Reserved are {', '.join(RESERVED)}."
                raise self.error(column.this, "RESERVED_NAME", message, hint=hint)
            seen.add(column.name.casefold())
        return [c.name for c in self.node.args["columns"]]

    def with_computed(self, brought: list[Field]) -> tuple[list[Field], list[Computed]]:
        """All columns in their order, and those that are computed; a time that is an expression comes last."""
        columns = self.node.args["columns"]
        written = {c.name: c.args["computed"] for c in columns if c.args.get("computed") is not None}
        for clause in self.node.args.get("clauses") or ():
            if clause.args.get("computed") is not None:
                clause.set("column", name_of_time(self.text, clause, [c.name for c in columns]))
                written[clause.args["column"].name] = clause.args["computed"]
        binder = ComputedBinder(self.text, self.catalog, brought, others=tuple(written))
        computed = [binder.bind(name, node) for name, node in written.items()]
        found = {f.name: f for f in (*brought, *(c.field for c in computed))}
        names = [c.name for c in columns]
        return [found[n] for n in (*names, *(n for n in found if n not in names))], computed

    def fields(self) -> list[Field]:
        """The columns that have a type."""
        columns = [c for c in self.node.args.get("columns") or [] if c.args.get("computed") is None]
        if not columns:
            raise self.error(self.node.this, "SYNTAX", f'{self.kind.value} "{self.name}" has no columns')
        self.names()
        names = [c.name for c in columns]
        untyped = next((c for c in columns if c.args.get("kind") is None), None)
        if untyped is not None:
            raise self.error(untyped.this, "SYNTAX", f'column "{untyped.name}" has no type')
        return [
            Field(name, self.type(c.args["kind"]), not c.args["constraints"])
            for name, c in zip(names, columns, strict=True)
        ]

    def type(self, node: exp.DataType) -> pa.DataType:
        type_ = declared_type(node)
        if type_ is None:
            message = f"there is no type {written_type(node)}"
            raise self.error(node, "UNKNOWN_TYPE", message, hint=types_hint(node))
        return type_

    def key(self, fields: Sequence[Field]) -> tuple[str, ...]:
        """PRIMARY KEY, for tables only."""
        node = self.node.args.get("key")
        if node is None:
            return ()
        if self.kind is not Kind.TABLE:
            message = f"a {self.kind.value} has no PRIMARY KEY"
            raise self.error(node, "UNSUPPORTED", message, hint="What has a key is a table: CREATE TABLE.")
        by_name = {f.name.casefold(): f.name for f in fields}
        chosen: list[str] = []
        for column in node.expressions:
            found = by_name.get(column.name.casefold())
            if found is None:
                hint = did_you_mean(column.name, by_name.values(), all_of_them="The columns are")
                raise self.error(column, "UNKNOWN_COLUMN", f'column "{column.name}" does not exist', hint=hint)
            if found in chosen:
                raise self.error(column, "DUPLICATE_COLUMN", f'the key has column "{found}" twice')
            chosen.append(found)
        return tuple(chosen)

    def _check_count(self, found: int) -> None:
        given = len(self.node.args["columns"])
        if given != found:
            message = f'"{self.name}" has {found} column{"" if found == 1 else "s"}, but {given} names are given'
            raise self.error(self.node.this, "COLUMN_COUNT", message)


def late_stream(text: str, catalog: Catalog, node: CreateStream, stream: Stream) -> Stream | None:
    """The stream of late rows that DIVERT INTO declares: None if there is one already, which must have the same columns."""
    clause = next((c for c in stream.clauses if isinstance(c, LateRows) and c.policy is LatePolicy.DIVERT), None)
    if clause is None or clause.into is None:
        return None
    found = catalog.get(clause.into)
    if found is None or (
        isinstance(found, Stream) and found.late_rows_of == stream.name
    ):  # the latter: of a replaced one
        return Stream(clause.into, stream.carried, kind=Kind.STREAM, late_rows_of=stream.name)
    place = next(c.args["other"] for c in node.args["clauses"] if c.this == "LATE ROWS")
    if not isinstance(found, Stream) or found.source is not None:
        message = f'late rows cannot be diverted into "{found.name}", which has rows of its own'
        raise error_on(text, place, "DIVERT_TARGET", message)
    if [(f.name.casefold(), f.type) for f in found.fields] != [(f.name.casefold(), f.type) for f in stream.carried]:
        message = f'{found.kind.value} "{found.name}" does not have the columns of "{stream.name}"'
        detail = f"They are {found.schema}, not {stream.carried}."
        raise error_on(text, place, "DIVERT_TARGET", message, detail=detail)
    return None


def check_references(text: str, catalog: Catalog, stream: str, references: Sequence[StreamReference]) -> None:
    """At the end of a script: the streams that LAGS and SKEW name must be there. Two streams may name each other."""
    ours = catalog.get(stream)
    for reference_ in references:
        found = catalog.get(reference_.name)
        if found is None:
            hint = did_you_mean(reference_.name, catalog.names(), all_of_them="There are")
            message = f'stream "{reference_.name}" does not exist'
            raise error_on(text, reference_.node, "UNKNOWN_STREAM", message, hint=hint)
        if not isinstance(found, Stream):
            message = f'{found.kind.value} "{found.name}" is computed by a query and has no clock of its own'
            raise error_on(text, reference_.node, "TIME_BOUND", message)
        if found.time is None:
            hint = "Say which column it is: ORDERED BY column."
            message = f'{found.kind.value} "{found.name}" has no time column'
            raise error_on(text, reference_.node, "NO_TIME_COLUMN", message, hint=hint)
        if isinstance(ours, Stream) and ours.has_unit != found.has_unit:
            message = f'the times of "{ours.name}" and "{found.name}" cannot be compared: only one is a plain number'
            raise error_on(text, reference_.node, "TIME_UNIT", message)


def bind_target(text: str, node: CreateStream) -> Target | None:
    """Where the rows of a sink go, and how often; None for anything else."""
    place, every = _connector(node.args.get("target")), node.args.get("every")
    if place is None:
        return None
    interval = 0 if every is None else wall_clock(text, every, "EVERY")
    if every is not None and interval == 0:
        hint = "Leave EVERY out: then the answers of each tick go out when it is done."
        raise error_on(text, every, "TIME_BOUND", "EVERY must be longer than nothing", hint=hint)
    return Target(place, interval)


def _connector(node: exp.Expr | None) -> Connector | None:
    if node is None:
        return None
    arguments = tuple(_constant(a) for a in node.expressions if not isinstance(a, exp.PropertyEQ))
    options = tuple((a.name, _constant(a.expression)) for a in node.expressions if isinstance(a, exp.PropertyEQ))
    return Connector(node.this.name, arguments, options)


def _constant(node: exp.Expr) -> object:
    return node.to_py() if isinstance(node, (exp.Literal, exp.Boolean, exp.Neg, exp.Null)) else node.sql()
