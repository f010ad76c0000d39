"""A real Spark cluster on this machine: a standalone master and workers, each a process that can be killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from headwater.backends.spark.java import find_java, home_for_spark
from headwater.errors import HeadwaterError

_PATIENCE = 120.0  # seconds; a JVM starts in a few, on a busy machine in many
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")


class Cluster:
    """A master and workers on the loopback interface, as a context manager; nothing is left of them at its end.

    Parameters
    ----------
    workers
        How many.
    cores, memory_mb
        What each worker offers.
    environment
        Set for all processes of the cluster, and so for the tasks; a value of ``None`` unsets.

    Examples
    --------
    >>> with Cluster(workers=2) as cluster:  # doctest: +SKIP
    ...     engine = headwater.connect(cluster.master_url, config=cluster.settings)
    ...     cluster.kill_worker(0)
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        cores: int = 1,
        memory_mb: int = 1024,
        environment: Mapping[str, str | None] | None = None,
    ) -> None:
        self.master_url = ""
        self.folder = Path(tempfile.mkdtemp(prefix="headwater-cluster-"))
        self._size, self._cores, self._memory_mb = workers, cores, memory_mb
        self._environment = self._make_environment(environment or {})
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def settings(self) -> dict[str, str]:
        """For the session: the driver is on the loopback interface too, executors fit into a worker and start soon."""
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.executor.memory": f"{self._memory_mb}m",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }

    def __enter__(self) -> Cluster:
        try:
            self._start("master", "master.Master", "--port", "0")
            self.master_url = self._await_line("master", _MASTER)[1]
            for number in range(self._size):
                self.start_worker(number, wait=False)
            for number in range(self._size):
                self._await_line(f"worker-{number}", _REGISTERED)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start_worker(self, number: int, *, wait: bool = True) -> None:
        """Start a worker, or start it again after it was killed."""
        name = f"worker-{number}"
        offer = ("--cores", str(self._cores), "--memory", f"{self._memory_mb}m")
        work = ("--work-dir", str(self.folder / f"{name}-work"))
        self._start(name, "worker.Worker", "--port", "0", *offer, *work, self.master_url)
        if wait:
            self._await_line(name, _REGISTERED)

    def kill_worker(self, number: int) -> None:
        """``kill -9`` of a worker, its executors and their Python processes, as when the machine goes down."""
        self._kill(f"worker-{number}")

    def stop(self) -> None:
        """End all processes and remove their files; more than once does no harm."""
        for name in reversed(list(self._processes)):
            self._kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self, name: str) -> str:
        """What ``master``, ``worker-0``, … said so far."""
        try:
            return (self.folder / f"{name}.log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def _make_environment(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        environment = os.environ | {
            "JAVA_HOME": str(home_for_spark(find_java())),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
        }
        for name, value in changes.items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
        return environment

    def _start(self, name: str, role: str, *arguments: str) -> None:
        home = _distribution()
        call = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}"]
        call += ["--host", "127.0.0.1", "--webui-port", "0", *arguments]
        with (self.folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                call,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment | {"SPARK_HOME": str(home)},
                cwd=self.folder,
                start_new_session=True,  # so that all that it starts can be found and ended
            )

    def _await_line(self, name: str, pattern: re.Pattern[str]) -> re.Match[str]:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if match := pattern.search(self.log(name)):
                return match
            if self._processes[name].poll() is not None:
                break
            time.sleep(0.05)
        said = "\n".join(self.log(name).splitlines()[-20:])
        raise HeadwaterError("CLUSTER_START", f'the {name} of the cluster "{self.folder}" did not come up', detail=said)

    def _kill(self, name: str) -> None:
        process = self._processes.pop(name, None)
        if process is None:
            return
        while running := _session_of(process.pid):
            for pid in running:
                _send_kill(pid)
            process.poll()  # a child that has ended stays in the list until it is asked
        process.wait()


def _distribution() -> Path:
    """Spark as it comes with PySpark."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _session_of(leader: int) -> list[int]:
    """The living processes of a session: Python workers have a process group of their own, but not a session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session, *_ = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        if int(session) == leader and state != "Z":
            found.append(int(entry.name))
    return found


def _send_kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
