"""The policy that ships in spaces larger than the budget: tasks of which hundreds of programs were recorded, none of which it was trained on.

    python -m benchmarks.policy.trained.large --tasks OUT/tasks.jsonl[.gz] --rate 4256 --out OUT [--runs 5] [--least 60] [--name N] [--policy FOLDER]

What is told apart: the policy as it searches, which evaluates the most hopeful of several answers, of variants of the best and of random
walks (policy/choosing.py); without what its training programs taught of the cost model (`no prior`); choosing so from variants and walks
alone, always (`without the model`) or after some evaluations (`model for 2`); the cheapest of its answers, as it asked until then
(`cheapest answer`); its own answers one after the other (`not spread`);
and the searches of the house. All go over the closed space of what graph_rows recorded of a task; a program that is made twice is evaluated once,
whoever searches; evolve is looked at after 256 evaluations too. `uniform`: programs drawn without repetition, each as likely.
Shares are of the best recorded. Intervals are of 95 % over tasks: each task's value is the mean over runs. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.policy.recording import records
from benchmarks.policy.trained import habits
from benchmarks.policy.trained.graphs import ALL, EVALUATIONS, SEARCHES, cheapest_first
from warpwright.learn.policy import compare
from warpwright.learn.policy.recorded import RecordedTask, tasks_of
from warpwright.policy.model import SHIPPED, Policy, rng_of

SEED = 0

DRAWS = 200
"""Of `uniform`, whose runs cost nothing."""

ASKED = {
    "policy": compare.HOW, "no prior": compare.How(prior=False), "without the model": compare.How(width=0),
    "cheapest answer": compare.How(pooled=False, prior=False),
    "not spread": compare.How(spread=False, width=1, pooled=False, prior=False),
    **{f"model for {count}": compare.How(asked=count) for count in (1, 2, 4)},
}  # fmt: skip
"""Proposer -> how the policy is asked."""

MOVED = 0.1
"""A task whose original, timed again after its programs, took another time by more than this part is left out: its GPU was not quiet."""

Shares = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Proposer -> task -> evaluations -> log share."""


def drift(line: Mapping[str, Any]) -> float:
    """Return by what part of itself the time of a recorded line's original changed until it was timed again; 0 where it was not."""
    again = line.get("again us") or line["eager us"]
    return float(again / line["eager us"] - 1)


def programs(task: RecordedTask) -> int:
    """Return how many programs a task's recipes make, by their times: recipes of one program share its result to the last digit."""
    return len({speedup for speedup in task.speedups.values() if speedup > 0}) + sum(1 for speedup in task.speedups.values() if speedup <= 0)


def shares_of(policy: Policy, tasks: Sequence[RecordedTask], runs: int, asked: Collection[str] = tuple(ASKED)) -> Shares:
    """Return what each proposer came to on each task; the policy as it is `asked`."""
    from warpwright.domains.graph.techniques import techniques

    traits = {one.name: one.traits for one in techniques("cuda")}
    most = max(EVALUATIONS)
    lines = {name: compare.policy_lines(policy, tasks, runs, most, SEED, how, traits) for name, how in ASKED.items() if name in asked}
    lines |= {name: compare.search_lines(name, tasks, runs, most, SEED, traits) for name in SEARCHES}
    lines["cheapest first"] = cheapest_first(tasks, runs, most, SEED)
    lines["uniform"] = uniform(tasks, DRAWS, most)
    found = {name: compare.shares(one, tasks, EVALUATIONS) for name, one in lines.items()}
    whole = compare.shares(compare.search_lines("evolve", tasks, runs, ALL, SEED, traits), tasks, (ALL,))
    found["evolve"] = {name: {**one, **whole[name]} for name, one in found["evolve"].items()}
    return found


