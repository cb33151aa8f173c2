"""Read the cubins of a folder, wherever they come from: are they read, written byte for byte, legal by the model, and how much may move?

    python -m benchmarks.sass.outside --folder CUBINS --out benchmarks/results/sass_outside      NAME.cubin, with its harness NAME.py or without

Of a cubin without a harness the longest kernel is taken. No GPU is needed; `benchmarks.sass.suite --folder CUBINS` searches them on one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from random import Random
from typing import Any

from warpwright import domains
from warpwright.base import Task
from warpwright.domains.sass import script
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.domains.sass.domain import checker_of, kernel_of
from warpwright.domains.sass.harness import load
from warpwright.domains.sass.model.checker import complaints
from warpwright.search.moves import Moves, Recipe

WALKS, STEPS = 3, 12
"""Random walks of legal edits, each checked by the rules that do not rely on how it was made."""


def main() -> None:
    """Write a row for each cubin."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with (given.out / "rows.jsonl").open("w") as rows:
        for cubin in sorted(given.folder.glob("*.cubin")):
            try:
                row = looked_at(cubin)
            except Exception as error:  # the next cubin is worth a look
                row = {"table": "outside", "kernel": cubin.stem, "error": f"{type(error).__name__}: {error}"[:300]}
            rows.write(json.dumps(row) + "\n")
            rows.flush()
            print(row, flush=True)


def looked_at(cubin: Path) -> dict[str, Any]:
    """Return the row of one cubin."""
    task = task_of(cubin)
    kernel = kernel_of(task)
    checker, space = checker_of(kernel), domains.space(task, "cubin")
    exchanges = space.technique("exchange")
    reached = [walked(Moves(space), seed) for seed in range(WALKS)]
    schedules = [space.replay(recipe) for recipe in reached]
    back = [script.read(script.write(schedule), kernel).words == schedule.words for schedule in schedules]
    return {
        "table": "outside",
        "kernel": cubin.stem,
        "architecture": f"sm_{kernel.cubin.arch}",
        "CUDA's format": "13" if kernel.cubin.flavour[0] == 65 else "12",
        "instructions": len(kernel.words),
        "blocks": len(kernel.blocks),
        "written byte for byte": kernel.original.cubin.data == cubin.read_bytes(),
        "found fault with": len(checker.accepted),
        "exchanges that dependences allow": sum(checker.exchangeable(kernel.original, place) for place in range(len(kernel.words))),
        "legal exchanges": sum(1 for _ in exchanges.sites(space.start)),
        "edits drawn": sum(map(len, reached)),
        "complaints of them": sum(len(complaints(schedule, checker)) for schedule in schedules),
        "texts read back": f"{sum(back)} of {WALKS}",
    }


def task_of(cubin: Path) -> Task:
    """Return the task of a cubin: of its harness's kernel, or of its longest one."""
    harness = cubin.with_suffix(".py")
    if harness.exists():
        task = domains.describe(cubin, {"harness": str(harness), "kernel": load(harness).kernel})
    else:
        read = Cubin(cubin.read_bytes())
        task = domains.describe(cubin, {"kernel": max(read.kernels, key=lambda name: read.code(name).size)})
    return task


def walked(moves: Moves, seed: int) -> Recipe:
    """Return a random walk of legal edits."""
    return moves.walk(Random(seed), STEPS)


if __name__ == "__main__":
    main()
