"""Search the schedules of the fourteen kernels of this folder on one GPU, and measure the best of each in a process of its own.

    python -m benchmarks.sass.suite --out benchmarks/results/sass_h200 --limit 60
    python -m benchmarks.sass.suite --out OUT --limit 60 --flags           other flags of the compiler first; their share is told apart
    python -m benchmarks.sass.suite --out OUT --limit 60 --only rmsnorm,stencil --search random,greedy,anneal,evolve,screen
    python -m benchmarks.sass.suite --out OUT --limit 60 --start benchmarks/results/sass_h200/schedules    where earlier searches ended
    python -m benchmarks.sass.suite --dry --only rmsnorm --out /tmp/dry    the same path against the simulator, without a GPU

All kernels are searched at once, a process each; one measures while the others propose, for a child process has its GPU alone while it answers.
`--limit` is for all of it, `--devices 0,1` deals the kernels out to several GPUs. Each kernel is first compared with float64 at a small size.

`--folder F` searches the cubins of a folder instead, from wherever they come; its flags.json says of a cubin which other one it is under other flags
(benchmarks.sass.flagged writes such a folder): the flags' share, and both together, are then measured against that one.

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
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import cycle, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TextIO, TypeVar

from benchmarks.sass.build import HERE, KERNELS, build
from benchmarks.sass.flags import best_flags
from benchmarks.sass.reference import error_against_float64
from benchmarks.sass.replay import mended
from benchmarks.sass.rows import counts, curve_row, edit_rows, failed_rows, flags_row, line, table_rows
from warpwright import domains
from warpwright.base import Budget, Candidate, Task, is_baseline
from warpwright.domains.sass import script
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.domain import MOST_REGISTERS, checker_of, kernel_of
from warpwright.domains.sass.editing import edits
from warpwright.domains.sass.editing.relisting import towards
from warpwright.domains.sass.harness import load
from warpwright.domains.sass.model.checker import Checker, complaints
from warpwright.errors import WarpwrightError
from warpwright.loop import Course, Outcome, optimize
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.judging import fastest, first_accepted
from warpwright.targets.cubin.simulated import SimulatedEvaluator

Given = TypeVar("Given")
Found = TypeVar("Found")

FINAL, COMPARED = 1.2, 0.25
"""Seconds of the limit that are kept for each kernel's judgement, and for each comparison with the shipped cubin."""

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
    cubin: Path | None
    """One that was made elsewhere; None for a kernel of this folder."""
    folder: Path
    given: argparse.Namespace
    until: float
    """When its search ends, by the monotonic clock, which is one for all processes of the machine."""
    seed: int = 0
    flags: str = ""
    """The compiler's flags that a cubin of a folder was made with, where they are others than those of `base`."""
    base: Path | None = None
    """The cubin as it is shipped, under the usual flags."""
    searched: bool = True
    """False where only the flags are measured."""
    registers: str = ""
    """Up to how many registers the values are spread over first ("most": as leave as many blocks resident); "" leaves them where they are."""


@dataclass(frozen=True)
class Done:
    """What came of a job."""

    job: Job
    rows: list[dict[str, Any]]
    image: bytes = b""
    """The cubin of an accepted schedule."""


