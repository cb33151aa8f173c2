"""Spaces larger than the budget, made of what was recorded: two programs that run one after the other, each with its own recipe.

    python -m benchmarks.policy.trained.pairs --out OUT [--seeds 0,1,2] [--runs 5] [--steps 60] [--asked "policy,without the model"]

The time of a pair is the sum of its programs' times as an H200 measured each (configs/graphs_h200.parquet): the kernels of two independent programs
follow one another on one stream. An action says at which of the two it is meant, and the second's actions come after the first's, so that a pair of
programs with 30 recipes each has some 900. Each seed holds out a third of the programs: a policy is trained on pairs of the others, of whose recipes
it is given a sample, and compared on pairs of those that were held out, of whose recipes all may be proposed. `--tasks`: on pairs of other tasks that
graph_rows recorded too (`others`), as many for each seed, those with words that the policy never read left out; with `--policy` a policy as it is,
trained on no pairs, is compared on these, or on pairs of all programs where there are none. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.policy.recording import records
from benchmarks.policy.trained import large
from benchmarks.policy.trained.graphs import CONFIG
from warpwright.base import Action
from warpwright.learn.policy import config, rows
from warpwright.learn.policy.recorded import RecordedTask, task_of
from warpwright.learn.policy.rows import Row
from warpwright.learn.policy.train import train
from warpwright.policy.model import Policy, rng_of
from warpwright.search.moves import Recipe

PLACES = ("first", "second")

LEAST, LONGEST = 20, 56
"""Recipes of a program at least, and words at most."""

APART = 4.0
"""Times one program of a pair may take the other's at most: else the other's recipe would not count."""

TRAINED_ON, SAMPLED, COMPARED = 40, 24, 10
"""Pairs of a training, recipes of each that are drawn (their beginnings come with them), and pairs that are compared, for each seed."""


@dataclass(frozen=True)
class Part:
    """A recorded program: its task, and the seconds of its original."""

    task: RecordedTask
    seconds: float


def parts_of(found: Sequence[Row]) -> list[Part]:
    """Return the recorded programs that are large enough, and short enough to be read in pairs."""
    groups: dict[str, list[Row]] = {}
    for row in found:
        groups.setdefault(row.task_key, []).append(row)
    fitting = [group for group in groups.values() if len(group) > LEAST and len(group[0].program) <= LONGEST]
    made = [(task_of(group), group[0].original_seconds) for group in fitting]
    return [Part(task, seconds) for task, seconds in made if task is not None]


def drawn(parts: Sequence[Part], count: int, rng: Random) -> list[tuple[Part, Part]]:
    """Return up to `count` pairs of programs, of which neither takes much longer than the other."""
    pairs = [(one, other) for one in parts for other in parts if one is not other and 1 / APART <= one.seconds / other.seconds <= APART]
    return rng.sample(pairs, min(count, len(pairs)))


def placed(recipe: Recipe, place: str) -> Recipe:
    """Return a program's recipe as that of one of a pair."""
    return tuple(Action(action.technique, f"{place}.{action.at}" if action.at else place, action.params) for action in recipe)


def words(task: RecordedTask, place: str) -> tuple[str, ...]:
    """Return a program's words as those of one of a pair."""
    return ("part", f"@{place}", *(f"@{place}.{word[1:]}" if word.startswith("@") else word for word in task.program))


def pair(first: Part, second: Part) -> RecordedTask:
    """Return two programs as one: every recipe of the first, followed by every one of the second. Where either fails, the pair does."""
    whole = first.seconds + second.seconds
    speedups: dict[Recipe, float] = {}
    estimates: dict[Recipe, float] = {}
    for one, faster in first.task.speedups.items():
        for other, also in second.task.speedups.items():
            recipe = (*placed(one, PLACES[0]), *placed(other, PLACES[1]))
            speedups[recipe] = whole / (first.seconds / faster + second.seconds / also) if faster > 0 and also > 0 else 0.0
            estimates[recipe] = first.task.estimates.get(one, 0.0) + second.task.estimates.get(other, 0.0)
    speedups[()] = 1.0
    roofs = [part.task.roof for part in (first, second)]
    roof = None if None in roofs else sum(part.seconds * (part.task.roof or 0.0) for part in (first, second)) / whole
    program = (*words(first.task, PLACES[0]), *words(second.task, PLACES[1]))
    return RecordedTask(f"{first.task.name} + {second.task.name}", program, roof, speedups, {}, estimates)


def sampled(task: RecordedTask, count: int, rng: Random) -> Iterator[Row]:
    """Yield rows of `count` recipes of a pair, drawn, and of all their beginnings; the original's comes first."""
    kept = {recipe[:length] for recipe in rng.sample(sorted(task.speedups, key=str), count) for length in range(len(recipe) + 1)}
    for recipe in sorted(kept, key=lambda one: (len(one), str(one))):
        speedup = task.speedups[recipe]
        yield Row(task.name, task.name, "pairs", task.program, task.roof, tuple(map(str, recipe)), "ok" if speedup > 0 else "wrong", speedup)


