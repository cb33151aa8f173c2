"""Folders and files that are written to."""

from __future__ import annotations

import os
import threading
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


def write_whole(path: Path, text: str) -> None:
    """Write a file that others, who may write it too, read whole or not at all."""
    partial = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    partial.write_text(text)
    partial.replace(path)
