"""Searches at equal evaluations and at equal dollars over the twenty plain kernels: what each has found after so many programs, or for so much money.

    python -m benchmarks.search.compare --out OUT [--seeds 200]

The evaluations are those of an H200: rows "probe" of results/plain_cuda_h200 hold the time and the error of each program that was built for a kernel
there. A search proposes recipes of that closed space and is answered from the rows, so that every search can be run many times and costs nothing;
a program that errs too much is answered as wrong. A repeated proposal counts, as it does in the loop. `fsr` asks a scripted model: each answer is one
of the space's programs drawn at random, or, one time in four, a text that does not compile: it shows what its protocol costs, not what a model knows.

Dollars are those of a GPU's seconds and of a model's tokens at the prices of `PRICES`. A program that was evaluated before costs nothing, as in the
archive; questions hold the task, the source and the answers' whole texts, and the searches' own meter counts their tokens.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.cuda import plain20
from warpwright.base import Action, Candidate, Record, Source, Task, Verdict, digest
from warpwright.learn.policy.recorded import PLAIN, Listed, following, measured
from warpwright.llm.chat import Message
from warpwright.search import SEARCHES
from warpwright.search.llm import fsr, islands
from warpwright.search.llm.conversation import ModelSearch
from warpwright.search.moves import Proposer, Recipe
from warpwright.space import Space, Traits, Writing

MEASURED = Path(__file__).parents[1] / "results" / "plain_cuda_h200" / "rows.jsonl"

COUNTS = (2, 4, 8, 12)
"""Evaluations after which a search is looked at."""

ASKED = ("random", "greedy", "beam", "evolve", "bandit", "anneal", "ladder", "fsr", "islands")

DRAWS = 2000
"""Of kernels, for an interval of 95 %: kernels are what another twenty would differ by, and runs on one of them are many."""

BROKEN = 0.25
"""Share of the scripted model's answers that do not compile."""


@dataclass(frozen=True)
class Prices:
    """What a search pays."""

    seconds: float
    """Of a GPU for an evaluation."""
    hour: float = 4.0
    """Dollars for an hour of the GPU."""
    asked: float = 3.0
    """Dollars for a million tokens of questions, and of answers below."""
    answered: float = 15.0

    @property
    def evaluation(self) -> float:
        """Dollars for one."""
        return self.seconds * self.hour / 3600


PRICES: Mapping[str, Prices] = {"dollars": Prices(14.1), "dollars_shared": Prices(2.1)}
"""Table -> prices. 14.1 s is the median of the verifications of plain_cuda_h200, which had the GPU together with others; 2.1 s is the share of each
of the twenty in the 41 s of all. Prices of hours and tokens are round figures of the order that is asked for in 2026, and nobody was paid."""

PROPOSALS = 80
"""Of a search at equal dollars: those that propose a program again pay nothing for it, and would go on for ever."""

TRAITS = {"restrict": Traits("E"), "swap_axes": Traits("S", tried_first=True), "cooperate": Traits("S", tried_first=True),
          "product_tile": Traits("S", tried_first=True), "transpose_tile": Traits("S", tried_first=True),
          "gather_atomics": Traits("S", tried_first=True), "privatise": Traits("S", tried_first=True),
          "shuffle_tree": Traits("S", tried_first=True), "fast_math": Traits("N")}  # fmt: skip
"""What the ladder may know; every other technique is a plain schedule."""


class Write:
    """The given program -> one of the measured ones, named by its text."""

    name = "write"
    traits = Traits("S")

    def sites(self, ir: Recipe) -> Iterator[Action]:
        """Yield nothing: a model alone proposes it."""
        return iter(())

    def apply(self, ir: Recipe, action: Action) -> Recipe:
        """Return the recipe that a text stands for."""
        text = str(dict(action.params)["text"])
        return (action,) if "broken" in text else tuple(map(Action.parse, json.loads(text.splitlines()[-1][3:])))


