"""What the system call filter of a worker refuses, seen from inside: in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import ctypes, errno, os, platform, resource, signal, socket, subprocess, sys, threading
sys.path.insert(0, sys.argv[1])
from warpwright.workers import isolation

libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 323, "aarch64": 282}.get(platform.machine(), -1)
problem = isolation.refuse_early()
early = libc.syscall(number, 0x80001)  # O_CLOEXEC | UFFD_USER_MODE_ONLY, which needs no privilege
print("userfault", errno.errorcode[ctypes.get_errno()] if early < 0 else "done")
problem = problem or isolation.lock(placed="placed" in sys.argv)
if problem:
    print("none", problem)
    sys.exit()

def tried(name, call):
    try:
        call()
        print(name, "done")
    except OSError as error:
        print(name, errno.errorcode[error.errno])

own, parent = os.getpid(), os.getppid()
tried("signal_parent", lambda: os.kill(parent, 0))
tried("signal_all", lambda: os.kill(-1, 0))
tried("signal_self", lambda: os.kill(own, 0))
tried("priority_parent", lambda: os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent)))
tried("priority_self", lambda: os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0)))
tried("scheduler_parent", lambda: os.sched_setscheduler(parent, os.SCHED_OTHER, os.sched_param(0)))
tried("scheduler_self", lambda: os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)))
tried("cores_self", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
tried("limit_parent", lambda: resource.prlimit(parent, resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE)))
tried("limit_self", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE)))
tried("fork", os.fork)
tried("program", lambda: subprocess.run(["true"]))
tried("internet", lambda: socket.socket(socket.AF_INET))
tried("thread", lambda: [thread := threading.Thread(target=int), thread.start(), thread.join()])
signal.signal(signal.SIGUSR1, lambda *_: print("raised done"))
signal.raise_signal(signal.SIGUSR1)
"""

REFUSED = {
    "userfault", "signal_parent", "signal_all", "priority_parent", "priority_self", "scheduler_parent",
    "limit_parent", "fork", "program", "internet",
}
ALLOWED = {"signal_self", "scheduler_self", "limit_self", "thread", "raised"}
CORES = {"cores_self"}


@pytest.mark.parametrize("placed", [False, True])
def test_the_filter_lets_a_process_alone_with_itself(placed: bool) -> None:
    """`placed`: beside a GPU, where threads stay on the cores that they are put on."""
    root, words = str(Path(__file__).parents[2]), ["placed"] if placed else []
    environment = {**os.environ, "PYTHONPATH": root}
    ran = subprocess.run([sys.executable, "-c", SCRIPT, root, *words], capture_output=True, text=True, timeout=60, env=environment)
    assert ran.returncode == 0, ran.stderr
    said = dict(line.split(maxsplit=1) for line in ran.stdout.splitlines())
    if "none" in said:
        pytest.skip(f"this machine permits no filter: {said['none']}")
    assert {name for name, what in said.items() if what == "EPERM"} == REFUSED | (CORES if placed else set()), said
    assert {name for name, what in said.items() if what == "done"} == ALLOWED | (set() if placed else CORES), said


READS = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from warpwright.workers import zygote

zygote._read_all = False  # as where Python lies where everybody can read it

def seen(paths):
    read, write = os.pipe()
    if os.fork() == 0:
        level = zygote._isolate({"inside": [], "user": 712345678, "limit": False, "folder": "/", "exchange": "/", "reads": paths})
        try:
            text = open(sys.argv[2]).read()
        except OSError as error:
            text = type(error).__name__
        os.write(write, json.dumps([level, text]).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(read, 4096))

print(json.dumps([seen([]), seen([sys.argv[2]]), seen([sys.argv[1]])]))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: others stay who they are")
def test_a_worker_can_read_its_task_where_other_users_cannot(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "task.pt").write_text("the task")
    done = subprocess.run(
        [sys.executable, "-c", READS, str(Path(__file__).parents[2]), str(closed / "task.pt")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[["user"], "PermissionError"], [["user", "reads all"], "the task"], [["user"], "PermissionError"]]
