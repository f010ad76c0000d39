"""Spark's types and ours. A TIMESTAMP is microseconds in UTC, which Spark calls TIMESTAMP_NTZ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import InputError
from headwater.model.schema import Field, Schema
from headwater.model.types import sql_name

if TYPE_CHECKING:
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