@dataclass
class Kernel:
    """One kernel's measured programs."""

    name: str
    speedups: dict[Recipe, float]
    """Of each program that was built; 0 for one that errs too much."""
    texts: Mapping[Recipe, str] = field(default_factory=dict, repr=False)
    """Its source, where it is still offered; of the others the text as given stands for its length."""

    @property
    def best(self) -> float:
        """The greatest speed-up there is to be found."""
        return max(self.speedups.values())

    def space(self, rng: Random) -> Space[Recipe]:
        """Return the closed space of the measured programs, in an order that says nothing: the rows have the likeliest first."""
        programs = tuple(rng.sample(list(self.speedups), len(self.speedups)))
        names = dict.fromkeys(action.technique for recipe in programs for action in recipe)
        after = following(programs)
        listed = [Listed(name, after, TRAITS.get(name, PLAIN)) for name in names]

        def lower(ir: Recipe, actions: Recipe) -> Candidate:
            return Candidate(Source("python", (("optimized.py", self.text_of(ir)),)), "cuda", actions)

        kernel = next(one for one in plain20.KERNELS if one.name == self.name)
        given, context = kernel.cuda.strip(), kernel.task_text("cuda")
        writing = Writing("", context, given, ("__global__",), lambda text: Action("write", "", (("text", text),)))
        return Space((), (Write(), *listed), lower, writing=writing)

    def record(self, space: Space[Recipe], recipe: Recipe) -> Record:
        """Answer a proposal. A recipe that was not measured itself, only programs that go on with it, is as the original: a step on the way."""
        candidate = space.candidate(recipe)
        ir = space.replay(recipe)
        task = Task(self.name, f"/{self.name}.cu", source_digest=digest(self.name))
        if ir and ir[0].technique == "write":
            verdict = Verdict(False, "not_built", "error: expected a semicolon")
            return Record(task, candidate, "cuda:0", "not_built", verdict, detail=verdict.reason)
        speedup = self.speedups.get(ir, 1.0)
        if speedup == 0.0:
            return Record(task, candidate, "cuda:0", "wrong", Verdict(False, "wrong", "the error is above the original's"))
        return Record(task, candidate, "cuda:0", "ok", Verdict(True, "ok"), measured(speedup))

    def text_of(self, ir: Recipe) -> str:
        """Return a program's text; its last line says which it is."""
        return f"{self.texts.get(ir, self.texts.get((), '__global__')).strip()}\n// {json.dumps([str(action) for action in ir])}\n"


@dataclass
class Scripted:
    """A model that knows the space and nothing of its times."""

    kernel: Kernel
    rng: Random
    name: str = "scripted"

    def ask(self, messages: Sequence[Message]) -> str:
        """Return an answer drawn at random."""
        text = "__global__ void broken()\n" if self.rng.random() < BROKEN else self.kernel.text_of(self.rng.choice(list(self.kernel.speedups)))
        return f"```cuda\n{text}```"


def kernels(path: Path) -> list[Kernel]:
    """Return the kernels of a file of rows, with the programs that were timed."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    probes = [row for row in rows if row.get("table") == "probe" and "us" in row]
    prepared = json.loads(gzip.decompress(plain20.PREPARED.read_bytes()))
    found = []
    for name in dict.fromkeys(row["task"] for row in probes):
        own = [row for row in probes if row["task"] == name]
        allowed = 2 * own[0]["error"] + 1e-6
        speedups = {tuple(map(Action.parse, row["recipe"])): own[0]["us"] / row["us"] if row["error"] <= allowed else 0.0 for row in own}
        texts = {tuple(map(Action.parse, one["recipe"])): str(one["text"]) for one in prepared.get(name, ())}
        found.append(Kernel(name, speedups, texts))
    return found


def opened(kernel: Kernel, search: str, rng: Random, count: int, prices: Prices) -> tuple[Space[Recipe], Proposer, ModelSearch | None]:
    """Return a kernel's space, a search in it that goes on for `count` evaluations at least, and the same again where it asks a model."""
    space = kernel.space(rng)
    asks: ModelSearch
    cost: dict[str, Any] = {"price_asked": prices.asked, "price_answered": prices.answered}
    if search == "fsr":
        asks = fsr.Fsr(Scripted(kernel, rng), fsr.Options(candidates=2, depth=count, max_repair=2, **cost))
    elif search == "islands":
        asks = islands.Islands(Scripted(kernel, rng), islands.Options(rounds=count, candidates=1, repair=1, **cost))
    else:
        return space, SEARCHES[search](space, rng, 1), None
    return space, asks(space, rng, 1), asks


def steps(kernel: Kernel, search: str, seed: int, count: int, prices: Prices = PRICES["dollars"]) -> Iterator[tuple[float, float]]:
    """Yield, after each of at most `count` evaluations, the dollars spent so far and the best speed-up found."""
    space, proposer, asks = opened(kernel, search, Random(f"{kernel.name} {search} {seed}"), count, prices)
    best, done = 1.0, 0
    evaluated: set[str] = set()
    try:
        asked = next(proposer)
        while done < count:
            records = [kernel.record(space, recipe) for recipe in asked]
            for recipe, record in zip(asked, records, strict=True):
                if recipe:  # the original is a baseline, and timed anyway
                    best, done = max(best, record.speedup), done + 1
                    evaluated.add(record.candidate.key)
                    paid = asks.meter.dollars if asks is not None and asks.meter is not None else 0.0
                    yield len(evaluated) * prices.evaluation + paid, best
            asked = proposer.send(records)
    except StopIteration:
        pass
    finally:
        proposer.close()


