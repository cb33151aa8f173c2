"""What each agent reaches with equally many measurements of a kernel: random, greedy, annealing, evolution, screening, PPO.

    python -m benchmarks.sass.agents --out OUT --folder CUBINS --only softmax,stencil --proposals 1000 --limit 80
    python -m benchmarks.sass.agents --out OUT --folder CUBINS --only softmax --proposals 300 --dry       the simulator instead of a GPU
    python -m benchmarks.sass.agents --pretrain weights.pt --folder CUBINS --only layernorm,convolution --steps 1500 --dry
    python -m benchmarks.sass.agents ... --weights weights.pt --agents ppo,ppo_pretrained                   with what was learnt there

Every agent begins at the compiler's schedule and plays by itself, a process each; on a GPU one measures while the others think. A proposal is one
measurement, a repeated one too. What was best after 100 measurements, and at the end, is measured anew in a process of its own: the searches' own
figures flatter whoever measured most. A row for each agent and kernel is written as it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.sass.rows import COUNTS, best_of, percent, span
from warpwright import domains
from warpwright.base import Budget, Record, Task
from warpwright.domains.sass.harness import load
from warpwright.loop import Course, Outcome, optimize
from warpwright.search import SEARCHES, Search
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.judging import fastest, first_accepted
from warpwright.targets.cubin.simulated import SimulatedEvaluator

AGENTS = ("random", "greedy", "anneal", "evolve", "screen", "ppo")
PRETRAINED = "ppo_pretrained"
EARLY = 100
CONFIRMED = 1.2
"""Seconds that measuring one schedule anew takes."""


@dataclass(frozen=True)
class Job:
    """One agent on one kernel."""

    kernel: str
    agent: str
    seed: int
    given: argparse.Namespace
    until: float


def main() -> None:
    """Play, or learn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folder", type=Path, required=True, help="NAME.cubin, each with its harness NAME.py")
    parser.add_argument("--only", required=True, help="kernels, separated by commas")
    parser.add_argument("--agents", default=",".join(AGENTS))
    parser.add_argument("--weights", type=Path, help=f"what {PRETRAINED} begins with")
    parser.add_argument("--proposals", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=80.0, help="seconds, the measurements in the end included")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--threads", type=int, default=1, help="of PPO's network, where cores are free")
    parser.add_argument("--dry", action="store_true", help="the simulator instead of a GPU")
    parser.add_argument("--pretrain", type=Path, metavar="FILE", help="learn on the kernels in turn, in the simulator, and write the weights")
    parser.add_argument("--steps", type=int, default=1500, help="of the game on each kernel, with --pretrain")
    given = parser.parse_args()
    if given.pretrain:
        learn(given)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    began, every = time.monotonic(), [(seed, *pair) for seed in map(int, given.seeds.split(",")) for pair in product(kernels(given), agents(given))]
    until = began + given.limit - (0.0 if given.dry else 2 * CONFIRMED * len(every))
    jobs = [Job(kernel, agent, seed, given, until) for seed, kernel, agent in every]
    with (given.out / "rows.jsonl").open("a") as rows:
        for row in in_parallel(jobs):
            rows.write(json.dumps(row) + "\n")
            rows.flush()
            print(f"{time.monotonic() - began:6.1f} s  {row}", flush=True)


def kernels(given: argparse.Namespace) -> list[str]:
    """Return the kernels that are asked for."""
    return str(given.only).split(",")


def agents(given: argparse.Namespace) -> list[str]:
    """Return the agents that are asked for."""
    return [*str(given.agents).split(","), *([PRETRAINED] if given.weights and PRETRAINED not in given.agents else [])]


def in_parallel(jobs: list[Job]) -> Iterator[dict[str, Any]]:
    """Yield the row of each job as it ends; one that fails costs the others nothing."""
    workers = 1 if jobs[0].given.dry else max(1, min(len(jobs), 2 * (os.cpu_count() or 1)))
    with ProcessPoolExecutor(workers, get_context("fork")) as pool:
        for done in as_completed([pool.submit(row_of, job) for job in jobs]):
            yield done.result()


