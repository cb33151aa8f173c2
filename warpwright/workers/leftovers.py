"""Removes what an own user's processes have left in the machine: files in folders open to all, System V memory, semaphores and queues."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
from pathlib import Path

OPEN_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")
IPC_RMID = 0
KINDS = {"shm": ("shmid", "shmctl"), "sem": ("semid", "semctl"), "msg": ("msqid", "msgctl")}


def remove(user: int) -> list[str]:
    """Remove what belongs to `user`, whom no process has any more; return what it was. Needs root, as the change of user did."""
    return [*_remove_files(user), *_remove_ipc(user)]


def _remove_files(user: int) -> list[str]:
    """Files in the open folders themselves: below them lies nothing that another user could write to."""
    found = []
    for folder in map(Path, OPEN_FOLDERS):
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid != user:
                    continue
                found.append(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)
    return found


def _remove_ipc(user: int) -> list[str]:
    found = []
    libc = ctypes.CDLL(None)
    for kind, (column, control) in KINDS.items():
        for number in _owned(Path(f"/proc/sysvipc/{kind}"), column, user):
            found.append(f"System V {kind} {number}")
            arguments = (number, 0, IPC_RMID) if kind == "sem" else (number, IPC_RMID, None)
            getattr(libc, control)(*arguments)
    return found


def _owned(table: Path, column: str, user: int) -> list[int]:
    """Return the identifiers of a table's entries that `user` owns or has made."""
    try:
        head, *rows = (line.split() for line in table.read_text().splitlines())
    except (OSError, ValueError):
        return []
    at, owner, maker = head.index(column), head.index("uid"), head.index("cuid")
    return [int(row[at]) for row in rows if str(user) in (row[owner], row[maker])]
