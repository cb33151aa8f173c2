"""Judge a HeCBench program that prints no results by the files that it writes: each is compared with the one of the same name that its twin writes.

A file agrees when it holds the same bytes, or text whose words are the same and whose numbers agree as printed ones do (relative to 1e-3; lines
about time are left out, as everywhere), or floats that agree as those of arrays do (arrays.py). All files that both write have
to agree, and one of them has to hold more than a few bytes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.hecbench import arrays, judge

LEAST = 16
"""Bytes of a file that says something."""
MOST = 64 << 20


def before(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return the time of change and the size of each file in a folder."""
    return {file: (file.stat().st_mtime_ns, file.stat().st_size) for file in folder.rglob("*") if file.is_file()}


def written(folder: Path, known: dict[Path, tuple[int, int]]) -> dict[str, bytes]:
    """Return the files in `folder` that are new or changed since `known` was taken, by their names."""
    now = before(folder)
    return {str(file.relative_to(folder)): file.read_bytes() for file, state in now.items() if known.get(file) != state and state[1] < MOST}


def beside(mine: dict[str, bytes], twin: dict[str, bytes]) -> tuple[str, str]:
    """Return (`same`, `differs` or `nothing`, reason) for the files that both wrote."""
    shared = [name for name in sorted(mine) if name in twin]
    if not any(min(len(mine[name]), len(twin[name])) >= LEAST for name in shared):
        return "nothing", "writes no file that its twin writes"
    for name in shared:
        if not agree(mine[name], twin[name]):
            return "differs", f"{name} is another than the twin's"
    return "same", f"{', '.join(shared)[:80]}, {sum(len(mine[name]) for name in shared)} bytes"


def agree(a: bytes, b: bytes) -> bool:
    """Say whether two files hold the same bytes, or text with the same words and near numbers."""
    if a == b:
        return True
    try:
        first, second = a.decode(), b.decode()
    except UnicodeDecodeError:  # floats, perhaps with a head
        x, y = (np.frombuffer(one[: len(one) // 4 * 4], np.uint8) for one in (a, b))
        return len(a) == len(b) and arrays.agree(x, y)
    if words(first) != words(second):
        return False
    return judge.beside(first, second)[0] == "same"


def words(text: str) -> list[str]:
    """Return what a text holds beside numbers and lines about time."""
    kept = "\n".join(line for line in text.splitlines() if not judge.TIMING.search(line))
    return judge.NUMBER.sub(" ", kept).split()
