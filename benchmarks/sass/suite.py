"""Search the schedules of the fourteen kernels of this folder on one GPU, and measure the best of each in a process of its own.

    python -m benchmarks.sass.suite --out benchmarks/results/sass_h200 --limit 60
    python -m benchmarks.sass.suite --out OUT --limit 60 --flags           other flags of the compiler first; their share is told apart
    python -m benchmarks.sass.suite --out OUT --limit 60 --only rmsnorm,stencil --search random,greedy,anneal,evolve,screen
    python -m benchmarks.sass.suite --dry --only rmsnorm --out /tmp/dry    the same path against the simulator, without a GPU

All kernels are searched at once, a process each; one measures while the others propose, for a child process has its GPU alone while it answers.
`--limit` is for all of it, `--devices 0,1` deals the kernels out to several GPUs. Each kernel is first compared with float64 at a small size.
rows.jsonl gets a row for each kernel ("kernel"), each kind of edit that was tried on a kernel ("edits"), and each candidate that was not ok
("failed"), with its recipe. The best schedules lie in schedules/.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import cycle, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.sass.build import HERE, KERNELS, build
from benchmarks.sass.flags import best_flags
from benchmarks.sass.reference import error_against_float64
from benchmarks.sass.rows import counts, edit_rows, failed_rows, line, table_rows
from warpwright import domains
from warpwright.base import Budget, Record
from warpwright.domains.sass import script
from warpwright.domains.sass.domain import kernel_of
from warpwright.errors import WarpwrightError
from warpwright.loop import Course, optimize
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.simulated import SimulatedEvaluator

FINAL = 1.2
"""Seconds of the limit that are kept for each kernel's final measurement."""

LEAST = 2.0
"""Seconds that a search has at least."""


@dataclass(frozen=True)
class Job:
    """One kernel, and how it is searched."""

    kernel: str
    search: str
    device: str
    harness: Path
    out: Path
    folder: Path
    given: argparse.Namespace
    until: float
    """When its search ends, by the monotonic clock, which is one for all processes of the machine."""


def main() -> None:
    """Run the suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="kernels, separated by commas")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds, for everything but --launches")
    parser.add_argument("--search", default="screen", help="one, or several separated by commas")
    parser.add_argument("--flags", action="store_true", help="begin at the compiler's best flags")
    parser.add_argument("--launches", type=float, default=0.0, help="seconds for comparing launches of a schedule at a small size")
    parser.add_argument("--devices", default="0", help="numbers of the GPUs, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arch", default="90a")
    parser.add_argument("--dry", action="store_true", help="the simulator instead of a GPU, 12 proposals a kernel")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, (given.out / "rows.jsonl").open("w") as rows:
        for found in in_parallel(list(jobs(given, Path(folder), began))):
            rows.writelines(json.dumps(row) + "\n" for row in found)
            rows.flush()
            print(f"{time.monotonic() - began:6.1f} s  {line(found[0])}", flush=True)
    print(f"total {time.monotonic() - began:.1f} s")


def jobs(given: argparse.Namespace, folder: Path, began: float) -> Iterator[Job]:
    """Yield a job for each kernel and search; the searches of all end at the same time."""
    kernels = [name for name in KERNELS if not given.only or name in given.only.split(",")]
    pairs, devices = list(product(kernels, given.search.split(","))), given.devices.split(",")
    until = began + max(LEAST, given.limit - FINAL * len(pairs) / len(devices))
    for (name, search), device in zip(pairs, cycle(devices), strict=False):
        yield Job(name, search, f"cubin:{device}", HERE / "harnesses" / f"{name}.py", given.out, folder, given, until)


def in_parallel(every: list[Job]) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each job as it ends."""
    workers = 1 if every[0].given.dry else max(1, min(len(every), 2 * (os.cpu_count() or 1)))
    with ProcessPoolExecutor(workers, get_context("fork")) as pool:
        waiting = {pool.submit(rows_of, job): job for job in every}
        for done in as_completed(waiting):
            yield done.result()


