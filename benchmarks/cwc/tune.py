"""The CWC operator optimised by the loop: eager torch against the fused kernel and its tunables, verified and timed like any other task.

    python -m benchmarks.cwc.tune --budget 60s > cwc_tune.md
"""

from __future__ import annotations

import argparse
import datetime
import os
import tempfile
from pathlib import Path

from warpwright import loop
from warpwright.base import Budget
from warpwright.domains.unlearnable.tuning import Work, space, task_text
from warpwright.reports import report
from warpwright.space import Measuring
from warpwright.targets.local import LocalEvaluator
from warpwright.tasks import taskfile
from warpwright.timing import facts

WORKS = (Work(images=512, side=32, k=3), Work(images=16, side=224, k=9))


def main() -> None:
    """Print a table for each job."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--budget", default="60s")
    options.add_argument("--search", default="greedy")
    given = options.parse_args()
    print(f"# The CWC operator through the loop\n\n- {datetime.date.today()}, {facts.machine_name('cpu')}, load {os.getloadavg()[0]:.1f}")
    print(f"- search {given.search}, budget {given.budget} a job; every program is verified as docs/trust.md says\n")
    for work in WORKS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"classwise_{work.side}_k{work.k}.py")
            path.write_text(task_text(work))
            task = taskfile.describe(str(path))
            with LocalEvaluator(task, "cpu", Measuring(("eager",), 5.0), folder=Path(folder)) as evaluator:
                outcome = loop.optimize(task, space(work), evaluator, search=given.search, budget=Budget.parse(given.budget))
        print(f"## {work.images} images of {work.side}x{work.side}, k={work.k}: {outcome.stopped}\n")
        print("| recipe | status | images/s | against the best baseline | reason |\n| --- | --- | --- | --- | --- |")
        for record in sorted(outcome.records, key=lambda one: -one.speedup):
            rate = f"{work.images / record.measurement.candidate.median:,.0f}" if record.measurement else ""
            recipe = "; ".join(map(str, record.candidate.actions)) or record.candidate.proposer
            reason = record.verdict.reason if record.verdict and not record.verdict.ok else ""
            print(f"| {recipe} | {record.status} | {rate} | {f'{record.speedup:.2f}x' if record.speedup else ''} | {reason} |")
        said = report.line(task.name, outcome.records, chosen=outcome.best)
        print(f"\nBest: {'; '.join(said['recipe'] or [])}, {said['verdict']}\n")


if __name__ == "__main__":
    main()
