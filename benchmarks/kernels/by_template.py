"""What share of an H200's peaks each template reaches, from recorded first programs of KernelBench's level 1: one call or two a task. Needs no GPU.

    python -m benchmarks.kernels.by_template --kernelbench KB --out OUT

The times are those of benchmarks/results/kernelbench_whole_h200 (of a task that ran again, the latest run's, beside the least time that any run has
of each baseline), and of benchmarks/results/memory_bound_h200, which is later, for the tasks that it has. Bytes are those that every correct program
has to move, inputs and parameters read once and results written once, and operations those of products and convolutions as written, both from the
task's graph on the meta device. A row a task, in OUT/rows.jsonl, under its template.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

from benchmarks.kernelbench.first import found
from benchmarks.kernelbench.first_table import BASELINES, is_right

RUNS = ("int8: first", "mended: first", "first")
"""Tables of strict first programs, the latest first."""
MEASURED = ("memory-bound", "memory-bound-3")
"""Tables of results/memory_bound_h200: versions beside one another, and again after the last changes."""
COPY, CACHED = 4.22e12, 64e6
"""Bytes a second that a copy moved in the runs of results/streams_h200; below so many bytes a task's tensors stay in L2 from call to call."""
FLOPS_A_BYTE = 12.0
"""Operations a byte from which on a task is not bound by memory: cuBLAS's float32 does 51 TFLOP/s."""
TEMPLATES = (
    ("INT8 slices", "int8_slices"), ("three TF32 products", "tf32x3"), ("implicit convolution", "implicit_convolution"),
    ("direct convolution", "direct_convolution"), ("float16 convolution of cuDNN's", "half_convolutions"), ("windows", "windows_cuda"),
    ("scans", "scans_cuda"), ("attention", "flash"), ("fused", "fuse_cuda"),
)  # fmt: skip
"""Template, and the technique that is in its recipes; the first that fits."""


def template_of(recipe: str) -> str:
    """Return the template that does most of a recipe's work."""
    return next((name for name, technique in TEMPLATES if technique in recipe), "rewritten, by the library")


def timed(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return of each task of level 1 the fastest right program of its latest run, and the least time of each baseline in any run."""
    chosen: dict[str, dict[str, Any]] = {}
    for run in RUNS:
        for row in (row for row in rows if row.get("table") == run and row["task"].startswith("level1_") and "ours ms" in row and is_right(row)):
            known = chosen.get(row["task"])
            if known is None or (known["run"] == run and row["ours ms"] < known["ours ms"]):
                chosen[row["task"]] = {"run": run, "recipe": row["recipe"], "ours ms": row["ours ms"]}
    for task, one in chosen.items():
        own = [row for row in rows if row.get("task") == task and row.get("table") in RUNS]
        for name in (f"{baseline} ms" for baseline in BASELINES):
            times = [row[name] for row in own if name in row]
            one |= {name: min(times)} if times else {}
    return chosen


def measured_since(chosen: dict[str, dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """Put times of results/memory_bound_h200 in the place of older ones: of a case "1:N ..." the fastest of its versions, no variants of them."""
    for task, one in chosen.items():
        of_task = [row for row in rows if row.get("table") in MEASURED and row["case"].startswith(f"1:{task.split('_')[1]} ")]
        versions = [row for row in of_task if row["version"] in ("before", "now")]
        if versions:
            best = min(versions, key=lambda row: row["us"])
            eager = min(best["eager us"] / 1e3, one.get("eager ms", float("inf")))
            one |= {"run": "memory-bound", "recipe": best["action"], "ours ms": round(best["us"] / 1e3, 4), "eager ms": round(eager, 4)}


def work(file: Path) -> tuple[float, float]:
    """Return the bytes and the operations of a task."""
    from warpwright.domains.graph.costs import cost_model
    from warpwright.domains.graph.ir import is_tensor, placeholders, value
    from warpwright.run import Settings, open_space

    ir = open_space(Settings(device="cuda").describe(file), "cuda").start
    given = (node for kind in ("input", "state") for node in placeholders(ir, kind))
    moved = sum(value(node).nbytes for node in (*given, *ir.results) if is_tensor(node))
    return float(moved), sum(cost_model.operations_of(node)[1] for node in ir.graph.nodes if node.op == "call_function")


def row_of(task: str, one: dict[str, Any], moved: float, operations: float) -> dict[str, Any]:
    """Return a task's row."""
    seconds = 1e-3 * one["ours ms"]
    of_memory = operations < FLOPS_A_BYTE * moved
    table = "cached" if of_memory and moved < CACHED else "memory" if of_memory else "arithmetic"
    of_peak = {"GB/s": round(moved / seconds / 1e9), "of copy": round(moved / seconds / COPY, 3)}
    shown = of_peak if of_memory else {"TFLOP/s": round(operations / seconds / 1e12, 1)}
    best = min(one[f"{name} ms"] for name in BASELINES if f"{name} ms" in one)
    times = {name: one.get(name, "") for name in ("ours ms", *(f"{baseline} ms" for baseline in BASELINES))}
    name = {"table": table, "template": template_of(one["recipe"]), "task": task.removeprefix("level1_")}
    return {**name, "MB": round(moved / 1e6, 1), **shown, **times, "of best": round(best / one["ours ms"], 2)}


def _recorded(name: str) -> list[dict[str, Any]]:
    """Return the rows of a result."""
    return [json.loads(line) for line in (Path(__file__).parents[1] / "results" / name / "rows.jsonl").read_text().splitlines()]


def main() -> None:
    """Write rows.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = timed([row for row in _recorded("kernelbench_whole_h200") if "task" in row])
    measured_since(chosen, _recorded("memory_bound_h200"))
    rows = []
    for task, one in chosen.items():
        [file] = found(options.kernelbench, f"1:{task.split('_')[1]}")
        rows.append(row_of(task, one, *work(file)))
    rows.sort(key=lambda row: (row["table"], row["template"], int(row["task"].partition("_")[0])))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
