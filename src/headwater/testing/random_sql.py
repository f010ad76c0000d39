"""Random queries as text: over random streams, made of everything that Headwater and DuckDB understand alike.

A window is the only thing that DuckDB does not know. It stands only behind a stream, and the text for DuckDB has in its
place the name of a table, which holds what the window shows at an instant.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, field, frozen

from headwater.testing.choices import Choices

_TYPES = ("INT", "STRING", "BIGINT", "DOUBLE", "BOOLEAN")
_NUMBERS = ("INT", "BIGINT", "DOUBLE")
_WINDOWS = ("", "", "RANGE 3", "RANGE 5", "RANGE 4 SLIDE 2", "ROWS 2", "ROWS 3 SLIDE 2")
_LITERALS = {
    "INT": ("1", "2", "0"),
    "BIGINT": ("1", "2", "3"),
    "DOUBLE": ("1.0", "0.5", "2.0"),
    "STRING": ("'a'", "'b'", "''"),
    "BOOLEAN": ("TRUE", "FALSE"),
}


@frozen
class TextColumn:
    """A column that a part of a query can name."""

    name: str
    type: str

    def of(self, alias: str) -> TextColumn:
        return evolve(self, name=f"{alias}.{self.name}")


@frozen
class TextStream:
    name: str
    columns: tuple[TextColumn, ...]

    def declaration(self) -> str:
        return f"CREATE STREAM {self.name} ({', '.join(f'{c.name} {c.type}' for c in self.columns)});"


@frozen
class Windowed:
    """A stream behind a window, and the table that shows it to DuckDB."""

    stream: str
    window: str
    table: str

    @property
    def text(self) -> str:
        return f"{self.stream} WINDOW({self.window})" if self.window else self.stream


@frozen
class RandomSql:
    """A query over some streams, and the same for DuckDB."""

    streams: tuple[TextStream, ...]
    query: str
    relational: str
    windowed: tuple[Windowed, ...]
    one_row: bool = False
    """Does an aggregate over nothing have a row at the top and in FROM, too?"""

    @property
    def script(self) -> str:
        settings = ["SET empty_aggregate = one_row;"] if self.one_row else []
        return "\n".join([*settings, *(s.declaration() for s in self.streams), self.query])


@frozen
class _Text:
    """A piece of a query: for us, and for DuckDB."""

    headwater: str
    duckdb: str
    columns: tuple[TextColumn, ...] = field(default=())


def _both(pattern: str, *parts: _Text, columns: Sequence[TextColumn] = ()) -> _Text:
    return _Text(
        pattern.format(*(p.headwater for p in parts)), pattern.format(*(p.duckdb for p in parts)), tuple(columns)
    )


def _plain(text: str) -> _Text:
    return _Text(text, text)


def random_sql(choices: Choices, *, depth: int = 2) -> RandomSql:
    """A query with up to so many sub-queries inside of each other."""
    count = choices.integer(1, 3)
    streams = tuple(_stream(choices, i) for i in range(count))
    maker = _Maker(choices, streams, one_row=choices.chance(50))
    query = maker.query(depth)
    return RandomSql(streams, query.headwater, query.duckdb, tuple(maker.windowed), maker.one_row)


def _stream(choices: Choices, number: int) -> TextStream:
    types = [choices.pick(_TYPES[:2]), *(choices.pick(_TYPES) for _ in range(choices.integer(0, 2)))]
    columns = (TextColumn(f"{'rst'[number]}{'kvw'[i]}", t) for i, t in enumerate(types))
    return TextStream("rst"[number], tuple(columns))


class _Maker:
    def __init__(self, choices: Choices, streams: Sequence[TextStream], *, one_row: bool) -> None:
        self.choices, self.streams, self.one_row = choices, streams, one_row
        self.windowed: list[Windowed] = []
        self._aliases = 0

    def alias(self) -> str:
        self._aliases += 1
        return f"q{self._aliases}"

    # -- queries ----------------------------------------------------------------------------------------------------

    def query(self, depth: int) -> _Text:
        c = self.choices
        if depth > 0 and c.chance(25):
            return self._set_operation(depth)
        if depth > 0 and c.chance(12):
            return self._numbered(depth)
        query = self.select(depth)
        return self._limited(query) if c.chance(15) else query

    def _set_operation(self, depth: int) -> _Text:
        left = self.select(depth - 1)
        right = self.select(depth - 1, types=[col.type for col in left.columns])
        kinds = ["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"]
        return _both(f"{{0}} {self.choices.pick(kinds)} {{1}}", left, right, columns=left.columns)

    def _limited(self, query: _Text) -> _Text:
        """All columns in the order, so that ties are equal rows; NULLs first in both systems."""
        order = ", ".join(
            f"{i + 1} {self.choices.pick(['ASC', 'DESC'])} NULLS FIRST" for i in range(len(query.columns))
        )
        limit = f"ORDER BY {order} LIMIT {self.choices.integer(1, 3)}"
        return _both(f"SELECT * FROM ({{0}}) {self.alias()} {limit}", query, columns=query.columns)

    def _numbered(self, depth: int) -> _Text:
        """The first rows of each value of the first column."""
        query, alias, outer = self.select(depth - 1), self.alias(), self.alias()
        names = [col.name for col in query.columns]
        order = ", ".join(f"{n} {self.choices.pick(['ASC', 'DESC'])} NULLS FIRST" for n in names)
        number = f"ROW_NUMBER() OVER (PARTITION BY {names[0]} ORDER BY {order}) AS rn"
        inner = f"SELECT {', '.join(names)}, {number} FROM ({{0}}) {alias}"
        condition = self.choices.pick(["rn <= 2", "rn < 2", "rn = 1", "rn > 1", "rn = 2"])
        text = f"SELECT {', '.join(names)} FROM ({inner}) {outer} WHERE {condition}"
        return _both(text, query, columns=query.columns)

    def select(self, depth: int, *, types: Sequence[str] | None = None) -> _Text:
        c = self.choices
        source = self._from(depth)
        where = self._where(source.columns, depth) if c.chance(60) else _plain("")
        if types is None and c.chance(35):
            return self._grouped(source, where, depth)
        wanted = types if types is not None else [None] * c.integer(1, 3)
        chosen = [self._expression(source.columns, t) for t in wanted]
        names = [f"c{i}" for i in range(len(chosen))]
        listed = ", ".join(f"{text} AS {name}" for (text, _), name in zip(chosen, names, strict=True))
        columns = [TextColumn(name, type_) for (_, type_), name in zip(chosen, names, strict=True)]
        distinct = "DISTINCT " if c.chance(25) else ""
        return _both(f"SELECT {distinct}{listed} FROM {{0}}{{1}}", source, where, columns=columns)

    def _grouped(self, source: _Text, where: _Text, depth: int) -> _Text:
        c = self.choices
        keys = [c.pick(source.columns) for _ in range(c.integer(0, 2))]
        keys = list(dict.fromkeys(keys))
        calls = [self._aggregate(source.columns) for _ in range(c.integer(1, 2))]
        listed = [
            *(f"{k.name} AS g{i}" for i, k in enumerate(keys)),
            *(f"{t} AS a{i}" for i, (t, _) in enumerate(calls)),
        ]
        columns = [TextColumn(f"g{i}", k.type) for i, k in enumerate(keys)]
        columns += [TextColumn(f"a{i}", type_) for i, (_, type_) in enumerate(calls)]
        group = f" GROUP BY {self._grouping([k.name for k in keys])}" if keys else ""
        # A row for nothing is what SQL gives without groups. Where we do not, nobody sees it with this condition.
        least = c.integer(-1, 1) if self.one_row and not keys else c.integer(0, 1)
        having = " HAVING COUNT(*) > 0" if not c.chance(40) else f" HAVING COUNT(*) > {least} AND COUNT(*) < 9"
        if self.one_row and not keys and c.chance(50):
            having = ""
        return _both(f"SELECT {', '.join(listed)} FROM {{0}}{{1}}{group}{having}", source, where, columns=columns)

    def _grouping(self, keys: list[str]) -> str:
        if self.choices.chance(20):
            kind = self.choices.pick(["ROLLUP", "CUBE"])
            return f"{kind} ({', '.join(keys)})"
        return ", ".join(keys)

    # -- FROM -------------------------------------------------------------------------------------------------------

    def _from(self, depth: int) -> _Text:
        left = self._item(depth)
        if self.choices.chance(12):
            return self._unnested(left)
        if not self.choices.chance(45):
            return left
        right = self._item(depth)
        kind = self.choices.pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "JOIN", "CROSS JOIN"])
        columns = [*left.columns, *right.columns]
        if kind == "CROSS JOIN":
            return _both("{0} CROSS JOIN {1}", left, right, columns=columns)
        return _both(f"{{0}} {kind} {{1}} ON {self._on(left, right)}", left, right, columns=columns)

    def _unnested(self, left: _Text) -> _Text:
        """Rows of an array that is made of columns of one type, or of nothing."""
        c, alias = self.choices, self.alias()
        first = c.pick(left.columns)
        items = [first.name, *(o.name for o in left.columns if o.type == first.type and c.chance(50))]
        array = _Text(f"array({', '.join(items)})", f"[{', '.join(items)}]")
        array = _both(f"CASE WHEN {self._condition(left.columns)} THEN {{0}} END", array) if c.chance(60) else array
        place = c.chance(30)
        made = TextColumn(f"{alias}.x", first.type), *([TextColumn(f"{alias}.n", "BIGINT")] if place else [])
        unnest = f"UNNEST({{1}}) {'WITH ORDINALITY AS ' + alias + '(x, n)' if place else 'AS ' + alias + '(x)'}"
        joined = c.pick([f"CROSS JOIN {unnest}", f", {unnest}", f"LEFT JOIN {unnest} ON TRUE"])
        return _both(f"{{0}} {joined}", left, array, columns=[*left.columns, *made])

    def _on(self, left: _Text, right: _Text) -> str:
        pairs = [(a, b) for a in left.columns for b in right.columns if a.type == b.type]
        if not pairs:
            return self._condition([*left.columns, *right.columns])
        a, b = self.choices.pick(pairs)
        text = f"{a.name} = {b.name}"
        return f"{text} AND {self._condition([*left.columns, *right.columns])}" if self.choices.chance(30) else text

    def _item(self, depth: int) -> _Text:
        c, alias = self.choices, self.alias()
        if depth > 0 and c.chance(35):
            query = self.query(depth - 1)
            return _both(f"({{0}}) {alias}", query, columns=[col.of(alias) for col in query.columns])
        stream, window = c.pick(self.streams), c.pick(_WINDOWS)
        if window.startswith("ROWS") and c.chance(50):
            window = f"PARTITION BY {stream.columns[0].name} {window}"
        found = Windowed(stream.name, window, f"{stream.name}_{len(self.windowed)}")
        self.windowed.append(found)
        columns = tuple(col.of(alias) for col in stream.columns)
        return _Text(f"{found.text} {alias}", f"{found.table} {alias}", columns)

    # -- conditions and values --------------------------------------------------------------------------------------

    def _where(self, columns: Sequence[TextColumn], depth: int) -> _Text:
        c = self.choices
        parts = [_plain(self._condition(columns)) for _ in range(c.integer(1, 2))]
        if depth > 0 and c.chance(35):
            parts.append(self._subquery(columns, depth - 1))
        joined = f" {c.pick(['AND', 'AND', 'AND', 'OR'])} ".join(f"({{{i}}})" for i in range(len(parts)))
        return _both(f" WHERE {joined}", *parts)

    def _condition(self, columns: Sequence[TextColumn]) -> str:
        c = self.choices
        column = c.pick(columns)
        others = [o for o in columns if o.type == column.type and o != column]
        if c.chance(15):
            return f"{column.name} IS {c.pick(['NULL', 'NOT NULL'])}"
        if column.type == "BOOLEAN":
            return c.pick([column.name, f"NOT {column.name}"])
        other = c.pick(others).name if others and c.chance(35) else c.pick(_LITERALS[column.type])
        return f"{column.name} {c.pick(['=', '<>', '<', '<=', '>', '>='])} {other}"

    def _subquery(self, columns: Sequence[TextColumn], depth: int) -> _Text:
        c, outer = self.choices, self.choices.pick(columns)
        inner = self.select(depth, types=[outer.type])
        alias = self.alias()
        text = f"SELECT {alias}.c0 FROM ({{0}}) {alias}"
        correlated = [col for col in columns if col.type == outer.type]
        if c.chance(40):
            text += f" WHERE {alias}.c0 {c.pick(['=', '<', '>='])} {c.pick(correlated).name}"
        kinds = [
            f"{outer.name} IN ({text})",
            f"{outer.name} NOT IN ({text})",
            f"EXISTS ({text})",
            f"NOT EXISTS ({text})",
        ]
        if outer.type in _NUMBERS:
            most = text.replace(f"{alias}.c0", f"MAX({alias}.c0)", 1)
            kinds += [f"{outer.name} >= ALL ({text})", f"{outer.name} < ANY ({text})", f"{outer.name} = ({most})"]
        return _both(self._count(outer, text, alias) if c.chance(35) else c.pick(kinds), inner)

    def _count(self, outer: TextColumn, text: str, alias: str) -> str:
        """A condition on how many rows the sub-query has, which may be none."""
        call = self.choices.pick(["COUNT(*)", f"COUNT({alias}.c0)", f"COUNT(DISTINCT {alias}.c0) + 1"])
        counted = text.replace(f"{alias}.c0", call, 1)
        kinds = [
            f"({counted}) < {self.choices.integer(1, 3)}",
            f"CASE WHEN ({counted}) = 0 THEN {outer.name} IS NULL ELSE {outer.name} IS NOT NULL END",
            f"EXISTS ({counted})",
            f"NOT EXISTS ({counted} HAVING COUNT(*) > 1)",
            f"{self.choices.integer(0, 2)} IN ({counted})",
            f"1 > ALL ({counted})",
        ]
        if outer.type in _NUMBERS:
            kinds += [f"{outer.name} > ({counted})", f"COALESCE({outer.name}, ({counted})) < 2"]
        return self.choices.pick(kinds)

    def _expression(self, columns: Sequence[TextColumn], type_: str | None) -> tuple[str, str]:
        c = self.choices
        fitting = [col for col in columns if type_ in (None, col.type)]
        if not fitting:
            assert type_ is not None
            return f"CAST({c.pick(_LITERALS[type_])} AS {type_})", type_
        column = c.pick(fitting)
        if c.chance(60):
            return column.name, column.type
        name = column.name
        match column.type:
            case "INT" | "BIGINT":
                text = c.pick(
                    [f"{name} + 1", f"-{name}", f"COALESCE({name}, 7)", f"CASE WHEN {name} > 1 THEN {name} END"]
                )
            case "DOUBLE":
                text = c.pick([f"{name} * 2.0", f"COALESCE({name}, 0.5)"])
            case "STRING":
                text = c.pick([f"upper({name})", f"{name} || 'x'", f"COALESCE({name}, 'n')"])
            case _:
                text = c.pick([f"NOT {name}", f"{name} IS NULL"])
        return f"CAST({text} AS {column.type})", column.type

    def _aggregate(self, columns: Sequence[TextColumn]) -> tuple[str, str]:
        c = self.choices
        column = c.pick(columns)
        if c.chance(25):
            return "COUNT(*)", "BIGINT"
        if c.chance(25):
            return self._of_several(columns, column)
        if column.type in _NUMBERS and c.chance(50):
            type_ = "DOUBLE" if column.type == "DOUBLE" else "BIGINT"
            distinct = "DISTINCT " if c.chance(20) else ""
            return f"CAST(SUM({distinct}{column.name}) AS {type_})", type_
        if column.type != "BOOLEAN" and c.chance(60):
            return f"{c.pick(['MIN', 'MAX'])}({column.name})", column.type
        distinct = "DISTINCT " if c.chance(50) else ""
        return f"COUNT({distinct}{column.name})", "BIGINT"

    def _of_several(self, columns: Sequence[TextColumn], column: TextColumn) -> tuple[str, str]:
        """An aggregate of two arguments, of an order or a share, where equal values cannot be told apart."""
        c, name, other = self.choices, column.name, self.choices.pick(columns)
        way = c.pick(["ASC NULLS FIRST", "DESC NULLS LAST"])
        share = c.pick(["0.5", "0.0", "1.0"])
        kinds = [
            (f"STRING_AGG(CAST({name} AS STRING), '-' ORDER BY {other.name} {way}, CAST({name} AS STRING))", "STRING"),
            (f"PERCENTILE_DISC({share}) WITHIN GROUP (ORDER BY {name})", column.type),
        ]
        if column.type in _NUMBERS and other.type in _NUMBERS:
            kinds.append((f"CAST(REGR_COUNT({name}, {other.name}) AS BIGINT)", "BIGINT"))
            kinds.append((f"ROUND(COVAR_POP({name}, {other.name}), 3)", "DOUBLE"))
        if column.type in ("INT", "BIGINT"):
            kinds.append((f"{c.pick(['BIT_AND', 'BIT_OR', 'BIT_XOR'])}({name})", column.type))
        return c.pick(kinds[1:] if column.type in ("BOOLEAN", "DOUBLE") else kinds)
