"""The fork server: a process that has torch imported, no CUDA and no threads, from which workers are forked in milliseconds.

    parent --socket--> zygote --fork--> guard --fork--> worker
       |<------------- control socket ----|               |
       |<------------- request and reply pipes -----------|

The guard (one per worker, trusted) drains the worker's output, watches its memory and process count, reports its end, and kills
everything that descends from the worker: it is the subreaper of the tree, so a double fork does not escape. If the parent dies, its
end of the control socket closes and the guard kills the tree; and the fork server, whose socket closes too, removes the folders that it was given.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import time
from typing import Any, NoReturn

from warpwright.workers import bubblewrap, fork_server, isolation, leftovers, vector_math
from warpwright.workers.inside import integrity
from warpwright.workers.procfs import descendants, resident_bytes

MAINS = {
    "judge": "warpwright.verifier.judge.judge_worker",
    "candidate": "warpwright.workers.inside.runner",
    "baseline": "warpwright.workers.inside.runner",
}
NOTES_FOLDERS = "torch._inductor.codecache"
"""Imported here, it has every worker write to a folder of this process's user."""

WATCH_SECONDS = 0.5  # memory and process count of the tree; a scan takes 0.1 ms for a worker without children
KILL_SECONDS = 5.0
_read_all = False
"""Whether an unprivileged worker needs leave to read what other users cannot: Python lies in root's home."""


