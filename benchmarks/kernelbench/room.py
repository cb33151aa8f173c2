"""How much of a GPU's memory a task at work may take, by what one eager call of it takes: so many tasks are worked on at once as have room.

    python -m benchmarks.kernelbench.room --kernelbench KB [--levels 1,2,3] --out KB/sizes.json

writes what is found of each task on the meta device (`warpwright.tasks.footprint.Sizes`), by level:number.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from warpwright import bench
from warpwright.errors import TaskError
from warpwright.run import Settings
from warpwright.tasks.footprint import Sizes, sizes

JUDGED, EACH, PREWARM_COPIES = 7.0, 2.0, 4
"""A task's eager peak is held about this often at once, where nothing else is known of it: by the judge (in float64, 4 to 4.5 times on an H200) and
the candidate (1 to 2), by each baseline (eager 1, a compiled one 1 to 2, a CUDA graph 2); and while its baselines are compiled."""

ANSWERS, ANSWERS_BYTES, WORKING = 60, 12 * 2**30, 4
"""A judge keeps its answers in float64, some sixty of a call's results or more, up to a twelfth of an H200's memory, and takes so many peaks besides
while it works one out. (Six judges of 15 to 26 GB, where 7 peaks of each were counted, filled a GPU: three tasks of ten ran out of memory.)"""

STATES = 8
"""A parameter is held so often by a judge: in the model, twice in its float64 copy, as the initial state and as each of four that were shipped."""

CONTEXT_BYTES = 6 * 2**30
"""CUDA contexts and library workspaces of a task's processes."""


def needed(peak: float, copies: float, known: Sizes | None = None) -> float:
    """Return the bytes that a task may take at once. `peak`: its eager one, in bytes; `copies`: JUDGED and EACH of its baselines, or fewer, where
    nothing is judged. `known`: what else a call takes.

    Convolutions are counted by their peak alone: cuDNN's workspaces in float64 are as large as they may be.
    """
    if copies <= JUDGED:
        return copies * peak + CONTEXT_BYTES
    baselines = (copies - JUDGED) / EACH
    by_peak = max(JUDGED * peak, min(ANSWERS * peak, ANSWERS_BYTES) + WORKING * peak) + EACH * baselines * peak
    if known is None or known.convolves:
        return by_peak + CONTEXT_BYTES
    return min(by_peak, _judge(known) + _programs(known, baselines)) + CONTEXT_BYTES


def _judge(known: Sizes) -> float:
    """Return what a judge holds at most: a call in float64, its inputs in the task's precision and those that are shipped, an output at hand, and its
    answers, one at least.

    `judge_memory` counts 4.7 eager peaks for a ReLU, 3.4 for x * sigmoid(x), 3.0 for a mean of squares and 4.5 for an average pooling whose outputs
    are few; here they are 4.5, 3.3, 3.0 and 4.0.
    """
    answer = 2 * known.outputs
    answers = max(answer, min(ANSWERS * answer, ANSWERS_BYTES))
    return STATES * known.state + 2 * (known.peak - known.state) + 2 * known.inputs + known.outputs + answers


def _programs(known: Sizes, baselines: float) -> float:
    """Return what the candidate holds at most, and each baseline, and the second process of the best one: a call each; the candidate's inputs and
    outputs twice, and weights in a form of its own; inputs of the next call beside the last one's, and those of a CUDA graph."""
    return known.peak + known.inputs + known.outputs + known.state + (baselines + 1) * known.peak + 2 * known.inputs


def sizes_in(path: Path | None) -> Mapping[str, Sizes]:
    """Return the sizes that a file holds, by level:number; none where there is no file."""
    if path is None or not path.exists():
        return {}
    return {name: Sizes(**known) for name, known in json.loads(path.read_text()).items()}


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", required=True, type=Path)
    parser.add_argument("--levels", default="1,2,3")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    root = options.kernelbench / "KernelBench" if (options.kernelbench / "KernelBench").is_dir() else options.kernelbench
    found = {}
    for level in options.levels.split(","):
        for path, _ in bench.find_tasks([root / f"level{level}"]):
            try:
                found[f"{level}:{Path(path).stem.partition('_')[0]}"] = asdict(sizes(Settings(device="cuda").describe(Path(path))))
            except TaskError as error:
                print(f"{path}: {error}")
    options.out.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
