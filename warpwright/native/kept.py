"""Where programs keep what they build, and which of it they may load: nothing that another user may have written.

Generated files, which run with torch alone, hold these functions too (`text`).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from pathlib import Path

MARK = "# --- generated programs hold what follows\n"


def text() -> str:
    """Return the functions as Python text, with their imports."""
    return Path(__file__).read_text().split(MARK)[-1].strip("\n") + "\n\n\n"


# --- generated programs hold what follows
import os as _os  # noqa: E402
import pathlib as _pathlib  # noqa: E402
import stat as _stat  # noqa: E402
import tempfile as _tempfile  # noqa: E402


def _folders():
    """Return where what is built may be kept, the best place first; the temporary folder is everybody's, so there it is one of our own."""
    whose = _os.getuid() if hasattr(_os, "getuid") else 0
    own = _pathlib.Path(_tempfile.gettempdir(), f"warpwright-{whose}")
    return [*map(_pathlib.Path, filter(None, [_os.environ.get("WARPWRIGHT_CACHE")])), _pathlib.Path.home() / ".cache" / "warpwright", own]


def _ours(path):
    """Have this user and root alone been able to put this file there? What another may have written is not run. OSError where there is none."""
    linked, file, folder = _os.lstat(path), _os.stat(path), _os.stat(_pathlib.Path(path).parent)
    sticky = folder.st_mode & 0o1000  # others add files there, and change none of ours
    return all(_ours_alone(state, anyone) for state, anyone in ((linked, _stat.S_ISLNK(linked.st_mode)), (file, False), (folder, sticky)))


def _ours_alone(state, anyone=False):
    """Does it belong to this user or root, and may nobody else write to it (`anyone`: or may he)?"""
    if not hasattr(_os, "getuid"):
        return True
    by_others = state.st_mode & 0o002 or (state.st_mode & 0o020 and state.st_gid not in (_os.getgid(), 0))
    return state.st_uid in (_os.getuid(), 0) and bool(anyone or not by_others)
