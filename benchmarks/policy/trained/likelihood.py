"""What the policy's model knows of recipes beyond the cost model: does it put a recorded task's fast programs further in front?

    python -m benchmarks.policy.trained.likelihood --tasks ROWS.jsonl[.gz] [...] --rate 4256 --out OUT [--name N] [--policy FOLDER] [--least 20]

A search takes, of all recorded recipes of a task, always the one with the largest

    hope by the cost model, corrected by what the training programs taught and by what it measured (search/costs.py)  +  what the model says

Nothing is drawn, and no answer is missed: what differs is what is known. The model says WEIGHT * log likelihood of the recipe's words among the
legal ones, when it is shown the program, its roof and the original; mixed with even chances, as proposals are (policy/spreading.py). Or (`head`) what
a ridge regression on its last state says of what the cost model leaves of the log speed-up, learned from all recipes that the policy's training had
(configs/graphs*_h200.parquet). `untaught`: without the model and without what the training programs taught of the cost model.

Shares are of the best recorded, geometric means over tasks; intervals of 95 % over tasks. `--least`: programs of a task. `ranks`: Spearman's
correlation over all recipes of a task that passed, with the speed-up, and with what the cost model's first hope leaves of it. Nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.policy.recording import records
from benchmarks.policy.trained.graphs import EVALUATIONS
from benchmarks.policy.trained.large import MOVED, cell, drift, programs
from warpwright.learn.policy import rows as rows_of
from warpwright.learn.policy.recorded import RecordedTask, tasks_of
from warpwright.policy.answering import UNKNOWN
from warpwright.policy.model import SHIPPED, Policy
from warpwright.policy.spreading import SHARE
from warpwright.policy.writing import END
from warpwright.search.costs import NOTHING, Costs, Prior
from warpwright.search.moves import Recipe

WEIGHTS, HEADS = (0.05, 0.1, 0.2, 0.4), (0.5, 1.0)
"""Of the likelihood and of the head, in the search's choice."""

RIDGE = 100.0
"""Of the head: the best of 10, 100, 1,000 and 10,000 over five folds of the training programs."""

CONFIGS = Path(__file__).parents[3] / "configs"

Said = Mapping[Recipe, float]
"""Recipe -> what is added to its hope."""

AT_ONCE, FEWEST = 64, 8
"""Recipes that are read at once; recipes of a program that passed, of which an order says something."""


def read(policy: Policy, task: RecordedTask) -> tuple[dict[Recipe, float], dict[Recipe, Any]]:
    """Return recipe -> the log of its likelihood among what is legal, each word's mixed with even chances; and recipe -> the last state."""
    import torch

    asking, number = task.asking(), policy.tokenizer.get_vocab()
    prompt = policy.tokenizer(asking.prompt({(): 1.0}, Random(0), task.roof, policy.notes.exemplars))["input_ids"]
    unknown, legal = number[UNKNOWN], dict[tuple[str, ...], list[str]]()
    recipes = [recipe for recipe in task.speedups if recipe]
    likelihoods, states = dict[Recipe, float](), dict[Recipe, Any]()
    for start in range(0, len(recipes), AT_ONCE):
        part = recipes[start : start + AT_ONCE]
        said = [(*asking.places.recipe(recipe), END) for recipe in part]
        tokens = [[*prompt, *(number.get(word, unknown) for word in words)] for words in said]
        most = max(map(len, tokens))
        ids = torch.tensor([[*row, *[0] * (most - len(row))] for row in tokens])  # what pads comes last and is not looked at
        with torch.no_grad():
            told = policy.model(input_ids=ids, output_hidden_states=True)
        for row, (recipe, words) in enumerate(zip(part, said, strict=True)):
            states[recipe] = told.hidden_states[-1][row, len(tokens[row]) - 1].double()
            total = 0.0
            for at, word in enumerate(words):
                before = words[:at]
                if before not in legal:
                    legal[before] = asking.writing.allowed(before)
                total += _log_chance(word, legal[before], told.logits[row, len(prompt) + at - 1], number)
            likelihoods[recipe] = total
    return likelihoods, states


def _log_chance(word: str, legal: Sequence[str], scores: Any, number: Mapping[str, int]) -> float:
    if len(legal) < 2:
        return 0.0
    read = [one for one in legal if one in number]
    chances = dict(zip(read, scores[[number[one] for one in read]].softmax(0).tolist(), strict=True)) if read else {}
    return math.log((1 - SHARE) * chances.get(word, 0.0) + SHARE / len(legal))


def line(task: RecordedTask, prior: Prior, said: Said, count: int) -> list[float]:
    """Return the best speed-up after 0, 1, 2 ... evaluations of the search; a recipe that makes a program which is known is none."""
    moves = task.asking().moves
    known: dict[Recipe, float] = {(): 1.0}
    best, made = [1.0], {task.made(())}
    while len(best) <= count:
        costs = Costs(moves, known, prior)
        recipe = max((one for one in task.speedups if one not in known), key=lambda one: costs.hope(one) + said.get(one, 0.0), default=None)
        if recipe is None:
            break
        known[recipe] = task.speedups[recipe]
        text = task.made(recipe)
        if not text or text not in made:
            made.add(text)
            best.append(max(best[-1], known[recipe]))
    return [*best, *[best[-1]] * count][: count + 1]


def passed(task: RecordedTask, prior: Prior) -> dict[Recipe, tuple[float, float]]:
    """Return recipe -> log speed-up and what the cost model says of it at first, for all that passed."""
    costs = Costs(task.asking().moves, None, prior)
    return {recipe: (math.log(speedup), costs.gain(recipe)) for recipe, speedup in task.speedups.items() if recipe and speedup > 0}


