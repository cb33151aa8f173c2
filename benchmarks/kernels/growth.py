"""How the cost of optimising grows with the size of a program: 10 to 1,000 calls. Needs no GPU.

    python -m benchmarks.kernels.growth --out OUT [--sizes 10,30,100,300,1000] [--targets cpu,cuda] [--whole]

A program is a residual network of linear layers, norms, activations and element-wise chains, cut off at so many calls; each is read in a process of
its own. A row has the seconds until the space is open (reading and exporting the program), until the ladder has its first proposal, until it has
PROPOSALS (each answered at once, as if it gained what the estimate says), and for writing the last one's file; and the most memory that the process
held. With --whole a row more: a whole `warpwright optimize` on this CPU, verified and timed, of two proposals.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROPOSALS = 6
SECONDS = 600.0
"""For one program."""

TASK = """import torch
from torch import nn
from torch.nn import functional as F

CALLS = {calls}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        blocks = CALLS // 8 + 1
        self.first = nn.ModuleList(nn.Linear(64, 96) for _ in range(blocks))
        self.second = nn.ModuleList(nn.Linear(96, 64) for _ in range(blocks))
        self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(blocks))

    def forward(self, x):
        left = CALLS
        for norm, first, second in zip(self.norms, self.first, self.second):
            for step in (norm, first, F.gelu, second, lambda y: y * 0.5, torch.tanh, lambda y: y + x, torch.relu):
                if not left:
                    return x
                y = step(x if step is norm else y)
                left -= 1
            x = y
        return x


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
"""


def main() -> None:
    """Write rows.jsonl, a program after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", default="10,30,100,300,1000")
    parser.add_argument("--targets", default="cuda,cpu")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("FILE", "TARGET"), help="read one program in this process, and print its row")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(Path(options.one[0]), options.one[1])))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    kinds = [*options.targets.split(","), *(["whole"] if options.whole else [])]
    with (options.out / "rows.jsonl").open("a") as rows, tempfile.TemporaryDirectory() as folder:
        for calls in map(int, options.sizes.split(",")):
            file = Path(folder) / f"calls_{calls}.py"
            file.write_text(TASK.replace("{calls}", str(calls)))
            for kind in kinds:
                row = {"table": "growth", "asked": calls, **(whole(file, folder) if kind == "whole" else apart(file, kind))}
                rows.write(json.dumps(row) + "\n")
                rows.flush()
                print(row, flush=True)


def apart(file: Path, target: str) -> dict[str, Any]:
    """Return the row of a program that is read in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.kernels.growth", "--out", ".", "--one", str(file), target]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"target": target, "problem": f"not done in {SECONDS:g} s"}
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if done.returncode == 0 and lines else {"target": target, "problem": done.stderr[-300:]}


def one(file: Path, target: str) -> dict[str, Any]:
    """Return the row of a program that is read here."""
    from benchmarks.kernelbench.first import first
    from warpwright.run import Settings, open_space

    times = [time.process_time()]
    space = open_space(Settings(device=target).describe(file), target)
    times.append(time.process_time())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    early = first(space, 1, (), target=target)
    times.append(time.process_time())
    recipes = first(space, PROPOSALS, (), 2 * PROPOSALS, target) or early
    times.append(time.process_time())
    if recipes:
        space.lower(space.replay(recipes[-1]), recipes[-1])
    times.append(time.process_time())
    open_, first_, all_, lower_ = (round(b - a, 2) for a, b in itertools.pairwise(times))
    calls = sum(node.op == "call_function" for node in space.start.graph.nodes)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "target": target, "calls": calls, "open s": open_, "first proposal s": first_, "proposals": len(recipes), "proposals s": all_,
        "write s": lower_, "read MB": before // 1024, "most MB": most // 1024,
    }  # fmt: skip


def whole(file: Path, folder: str) -> dict[str, Any]:
    """Return the row of a whole run on this CPU."""
    began = time.perf_counter()
    archive = str(Path(folder) / f"{file.stem}.db")
    command = [
        sys.executable, "-m", "warpwright", "optimize", str(file), "--target", "cpu", "--budget", "300s,2 proposals", "--baselines", "eager,compile",
        "--archive", archive, "--out", str(Path(folder) / "best.py"), "--json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    try:
        line = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        line = {"status": done.stderr[-300:]}
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    found = {name: line.get(name) for name in ("status", "verdict")}
    return {"target": "cpu, whole", "seconds": round(time.perf_counter() - began, 1), "most MB of a process so far": most // 1024, **found}


if __name__ == "__main__":
    main()
