"""Jobs in processes on this machine.

Each job is shown one GPU, the one with the fewest jobs; jobs that share a device take turns at timing through `device_lock.DeviceLock`.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright.errors import WorkerDied, WorkerError, WorkerProtocol, WorkerTimeout

Payload = Mapping[str, Any]
Answer = tuple[int, Any]
"""The job's position, and its result or the exception that says why there is none."""

LOG_TAIL = 2000
"""Characters of a dead job's standard error that its message keeps."""

GRACE_SECONDS = 20.0
"""How long a job may take to end after Ctrl-C (it writes the best so far) before it is killed."""


def map_jobs(function: str, payloads: Sequence[Payload], count: int, timeout: float | None = None) -> Iterator[Answer]:
    """Yield (position, result) of each job as it ends, at most `count` at once."""
    gpus = visible_gpus()
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    stop = threading.Event()
    for position in range(len(payloads)):
        waiting.put(position)

    def work(slot: int) -> None:
        environment = {"CUDA_VISIBLE_DEVICES": gpus[slot % len(gpus)]} if gpus else {}
        while not stop.is_set():
            try:
                position = waiting.get_nowait()
            except queue.Empty:
                return
            answers.put((position, run_job(function, payloads[position], environment, timeout, stop)))

    workers = [threading.Thread(target=work, args=(slot,), daemon=True) for slot in range(min(count, len(payloads)))]
    for worker in workers:
        worker.start()
    try:
        for _ in payloads:
            yield answers.get()
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def run_job(
    function: str, payload: Payload, environment: Mapping[str, str] | None = None, timeout: float | None = None, stop: threading.Event | None = None
) -> Any:
    """Run one job in a fresh process and return its result, or the WorkerError that says why there is none; `stop` interrupts it."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as log:
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, [package, *sys.path]))
        process = subprocess.Popen(
            [sys.executable, "-m", "warpwright.jobs.child", str(writing)],
            stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=[writing], start_new_session=True,
            env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        )  # fmt: skip
        os.close(writing)
        try:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it died already: its exit code says how
                process.stdin.write(json.dumps({"function": function, "payload": dict(payload)}).encode() + b"\n")
                process.stdin.flush()  # and stays open: its end would tell the job that this process is gone
            text, timed_out = _read(reading, process, timeout, stop)
        finally:
            os.close(reading)
            _end(process)
        if timed_out:
            return WorkerTimeout(f"expected the job to end within {timeout:g} s, saw it still running; it was killed", "raise the limit")
        return _result(text, process.returncode, _tail(log))


def _read(reading: int, process: subprocess.Popen[bytes], timeout: float | None, stop: threading.Event | None) -> tuple[bytes, bool]:
    """Return what the job wrote until it closed its pipe, and whether it was killed for time. An interrupted job is given GRACE_SECONDS."""
    pieces: list[bytes] = []
    deadline = None if timeout is None else time.monotonic() + timeout
    interrupted: float | None = None
    while True:
        ready, _, _ = select.select([reading], [], [], 0.2)
        if ready:
            piece = os.read(reading, 1 << 16)
            if not piece:
                return b"".join(pieces), False
            pieces.append(piece)
        elif process.poll() is not None:
            return b"".join(pieces), False  # a child of its own still holds the pipe
        clock = time.monotonic()
        if deadline is not None and clock > deadline:
            return b"", True
        if stop is not None and stop.is_set() and interrupted is None:
            interrupted = clock
            process.send_signal(signal.SIGINT)
        if interrupted is not None and clock - interrupted > GRACE_SECONDS:
            return b"", False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Take leave of a process that has answered, or never will: kill its group, itself included if it has not ended by then."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def _result(text: bytes, code: int, log: str) -> Any:
    if not text:
        ended = f"signal {signal.Signals(-code).name}" if -code in {s.value for s in signal.Signals} else f"exit code {code}"
        return WorkerDied(f"expected a result, saw the job's process end with {ended}", f"its last words: {log}" if log else "it said nothing")
    try:
        reply = json.loads(text)
    except ValueError:
        return WorkerProtocol(f"expected one JSON line as the job's result, saw {text[:100]!r}")
    return reply["result"] if "result" in reply else WorkerError(reply["error"])


def _tail(log: Any) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - LOG_TAIL))
    return str(log.read().decode(errors="replace")).strip()


def visible_gpus() -> list[str]:
    """Return the ids of the GPUs that this process may use, as CUDA_VISIBLE_DEVICES writes them; nothing is started on them."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        return [name.strip() for name in listed.split(",") if name.strip()]
    if shutil.which("nvidia-smi") is None:
        return []
    asked = subprocess.run(["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"], capture_output=True, text=True, check=False, timeout=60)
    return asked.stdout.split() if asked.returncode == 0 else []
