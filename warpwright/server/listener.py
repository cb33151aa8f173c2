"""The socket in front of a service: one JSON object a line, both ways. A client that asks nonsense is told so; one that vanishes costs nothing more.

A Unix socket lies in a folder that its owner alone may enter, and is for its owner's processes. On TCP every connection has to begin with `hello` and
the token that lies in the server's folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import json
import os
import queue
import secrets
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

from warpwright.errors import UsageError, WarpwrightError
from warpwright.reports import report
from warpwright.server import protocol
from warpwright.server.protocol import error_of
from warpwright.server.queue import Job
from warpwright.server.service import Service, Session

SOCKET, TOKEN, LOCK = "socket", "token", "lock"
"""Names in the server's folder."""

SEND_SECONDS = 30.0
"""A client that does not read its answers for so long is cut off."""

PART_SECONDS = 1.0

MOST_CONNECTIONS = 256


class Listener:
    """Accepts clients until it is closed. One server a folder: a second one is a UsageError."""

    def __init__(self, service: Service, host: str = "", port: int | None = None) -> None:
        """`port`: TCP on `host` (default: this machine alone) as well; 0: any free one."""
        self.service = service
        self._lock = _only_one(service.folder)
        self.path = service.folder / SOCKET
        self._sockets = [_unix(self.path)]
        self.token = ""
        self.address: tuple[str, int] | None = None
        if port is not None:
            self.token = _token(service.folder / TOKEN)
            listening = socket.create_server((host or "127.0.0.1", port))
            self.address = listening.getsockname()[:2]
            self._sockets.append(listening)
        self._connections: set[_Connection] = set()
        self._threads = [threading.Thread(target=self._accept, args=(one,), daemon=True) for one in self._sockets]
        for thread in self._threads:
            thread.start()

    def _accept(self, listening: socket.socket) -> None:
        local = listening.family == socket.AF_UNIX
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            if (local and not _is_own(client)) or len(self._connections) >= MOST_CONNECTIONS:
                client.close()
                continue
            connection = _Connection(self.service, client, "" if local else self.token, self._connections.discard)
            self._connections.add(connection)
            threading.Thread(target=connection.serve, daemon=True).start()

    def close(self) -> None:
        """Accept nobody any more, and cut off everybody."""
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for connection in list(self._connections):
            connection.cut()
        self.path.unlink(missing_ok=True)
        os.close(self._lock)

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Connection:
    """One client."""

    def __init__(self, service: Service, client: socket.socket, token: str, ended: Any) -> None:
        self.service, self.client, self.token, self._ended = service, client, token, ended
        self.session: Session | None = None
        self.jobs: list[Job] = []
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        client.settimeout(None)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(SEND_SECONDS), 0))

    def serve(self) -> None:
        """Answer requests until the client leaves."""
        sender = threading.Thread(target=self._send, daemon=True)
        sender.start()
        try:
            with self.client.makefile("rb") as lines:
                while self._take(lines.readline(protocol.LINE_BYTES)):
                    pass
        except OSError:
            pass  # cut off: as if it had left
        finally:
            self.service.left(self.jobs)
            self._answers.put(None)
            sender.join(SEND_SECONDS)
            self._part()
            self._ended(self)

    def _part(self) -> None:
        """Close the socket; what a client still sends is read for a moment, or else it would lose the last answer."""
        with contextlib.suppress(OSError):
            self.client.shutdown(socket.SHUT_WR)
            self.client.settimeout(PART_SECONDS)
            deadline = time.monotonic() + PART_SECONDS
            while time.monotonic() < deadline and self.client.recv(1 << 16):
                pass
        self.client.close()

    def _take(self, line: bytes) -> bool:
        """Answer one line; False at the end of the connection."""
        if not line:
            return False
        if not line.endswith(b"\n"):
            self._tell({"id": None, "error": error_of("usage", f"expected a line of at most {protocol.LINE_BYTES} bytes")})
            return False
        try:
            request = protocol.read(line)
            if self.token and request.verb != "hello":
                self._tell({"id": request.id, "error": error_of("denied", "expected `hello` with the server's token first")})
                return False
            if request.verb == "hello":
                return self._hello(request)
            job = self.service.handle(self._open(), request, self._tell)
        except WarpwrightError as error:
            self._tell({"id": protocol.identity(line), "error": error_of("usage", error.message, error.hint)})
            return True
        if job is not None:
            self.jobs = [one for one in self.jobs if one.state != "done"] + [job]
        return True

    def _hello(self, request: protocol.Request) -> bool:
        token = str(request.fields.get("token", ""))
        if self.token and not hmac.compare_digest(token.encode(), self.token.encode()):
            self._tell({"id": request.id, "error": error_of("denied", "expected the server's token", "it lies in the server's folder")})
            return False
        self.token = ""
        self.session = self.service.session(str(request.fields.get("session", "")))
        self._tell({"id": request.id, "result": {"protocol": protocol.VERSION, "session": self.session.key}})
        return True

    def _open(self) -> Session:
        if self.session is None:
            self.session = self.service.session()
        return self.session

    def _tell(self, answer: dict[str, Any]) -> None:
        self._answers.put(answer)

    def _send(self) -> None:
        while (answer := self._answers.get()) is not None:
            try:
                self.client.sendall(json.dumps(report.finite(answer), allow_nan=False).encode() + b"\n")
            except OSError:  # it left, or does not read: nobody is told any more
                self.cut()
                return

    def cut(self) -> None:
        """End the connection."""
        with contextlib.suppress(OSError):
            self.client.shutdown(socket.SHUT_RDWR)


def _only_one(folder: Path) -> int:
    """Hold the folder's lock, which the kernel gives back when its holder is killed; raise UsageError when another holds it."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise UsageError(f"expected no other server in {folder}, saw one", "use that one, or name another folder") from error
    return handle


def _unix(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)  # of a server that was killed: the lock says that none lives
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(str(path))
    except OSError as error:
        raise UsageError(f"expected a folder that a socket can lie in, saw {path.parent}: {error}", "a path of less than 100 characters") from error
    os.chmod(path, 0o600)
    listening.listen()
    return listening


def _token(path: Path) -> str:
    """Return the token of the folder, made at the first start."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        token = secrets.token_hex(32)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(token + "\n")
        return token


def _is_own(client: socket.socket) -> bool:
    """Whether the other end is a process of this user, or of root."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # the folder alone protects the socket
    _, user, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return user in (os.getuid(), 0)
