"""Runs queries on Flink in this process: a JSON request per line on stdin, a JSON answer per line on stdout.

Started by the Python of Flink's own environment, so nothing but that and the standard library may be imported here. All
requests run in one warm JVM.

A request has "tables" (name, columns, time column, folder), "views", "query", "parallelism", "revises" (rows are taken back)
and "answer", a folder for the rows, or null: then they go nowhere. What comes back has "seconds", or "error".
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import threading
from collections import Counter
from queue import Queue
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:  # not on our path: the environment of Flink has it
    from pyflink.table import Table, TableDescriptor, TableEnvironment  # pyrefly: ignore[missing-import]


_CHANGE = re.compile(r"([+-][IUD])\[(.*)\]$")


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    printed = tempfile.TemporaryFile()  # noqa: SIM115 - what Java and libraries print is not an answer
    os.dup2(printed.fileno(), 1)
    try:
        import pyflink.version  # pyrefly: ignore[missing-import]

        _say(answers, {"ready": f"Flink {pyflink.version.__version__}"})
    except Exception as problem:
        _say(answers, {"error": f"{type(problem).__name__}: {problem}"})
        return
    requests: Queue[str] = Queue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        line = requests.get()
        try:
            _say(answers, _run(json.loads(line), printed))
        except Exception as problem:
            _say(answers, {"error": _reason(problem)})


def _listen(requests: Queue[str]) -> None:
    """Nobody asks any more: end at once, also in the middle of a job; Java ends with us."""
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def _say(answers: IO[str], answer: dict) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _reason(problem: Exception) -> str:
    """The innermost message of Java's, without its stack."""
    lines = [line.strip() for line in str(problem).splitlines()]
    causes = [line.removeprefix("Caused by:").strip() for line in lines if line.startswith("Caused by:")]
    messages = causes or [line for line in lines if line and not line.startswith(("at ", "An error occurred"))]
    return (messages[-1] if causes else messages[0]) if messages else type(problem).__name__


def _run(request: dict, printed: IO[bytes]) -> dict:
    from pyflink.table import TableDescriptor  # pyrefly: ignore[missing-import]

    environment = _environment(request["parallelism"])
    for table in request["tables"]:
        environment.execute_sql(_create(table))
    for view in request["views"]:
        environment.execute_sql(view)
    query = environment.sql_query(request["query"])
    if not request["answer"]:
        return {"seconds": _insert(query, TableDescriptor.for_connector("blackhole").build())}
    if request["revises"]:
        return {"seconds": _write_what_is_left(query, request["answer"], printed)}
    files = TableDescriptor.for_connector("filesystem").format("csv").option("path", f"file://{request['answer']}")
    return {"seconds": _insert(query, files.build())}


def _environment(parallelism: int) -> TableEnvironment:
    from pyflink.table import EnvironmentSettings, TableEnvironment  # pyrefly: ignore[missing-import]

    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": str(parallelism),
        "table.local-time-zone": "UTC",
        "pipeline.object-reuse": "true",  # faster, and safe for SQL
        # A revised result in small batches is the way to make one fast; it changes nothing for the others.
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "1 s",
        "table.exec.mini-batch.size": "10000",
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


def _insert(query: Table, sink: TableDescriptor) -> float:
    """Seconds that the job ran, as Flink says itself: without planning and without starting a cluster in this process."""
    inserted = query.execute_insert(sink)
    job = inserted.get_job_client()
    inserted.wait()
    return job.get_job_execution_result().result().get_net_runtime() / 1000


def _write_what_is_left(query: Table, folder: str, printed: IO[bytes]) -> float:
    """A result that is revised cannot be written to files as it comes, but printed: +I[1, 2026-01-01T00:02:10]."""
    from pyflink.table import TableDescriptor  # pyrefly: ignore[missing-import]

    printed.seek(0)
    printed.truncate()
    seconds = _insert(query, TableDescriptor.for_connector("print").build())
    printed.seek(0)
    left: Counter[str] = Counter()
    for line in printed:
        if change := _CHANGE.search(line.decode()):
            left[change[2]] += 1 if change[1] in ("+I", "+U") else -1
    os.makedirs(folder)
    with open(os.path.join(folder, "left.csv"), "w", encoding="utf-8") as out:
        out.writelines(values.replace(", ", ",") + "\n" for values in left.elements())
    return seconds


if __name__ == "__main__":
    main()
