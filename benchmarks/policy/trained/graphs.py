"""The policy of configs/graphs.toml on programs held out of its training, and on KernelBench's tasks or a package's, answered from recorded times.

    python -m benchmarks.policy.trained.graphs --trained out/graphs --out OUT
    python -m benchmarks.policy.trained.graphs --trained out/graphs --tasks KB/tasks.jsonl --rate 4256 --out OUT [--runs 3] [--name kernelbench]

Proposers at equal evaluations in the closed space of what was recorded of each task (recording/graph_rows.py): each seed's policy and the
seed's own runs of every other search; the ladder, greedy and `cheapest first` may ask the cost model, as in the real space, and the ladder knows the
techniques' traits. Shares are of the best that was recorded. Tasks with a word that the policy never read are the ladder's in the search itself: here
it is asked about them all the same, and the tables come twice, for the tasks that it reads and for all. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.policy.recording import records
from benchmarks.policy.trained import habits
from warpwright.learn.policy import compare, config, rows
from warpwright.learn.policy.recorded import RecordedTask, tasks_of
from warpwright.learn.policy.train import split
from warpwright.policy.model import Policy, rng_of
from warpwright.search.moves import Recipe

CONFIG = Path(__file__).parents[3] / "configs" / "graphs.toml"

EVALUATIONS = (1, 2, 4, 8, 16)

SEARCHES = ("random", "greedy", "evolve", "evolve-ranked", "bandit", "ladder")

ALL = 256
"""Evaluations after which evolve is looked at too: more than any recorded space holds."""

LEAST = 4
"""Recipes of a task at least."""

Lines = Mapping[str, Sequence[compare.Line]]


def cheapest_first(tasks: Sequence[RecordedTask], runs: int, count: int, seed: int) -> dict[str, list[compare.Line]]:
    """Return the lines of the programs in the order of the cost model's estimates; what it holds for equal is shuffled."""
    lines: dict[str, list[compare.Line]] = {}
    for task in tasks:
        lines[task.name] = []
        for run in range(runs):
            rng = rng_of(seed, "cheapest", task.name, run)
            recipes = sorted((recipe for recipe in task.speedups if recipe), key=lambda recipe: (task.estimates.get(recipe, 0.0), rng.random()))
            line, made = [1.0], {task.made(())}
            for recipe in recipes:
                text = task.made(recipe)
                if not text or text not in made:
                    made.add(text)
                    line.append(max(line[-1], task.speedups[recipe]))
            lines[task.name].append([*line, *[line[-1]] * count][: count + 1])
    return lines


def seed_shares(policies: Mapping[str, Policy], tasks: Sequence[RecordedTask], runs: int, seed: int) -> dict[str, Any]:
    """Return proposer -> task -> evaluations -> log share, for one seed."""
    from warpwright.domains.graph.techniques import techniques

    traits = {one.name: one.traits for one in techniques("cuda")}
    most = max(EVALUATIONS)
    lines: dict[str, Lines] = {name: compare.policy_lines(policy, tasks, runs, most, seed, traits=traits) for name, policy in policies.items()}
    lines["not spread"] = compare.policy_lines(policies["policy"], tasks, runs, most, seed, compare.How(spread=False, width=1))
    lines |= {name: compare.search_lines(name, tasks, runs, most, seed, traits) for name in SEARCHES}
    lines["cheapest first"] = cheapest_first(tasks, runs, most, seed)
    found = {name: compare.shares(one, tasks, EVALUATIONS) for name, one in lines.items()}
    whole = compare.search_lines("evolve", tasks, 1, ALL, seed, traits)
    found["evolve"] = {name: {**one, **compare.shares(whole, tasks, (ALL,))[name]} for name, one in found["evolve"].items()}
    return found


