"""Scripts: statements one after the other, each bound against what the earlier ones declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from attrs import evolve
from sqlglot import exp

from headwater.algebra.nodes import Plan, Union
from headwater.errors import InputError, SqlError
from headwater.language.boundedness import check_bounded
from headwater.language.catalog import Catalog, Derived, Entry, Function, Kind, Stream
from headwater.language.consistency import STRONG, Consistency, bind_consistency
from headwater.language.declarations import Declaration, bind_target, check_references, late_stream
from headwater.language.emission import bind_emission
from headwater.language.functions.user_functions import bind_function, functions_of
from headwater.language.heartbeat_function import check_time, with_heartbeats
from headwater.language.introspection import Answer, Explain
from headwater.language.missing_matches import missing_matches
from headwater.language.notices import Notice
from headwater.language.parsing.statements import deep_recursion, parse_script
from headwater.language.parsing.syntax import (
    AlterQuery,
    CreateFunction,
    CreateStream,
    Describe,
    Drop,
    ExplainStatement,
    SelectStatement,
    SetOption,
    Show,
)
from headwater.language.query import QueryBinder
from headwater.language.questions import Questions
from headwater.language.quoted_names import quoted_names
from headwater.language.relations.from_items import Output
from headwater.language.script import RESULT, Query, Script, with_names
from headwater.language.text import OfText, did_you_mean
from headwater.language.time_binding import StreamReference
from headwater.language.time_clauses import Lag, Skew
from headwater.language.time_units import check_consistency, check_one_domain, timed_streams
from headwater.settings import Settings

_DEEPEST = 200
_DEEPEST_EXPRESSION = 900
"""DuckDB takes a thousand."""


def bind_script(
    text: str,
    catalog: Catalog | None = None,
    settings: Settings | None = None,
    *,
    running: Sequence[Query] = (),
    awaited: Sequence[str] = (),
) -> Script:
    """Bind all statements of a script; the first mistake raises a ``SqlError``.

    ``running``: queries that run already; ``awaited``: the names of those that a checkpoint has and that do not run yet.

    >>> script = bind_script("CREATE STREAM s (x INT); SELECT x AS y FROM s WHERE x > 2")
    >>> script.result.plan.expressions
    (('y', Column(name='x', type=DataType(int32))),)
    """
    binder = _ScriptBinder(text, Catalog() if catalog is None else catalog, settings or Settings(), running, awaited)
    with deep_recursion():
        for statement in parse_script(text):
            binder.bind(statement)
        binder.finish()
    return binder.script()


def _is_deep(plan: Plan) -> bool:
    """Has it more operators above each other than can be worked with? Level by level: without recursion."""
    level, deep = {id(plan): plan}, 0
    while level and deep <= _DEEPEST:
        level, deep = {id(child): child for node in level.values() for child in node.inputs}, deep + 1
    return bool(level) or _unions(plan, {}) > _DEEPEST  # the optimizer makes a chain of those


def _is_nested(query: exp.Expr) -> bool:
    """Is an expression deeper than what computes it takes? Chains of AND and OR are not deep, whatever their length."""
    level, deep = [query], 0
    while level and deep <= _DEEPEST_EXPRESSION:
        below = [child for node in level for child in node.iter_expressions()]
        while chained := [node for node in below if isinstance(node, exp.Connector | exp.SetOperation)]:
            below = [node for node in below if not isinstance(node, exp.Connector | exp.SetOperation)]
            below += [child for node in chained for child in node.iter_expressions()]
        level, deep = below, deep + 1
    return bool(level)


def _unions(plan: Plan, known: dict[int, int]) -> int:
    """How many there are, a shared one as often as it is read."""
    if id(plan) not in known:
        known[id(plan)] = isinstance(plan, Union) + sum(_unions(child, known) for child in plan.inputs)
    return known[id(plan)]


class _ScriptBinder(OfText):
    def __init__(
        self, text: str, catalog: Catalog, settings: Settings, running: Sequence[Query], awaited: Sequence[str]
    ) -> None:
        self.text, self.catalog, self.settings = text, catalog, settings
        self.running = {query.name.casefold(): query for query in running}
        self.kept = {name.casefold(): name for name in (*awaited, *(query.name for query in running))}
        """Queries that can be ended."""
        self.ended: list[str] = []
        self.named: dict[str, Query] = {}
        self.altered: dict[str, Consistency] = {}
        self._selects: list[Query] = []
        self.notices: dict[Notice, None] = {}
        self.answers: list[Answer | Explain] = []
        self._references: dict[str, tuple[StreamReference, ...]] = {}

    def script(self) -> Script:
        named, notices = tuple(self.named.values()), tuple(self.notices)
        asked = tuple(self.answers), self.altered, tuple(self.ended)
        return Script(self.catalog, named, self._named_selects(), notices, self.settings, *asked)

    def _named_selects(self) -> tuple[Query, ...]:
        return with_names(self._selects, {name.casefold() for name in self.catalog.names()})

    def bind(self, node: exp.Expr) -> None:
        if type(node) not in self._STATEMENTS:
            word = node.key.removesuffix("statement").upper()  # END
            raise self.error(node, "UNKNOWN_STATEMENT", f'unknown statement "{word}"')
        self._STATEMENTS[type(node)](self, node)

    def finish(self) -> None:
        """What can be checked only when all of the script is known."""
        for stream, references in self._references.items():
            check_references(self.text, self.catalog, stream, references)

    def _query(self, node: exp.Expr) -> tuple[Output, QueryBinder]:
        if _is_nested(node):
            hint = "Give parts of it names of their own, in a sub-query: SELECT … FROM (SELECT … AS name FROM …)."
            raise self.error(
                node, "TOO_DEEP", f"an expression is nested more than {_DEEPEST_EXPRESSION} times", hint=hint
            )
        binder = QueryBinder(self.catalog, self.text, one_row=self.settings.empty_aggregate == "one_row")
        with functions_of(self.catalog) as called:
            output = binder.bind(with_heartbeats(self.text, self.catalog, node))
        check_time(self.text, self.catalog, node, output.plan.streams)
        check_one_domain(self.text, node, output.plan, self.catalog.get)
        binder.uses |= called
        if _is_deep(output.plan):
            hint = "Give parts of it names of their own: CREATE STREAM … AS."
            raise self.error(
                node, "TOO_DEEP", f"the query has more than {_DEEPEST} operators or UNIONs above each other", hint=hint
            )
        refuse = self.settings.unbounded_state == "error"
        written = [*quoted_names(self.text, self.catalog, node), *missing_matches(node)]
        bounded = check_bounded(output.plan, binder.unbounded, refuse=refuse)
        notices = [*written, *binder.notices, *bounded, *binder.instant_notices(output.plan)]
        self._notice(*notices)
        return output, binder

    def _notice(self, *notices: Notice) -> None:
        self.notices.update(dict.fromkeys(notices))

    def _select(self, node: SelectStatement) -> None:
        output, binder = self._query(node.this)
        consistency = self._consistency(node, output.plan)
        emission = bind_emission(self.text, node.args.get("emission"), consistency, self._times(output.plan))
        self._selects.append(Query.of(RESULT, output.plan, consistency, emission, frozenset(binder.uses)))

    def _consistency(self, node: exp.Expr, plan: Plan | None) -> Consistency | None:
        clause = node.args.get("consistency")
        if plan is not None:
            check_consistency(self.text, clause, plan, self.catalog.get)
        return bind_consistency(self.text, clause)

    def _times(self, plan: Plan) -> set[bool]:
        """For each stream that a plan reads: are its times TIMESTAMPs, not plain numbers?"""
        return {stream.has_unit for stream in timed_streams(plan, self.catalog.get)}

    # -- CREATE -----------------------------------------------------------------------------------------------------

    def _create(self, node: CreateStream) -> None:
        existing = self.catalog.get(node.this.name)
        if existing is not None and self._stays(node, existing):
            return
        declaration = Declaration(self.text, self.catalog, node)
        late, references = None, ()
        if node.args.get("query") is not None:
            entry = self._derived(node, declaration)
        elif node.args.get("values") is not None:
            with functions_of(self.catalog):
                entry = declaration.constant()
        else:
            entry, rules = declaration.declared()
            late, references = late_stream(self.text, self.catalog, node, entry), rules.references
            self._notice(*rules.notices)
        if existing is not None:  # only now that the new one is known to be right
            self._forget(existing)
        for new in (late, entry):
            if new is not None:
                self.catalog.add(new)
        self._references[entry.name.casefold()] = references
        if isinstance(entry, Derived) and not entry.is_constant:
            self.named[entry.name.casefold()] = Query.of(
                entry.name, entry.plan, entry.consistency, entry.emission, entry.uses, entry.target
            )

    def _derived(self, node: CreateStream, declaration: Declaration) -> Derived:
        name = declaration.name
        if node.args.get("key") is not None:
            raise self.error(node.args["key"], "UNSUPPORTED", "what a query defines has no PRIMARY KEY")
        output, binder = self._query(node.args["query"])
        if name.casefold() in binder.uses:
            raise self.error(node.this, "SELF_REFERENCE", f'{declaration.kind.value} "{name}" cannot read itself')
        plan, fields = declaration.renamed(output)
        unbounded = tuple({id(u.window): u for u in binder.unbounded}.values())
        consistency = self._consistency(node, plan)
        emission = bind_emission(self.text, node.args.get("emission"), consistency, self._times(plan))
        uses, target = frozenset(binder.uses), bind_target(self.text, node)
        return Derived(name, plan, fields, uses, unbounded, declaration.kind, (), consistency, emission, target)

    def _stays(self, node: CreateStream | CreateFunction, existing: Entry | Function) -> bool:
        """Does what has the name stay? With OR REPLACE it may go, unless something depends on it."""
        kind, name = existing.kind.value, existing.name
        if node.args.get("if_not_exists"):
            self._notice(Notice("EXISTS_ALREADY", f'{kind} "{name}" exists already and stays as it is'))
            return True
        if not node.args.get("replace"):
            code = f"DUPLICATE_{kind.upper()}"
            hint = f"Drop it first: DROP {kind.upper()} {name};"
            raise self.error(node.this, code, f'{kind} "{name}" exists already', hint=hint)
        self._check_kind(node.this, existing, Kind(str(node.args.get("kind", "FUNCTION")).lower()))
        self._check_unused(node.this, existing)
        return False

    def _create_function(self, node: CreateFunction) -> None:
        if not self.catalog.python_functions:
            raise self.error(
                node.this,
                "PYTHON_FUNCTIONS_OFF",
                f'function "{node.this.name}" cannot be created: Python functions are switched off here',
                hint="Who starts the engine decides: connect(python_functions=True), or no --no-python-functions.",
            )
        existing = self.catalog.function(node.this.name)
        if existing is not None and self._stays(node, existing):
            return
        function = bind_function(self.text, node)
        self.catalog.functions[function.name.casefold()] = function

    # -- DROP -------------------------------------------------------------------------------------------------------

    def _drop(self, node: Drop) -> None:
        if node.args["kind"] == "QUERY":
            return self._end(node)
        name, kind = node.this.name, Kind(node.args["kind"].lower())
        found = self.catalog.function(name) if kind is Kind.FUNCTION else self.catalog.get(name)
        if found is None:
            if node.args.get("if_exists"):
                self._notice(Notice("NOTHING_TO_DROP", f'{kind.value} "{name}" does not exist'))
                return
            names = [f.name for f in self.catalog.functions.values()]
            hint = did_you_mean(name, names if kind is Kind.FUNCTION else self.catalog.names(), all_of_them="There are")
            if name.casefold() in self.running:
                hint = f"A query of that name runs; to end it: DROP QUERY {name};"
            raise self.error(node.this, f"UNKNOWN_{kind.name}", f'{kind.value} "{name}" does not exist', hint=hint)
        self._check_kind(node.this, found, kind)
        self._check_unused(node.this, found)
        self._forget(found)
        self._lapse(found)

    def _end(self, node: Drop) -> None:
        """A query that runs ends; what it was defined by stays."""
        name = node.this.name
        found = self.kept.pop(name.casefold(), None)
        if found is not None:
            self.running.pop(name.casefold(), None)
            self.ended.append(found)
            return
        message, entry = f'no query "{name}" runs', self.catalog.get(name)
        if node.args.get("if_exists"):
            self._notice(Notice("NOTHING_TO_DROP", message))
            return
        hint = did_you_mean(name, list(self.kept.values()), all_of_them="There are")
        if isinstance(entry, Derived):
            hint = f"To drop what it is defined by: DROP {entry.kind.name} {entry.name};"
        raise self.error(node.this, "UNKNOWN_QUERY", message, hint=hint)

    def _check_kind(self, node: exp.Expr, found: Entry | Function, wanted: Kind) -> None:
        if found.kind is not wanted:
            message = f'"{found.name}" is a {found.kind.value}, not a {wanted.value}'
            raise self.error(node, "WRONG_KIND", message, hint=f"Write {found.kind.name} instead of {wanted.name}.")

    def _check_unused(self, node: exp.Expr, found: Entry | Function) -> None:
        kind, name = found.kind, found.name
        users = self.catalog.callers(name) if isinstance(found, Function) else self.catalog.dependents(name)
        if users:
            listed = ", ".join(f'"{d}"' for d in users)
            message = f'{kind.value} "{name}" is used by {listed}'
            raise self.error(node, f"{kind.name}_IN_USE", message, hint="Drop what uses it first.")

    def _forget(self, found: Entry | Function) -> None:
        folded = found.name.casefold()
        if isinstance(found, Function):
            del self.catalog.functions[folded]
            return
        self.catalog.drop(folded)
        self.named.pop(folded, None)
        self._references.pop(folded, None)

    def _lapse(self, dropped: Entry | Function) -> None:
        """A bound to a stream that is gone says nothing any more; heartbeats only come later without it."""
        folded = dropped.name.casefold()
        for other in [s for s in self.catalog if isinstance(s, Stream) and isinstance(dropped, Stream)]:
            kept = tuple(c for c in other.clauses if not (isinstance(c, (Lag, Skew)) and c.other.casefold() == folded))
            if len(kept) == len(other.clauses):
                continue
            self.catalog.add(evolve(other, clauses=kept))
            references = self._references.get(other.name.casefold(), ())
            self._references[other.name.casefold()] = tuple(r for r in references if r.name.casefold() != folded)
            message = f'the bounds of stream "{other.name}" to "{dropped.name}" are gone with it'
            self._notice(Notice("LAPSED_BOUND", message))

    # -- ALTER ------------------------------------------------------------------------------------------------------

    def _alter(self, node: AlterQuery) -> None:
        found, runs = self.catalog.get(node.this.name), self.running.get(node.this.name.casefold())
        known = runs or found
        level = self._consistency(node, known.plan if known is not None else None)
        assert level is not None
        if runs is not None:
            self.altered[runs.name] = level
        if not isinstance(found, Derived) or found.is_constant:
            if runs is not None:
                return
            queries = [e.name for e in self.catalog if isinstance(e, Derived) and not e.is_constant]
            queries += [query.name for query in self.running.values()]
            hint = did_you_mean(node.this.name, list(dict.fromkeys(queries)), all_of_them="There are")
            raise self.error(node.this, "UNKNOWN_QUERY", f'query "{node.this.name}" does not exist', hint=hint)
        self.catalog.add(evolve(found, consistency=level))
        self.altered[found.name] = level
        folded = found.name.casefold()
        if folded in self.named:
            self.named[folded] = evolve(self.named[folded], consistency=level)

    # -- SET --------------------------------------------------------------------------------------------------------

    def _set(self, node: SetOption) -> None:
        name, value = node.this.name.lower(), node.args["value"]
        if name not in Settings.names():
            hint = did_you_mean(name, Settings.names(), all_of_them="There are")
            raise self.error(node.this, "UNKNOWN_SETTING", f'setting "{name}" does not exist', hint=hint)
        allowed = Settings.values(name)
        if allowed and value.name.lower() not in allowed:
            raise self.error(
                value,
                "INVALID_SETTING",
                f'setting "{name}" cannot be "{value.name}"',
                hint=f"It is one of {', '.join(allowed)}.",
            )
        if Settings.is_number(name) and not value.name.isdecimal():
            raise self.error(
                value, "INVALID_SETTING", f'setting "{name}" cannot be "{value.name}"', hint="It is a whole number."
            )
        self.settings = self.settings.with_value(name, value.name.lower())

    # -- questions --------------------------------------------------------------------------------------------------

    def _ask(self, node: ExplainStatement | Show | Describe) -> None:
        asked = Questions(self.text, self.catalog, self._named_selects(), self._query, self.running)
        self.answers.append(asked.answer(node))

    _STATEMENTS: ClassVar[dict[type[exp.Expr], Callable[..., None]]] = {
        CreateStream: _create,
        CreateFunction: _create_function,
        AlterQuery: _alter,
        Drop: _drop,
        SetOption: _set,
        SelectStatement: _select,
        ExplainStatement: _ask,
        Show: _ask,
        Describe: _ask,
    }


def level_of(text: str | Consistency) -> Consistency:
    """What follows CONSISTENCY in a query.

    >>> print(level_of("BLOCK 5 SECONDS REMEMBER 1 MINUTE"))
    BLOCK 5 SECONDS REMEMBER 1 MINUTE
    """
    if isinstance(text, Consistency):
        return text
    try:
        script = bind_script(f"CREATE STREAM s (x INT); SELECT x FROM s CONSISTENCY {text}")
    except SqlError as problem:
        raise InputError(
            "CONSISTENCY",
            f'"{text}" is no level of consistency',
            detail=problem.message,
            hint="There are STRONG, MIDDLE, WEAK [REMEMBER t] and BLOCK t REMEMBER t [BY WALL CLOCK].",
        ) from problem
    assert script.result is not None
    return script.result.consistency or STRONG