def main() -> None:
    """Run the suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="kernels, separated by commas")
    parser.add_argument("--folder", type=Path, help="other cubins, NAME.cubin, each with its harness NAME.py; their `small()` is for --launches")
    parser.add_argument("--start", type=Path, help="schedules of earlier runs, NAME_*.json: each search begins at the one of its cubin")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds, for everything but --launches")
    parser.add_argument("--search", default="screen", help="one, or several separated by commas")
    parser.add_argument("--flags", action="store_true", help="begin at the compiler's best flags")
    parser.add_argument("--launches", type=float, default=0.0, help="seconds for comparing launches of a schedule at a small size")
    parser.add_argument("--registers", default="", help="names of kernels, or all: their values are spread over more registers first")
    parser.add_argument("--devices", default="0", help="numbers of the GPUs, separated by commas")
    parser.add_argument(
        "--seeds", default="0", help="one search for each, separated by commas: several searches of one kernel run beside one another"
    )
    parser.add_argument("--arch", default="90a")
    parser.add_argument("--dry", action="store_true", help="the simulator instead of a GPU")
    parser.add_argument("--proposals", type=int, default=12, help="for each kernel with --dry")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, (given.out / "rows.jsonl").open("w") as rows:
        accepted: list[Done] = []
        for done in in_parallel(rows_of, list(jobs(given, Path(folder), began)), given):
            write(rows, done.rows)
            print(f"{time.monotonic() - began:6.1f} s  {line(done.rows[0])}", flush=True)
            accepted += [done] if done.image else []
        if given.launches and accepted:
            for row in in_parallel(launched, accepted, given):
                write(rows, [row])
                print(f"{time.monotonic() - began:6.1f} s  {row}", flush=True)
    print(f"total {time.monotonic() - began:.1f} s")


def write(rows: TextIO, found: list[dict[str, Any]]) -> None:
    """Write rows at once: what comes after may fail."""
    rows.writelines(json.dumps(row) + "\n" for row in found)
    rows.flush()


def jobs(given: argparse.Namespace, folder: Path, began: float) -> Iterator[Job]:
    """Yield a job for each kernel and search; the searches of all end at the same time."""
    every = sorted(path.stem for path in given.folder.glob("*.cubin")) if given.folder else KERNELS
    kernels = [name for name in every if not given.only or name in given.only.split(",")]
    devices = given.devices.split(",")
    told = given.folder / "flags.json" if given.folder else None
    flagged = json.loads(told.read_text()) if told and told.exists() else {}
    every_search = list(product([int(seed) for seed in given.seeds.split(",")], kernels, given.search.split(",")))
    finals = FINAL * sum(flagged.get(name, {}).get("searched", True) for _, name, _ in every_search)
    finals += 2 * COMPARED * sum(name in flagged for _, name, _ in every_search)
    until = began + max(LEAST, given.limit - finals / len(devices))
    for (seed, name, search), device in zip(every_search, cycle(devices), strict=False):
        harness = (given.folder or HERE / "harnesses") / f"{name}.py"
        cubin = given.folder / f"{name}.cubin" if given.folder else None
        own = folder / f"{search}_{seed}"  # each search compiles its kernel itself, beside the others
        own.mkdir(exist_ok=True)
        about = flagged.get(name, {})
        base = given.folder / f"{about['of']}.cubin" if about else None
        flags, searched = about.get("flags", ""), about.get("searched", True)
        registers = MOST_REGISTERS if searched and given.registers and (given.registers == "all" or name in given.registers.split(",")) else ""
        yield Job(name, search, f"cubin:{device}", harness, given.out, cubin, own, given, until, seed, flags, base, searched, registers)


def in_parallel(work: Callable[[Given], Found], every: list[Given], given: argparse.Namespace) -> Iterator[Found]:
    """Yield what comes of each, in a process of its own, as it ends."""
    workers = 1 if given.dry else max(1, min(len(every), 2 * (os.cpu_count() or 1)))
    with ProcessPoolExecutor(workers, get_context("fork")) as pool:
        for done in as_completed([pool.submit(work, one) for one in every]):
            yield done.result()


def rows_of(job: Job) -> Done:
    """Search one kernel; give the row of its failure where it fails, which must not cost the others' time."""
    try:
        return measured(job)
    except Exception as error:
        traceback.print_exc()
        return Done(job, [{"row": "kernel", "kernel": job.kernel, "search": job.search, "error": f"{type(error).__name__}: {error}"[:500]}])


def launched(done: Done) -> dict[str, Any]:
    """Compare every launch of some seconds with the original, all kernels at once: nothing is timed any more."""
    job = done.job
    row: dict[str, Any] = {"table": "launches", "kernel": job.kernel, "search": job.search, "seed": job.seed}
    try:
        cubin = job.cubin or build(job.kernel, job.folder, job.given.arch)
        with CubinEvaluator(described(cubin, job), job.device, Measuring()) as evaluator:
            count, differ = evaluator.launches(done.image, job.given.launches)
    except Exception as error:
        traceback.print_exc()
        return row | {"launches": 0, "error": f"{type(error).__name__}: {error}"[:300]}
    return row | {"launches": count, "other words": differ}


def measured(job: Job) -> Done:
    """Return the rows of one kernel, and what was accepted."""
    given, began = job.given, time.monotonic()
    cubin = job.cubin or build(job.kernel, job.folder, given.arch)
    row: dict[str, Any] = {"row": "kernel", "kernel": job.kernel, "search": job.search, "seed": job.seed}
    if given.dry:
        return Done(job, dry(job, cubin, row))
    base = described(job.base or cubin, job)
    if job.base is not None:
        row["flags"] = compared(base, job, cubin.read_bytes(), {"name": job.flags})
    if not job.searched:
        return Done(job, [row, flags_row(row)])
    if job.cubin is None:
        with CubinEvaluator(base, job.device, Measuring(seed=job.seed)) as evaluator:
            row["error_float64"] = error_against_float64(evaluator, job.harness)
            if given.flags:
                found = best_flags(job.kernel, evaluator, job.folder, given.arch)
                row |= {"flags": found.row, "variants": found.tried}
                cubin = found.cubin or cubin
    with CubinEvaluator(started(cubin, job), job.device, Measuring(seed=job.seed)) as evaluator:
        rows, image = searched(job, row, evaluator)
    if row.get("flags") and image:
        row["both"] = compared(base, job, image, {})
    row["seconds"] = time.monotonic() - began
    return Done(job, [row, *table_rows(row), *rows], image)


def compared(base: Task, job: Job, image: bytes, said: dict[str, Any]) -> dict[str, Any] | None:
    """Return what is said of a cubin with what it gains over the one that is shipped, in a process of its own; None where that fails."""
    try:
        with CubinEvaluator(base, job.device, Measuring()) as evaluator:
            (speedup, *interval), differ = evaluator.against(image)
    except WarpwrightError:  # the search's rows are worth keeping
        traceback.print_exc()
        return None
    return said | {"speedup": speedup, "interval": interval, "differ": differ}


