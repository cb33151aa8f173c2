"""What the policy's search reaches where the verifier refuses a technique on a task: recorded tasks, what has that technique counted as failed.

    python -m benchmarks.policy.trained.refusals --tasks ROWS.jsonl[.gz] [...] --rate 4246 [--techniques half_convolutions,...] [--asked unasked]

A task counts once for each technique that stands in its fastest recorded recipe. Shares of the best that is left, geometric means over these tasks
with intervals of 95 %. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from benchmarks.policy.recording import records
from benchmarks.policy.trained import habits
from benchmarks.policy.trained.graphs import EVALUATIONS
from benchmarks.policy.trained.large import SEED, cell
from warpwright.learn.policy import compare
from warpwright.learn.policy.recorded import RecordedTask, tasks_of
from warpwright.policy.model import SHIPPED, Policy

ASKED = {"policy": compare.HOW, "unasked": compare.How(width=0)}

TECHNIQUES = "half_convolutions,int8_slices,cuda_graph"
"""What the verifier has refused on an H200 where the probe had not."""


def without(task: RecordedTask, technique: str) -> RecordedTask | None:
    """Return a task on which a technique never passes; None where its fastest recipe does without."""
    if not any(action.technique == technique for action in habits.winner(task)):
        return None
    left = {recipe: 0.0 if any(one.technique == technique for one in recipe) else speedup for recipe, speedup in task.speedups.items()}
    return replace(task, name=f"{task.name} without {technique}", speedups=left)


def main() -> None:
    """Print a row for each search."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=Path, nargs="+", required=True, help="lines of graph_rows")
    parser.add_argument("--rate", type=float, required=True, help="GB/s that copying moves on their GPU")
    parser.add_argument("--techniques", default=TECHNIQUES)
    parser.add_argument("--asked", default="unasked", help="of policy, unasked; comma-separated (%(default)s)")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    policy = Policy.load(SHIPPED)
    every = tasks_of(row for line in records.lines_of(options.tasks) for row in records.rows_of(line, options.rate))
    read = [task for task in every if not policy.unread(task.asking().program)]
    tasks = [one for task in read for technique in options.techniques.split(",") if (one := without(task, technique)) is not None]
    for name in options.asked.split(","):
        lines = compare.policy_lines(policy, tasks, options.runs, max(EVALUATIONS), SEED, ASKED[name])
        found = compare.shares(lines, tasks, EVALUATIONS)
        row = {f"best of {k}": cell([one[str(k)] for one in found.values()]) for k in EVALUATIONS}
        print(json.dumps({"table": "refusals", "search": name, "tasks": len(tasks), **row}), flush=True)


if __name__ == "__main__":
    main()
