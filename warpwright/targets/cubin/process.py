"""The parent's handle of the child process: starts it, asks it with a time limit, and replaces it when a candidate has broken it.

While a child starts or answers, its GPU is held alone: searches of several kernels may share it, each proposing while another measures.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.errors import TaskError, WorkerDied, WorkerTimeout
from warpwright.timing.device_lock import DeviceLock

START_SECONDS, ANSWER_SECONDS = 60.0, 8.0


@dataclass(frozen=True)
class Job:
    """What a child is started with."""

    original: Path
    harness: Path
    helpers: Path
    driver: str = "libcuda.so.1"
    device: int = 0
    sets: int = 2
    function: str = "launch"
    """The harness's function that gives the launch."""


class Child:
    """A child process, started when it is first asked; one that died or was killed is started again."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job, self.folder = job, folder
        self.lock = DeviceLock(f"cuda:{job.device}")
        self.process: subprocess.Popen[bytes] | None = None
        self.buffer = b""
        self.about: Mapping[str, Any] = {}
        """What it said of the original: us, inner, device."""
        self.starts: list[float] = []
        """Seconds that each start took."""

    def start(self) -> Mapping[str, Any]:
        """Start the child if there is none; raise TaskError when the original itself fails in it."""
        if self.process is not None:
            return self.about
        began = time.monotonic()
        job = self.folder / "job.json"
        job.write_text(json.dumps({name: str(value) if isinstance(value, Path) else value for name, value in vars(self.job).items()}))
        command = [sys.executable, "-m", f"{__package__}.child", str(job)]
        errors = tempfile.TemporaryFile()  # noqa: SIM115 (the child holds it)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=_environment())
        self.buffer = b""
        try:
            answer = self._answer(START_SECONDS)  # its context is made beside others' measurements; it launches nothing yet
            if answer["ok"]:
                with self.lock.exclusive():
                    self._send({"do": "begin"})
                    answer = self._answer(START_SECONDS)
        except (BrokenPipeError, WorkerDied, WorkerTimeout) as error:
            errors.seek(0)
            self.end()
            last = errors.read()[-500:].decode(errors="replace")
            raise TaskError(f"the child that runs the original ended: {error}: {last}", "look at the harness") from error
        finally:
            errors.close()
        if not answer["ok"]:
            self.end()
            raise TaskError(f"the original cannot be run: {answer['error']}", "look at the harness, and whether the cubin is for this GPU")
        if any(answer["differ"]):
            self.end()
            raise TaskError("expected a kernel that gives the same bits each time, saw one that does not", "atomics in another order, or a race")
        self.starts.append(time.monotonic() - began)
        self.about = answer
        return answer

    def ask(self, request: Mapping[str, Any], seconds: float = ANSWER_SECONDS, alone: bool = True) -> Mapping[str, Any]:
        """Return the child's answer; raise WorkerDied or WorkerTimeout, after which the next question starts a new child.

        `alone`: nobody else uses the GPU meanwhile; what is not timed needs no such thing.
        """
        self.start()
        if alone:
            with self.lock.exclusive():
                return self._ask(request, seconds)
        with self.lock.shared():
            return self._ask(request, seconds)

    def _ask(self, request: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        try:
            self._send(request)
            answer = self._answer(seconds)
        except (BrokenPipeError, WorkerDied, WorkerTimeout) as error:
            self.kill()
            if isinstance(error, BrokenPipeError):
                raise WorkerDied("the child ended before it was asked") from error
            raise
        except BaseException:  # a deadline or Ctrl-C in the middle of an answer: the next question must not read it
            self.kill()
            raise
        if not answer["ok"]:
            self.kill()
            raise WorkerDied(f"the candidate broke the context: {answer['error']}")
        return answer

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write((json.dumps(request) + "\n").encode())
        self.process.stdin.flush()

    def _answer(self, seconds: float) -> Mapping[str, Any]:
        assert self.process is not None and self.process.stdout is not None
        end, pipe = time.monotonic() + seconds, self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise WorkerTimeout(f"no answer within {seconds:g} s")
            data = os.read(pipe, 1 << 16)
            if not data:
                raise WorkerDied(f"the child ended with code {self.process.wait()}")
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        answer: Mapping[str, Any] = json.loads(line)
        return answer

    def kill(self) -> None:
        """End the child at once; the driver frees its context."""
        if self.process is None:
            return
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a hung kernel: the driver ends it later
            self.process.wait(20)
        self._close()

    def end(self) -> None:
        """Let the child end by itself."""
        if self.process is None:
            return
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
            return
        self._close()

    def _close(self) -> None:
        assert self.process is not None
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.process = None


def _environment() -> dict[str, str]:
    """Return this process's environment with its import path: the child must find this very package."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "CUDA_MODULE_LOADING": "EAGER"}