def table_rows(seeds: Mapping[int, Mapping[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    """Yield the tables: shares of each proposer, and the policy over the others; intervals are of 95 %, over seeds."""
    first = next(iter(seeds.values()))
    for proposer in first:
        row: dict[str, Any] = {"table": f"{name}-shares", "proposer": proposer}
        for k in (*EVALUATIONS, ALL):
            if all(str(k) in one for one in first[proposer].values()):
                row[f"best of {k}"] = _cell([compare.mean_of(by[proposer], str(k)) for by in seeds.values()])
        yield row
    for k in EVALUATIONS:
        row = {"table": f"{name}-gains", "evaluations": k}
        for proposer in first:
            if proposer != "policy":
                row[f"over {proposer}"] = _cell([_gain(by, proposer, k) for by in seeds.values()])
        yield row
    of_all = [compare.mean_of(by["policy"], "16") - compare.mean_of(by["evolve"], str(ALL)) for by in seeds.values()]
    yield {"row": f"{name} policy at 16 over evolve at {ALL}", "share": _cell(of_all)}


def only(seeds: Mapping[int, Mapping[str, Any]], tasks: Sequence[RecordedTask]) -> dict[int, dict[str, Any]]:
    """Return the shares of some of the tasks."""
    names = {task.name for task in tasks}
    return {
        seed: {proposer: {name: one for name, one in those.items() if name in names} for proposer, those in by.items()} for seed, by in seeds.items()
    }


def _gain(by: Mapping[str, Any], proposer: str, k: int) -> float:
    return compare.mean_of(by["policy"], str(k)) - compare.mean_of(by[proposer], str(k))


def _cell(values: Sequence[float]) -> str:
    mean, low, high = (math.exp(one) for one in compare.interval(values))
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def by_task(seeds: Mapping[int, Mapping[str, Any]], tasks: Sequence[RecordedTask], name: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each task."""
    for task in sorted(tasks, key=lambda one: -one.best):
        row: dict[str, Any] = {"table": f"{name}-tasks", "task": task.name, "recipes": len(task.speedups) - 1, "best": f"{task.best:.2f}x"}
        for proposer in ("policy", "evolve", "ladder"):
            row |= {f"{proposer}, best of {k}": f"{math.exp(_mean([by[proposer][task.name][str(k)] for by in seeds.values()])):.2f}" for k in (1, 16)}
        yield row | {"best recipe": "; ".join(map(str, habits.winner(task)))}


FIRST_ANSWERS = 12
"""To a task by each seed's policy, from which habits are told."""

BANDWIDTH = 0.5
"""Share of the bandwidth that the original needs for what every program moves, from which a task counts as bound by it."""


def learnt(policies: Mapping[int, Policy], asked: Mapping[int, Sequence[RecordedTask]], name: str) -> Iterator[dict[str, Any]]:
    """Yield, for each class of tasks and technique, how often it is written first of all, at all, and how often it stands in the best recipe.

    `asked`: what each seed's policy is asked about.
    """
    written: dict[str, list[Recipe]] = {}
    for seed, policy in policies.items():
        for task in asked[seed]:
            written.setdefault(task.name, []).extend(habits.answers(policy, task, FIRST_ANSWERS, seed))
    tasks = list({task.name: task for own in asked.values() for task in own}.values())
    classes = {
        "bound by bandwidth": [task for task in tasks if (task.roof or 0.0) >= BANDWIDTH],
        "not bound by bandwidth": [task for task in tasks if (task.roof or 0.0) < BANDWIDTH],
    }
    for bound, own in classes.items():
        names = sorted({one for task in own for one in habits.offered(task)})
        told: list[dict[str, Any]] = []
        for technique in names:
            having = [task for task in own if technique in habits.offered(task)]
            told.append({
                "table": f"{name}-habits", "tasks": bound, "technique": technique, "tasks that have it": len(having),
                "written": _mean([habits.stands_in(technique, written[task.name]) for task in having]),
                "written first": _mean([habits.stands_in(technique, [one[:1] for one in written[task.name]]) for task in having]),
                "in the best recipe": _mean([habits.stands_in(technique, [habits.winner(task)]) for task in having]),
            })  # fmt: skip
        for row in sorted(told, key=lambda row: (-row["tasks that have it"], row["technique"])):
            yield {key: f"{value:.2f}" if isinstance(value, float) else value for key, value in row.items()}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


STAGES = {"policy": "contrastive", "supervised stage": "supervised"}


def held_out(trained: Path, runs: int) -> Iterator[dict[str, Any]]:
    """Yield the tables of the programs that each seed held out of its training."""
    read = config.load(CONFIG)
    every = tasks_of(row for file in read.data.rows for row in rows.read(Path(read.folder) / file))
    seeds: dict[int, Any] = {}
    after, asked = dict[int, Policy](), dict[int, list[RecordedTask]]()
    for seed, policies in policies_of(trained):
        after[seed], asked[seed] = policies["policy"], split(every, read, seed)[1]
        seeds[seed] = seed_shares(policies, asked[seed], runs, seed)
    yield from table_rows(seeds, "held-out")
    yield from learnt(after, asked, "held-out")
    yield {"row": "held-out conditions", "tasks": sum(len(by["policy"]) for by in seeds.values()), "seeds": len(seeds), "runs": runs}


def elsewhere(trained: Path, tasks: Sequence[RecordedTask], runs: int, name: str) -> Iterator[dict[str, Any]]:
    """Yield the tables of tasks of another kind, all of which each seed is asked about."""
    policies = dict(policies_of(trained))
    seeds = {seed: seed_shares(own, tasks, runs, seed) for seed, own in policies.items()}
    after = {seed: own["policy"] for seed, own in policies.items()}
    strange = {task.name: next(iter(after.values())).unread(task.asking().program) for task in tasks}
    read = [task for task in tasks if not strange[task.name]]
    yield from table_rows(only(seeds, read), name)
    yield from table_rows(seeds, f"{name}-all")
    yield from learnt(after, dict.fromkeys(after, tasks), name)
    yield from by_task(seeds, tasks, name)
    yield {
        "row": f"{name} conditions", "tasks": len(tasks), "read": len(read), "seeds": len(seeds), "runs": runs,
        "recipes": sum(len(task.speedups) - 1 for task in tasks), "unread": {task: words for task, words in strange.items() if words},
    }  # fmt: skip


def policies_of(trained: Path) -> Iterator[tuple[int, dict[str, Policy]]]:
    """Yield each seed that is trained to the end, with what it was after the first stage and after the last."""
    for folder in sorted(trained.glob("seed_*")):
        if (folder / STAGES["policy"]).is_dir():
            yield int(folder.name.partition("_")[2]), {name: Policy.load(folder / stage) for name, stage in STAGES.items()}


def main() -> None:
    """Write OUT/NAME.jsonl."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trained", type=Path, required=True, help="folder of `warpwright train`")
    parser.add_argument("--tasks", type=Path, nargs="*", default=[], help="lines of graph_rows; none: what each seed held out")
    parser.add_argument("--rate", type=float, default=0.0, help="GB/s that copying moves on their GPU")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3, help="of each proposer on each task and seed (%(default)s)")
    parser.add_argument("--name", default="kernelbench")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tasks = tasks_of((row for line in records.lines_of(options.tasks) for row in records.rows_of(line, options.rate)), LEAST)
    found = list(elsewhere(options.trained, tasks, options.runs, options.name) if tasks else held_out(options.trained, options.runs))
    name = options.name if tasks else "held-out"
    (options.out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    for row in found:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
