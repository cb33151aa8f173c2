"""Search the schedules of the ten kernels of this folder on one GPU, and measure the best of each in a process of its own.

    python -m benchmarks.sass.suite --out benchmarks/results/sass_h200 --seconds 22
    python -m benchmarks.sass.suite --out OUT --only rmsnorm,stencil --search random,greedy,anneal,evolve      searches at equal time
    python -m benchmarks.sass.suite --dry --only rmsnorm --out /tmp/dry      the same path against the simulator, without a GPU

Each kernel is first compared with float64 at a small size. rows.jsonl gets a row for each kernel ("kernel"), each kind of edit that was tried on a
kernel ("edits"), and each candidate that was not ok ("failed"), with its recipe. The best schedules lie in schedules/.
"""

from __future__ import annotations

import argparse
import json
import runpy
import statistics
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sass.build import HERE, KERNELS, build_all
from warpwright import domains
from warpwright.base import Budget, Record
from warpwright.errors import WarpwrightError
from warpwright.loop import Course, Outcome, optimize
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.process import Child, Job
from warpwright.targets.cubin.simulated import SimulatedEvaluator

OVERHEAD = 6.0
"""Seconds of a kernel's share for the start, the noise and the final measurement."""

TOLERANCE = {"f32": 1e-4, "f16": 3e-3}
"""Relative error (root mean square) of the original against float64 at most."""


def main() -> None:
    """Run the suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="kernels, separated by commas")
    parser.add_argument("--seconds", type=float, default=22.0, help="for each kernel, all in all")
    parser.add_argument("--search", default="greedy", help="one, or several separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arch", default="90a")
    parser.add_argument("--dry", action="store_true", help="the simulator instead of a GPU, 12 proposals a kernel")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    kernels = [name for name in KERNELS if not given.only or name in given.only.split(",")]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, (given.out / "rows.jsonl").open("w") as rows:
        cubins = build_all(kernels, Path(folder), given.arch)
        print(f"built {len(cubins)} kernels in {time.monotonic() - began:.1f} s", flush=True)
        for (name, cubin), search in product(cubins.items(), given.search.split(",")):
            try:
                if isinstance(cubin, Exception):
                    raise cubin
                found = measured(name, cubin, search, given)
            except Exception as error:  # one kernel's failure must not cost the others' time
                traceback.print_exc()
                found = [{"row": "kernel", "kernel": name, "search": search, "error": f"{type(error).__name__}: {error}"[:500]}]
            for row in found:
                rows.write(json.dumps(row) + "\n")
            rows.flush()
            print(f"{time.monotonic() - began:6.1f} s  {line(found[0])}", flush=True)
    print(f"total {time.monotonic() - began:.1f} s")


def measured(name: str, cubin: Path, search: str, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of one kernel."""
    began = time.monotonic()
    harness = HERE / "harnesses" / f"{name}.py"
    task = domains.describe(cubin, {"harness": str(harness)})
    space = domains.space(task, "cubin")
    row: dict[str, Any] = {"row": "kernel", "kernel": name, "search": search, "seed": given.seed, "instructions": len(space.start.order)}
    if given.dry:
        with SimulatedEvaluator(task, "cubin:sim", Measuring()) as simulated:
            outcome = optimize(task, space, simulated, search, Budget(None, 12), course=Course(seed=given.seed))
        return [row | {"device": "simulator"} | counts(outcome), *edit_rows(name, outcome), *failed_rows(name, outcome)]
    with CubinEvaluator(task, "cubin:0", Measuring(seed=given.seed)) as evaluator:
        row["error_float64"] = error_against_float64(evaluator, harness)
        budget = Budget(max(2.0, given.seconds - OVERHEAD - (time.monotonic() - began)))
        outcome = optimize(task, space, evaluator, search, budget, course=Course(seed=given.seed))
        if outcome.failure is not None:
            raise outcome.failure
        about = evaluator.child.about
        row |= {"device": about.get("device", ""), "original_us": about.get("us", 0.0), "noise": evaluator.noise}
        row |= counts(outcome) | {"starts_s": evaluator.child.starts}
        best = outcome.best
        if best is not None and best.candidate.actions:
            row |= {"actions": [str(action) for action in best.candidate.actions], "searched": best.speedup}
            keep(given.out, f"{name}_{search}", best)
            try:
                row["final"] = asdict(evaluator.confirm(best.candidate))
            except WarpwrightError as error:  # the search's rows are worth keeping
                row["final_failed"] = str(error)
        row["restart_s"] = evaluator.child.starts[1:]
    row["seconds"] = time.monotonic() - began
    return [row, *table_rows(row), *edit_rows(name, outcome), *failed_rows(name, outcome)]


