"""Folders that are written to."""

from __future__ import annotations

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
