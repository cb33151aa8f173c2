"""Action data of the twenty plain kernels: what an H200 measured, as rows that `warpwright train` reads.

    python -m benchmarks.policy.recording.plain_rows [--out configs/plain_cuda_h200.jsonl]

The rows "probe" of results/plain_cuda_h200 hold the time and the error of each program that was built for a kernel there; a program that errs more
than twice as much as the text as given is `wrong`. A kernel's words are those of its CUDA text. Its place under the roof: the bytes of inputs and
outputs at the H200's measured rate of copying (results/fused_kernels_h200), over the time of the text as given. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.cuda.plain import Plain
from benchmarks.cuda.plain20 import KERNELS
from warpwright.base import Action, digest
from warpwright.learn.policy import rows
from warpwright.learn.policy.rows import Row
from warpwright.policy.words import text_words

RESULTS = Path(__file__).parents[2] / "results"
OUT = Path(__file__).parents[3] / "configs" / "plain_cuda_h200.jsonl"
MACHINE = "NVIDIA H200"


def copy_rate() -> float:
    """Return the bytes a second that copying moves on the H200."""
    lines = [json.loads(line) for line in (RESULTS / "fused_kernels_h200" / "rows.jsonl").read_text().splitlines()]
    return float(next(line["copy GB/s"] for line in lines if line.get("table") == "conditions")) * 1e9


def moved_bytes(kernel: Plain) -> int:
    """Return the bytes of a kernel's inputs and outputs at its sizes on a GPU; no tensor is filled."""
    names: dict[str, Any] = {}
    with torch.device("meta"):
        exec(compile(kernel.task_text("cuda"), kernel.name, "exec"), names)
        inputs = names["get_inputs"]()
        outputs = names["reference"](*inputs)
    flat = [one for one in [*inputs, *(outputs if isinstance(outputs, tuple | list) else [outputs])] if isinstance(one, torch.Tensor)]
    return sum(one.numel() * one.element_size() for one in flat)


def made() -> Iterator[Row]:
    """Yield the rows of all kernels."""
    lines = [json.loads(line) for line in (RESULTS / "plain_cuda_h200" / "rows.jsonl").read_text().splitlines()]
    probes = [line for line in lines if line.get("table") == "probe" and "us" in line]
    rate = copy_rate()
    for kernel in KERNELS:
        own = [line for line in probes if line["task"] == kernel.name]
        allowed, original = 2 * own[0]["error"] + 1e-6, own[0]["us"] / 1e6
        places = {action.at for line in own for action in map(Action.parse, line["recipe"]) if action.at}
        program = text_words(kernel.cuda, places)
        roof = moved_bytes(kernel) / rate / original
        for line in own:
            seconds, right = line["us"] / 1e6, line["error"] <= allowed
            about = (kernel.name, digest(kernel.cuda), MACHINE, program, round(roof, 4), tuple(line["recipe"]))
            yield Row(*about, "ok" if right else "wrong", round(original / seconds, 4) if right else 0.0, 0.0, 0.0, seconds, original)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="file of rows (%(default)s)")
    options = parser.parse_args(arguments)
    found = list(made())
    rows.write(options.out, found)
    print(f"{len(found)} rows of {len({row.task for row in found})} kernels in {options.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