def main() -> None:
    """Serve fork requests on the socket whose number is the first argument, until the parent closes it; then remove the folders named next."""
    server = socket.socket(fileno=int(sys.argv[1]))
    import torch

    torch.set_grad_enabled(False)
    torch.set_grad_enabled(True)
    for name in sorted(set(MAINS.values())):
        importlib.import_module(name)
    _preload(os.environ.pop(fork_server.PRELOAD, ""))
    vector_math.choose_code()
    integrity.prepare()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # guards are reaped by the kernel
    isolation.adopt_orphans()
    gc.collect()
    gc.freeze()
    global _read_all
    _read_all = not isolation.readable_by_all(isolation.needed_paths())
    try:
        server.sendall(json.dumps({"can_change_user": isolation.can_change_user()}).encode())
    except BrokenPipeError:  # a run that was over before this was ready
        _clear_away(sys.argv[2:])
    while True:
        message, descriptors, _, _ = socket.recv_fds(server, 65536, 3)
        if not message:
            _clear_away(sys.argv[2:])
        if os.fork() == 0:
            server.close()
            _guard(json.loads(message), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _preload(names: str) -> None:
    """Import the modules of a task's program, which each of its workers would take seconds for.

    Where that starts a thread of Python's or CUDA, which do not survive a fork, or loads what notes the folders of this process, it begins anew
    without them. (The threads of numerical libraries, which wait for work, do no harm: OpenBLAS makes its own anew.)
    """
    import torch

    if not names:
        return
    for name in names.split(","):
        with contextlib.suppress(Exception):  # whoever needs it is told why
            importlib.import_module(name)
    if threading.active_count() > 1 or torch.cuda.is_initialized() or NOTES_FOLDERS in sys.modules:
        os.execv(sys.executable, [sys.executable, "-m", "warpwright.workers.zygote", *sys.argv[1:]])


def _clear_away(folders: list[str]) -> NoReturn:
    """Remove what the parent, which may have been killed, has left; the guards have ended every worker by then, or do not end at all.

    Does not return: taking torch apart takes up to 3 s, for which whoever reads the parent's output would wait.
    """
    deadline = time.monotonic() + KILL_SECONDS
    while descendants(os.getpid()) and time.monotonic() < deadline:
        time.sleep(0.01)
    for folder in folders:
        leftovers.remove_tree(folder)
    os._exit(0)


def _guard(order: dict[str, Any], control_fd: int, request_fd: int, reply_fd: int) -> None:
    """Fork the worker and look after it; never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    isolation.adopt_orphans()
    log_read, log_write = os.pipe()
    box, problem = _boxed(order)
    entered, enter = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(control_fd)
        os.close(log_read)
        _worker({**order, "inside": _enter(box, problem, enter)}, request_fd, reply_fd, log_write)
    for descriptor in (request_fd, reply_fd, log_write, enter):
        os.close(descriptor)
    if box is not None:
        bubblewrap.told(entered)
        box.end()
    os.close(entered)
    try:
        Guard(order, worker, socket.socket(fileno=control_fd), log_read).run()
    finally:
        os._exit(0)


def _boxed(order: dict[str, Any]) -> tuple[bubblewrap.Box | None, str]:
    """Return the namespaces of a worker that is to have some, or why there are none."""
    if not order["bubblewrap"]:
        return None, ""
    try:
        size = min(order["disk"], order["memory"]) // 2  # for each of two folders in memory
        return bubblewrap.hold((order["folder"], order["exchange"]), size), ""
    except OSError as error:
        return None, str(error)[:300]


def _enter(box: bubblewrap.Box | None, problem: str, descriptor: int) -> list[str]:
    """Put this process, the worker, into its namespaces; return what is to be told of that."""
    try:
        if box is not None:
            bubblewrap.enter(box.pid)
            return ["bubblewrap"]
    except OSError as error:
        problem = str(error)
    finally:
        os.write(descriptor, b"e")
    return [f"bubblewrap: {problem}"] if problem else []


def _worker(order: dict[str, Any], request_fd: int, reply_fd: int, log_fd: int) -> None:
    """Limit this process as ordered and run its main; never returns."""
    code = 70  # EX_SOFTWARE, if the main does not even start
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log_fd, 1), (log_fd, 2)):
            os.dup2(source, target)
        _close_others({0, 1, 2, request_fd, reply_fd})
        os.chdir(order["folder"])
        os.environ.update(order["environment"])
        if order.get("cores"):
            os.sched_setaffinity(0, order["cores"])
        level = _isolate(order)
        isolation.die_with_parent()
        os.makedirs(os.environ["TMPDIR"], exist_ok=True)
        tempfile.tempdir = None  # whoever asked before the fork, as a preloaded module may have, has it remember a folder that is not this worker's
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        importlib.import_module(MAINS[order["role"]]).serve(request_fd, reply_fd, {**order, "isolation": level})
        code = 0
    except BaseException as error:
        import traceback

        traceback.print_exception(error)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _close_others(keep: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in keep:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _isolate(order: dict[str, Any]) -> list[str]:
    """Apply limits and user as ordered; return what was reached."""
    level: list[str] = order["inside"]
    user = order["user"]
    if order["limit"]:
        own_user = user is not None
        data = order["memory"] if order["device"] == "cpu" else None  # CUDA reserves far more address space than it uses
        isolation.limit_resources(data, order["file_bytes"], order["processes"] if own_user else None)
        level.append("limits")
        if order["filter"] and isolation.refuse_early() == "":
            level.append("early")
    read_all = _read_all or not isolation.readable_by_all([order["folder"], order["exchange"], *order["reads"]])
    if user is not None and isolation.change_user(user, read_all):
        level += ["user", "reads all"] if read_all else ["user"]
    return level


class Guard:
    """Looks after one worker: drains its output, watches its limits, reports its end, kills its tree."""

    def __init__(self, order: dict[str, Any], worker: int, control: socket.socket, log_fd: int) -> None:
        self.order, self.worker, self.control, self.log_fd = order, worker, control, log_fd
        self.status: int | None = None
        self.reason = ""
        self.head, self.tail, self.dropped = bytearray(), bytearray(), 0
        self.next_watch = time.monotonic() + WATCH_SECONDS
        os.set_blocking(log_fd, False)

    def run(self) -> None:
        """Serve until the parent says kill or goes away."""
        self._send({"pid": self.worker})
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.log_fd, select.POLLIN)
        with contextlib.suppress(OSError, AttributeError):  # kernels before 5.3: the poll's time-out does it
            poll.register(os.pidfd_open(self.worker), select.POLLIN)
        while True:
            ready = dict(poll.poll(WATCH_SECONDS * 1000 if self.status is None else None))
            if self.log_fd in ready and not self._drain():
                poll.unregister(self.log_fd)
            if self.status is None and self._reap():
                for descriptor in set(ready) - {self.control.fileno(), self.log_fd}:
                    poll.unregister(descriptor)
                self._finish()
            if self.control.fileno() in ready and not self._command():
                self._finish()
                self.control.shutdown(socket.SHUT_RDWR)  # taking this process's copy of torch apart takes 20 ms, for which nobody need wait
                return
            self._watch()

    def _command(self) -> bool:
        message = self.control.recv(1)
        if message == b"l":
            self._drain()
            self._send({"log": self._log()})
        return message not in (b"", b"k")

    def _finish(self) -> None:
        self._kill_tree()
        self._drain()
        self._send({"exit": self.status, "reason": self.reason, "log": self._log()})

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the parent is gone: the next read of the control socket says so
            self.control.sendall(json.dumps(message).encode() + b"\n")

    def _reap(self) -> bool:
        """Collect ended children; return whether the worker is among them, now or earlier."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return self.status is not None
            if pid == 0:
                return self.status is not None
            if pid == self.worker:
                self.status = os.waitstatus_to_exitcode(status)

    def _drain(self) -> bool:
        """Keep the first and the last half of the allowed log, drop the middle. False at the end of the pipe."""
        half = self.order["log_bytes"] // 2
        for _ in range(64):
            try:
                data = os.read(self.log_fd, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            room = max(0, half - len(self.head))
            self.head += data[:room]
            self.tail += data[room:]
            extra = len(self.tail) - half
            if extra > 0:
                self.dropped += extra
                del self.tail[:extra]
        return True

    def _log(self) -> str:
        middle = f"\n[{self.dropped} bytes left out]\n".encode() if self.dropped else b""
        return (bytes(self.head) + middle + bytes(self.tail)).decode(errors="replace")

    def _watch(self) -> None:
        if self.status is not None or time.monotonic() < self.next_watch or not self.order["limit"]:
            return
        self.next_watch = time.monotonic() + WATCH_SECONDS
        tree = descendants(os.getpid())
        memory = sum(resident_bytes(pid) for pid in tree)
        if len(tree) > self.order["processes"]:
            self.reason = f"it had {len(tree)} processes, {self.order['processes']} are allowed"
        elif memory > self.order["memory"]:
            self.reason = f"it used {memory >> 20} MiB of memory, {self.order['memory'] >> 20} MiB are allowed"
        else:
            held = leftovers.held_bytes((self.order["folder"], self.order["exchange"]), self.order["user"], tree)
            if held > self.order["disk"]:
                taken = f"took {held >> 20} MiB" if held < leftovers.UNCOUNTED else "are too many, or lie too deep, to be counted"
                self.reason = f"its files {taken}; {self.order['disk'] >> 20} MiB are allowed"
        if self.reason:
            self._kill_tree()

    def _kill_tree(self) -> None:
        """Kill the worker and all that descends from it, until nothing is left.

        All processes of its own user are killed at once: to begin with, and again while there are some that were not there before. What was killed
        takes up to 50 ms to be gone, and each fork of a helper 5 ms.
        """
        deadline = time.monotonic() + KILL_SECONDS
        seen: set[int] = set()
        more = True
        while time.monotonic() < deadline:
            if self.order["user"] is not None and more:
                _kill_user(self.order["user"])
            tree = descendants(os.getpid())
            more = bool(seen) and not seen.issuperset(tree)
            seen.update(tree)
            for pid in tree:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            if not tree:
                break
            time.sleep(0.002)
        if self.order["user"] is not None:
            leftovers.remove(self.order["user"])


def _kill_user(user: int) -> None:
    """Kill every process of an own user at once: a fork bomb cannot outrun a single kill(-1)."""
    helper = os.fork()
    if helper == 0:
        try:
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(helper, 0)


if __name__ == "__main__":
    main()
