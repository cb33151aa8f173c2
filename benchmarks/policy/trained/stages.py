"""What each stage of one training has learned: its own answers, one after the other, to tasks that it was not trained on, beside random.

    python -m benchmarks.policy.trained.stages --trained OUT/seed_0 --tasks OUT/tasks.jsonl[.gz] [...] --rate 4242 [--runs 3] > ROWS.jsonl

Nothing is chosen among answers, neither by a cost model nor by what was measured: a stage writes and is evaluated. A program made twice counts twice.
Shares are of the best recorded; intervals of 95 % over tasks. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.policy.recording import records
from benchmarks.policy.trained.large import MOVED, cell, drift, programs
from warpwright.learn.policy import compare
from warpwright.learn.policy.recorded import RecordedTask, tasks_of
from warpwright.learn.policy.train import STAGES
from warpwright.policy.model import NOTES, Policy

EVALUATIONS = (1, 2, 4, 8, 16)

OWN = compare.How(spread=False, width=1, pooled=False, prior=False)


def table(stages: Sequence[tuple[str, Policy]], tasks: Sequence[RecordedTask], runs: int, name: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each stage and for random, and what each stage gains on the one before."""
    most = max(EVALUATIONS)
    found = {stage: compare.shares(compare.policy_lines(policy, tasks, runs, most, 0, OWN), tasks, EVALUATIONS) for stage, policy in stages}
    found["random"] = compare.shares(compare.search_lines("random", tasks, runs, most, 0), tasks, EVALUATIONS)
    for stage, by in found.items():
        yield {"table": name, "stage": stage, **{f"best of {k}": cell([one[str(k)] for one in by.values()]) for k in EVALUATIONS}}
    names = [stage for stage, _ in stages]
    for earlier, later in itertools.pairwise(names):
        gains = {f"best of {k}": cell([found[later][task.name][str(k)] - found[earlier][task.name][str(k)] for task in tasks]) for k in EVALUATIONS}
        yield {"table": name, "stage": f"{later} over {earlier}", **gains}
    yield {"row": f"{name} conditions", "tasks": len(tasks), "runs": runs}


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trained", type=Path, required=True, help="folder of one seed of `warpwright train`")
    parser.add_argument("--tasks", type=Path, nargs="+", required=True)
    parser.add_argument("--rate", type=float, required=True, help="GB/s that copying moves on their GPU")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--least", type=int, default=20)
    parser.add_argument("--name", default="stages")
    options = parser.parse_args()
    lines = [line for line in records.lines_of(options.tasks) if abs(drift(line)) <= MOVED]
    every = tasks_of(row for line in lines for row in records.rows_of(line, options.rate))
    stages = [(name, Policy.load(options.trained / name)) for name in STAGES if (options.trained / name / NOTES).is_file()]
    tasks = [task for task in every if programs(task) >= options.least and not stages[0][1].unread(task.asking().program)]
    for row in table(stages, tasks, options.runs, options.name):
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
