"""Programs of one case beside each other: error, time, why one failed; and the processes that compile them first."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing.events import batch

Row = dict[str, Any]


def module(path: Path) -> Any:
    """Return the module of this file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def compile_all(name: str, jobs: int, seconds: float) -> None:
    """Call the benchmark `name` anew, `jobs` times, with its own options and `--compile-part I/JOBS`; whichever is not done in time is ended."""
    start = time.monotonic()
    command = [sys.executable, "-m", name, *sys.argv[1:]]
    running = [subprocess.Popen([*command, "--compile-part", f"{part}/{jobs}"], stdout=subprocess.DEVNULL) for part in range(jobs)]
    for job in running:
        with suppress(subprocess.TimeoutExpired):
            job.wait(max(start + seconds - time.monotonic(), 0.1))
        if job.poll() is None:
            job.kill()
    print(f"compiled in {time.monotonic() - start:.1f} s", flush=True)


def error(seen: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the root mean square of the difference, over that of the exact values."""
    return float((seen.double() - exact).square().mean().sqrt() / exact.square().mean().sqrt())


def timed(row: Row, name: str, call: Callable[[], torch.Tensor], exact: torch.Tensor, dry: bool, part: Any = (0, 0)) -> None:
    """Add a program's milliseconds and the error of a part of its result to the row, or why there are none."""
    try:
        row["error"][name] = error(call()[part], exact)
        if not dry:
            once = max(batch(call, 1), 1e-6)
            once = max(batch(call, max(1, min(20, int(0.005 / once)))), 1e-6)
            count = max(1, min(200, int(0.02 / once)))
            row["ms"][name] = round(1e3 * statistics.median(batch(call, count) for _ in range(3)), 4)
    except Exception as failure:  # one program must not end the others
        row["failed"][name] = f"{type(failure).__name__}: {failure}"[:150]


def gain(row: Row, flops: float, own_error: float) -> Row:
    """Return what follows from a row: our fastest program, and the fastest other one whose error is at most 2.5 of `own_error`."""
    own = {name: ms for name, ms in row["ms"].items() if name[0].isdigit() or name == "ours"}
    others = {name: ms for name, ms in row["ms"].items() if name not in own and row["error"][name] <= 2.5 * own_error}
    if not own or not others:
        return {}
    best, beside = min(own, key=own.__getitem__), min(others, key=others.__getitem__)
    found = {"best": best, "TFLOP/s": round(flops / own[best] / 1e9, 1), "times the error of eager": round(row["error"][best] / own_error, 2)}
    return found | {"beside": beside, "gain": round(others[beside] / own[best], 3)}
