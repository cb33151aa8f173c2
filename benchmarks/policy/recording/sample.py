"""A drawn sample of KernelBench's levels 1 and 2 for graph_rows, copied to OUT/level1 and OUT/level2.

    python -m benchmarks.policy.recording.sample --kernelbench ~/KernelBench --out OUT [--draw 14,40] [--most 1.25] [--seed 7 --but FOLDER]

Drawn among the tasks whose inputs, outputs and parameters take at most `--most` GB, so that several can be checked in float64 side by side: 34 of
level 1 and 81 of level 2. Each level's tasks are drawn by a seed of their own, whatever is known of them. A second sample, by another `--seed`,
leaves out what the first one's folder has (`--but`).
"""

from __future__ import annotations

import argparse
import shutil
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from benchmarks.kernelbench.first import flat


def gigabytes(file: Path) -> float:
    """Return what a task's inputs, outputs and parameters take; nothing is computed."""
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with torch.device("meta"):
        model = names["Model"](*names["get_init_inputs"]())
        inputs = [x.to("meta") if isinstance(x, torch.Tensor) else x for x in names["get_inputs"]()]
        outputs = model(*inputs)
    return sum(x.nbytes for x in [*flat(inputs), *flat(outputs), *model.parameters()]) / 1e9


def drawn(files: Sequence[Path], count: int, most: float, seed: str = "", but: Collection[str] = ()) -> list[Path]:
    """Return `count` of the files that are small enough; none whose name is in `but`."""
    fitting = [file for file in files if gigabytes(file) <= most and file.name not in but]
    return Random(" ".join(filter(None, [str(len(files)), str(count), seed]))).sample(fitting, min(count, len(fitting)))


def main() -> None:
    """Copy the sample."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kernelbench", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--draw", default="14,40", help="tasks of level 1 and of level 2 (%(default)s)")
    parser.add_argument("--most", type=float, default=1.25, help="GB (%(default)s)")
    parser.add_argument("--seed", default="", help="of another draw")
    parser.add_argument("--but", type=Path, help="folder of a sample whose tasks are not drawn again")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    root = options.kernelbench / "KernelBench" if (options.kernelbench / "KernelBench").is_dir() else options.kernelbench
    for level, count in enumerate(map(int, options.draw.split(",")), 1):
        folder = options.out / f"level{level}"
        folder.mkdir(parents=True, exist_ok=True)
        before = {file.name for file in (options.but / f"level{level}").glob("*.py")} if options.but else set()
        for file in drawn(sorted((root / f"level{level}").glob("*.py")), count, options.most, options.seed, before):
            shutil.copy(file, folder / file.name)


if __name__ == "__main__":
    main()
