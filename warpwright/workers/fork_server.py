"""The parent's side of the fork server (`zygote`): started once, ended with the process that started it."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

from warpwright.errors import WorkerDied, WorkerError
from warpwright.secrets import secrets
from warpwright.workers import leftovers

PRELOAD = "WARPWRIGHT_PRELOAD"
"""Environment variable with the names of modules, for the fork server alone."""

SHARED_MEMORY = Path("/dev/shm")
SHARED_MEMORY_WANTED = 2 << 30  # containers often have 64 MiB there: then the ordinary temporary folder is used

LEAVING_SECONDS = 0.5
"""How long a process that ends waits for its fork server, which clears away by itself what this one leaves."""


WAITS = {"OPENBLAS_THREAD_TIMEOUT": "22"}
"""Base-2 logarithm of the clock ticks for which threads of OpenBLAS, numpy's library, wait busily after a call: 2 ms, as OpenMP's do. By themselves
they do for 100 ms, which is no different from work that goes on in secret: an honest product by numpy was refused for it."""


class ForkServer:
    """The parent's handle of its fork server; there is one per parent process."""

    def __init__(self, preload: Iterable[str] = ()) -> None:
        """`preload`: modules that it imports beside torch, for all of its workers."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        hidden = secrets()  # a candidate reads its environment
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        environment = {**WAITS, **kept, "TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        environment[PRELOAD] = ",".join(preload)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]))
        root = SHARED_MEMORY if _free_bytes(SHARED_MEMORY) >= SHARED_MEMORY_WANTED else Path(tempfile.gettempdir())
        self.exchange = tempfile.mkdtemp(prefix="warpwright-", dir=root)
        self.folder = tempfile.mkdtemp(prefix="warpwright-")
        for folder in (self.exchange, self.folder):
            os.chmod(folder, 0o711)
        command = [sys.executable, "-m", "warpwright.workers.zygote", str(theirs.fileno()), self.exchange, self.folder]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL)
        theirs.close()
        self.socket, self.owner, self.ready = ours, os.getpid(), False
        atexit.register(self.close)  # a process may end while this one still loads torch, and whoever reads its output would wait for both
        answer = ours.recv(65536)
        if not answer:
            raise WorkerDied(f"the fork server ended with exit code {self.process.wait()}", "see its message above; is torch installed?")
        self.can_change_user = bool(json.loads(answer)["can_change_user"])
        self.ready = True
        self.numbers = itertools.count(1)
        """Of its workers."""

    def close(self) -> None:
        """End the process: at once where it has no workers yet, else by its own tidying up. May be called again."""
        if self.owner != os.getpid():
            return
        if not self.ready:
            self.process.kill()
        self.socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(LEAVING_SECONDS)
        for folder in (self.exchange, self.folder):
            leftovers.remove_tree(folder)


_server: ForkServer | None = None


def _free_bytes(folder: Path) -> int:
    try:
        usage = os.statvfs(folder)
    except OSError:
        return 0
    return usage.f_bavail * usage.f_frsize


_starting = threading.Lock()


def the_fork_server(preload: Iterable[str] = ()) -> ForkServer:
    """Return the fork server of this process; one that is started now imports the modules `preload` too."""
    global _server
    with _starting:
        if _server is None or _server.owner != os.getpid() or _server.process.poll() is not None:
            _server = ForkServer(preload)
        return _server


def start_fork_server(preload: Iterable[str] = ()) -> None:
    """Start the fork server beside whatever comes next (it takes as long as `import torch`), so that the first worker does not wait for it."""

    def start() -> None:
        with contextlib.suppress(WorkerError):  # the first worker says so
            the_fork_server(preload)

    threading.Thread(target=start, daemon=True).start()
