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
    kernel: str = ""
    """What is edited, and must be what the harness launches."""


class Process:
    """One child process: what it is asked, a JSON line each, and what it answers."""

    def __init__(self, job: Path, *words: str) -> None:
        """Start it; `words` stand behind the job's file on its command line."""
        command = [sys.executable, "-m", f"{__package__}.child", str(job), *words]
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=_environment())
        assert self.popen.stdin is not None and self.popen.stdout is not None
        self.questions, self.pipe = self.popen.stdin, self.popen.stdout
        self.buffer = b""

    def send(self, request: Mapping[str, Any]) -> None:
        """Ask it."""
        self.questions.write((json.dumps(request) + "\n").encode())
        self.questions.flush()

    @property
    def has_answered(self) -> bool:
        """Is there an answer, or has it ended?"""
        return b"\n" in self.buffer or bool(select.select([self.pipe], [], [], 0.0)[0])

    def answer(self, seconds: float) -> Mapping[str, Any]:
        """Return its answer; raise WorkerTimeout or WorkerDied where there is none."""
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.pipe], [], [], left)[0]:
                raise WorkerTimeout(f"no answer within {seconds:g} s")
            data = os.read(self.pipe.fileno(), 1 << 16)
            if not data:
                raise WorkerDied(f"the child ended with code {self.popen.wait()}")
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        answer: Mapping[str, Any] = json.loads(line)
        return answer

    def said(self) -> str:
        """Return the end of what it wrote to its error stream."""
        self.errors.seek(0)
        return self.errors.read()[-500:].decode(errors="replace")

    def kill(self) -> None:
        """End it at once; the driver frees its context."""
        self.popen.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a hung kernel: the driver ends it later
            self.popen.wait(20)
        self._close()

    def end(self) -> None:
        """Let it end by itself."""
        with contextlib.suppress(BrokenPipeError):
            self.questions.close()
        try:
            self.popen.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
            return
        self._close()

    def _close(self) -> None:
        for file in (self.questions, self.pipe, self.errors):
            with contextlib.suppress(BrokenPipeError):
                file.close()


class Child:
    """A child process, started when it is first asked; one that died or was killed is replaced: by its spare, where there is one."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job, self.folder = job, folder
        self.lock = DeviceLock(f"cuda:{job.device}")
        self.process: Process | None = None
        self.spare: Process | None = None
        """Another one, which holds a context and waits (`keep_spare`)."""
        self.about: Mapping[str, Any] = {}
        """What it said of the original: us, inner, device."""
        self.starts: list[float] = []
        """Seconds that each start took."""
        self.replacements: list[float] = []
        """Seconds that each replacement of a broken child took, its end included."""
        self.ending: float | None = None
        """Seconds that ending a broken child took which has not been replaced yet."""

    def start(self) -> Mapping[str, Any]:
        """Start the child if there is none; raise TaskError when the original itself fails in it."""
        if self.process is not None:
            return self.about
        began = time.monotonic()
        about = self._from_spare()
        self.about = self._begun(self._launched()) if about is None else about
        self.starts.append(time.monotonic() - began)
        if self.ending is not None:
            self.replacements.append(self.ending + self.starts[-1])
            self.ending = None
        return self.about

    def keep_spare(self) -> None:
        """Have another child make its context and wait, so that a candidate that breaks this one costs a hand-over and no start.

        It makes its context when nobody times, allocates no arrays before it takes over, and ends by itself where memory is short.
        """
        if self.spare is None:
            self.spare = self._launched("spare")

    def _launched(self, *words: str) -> Process:
        job = self.folder / "job.json"
        new = job.with_suffix(".new")
        new.write_text(json.dumps({name: str(value) if isinstance(value, Path) else value for name, value in vars(self.job).items()}))
        new.replace(job)  # a spare that comes up may be reading it
        return Process(job, *words)

    def _from_spare(self) -> Mapping[str, Any] | None:
        """Let the spare take over; None where there is none that can. One that is not ready yet will be next time."""
        spare = self.spare
        if spare is None or not spare.has_answered:
            return None
        self.spare = None
        with contextlib.suppress(TaskError):  # short memory, say: a new child finds out, or does without it
            return self._begun(spare)
        return None

    def _begun(self, process: Process) -> Mapping[str, Any]:
        """Have a process run the original: from then on it is the one that is asked. Raise TaskError where that cannot be."""
        try:
            answer = process.answer(START_SECONDS)  # its context is made beside others' measurements; it launches nothing yet
            if answer["ok"]:
                with self.lock.exclusive():
                    process.send({"do": "begin"})
                    answer = process.answer(START_SECONDS)
        except (BrokenPipeError, WorkerDied, WorkerTimeout) as error:
            last = process.said()
            process.kill()
            raise TaskError(f"the child that runs the original ended: {error}: {last}", "look at the harness") from error
        except BaseException:  # a deadline or Ctrl-C
            process.kill()
            raise
        if not answer["ok"]:
            process.end()
            raise TaskError(f"the original cannot be run: {answer['error']}", _advice(str(answer["error"])))
        if any(answer["differ"]):
            process.end()
            raise TaskError("expected a kernel that gives the same bits each time, saw one that does not", "atomics in another order, or a race")
        self.process = process
        return answer

    def ask(self, request: Mapping[str, Any], seconds: float = ANSWER_SECONDS, alone: bool = True) -> Mapping[str, Any]:
        """Return the child's answer; raise WorkerDied or WorkerTimeout, after which the next question goes to a new child.

        `alone`: nobody else uses the GPU meanwhile; what is not timed needs no such thing.
        """
        self.start()
        if alone:
            with self.lock.exclusive():
                return self._ask(request, seconds)
        with self.lock.shared():
            return self._ask(request, seconds)

    def _ask(self, request: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        assert self.process is not None
        try:
            self.process.send(request)
            answer = self.process.answer(seconds)
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

    def kill(self) -> None:
        """End the child at once; its spare stays."""
        if self.process is None:
            return
        began, process = time.monotonic(), self.process
        self.process = None
        process.kill()
        self.ending = time.monotonic() - began

    def end(self) -> None:
        """Let the child end by itself, and its spare."""
        spare, self.spare = self.spare, None
        if spare is not None:
            spare.kill()
        process, self.process, self.ending = self.process, None, None
        if process is not None:
            process.end()


_WITHOUT_GPU = ("libcuda", "cuInit", "CUDA error 100 ")
"""In what the child says where there is no driver, or no GPU (CUDA error 100)."""


def _advice(error: str) -> str:
    """Return what to do where the original cannot be run."""
    if any(said in error for said in _WITHOUT_GPU):
        return "that needs an NVIDIA GPU and its driver; without one `optimize --target cubin:sim` plays against a simulator"
    return "look at the harness, and whether the cubin is for this GPU"


def _environment() -> dict[str, str]:
    """Return this process's environment with its import path: the child must find this very package."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "CUDA_MODULE_LOADING": "EAGER"}
