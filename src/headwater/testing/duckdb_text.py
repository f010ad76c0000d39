"""How DuckDB spells types and calls, for the oracle."""

from __future__ import annotations

import pyarrow as pa

from headwater.algebra.nodes import FrameCall
from headwater.expressions.printing import quoted
from headwater.model.time import INFINITY


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
