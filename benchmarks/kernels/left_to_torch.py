"""What the first program of a task leaves to torch: which calls, and what share of the estimated time they are. On a CPU, without weights or a GPU.

    python -m benchmarks.kernels.left_to_torch --kernelbench KB [--levels 1,2,3] [--models bert,t5] --out OUT [--minutes 8]

Each task is captured on the meta device, the ladder asked for its first proposal for a GPU, and the calls of that program that are no kernels of
ours are summed by kind: by the cost model's seconds at an H200's rates without launches ("work"), and by their number. rows.jsonl has a row a task,
with the seconds of the processor that reading and planning took on this machine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernelbench.first import first, found
from benchmarks.third_party import EVERY, in_order
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.ir import foldable
from warpwright.run import Settings, open_space
from warpwright.tasks.modules import saved_module


def row_of(file: Path, name: str) -> dict[str, Any]:
    """Return the row of one task file."""
    began = time.process_time()
    space = open_space(Settings(device="cuda").describe(file), "cuda")
    read = time.process_time() - began
    if space.limited:
        return {"task": name, "reason": space.limited[:300], "read s": round(read, 2)}
    recipe = next(iter(first(space, 1, ("compile(",))), ())
    planned = time.process_time() - began - read
    source = space.candidate(recipe).source.text
    written = time.process_time() - began - read - planned
    ir = space.replay(recipe)
    rates = replace(cost_model.RATES["cuda"], launch=0.0)
    row: dict[str, Any] = {"task": name, "recipe": "; ".join(map(str, recipe))[-300:], "read s": round(read, 2), "planned s": round(planned, 2)}
    if not hasattr(ir, "graph"):
        return row | {"reason": "in parts"}
    folded = foldable(ir.graph) if ir.scheduled("fold_parameters") is not None else set()
    calls = [node for node in ir.graph.nodes if node.op == "call_function" and node not in folded and cost_model.launches(node)]
    work: dict[str, float] = defaultdict(float)
    count: Counter[str] = Counter()
    for node in calls:
        kind = f"ours: {type(node.target).__name__}" if hasattr(node.target, "python_text") else _named(node.target)
        work[kind] += 1e6 * cost_model.call_seconds(node, rates)
        count[kind] += 1
    most = {kind: round(us, 2) for kind, us in sorted(work.items(), key=lambda one: -one[1])}
    row |= {"written s": round(written, 2), "characters": len(source), "us": most}
    return row | {"calls": dict(count)}


def _named(target: Any) -> str:
    return getattr(getattr(target, "overloadpacket", target), "__name__", str(target))


def main() -> None:
    """Write a row a task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--levels", default="1,2,3")
    parser.add_argument("--models", default="", help="of third_party.EVERY: names, or all; with commas between")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--minutes", type=float, default=8.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder, (options.out / "rows.jsonl").open("a") as out:
        for name in filter(None, options.models.split(",")) if options.models != "all" else EVERY:
            if time.monotonic() > end:
                break
            _write(out, name, lambda name=name: _saved(name, Path(folder)))
        numbers = range(1, 101) if options.kernelbench else ()
        for level in options.levels.split(","):
            for number in numbers:
                for file in found(options.kernelbench, f"{level}:{number}"):
                    if time.monotonic() < end:
                        _write(out, f"{level}:{file.stem}", lambda file=file: file)


def _saved(name: str, folder: Path) -> Path:
    torch.manual_seed(0)
    model, inputs = EVERY[name]()
    saved_module.write(model.eval(), in_order(model, inputs), folder / f"{name}.pt")
    return folder / f"{name}.pt"


def _write(out: Any, name: str, file: Any) -> None:
    try:
        row = row_of(file(), name)
    except Exception as error:  # one task must not end the others
        row = {"task": name, "failed": f"{type(error).__name__}: {error}"[:300]}
    out.write(json.dumps({"table": "left to torch", **row}) + "\n")
    out.flush()
    print(row, flush=True)


if __name__ == "__main__":
    main()
