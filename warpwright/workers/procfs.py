"""What /proc and the kernel say of other processes and threads."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def descendants(root: int) -> list[int]:
    """Return the living processes below `root`, without zombies."""
    children: list[int] = []
    stack = [root]
    while stack:
        for child in _children(stack.pop()):
            stack.append(child)
            if state_of(f"/proc/{child}") not in ("Z", "X", ""):
                children.append(child)
    return children


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for thread in threads_of(pid):
        with contextlib.suppress(OSError):
            children += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return children


def threads_of(pid: int) -> frozenset[int]:
    """Return the ids of a process's threads, none if it is gone."""
    try:
        return frozenset(map(int, os.listdir(f"/proc/{pid}/task")))
    except OSError:
        return frozenset()


def threads_called(pid: int, name: str) -> int:
    """Return how many threads of a process have a name that begins so."""
    count = 0
    for thread in threads_of(pid):
        with contextlib.suppress(OSError):
            count += Path(f"/proc/{pid}/task/{thread}/comm").read_text().startswith(name)
    return count


def open_files(pid: int, pattern: str) -> int:
    """Return how many open files of a process have a path that is of a pattern; 0 if it is gone or may not be looked at."""
    count = 0
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # closed meanwhile
                count += re.fullmatch(pattern, os.readlink(f"/proc/{pid}/fd/{number}")) is not None
    return count


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def written_bytes(pid: int) -> int:
    """Return the bytes that a process has had put on a disk, or that wait for it; 0 if it is gone or the kernel does not say."""
    try:
        fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
        return int(fields["write_bytes"])
    except (OSError, KeyError, ValueError):
        return 0


def stat_fields(folder: str) -> list[str]:
    """Return the fields of a process's or thread's `stat` from the third of proc(5), the state letter, on. Raises OSError if it is gone."""
    return Path(folder, "stat").read_text().rpartition(")")[2].split()


def state_of(folder: str) -> str:
    """Return the state letter of a process or thread, "" if it is gone."""
    try:
        return stat_fields(folder)[0]
    except OSError:
        return ""


def page_faults(pid: int) -> int:
    """Return the page faults of a process that needed no disk, ended children included; 0 if it is gone."""
    try:
        fields = stat_fields(f"/proc/{pid}")
    except OSError:
        return 0
    return int(fields[7]) + int(fields[8])


def parent_of(pid: int) -> int:
    """Return the parent of a process, or the process itself if it is gone."""
    try:
        return int(stat_fields(f"/proc/{pid}")[1])
    except OSError:
        return pid


def thread_seconds(folder: str) -> float:
    """Return the CPU time of a thread: in nanoseconds where the kernel keeps them, else in clock ticks."""
    try:
        return int(Path(folder, "schedstat").read_text().split()[0]) * 1e-9
    except OSError:
        fields = stat_fields(folder)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def user_seconds(pid: int) -> float:
    """Return the CPU time of a process in user mode, in clock ticks; 0 if it is gone."""
    try:
        return int(stat_fields(f"/proc/{pid}")[11]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def cpu_clock(pid: int) -> float:
    """Return the CPU time of a process, ended threads included, in seconds, 0 if it is gone; nanoseconds are counted."""
    try:
        return time.clock_gettime((~pid << 3) | 2)  # the clock id of another process (clock_getcpuclockid)
    except OSError:
        return 0.0
