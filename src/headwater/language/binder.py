"""Scripts: statements one after the other, each bound against what the earlier ones declared."""

from __future__ import annotations

import pyarrow as pa
from attrs import field, frozen
from sqlglot import exp

from headwater.algebra.nodes import Plan
from headwater.errors import SqlError
from headwater.language.boundedness import check_bounded
from headwater.language.catalog import Catalog, Connector, Derived, Stream
from headwater.language.from_clause import Output
from headwater.language.notices import Notice
from headwater.language.query import QueryBinder
from headwater.language.statements import deep_recursion, parse_script
from headwater.language.syntax import CreateStream, DropStream, SelectStatement, SetOption
from headwater.language.text import did_you_mean, error_on
from headwater.language.types import TYPE_NAMES, declared_type, shown
from headwater.model.schema import RESERVED, Field, Schema
from headwater.settings import Settings


@frozen
class Query:
    """A query that can run: a named one (CREATE STREAM … AS) or a SELECT."""

    name: str
    plan: Plan = field(eq=False)
    consistency: str | None = None
    """``strong`` or ``middle``, if the query says so."""


@frozen
class Script:
    """What a script declares and asks for."""

    catalog: Catalog
    named: tuple[Query, ...]
    """The queries of CREATE STREAM … AS, in order."""
    result: Query | None
    """The last SELECT."""
    notices: tuple[Notice, ...]
    settings: Settings


RESULT = "query"
"""The name of a SELECT's result."""


def bind_script(text: str, catalog: Catalog | None = None, settings: Settings | None = None) -> Script:
    """Bind all statements of a script; the first mistake raises a ``SqlError``.

    >>> script = bind_script("CREATE STREAM s (x INT); SELECT x + 1 AS y FROM s WHERE x > 2")
    >>> script.result.plan.expressions[0]
    ('y', Scalar(sql='"x" + 1', type=DataType(int32), columns=('x',)))
    """
    binder = _ScriptBinder(text, Catalog() if catalog is None else catalog, settings or Settings())
    with deep_recursion():
        for statement in parse_script(text):
            binder.bind(statement)
    return binder.script()


