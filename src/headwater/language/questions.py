"""EXPLAIN, SHOW and DESCRIBE: what is asked about, at its place in the script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from headwater.errors import SqlError
from headwater.language import system_views
from headwater.language.catalog import Catalog, Derived, Entry, Kind, Stream
from headwater.language.consistency import bind_consistency
from headwater.language.emission import bind_emission, shown_emission
from headwater.language.introspection import (
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
    show_sinks,
    show_streams,
    show_tables,
)
from headwater.language.parsing.syntax import Describe, ExplainStatement, Show
from headwater.language.query import QueryBinder
from headwater.language.relations.from_items import Output
from headwater.language.script import RESULT, Query
from headwater.language.text import OfText, did_you_mean
from headwater.model.schema import Field


class Questions(OfText):
    """Answers questions about what the script has declared so far."""

    def __init__(
        self,
        text: str,
        catalog: Catalog,
        selects: Sequence[Query],
        bind_query: Callable[[exp.Expr], tuple[Output, QueryBinder]],
        running: Mapping[str, Query] | None = None,
    ) -> None:
        """``selects``: those of the script so far; ``running``: by folded name, the queries that run already."""
        self.text, self.catalog, self.running = text, catalog, running or {}
        self._selects = {query.name: query for query in selects}
        self._bind_query = bind_query

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
            # What runs under a name may have been defined otherwise than what has the name now.
            entry = self.running.get(node.this.name.casefold()) or self.catalog.get(node.this.name)
            if entry is None:
                raise self._unknown(node.this, "QUERY")
            name, plan = entry.name, entry.plan
            consistency = None if isinstance(entry, Stream) else entry.consistency
            emission = None if isinstance(entry, Stream) else entry.emission
        else:
            name, plan = RESULT, self._bind_query(node.this)[0].plan
            consistency = bind_consistency(self.text, node.args.get("consistency"))
            emission = bind_emission(self.text, node.args.get("emission"), consistency, ())
        plan = plan if emission is None else emission.of(plan)
        level = ExplainLevel((node.args.get("level") or "OPTIMIZED").lower())
        format_ = ExplainFormat((node.args.get("format") or "TREE").lower())
        streams = tuple(entry for entry in self.catalog if isinstance(entry, Stream))
        return Explain(name, plan, level, format_, bool(node.args.get("verbose")), consistency, streams, emission)

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
            case "SINKS":
                return show_sinks(self.catalog, like)
            case "QUERIES":
                return show_queries(self._queries(), like)
            case "FUNCTIONS":
                return show_functions(self.catalog, like, node.args.get("origin"))
        view = system_views.SYSTEM_VIEWS[node.this.casefold()]
        return Answer(view.title, view.schema.names, ())

    def _queries(self) -> list[ShownQuery]:
        derived = [e for e in self.catalog if isinstance(e, Derived) and not e.is_constant]
        shown = {e.name.casefold(): ShownQuery(e.name, e.fields, e.consistency, e.uses, _emit(e)) for e in derived}
        new = [query for name, query in self._selects.items() if name not in self.running]
        for query in (*self.running.values(), *new):
            fields = query.plan.schema.fields
            shown[query.name.casefold()] = ShownQuery(query.name, fields, query.consistency, query.uses, _emit(query))
        return list(shown.values())

    # -- DESCRIBE ---------------------------------------------------------------------------------------------------

    def _describe(self, node: Describe) -> Answer:
        kind = node.args.get("kind")
        if not isinstance(node.this, exp.Identifier):
            output, _ = self._bind_query(node.this)
            return describe_fields(RESULT, [Field(c.name, c.type, c.nullable) for c in output.columns])
        entry = None if kind == "FUNCTION" else system_views.find_entry(self.catalog, node.this.name)
        if entry is not None:
            self._check_kind(node.this, entry, kind)
            return describe_fields(entry.name, entry.fields, entry)
        folded = node.this.name.casefold()
        runs = (self._selects.get(folded) or self.running.get(folded)) if kind in (None, "QUERY") else None
        if runs is not None:
            return describe_fields(runs.name, runs.plan.schema.fields)
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
        if kind in (None, "QUERY"):
            names = list(dict.fromkeys([*names, *(query.name for query in self.running.values())]))
        hint = did_you_mean(node.name, names, all_of_them="There are")
        what = (kind or "STREAM").lower()
        return self.error(node, f"UNKNOWN_{what.upper()}", f'{what} "{node.name}" does not exist', hint=hint)


def _emit(query: Query | Derived) -> str:
    """When its rows go out; a view is only a name."""
    is_view = isinstance(query, Derived) and query.kind is Kind.VIEW
    return "-" if is_view else shown_emission(query.emission, query.consistency)