def row_of(job: Job) -> dict[str, Any]:
    """Return the row of one job, or of its failure."""
    row = {"table": "simulated-agents" if job.given.dry else "agents", "kernel": job.kernel, "agent": job.agent, "seed": job.seed}
    try:
        return row | played(job)
    except Exception as error:
        traceback.print_exc()
        return row | {"error": f"{type(error).__name__}: {error}"[:300]}


def played(job: Job) -> dict[str, Any]:
    """Return what an agent reached on a kernel."""
    task = task_of(job.given.folder, job.kernel)
    evaluator = SimulatedEvaluator if job.given.dry else CubinEvaluator
    with evaluator(task, "cubin:sim" if job.given.dry else "cubin:0", Measuring(seed=job.seed)) as opened:
        began, space = time.monotonic(), domains.space(task, "cubin")
        budget = Budget(None if job.given.dry else max(2.0, job.until - began), job.given.proposals)
        outcome = optimize(task, space, opened, search_of(job.agent, job.given.weights, job.given.threads), budget, course=Course(seed=job.seed))
        if outcome.failure is not None:
            raise outcome.failure
        row = reached(outcome)
        if isinstance(opened, CubinEvaluator):
            row["ms of the device each"] = each(opened.spent)
            row[f"best of {EARLY}, anew"] = confirmed(opened, outcome.records[: EARLY + 1])
            row["best of all, anew"] = confirmed(opened, outcome.records)
    return row


def search_of(agent: str, weights: Path | None = None, threads: int = 1) -> str | Search:
    """Return an agent as a search; `weights`: what the pre-trained one begins with; `threads`: of a network that learns."""
    if agent in SEARCHES:
        return agent
    from warpwright.sass.agents import ppo

    return ppo.Ppo(ppo.load(weights) if agent == PRETRAINED and weights else None, threads=threads)


def reached(outcome: Outcome) -> dict[str, Any]:
    """Return the best so far after so many measurements, and what failed."""
    counts = [count for count in COUNTS if count <= outcome.proposals]
    best = {f"best of {count}": percent(best_of(outcome.records[: count + 1])) for count in counts}
    failed = sum(record.status != "ok" for record in outcome.records)
    rate = f"{outcome.proposals / outcome.seconds:.0f}"
    return {"measurements": outcome.proposals, "a second": rate, "failed": failed, **best, "best of all": percent(best_of(outcome.records))}


def each(spent: Mapping[str, float]) -> str:
    """Return the milliseconds that the child took for a candidate, part by part."""
    parts = [f"{what} {1e3 * seconds / spent['candidates']:.2f}" for what, seconds in spent.items() if what != "candidates"]
    return ", ".join(parts)


def confirmed(evaluator: CubinEvaluator, records: tuple[Record, ...]) -> str:
    """Return the gain of the best of some records, judged in a process of its own; "none" and why where it is not accepted."""
    found = first_accepted(evaluator, fastest(records, 1), stress=0.02)
    if found.candidate is None or found.judgement is None:
        return f"none: {found.refusals[-1]}"[:200] if found.refusals else "none"
    cold = found.judgement.cold
    return f"{percent(found.judgement.speedup)} ({span(found.judgement.interval)}), cold {percent(cold[0])} ({span(cold[1:])})"


def task_of(folder: Path, kernel: str) -> Task:
    """Return the task of a cubin of a folder."""
    harness = folder / f"{kernel}.py"
    return domains.describe(folder / f"{kernel}.cubin", {"harness": str(harness), "kernel": load(harness).kernel})


def learn(given: argparse.Namespace) -> None:
    """Learn on the kernels in turn, in the simulator; write the weights after each."""
    from warpwright.sass.agents import ppo

    weights = None
    for kernel in kernels(given):
        began, task = time.monotonic(), task_of(given.folder, kernel)
        with SimulatedEvaluator(task, "cubin:sim", Measuring()) as simulated:
            weights = ppo.pretrained([(domains.space(task, "cubin"), simulated)], given.steps, weights=weights)
        ppo.save(weights, given.pretrain)
        print(f"{kernel}: {given.steps} steps in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
