"""EXPLAIN, SHOW and DESCRIBE: what is asked about, at its place in the script."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater.errors import SqlError
from headwater.language import system_views
from headwater.language.catalog import Catalog, Derived, Entry, Kind, Stream
from headwater.language.consistency import bind_consistency
from headwater.language.introspection import (
    SHOW_HEARTBEATS,
    Answer,
    Explain,
    ExplainFormat,
    ExplainLevel,
    ShownQuery,
    describe_built_in,
    describe_fields,
    describe_function,
    show_functions,
    show_queries,
    show_streams,
    show_tables,
)
from headwater.language.parsing.syntax import Describe, ExplainStatement, Show
from headwater.language.query import QueryBinder
from headwater.language.relations.from_items import Output
from headwater.language.script import RESULT, Query
from headwater.language.text import did_you_mean, error_on
from headwater.model.schema import Field


class Questions:
    """Answers questions about what the script has declared so far."""

    def __init__(
        self,
        text: str,
        catalog: Catalog,
        result: Query | None,
        bind_query: Callable[[exp.Expr], tuple[Output, QueryBinder]],
    ) -> None:
        self.text, self.catalog, self.result = text, catalog, result
        self._bind_query = bind_query

    def error(self, node: exp.Expr, code: str, message: str, *, hint: str = "") -> SqlError:
        return error_on(self.text, node, code, message, hint=hint)

    def answer(self, node: ExplainStatement | Show | Describe) -> Answer | Explain:
        match node:
            case ExplainStatement():
                return self._explain(node)
            case Show():
                return self._show(node)
        return self._describe(node)

    # -- EXPLAIN ----------------------------------------------------------------------------------------------------

    def _explain(self, node: ExplainStatement) -> Explain:
        if isinstance(node.this, exp.Identifier):
            entry = self.catalog.get(node.this.name)
            if entry is None:
                raise self._unknown(node.this, "QUERY")
            name, plan = entry.name, entry.plan
            consistency = entry.consistency if isinstance(entry, Derived) else None
        else:
            name, plan = RESULT, self._bind_query(node.this)[0].plan
            consistency = bind_consistency(self.text, node.args.get("consistency"))
        level = ExplainLevel((node.args.get("level") or "OPTIMIZED").lower())
        format_ = ExplainFormat((node.args.get("format") or "TREE").lower())
        streams = tuple(entry for entry in self.catalog if isinstance(entry, Stream))
        return Explain(name, plan, level, format_, bool(node.args.get("verbose")), consistency, streams)

    # -- SHOW -------------------------------------------------------------------------------------------------------

    def _show(self, node: Show) -> Answer:
        like = node.args["like"].name if node.args.get("like") else None
        match node.this:
            case "STREAMS":
                return show_streams(self.catalog, like)
            case "TABLES":
                return show_tables(self.catalog, like)
            case "VIEWS":
                return show_tables(self.catalog, like, (Kind.VIEW,))
            case "QUERIES":
                return show_queries(self._queries(), like)
            case "HEARTBEATS":
                return Answer(SHOW_HEARTBEATS, system_views.HEARTBEATS.schema.names, ())
        return show_functions(self.catalog, like, node.args.get("origin"))

    def _queries(self) -> list[ShownQuery]:
        derived = [e for e in self.catalog if isinstance(e, Derived) and not e.is_constant]
        shown = [ShownQuery(e.name, e.fields, e.consistency, e.uses) for e in derived]
        if self.result is not None:
            fields = self.result.plan.schema.fields
            shown.append(ShownQuery(RESULT, fields, self.result.consistency, self.result.uses))
        return shown

    # -- DESCRIBE ---------------------------------------------------------------------------------------------------

    def _describe(self, node: Describe) -> Answer:
        kind = node.args.get("kind")
        if not isinstance(node.this, exp.Identifier):
            output, _ = self._bind_query(node.this)
            return describe_fields(RESULT, [Field(c.name, c.type, c.nullable) for c in output.columns])
        entry = None if kind == "FUNCTION" else system_views.found(self.catalog, node.this.name)
        if entry is not None:
            self._check_kind(node.this, entry, kind)
            return describe_fields(entry.name, entry.fields, entry)
        if kind in (None, "QUERY") and node.this.name.casefold() == RESULT and self.result is not None:
            return describe_fields(RESULT, self.result.plan.schema.fields)
        found = self._function(node.this.name) if kind in (None, "FUNCTION") else None
        if found is None:
            raise self._unknown(node.this, kind)
        return found

    def _function(self, name: str) -> Answer | None:
        function = self.catalog.function(name)
        return describe_function(function) if function is not None else describe_built_in(name)

    def _check_kind(self, node: exp.Expr, entry: Entry, kind: str | None) -> None:
        if kind is None or kind == entry.kind.name or (kind == "QUERY" and isinstance(entry, Derived)):
            return
        hint = "" if kind == "QUERY" else f"Write {entry.kind.name} instead of {kind}."
        message = f'"{entry.name}" is a {entry.kind.value}, not a {kind.lower()}'
        raise self.error(node, "WRONG_KIND", message, hint=hint)

    def _unknown(self, node: exp.Expr, kind: str | None) -> SqlError:
        functions = [f.name for f in self.catalog.functions.values()]
        names = functions if kind == "FUNCTION" else [*self.catalog.names(), *(functions if kind is None else ())]
        hint = did_you_mean(node.name, names, all_of_them="There are")
        what = (kind or "STREAM").lower()
        return self.error(node, f"UNKNOWN_{what.upper()}", f'{what} "{node.name}" does not exist', hint=hint)
