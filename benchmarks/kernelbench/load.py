"""Does every KernelBench task load, run on the meta device and get captured? Counts by level, and a reason for each that does not.

    python -m benchmarks.kernelbench.load --kernelbench ~/KernelBench --levels 1,2,3 [--scale 0.001]

Needs no GPU and no memory: the model, its inputs and its forward are run on the meta device at the sizes of the file (or at --scale).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from warpwright import bench
from warpwright.base import Task
from warpwright.errors import TaskError
from warpwright.run import open_space
from warpwright.tasks import taskfile

STEPS = ("loads", "inputs on meta", "forward on meta", "captured")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each step that fails and the counts of each level; exit code 1 when a task does not load."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", required=True)
    parser.add_argument("--levels", default="1,2,3")
    parser.add_argument("--tasks", help="glob on the file's name")
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    root = Path(options.kernelbench)
    root = root / "KernelBench" if (root / "KernelBench").is_dir() else root
    all_load = True
    for level in options.levels.split(","):
        files = bench.find_tasks([root / f"level{level}"], options.tasks)
        counts: Counter[str] = Counter()
        for path, entry in files:
            began = time.perf_counter()
            for step, reason in _steps(taskfile.describe(path, entry, options.scale)):
                counts[step] += not reason
                if reason:
                    print(f"{Path(path).stem}: not {step}: {' '.join(reason.split())[:300]} ({time.perf_counter() - began:.1f} s)", flush=True)
        print(f"level {level}: {len(files)} tasks; " + ", ".join(f"{step} {counts[step]}" for step in STEPS), flush=True)
        all_load &= counts["loads"] == len(files)
    return 0 if all_load else 1


def _steps(task: Task) -> Iterator[tuple[str, str]]:
    """Yield each step with the reason why it fails, empty where it does not; a failed step ends the line."""
    try:
        reference = taskfile.load(task)
        model = reference.make_meta_model()
    except TaskError as error:
        yield "loads", str(error)
        return
    yield "loads", ""
    try:
        inputs = reference.make_inputs(0, "meta")
    except TaskError as error:
        yield "inputs on meta", str(error)
        return
    yield "inputs on meta", ""
    try:
        with torch.no_grad(), torch.device("meta"):
            taskfile.call(task.path, "forward", lambda: model(*inputs))
    except TaskError as error:
        yield "forward on meta", str(error)
    else:
        yield "forward on meta", ""
    yield "captured", open_space(task, "cpu").limited


if __name__ == "__main__":
    raise SystemExit(main())