def described(cubin: Path, job: Job, **more: str) -> Task:
    """Return the task of a cubin with the kernel's harness."""
    task = domains.describe(cubin, {"harness": str(job.harness), "kernel": load(job.harness).kernel, **more})
    assert task is not None
    return task


def started(cubin: Path, job: Job) -> Task:
    """Return the task of a cubin that begins at an earlier schedule, where there is one; what today's rules refuse of it is repaired.

    Code with other registers begins as near to a schedule of the compiler's code as it can.
    """
    registers = {"registers": job.registers} if job.registers else {}
    task = described(cubin, job, **registers)
    checker = checker_of(kernel_of(task))
    for path in sorted(job.given.start.glob(f"{job.kernel}_*.json")) if job.given.start else ():
        legal = start_of(path.read_text(), checker)
        if legal is not None and legal.words != checker.kernel.words and not complaints(legal, checker):
            begin = job.folder / f"{job.kernel}.start.json"
            begin.write_text(script.write(legal))
            return described(cubin, job, start=str(begin), **registers)
    return task


def start_of(text: str, checker: Checker) -> Schedule | None:
    """Return an earlier schedule as one of the checker's kernel; None where it is another's."""
    kernel, document = checker.kernel, json.loads(text)
    if document["original"] == kernel.digest:
        legal, _ = mended(checker, script.read(text, kernel))
        return checker.adopted(legal)
    if kernel.compiled is not None and document["original"] == kernel.compiled.digest:
        return towards(checker, script.read(text, kernel.compiled))
    return None


def dry(job: Job, cubin: Path, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a short search in the simulator."""
    task = started(cubin, job)
    space = domains.space(task, "cubin")
    with SimulatedEvaluator(task, "cubin:sim", Measuring()) as simulated:
        outcome = optimize(task, space, simulated, job.search, Budget(None, job.given.proposals), course=Course(seed=job.seed))
    row |= {"instructions": len(space.start.order), "device": "simulator", "began_at": began_at(outcome)} | counts(outcome)
    return [row, curve_row(row), *edit_rows(job.kernel, outcome), *failed_rows(job.kernel, outcome)]


def searched(job: Job, row: dict[str, Any], evaluator: CubinEvaluator) -> tuple[list[dict[str, Any]], bytes]:
    """Search from the evaluator's cubin; put what was found into `row`; return the other rows, and the cubin of an accepted schedule."""
    task = evaluator.task
    space = domains.space(task, "cubin")
    budget = Budget(max(LEAST, job.until - time.monotonic()))
    outcome = optimize(task, space, evaluator, job.search, budget, course=Course(seed=job.seed))
    if outcome.failure is not None:
        raise outcome.failure
    about = evaluator.child.about
    kernel = kernel_of(task)
    if kernel.compiled is not None:
        counts_of = (one.cubin.register_count(one.name) for one in (kernel.compiled, kernel))
        row |= {"registers": list(counts_of), "renamed": sum(a != b for a, b in zip(kernel.words, kernel.compiled.words, strict=True))}
    row |= {"instructions": len(space.start.order), "device": about.get("device", ""), "original_us": about.get("us", 0.0), "noise": evaluator.noise}
    row |= counts(outcome) | {"starts_s": evaluator.child.starts, "began_at": began_at(outcome)}
    image = b""
    found = first_accepted(evaluator, fastest(outcome.records), stress=0.05)
    row |= {"refused": list(found.refusals)} if found.refusals else {}
    if found.judgement is not None:
        row["final"] = asdict(found.judgement)
    if found.candidate is not None:
        row |= {"actions": [str(action) for action in found.candidate.actions], "searched": max(record.speedup for record in outcome.records)}
        keep(job, found.candidate)
        schedule = script.read(found.candidate.source.text, kernel_of(task))
        image = schedule.cubin.data
        row |= apart(schedule, evaluator)
    return [*edit_rows(job.kernel, outcome), *failed_rows(job.kernel, outcome)], image


def apart(schedule: Schedule, evaluator: CubinEvaluator) -> dict[str, Any]:
    """Return what a schedule that gives other hints gains without them."""
    if edits.without_hints(schedule) == schedule:
        return {}
    try:
        (speedup, *bounds), differ = evaluator.against(edits.without_hints(schedule).cubin.data)
    except WarpwrightError:  # the schedule's own figure is worth keeping
        traceback.print_exc()
        return {}
    return {"apart": {"without hints": {"speedup": speedup, "interval": bounds, "differ": differ}}}


def began_at(outcome: Outcome) -> float:
    """Return the speed-up of the schedule that the search began at."""
    return next((record.speedup for record in outcome.records if not record.candidate.actions and not is_baseline(record)), 1.0)


def keep(job: Job, best: Candidate) -> None:
    """Write the best schedule's text."""
    folder = job.out / "schedules"
    folder.mkdir(exist_ok=True)
    (folder / f"{job.kernel}_{job.search}_{job.seed}.json").write_text(best.source.text)


if __name__ == "__main__":
    main()
