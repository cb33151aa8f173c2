"""What a worker process may do: resource limits, an own user, and a system call filter after the build. Linux only, through libc.

Every step that this machine does not permit is left out, and the level that was reached is told to the parent, which records it:
    user       an own unprivileged user id (started as root), so that limits and kills reach all its processes and only those
    reads all  with it, the right to read every file: where Python, torch, this package or the task lie where that user could not read them
    bubblewrap no network, a root that cannot be written, a /tmp of its own (`bubblewrap.py`)
    limits     rlimits: data segment, file size, processes, no core files
    early      from the start: no io_uring, whose requests no filter sees, no tracing, no memory of other processes, and none of its own that is
               supplied when somebody reads it (seccomp)
    filter     after `lock()`: no new process, no program start, no internet socket, no tracing, no signal to others and no change
               of their priority or limits (seccomp); beside a GPU no choice of cores
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE = 1, 38, 36, 4
PR_SET_KEEPCAPS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 8, 47, 2
CAP_DAC_READ_SEARCH, CAPABILITY_VERSION = 2, 0x20080522
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC = 1, 1
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM, ENOSYS = 1, 38
CLONE_THREAD = 0x00010000
AF_UNIX = 1


@dataclass(frozen=True)
class _Calls:
    """Numbers of system calls on one architecture."""

    architecture: int
    """As the kernel's audit names it."""
    seccomp: int
    socket: int
    clone: int
    absent: tuple[int, ...]
    """clone3, io_uring_setup: answered as if the kernel had none, so that libc falls back to calls that the filter can read."""
    refused: tuple[int, ...]
    """fork vfork execve execveat ptrace process_vm_readv process_vm_writev tkill pidfd_send_signal pidfd_getfd setpriority ioprio_set."""
    own: tuple[int, ...]
    """kill tgkill rt_sigqueueinfo rt_tgsigqueueinfo prlimit64 sched_setscheduler sched_setparam sched_setattr: the first argument has to be this
    process, or 0, which is the caller or its own group."""
    affinity: int
    """sched_setaffinity."""


_ARCHITECTURES = {
    "x86_64": _Calls(0xC000003E, 317, 41, 56, (435, 425), (57, 58, 59, 322, 101, 310, 311, 200, 424, 438, 141, 251),
                     (62, 234, 129, 297, 302, 144, 142, 314), 203),
    "aarch64": _Calls(0xC00000B7, 277, 198, 220, (435, 425), (221, 281, 117, 270, 271, 130, 424, 438, 140, 30),
                      (129, 131, 138, 240, 261, 119, 118, 274), 122),
}  # fmt: skip

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parents ended, so that a daemon cannot escape the kill."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def limit_resources(data_bytes: int | None, file_bytes: int, processes: int | None) -> None:
    """Set the rlimits of this process and its children. `processes` counts the threads of the whole user."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_FSIZE, file_bytes)
    _lower(resource.RLIMIT_MSGQUEUE, 0)
    if data_bytes is not None:
        _lower(resource.RLIMIT_DATA, data_bytes)
    if processes is not None:
        _lower(resource.RLIMIT_NPROC, processes)


def _lower(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def can_change_user() -> bool:
    """Whether this process may become another user."""
    return os.getuid() == 0


def readable_by_all(paths: list[str]) -> bool:
    """Whether any user can read `paths` (python, torch, this package; a task's files)."""
    return all(_readable_by_others(Path(path).resolve()) for path in paths)


def _readable_by_others(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o004) and all(parent.stat().st_mode & 0o001 for parent in path.parents)
    except OSError:
        return False


def change_user(user: int, read_all: bool) -> bool:
    """Become `user`, with no group and no capability. False where the kernel has no such user (user namespaces).

    `read_all` keeps one capability, to read files of other users: for a Python, or a task, that lies in root's home.
    """
    if read_all:
        _libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    try:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError:
        return False
    if read_all:
        _keep_only(CAP_DAC_READ_SEARCH)
    _libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # /proc/<pid> stays readable for the parent's census
    return True


def drop_capabilities() -> None:
    """Give up every capability, for good, as in a user namespace that was entered; this process stays readable for the parent's census."""
    _set_capabilities(0)
    _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def _set_capabilities(mask: int) -> None:
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    data = struct.pack("=6I", *[mask] * 3, 0, 0, 0)
    _libc.capset(ctypes.create_string_buffer(header, len(header)), ctypes.create_string_buffer(data, len(data)))


def _keep_only(capability: int) -> None:
    """Drop all capabilities but one, which programs that are started (compilers) inherit."""
    _set_capabilities(1 << capability)
    _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0)


def needed_paths() -> list[str]:
    """What an unprivileged worker has to read."""
    torch = sys.modules["torch"]
    return [sys.executable, str(torch.__file__), os.path.abspath(__file__), os.__file__]


