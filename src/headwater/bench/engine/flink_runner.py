"""Runs queries on Flink in this process: a JSON request a line on stdin, a JSON answer a line on stdout.

Started by the Python of Flink's own environment, so nothing but that and the standard library may be imported here. All
requests run in one warm JVM.

A request has "tables" (name, columns, time column, folder), "query", "parallelism" and perhaps "answer", a folder for the
rows; without it they go nowhere. The answer has "seconds", or "error".
"""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever Java and libraries print is not an answer
    try:
        import pyflink.version

        _say(answers, {"ready": f"Flink {pyflink.version.__version__}"})
    except Exception as problem:
        _say(answers, {"error": f"{type(problem).__name__}: {problem}"})
        return
    for line in sys.stdin:
        try:
            _say(answers, _run(json.loads(line)))
        except Exception as problem:
            _say(answers, {"error": _reason(problem)})


def _say(answers, answer: dict) -> None:  # noqa: ANN001
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _reason(problem: Exception) -> str:
    """The innermost message of Java's, without its stack."""
    lines = [line.strip() for line in str(problem).splitlines()]
    causes = [line.removeprefix("Caused by:").strip() for line in lines if line.startswith("Caused by:")]
    messages = causes or [line for line in lines if line and not line.startswith(("at ", "An error occurred"))]
    return (messages[-1] if causes else messages[0]) if messages else type(problem).__name__


def _run(request: dict) -> dict:
    from pyflink.table import TableDescriptor

    environment = _environment(request["parallelism"])
    for table in request["tables"]:
        environment.execute_sql(_create(table))
    query = environment.sql_query(request["query"])
    if request.get("answer"):
        sink = TableDescriptor.for_connector("filesystem").format("csv").option("path", f"file://{request['answer']}")
    else:
        sink = TableDescriptor.for_connector("blackhole")
    if request.get("changes"):
        return _changes(query, request["answer"]) if request.get("answer") else _timed(query, sink)
    return _timed(query, sink)


def _environment(parallelism: int):  # noqa: ANN202
    from pyflink.table import EnvironmentSettings, TableEnvironment

    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": str(parallelism),
        "table.local-time-zone": "UTC",
        "pipeline.object-reuse": "true",
    }
    for name, value in settings.items():
        environment.get_config().set(name, value)
    return environment


def _create(table: dict) -> str:
    columns = ", ".join(f"{name} {type_}" for name, type_ in table["columns"])
    time_ = table["time"]
    return (
        f"CREATE TABLE {table['name']} ({columns}, WATERMARK FOR {time_} AS {time_} - INTERVAL '2' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{table['folder']}', 'format' = 'csv')"
    )


def _timed(query, sink) -> dict:  # noqa: ANN001
    began = time.perf_counter()
    started = query.execute_insert(sink.build())
    job = started.get_job_client()
    started.wait()
    seconds = time.perf_counter() - began
    try:
        net = job.get_job_execution_result().result().get_net_runtime() / 1000
    except Exception as problem:
        net = str(problem)
    return {"seconds": seconds, "net": net}


def _changes(query, folder: str) -> dict:  # noqa: ANN001
    """A result that is revised cannot be written to files: what is left of it in the end."""
    left: dict[tuple, int] = {}
    with query.execute().collect() as rows:
        for row in rows:
            weight = 1 if str(row.get_row_kind()).endswith(("INSERT", "UPDATE_AFTER")) else -1
            values = tuple(str(value) for value in row)
            left[values] = left.get(values, 0) + weight
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "left.csv"), "w", encoding="utf-8") as out:
        for values, count in left.items():
            out.writelines(",".join(values) + "\n" for _ in range(count))
    return {"seconds": None}


if __name__ == "__main__":
    main()
