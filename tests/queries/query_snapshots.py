"""What a query answers at an instant, by its text alone: DuckDB runs it over the snapshots, windows put in by definition.

The text is parsed, but neither bound nor planned: names, types, sub-queries and functions are DuckDB's business, after
sqlglot has translated them from Spark's. In place of every reference with a window there is a view of what it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import count, pairwise
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from query_outputs import Output, output_of
from query_translation import break_ties, changes_of_result, no_row_of_nothing, rows_of_array, tolerate, unwrap
from query_windows import Elements, content, cumulated, hops, instants, longest, quoted, refresh, sessions, tumbled
from sqlglot import exp

from headwater.language.parsing.statements import parse_script
from headwater.language.parsing.syntax import ArrayRows, CreateStream, RelationToStream, SelectStatement, TableFunction
from headwater.model.history import History

AT = "getvariable('instant')"
"""The instant that is looked at."""
RESULT = "query"
_TOO_LONG = 1_000

Ctes = Mapping[str, exp.Expr]


class NotJudgedError(Exception):
    """There is no relational query that would say what the answer must be."""


@cache
def _sources(key: object) -> tuple[duckdb.DuckDBPyConnection, Iterator[int]]:
    """A connection for all cases over the same input, and numbers for their schemas."""
    connection = duckdb.connect()
    for setting in ("threads = 1", "error_on_division_by_zero = false", "TimeZone = 'UTC'"):
        connection.execute(f"SET {setting}")
    return connection, count()


class Snapshots:
    """A script over the histories of its streams, at instants between which nothing changes.

    Cases with equal ``key`` have the same histories. The functions in the text are those of the dialect.
    """

    def __init__(
        self, key: object, text: str, histories: Mapping[str, History], instants_: Sequence[int], *, dialect: str
    ) -> None:
        self._instants, self._dialect = instants_, dialect
        self._connection, numbers = _sources(key)
        self._streams = {n.casefold(): Elements(f'"elements {n}"', h.schema.names) for n, h in histories.items()}
        self._views = count(1)
        number = next(numbers)
        if not number:
            for name, history in histories.items():
                self._add_source(name, history)
        self._connection.execute(f"CREATE SCHEMA case{number}")
        self._connection.execute(f"SET search_path = 'case{number},main'")
        statements = list(parse_script(text))
        self._selects = sum(isinstance(statement, SelectStatement) for statement in statements)
        self._numbers = count(1)
        for statement in statements:
            self._add(statement)

    def at(self, name: str, instant: int) -> list[tuple[Any, ...]]:
        """The rows of a query at an instant."""
        return self._ask(f"SELECT * FROM {quoted(name)}", instant)

    def _ask(self, sql: str, instant: int) -> list[tuple[Any, ...]]:
        return self._connection.execute(f"SET VARIABLE instant = {instant}::BIGINT; {sql}").fetchall()

    # -- relations: a table of elements, and a view of what is valid ------------------------------------------------

    def _add_source(self, name: str, history: History) -> None:
        self._connection.register("arriving", pa.Table.from_batches([history.delta().to_batch()]))
        elements = self._streams[name.casefold()]
        self._connection.execute(f"CREATE TABLE {elements.table} AS FROM arriving")
        self._create_view(name, content(elements, None, None, AT))

    def _add(self, statement: exp.Expr) -> None:
        if isinstance(statement, SelectStatement):
            number = next(self._numbers)
            name = RESULT if number == self._selects else f"{RESULT}_{number}"
            self._create_view(name, self._plain(statement.this, {}))
        elif isinstance(statement, CreateStream) and statement.args.get("query") is not None:
            names = ", ".join(quoted(c.name) for c in statement.args.get("columns") or ())
            query = self._plain(statement.args["query"], {})
            self._create_view(statement.this.name, f"SELECT * FROM ({query}) q({names})" if names else query)
        elif isinstance(statement, CreateStream) and statement.args.get("values") is not None:
            self._create_view(statement.this.name, _constant(statement))

    def _create_view(self, name: str, sql: str) -> None:
        try:
            self._connection.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS {sql}")
        except duckdb.Error as problem:
            raise NotJudgedError(f"DuckDB does not take this: {problem}\n{sql}") from None

    def _new_view(self, sql: str) -> str:
        name = f"view {next(self._views)}"
        self._create_view(name, sql)
        return name

    def _materialised(self, sql: str) -> Elements:
        """A table of elements of what a query gives from each instant to the next."""
        name = self._new_view(sql)
        columns = tuple(row[0] for row in self._connection.execute(f"DESCRIBE {quoted(name)}").fetchall())
        elements = Elements(f'"elements {name}"', columns)
        into = f"SELECT *, {AT} AS _start, {{}}::BIGINT AS _end, 1::BIGINT AS _weight FROM {quoted(name)}"
        self._ask(f"CREATE TABLE {elements.table} AS {into.format(1)} LIMIT 0", 0)
        for instant, following in pairwise([*self._instants, self._instants[-1] + 1]):
            self._ask(f"INSERT INTO {elements.table} {into.format(following)}", instant)
        return elements

    # -- queries without windows ------------------------------------------------------------------------------------

    def _plain(self, query: exp.Expr, ctes: Ctes) -> str:
        """The query in DuckDB's SQL, over views instead of windows."""
        query = query.copy()
        output = output_of(query)
        return self._translated(query, ctes) if output is None else self._output(output, query, ctes)

    def _output(self, output: Output, query: exp.Expr, ctes: Ctes) -> str:
        """INTERNAL: the answer of each refresh, or what is born at each instant; restore: what was born since a refresh."""
        refreshed = f"({AT} + 1) % {output.period} = 0" if output.period else ""
        if output.kind == "INTERNAL" and refreshed:
            return f"SELECT * FROM ({self._translated(query, ctes)}) WHERE {refreshed}"
        arrivals: list[str] = []
        answer = self._materialised(self._translated(query, ctes, arrivals if output.every_result else None))
        visible = f"SELECT * EXCLUDE ({', '.join(arrivals)}) FROM" if arrivals else "SELECT * FROM"
        born = _changes("ISTREAM", *(content(answer, None, None, when) for when in (AT, f"({AT} - 1)")))
        if output.kind == "INTERNAL":
            return f"{visible} ({born})"
        assert output.period is not None
        lately = tumbled(self._materialised(born), output.period, AT)
        if output.kind == "ISTREAM-RESTORE":
            return f"{visible} ({lately}) WHERE {refreshed}"
        there = content(answer, None, None, refresh(output.period, AT))
        return f"{visible} ({there} UNION ALL ({lately} EXCEPT ALL {there}))"

    def _translated(self, query: exp.Expr, ctes: Ctes, arrivals: list[str] | None = None) -> str:
        """``arrivals``: the rows are to have their instants as columns of these names, which are filled in."""
        changes = changes_of_result(query)
        ctes = {**ctes, **{cte.alias.casefold(): cte.this for cte in query.ctes}}
        for select in list(query.find_all(exp.Select)):
            tolerate(select)
            if not _has_its_own_view(select, query) and output_of(select.copy()) is not None:
                raise NotJudgedError("INTERNAL or restore in a query that has no view of its own")
        for item in [n for n in query.walk(bfs=False) if _is_special(n)]:
            if item.find_ancestor(RelationToStream, TableFunction) is None:
                own = arrivals is not None and item.find_ancestor(exp.Select) is query
                item.replace(self._reference(item, ctes, arrivals if own else None))
        if arrivals and not query.expressions[0].is_star:
            query.set("expressions", [*query.expressions, *map(exp.column, arrivals)])
        for rows in list(query.find_all(ArrayRows)):
            if not rows_of_array(rows):
                raise NotJudgedError("the columns of an array have no names, or stand beside a star")
        for join in query.find_all(exp.Join):
            if join.args.get("kind") == "COMMA":
                join.set("kind", None)
        tree = sqlglot.parse_one(query.sql(dialect=self._dialect), read=self._dialect)
        for select in list(tree.find_all(exp.Select)):
            unwrap(select)
            no_row_of_nothing(select)
            if not break_ties(select):
                raise NotJudgedError("ties of ORDER BY … LIMIT go by the values of all columns")
        sql = tree.sql(dialect="duckdb").replace("LEFT SEMI JOIN", "SEMI JOIN").replace("LEFT ANTI JOIN", "ANTI JOIN")
        if changes is None:
            return sql
        elements = self._materialised(sql)
        return _changes(changes, *(content(elements, None, None, when) for when in (AT, f"({AT} - 1)")))

    def _reference(self, item: exp.Expr, ctes: Ctes, arrivals: list[str] | None) -> exp.Expr:
        """A view of what the item holds at the instant, in its place."""
        if arrivals is not None:
            arrivals.append(f"_arrived_{len(arrivals) + 1}")
        held = self._item(item, AT, ctes, arrivals[-1] if arrivals else "")
        table = exp.Table(this=exp.to_identifier(self._new_view(held), quoted=True))
        label = _label(item)
        if item.args.get("joins"):  # (a JOIN b)
            table.set("joins", item.args["joins"])
        if item.args.get("alias") is not None:
            table.set("alias", item.args["alias"].copy())
        elif label:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(label)))
        return table

    def _item(self, item: exp.Expr, at: str, ctes: Ctes, arrived: str = "") -> str:
        """What an item of FROM holds at the instant."""
        window, granularity = item.args.get("stream_window"), item.args.get("granularity")
        if isinstance(item, (RelationToStream, TableFunction)) and window is None and granularity is None:
            return self._function(item, at, ctes)
        elements = self._elements(item, ctes)
        if window is not None and window.this in ("ROWS", "SESSION"):
            self._check_short(elements)
        return content(elements, window, granularity, at, arrived)

    def _elements(self, item: exp.Expr, ctes: Ctes) -> Elements:
        """The elements of what an item refers to, without its window."""
        if isinstance(item, (RelationToStream, TableFunction)):
            return self._materialised(self._function(item, AT, ctes))
        if not isinstance(item, exp.Table):
            return self._materialised(self._plain(item.this, ctes))
        name = item.name.casefold()
        if name in ctes:
            return self._materialised(self._plain(ctes[name], ctes))
        return self._streams.get(name) or self._materialised(f"SELECT * FROM {quoted(item.name)}")

    def _function(self, item: exp.Expr, at: str, ctes: Ctes) -> str:
        if isinstance(item, RelationToStream):
            now, before = (self._item(item.expression, when, ctes) for when in (at, f"({at} - 1)"))
            return _changes(item.this.name, now, before)
        data, arguments = item.args["data"], item.args
        plain = not (data.args.get("stream_window") or data.args.get("granularity"))
        elements = self._elements(data, ctes) if plain else self._materialised(self._item(data, AT, ctes))
        timed = self._is_timed(elements, arguments["timecol"].name)
        if item.this.name == "SESSION":
            self._check_short(elements)
            by = [column.name for column in arguments["partition"].expressions] if arguments.get("partition") else []
            return sessions(elements, instants(arguments["gap"]), by, at, timed=timed)
        size = instants(arguments["size"])
        if item.this.name == "CUMULATE":
            offset = instants(arguments["offset"]) if arguments.get("offset") else 0
            return cumulated(elements, size, instants(arguments["step"]), offset, at, timed=timed)
        slide = instants(arguments["slide"]) if arguments.get("slide") else size
        offset = instants(arguments["offset"]) % slide if arguments.get("offset") else 0
        return hops(elements, size, slide, offset, at, timed=timed)

    def _is_timed(self, elements: Elements, column: str) -> bool:
        described = self._connection.execute(f"DESCRIBE {elements.table}").fetchall()
        type_ = next(row[1] for row in described if row[0].casefold() == column.casefold())
        return type_ in ("TIMESTAMP", "DATE")

    def _check_short(self, elements: Elements) -> None:
        (length,) = self._connection.execute(longest(elements)).fetchall()[0]
        if length > _TOO_LONG:
            raise NotJudgedError("rows over long intervals are too many")