def uniform(tasks: Sequence[RecordedTask], runs: int, count: int) -> dict[str, list[compare.Line]]:
    """Return lines of programs drawn without repetition, each as likely: what chance has where a search has no order."""
    found: dict[str, list[compare.Line]] = {}
    for task in tasks:
        failed = sum(1 for speedup in task.speedups.values() if speedup <= 0)
        each = [*{speedup for recipe, speedup in task.speedups.items() if recipe and speedup > 0}, *[0.0] * failed]
        rng = rng_of(SEED, "uniform", task.name)
        found[task.name] = []
        for _ in range(runs):
            drawn = rng.sample(each, min(count, len(each)))
            found[task.name].append([max([1.0, *drawn[:k]]) for k in range(count + 1)])
    return found


def table_rows(found: Shares, name: str) -> Iterator[dict[str, Any]]:
    """Yield the tables."""
    for proposer, tasks in found.items():
        counts = [k for k in (*EVALUATIONS, ALL) if all(str(k) in one for one in tasks.values())]
        yield {"table": f"{name}-shares", "proposer": proposer, **{f"best of {k}": cell([one[str(k)] for one in tasks.values()]) for k in counts}}
    for k in EVALUATIONS:
        row: dict[str, Any] = {"table": f"{name}-gains", "evaluations": k}
        for proposer in found:
            if proposer != "policy":
                row[f"over {proposer}"] = cell(gains(found, proposer, k, k))
        yield row | {f"over evolve at {ALL}": cell(gains(found, "evolve", k, ALL))}


def gains(found: Shares, over: str, k: int, of: int) -> list[float]:
    """Return for each task the log of what the policy has at `k` over what another has at `of` evaluations."""
    return [one[str(k)] - found[over][task][str(of)] for task, one in found["policy"].items()]


def cell(values: Sequence[float]) -> str:
    """Return the geometric mean of logs and its interval."""
    mean, low, high = (math.exp(one) for one in compare.interval(values))
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def by_task(found: Shares, tasks: Sequence[RecordedTask], name: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each task."""
    for task in sorted(tasks, key=lambda one: -one.best):
        row: dict[str, Any] = {
            "table": f"{name}-tasks", "task": task.name, "programs": programs(task), "recipes": len(task.speedups) - 1,
            "openings": len({recipe[0].technique for recipe in task.speedups if recipe}), "best": f"{task.best:.2f}x",
        }  # fmt: skip
        shown = ("policy", "without the model", "cheapest answer", "random", "greedy", "evolve", "ladder")
        for proposer in (one for one in shown if one in found):
            row[f"{proposer}, best of 16"] = f"{math.exp(found[proposer][task.name]['16']):.2f}"
        yield row | {"best recipe": "; ".join(map(str, habits.winner(task)))}


def main() -> None:
    """Write OUT/NAME.jsonl."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=Path, nargs="+", required=True, help="lines of graph_rows")
    parser.add_argument("--rate", type=float, required=True, help="GB/s that copying moves on their GPU")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5, help="of each proposer on each task (%(default)s)")
    parser.add_argument("--least", type=int, default=60, help="programs of a task at least (%(default)s)")
    parser.add_argument("--name", default="large")
    parser.add_argument("--policy", type=Path, default=SHIPPED, help="folder of a trained policy; the one that ships where it is not given")
    parser.add_argument("--asked", default=",".join(ASKED), help="how the policy is asked, comma-separated; `policy` has to be there (%(default)s)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    lines = records.lines_of(options.tasks)
    moved = {line["task"]: round(drift(line), 3) for line in lines if abs(drift(line)) > MOVED}
    every = tasks_of(row for line in lines if line["task"] not in moved for row in records.rows_of(line, options.rate))
    policy = Policy.load(options.policy)
    tasks = [task for task in every if programs(task) >= options.least]
    unread = {task.name: words for task in tasks if (words := policy.unread(task.asking().program))}
    tasks = [task for task in tasks if task.name not in unread]
    found = shares_of(policy, tasks, options.runs, options.asked.split(","))
    rows = [*table_rows(found, options.name), *by_task(found, tasks, options.name)]
    rows.append(
        {"row": f"{options.name} conditions", "tasks": len(tasks), "recorded": len(lines), "moved": moved, "unread": unread, "runs": options.runs}
    )
    (options.out / f"{options.name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for row in rows:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
