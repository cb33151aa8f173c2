"""The environment of the child processes that run generated or judged programs."""

from __future__ import annotations

import os
from pathlib import Path

import warpwright


def environment(threads: int, **more: str) -> dict[str, str]:
    """Return this process's environment with `threads` OpenMP threads and a path on which warpwright is importable."""
    paths = [str(Path(warpwright.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}
