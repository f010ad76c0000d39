"""Runs queries on native Structured Streaming in this process: JSON requests on stdin, answers on stdout, one per line.

A request has "tables" (name, schema, folder), "format", "files" (so many a micro-batch), "query", "checkpoint" and "answer",
a folder for the rows, or null: then they go nowhere. What comes back has "seconds", or "error", and with it whether Spark
refused the query itself ("cannot").
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from queue import Queue
from typing import IO, Any

from benchmarks.engine.competitor import PARALLELISM
from headwater.backends.spark.session import open_session

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SETTINGS = {
    "spark.sql.shuffle.partitions": str(PARALLELISM),
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.driver.memory": "4g",
}
"""Spark's own, but for parallelism and the state store that it recommends for large state."""


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever Java and libraries print is not an answer
    requests: Queue[str] = Queue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    spark = open_session(f"local[{PARALLELISM}]", shards=PARALLELISM, app_name="native", config=SETTINGS).spark
    _say(answers, {"ready": f"Spark {spark.version}"})
    while True:
        line = requests.get()
        try:
            _say(answers, _run(spark, json.loads(line)))
        except Exception as problem:
            _say(answers, {"error": _reason(problem), "cannot": type(problem).__name__ == "AnalysisException"})


def _listen(requests: Queue[str]) -> None:
    """Nobody asks any more: end at once, also in the middle of a query; Java ends with us."""
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def _say(answers: IO[str], answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _reason(problem: Exception) -> str:
    """The first line of what Spark says."""
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)


def _run(spark: Any, request: dict[str, Any]) -> dict[str, Any]:
    for table in request["tables"]:
        stream = spark.readStream.schema(table["schema"]).option("maxFilesPerTrigger", request["files"])
        rows = stream.format(request["format"]).load(table["folder"])
        rows.withWatermark("ts", "2 seconds").createOrReplaceTempView(table["name"])
    writer = spark.sql(request["query"]).writeStream.outputMode("append").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", request["checkpoint"])
    if request["answer"]:
        writer = writer.format("parquet").option("path", request["answer"])
    else:
        writer = writer.format("noop")
    began = time.perf_counter()
    running = writer.start()
    running.awaitTermination()
    return {"seconds": time.perf_counter() - began}


if __name__ == "__main__":
    main()
