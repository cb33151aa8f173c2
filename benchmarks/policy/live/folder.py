"""The folder of tasks that benchmarks/policy/h200.sh takes: KernelBench's that no recording has, and blocks of packages, those that the policy reads.

    python -m benchmarks.policy.live.folder --kernelbench ~/KernelBench --out FOLDER

Of levels 1 and 2 those of at most 1.25 GB (recording/sample.py) that are not in results/policy_large, as FOLDER/tasks; the blocks of
`recording.outside_tasks --second` as FOLDER/outside. Their packages have to be in PYTHONPATH, from where the script takes them (FOLDER/lib):
`pip install --no-deps --target FOLDER/lib antialiased-cnns==0.3 efficientnet-pytorch==0.7.1 geffnet==1.0.2`. A task with a word that the policy never
read is the ladder's, and left out.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import warnings
from pathlib import Path

from benchmarks.policy.recording import graph_rows, outside_tasks, records
from benchmarks.policy.recording.sample import gigabytes

MOST = 1.25
"""GB of a task's inputs, outputs and parameters."""

RECORDED = Path(__file__).parents[2] / "results" / "policy_large"


def unread(file: Path, scaled: bool) -> list[str]:
    """Return the words of a task's program that the policy which ships never read; `scaled`: read as a smaller one."""
    from warpwright.policy.model import SHIPPED, Policy
    from warpwright.policy.search import Asking

    _, space, _ = graph_rows.opened(file, scaled)
    return Policy.load(SHIPPED).unread(Asking(space).program)


def kernelbench(root: Path, out: Path) -> int:
    """Copy the tasks of KernelBench to `out`; return how many there are."""
    recorded = {line.get("task", "") for line in records.read(sorted(RECORDED.glob("kernelbench*.jsonl.gz")))}
    out.mkdir(parents=True, exist_ok=True)
    for level in (1, 2):
        for file in sorted((root / f"level{level}").glob("*.py")):
            copy = out / f"level{level}_{file.stem}.py"
            if copy.stem in recorded or gigabytes(file) > MOST:
                continue
            shutil.copy(file, copy)
            if unread(copy, True):
                copy.unlink()
    return len(list(out.glob("*.py")))


def outside(out: Path) -> int:
    """Write the blocks of packages to `out`; return how many there are."""
    out.mkdir(parents=True, exist_ok=True)
    for name in outside_tasks.SECOND:
        with tempfile.TemporaryDirectory() as folder:
            small = Path(folder) / f"{name}.py"
            small.write_text(outside_tasks.text(name, True))
            if not unread(small, False):
                (out / small.name).write_text(outside_tasks.text(name, False))
    return len(list(out.glob("*.py")))


def main() -> None:
    """Write both folders."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kernelbench", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    root = options.kernelbench / "KernelBench" if (options.kernelbench / "KernelBench").is_dir() else options.kernelbench
    print(f"{kernelbench(root, options.out / 'tasks')} tasks of KernelBench, {outside(options.out / 'outside')} blocks of packages")


if __name__ == "__main__":
    main()
