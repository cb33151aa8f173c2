"""The parent's end of the socket to a worker's guard, the process that started the worker: how it ended, what it printed, its death."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any

from warpwright.errors import WorkerDied, WorkerTimeout
from warpwright.workers.process import printable

END_SECONDS, KILL_SECONDS = 5.0, 10.0
"""For a message that is awaited when the worker has ended, and when it is killed with its descendants."""


class Guard:
    """What the guard has told."""

    def __init__(self, own_end: socket.socket) -> None:
        self._socket = own_end
        self._buffer = b""
        self.exit_code: int | None = None
        """The worker's, once it has ended; of a signal its number, negative."""
        self.reason = ""
        """Why the guard ended it, if it did."""
        self._log: str | None = None

    def message(self, timeout: float) -> dict[str, Any]:
        """Return the guard's next message and take in what it says. Raises WorkerTimeout and WorkerDied."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            self._socket.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                data = self._socket.recv(1 << 20)
            except TimeoutError as error:
                raise WorkerTimeout("the guard of a worker process did not answer") from error
            except OSError:
                data = b""
            if not data:
                raise WorkerDied("the guard of a worker process ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        if "exit" in message:
            self.exit_code, self.reason = message["exit"], message["reason"]
        if "log" in message:
            self._log = printable(message["log"])
        return message

    def wait_for_the_end(self) -> None:
        """Wait for word of how the worker ended, if it comes."""
        with contextlib.suppress(WorkerDied, WorkerTimeout):
            while self.exit_code is None:
                self.message(END_SECONDS)

    def log(self, ended: bool) -> str:
        """Return what the worker printed so far, its middle left out beyond the limit. `ended`: there is nobody to ask any more."""
        if not ended and self.exit_code is None:
            with contextlib.suppress(OSError, WorkerDied, WorkerTimeout):
                self._socket.sendall(b"l")
                while "log" not in self.message(END_SECONDS):
                    pass
        return self._log or ""

    def kill(self) -> None:
        """Have the worker killed with all its descendants; take in what is still told."""
        with contextlib.suppress(OSError):
            self._socket.sendall(b"k")
        with contextlib.suppress(OSError, WorkerDied, WorkerTimeout):
            while True:
                self.message(KILL_SECONDS)
        self._socket.close()
