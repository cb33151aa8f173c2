"""Processes that do one job after another: what each imports (torch: 10 to 15 s of CPU on a fresh machine) is imported once.

The parent sends {"function": "module:name", "payload": {...}} as a line, and reads {"result": ...} or {"error": ...}. A process whose job is over is
free for the next; one that died is replaced. Candidates run in workers of their own in any case.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwright.domains.graph.domain import LOADED
from warpwright.errors import WorkerDied, WorkerError
from warpwright.workers import placement

GRACE_SECONDS = 15.0
"""How long a job may take to end after it was interrupted (it writes the best so far) before it is killed."""

PRELOAD = "WARPWRIGHT_POOL_PRELOAD"
"""Environment variable: the process loads what jobs need before the first one comes."""


class PooledProcess:
    """One such process."""

    def __init__(self, environment: Mapping[str, str], grace: float = GRACE_SECONDS) -> None:
        self.grace = grace
        self.reading, writing = os.pipe()
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 (it ends with this object)
        path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), *sys.path]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.kernelbench.process_pool", str(writing)], stdin=subprocess.PIPE, stdout=self.log, stderr=self.log,
            pass_fds=[writing], start_new_session=True, env={**os.environ, "PYTHONPATH": path, **environment},
        )  # fmt: skip
        os.close(writing)

    def do(self, function: str, payload: Mapping[str, Any], stop: threading.Event) -> Any:
        """Return the job's result, or the exception that says why there is none; `stop` interrupts it."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"function": function, "payload": dict(payload)}).encode() + b"\n")
            self.process.stdin.flush()
        text, interrupted = b"", None
        while not text.endswith(b"\n"):
            ready, _, _ = select.select([self.reading], [], [], 0.2)
            piece = os.read(self.reading, 1 << 16) if ready else b""
            text += piece
            if (ready and not piece) or (interrupted is not None and time.monotonic() - interrupted > self.grace):
                self.close()
                return WorkerDied(f"expected a result, saw the job's process end or stand still: {self._last_words()}")
            if stop.is_set() and interrupted is None:
                interrupted = time.monotonic()
                self.process.send_signal(signal.SIGINT)
        reply = json.loads(text)
        return reply["result"] if "result" in reply else WorkerError(reply["error"])

    @property
    def alive(self) -> bool:
        """Can it take a job?"""
        return self.process.poll() is None

    def close(self) -> None:
        """End it, and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _last_words(self) -> str:
        size = self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, size - 1500))
        return self.log.read().decode(errors="replace").strip()


class ProcessPool:
    """As many as are wanted at once; use it with `with`."""

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self.grace = grace
        self.lock = threading.Lock()
        self.free: dict[tuple[tuple[str, str], ...], list[PooledProcess]] = {}
        self.all: list[PooledProcess] = []

    def begin(self, count: int, environment: Mapping[str, str]) -> None:
        """Start so many processes of this environment, which load what jobs need; a job that comes sooner waits in the pipe of one of them."""
        kind = tuple(sorted(environment.items()))
        with self.lock:
            for _ in range(count):
                process = PooledProcess({**environment, PRELOAD: "1"}, self.grace)
                self.free.setdefault(kind, []).append(process)
                self.all.append(process)

    def do(self, function: str, payload: Mapping[str, Any], environment: Mapping[str, str], stop: threading.Event) -> Any:
        """Do a job in a free process of this environment, or in a new one."""
        kind = tuple(sorted(environment.items()))
        with self.lock:
            free = self.free.setdefault(kind, [])
            process = free.pop() if free else None
            if process is None:
                process = PooledProcess(environment, self.grace)
                self.all.append(process)
        result = process.do(function, payload, stop)
        if process.alive:
            with self.lock:
                free.append(process)
        return result

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.all:
            process.close()


def main() -> None:
    """Do the jobs that standard input names until it ends."""
    from warpwright.jobs.child import _run

    target = int(sys.argv[1])
    os.set_inheritable(target, False)
    if os.environ.get("CUDA_VISIBLE_DEVICES"):
        placement.leave_cores_free()  # a program is captured on one core for seconds, while another is timed
    if os.environ.pop(PRELOAD, ""):
        _load()
    while True:
        try:
            line = sys.stdin.buffer.readline()
        except KeyboardInterrupt:  # meant for a job that had just ended
            continue
        if not line:
            return
        job = json.loads(line)
        os.write(target, json.dumps(_run(job["function"], job["payload"])).encode() + b"\n")


def _load() -> None:
    """Start the fork server and import torch and the compiler of graphs, which take 10 to 15 s of a slow core each."""
    from warpwright.workers.fork_server import start_fork_server

    start_fork_server(("torch._dynamo",))  # 3 to 5 s of each baseline that is compiled
    for name in ("warpwright.bench", *LOADED):
        importlib.import_module(name)


if __name__ == "__main__":
    main()