class Head:
    """A ridge regression on the model's last states."""

    def __init__(self, policy: Policy, tasks: Sequence[RecordedTask]) -> None:
        import torch

        rows, left = [], []
        for task in tasks:
            right, (_, states) = passed(task, policy.prior), read(policy, task)
            if len(right) >= FEWEST:
                own, over = torch.stack([states[one] for one in right]), torch.tensor([speed - hope for speed, hope in right.values()])
                rows.append(own - own.mean(0))  # of a program's recipes only the order matters
                left.append((over - over.mean()).double())
        x, y = torch.cat(rows), torch.cat(left)
        self.scale = x.std(0) + 1e-6
        x = x / self.scale
        self.weights = torch.linalg.solve(x.T @ x + RIDGE * torch.eye(x.shape[1], dtype=x.dtype), x.T @ y)

    def said(self, states: Mapping[Recipe, Any]) -> dict[Recipe, float]:
        """Return what it says of recipes."""
        return {recipe: float((state / self.scale) @ self.weights) for recipe, state in states.items()}


def ranks(task: RecordedTask, prior: Prior, likelihoods: Said, head: Said) -> dict[str, float]:
    """Return Spearman's correlations of a task."""
    right = passed(task, prior)
    speeds, hopes = ([pair[number] for pair in right.values()] for number in (0, 1))
    left = [speed - hope for speed, hope in right.values()]
    of = {"cost model": hopes, "likelihood": [likelihoods[one] for one in right], "head": [head[one] for one in right]}
    found = {f"{name} with the speed-up": _correlation(_order(values), _order(speeds)) for name, values in of.items()}
    return found | {f"{name} with what is left": _correlation(_order(of[name]), _order(left)) for name in ("likelihood", "head")}


def _order(values: Sequence[float]) -> list[float]:
    """Return the ranks of values, equal ones sharing theirs."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values)):
        places.setdefault(value, []).append(place)
    return [sum(places[value]) / len(places[value]) for value in values]


def _correlation(some: Sequence[float], others: Sequence[float]) -> float:
    one, other = (sum(values) / len(values) for values in (some, others))
    both = sum((x - one) * (y - other) for x, y in zip(some, others, strict=True))
    size = math.sqrt(sum((x - one) ** 2 for x in some) * sum((y - other) ** 2 for y in others))
    return both / size if size else 0.0


def tables(policy: Policy, tasks: Sequence[RecordedTask], head: Head, name: str) -> Iterator[dict[str, Any]]:
    """Yield the tables."""
    told = {task.name: read(policy, task) for task in tasks}
    of_head = {task.name: head.said(told[task.name][1]) for task in tasks}
    ways: dict[str, tuple[Prior, Mapping[str, Said]]] = {"without the model": (policy.prior, {}), "untaught": (NOTHING, {})}
    for weight in WEIGHTS:
        ways[f"likelihood, {weight:g}"] = policy.prior, {of: {one: weight * by for one, by in said.items()} for of, (said, _) in told.items()}
    for weight in HEADS:
        ways[f"head, {weight:g}"] = policy.prior, {of: {one: weight * by for one, by in said.items()} for of, said in of_head.items()}
    most, first = max(EVALUATIONS), dict[str, list[float]]()
    for way, (prior, said) in ways.items():
        shares = {task.name: [math.log(one / task.best) for one in line(task, prior, said.get(task.name, {}), most)] for task in tasks}
        first = first or shares
        row: dict[str, Any] = {"table": f"{name}-knowing", "what is known": way}
        row |= {f"best of {k}": f"{math.exp(sum(one[k] for one in shares.values()) / len(shares)):.3f}" for k in EVALUATIONS}
        if shares is not first:
            row |= {f"over without, {k}": cell([one[k] - first[task][k] for task, one in shares.items()]) for k in EVALUATIONS}
        yield row
    found = [ranks(task, policy.prior, told[task.name][0], of_head[task.name]) for task in tasks if len(passed(task, policy.prior)) >= FEWEST]
    for what in found[0]:
        values = [one[what] for one in found]
        mean = sum(values) / len(values)
        error = math.sqrt(sum((one - mean) ** 2 for one in values) / (len(values) - 1) / len(values))
        yield {"table": f"{name}-ranks", "rank": what, "mean": f"{mean:.2f}", "standard error": f"{error:.2f}", "tasks": len(values)}


def main() -> None:
    """Write OUT/NAME.jsonl."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=Path, nargs="+", required=True, help="lines of graph_rows")
    parser.add_argument("--rate", type=float, required=True, help="GB/s that copying moves on their GPU")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="recorded")
    parser.add_argument("--policy", type=Path, default=SHIPPED, help="folder of a trained policy; the one that ships where it is not given")
    parser.add_argument("--least", type=int, default=20, help="programs of a task at least (%(default)s)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    lines = [one for one in records.lines_of(options.tasks) if abs(drift(one)) <= MOVED]
    policy = Policy.load(options.policy)
    tasks = [task for task in tasks_of(row for one in lines for row in records.rows_of(one, options.rate)) if programs(task) >= options.least]
    tasks = [task for task in tasks if task.estimates and not policy.unread(task.asking().program)]
    trained = tasks_of(row for file in sorted(CONFIGS.glob("graphs*_h200.parquet")) for row in rows_of.read(file))
    rows = list(tables(policy, tasks, Head(policy, [task for task in trained if task.estimates]), options.name))
    (options.out / f"{options.name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for row in rows:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