def one_seed(parts: Sequence[Part], seed: int, out: Path, steps: int) -> tuple[Policy, list[RecordedTask]]:
    """Train a policy on pairs of two thirds of the programs; return it, with pairs of the others."""
    dealt = rng_of("pairs", 0).sample(list(parts), len(parts))
    held = dealt[seed % 3 :: 3]
    known = [part for part in dealt if part not in held]
    rng = rng_of("pairs", seed)
    folder = out / f"seed_{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder.resolve() / "rows.jsonl"
    if not file.is_file():
        rows.write(file, [row for one, other in drawn(known, TRAINED_ON, rng) for row in sampled(pair(one, other), SAMPLED, rng)])
    asked = [pair(one, other) for one, other in drawn(held, COMPARED, rng_of("asked", seed))]
    changes = (
        f"data.rows=[{json.dumps(str(file))}]", f"seeds=[{seed}]", "jobs=1", f"contrastive.steps={steps}", "comparing.evaluations=[1]",
        "comparing.runs=1", 'comparing.searches=["random"]',
    )  # fmt: skip
    train(config.load(CONFIG, changes), folder / "trained", lambda text: print(text, flush=True))
    return Policy.load(folder / "trained" / f"seed_{seed}" / "contrastive"), asked


def others(policy: Policy, files: Sequence[Path], rate: float, seed: int) -> list[RecordedTask]:
    """Return pairs of recorded tasks whose words the policy read; none where there are no files."""
    lines = [line for line in records.lines_of(files) if abs(large.drift(line)) <= large.MOVED]
    parts = parts_of([row for line in lines for row in records.rows_of(line, rate)])
    read = [part for part in parts if not policy.unread(part.task.asking().program)]
    return [pair(one, other) for one, other in drawn(read, COMPARED, rng_of("others", seed))]


@dataclass
class Group:
    """What was compared on one kind of pairs, all seeds together."""

    found: dict[str, dict[str, Mapping[str, float]]] = field(default_factory=dict)
    """Proposer -> seed and task -> evaluations -> log share."""
    tasks: list[RecordedTask] = field(default_factory=list)

    def take(self, seed: int, tasks: Sequence[RecordedTask], shares: large.Shares) -> None:
        """Take in what one seed came to."""
        for proposer, those in shares.items():
            self.found.setdefault(proposer, {}).update({f"{seed}: {name}": one for name, one in those.items()})
        self.tasks += tasks

    def rows(self, name: str, said: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the tables, and the conditions with what is `said` besides."""
        yield from large.table_rows(self.found, name)
        yield {
            "row": f"{name} conditions", "pairs": len(self.tasks), **said, "recipes of a pair": sorted(len(task.speedups) - 1 for task in self.tasks),
            "programs of a pair": sorted(map(large.programs, self.tasks)),
        }  # fmt: skip


def main() -> None:
    """Write OUT/pairs.jsonl after each seed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--runs", type=int, default=5, help="of each proposer on each pair (%(default)s)")
    parser.add_argument("--steps", type=int, default=60, help="of contrastive training (%(default)s)")
    parser.add_argument("--policy", type=Path, help="folder of a trained policy, compared as it is")
    parser.add_argument("--tasks", type=Path, nargs="+", default=[], help="what graph_rows recorded of other tasks")
    parser.add_argument("--rate", type=float, default=4242.0, help="GB/s that copying moves on their GPU (%(default)s)")
    parser.add_argument("--asked", default=",".join(large.ASKED), help="how the policy is asked, comma-separated (%(default)s)")
    options = parser.parse_args()
    read = config.load(CONFIG)
    parts = parts_of([row for file in read.data.rows for row in rows.read(Path(read.folder) / file)])
    groups: dict[str, Group] = {}
    for seed in map(int, options.seeds.split(",")):
        if options.policy:
            policy = Policy.load(options.policy)
            asked = [] if options.tasks else [pair(one, other) for one, other in drawn(parts, COMPARED, rng_of("asked", seed))]
        else:
            policy, asked = one_seed(parts, seed, options.out, options.steps)
        compared = {"pairs": asked, "others": others(policy, options.tasks, options.rate, seed)}
        for name, tasks in ((name, tasks) for name, tasks in compared.items() if tasks):
            groups.setdefault(name, Group()).take(seed, tasks, large.shares_of(policy, tasks, options.runs, options.asked.split(",")))
        said = {"programs": len(parts), "seeds": options.seeds, "runs": options.runs, "steps": options.steps}
        shown = [row for name, group in groups.items() for row in group.rows(name, said)]
        (options.out / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in shown))
    print((options.out / "pairs.jsonl").read_text())


if __name__ == "__main__":
    main()
