"""Folders and files that are written to."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from warpwright.errors import UsageError

ARCHIVE = Path(".warpwright/archive.db")
"""Where a search remembers what it measured, unless it is told another place."""


def make_folder(path: str | Path) -> Path:
    """Return `path` as a folder that exists, made with its parents if need be."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"expected a folder that can be made, saw {folder}: {error.strerror}", "name another one") from error
    return folder


_SPECIAL = {
    "a named pipe": stat.S_ISFIFO, "a device": stat.S_ISCHR, "a disk": stat.S_ISBLK, "a socket": stat.S_ISSOCK,
}  # fmt: skip
"""What stands among files and is none: reading it may wait for ever, or never end."""


def refuse_special(path: str | Path) -> None:
    """Raise a UsageError for a path that names neither a regular file nor a folder, nor nothing at all."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # whoever opens it says why it cannot be
    if kind := next((kind for kind, test in _SPECIAL.items() if test(mode)), None):
        raise UsageError(f"expected a regular file or a folder, saw {path}: it is {kind}", "write what it gives to a file, and name that")


@contextlib.contextmanager
def reading(path: str | Path, expected: str, hint: str) -> Iterator[None]:
    """Read a file that the user names; what is wrong with it is a UsageError: what was `expected`, what was seen, and what to do (`hint`)."""
    refuse_special(path)
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"expected {expected}, saw {path}: {_why(error)}", hint) from error


def _why(error: Exception) -> str:
    """Return in a few words what is wrong with a file; no part of the file, which may be megabytes."""
    match error:
        case OSError():
            return error.strerror or str(error)
        case UnicodeDecodeError():
            return f"it is no text at byte {error.start}"
        case json.JSONDecodeError():
            return f"it is no JSON: {error}"
        case KeyError():
            return f"it has no {error.args[0]!r}"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return f"it holds something else ({str(error)[:200]})"


def write_whole(path: Path, text: str) -> None:
    """Write a file that others, who may write it too, read whole or not at all."""
    partial = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    partial.write_text(text)
    partial.replace(path)
