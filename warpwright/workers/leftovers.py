"""What an own user's processes put into the machine beside their own memory: how much it is while they live, and its removal when they have ended.

Files in their folders and in those open to all, files without a name that are open still, System V memory, semaphores and queues.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

OPEN_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")
IPC_RMID = 0
KINDS = {"shm": ("shmid", "shmctl"), "sem": ("semid", "semctl"), "msg": ("msqid", "msgctl")}


MOST_FILES = 50_000
"""That are counted: a tree with more is over any quota, for the time that it takes to walk; so is one that is deeper than a path can name."""

UNCOUNTED = 1 << 62
"""Bytes of a tree that was not counted."""


def held_bytes(folders: Iterable[str], user: int | None, pids: Iterable[int]) -> int:
    """Return the bytes of files in `folders`, of `user` in folders open to all, of nameless files that `pids` hold open, and of System V memory."""
    count = [0]
    total = sum(_tree_bytes(folder, count) for folder in folders)
    if user is not None:
        total += sum(_tree_bytes(path, count) for path in _open_to_all(user)) + _shared_bytes(user)
    return total + _nameless_bytes(pids)


def _tree_bytes(path: str, count: list[int]) -> int:
    """Return the bytes that a file, or the files below a folder, take; links are not followed. Whatever vanishes meanwhile counts nothing."""
    total, waiting = 0, [path]
    while waiting:
        place = waiting.pop()
        count[0] += 1
        if count[0] > MOST_FILES:
            return UNCOUNTED
        try:
            status = os.lstat(place)
            total += status.st_blocks * 512
            if stat.S_ISDIR(status.st_mode):
                waiting += [entry.path for entry in os.scandir(place)]
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return UNCOUNTED
    return total


def _open_to_all(user: int) -> Iterator[str]:
    """Yield what belongs to a user in the folders open to all. Below them lies nothing that another user could write to."""
    for folder in OPEN_FOLDERS:
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid == user:
                        yield entry.path


def _nameless_bytes(pids: Iterable[int]) -> int:
    """Return the bytes of files that have no name, or none any more, and that processes hold open: memfd_create, O_TMPFILE, unlinked ones."""
    seen: dict[tuple[int, int], int] = {}
    for pid in pids:
        try:
            handles = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for handle in handles[:MOST_HANDLES]:
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/{pid}/fd/{handle}")
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    seen[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(seen.values())


MOST_HANDLES = 4096


def _shared_bytes(user: int) -> int:
    """Return the bytes of a user's System V segments, as far as they are in memory."""
    try:
        head, *rows = (line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines())
        owner, resident = head.index("cuid"), head.index("rss")
        return sum(int(row[resident]) for row in rows if row[owner] == str(user))
    except (OSError, ValueError, IndexError):
        return 0


def remove(user: int) -> list[str]:
    """Remove what belongs to `user`, whom no process has any more; return what it was. Needs root, as the change of user did."""
    return [*_remove_files(user), *_remove_ipc(user)]


def _remove_files(user: int) -> list[str]:
    paths = []
    for path in list(_open_to_all(user)):
        paths.append(path)
        with contextlib.suppress(OSError):
            if os.path.isdir(path) and not os.path.islink(path):
                remove_tree(path)
            else:
                os.unlink(path)
    return paths


def remove_tree(folder: str) -> None:
    """Remove a folder with all that is in it, as far as it can be, however deep it is and whatever its folders permit.

    `shutil.rmtree` calls itself for each level, and ends at a thousand. Here the folders of a folder are moved up to the top and dealt with there.
    """
    if os.scandir not in os.supports_fd:
        shutil.rmtree(folder, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        top = _opened(folder)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(folder)


def _opened(name: str, top: int | None = None) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)


def _permitted(name: str, top: int) -> int:
    """Return an open folder that may be read and written from here on. What is no folder any more, but a link in its place, raises OSError.

    A mode is changed through what was opened, or without following links: `chmod` follows them, and who has a process left could put one there.
    """
    try:
        handle = _opened(name, top)
    except PermissionError:
        _permit(name, top)
        handle = _opened(name, top)
    try:
        os.fchmod(handle, 0o700)
    except OSError:
        os.close(handle)
        raise
    return handle


def _permit(name: str, top: int) -> None:
    """Let a folder be opened that permits nothing; by name only where that does not follow links, as without /proc."""
    if not hasattr(os, "O_PATH") or not os.path.isdir("/proc/self/fd"):
        try:
            os.chmod(name, 0o700, dir_fd=top, follow_symlinks=False)
        except NotImplementedError as error:
            raise OSError(errno.ENOTSUP, str(error)) from error
        return
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    try:
        os.chmod(f"/proc/self/fd/{place}", 0o700)
    finally:
        os.close(place)


def _empty(top: int) -> None:
    """Remove what is in an open folder. What cannot be removed stays, and is tried once."""
    stays: set[str] = set()
    unused = (f"{secrets.token_hex(8)}-{number}" for number in itertools.count())
    while names := {entry.name for entry in os.scandir(top)} - stays:
        stays |= {name for name in names if not _removed(top, name, unused)}


def _removed(top: int, name: str, unused: Iterator[str]) -> bool:
    """Remove one entry; of a folder, the folders in it move up to `top`, under names that nothing has there."""
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=top)
            return True
        inner = _permitted(name, top)
        try:
            for entry in list(os.scandir(inner)):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=inner)
                    continue
                os.close(_permitted(entry.name, inner))
                os.rename(entry.name, next(unused), src_dir_fd=inner, dst_dir_fd=top)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=top)
        return True
    except OSError:
        return False


def _remove_ipc(user: int) -> list[str]:
    removed = []
    libc = ctypes.CDLL(None)
    for kind, (column, control) in KINDS.items():
        for number in _owned(Path(f"/proc/sysvipc/{kind}"), column, user):
            removed.append(f"System V {kind} {number}")
            arguments = (number, 0, IPC_RMID) if kind == "sem" else (number, IPC_RMID, None)
            getattr(libc, control)(*arguments)
    return removed


def _owned(table: Path, column: str, user: int) -> list[int]:
    """Return the identifiers of a table's entries that `user` owns or has made."""
    try:
        head, *rows = (line.split() for line in table.read_text().splitlines())
    except (OSError, ValueError):
        return []
    at, owner, maker = head.index(column), head.index("uid"), head.index("cuid")
    return [int(row[at]) for row in rows if str(user) in (row[owner], row[maker])]