class _ScriptBinder:
    def __init__(self, text: str, catalog: Catalog, settings: Settings) -> None:
        self.text, self.catalog, self.settings = text, catalog, settings
        self.named: dict[str, Query] = {}
        self.result: Query | None = None
        self.notices: dict[Notice, None] = {}

    def script(self) -> Script:
        return Script(self.catalog, tuple(self.named.values()), self.result, tuple(self.notices), self.settings)

    def error(self, node: exp.Expr, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.text, node, code, message, hint=hint)

    def bind(self, node: exp.Expr) -> None:
        match node:
            case CreateStream():
                self._create(node)
            case DropStream():
                self._drop(node)
            case SetOption():
                self._set(node)
            case SelectStatement():
                output, _ = self._query(node.this)
                self.result = Query(RESULT, output.plan, _consistency(node))

    def _query(self, node: exp.Expr) -> tuple[Output, QueryBinder]:
        binder = QueryBinder(self.catalog, self.text)
        output = binder.bind(node)
        refuse = self.settings.unbounded_state == "error"
        notices = [*binder.notices, *check_bounded(output.plan, binder.unbounded, refuse=refuse)]
        self.notices.update(dict.fromkeys(notices))
        return output, binder

    # -- statements -------------------------------------------------------------------------------------------------

    def _create(self, node: CreateStream) -> None:
        name = node.this.name
        if self.catalog.get(name) is not None:
            hint = f"Drop it first: DROP STREAM {name};"
            raise self.error(node.this, "DUPLICATE_STREAM", f'stream "{name}" exists already', hint=hint)
        if node.args.get("query") is None:
            self.catalog.add(self._declared(node, name))
            return
        output, binder = self._query(node.args["query"])
        fields = tuple(Field(c.name, c.type, c.nullable) for c in output.columns)
        unbounded = tuple({id(u.window): u for u in binder.unbounded}.values())
        self.catalog.add(Derived(name, output.plan, fields, frozenset(binder.uses), unbounded))
        self.named[name.casefold()] = Query(name, output.plan, _consistency(node))

    def _declared(self, node: CreateStream, name: str) -> Stream:
        fields: list[Field] = []
        for column in node.args["columns"]:
            if any(f.name.casefold() == column.name.casefold() for f in fields):
                raise self.error(
                    column.this, "DUPLICATE_COLUMN", f'stream "{name}" has more than one column "{column.name}"'
                )
            if column.name.casefold() in RESERVED:
                message = f'"{column.name}" cannot be the name of a column'
                hint = f"Reserved are {', '.join(RESERVED)}."
                raise self.error(column.this, "RESERVED_NAME", message, hint=hint)
            fields.append(Field(column.name, self._type(column.args["kind"]), not column.args["constraints"]))
        time = node.args.get("time")
        if time is not None:
            self._check_time(time, fields)
        return Stream(name, Schema(tuple(fields)), _connector(node.args.get("source")), time.name if time else None)

    def _type(self, node: exp.DataType) -> pa.DataType:
        type_ = declared_type(node)
        if type_ is None:
            written = node.sql(dialect="spark")
            raise self.error(node, "UNKNOWN_TYPE", f"there is no type {written}", hint=f"There are {TYPE_NAMES}.")
        return type_

    def _check_time(self, node: exp.Identifier, fields: list[Field]) -> None:
        found = next((f for f in fields if f.name.casefold() == node.name.casefold()), None)
        if found is None:
            hint = did_you_mean(node.name, [f.name for f in fields], all_of_them="The columns are")
            raise self.error(node, "UNKNOWN_COLUMN", f'column "{node.name}" does not exist', hint=hint)
        if not (pa.types.is_integer(found.type) or pa.types.is_timestamp(found.type) or pa.types.is_date32(found.type)):
            raise self.error(
                node,
                "TYPE_MISMATCH",
                f'a stream cannot be ordered by column "{found.name}" of type {shown(found.type)}',
                hint="Time is a TIMESTAMP, a DATE or an integer.",
            )

    def _drop(self, node: DropStream) -> None:
        name = node.this.name
        if self.catalog.get(name) is None:
            hint = did_you_mean(name, self.catalog.names(), all_of_them="There are")
            raise self.error(node.this, "UNKNOWN_STREAM", f'stream "{name}" does not exist', hint=hint)
        dependents = self.catalog.dependents(name)
        if dependents:
            listed = ", ".join(f'"{d}"' for d in dependents)
            raise self.error(
                node.this, "STREAM_IN_USE", f'stream "{name}" is used by {listed}', hint="Drop what uses it first."
            )
        self.catalog.drop(name)
        self.named.pop(name.casefold(), None)

    def _set(self, node: SetOption) -> None:
        name, value = node.this.name.lower(), node.args["value"]
        if name not in Settings.names():
            hint = did_you_mean(name, Settings.names(), all_of_them="There are")
            raise self.error(node.this, "UNKNOWN_SETTING", f'setting "{name}" does not exist', hint=hint)
        allowed = Settings.values(name)
        if value.name.lower() not in allowed:
            raise self.error(
                value,
                "INVALID_SETTING",
                f'setting "{name}" cannot be "{value.name}"',
                hint=f"It is one of {', '.join(allowed)}.",
            )
        self.settings = self.settings.with_value(name, value.name.lower())


def _consistency(node: exp.Expr) -> str | None:
    written = node.args.get("consistency")
    return written.name.lower() if written is not None else None


def _connector(node: exp.Expr | None) -> Connector | None:
    if node is None:
        return None
    arguments = tuple(_constant(a) for a in node.expressions if not isinstance(a, exp.PropertyEQ))
    options = tuple((a.name, _constant(a.expression)) for a in node.expressions if isinstance(a, exp.PropertyEQ))
    return Connector(node.this.name, arguments, options)


def _constant(node: exp.Expr) -> object:
    return node.to_py() if isinstance(node, (exp.Literal, exp.Boolean, exp.Neg, exp.Null)) else node.sql()
