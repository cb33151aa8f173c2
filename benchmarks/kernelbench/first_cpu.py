"""What the ladder's first programs of KernelBench tasks gain on one core of a CPU, beside eager and torch.compile, in processor time.

    python -m benchmarks.kernelbench.first_cpu --kernelbench ~/KernelBench --out OUT --draw 71,16 [--scale 0.0001] [--seconds 600]

No verdicts: those are `benchmarks.kernelbench.run`'s, which needs a machine of its own. Here a program runs in the process that made it, on one
thread, and a call's time is the processor time of the thread that makes it: other processes change that little. The programs are called in turns,
cold caches of other programs between them in the same way for each; a time is the median of ROUNDS. Errors are against float64, as multiples of
eager's own (`first.compared`). A row a task in OUT/rows.jsonl: the programs' microseconds, and the best baseline's over the best of ours.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

ROUNDS, BATCH_SECONDS, WARM_UP = 25, 2e-3, 3
"""Batches of calls of each program, how long one is at least, and calls before the first."""


def main() -> None:
    """Write rows.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--level", type=int, default=2)
    parser.add_argument("--draw", default="", help="SEED,COUNT: so many of the level's tasks, drawn at random")
    parser.add_argument("--tasks", default="", help="numbers, comma-separated, in place of --draw")
    parser.add_argument("--scale", type=float, default=1e-4)
    parser.add_argument("--proposals", type=int, default=2)
    parser.add_argument("--baselines", default="compile", help="beside eager; empty: none")
    parser.add_argument("--seconds", type=float, default=600.0, help="no task is begun after that many")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("WARPWRIGHT_CACHE", tempfile.mkdtemp(prefix="first_cpu_"))
    end = time.monotonic() + options.seconds
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "rows.jsonl").open("a") as out:
        for file in chosen(options):
            if time.monotonic() > end:
                row: dict[str, Any] = {"table": "left out", "task": file.stem}
            else:
                try:
                    row = row_of(file, options)
                except Exception as error:  # one task must not end the others
                    row = {"table": "failed", "task": file.stem, "reason": f"{type(error).__name__}: {error}"[:600]}
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(json.dumps(row), flush=True)


def chosen(options: argparse.Namespace) -> list[Path]:
    """Return the files of the tasks that were asked for."""
    from benchmarks.kernelbench.first import found

    if options.tasks:
        return [file for number in options.tasks.split(",") for file in found(options.kernelbench, f"{options.level}:{number}")]
    seed, count = map(int, options.draw.split(","))
    numbers = Random(seed).sample(range(1, 101), count)
    return [file for number in numbers for file in found(options.kernelbench, f"{options.level}:{number}")]


def row_of(file: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return a task's row."""
    import torch

    from benchmarks.kernelbench.first import baselines, compared, first, rewritten
    from warpwright.run import Settings, open_space
    from warpwright.tasks import taskfile

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    task = Settings(device="cpu", scale=options.scale).describe(file)
    space, reference = open_space(task, "cpu"), taskfile.load(task)
    row: dict[str, Any] = {"table": "first_cpu", "task": task.name}
    began = time.process_time()
    recipes = first(space, options.proposals, ("compile(", "ahead_of_time("), target="cpu")
    row["proposing s"] = round(time.process_time() - began, 2)
    torch.manual_seed(0)
    model = reference.make_model()
    inputs = reference.make_inputs(0, "cpu")
    programs: dict[str, Any] = {"eager": model}
    for recipe in recipes:
        programs["; ".join(map(str, recipe))] = rewritten(space, recipe, model, reference, "cpu")
    beside, problems = baselines(task, reference, model, inputs, options.baselines, "cpu")
    programs |= beside
    ours = [name for name in programs if name not in ("eager", *beside)]
    row["errors"] = compared(programs, model, inputs, [x for x in inputs if isinstance(x, torch.Tensor)], 1e9)
    times = medians({name: partial(program, *inputs) for name, program in programs.items()})
    row |= {"us": {name: round(1e6 * seconds, 1) for name, seconds in times.items()}, **problems}
    if ours:
        row["of best"] = round(min(times[name] for name in ("eager", *beside)) / min(times[name] for name in ours), 2)
    return row


def medians(calls: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median processor seconds of a call of each program, in batches that take turns."""
    counts = {}
    for name, call in calls.items():
        for _ in range(WARM_UP):
            call()
        began = time.thread_time()
        call()
        counts[name] = max(1, round(BATCH_SECONDS / max(time.thread_time() - began, 1e-6)))
    seen: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            began = time.thread_time()
            for _ in range(counts[name]):
                call()
            seen[name].append((time.thread_time() - began) / counts[name])
    return {name: statistics.median(spent) for name, spent in seen.items()}


if __name__ == "__main__":
    main()
