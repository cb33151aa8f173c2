"""The folder of tasks that benchmarks/policy/h200.sh takes: KernelBench's that no recording has, and blocks of packages.

    python -m benchmarks.policy.live.folder --kernelbench ~/KernelBench --out FOLDER

Of levels 1 and 2 those of at most 1.25 GB (recording/sample.py) that are not in results/policy_large, all of whose words the policy has read, and
that the evaluator gives a score (not where its check accepts a constant, say), as FOLDER/tasks; the blocks of `recording.outside_tasks --third` as
FOLDER/third, of `--fourth` and `--fifth` likewise. Their packages have to be in PYTHONPATH, from where the script takes them (FOLDER/lib):
`pip install --no-deps --target FOLDER/lib julius==0.2.8 nflows==0.14 rtdl_num_embeddings==0.0.12 unet==0.8.1 pytorchcv==0.0.74 piqa==1.3.2
normflows==1.7.3 torchsr==1.0.4 torchgan==0.1.0 monotonicnetworks==1.5.1`.
"""

from __future__ import annotations

import argparse
import shutil
import warnings
from collections.abc import Collection
from pathlib import Path

from benchmarks.policy.recording import graph_rows, outside_tasks, records
from benchmarks.policy.recording.sample import gigabytes

MOST = 1.25
"""GB of a task's inputs, outputs and parameters."""

RECORDED = Path(__file__).parents[2] / "results" / "policy_large"


def unread(file: Path) -> list[str]:
    """Return the words of a task's program, read as a smaller one, that the policy which ships never read."""
    from warpwright.policy.model import SHIPPED, Policy
    from warpwright.policy.search import Asking

    _, space, _ = graph_rows.opened(file, True)
    return Policy.load(SHIPPED).unread(Asking(space).program)


def kernelbench(root: Path, out: Path) -> int:
    """Copy the tasks of KernelBench to `out`; return how many there are."""
    recorded = {line.get("task", "") for line in records.read(sorted(RECORDED.glob("kernelbench*.jsonl.gz")))} | records.unscored()
    out.mkdir(parents=True, exist_ok=True)
    for level in (1, 2):
        for file in sorted((root / f"level{level}").glob("*.py")):
            copy = out / f"level{level}_{file.stem}.py"
            if copy.stem in recorded or gigabytes(file) > MOST:
                continue
            shutil.copy(file, copy)
            if unread(copy):
                copy.unlink()
    return len(list(out.glob("*.py")))


def outside(names: Collection[str], out: Path) -> int:
    """Write the blocks of packages to `out`; return how many there are."""
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        (out / f"{name}.py").write_text(outside_tasks.text(name, False))
    return len(names)


def main() -> None:
    """Write both folders."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kernelbench", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    root = options.kernelbench / "KernelBench" if (options.kernelbench / "KernelBench").is_dir() else options.kernelbench
    blocks = [outside(names, options.out / folder) for folder, names in outside_tasks.SETS.items() if folder != "second"]
    print(f"{kernelbench(root, options.out / 'tasks')} tasks of KernelBench, {', '.join(map(str, blocks))} blocks of packages")


if __name__ == "__main__":
    main()
