"""The select list: stars spread out, columns named, the projection made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
from attrs import evolve, frozen
from sqlglot import exp

from headwater.algebra.nodes import Plan
from headwater.language.expressions import ExpressionBinder, check_column_type
from headwater.language.notices import Notice
from headwater.language.scope import Bound, Column, NameSource, Relation, Scope, project, reference
from headwater.language.select.aggregates import calls_aggregate
from headwater.language.text import OfText, did_you_mean, span

_RELATION_TO_STREAM = frozenset({"ISTREAM", "DSTREAM", "RSTREAM", "ISTREAM-RESTORE", "RSTREAM-RESTORE"})


def relation_to_stream(node: exp.Select) -> str | None:
    """Which of Istream(…), Dstream(…) … the whole select list is."""
    only = node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(only, exp.Anonymous) and only.name.upper() in _RELATION_TO_STREAM and only.expressions:
        return only.name.upper()
    return None


@frozen
class Chosen:
    """One column of the select list: an expression under a name."""

    name: str
    node: exp.Expr
    column: Column | None = None
    """The column, when a star stands for it."""
    aliased: bool = False
    hidden: bool = False
    """Not of the select list, but computed beside it: what ORDER BY needs."""


@frozen
class Projected:
    """The columns of a select list over the rows of its query."""

    plan: Plan
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    """The plan's column for everything chosen, hidden ones last."""


