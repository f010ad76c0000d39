"""Spark's types and ours. A TIMESTAMP is microseconds in UTC, which Spark calls TIMESTAMP_NTZ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import InputError
from headwater.model.schema import Field, Schema, sql_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

_SPARK_NAMES = {"TIMESTAMP": "TIMESTAMP_NTZ"}
_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_ntz": pa.timestamp("us"),
}


def spark_type(type_: pa.DataType) -> DataType:
    """How Spark spells an Arrow type of ours."""
    from pyspark.sql import types

    if pa.types.is_decimal(type_):
        return types.DecimalType(type_.precision, type_.scale)
    if pa.types.is_list(type_):
        return types.ArrayType(spark_type(type_.value_type))
    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        return types.StructType([types.StructField(f.name, spark_type(f.type)) for f in fields])
    name = sql_name(type_)
    return types._parse_datatype_string(_SPARK_NAMES.get(name, name))


def spark_schema(schema: Schema) -> StructType:
    from pyspark.sql import types

    return types.StructType([types.StructField(f.name, spark_type(f.type), f.nullable) for f in schema])


def arrow_type(type_: DataType, place: str) -> pa.DataType:
    """Our type for one of Spark's; ``place`` names the column in the error for one that has no counterpart."""
    from pyspark.sql import types

    if isinstance(type_, types.DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, types.ArrayType):
        return pa.list_(arrow_type(type_.elementType, place))
    if isinstance(type_, types.StructType):
        return pa.struct([(f.name, arrow_type(f.dataType, f"{place}.{f.name}")) for f in type_.fields])
    # CHAR(n), VARCHAR(n) and strings with a collation are strings
    found = pa.string() if isinstance(type_, types.StringType) else _ARROW.get(type_.simpleString())
    if found is None:
        raise InputError(
            "UNSUPPORTED_TYPE",
            f'column "{place}" has the Spark type {type_.simpleString().upper()}, which a stream cannot have',
            hint=_instead(type_),
        )
    return found


def schema_of(found: StructType) -> Schema:
    """The columns of a DataFrame as a stream's."""
    return Schema(tuple(Field(f.name, arrow_type(f.dataType, f.name), f.nullable) for f in found.fields))


def in_utc(frame: DataFrame) -> DataFrame:
    """Every TIMESTAMP of Spark's, also inside arrays and structs, as the same instant in UTC without a zone.

    A plain cast would give the local time of the session's zone instead.
    """
    from pyspark.sql import functions

    chosen = [
        _in_utc(functions.col(f"`{f.name.replace('`', '``')}`"), f.dataType).alias(f.name) for f in frame.schema.fields
    ]
    return frame.select(*chosen)


def _in_utc(column: Column, type_: DataType) -> Column:
    from pyspark.sql import functions, types

    if isinstance(type_, types.TimestampType):
        seconds = functions.unix_micros(column).cast("decimal(20,0)") / functions.lit(1_000_000).cast("decimal(7,0)")
        since = functions.make_dt_interval(secs=seconds.cast("decimal(18,6)"))
        return functions.lit("1970-01-01").cast("timestamp_ntz") + since
    if isinstance(type_, types.ArrayType) and _has_zone(type_):
        return functions.transform(column, lambda item: _in_utc(item, type_.elementType))
    if isinstance(type_, types.StructType) and _has_zone(type_):
        parts = [_in_utc(column.getField(f.name), f.dataType).alias(f.name) for f in type_.fields]
        return functions.when(column.isNotNull(), functions.struct(*parts))
    return column


def _has_zone(type_: DataType) -> bool:
    from pyspark.sql import types

    if isinstance(type_, types.ArrayType):
        return _has_zone(type_.elementType)
    if isinstance(type_, types.StructType):
        return any(_has_zone(f.dataType) for f in type_.fields)
    return isinstance(type_, types.TimestampType)


def guarded(frame: DataFrame, schema: Schema) -> DataFrame:
    """NOT NULL is held to: Spark itself forgets it when it reads files."""
    from pyspark.sql import functions

    chosen = []
    for field in schema:
        column = functions.col(f"`{field.name.replace('`', '``')}`")
        if not field.nullable:
            problem = functions.raise_error(functions.lit(f'BAD_ROW: column "{field.name}" is NOT NULL'))
            column = functions.coalesce(column, problem.cast(spark_type(field.type)))
        chosen.append(column.alias(field.name))
    return frame.select(*chosen)


def _instead(type_: DataType) -> str:
    from pyspark.sql import types

    if isinstance(type_, types.MapType):
        return "Turn it into an array of structs: map_entries(…)."
    if isinstance(type_, (types.DayTimeIntervalType, types.YearMonthIntervalType)):
        return "Turn it into a number, for example with CAST(… AS BIGINT)."
    if type_.simpleString() == "variant":
        return "Turn it into text with to_json(…), or take fields out with variant_get(…)."
    if type_.simpleString() == "void":
        return "Give it a type: CAST(… AS STRING)."
    return "Leave the column out, or cast it: CAST(… AS STRING)."
