"""Statements of Flink, Spark, ksqlDB, RisingWave and Materialize that this language does not have: what to write instead."""

from __future__ import annotations

STREAM_AS = "CREATE STREAM {0} AS SELECT …"
_PROGRAM = "A program starts and ends queries: run = engine.sql(…).start(); run.stop(). In a script: DROP QUERY name."
_ONE_SCOPE = "There is one set of names per engine: leave it out."
_NO_ROWS = "Rows come from a SOURCE, or from a program: engine.push('name', rows)."

STATEMENTS = {
    "INSERT": "",  # its hint has the name
    "USE": _ONE_SCOPE,
    "BEGIN": "All queries of a script run together, as one dataflow: leave it out, with its END.",
    "EXECUTE": "All queries of a script run together, as one dataflow: leave it out.",
    "END": "All queries of a script run together, as one dataflow: leave it out, with its BEGIN.",
    "COMMIT": "Answers are committed tick by tick: leave it out.",
    "ANALYZE": "Streams are measured while queries run. To tell it: CREATE STREAM … STATISTICS (rate => 1000).",
    "STOP": _PROGRAM,
    "KILL": _PROGRAM,
    "TERMINATE": _PROGRAM,
    "PAUSE": _PROGRAM,
    "RESUME": _PROGRAM,
    "FLUSH": "Answers follow by themselves; a program waits for them with engine.run_to_end().",
    "UPDATE": _NO_ROWS,
    "DELETE": _NO_ROWS,
    "MERGE": _NO_ROWS,
    "TRUNCATE": _NO_ROWS,
    "LOAD": _NO_ROWS,
    "COPY": "Answers go to a sink: headwater run script.sql --output folder; query.start(hw.sinks.parquet('folder')).",
    "SUBSCRIBE": "Write the query itself, SELECT … CONSISTENCY MIDDLE: headwater run prints its changes.",
    "TAIL": "Write the query itself, SELECT … CONSISTENCY MIDDLE: headwater run prints its changes.",
    "PRINT": "Write SELECT * FROM name: headwater run prints its rows.",
    "LIST": "Write SHOW STREAMS, SHOW TABLES or SHOW QUERIES.",
    "CACHE": "Equal parts of queries are computed once anyway: leave it out.",
    "UNCACHE": "Equal parts of queries are computed once anyway: leave it out.",
    "REFRESH": "Answers follow their inputs by themselves: leave it out.",
    "RESET": "Settings hold for their script only: leave it out.",
    "ADD": "A function's module lies beside the script, or where Python finds it: CREATE FUNCTION … AS 'module:name'.",
    "GRANT": "Who may run scripts decides who starts the engine: leave it out.",
    "DECLARE": "Write the query itself; a program reads its rows: run.snapshot().rows().",
    "FETCH": "Write the query itself; a program reads its rows: run.snapshot().rows().",
    "TABLE": "Write SELECT * FROM name.",
    "FROM": "Write SELECT … FROM ….",
    "ASSERT": "A test compares answers: headwater.testing, or headwater replay.",
    "COMPILE": "Write the query itself.",
}
"""By the first word."""

CREATED = {
    "SOURCE": "Write CREATE STREAM name (column type, …) SOURCE parquet('folder') ORDERED BY ts.",
    "DATABASE": _ONE_SCOPE,
    "SCHEMA": _ONE_SCOPE,
    "CATALOG": _ONE_SCOPE,
    "INDEX": "Operators index what they keep by themselves: leave it out.",
    "CONNECTION": "A SOURCE has its options as arguments: SOURCE csv('folder', header => true).",
    "SECRET": "A SOURCE has its options as arguments: SOURCE csv('folder', header => true).",
    "CONNECTOR": "Write CREATE STREAM name (column type, …) SOURCE parquet('folder') ORDERED BY ts.",
    "TYPE": "Write STRUCT<name: type, …> where a type stands.",
    "CLUSTER": "An engine is one cluster: headwater run --master spark://host:7077.",
    "EXTERNAL": "Write CREATE STREAM name (column type, …) SOURCE parquet('folder') ORDERED BY ts.",
}
"""By what CREATE is to create."""

EMISSIONS = {
    "CHANGES": "For every change at once, write CONSISTENCY MIDDLE; final rows come without a clause.",
    "FINAL": "Answers are final without a clause; EMIT ON CLOSE gives each row once, with both ends.",
    "WITHOUT": "For every change at once, write CONSISTENCY MIDDLE.",
    "AFTER": "For whole answers now and then, write EMIT EVERY 1 MINUTE.",
    "WINDOW": "Write EMIT ON CLOSE: each row once, when both its ends are final.",
    "UPDATE": "For every change at once, write CONSISTENCY MIDDLE.",
    "STREAM": "For every change at once, write CONSISTENCY MIDDLE.",
}
"""By the word after EMIT, or after EMIT ON."""

