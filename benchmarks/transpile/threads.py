"""Whether the kernels of speed.py give with two threads of the machine what they give with one.

    python -m benchmarks.transpile.threads [--threads 2] [--optimise -O3] [--only REGEX] [--out rows.jsonl]

Each count of threads is a process of its own (OMP_NUM_THREADS), on the same inputs. A row a kernel: `equal` (to the bit), `rounding` (within
LARGEST_ERROR of the largest value: a kernel that adds to memory atomically, the order of whose sums is that of the blocks) or `differs`.
Ends with 1 if a kernel differs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.transpile import speed_works
from benchmarks.transpile.speed import HERE, LARGEST_ERROR, SOURCES, ready
from warpwright import native
from warpwright.domains import transpile


def outputs(only: str, level: str, into: Path) -> None:
    """Run each kernel once and keep what it writes in `into`, one file a kernel: a cut run keeps what it had."""
    works = [work for work in speed_works.works() if re.search(only, work.name)]
    blocks = {(work.kernel or work.name).partition("<")[0]: work.block for work in works}
    flags = [level if flag == "-O3" else flag for flag in native.FLAGS]
    kernels: dict[str, transpile.LoadedKernel] = {}
    for source, (_, instances) in SOURCES.items():
        text = (HERE / f"{source}.cu").read_text()
        if any(f" {name}(" in text for name in blocks):
            program = transpile.compile_text(text, f"{source}.cu", instances=instances, blocks=blocks)
            loaded = program.load(flags)
            kernels |= {name: loaded[name] for name in program.exports}
    for work in works:
        ready(work)
        kernels[work.kernel or work.name][work.grid, work.block, work.shared](*work.arguments)
        np.save(into / f"{work.name} {work.size}.npy".replace("/", "_"), work.output)


def verdict(one: np.ndarray, other: np.ndarray) -> tuple[str, float]:
    """Return how two outputs compare, and the largest difference over the largest value."""
    if np.array_equal(one, other, equal_nan=True):
        return "equal", 0.0
    error = float(np.abs(one.astype(np.float64) - other).max()) / max(1.0, float(np.abs(one).max()))
    return ("rounding" if one.dtype.kind == "f" and error < LARGEST_ERROR else "differs"), error


def main() -> int:
    """Print a row a kernel and how many agree; return 1 if one differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--optimise", default="-O3")
    parser.add_argument("--only", default="", help="a regular expression of kernels' names")
    parser.add_argument("--out", type=Path, help="also write the rows here")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.into is not None:
        outputs(given.only, given.optimise, given.into)
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folders = {count: Path(folder) / str(count) for count in (1, given.threads)}
        for count, into in folders.items():
            into.mkdir()
            command = [sys.executable, "-m", "benchmarks.transpile.threads", f"--only={given.only}", f"--optimise={given.optimise}", f"--into={into}"]
            subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": str(count)})
        for file in sorted(folders[1].iterdir()):
            said, error = verdict(np.load(file), np.load(folders[given.threads] / file.name))
            rows.append({"table": "threads", "kernel": file.stem, "threads": given.threads, "verdict": said, "difference": error})
            print(f"{said:9} {error:9.2g} {file.stem}", flush=True)
    if given.out is not None:
        given.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    differ = [row["kernel"] for row in rows if row["verdict"] == "differs"]
    print(f"{len(rows)} kernels: {sum(row['verdict'] == 'equal' for row in rows)} equal, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
