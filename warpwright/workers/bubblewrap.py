"""Bubblewrap around a candidate: no network, a root that cannot be written, no device but the plain ones, folders open to all (/tmp) of its own.

    guard   starts `bwrap ... cat`, which sets the namespaces up and waits
    worker  forked with torch imported, enters them by setns(2): a program that bwrap starts itself would import torch anew
    guard   ends `cat`; the namespaces live as long as the worker

Started by root, bwrap needs no user namespace. Started by anybody else it makes one, in which the worker has no capability: there it cannot look into
processes outside, such as the shell that holds an API key, although they are of the same user.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import select
import shutil
import subprocess
from dataclasses import dataclass

from warpwright.workers import isolation

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
SPACES = (("mnt", 0x00020000), ("net", 0x40000000))
"""Namespaces to enter, with their flags of setns(2); the user namespace comes before them, where there is one. System V memory stays where its bytes
are counted and what is left of it is removed (`leftovers.py`)."""

USER_SPACE = 0x10000000
START_SECONDS = 15.0
APART = ("--die-with-parent", "--unshare-net")
MOST_FOLDERS = 4096
"""Folders of /tmp that stay readable; more are left out."""


@functools.cache
def missing(device: str = "cpu") -> str:
    """Return why candidates on a device are not put into bubblewrap; "" where they are. Asks the machine once: 10 ms."""
    if device != "cpu":
        return "on a GPU: whether CUDA's memory handles pass through it was not tried"
    tool = shutil.which("bwrap")
    if tool is None:
        return "bwrap is not installed"
    command = [tool, *APART, "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--perms", "1777", "--size", "65536", "--tmpfs", "/dev", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap cannot be started: {error}"
    if done.returncode:
        return f"bwrap does not work here: {(done.stderr.strip().splitlines() or ['no message'])[-1][:200]}"
    return ""


@dataclass
class Box:
    """Namespaces that bwrap has set up, held open by a process that waits."""

    process: subprocess.Popen[bytes]
    pid: int
    """Of the process inside."""

    def end(self) -> None:
        """End the process that waits; whoever has entered stays inside."""
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(START_SECONDS)


def hold(writable: tuple[str, ...], size: int) -> Box:
    """Set the namespaces up; `writable` folders are shared with the outside. Raise OSError where that fails. `size`: bytes in /tmp and /dev/shm."""
    tool = shutil.which("bwrap")
    if tool is None:
        raise OSError("bwrap is gone")
    told, tell = os.pipe()
    try:
        process = subprocess.Popen(
            [tool, "--info-fd", str(tell), *_arguments(writable, size), "cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(tell,), env={"PATH": os.environ.get("PATH", "")},
        )  # fmt: skip
    finally:
        os.close(tell)
    box = Box(process, 0)
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"in\n")
        process.stdin.flush()
        _expect(process.stdout.fileno(), process)
        answer = os.read(told, 65536)
        box.pid = int(answer.partition(b'"child-pid":')[2].split(b",")[0].strip(b" \n}") or 0)
        if not box.pid:
            raise OSError(f"bwrap did not say which process is inside: {answer[:100]!r}")
    except BaseException:
        box.end()
        raise
    finally:
        os.close(told)
        if process.stderr is not None:
            process.stderr.close()
    return box


def _expect(descriptor: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until what was written to the process inside has come back: all is set up then."""
    ready = select.select([descriptor], [], [], START_SECONDS)[0]
    if not ready or not os.read(descriptor, 16):
        message = b""
        if process.stderr is not None and select.select([process.stderr], [], [], 0.1)[0]:
            message = os.read(process.stderr.fileno(), 500)
        raise OSError(f"bwrap did not come up: {message.decode(errors='replace').strip() or 'no answer'}")


def _arguments(writable: tuple[str, ...], size: int) -> list[str]:
    """Return bwrap's arguments: everything can be read where it lies, nothing but `writable` and what is the worker's alone can be written."""
    words = [*APART, "--ro-bind", "/", "/", "--bind", "/proc", "/proc", "--tmpfs", "/dev"]
    for name in DEVICES:
        words += ["--dev-bind-try", f"/dev/{name}", f"/dev/{name}"]
    for name, number in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        words += ["--symlink", f"/proc/self/fd{number}", f"/dev/{name}"]
    for folder in ("/dev/shm", "/tmp", *(["/var/tmp"] if os.path.isdir("/var/tmp") and not os.path.islink("/var/tmp") else [])):
        words += ["--perms", "1777", "--size", str(size), "--tmpfs", folder]
    for folder in _folders("/tmp"):
        words += ["--ro-bind-try", folder, folder]
    for folder in writable:
        words += ["--bind", folder, folder]
    return words


def _folders(parent: str) -> list[str]:
    """Return the folders in `parent`, without those of other workers: a user's own task may lie there, and what it imports."""
    with os.scandir(parent) as entries:
        paths = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("warpwright-")]
    return sorted(paths)[:MOST_FOLDERS]


def enter(pid: int) -> None:
    """Put this process, which has one thread, into the namespaces of `pid`; raise OSError where the kernel refuses.

    In a user namespace all capabilities are given up at once: with them the root could be made writable again.
    """
    user = f"/proc/{pid}/ns/user"
    apart = os.readlink(user) != os.readlink("/proc/self/ns/user")
    wanted = [*([(user, USER_SPACE)] if apart else []), *((f"/proc/{pid}/ns/{name}", flag) for name, flag in SPACES)]
    opened = [(os.open(path, os.O_RDONLY | os.O_CLOEXEC), flag) for path, flag in wanted]
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        for descriptor, flag in opened:
            if libc.setns(descriptor, flag) != 0:
                number = ctypes.get_errno()
                raise OSError(number, f"setns: {os.strerror(number)}")
    finally:
        for descriptor, _ in opened:
            os.close(descriptor)
        if apart:
            isolation.drop_capabilities()


def told(descriptor: int, seconds: float = START_SECONDS) -> None:
    """Wait for the word of a worker that it has entered, or has given up."""
    if select.select([descriptor], [], [], seconds)[0]:
        os.read(descriptor, 1)


def words(level: tuple[str, ...], reason: str) -> str:
    """Return how a candidate was fenced in, as a record says it: `level` as the worker told it, `reason` why there was no bubblewrap."""
    names = {
        "user": "own user", "reads all": "which may read every file", "limits": "limits", "early": "early filter", "filter": "filter",
        "bubblewrap": "bubblewrap",
    }  # fmt: skip
    reached = ", ".join(names[name] for name in names if name in level) or "the kill alone"
    failed = next((name.partition(": ")[2] for name in level if name.startswith("bubblewrap: ")), "")
    return reached if "bubblewrap" in level else f"{reached}; no bubblewrap: {failed or reason}"


__all__ = ["Box", "enter", "hold", "missing", "told", "words"]
