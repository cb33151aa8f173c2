"""Compare launches of accepted schedules with the original's, bit by bit, as many of each: at the harness's small size, and some at its own.

    python -m benchmarks.sass.launches --cubins CUBINS... --schedules benchmarks/results/sass_h200/schedules ... --launches 30000 --out OUT

A schedule is NAME_SEARCH_SEED.json, as the suite writes it; the first of the folders of cubins that has NAME.cubin and NAME.py has its kernel, or
that of NAME without what stands behind two underscores. Each launch begins with outputs poisoned anew and is compared with the original's, guards
and inputs too; new inputs come after so many launches. A row for each schedule is written as it ends, the one of all at last.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.sass.agents import task_of
from warpwright.base import Candidate, Source
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator

EACH, OWN_EACH = 2000, 500
"""Launches on one set of inputs, at the small size and at the own one."""

OWN_SECONDS, SMALL_SECONDS = 1.5, 20.0
"""At most, of a schedule's launches at the harness's own size and at its small one."""


@dataclass(frozen=True)
class Job:
    """One schedule."""

    run: str
    kernel: str
    text: Path
    folder: Path
    launches: int
    until: float
    driver: str
    helpers: Path | None


def main() -> None:
    """Write a row for each schedule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cubins", type=Path, nargs="+", required=True, help="folders of NAME.cubin, each with its harness NAME.py")
    parser.add_argument("--schedules", type=Path, nargs="+", required=True, help="folders of NAME_SEARCH_SEED.json")
    parser.add_argument("--launches", type=int, default=30_000, help="of each schedule, at the small size")
    parser.add_argument("--jobs", type=int, default=12, help="so many at once")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds: nothing begins later")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--driver", default="libcuda.so.1")
    parser.add_argument("--helpers", type=Path, help="what warpwright/domains/sass/device.cu compiles to, where it is not to be compiled")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    jobs = list(jobs_of(given, began + given.limit))
    with (given.out / "rows.jsonl").open("a") as file, ProcessPoolExecutor(given.jobs, get_context("fork")) as pool:
        rows = []
        for done in as_completed([pool.submit(row_of, job) for job in jobs]):
            rows.append(done.result())
            file.write(json.dumps(rows[-1]) + "\n")
            file.flush()
            print(f"{time.monotonic() - began:6.1f} s  {rows[-1]}", flush=True)
        file.write(json.dumps(summed(rows)) + "\n")
    print(summed(rows), flush=True)


def jobs_of(given: argparse.Namespace, until: float) -> Iterator[Job]:
    """Yield a job for each schedule that there is a cubin for; name the others."""
    for folder in given.schedules:
        run = folder.parent.name if folder.name == "schedules" else folder.name
        for text in sorted(folder.glob("*.json")):
            kernel, _, _ = text.stem.rsplit("_", 2)
            cubins = home_of(kernel, given.cubins)
            if cubins is None:
                print(f"no cubin for {text}", flush=True)
                continue
            yield Job(run, kernel, text, cubins, given.launches, until, given.driver, given.helpers)


def home_of(kernel: str, folders: Sequence[Path]) -> Path | None:
    """Return FOLDER/NAME for the folder that has a kernel's cubin and harness, NAME.cubin and NAME.py; None where none has."""
    names = (kernel,) if kernel.endswith("__flags") else (kernel, kernel.partition("__")[0])  # under flags the code is another one
    return next((folder / name for name in names for folder in folders if (folder / f"{name}.cubin").exists()), None)


def row_of(job: Job) -> dict[str, Any]:
    """Return the row of a schedule, or of its failure."""
    row = {"table": "covered", "run": job.run, "kernel": job.kernel}
    if time.monotonic() > job.until:
        return row | {"error": "the time was over"}
    try:
        return row | compared(job)
    except Exception as error:
        traceback.print_exc()
        return row | {"error": f"{type(error).__name__}: {error}"[:300]}


def compared(job: Job) -> dict[str, Any]:
    """Return how many launches of a schedule were compared, and how many of their words were others than the original's."""
    began, task = time.monotonic(), task_of(job.folder.parent, job.folder.name)
    candidate = Candidate(Source("sass", (("schedule.json", job.text.read_text()),), task.name), "cubin")
    with CubinEvaluator(task, "cubin:0", Measuring(), job.driver, job.helpers) as evaluator:
        schedule = evaluator.schedule(candidate)
        image, original = schedule.cubin.data, schedule.kernel.compiled or schedule.kernel
        assert image != original.cubin.data, "the schedule is the compiler's"
        small, differ = evaluator.launches(image, SMALL_SECONDS, "small", min(EACH, job.launches), job.launches)
        own, other = evaluator.launches(image, OWN_SECONDS, "launch", min(OWN_EACH, job.launches), job.launches)
    seconds = round(time.monotonic() - began, 1)
    return {"at the small size": small, "at its own size": own, "other words": differ + other, "seconds": seconds}


def summed(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of all schedules."""
    done = [row for row in rows if "error" not in row]
    small, own = (sum(row[name] for row in done) for name in ("at the small size", "at its own size"))
    told = {"schedules": len(done), "not compared": len(rows) - len(done), "launches": small + own}
    return {"table": "covered-all", **told, "other words": sum(row["other words"] for row in done)}


if __name__ == "__main__":
    main()
