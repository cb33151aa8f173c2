"""What a judge's work costs on a GPU that nobody else uses: the parts of an answer in float64 and of a comparison, task by task.

    python -m benchmarks.kernelbench.judge_cost --kernelbench KB --tasks 1:62,1:8,2:71,2:90,3:32 --limit 25 --out OUT [--device cpu --scale 0.001]

One row a task in OUT/rows.jsonl: milliseconds, medians of REPEATS calls that end with a synchronisation, the memory's allocator warm.

    inputs      the inputs of a case, drawn on the device       own      the original in its own precision
    wide        the original in float64                         rounded  the same with operands rounded to TF32, where the flags permit that
    sizes       the answer's scale, its parts and the original's errors beside it (a leaf without its runs)
    anew        an answer that is worked out for the first time: all of these
    again       one that was forgotten: its inputs and its float64 values
    compared    an output judged by an answer that is at hand
    tried       one case of the certificate
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernelbench.first import found, name_of
from warpwright.base import Case
from warpwright.run import Settings
from warpwright.verifier.judge.certificate import certify
from warpwright.verifier.judge.judgement import Judgement
from warpwright.verifier.judge.original import tf32
from warpwright.verifier.judge.original.answers import as_tensor, leaves_of
from warpwright.verifier.judge.original.reference import Original

REPEATS = 5
SECRET = 20261129
BUDGET_BYTES = 12 << 30


def main() -> None:
    """Write a row for each task until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", required=True, type=Path)
    parser.add_argument("--tasks", required=True, help="level:number pairs or files, comma-separated")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which no task is begun")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.limit
    with (options.out / "rows.jsonl").open("a") as out:
        for file in (file for name in options.tasks.split(",") for file in found(options.kernelbench, name)):
            if time.monotonic() > end:
                break
            row = row_of(file, options.device, options.scale)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(row, flush=True)


def row_of(file: Path, device: str, scale: float) -> dict[str, Any]:
    """Return the row of a task."""
    task = Settings(device=device.partition(":")[0], scale=scale).describe(file)
    original = Original(task, device, SECRET, BUDGET_BYTES)
    original.mutates_state = original.mutates_inputs = False
    judgement, seeds = Judgement(original), iter(range(1, 1 << 20))
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None

    def milliseconds(call: Callable[[], object], repeats: int = REPEATS) -> float:
        seen = []
        for _ in range(repeats + 1):
            wait()
            began = time.perf_counter()
            call()
            wait()
            seen.append(time.perf_counter() - began)
        return round(1e3 * statistics.median(seen[1:]), 2)

    def case() -> Case:
        return Case("nominal", next(seeds))

    with torch.no_grad():
        one = case()
        inputs, answer = original.inputs(one), original.answer(one, 0)
        own = original.run_own(inputs, 0)
        exact = [as_tensor(value) for _, value in leaves_of(original.run_wide(inputs, 0))]
        leaves = [(path, value, wide) for (path, value), wide in zip(leaves_of(own), exact, strict=True)]
        rounding = tf32.RoundedOperands(tf32.permitted())
        row: dict[str, Any] = {"table": "judge", "task": name_of(file), "device": device, "torch": torch.__version__}
        row["answer MB"] = round(answer.bytes / 1e6, 1)
        row["inputs ms"] = milliseconds(lambda: original.inputs(case()))
        row["own ms"] = milliseconds(lambda: original.run_own(inputs, 0))
        row["wide ms"] = milliseconds(lambda: original.run_wide(inputs, 0))
        row["rounded ms"] = milliseconds(lambda: original.run_wide(inputs, 0, rounding)) if original.may_use_tf32 else 0.0
        row["sizes ms"] = milliseconds(lambda: [original._leaf(*leaf) for leaf in leaves])
        row["anew ms"] = milliseconds(lambda: original.answer(case(), 0))

        def again() -> None:
            original.answers.clear()
            original.answer(one, 0)

        row["again ms"] = milliseconds(again)
        values = [value for _, value in leaves_of(own)]
        row["compared ms"] = milliseconds(lambda: judgement.judge(values, one, 0))
        row["tried ms"] = milliseconds(lambda: certify(original, (one, case()), judgement.check, advisory=False), 1)
    if device.startswith("cuda"):
        row["gpu"] = torch.cuda.get_device_name()
        torch.cuda.empty_cache()
    return row


if __name__ == "__main__":
    main()
