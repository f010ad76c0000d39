"""From our SQL to what DuckDB understands by the same words: small changes of syntax trees."""

from __future__ import annotations

from sqlglot import exp

from headwater.language.parsing.syntax import ArrayRows

_CHANGES = ("ISTREAM", "DSTREAM")


def changes_of_result(query: exp.Expr) -> str | None:
    """``SELECT Istream(a, b) …``: unwraps it and says which it is."""
    if not isinstance(query, exp.Select) or len(query.expressions) != 1:
        return None
    (only,) = query.expressions
    if isinstance(only, exp.Anonymous) and only.name.upper() in _CHANGES:
        query.set("expressions", only.expressions)
        unwrap(query)
        return only.name.upper()
    return None


def unwrap(select: exp.Select) -> None:
    """``SELECT Rstream(a, b)`` is ``SELECT a, b``: the stream of snapshots has the same snapshots."""
    if len(select.expressions) != 1:
        return
    (only,) = select.expressions
    if isinstance(only, exp.Anonymous) and only.name.upper() == "RSTREAM":
        select.set("expressions", only.expressions)
        unwrap(select)
    elif isinstance(only, exp.Distinct):  # Rstream(DISTINCT a)
        select.set("distinct", exp.Distinct())
        select.set("expressions", only.expressions)
    elif isinstance(only, (exp.Tuple, exp.Paren)) and select.args.get("distinct"):  # DISTINCT(a, b), Example 17.7
        select.set("expressions", only.expressions or [only.this])


def tolerate(select: exp.Select) -> None:
    """Columns may be called by the name of a stream in spite of its alias, or by one inside of a sub-query (7.2, 17.7)."""
    items = [part.this for part in (select.args.get("from_"), *(select.args.get("joins") or ())) if part]
    labels = {item.alias_or_name.casefold() for item in items}
    hidden = {item.name.casefold(): item.alias for item in items if isinstance(item, exp.Table) and item.alias}
    for column in select.find_all(exp.Column):
        called = column.table.casefold()
        own = column.find_ancestor(exp.Select) is select
        if called and own and called not in labels and not _is_outer(select, called):
            if called in hidden:
                column.set("table", exp.to_identifier(hidden[called]))
            elif any(called == table.alias_or_name.casefold() for item in items for table in item.find_all(exp.Table)):
                column.set("table", None)


def _is_outer(select: exp.Select, called: str) -> bool:
    outer = select.find_ancestor(exp.Select)
    while outer is not None:
        if any(table.alias_or_name.casefold() == called for table in outer.find_all(exp.Table)):
            return True
        outer = outer.find_ancestor(exp.Select)
    return False


def no_row_of_nothing(select: exp.Select) -> None:
    """An aggregate of an empty snapshot is no row (PIPES), not one with COUNT 0; but in an expression it is as in SQL."""
    if _in_expression(select):
        return
    group = select.args.get("group")
    if group is not None and not group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
        return
    parts = [*select.expressions, *(select.args[k] for k in ("having", "order") if select.args.get(k))]
    if group is not None or any(map(_aggregates, parts)):
        select.having("COUNT(*) > 0", copy=False)


def _in_expression(node: exp.Expr) -> bool:
    """Is it part of a sub-query that is not in FROM? What WITH defines is, if all that read it are."""
    while node.parent is not None:
        around = node.parent
        if isinstance(around, exp.CTE):
            readers = [t.find_ancestor(exp.Select) for t in node.root().find_all(exp.Table) if t.name == around.alias]
            return bool(readers) and all(reader is not None and _in_expression(reader) for reader in readers)
        if isinstance(node, (exp.Select, exp.SetOperation, exp.Subquery)) and not isinstance(
            around, (exp.From, exp.Join, exp.CTE, exp.SetOperation, exp.Subquery)
        ):
            return True
        node = around
    return False


def _aggregates(node: exp.Expr) -> bool:
    found = node.walk(prune=lambda n: isinstance(n, (exp.Query, exp.Subquery)))
    return any(isinstance(n, exp.AggFunc) and not isinstance(n.parent, exp.Window) for n in found)


def break_ties(select: exp.Select) -> bool:
    """Ties of ORDER BY … LIMIT go by the values of the rows; False if it cannot be said so."""
    if not (select.args.get("limit") or select.args.get("offset") or select.args.get("fetch")):
        return True
    if select.is_star:
        return False
    order = select.args.get("order") or exp.Order(expressions=[])
    for place in range(1, len(select.expressions) + 1):
        order.append("expressions", exp.Ordered(this=exp.Literal.number(place), nulls_first=True))
    select.set("order", order)
    return True


def rows_of_array(rows: ArrayRows) -> bool:
    """``UNNEST(a) AS t(x)`` as DuckDB's sub-query beside the row; False if it cannot be said without knowing types."""
    alias, join = rows.args.get("alias"), rows.parent
    names = alias.args.get("columns") if alias is not None else None
    select = rows.find_ancestor(exp.Select)
    starred = select is not None and any(isinstance(e, exp.Star) for e in select.expressions)
    if not names or (rows.args.get("hidden") and starred):
        return False
    numbered = rows.args["kind"] == "POSEXPLODE" or rows.args.get("ordinality")
    places = "range(1, len({0}) + 1)" if rows.args.get("ordinality") else "range(0, len({0}))"
    array = rows.this.sql(dialect="duckdb")
    spread = ", max_depth := 2" if len(names) - bool(numbered) > 1 else ""
    listed = [f"unnest({array}{spread})"]
    if numbered:
        listed.insert(len(listed) if rows.args.get("ordinality") else 0, f"unnest({places.format(array)})")
    inside = exp.Subquery(this=exp.Var(this=f"SELECT {', '.join(listed)}"))
    rows.replace(exp.Lateral(this=inside, alias=alias))
    if rows.args.get("outer") and isinstance(join, exp.Join):
        join.set("kind", None)
        join.set("side", "LEFT")
        join.set("on", exp.true())
    return True
