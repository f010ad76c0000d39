"""Another process that answers requests, one JSON line each: an engine in its own Python and its own warm JVM."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

_START_SECONDS = 120
_END_SECONDS = 20
_TOLD = 2_000
"""So much of what a dead process said is shown."""


class WorkerFailedError(Exception):
    """It ended, or took too long."""


class Worker:
    """Started when first asked; after a failure the next request starts it again."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> None:
        self._command, self._environment = list(command), dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._rest = b""

    def start(self) -> str:
        """What runs there, as it says itself."""
        self.close()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process runs
        self._rest = b""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=os.environ | self._environment,
            start_new_session=True,  # its Java ends with it, also when it is killed
        )
        said = self._answer(_START_SECONDS)
        if "ready" not in said:
            self.close()
            raise WorkerFailedError(said.get("error", "it did not start"))
        return said["ready"]

    def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The answer, within so many seconds."""
        if self._process is None:
            self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        return self._answer(seconds)

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        end = time.monotonic() + seconds
        out = self._process.stdout.fileno()
        with selectors.DefaultSelector() as ready:
            ready.register(out, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not ready.select(max(end - time.monotonic(), 0)):
                    self.kill()
                    raise WorkerFailedError(f"no answer within {seconds:.0f} s")
                if not (read := os.read(out, 65_536)):
                    raise self._ended()
                self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def _ended(self) -> WorkerFailedError:
        told = ""
        if self._errors is not None:
            self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(self._errors.tell() - _TOLD, 0))
            told = self._errors.read().decode(errors="replace").strip()
        self.kill()
        return WorkerFailedError(f"it ended: {told.splitlines()[-1] if told else 'nothing was said'}")

    def kill(self) -> None:
        """At once, with the processes it started."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            _close_pipes(process)
        self._close_errors()

    def close(self) -> None:
        """It ends by itself when nothing more is asked."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.stdin.close()
            self._process.wait(_END_SECONDS)
        self.kill()  # what it has left behind, too

    def _close_errors(self) -> None:
        if self._errors is not None:
            self._errors.close()
            self._errors = None


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