# --- the system call filter ---------------------------------------------------------------------------------------------------------


LOAD, JUMP_EQUAL, JUMP_FROM, JUMP_SET, GIVE = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCH, FIRST = 0, 4, 16
"""Offsets in struct seccomp_data: the call, the architecture, the first argument."""


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """Return one instruction of classic BPF."""
    return struct.pack("=HBBI", code, yes, no, value)


def _program(machine: str, placed: bool) -> bytes | None:
    """Return the classic BPF program of the filter, or None for a machine whose call numbers are not listed here."""
    if machine not in _ARCHITECTURES:
        return None
    calls = _ARCHITECTURES[machine]
    load, jump_equal, jump_set, give, step = LOAD, JUMP_EQUAL, JUMP_SET, GIVE, _step
    number, arch, first = NUMBER, ARCH, FIRST
    steps = [step(load, arch), step(jump_equal, calls.architecture, 1, 0), step(give, ERRNO | EPERM), step(load, number)]
    if machine == "x86_64":  # the x32 numbers, by which every call below could be made too
        steps += [step(JUMP_FROM, 0x40000000, 0, 1), step(give, ERRNO | EPERM)]
    for call in (*calls.refused, *([calls.affinity] if placed else [])):
        steps += [step(jump_equal, call, 0, 1), step(give, ERRNO | EPERM)]
    for call in calls.absent:
        steps += [step(jump_equal, call, 0, 1), step(give, ERRNO | ENOSYS)]
    for call in calls.own:
        steps += [step(jump_equal, call, 0, 5), step(load, first), step(jump_equal, os.getpid(), 2, 0)]
        steps += [step(jump_equal, 0, 1, 0), step(give, ERRNO | EPERM), step(give, ALLOW)]
    steps += [step(jump_equal, calls.clone, 0, 4), step(load, first), step(jump_set, CLONE_THREAD, 1, 0), step(give, ERRNO | EPERM)]
    steps += [step(give, ALLOW)]
    steps += [step(jump_equal, calls.socket, 0, 3), step(load, first), step(jump_equal, AF_UNIX, 1, 0), step(give, ERRNO | EPERM)]
    steps += [step(give, ALLOW)]
    return b"".join(steps)


EARLY_ABSENT = (425, 426, 427)
"""io_uring_setup, io_uring_enter, io_uring_register; the same on every architecture."""

EARLY_REFUSED = {"x86_64": (101, 310, 311, 438, 323), "aarch64": (117, 270, 271, 438, 282)}
"""ptrace, process_vm_readv, process_vm_writev, pidfd_getfd, and userfaultfd: whoever reads a page that its owner has to supply waits for a process
that is stopped, and never comes back."""


def refuse_early() -> str:
    """Refuse, before a candidate is imported, what nothing needs to be built with. Returns "" or why it could not be done."""
    machine = platform.machine()
    if machine not in EARLY_REFUSED:
        return f"no filter for {machine}"
    steps = [_step(LOAD, ARCH), _step(JUMP_EQUAL, _ARCHITECTURES[machine].architecture, 1, 0), _step(GIVE, ERRNO | EPERM), _step(LOAD, NUMBER)]
    if machine == "x86_64":  # the x32 numbers
        steps += [_step(JUMP_FROM, 0x40000000, 0, 1), _step(GIVE, ERRNO | EPERM)]
    for numbers, answer in ((EARLY_ABSENT, ENOSYS), (EARLY_REFUSED[machine], EPERM)):
        for number in numbers:
            steps += [_step(JUMP_EQUAL, number, 0, 1), _step(GIVE, ERRNO | answer)]
    return _install(b"".join([*steps, _step(GIVE, ALLOW)]))


def lock(placed: bool = False) -> str:
    """Refuse new processes, programs, internet sockets and signals to others from here on, in all threads. Returns "" or why it could not be done.

    `placed`: threads stay on the cores that the parent puts them on. On a CPU they are stopped in others' turns instead.
    """
    program = _program(platform.machine(), placed)
    if program is None:
        return f"no filter for {platform.machine()}"
    return _install(program)


def _install(program: bytes) -> str:
    """Have the kernel judge this process's system calls by a program from here on, in all threads."""
    buffer = ctypes.create_string_buffer(program, len(program))
    descriptor = struct.pack("HxxxxxxP" if ctypes.sizeof(ctypes.c_void_p) == 8 else "HxxP", len(program) // 8, ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(descriptor, len(descriptor))
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return "no_new_privs refused"
    call = _ARCHITECTURES[platform.machine()].seccomp
    if _libc.syscall(call, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, holder) != 0:
        return f"seccomp refused: {os.strerror(ctypes.get_errno())}"
    return ""
