"""A client of the server: requests go out numbered, answers come back in any order. Safe to share between threads."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any

from warpwright.errors import ServerError
from warpwright.server.verbs import Verbs, unpacked


class Pending:
    """A request whose answer is awaited."""

    def __init__(self) -> None:
        self.job = ""
        """The key of the job, once it is queued: for `cancel`."""
        self._answer: dict[str, Any] | None = None
        self._queued, self._done = threading.Event(), threading.Event()

    def take(self, answer: dict[str, Any]) -> None:
        """Take in an answer, or the news that the job is queued."""
        if "job" in answer:
            self.job = answer["job"]
        else:
            self._answer = answer
            self._done.set()
        self._queued.set()

    def queued(self, timeout: float | None = None) -> str:
        """Wait until the job has a key, and return it; "" for a request that was answered at once."""
        self._queued.wait(timeout)
        return self.job

    def result(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the result and return it; raise ServerError for an error, TimeoutError when it does not come in time."""
        if not self._done.wait(timeout):
            raise TimeoutError("the server has not answered in time; the job goes on")
        assert self._answer is not None
        return unpacked(self._answer)


class Client(Verbs):
    """A connection. `session`: the key of a session that was begun earlier; its own is in `session` afterwards."""

    def __init__(self, where: str | Path | tuple[str, int], token: str = "", session: str = "") -> None:
        """`where`: the server's folder or socket, or host and port."""
        try:
            self._socket = _connected(where)
        except OSError as error:
            raise ServerError("gone", f"expected a server at {where}, saw none: {error}", "start one with `warpwright serve`") from error
        self._pending: dict[int, Pending] = {}
        self._count, self._lost = 0, False
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()
        fields = {"token": token, "session": session}
        self.session = str(self.ask(verb="hello", **{name: value for name, value in fields.items() if value})["session"])

    def submit(self, **fields: Any) -> Pending:
        """Put a request and do not wait for its answer."""
        pending = Pending()
        with self._lock:
            self._count += 1
            number = self._count
            self._pending[number] = pending
            lost = self._lost
            if not lost:
                try:
                    self._socket.sendall(json.dumps({"id": number, **fields}).encode() + b"\n")
                except OSError:
                    lost = True
        if lost:
            self._end(number)
        return pending

    def ask(self, **fields: Any) -> dict[str, Any]:
        """Put a request and return its result, or raise ServerError."""
        return self.submit(**fields).result()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._socket.makefile("rb") as lines:
            for line in lines:
                answer = json.loads(line)
                number = answer.get("id")
                pending = self._pending.get(number) if "job" in answer else self._pending.pop(number, None)
                if pending is not None:
                    pending.take(answer)
                elif "error" in answer and number is None:
                    break
        with self._lock:
            self._lost = True
            waiting = list(self._pending)
        for number in waiting:
            self._end(number)

    def _end(self, number: int) -> None:
        pending = self._pending.pop(number, None)
        if pending is not None:
            pending.take({"error": {"kind": "gone", "message": "the connection to the server ended before it had answered", "hint": ""}})

    def close(self) -> None:
        """Leave: what waits of this client's jobs is dropped."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connected(where: str | Path | tuple[str, int]) -> socket.socket:
    if isinstance(where, tuple):
        return socket.create_connection(where)
    path = Path(where)
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(str(path / "socket" if path.is_dir() else path))
    except OSError:
        client.close()
        raise
    return client