EXPLAINED = {
    "ANALYZE": "EXPLAIN PHYSICAL shows what runs where; of a query that runs, run.progress tells rows and times.",
    "PLAN": "Write EXPLAIN SELECT …, without PLAN FOR.",
    "EXTENDED": "Write EXPLAIN VERBOSE.",
    "FORMATTED": "Write EXPLAIN … FORMAT TREE, TEXT, JSON or MERMAID.",
    "CODEGEN": "Write EXPLAIN PHYSICAL.",
    "COST": "EXPLAIN shows rates and what is kept; EXPLAIN VERBOSE also the cost.",
    "ESTIMATED_COST": "EXPLAIN shows rates and what is kept; EXPLAIN VERBOSE also the cost.",
    "CHANGELOG_MODE": "CONSISTENCY says it: STRONG answers are never taken back, those of other levels may be.",
    "TIMELINE": "Write EXPLAIN HEARTBEAT.",
    "PIPELINE": "Write EXPLAIN PHYSICAL.",
}
"""By the word after EXPLAIN."""

IN_FROM = {
    "MATCH_RECOGNIZE": "Join its steps by windows: FROM s b JOIN s [RANGE 1 MINUTE] a ON a.k = b.k AND a.ts < b.ts.",
    "PIVOT": "Write one aggregate per column: SUM(x) FILTER (WHERE k = 'a') AS a.",
    "UNPIVOT": "Write one SELECT per column, with UNION ALL between them.",
    "TABLESAMPLE": "Filter by a key, so that always the same rows stay: WHERE pmod(id, 10) = 0.",
}
"""By the word after a stream in FROM."""

AS_WINDOW = {
    "TUMBLING": "Write FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR), and group by window_start, window_end.",
    "HOPPING": "Write FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR), the size last.",
    "SESSION": "Write FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTES).",
}
"""By the word after ksqlDB's WINDOW."""

CLAUSES = {
    "PARTITIONED BY": "For a folder per value: CREATE SINK name TO delta('folder', partition_by => 'c') AS SELECT …",
    "LIKE": "Write the columns out, or CREATE STREAM name AS SELECT … FROM the other.",
    "LOCATION": "Write SOURCE parquet('folder').",
    "USING": "Write SOURCE parquet('folder'), csv('folder') or json('folder').",
    "COMMENT": "Write it as a comment: -- …",
}
"""By the word of a clause after the columns of CREATE."""

FORMATS = {"csv": "csv", "json": "json", "ndjson": "json", "parquet": "parquet"}


def source_of(options: dict[str, str], name: str) -> str:
    """The clause for ``WITH ('connector' = …)``: as far as there is such a source, with its arguments."""
    connector = options.get("connector", "").lower()
    path, format_ = options.get("path"), options.get("format", "").lower()
    if connector.startswith("filesystem") or connector in ("file", "posix_fs", "s3") or (not connector and path):
        made = FORMATS.get(format_, "parquet")
        return f"Write SOURCE {made}('{(path or 'folder').removeprefix('file://')}') instead of WITH (…)."
    if connector == "datagen":
        rows = options.get("rows-per-second", "10")
        return f"Write (value BIGINT, ts TIMESTAMP) SOURCE rate({rows}) instead of WITH (…): it counts."
    if connector == "nexmark":
        return "Write SOURCE nexmark('bid'), nexmark('auction') or nexmark('person') instead of WITH (…)."
    if connector in ("blackhole", "print", "upsert-kafka", "jdbc") and name.lower().startswith(("sink", "nexmark_")):
        connector = "blackhole"
    if connector in ("blackhole", "print"):
        more = "--sink noop" if connector == "blackhole" else "--format json"
        return f"An answer needs no table: {STREAM_AS.format(name)}, and headwater run script.sql {more}."
    if connector in ("kafka", "upsert-kafka", "kinesis", "pulsar") or "kafka_topic" in options or "topic" in options:
        frame = f"spark.readStream.format('{connector or 'kafka'}')…load()"
        return f"Spark reads it: engine.register('{name}', {frame}, time='ts')."
    there = "csv, json, parquet, nexmark, rate, socket, push"
    return f"Write SOURCE name(…) instead of WITH (…): {there}; or engine.register('{name}', frame) with a Spark DataFrame."