def table_rows(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the kernel's row of the result's table."""
    final = row.get("final")
    head = {"table": "schedules", "kernel": row["kernel"], "search": row["search"], "candidates": row["proposals"]}
    failed = sum(count for status, count in row["statuses"].items() if status != "ok")
    if final is None:
        return [{**head, "failed": failed, "original us": f"{row['original_us']:.1f}", "gain %": "none found"}]
    (low, high), (same_low, same_high) = final["interval"], final["same_interval"]
    return [
        {
            **head,
            "failed": failed,
            "original us": f"{final['original_us']:.1f}",
            "gain %": f"{100 * (final['speedup'] - 1):+.2f}",
            "99 % interval": f"{100 * (low - 1):+.2f} to {100 * (high - 1):+.2f}",
            "original against itself": f"{100 * (same_low - 1):+.2f} to {100 * (same_high - 1):+.2f}",
            "launches compared": final["launches"],
            "other words": final["differ"],
        }
    ]


def keep(out: Path, name: str, best: Record) -> None:
    """Write the best schedule's text."""
    folder = out / "schedules"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(best.candidate.source.text)


def error_against_float64(evaluator: CubinEvaluator, harness: Path) -> float:
    """Return the original's relative error at the harness's small size; raise RuntimeError where it is not what it should compute."""
    names = runpy.run_path(str(harness))
    job = Job(**{**vars(evaluator.job), "function": "small", "sets": 1})
    with tempfile.TemporaryDirectory() as folder:
        child = Child(job, Path(folder))
        said = child.ask({"do": "arrays", "folder": folder, "seed": 5}, 30.0)
        child.end()
        arrays = [as_float64(Path(folder, f"{place}.raw").read_bytes(), kind) for place, kind in enumerate(said["kinds"])]
    inputs = [array for array, role in zip(arrays, said["roles"], strict=True) if role == "given"]
    [output] = [(array, kind) for array, role, kind in zip(arrays, said["roles"], said["kinds"], strict=True) if role == "output"]
    wanted = np.asarray(names["expected"](*inputs)).reshape(-1)
    error = float(np.sqrt(np.mean((output[0] - wanted) ** 2) / np.mean(wanted**2)))
    if not error < TOLERANCE[output[1]]:
        raise RuntimeError(f"expected the kernel within {TOLERANCE[output[1]]} of float64, saw {error}")
    return error


def as_float64(data: bytes, kind: str) -> np.ndarray:
    """Return raw numbers as float64."""
    return np.frombuffer(data, {"f32": np.float32, "f16": np.float16, "i32": np.int32}[kind]).astype(np.float64)


def counts(outcome: Outcome) -> dict[str, Any]:
    """Return how many candidates came to what."""
    statuses: dict[str, int] = defaultdict(int)
    for record in outcome.records:
        statuses[record.status] += 1
    found = outcome.best.speedup if outcome.best else 0.0
    reached = [count for count in (30, 100, 300, 1000, 3000) if count <= outcome.proposals]
    curve = [(count, round(best_of(outcome.records[: count + 1]), 5)) for count in reached]
    counted = {"curve": curve, "proposals": outcome.proposals, "statuses": dict(statuses), "best": found}
    return counted | {"search_s": outcome.seconds, "stopped": outcome.stopped}


def best_of(records: Sequence[Record]) -> float:
    """Return the greatest speed-up so far of what is proven faster; 1.0 where nothing is."""
    faster = (record.speedup for record in records if record.measurement is not None and record.measurement.verdict == "FASTER")
    return max(faster, default=1.0)


def edit_rows(name: str, outcome: Outcome) -> list[dict[str, Any]]:
    """Return for each kind of last edit how often it was tried, how often it failed, and what it gained over the recipe before it."""
    speedups = {record.candidate.actions: record.speedup for record in outcome.records}
    kinds: dict[str, list[Record]] = defaultdict(list)
    for record in outcome.records:
        if record.candidate.actions:
            kinds[record.candidate.actions[-1].technique].append(record)
    return [{"row": "edits", "kernel": name, "kind": kind, **summary(records, speedups)} for kind, records in sorted(kinds.items())]


def summary(records: Sequence[Record], speedups: Mapping[Any, float]) -> dict[str, Any]:
    """Return the gains of some records over the recipes that they extend."""
    gains = [record.speedup / before for record in records if record.speedup and (before := speedups.get(record.candidate.actions[:-1], 0.0))]
    wrong = sum(record.status != "ok" for record in records)
    best, median = (max(gains), statistics.median(gains)) if gains else (0.0, 0.0)
    return {"tried": len(records), "failed": wrong, "best_gain": best, "median_gain": median}


def failed_rows(name: str, outcome: Outcome) -> list[dict[str, Any]]:
    """Return the candidates that were not ok: on the GPU each shows a rule that the model misses."""
    rows = []
    for record in outcome.records:
        if record.status != "ok":
            actions = [str(action) for action in record.candidate.actions]
            rows.append({"row": "failed", "kernel": name, "status": record.status, "detail": record.detail[:200], "actions": actions})
    return rows


def line(row: Mapping[str, Any]) -> str:
    """Return a kernel's row in one line."""
    if "error" in row:
        return f"{row['kernel']:18} {row['error'][:120]}"
    head = f"{row['kernel']:18} {row['instructions']:5} instructions, {row['proposals']:4} proposals, {row['statuses']}"
    if "final" not in row:
        return f"{head}, best {row['best']:.4f}"
    final = row["final"]
    low, high = final["interval"]
    gain = f"{final['speedup']:.4f} [{low:.4f}, {high:.4f}], A/A {final['same']:.4f}"
    return f"{head}, {gain}, {final['launches']} launches, {final['differ']} differ"


if __name__ == "__main__":
    main()