def _is_special(node: exp.Expr) -> bool:
    """Does the item of FROM need a view of its own?"""
    windowed = node.args.get("stream_window") or node.args.get("granularity")
    return isinstance(node, (RelationToStream, TableFunction)) or bool(windowed)


def _has_its_own_view(select: exp.Select, query: exp.Expr) -> bool:
    """Is it inside of an item that needs one?"""
    node: exp.Expr = select
    while node is not query:
        assert node.parent is not None
        node = node.parent
        if _is_special(node):
            return True
    return False


def _label(item: exp.Expr) -> str:
    """The name by which columns of the item can be called if it has no alias."""
    while isinstance(item, (RelationToStream, TableFunction)):
        item = item.expression if isinstance(item, RelationToStream) else item.args["data"]
    return item.alias_or_name


def _changes(kind: str, now: str, before: str) -> str:
    if kind == "RSTREAM":
        return now
    return f"({now}) EXCEPT ALL ({before})" if kind == "ISTREAM" else f"({before}) EXCEPT ALL ({now})"


def _constant(statement: exp.Expr) -> str:
    """CREATE TABLE … AS VALUES: the same rows at every instant (Krämer 17.4)."""
    rows = ", ".join(row.sql(dialect="duckdb") for row in statement.args["values"].expressions)
    columns = statement.args.get("columns") or ()
    names = ", ".join(quoted(c.name) for c in columns)
    typed = [c for c in columns if c.args.get("kind") is not None]
    listed = ", ".join(
        f"CAST({quoted(c.name)} AS {c.args['kind'].sql(dialect='duckdb')}) AS {quoted(c.name)}" for c in typed
    )
    return f"SELECT {listed or '*'} FROM (VALUES {rows}) v{f'({names})' if names else ''}"
