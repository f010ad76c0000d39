"""Spark's classes as the virtual machine keeps them, so that Spark starts with a third to a half less work.

``python -m headwater.backends.spark.class_archive`` makes the archive, once for a Java and a version of Spark: it starts
Spark, does a little of everything a tick does, and lets Java write what it loaded. Java ignores one that does not fit.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.backends.spark.java import Java, cache_folders, find_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SUFFIX = ".jsa"


def find_archive(java: Java) -> Path | None:
    """The archive for this Java, if it was made."""
    name = _name(java)
    return next((folder / name for folder in cache_folders() if (folder / name).is_file()), None)


def make_archive(java: Java) -> Path | None:
    """Make it; nothing where this Java cannot, or where there is no place for it."""
    folder = _writable_folder()
    if folder is None:
        return None
    if not (java.home / "lib" / "server" / "classes.jsa").exists():
        # A runtime that comes without the archive of its own classes, on which ours is built.
        subprocess.run([java.program, "-Xshare:dump"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        made = Path(work) / f"made{_SUFFIX}"
        call = [sys.executable, "-c", "from headwater.backends.spark.class_archive import _train; _train()", str(made)]
        done = subprocess.run(call, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode or not made.is_file():
            print(done.stderr.decode(errors="replace"), file=sys.stderr)
            return None
        return made.replace(folder / _name(java))


def options_for(archive: Path | None) -> str:
    """What to tell Java: use it, and do not speak of it if it does not fit."""
    return f'"-XX:SharedArchiveFile={archive}" -Xlog:cds=off -Xlog:cds+dynamic=off' if archive else ""


def _name(java: Java) -> str:
    spark = metadata.version("pyspark")
    identity = hashlib.sha256(f"{java.home} {metadata.distribution('pyspark').locate_file('')}".encode())
    return f"spark-{spark}-java-{java.version}-{identity.hexdigest()[:12]}{_SUFFIX}"


def _writable_folder() -> Path | None:
    for folder in cache_folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None


def _train() -> None:
    """Start Spark and do what ticks do; Java writes the archive as it ends."""
    from pyspark import SparkContext

    from headwater.backends.spark.session import open_session

    options = f'"-XX:ArchiveClassesAtExit={sys.argv[1]}" -Xlog:cds=off -Xlog:cds+dynamic=off'
    with (
        tempfile.TemporaryDirectory() as folder,
        open_session("local[2]", config={"spark.driver.extraJavaOptions": options}) as session,
    ):
        frame = session.spark.range(100).selectExpr("id", "CAST(id AS STRING) AS name", "current_timestamp() AS ts")
        frame.write.parquet(f"{folder}/parquet")
        frame.write.json(f"{folder}/json")

        def run(batch: DataFrame, _: int) -> None:
            exchanged = batch.repartitionById(2, (batch.id % 2).cast("int"))
            exchanged.mapInArrow(lambda batches: batches, batch.schema).toArrow()

        for kind in ("parquet", "json"):
            stream = session.spark.readStream.schema(frame.schema).format(kind).load(f"{folder}/{kind}")
            running = stream.filter("id > 3").writeStream.foreachBatch(run)
            query = (
                running.option("checkpointLocation", f"{folder}/checkpoint-{kind}").trigger(availableNow=True).start()
            )
            query.awaitTermination()
    gateway = SparkContext._gateway
    assert gateway is not None
    java: Any = gateway.proc
    gateway.shutdown()
    java.stdin.close()
    java.wait()


if __name__ == "__main__":
    found = find_java()
    sys.exit(not (find_archive(found) or make_archive(found)))