class SelectList(OfText):
    """What stands between SELECT and FROM; ``also`` tells which hidden columns are needed beside the visible ones."""

    def __init__(
        self, text: str, node: exp.Select, *, also: Callable[[Sequence[Chosen]], Sequence[Chosen]] | None = None
    ) -> None:
        self.text, self._node, self._also = text, node, also
        self._written = self._unwrapped(list(node.expressions), distinct=bool(node.args.get("distinct")))

    def _unwrapped(self, listed: list[exp.Expr], *, distinct: bool) -> list[exp.Expr]:
        """``DISTINCT(a, b)`` is no tuple (Krämer, Example 17.7); ``Istream(a, b)`` is a query of a and b (CQL)."""
        tuple_ = distinct and len(listed) == 1 and isinstance(listed[0], exp.Tuple)
        return listed[0].expressions if tuple_ or relation_to_stream(self._node) else listed

    def expand(self, scope: Scope) -> list[Chosen]:
        """Every column of the result, stars spread out; then the hidden ones, then copies of outer columns."""
        chosen: list[Chosen] = []
        if not self._written:
            raise self.error(self._node, "SYNTAX", "the select list is empty")
        for node in self._written:
            star = node.this if isinstance(node, exp.Column) else node
            if isinstance(star, exp.Star):
                qualifier = node.args.get("table") if isinstance(node, exp.Column) else None
                chosen.extend(self._star(star, [Chosen(c.name, node, c) for c in scope.star(qualifier)]))
            elif isinstance(node, exp.Alias):
                chosen.append(Chosen(node.alias, node.this, aliased=True))
            elif isinstance(node, (exp.Aliases, exp.Tuple)):
                raise self.error(node, "UNSUPPORTED", "a column cannot be a list of expressions")
            else:
                chosen.append(Chosen(_default_name(self.text, node), node))
        copies = [Chosen(c.name, self._node, c) for c in (scope.carried or {}).values()]
        self._chosen = [*chosen, *(self._also(chosen) if self._also else ()), *copies]
        self._scope = scope
        return self._chosen

    def arguments(self) -> list[str | None]:
        """For each visible column the one that it is an aggregate of, if it has no name of its own."""
        return [_argument(c) for c in self._chosen if not c.hidden]

    # -- stars ------------------------------------------------------------------------------------------------------

    def _star(self, star: exp.Star, columns: list[Chosen]) -> list[Chosen]:
        """``* EXCEPT (a) REPLACE (x AS b) RENAME (c AS d)``."""
        if star.args.get("ilike"):
            raise self.error(star, "UNSUPPORTED", "* ILIKE is not supported", hint="List the columns.")
        left_out = {self._named(node, columns) for node in star.args.get("except_") or ()}
        kept = [c for c in columns if c.name.casefold() not in left_out]
        if not kept:
            raise self.error(star, "COLUMN_COUNT", "EXCEPT leaves no column")
        for node in star.args.get("replace") or ():
            if not isinstance(node, exp.Alias):
                raise self.error(node, "SYNTAX", "REPLACE takes expressions with a name: expression AS column")
            kept = self._changed(kept, self._named(node.args["alias"], kept), column=None, node=node.this)
        for node in star.args.get("rename") or ():
            if not isinstance(node, exp.Alias):
                raise self.error(node, "SYNTAX", "RENAME takes pairs of names: column AS name")
            kept = self._changed(kept, self._named(node.this, kept), name=node.alias)
        return kept

    def _named(self, node: exp.Expr, columns: Sequence[Chosen]) -> str:
        """The folded name of a column that the star stands for."""
        if not isinstance(node, (exp.Column, exp.Identifier)):
            raise self.error(node, "SYNTAX", "only names of columns can stand here")
        if node.name.casefold() not in (c.name.casefold() for c in columns):
            hint = did_you_mean(node.name, [c.name for c in columns], all_of_them="The columns are")
            raise self.error(node, "UNKNOWN_COLUMN", f'column "{node.name}" does not exist', hint=hint)
        return node.name.casefold()

    @staticmethod
    def _changed(columns: Sequence[Chosen], folded: str, **changes: object) -> list[Chosen]:
        return [evolve(c, **changes) if c.name.casefold() == folded else c for c in columns]  # type: ignore[arg-type]

    # -- projection -------------------------------------------------------------------------------------------------

    def project(
        self,
        relation: Relation,
        outputs: Sequence[Bound],
        notices: list[Notice],
        *,
        with_hidden: bool = False,
        beside: Iterable[Column] = (),
    ) -> Projected:
        """The columns under their names, a name that comes twice with a number; hidden ones only if wanted.

        ``beside``: further columns of the rows, which are no part of the list.
        """
        names = NameSource()
        owners = {c.internal: item.label for item in self._scope.items for c in item.columns}
        expressions, columns, found = [], [], {}
        all_names: list[str] = []
        for chosen, output in zip(self._chosen, outputs, strict=True):
            check_column_type(ExpressionBinder(self._scope, "SELECT"), output)
            bound = output.cast(pa.string()) if pa.types.is_null(output.type) else output
            if chosen.hidden and (not with_hidden or bound.expression in found):
                all_names.append(found.get(bound.expression, ""))
                continue
            name = names.unique(chosen.name)
            if name != chosen.name and not chosen.hidden:
                message = f'a second column "{chosen.name}" is called "{name}"'
                notices.append(Notice("RENAMED_COLUMN", message, "Give it a name of its own with AS."))
            expressions.append((name, bound.expression))
            all_names.append(name)
            found.setdefault(bound.expression, name)
            if not chosen.hidden:
                qualifier = owners.get(bound.column or "")
                untyped = pa.types.is_null(output.type)
                columns.append(Column(name, name, bound.type, bound.nullable, qualifier, untyped=untyped))
        expressions += [(names.unique(c.internal), reference(c)) for c in beside]
        return Projected(project(relation.plan, expressions), tuple(columns), tuple(all_names))


def _argument(chosen: Chosen) -> str | None:
    only = chosen.node.expressions if isinstance(chosen.node, exp.Anonymous) else []
    plain = len(only) == 1 and isinstance(only[0], exp.Column) and calls_aggregate(chosen.node)
    return only[0].name if plain and not chosen.aliased else None


def _default_name(text: str, node: exp.Expr) -> str:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, (exp.Column, exp.Dot)):
        return node.name
    try:
        return node.sql(dialect="spark", normalize_functions="lower", comments=False)
    except ValueError:  # syntax of ours in a sub-query: as it is written
        start, end = span(node) or (0, 0)
        return " ".join(text[start:end].split())
