"""How the cost of optimising grows with a program's graph, 10 to 1,000 nodes: seconds of a core and peak memory of capture, search and lowering.

    python -m benchmarks.kernels.graph_sizes --out OUT [--sizes 10,30,100,300,1000] [--target cuda] [--optimize "300s,2 proposals" --device cuda]

The program is a chain of residual blocks (layer norm, product, gelu, product, sum; with attention of its own every fourth), small in every dimension,
so that what is measured is the compiler. Each size has a process of its own. "capture" reads it, "search" makes the ladder's first two recipes,
"lower" writes their programs: none of them runs anything on the target. With `--optimize` the whole command runs as well, on a device.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

TASK = """
import torch

class Block(torch.nn.Module):
    def __init__(self, attends):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(64), torch.nn.Linear(64, 128), torch.nn.Linear(128, 64)
        self.attends = attends

    def forward(self, x):
        y = self.norm(x)
        if self.attends:
            y = torch.softmax(y @ y.transpose(1, 2) / 8.0, -1) @ y
        return x + self.down(torch.nn.functional.gelu(self.up(y)))

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(number % 4 == 3) for number in range(BLOCKS))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

def get_inputs():
    return [torch.rand(4, 32, 64)]

def get_init_inputs():
    return []
"""

NODES = 6.25
"""Of a block, in the mean."""


def task_text(nodes: int) -> str:
    """Return a task of about so many nodes."""
    return TASK.replace("BLOCKS", str(max(1, round(nodes / NODES))))


def planned(file: Path, target: str) -> dict[str, Any]:
    """Return what reading, searching and writing take, in this process."""
    import torch

    from benchmarks.kernelbench.first import first
    from warpwright.run import Settings, open_space

    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    before, marks = _peak(), [(time.process_time(), time.monotonic())]

    def mark() -> None:
        marks.append((time.process_time(), time.monotonic()))

    space = open_space(Settings(device=target).describe(file), target)
    mark()
    recipes = first(space, 2, ("compile(",), target=target)
    mark()
    texts = [space.lower(space.replay(recipe), recipe).source.text for recipe in recipes]
    mark()
    row: dict[str, Any] = {"nodes": sum(node.op == "call_function" for node in space.start.graph.nodes), "target": target}
    for name, (begun, _), (ended, _) in zip(("capture", "search", "lower"), marks, marks[1:], strict=False):
        row[f"{name} s of a core"] = round(ended - begun, 2)
    row |= {"all, wall s": round(marks[-1][1] - marks[0][1], 2), "memory MB": round(_peak() - before)}
    recipe = "; ".join(map(str, recipes[0]))[-90:] if recipes else "none"
    return row | {"text KB": round(max(map(len, texts), default=0) / 1e3), "recipe": recipe}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def optimized(file: Path, device: str, budget: str) -> dict[str, Any]:
    """Return what the whole command takes, and comes to."""
    from warpwright.archive import Archive
    from warpwright.bench import Job, run_job
    from warpwright.run import Settings, kind_of_machine

    began = time.monotonic()
    archive = file.with_name("archive.db")
    with Archive(archive):
        pass
    settings = Settings(device, "ladder", budget, ("eager",), timing_seconds=2.0, budget_of="all")
    line = run_job(Job(str(file), settings, str(archive), kind_of_machine(device)).to_json())
    speedup = (line.get("speedup") or {}).get("best")
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    said = {"optimize s": round(time.monotonic() - began, 1), "largest worker MB": round(children), "verdict": line["verdict"]}
    return said | {"status": line["status"], "speedup": speedup and round(speedup, 2), "stopped": line.get("stopped", "")[:80]}


def main() -> None:
    """Write rows.jsonl: a row a size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", default="10,30,100,300,1000")
    parser.add_argument("--target", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--optimize", default="", help="budget of the whole command on a device, such as '300s,2 proposals'")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, f"chain_{options.one}.py")
            file.write_text(task_text(options.one))
            row = planned(file, options.target)
            print(json.dumps(row | (optimized(file, options.device, options.optimize) if options.optimize else {})))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "rows.jsonl").open("a") as out:
        for size in options.sizes.split(","):
            given = ["--out", str(options.out), "--one", size, "--target", options.target, "--device", options.device, "--optimize", options.optimize]
            ended = subprocess.run([sys.executable, "-m", "benchmarks.kernels.graph_sizes", *given], capture_output=True, text=True, check=False)
            lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
            row = json.loads(lines[-1]) if lines else {"asked": int(size), "reason": ended.stderr.strip()[-300:]}
            out.write(json.dumps({"table": "graph_sizes", **row}) + "\n")
            out.flush()
            print(row, flush=True)


if __name__ == "__main__":
    main()