def rows_of(job: Job) -> list[dict[str, Any]]:
    """Return the rows of one kernel, or of its failure: it must not cost the others' time."""
    try:
        return measured(job)
    except Exception as error:
        traceback.print_exc()
        return [{"row": "kernel", "kernel": job.kernel, "search": job.search, "error": f"{type(error).__name__}: {error}"[:500]}]


def measured(job: Job) -> list[dict[str, Any]]:
    """Return the rows of one kernel."""
    given, began = job.given, time.monotonic()
    cubin = build(job.kernel, job.folder, given.arch)
    row: dict[str, Any] = {"row": "kernel", "kernel": job.kernel, "search": job.search, "seed": given.seed}
    if given.dry:
        return dry(job, cubin, row)
    base = described(cubin, job)
    with CubinEvaluator(base, job.device, Measuring(seed=given.seed)) as evaluator:
        row["error_float64"] = error_against_float64(evaluator, job.harness)
        if given.flags:
            found = best_flags(job.kernel, evaluator, job.folder, given.arch)
            row |= {"flags": found.row, "variants": found.tried}
            cubin = found.cubin or cubin
    with CubinEvaluator(described(cubin, job), job.device, Measuring(seed=given.seed)) as evaluator:
        rows, image = searched(job, row, evaluator)
    with CubinEvaluator(base, job.device, Measuring()) as evaluator:
        if row.get("flags") and image:
            (speedup, *interval), differ = evaluator.against(image)
            row["both"] = {"speedup": speedup, "interval": interval, "differ": differ}
        if image and given.launches:
            row["more_launches"], row["more_differ"] = evaluator.launches(image, given.launches)
    row["seconds"] = time.monotonic() - began
    return [row, *table_rows(row), *rows]


def described(cubin: Path, job: Job) -> Any:
    """Return the task of a cubin with the kernel's harness."""
    return domains.describe(cubin, {"harness": str(job.harness)})


def dry(job: Job, cubin: Path, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a short search in the simulator."""
    task = described(cubin, job)
    space = domains.space(task, "cubin")
    with SimulatedEvaluator(task, "cubin:sim", Measuring()) as simulated:
        outcome = optimize(task, space, simulated, job.search, Budget(None, 12), course=Course(seed=job.given.seed))
    row |= {"instructions": len(space.start.order), "device": "simulator"} | counts(outcome)
    return [row, *edit_rows(job.kernel, outcome), *failed_rows(job.kernel, outcome)]


def searched(job: Job, row: dict[str, Any], evaluator: CubinEvaluator) -> tuple[list[dict[str, Any]], bytes]:
    """Search from the evaluator's cubin; put what was found into `row`; return the other rows, and the cubin of an accepted schedule."""
    task = evaluator.task
    space = domains.space(task, "cubin")
    budget = Budget(max(LEAST, job.until - time.monotonic()))
    outcome = optimize(task, space, evaluator, job.search, budget, course=Course(seed=job.given.seed))
    if outcome.failure is not None:
        raise outcome.failure
    about = evaluator.child.about
    row |= {"instructions": len(space.start.order), "device": about.get("device", ""), "original_us": about.get("us", 0.0), "noise": evaluator.noise}
    row |= counts(outcome) | {"starts_s": evaluator.child.starts}
    image, best = b"", outcome.best
    if best is not None and best.candidate.actions:
        row |= {"actions": [str(action) for action in best.candidate.actions], "searched": best.speedup}
        keep(job, best)
        try:
            final = evaluator.confirm(best.candidate, stress=0.3)
            row["final"] = asdict(final)
            image = script.read(best.candidate.source.text, kernel_of(task)).cubin.data
        except WarpwrightError as error:  # the search's rows are worth keeping
            row["final_failed"] = str(error)
    return [*edit_rows(job.kernel, outcome), *failed_rows(job.kernel, outcome)], image


def keep(job: Job, best: Record) -> None:
    """Write the best schedule's text."""
    folder = job.out / "schedules"
    folder.mkdir(exist_ok=True)
    (folder / f"{job.kernel}_{job.search}.json").write_text(best.candidate.source.text)


if __name__ == "__main__":
    main()
