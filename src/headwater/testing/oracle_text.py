"""What DuckDB is asked by the oracle: aggregates, frames, values to sort by, types."""

from __future__ import annotations

import pyarrow as pa

from headwater.algebra.nodes import AggregateCall, FrameCall
from headwater.expressions.printing import quoted
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.model.types import string_literal

_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
}


def duckdb_type(type_: pa.DataType) -> str:
    """How DuckDB spells an Arrow type."""
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"{duckdb_type(type_.value_type)}[]"
    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        return f"STRUCT({', '.join(f'{quoted(f.name)} {duckdb_type(f.type)}' for f in fields)})"
    return _TYPES[type_]


def sort_text(value: str, type_: pa.DataType, depth: int = 0) -> str:
    """What to sort by: DuckDB puts NULL last inside of lists and structs, the canonical order puts it first."""

    def inner(item: str, item_type: pa.DataType) -> str:
        return f"{{'known': {item} IS NOT NULL, 'value': {sort_text(item, item_type, depth + 1)}}}"

    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"list_transform({value}, lambda e{depth}: {inner(f'e{depth}', type_.value_type)})"
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        parts = ", ".join(f"'{i}': {inner(f'({value}).{quoted(f.name)}', f.type)}" for i, f in enumerate(fields))
        return f"CASE WHEN {value} IS NOT NULL THEN {{{parts}}} END"
    return value


def part_text(call: AggregateCall) -> str:
    """What a row brings to an aggregate."""
    argument = "true" if call.argument is None else quoted(call.argument)
    value = f"{argument} IS NOT NULL OR NULL" if call.function == "COUNT" else argument
    chosen = value if call.filter is None else f"CASE WHEN {quoted(call.filter)} THEN {value} END"
    return f"CAST(({chosen}) AS {duckdb_type(call.type)})"


def call_text(call: AggregateCall, schema: Schema) -> str:
    """One aggregate over columns of the schema in DuckDB's words (``expressions.aggregates.Aggregate.duckdb``)."""
    if call.built_in is None:
        raise NotImplementedError(f"the oracle does not know the aggregate {call.function}")
    x = "*" if call.argument is None else quoted(call.argument)
    type_ = pa.int64() if call.argument is None else schema.field(call.argument).type
    where = "true" if call.filter is None else quoted(call.filter)
    names = [type_.field(i).name for i in range(type_.num_fields)] if pa.types.is_struct(type_) else [""]
    words = {
        "name": call.function.lower(),
        "distinct": "DISTINCT " if call.distinct else "",
        "x": x,
        "filter": "" if call.filter is None else f" FILTER (WHERE {where})",
        "where": where,
        "separator": string_literal(str(call.parameters[0]) if call.parameters else ""),
        "share": str(call.parameters[0]) if call.parameters else "",
        "way": " DESC" if call.parameters[1:] == ("DESC",) else "",
        "order": sort_text(x, type_),
        "first": f"({x}).{quoted(names[0])}",
        "last": f"({x}).{quoted(names[-1])}",
        "last_name": names[-1],
        "ordered": _ordered_list(call, x, type_, where),
    }
    return call.built_in.duckdb.format(**words)


def _ordered_list(call: AggregateCall, x: str, type_: pa.DataType, where: str) -> str:
    """All STRUCTs in the order of their first fields, then in the canonical one; perhaps without repetitions."""
    if not pa.types.is_struct(type_):
        return ""
    fields = [type_.field(i) for i in range(type_.num_fields)]
    ways = [str(p) for p in call.parameters if str(p).startswith(("ASC", "DESC"))]
    order = [f"{sort_text(f'({x}).{quoted(f.name)}', f.type)} {way}" for f, way in zip(fields, ways, strict=False)]
    order.append(f"{sort_text(x, type_)} ASC NULLS FIRST")
    text = f"list({x} ORDER BY {', '.join(order)}) FILTER (WHERE {x} IS NOT NULL AND {where})"
    if not call.distinct:
        return text
    return f"list_filter({text}, lambda e, i: i = 1 OR e IS DISTINCT FROM ({text})[i - 1])"


def framed_call(call: FrameCall, group: str, order: str) -> str:
    """One function over a frame, as DuckDB has it; a frame that goes on to peers is one by the instant."""
    argument = "*" if call.argument is None else quoted(call.argument)
    number = f", {call.nth}" if call.nth else ""
    taken = f" FILTER (WHERE {quoted(call.filter)})" if call.filter else ""
    text = f"{call.function.lower()}({argument}{number}){taken} OVER"
    first = "UNBOUNDED" if call.first == INFINITY else call.first
    so_far = f"(PARTITION BY {group} ORDER BY _t RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    if not call.peers:
        window = f"ROWS BETWEEN {first} PRECEDING AND {call.last} PRECEDING"
        text = f"{text} (PARTITION BY {group} ORDER BY {order} {window})"
    elif call.function == "LAST_VALUE":
        text = f"{text} (PARTITION BY {group}, _t ORDER BY {order} {whole})"
    elif call.function == "NTH_VALUE":
        found = f"{text} (PARTITION BY {group} ORDER BY {order} {whole})"
        text = f"CASE WHEN count(*) OVER {so_far} >= {call.nth} THEN {found} END"
    else:
        text = f"{text} {so_far}"
    return f"CAST({text} AS {duckdb_type(call.type)})"
