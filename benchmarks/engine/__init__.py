"""`headwater bench engine`: the whole engine beside native Spark, Flink and DuckDB, over the same frozen rows."""
