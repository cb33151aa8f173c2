"""A/A: the original timed against itself, 100 times, with the real workers: how often does the timer report a difference that does not exist?

    python -m benchmarks.timing.aa --runs 100 --seconds 30 --out aa.md

The baseline worker stays, as in a search; the candidate's worker is new in every run, and the device's lock is held while it is timed: other
runs of warpwright stand still, everything else goes on. Programs and inputs are those of TASKS.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from warpwright import targets
from warpwright.base import Comparison, Measurement, Source
from warpwright.tasks import taskfile
from warpwright.timing import measure
from warpwright.timing.device_lock import DeviceLock
from warpwright.timing.facts import device_facts, machine_name
from warpwright.verifier import verify
from warpwright.verifier.timed import TimedProgram, call_overhead
from warpwright.workers.sandbox import Worker

TASKS = {
    "softmax": ("torch.softmax(x, dim=1)", "torch.rand(512, 2048)"),
    "chain": ("torch.tanh(x * 1.5 + 0.5).sum(dim=1)", "torch.randn(1024, 1024)"),
    "matmul": ("x @ x.T", "torch.randn(384, 768)"),
}
"""Function of x, and how x is made: calls of about 1 to 3 ms on one core."""

TEXT = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {function}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Run:
    """One comparison of a program with itself."""

    task: str
    measurement: Measurement
    load: float
    """Programs that wanted a core, on average over the last minute."""
    seconds: float

    @property
    def verdict(self) -> Comparison:
        return self.measurement.verdict


def runs_of(task_name: str, runs: int, seconds: float, device: str) -> list[Run]:
    """Compare one task's original with itself `runs` times."""
    function, inputs = TASKS[task_name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{task_name}.py")
        path.write_text(TEXT.format(function=function, inputs=inputs))
        task = taskfile.describe(path)
        source = targets.baselines(taskfile.source_text(task), device, ["eager"])["eager"]
        judge = verify.Judge(task, device)
        try:
            with Worker("baseline", device) as trusted:
                baseline = timed(judge, trusted, source)
                overhead = call_overhead(trusted)
                return [one(task_name, judge, source, baseline, overhead, seconds, device, seed) for seed in range(runs)]
        finally:
            judge.close()


def timed(judge: verify.Judge, worker: Worker, source: Source) -> TimedProgram:
    """Build a program and give it the state that timed calls have."""
    _, rejected = verify.build(judge, worker, "program", source)
    if rejected:
        raise SystemExit(f"the original was rejected: {rejected.reason}")
    worker.request("load_state", entry="program", state=judge.state(verify.TIMED_STATE))
    return TimedProgram(judge, worker, "program")


def one(
    task_name: str, judge: verify.Judge, source: Source, baseline: TimedProgram, overhead: float, seconds: float, device: str, seed: int
) -> Run:
    """Make one comparison, with a new candidate worker."""
    with Worker("candidate", device) as worker:
        candidate = timed(judge, worker, source)
        with DeviceLock(device).exclusive():
            began = time.monotonic()
            found = measure.compare(
                candidate, {"eager": baseline}, judge.fresh, seconds=seconds, floor_seconds=0.0, overhead_seconds=overhead, rng=Random(seed)
            )
    run = Run(task_name, found, os.getloadavg()[0], time.monotonic() - began)
    low, high = found.interval
    print(
        f"{task_name} {seed}: {found.verdict} {found.speedup:.4f} [{low:.4f}, {high:.4f}] {found.candidate.median * 1e3:.2f} ms, "
        f"{found.conditions['pairs']} pairs, spread {found.conditions['spread_of_pairs']}, {run.seconds:.0f} s, load {run.load:.1f}",
        flush=True,
    )
    return run


def report(runs: list[Run], seconds: float, device: str) -> str:
    """Return the results as Markdown."""
    facts = device_facts(device)
    rows = []
    for name in sorted({run.task for run in runs}):
        of_task = [run for run in runs if run.task == name]
        seen = Counter(run.verdict for run in of_task)
        numbers = [
            f"{statistics.median(run.measurement.candidate.median for run in of_task) * 1e3:.2f}",
            *(str(seen[verdict]) for verdict in ("SAME", "UNSURE", "FASTER", "SLOWER")),
            f"{min(run.measurement.speedup for run in of_task):.3f} .. {max(run.measurement.speedup for run in of_task):.3f}",
            f"{statistics.median(float(run.measurement.conditions['spread_of_pairs']) for run in of_task):.2f}",
            f"{statistics.median(float(run.measurement.conditions['pairs']) for run in of_task):.0f}",
            f"{statistics.median(run.seconds for run in of_task):.1f}",
            f"{min(run.load for run in of_task):.1f} .. {max(run.load for run in of_task):.1f}",
        ]
        rows.append(f"| {name} | {' | '.join(numbers)} |")
    total = Counter(run.verdict for run in runs)
    return "\n".join(
        [
            "# A/A: a program timed against itself",
            "",
            f"`python -m benchmarks.timing.aa`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine_name(device)}; "
            f"torch {facts['torch']}, Python {facts['python']}, {facts['system']}.",
            f"At most {seconds:g} s a run; the candidate's worker is new in each run, the baseline's stays. The load counts what else ran on this",
            "machine as well as the timed programs themselves (about 1).",
            "",
            f"**{total['SAME']} of {len(runs)} runs SAME, {total['UNSURE']} UNSURE, {total['FASTER']} FASTER, {total['SLOWER']} SLOWER.**",
            "",
            "| task | median call, ms | SAME | UNSURE | FASTER | SLOWER | ratios seen | spread of pairs | pairs | seconds | load |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def main() -> None:
    """Read the command line, run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="comparisons in all")
    parser.add_argument("--seconds", type=float, default=30.0, help="time of one comparison at most")
    parser.add_argument("--tasks", default="softmax", help=f"names out of {', '.join(TASKS)}, joined by commas")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    names = chosen.tasks.split(",")
    runs = [run for name in names for run in runs_of(name, chosen.runs // len(names), chosen.seconds, chosen.device)]
    text = report(runs, chosen.seconds, chosen.device)
    print(text)
    if chosen.out:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(text)


if __name__ == "__main__":
    main()