def followed(kernel: Kernel, search: str, seed: int, count: int) -> list[float]:
    """Return the best speed-up found after each of `count` evaluations. A search that ends earlier keeps what it has."""
    best = [1.0, *(found for _, found in steps(kernel, search, seed, count))]
    return [*best, *[best[-1]] * count][: count + 1]


def bought(kernel: Kernel, search: str, seed: int, prices: Prices, budgets: Sequence[float]) -> list[float]:
    """Return the best speed-up that a search has found within each budget of dollars."""
    best = [1.0] * len(budgets)
    for spent, found in steps(kernel, search, seed, PROPOSALS, prices):
        best = [found if spent <= budget + 1e-9 else kept for budget, kept in zip(budgets, best, strict=True)]
        if spent > budgets[-1]:
            break
    return best


def paid(found: Sequence[Kernel], searches: Iterable[str], seeds: int, table: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each search: the same mean at equal dollars."""
    prices = PRICES[table]
    budgets = [count * prices.evaluation for count in COUNTS]
    for search in searches:
        lines = [[bought(kernel, search, seed, prices, budgets) for seed in range(seeds)] for kernel in found]
        runs = list(zip(found, lines, strict=True))
        logs = [[_mean([math.log(line[place] / kernel.best) for line in own]) for kernel, own in runs] for place in range(len(budgets))]
        yield {"table": table, "search": search, **{f"for ${budget:.3f}": interval(one) for budget, one in zip(budgets, logs, strict=True)}}


def compared(found: Sequence[Kernel], searches: Iterable[str], seeds: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each search: the geometric mean over kernels and seeds of what it has found, as a share of the best there is; then one for each
    against the first of them, on the same kernels."""
    shares: dict[str, dict[int, list[float]]] = {}
    for search in searches:
        lines = [[followed(kernel, search, seed, max(COUNTS)) for seed in range(seeds)] for kernel in found]
        runs = list(zip(found, lines, strict=True))
        shares[search] = {count: [_mean([math.log(line[count] / kernel.best) for line in own]) for kernel, own in runs] for count in COUNTS}
        best = [line[max(COUNTS)] > 0.99 * kernel.best for kernel, own in runs for line in own]
        means = {f"after {count}": interval(logs) for count, logs in shares[search].items()}
        yield {"table": "comparison", "search": search, **means, f"best found in {max(COUNTS)}": f"{sum(best) / len(best):.0%}"}
    first = next(iter(shares))
    for search, own in list(shares.items())[1:]:
        ratios = {f"after {count}": interval([a - b for a, b in zip(logs, shares[first][count], strict=True)]) for count, logs in own.items()}
        yield {"table": "paired", f"search over {first}": search, **ratios}


def interval(logs: Sequence[float]) -> str:
    """Return the geometric mean of kernels, and where 95 % of the means of as many kernels drawn anew lie."""
    rng = Random(len(logs))
    drawn = sorted(_mean(rng.choices(logs, k=len(logs))) for _ in range(DRAWS))
    mean, low, high = (math.exp(value) for value in (_mean(logs), drawn[DRAWS // 40], drawn[-1 - DRAWS // 40]))
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def space_row(found: Sequence[Kernel]) -> Mapping[str, Any]:
    """Return what the space is."""
    sizes = sorted(len(kernel.speedups) for kernel in found)
    gains = [math.log(kernel.best) for kernel in found]
    steps = {(kernel.name, one[:length]) for kernel in found for one in kernel.speedups for length in range(len(one))}
    unmeasured = sum(recipe not in kernel.speedups for kernel in found for name, recipe in steps if name == kernel.name)
    mean = math.exp(sum(gains) / len(gains))
    return {
        "table": "space", "kernels": len(found), "programs of a kernel": f"{sizes[0]} to {sizes[-1]}", "steps on the way, not measured": unmeasured,
        "geometric mean of the best": f"{mean:.2f}",
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and write its rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=Path, default=MEASURED, help="measured programs (%(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="folder for rows.jsonl")
    parser.add_argument("--seeds", type=int, default=200, help="runs of each search on each kernel (%(default)s)")
    parser.add_argument("--searches", default=",".join(ASKED), help="names joined by commas (%(default)s)")
    options = parser.parse_args(arguments)
    found = kernels(options.rows)
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "rows.jsonl", "w") as file:
        searches = options.searches.split(",")
        dear = (row for table in PRICES for row in paid(found, searches, options.seeds, table))
        for row in itertools.chain([space_row(found)], compared(found, searches, options.seeds), dear):
            print(json.dumps(row), flush=True)
            file.write(json.dumps(row) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
