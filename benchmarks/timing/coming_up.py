"""Where a judge's seconds go while it comes up, and where a turn's while it is laid out: for a cold answer, and for the count of pairs in a warm one.

    python -m benchmarks.timing.coming_up --device cuda --out $OUT

Every run of a judge is a process of its own, begun as the fork server begins: imports, then `open` on the task of `speed`. Of the first the functions
that took longest stand in a row ("profiled", by cProfile, which makes it slower); the others say the seconds alone. A turn is 128 variants of the
task's inputs (`variants.vary_all`), moved by any distance and by multiples of four elements. "footprint" is what a judge of a small task did before
it opened until November 2026: the task's call on the meta device, for which torch imports its compiler.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.timing.speed import TASK, sizes_of
from warpwright.timing.facts import device_facts

RUNS = ("profiled", "plain", "plain", "footprint")
LEAST, MOST = 0.05, 40
"""Seconds that a function has taken, itself and what it called, to have a row; and how many have one."""

CALLS, TIMES = 128, 12


def judge(device: str, task: Path, profiled: bool) -> list[dict[str, Any]]:
    """Return the rows of one judge, in this process."""
    began = time.perf_counter()
    import torch

    imported = time.perf_counter()
    import warpwright.workers.inside.runner  # noqa: F401  as the fork server does
    from warpwright.base import to_json
    from warpwright.tasks import taskfile
    from warpwright.verifier.judge.judge_worker import JudgeWorker

    ours = time.perf_counter()
    if device != "cpu":
        torch.empty(1, device=device)
        torch.cuda.synchronize()
    context = time.perf_counter()
    worker = JudgeWorker({"device": device, "exchange": tempfile.mkdtemp(), "isolation": []})
    profile, before = cProfile.Profile(), set(sys.modules)
    if profiled:
        profile.enable()
    worker.open(to_json(taskfile.describe(task)), "abcdef0123456789", False)
    profile.disable()
    opened = time.perf_counter()
    steps = {"torch": imported - began, "other imports": ours - imported, "context": context - ours, "open": opened - context}
    rows = [{"table": "steps", "way": "profiled" if profiled else "plain", **{name: round(seconds, 3) for name, seconds in steps.items()}}]
    rows[0]["modules that open imported"] = ",".join(sorted({name.split(".")[0] for name in set(sys.modules) - before}))[:300]
    return rows + (longest(profile) if profiled else [])


def footprint_of(task: Path) -> dict[str, Any]:
    """Return the seconds that the meta device takes to say how much memory a call needs, torch itself imported before."""
    import torch  # noqa: F401

    from warpwright.tasks import footprint, taskfile

    began, before = time.perf_counter(), len(sys.modules)
    held = footprint.peak_bytes(taskfile.describe(task))
    return {"table": "footprint", "seconds": round(time.perf_counter() - began, 3), "bytes": held, "modules imported": len(sys.modules) - before}


def longest(profile: cProfile.Profile) -> list[dict[str, Any]]:
    """Return the functions that took longest."""
    found = []
    for (file, line, name), (_, calls, own, whole, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if whole >= LEAST:
            place = f"{'/'.join(Path(file).parts[-2:])}:{line}" if line else ""
            found.append({"table": "profile", "function": f"{place} {name}".strip(), "calls": calls, "own s": round(own, 3), "s": round(whole, 3)})
    return sorted(found, key=lambda row: -row["s"])[:MOST]


def turns(device: str, rows: int, columns: int) -> dict[str, Any]:
    """Return the milliseconds of laying out a turn's variants: of the host, and until the device is done."""
    import torch

    from warpwright.workers.tensors import variants

    base = [torch.randn(rows, columns, device=device)]
    slots = [variants.like(base) for _ in range(CALLS)]
    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    sources, targets = variants._flat(base[0]), [variants._flat(slot[0]) for slot in slots]

    def moved(step: int) -> None:
        distances = [step * (at % 16 + 1) for at in range(CALLS)]
        ends = [piece for target, far in zip(targets, distances, strict=True) for piece in (target[far:], target[:far])]
        variants._copy(ends, [piece for far in distances for piece in (sources[: len(sources) - far], sources[len(sources) - far :])])

    def copied() -> None:
        variants._copy(targets, [sources] * CALLS)

    ways = {
        "variants": lambda: variants.vary_all(base, list(range(CALLS)), slots),
        "moved by 4n": lambda: moved(4096), "moved by odd": lambda: moved(4097), "copied whole": copied,
    }  # fmt: skip
    found: dict[str, Any] = {"table": "turns", "calls": CALLS, "bytes of one": base[0].nbytes}
    for name, way in ways.items():
        host, whole = [], []
        for _ in range(TIMES):
            wait()
            began = time.perf_counter()
            way()
            host.append(time.perf_counter() - began)
            wait()
            whole.append(time.perf_counter() - began)
        found |= {f"{name}: host ms": round(1e3 * sorted(host)[TIMES // 2], 2), f"{name} ms": round(1e3 * sorted(whole)[TIMES // 2], 2)}
    return found


def main() -> None:
    """Run each part in a process of its own; write the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    device = "cuda:0" if given.device == "cuda" else given.device
    given.out.mkdir(parents=True, exist_ok=True)
    sizes, task = sizes_of(device), given.out / "task.py"

    def write(row: dict[str, Any]) -> None:
        with (given.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    if given.part == "turns":
        write(turns(device, sizes["rows"], sizes["columns"]))
        return
    if given.part == "footprint":
        write(footprint_of(task))
        return
    if given.part:
        for row in judge(device, task, given.part == "profiled"):
            write(row)
        return
    write({"part": "conditions", "when": datetime.now(UTC).isoformat(timespec="seconds"), **device_facts(device)})
    task.write_text(TASK.format(**sizes))
    for part in (*RUNS, "turns"):
        command = [sys.executable, "-m", "benchmarks.timing.coming_up", "--device", given.device, "--out", str(given.out), "--part", part]
        began = time.perf_counter()
        subprocess.run(command, check=False)
        write({"part": f"{part}, the process", "seconds": round(time.perf_counter() - began, 2)})


if __name__ == "__main__":
    main()
