"""The service's side of a lane: the process is started, asked, told to cancel, and ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from warpwright.base import Task, to_json
from warpwright.errors import LaneDied
from warpwright.run import Settings

END_SECONDS = 5.0

LOG_HINT = "see lanes.log in the server's folder"


class Asked(Protocol):
    """What a service asks: a lane, or a stand-in."""

    used: float
    """When it was last asked, on the monotonic clock."""

    @property
    def alive(self) -> bool:
        """Does its process run?"""
        ...

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Return the answer, {"result": ...} or {"error": ...}; raise LaneDied when there is none."""
        ...

    def cancel(self) -> None:
        """Have the order at work end; its `ask` then returns an error."""
        ...

    def kill(self) -> None:
        """End the process now, whatever it does."""
        ...

    def close(self) -> None:
        """End the process."""
        ...


class Lane:
    """A process that holds the evaluator of one task under some settings."""

    def __init__(self, task: Task, settings: Settings, log: Path) -> None:
        folders = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
        command = [sys.executable, "-m", "warpwright.server.lane_process"]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, start_new_session=True
            )
        self.used = time.monotonic()
        self._number = 0
        self._sending, self._asking = threading.Lock(), threading.Lock()
        self._send({"op": "start", "task": to_json(task), "settings": _plain(settings)})

    @property
    def alive(self) -> bool:
        """Does its process run?"""
        return self._process.poll() is None

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            with self._sending:
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()
        except OSError as error:
            raise LaneDied(f"the process of a lane ended with exit code {self._process.poll()}", LOG_HINT) from error

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Return the answer to an order."""
        assert self._process.stdout is not None
        with self._asking:
            self._number += 1
            self._send({"op": op, "number": self._number, **fields})
            line = self._process.stdout.readline()
        self.used = time.monotonic()
        if not line:
            raise LaneDied(f"the process of a lane ended with exit code {self._process.wait()}", LOG_HINT)
        answer: dict[str, Any] = json.loads(line)
        if answer.pop("number") != self._number:
            self.kill()
            raise LaneDied("the process of a lane answered another order than the one it was given")
        return answer

    def cancel(self) -> None:
        """Have the order at work end."""
        with contextlib.suppress(LaneDied):
            self._send({"op": "cancel", "number": self._number})

    def kill(self) -> None:
        """End the process now; what it started ends with it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process, which ends by itself when nobody can ask it any more."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        with self._asking:
            self._process.stdout.close()


def _plain(settings: Settings) -> dict[str, Any]:
    plain: dict[str, Any] = to_json(settings)
    return {**plain, "baselines": list(settings.baselines), "options": [list(pair) for pair in settings.options]}
