"""Which KernelBench tasks have operators in which their own flags permit TF32, and whose verdict changes for it?

    python -m benchmarks.kernelbench.tf32 --kernelbench ~/KernelBench --levels 2 --out /tmp/tf32
    python -m benchmarks.kernelbench.tf32 --kernelbench ~/KernelBench --device cuda:0 --only 21,57,67,69,71,73,82,85,87,92 --limit 80 --out $OUT
    python -m benchmarks.kernelbench.tf32 --kernelbench ~/KernelBench --device cuda:0 --without 21,57,67,69 --jobs 10 --limit 85 --out $OUT
    python -m benchmarks.kernelbench.tf32 --kernelbench ~/KernelBench --device cpu --scale 0.05 --only 71,82 --jobs 2 --out /tmp/dry

Without a device, tasks are run on the meta device, and a row lists the operators. With one, the judge's own code works out the error allowed to a
task under the rule (docs/trust.md, claim 2) and without it, and eager, eager with TF32 products and torch.compile are judged by both: `before` and
`now` say whether each may be a baseline. An error of half of what is allowed now is TF32's own, one far below it float32's: "units" says so of
each, which is why a task changes or does not. Times are medians of plain calls, for orientation; with `--jobs` those of a GPU that others use.
Tasks without such an operator, where the rule has nothing to say, are left out; the smallest come first, and what found no memory beside others
is tried beside fewer.
On a CPU, which has no TF32 unit, operands are rounded instead, so that every path of the script can be run without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from warpwright import bench
from warpwright.base import Case, Task
from warpwright.tasks import taskfile
from warpwright.tasks.mode import Mode
from warpwright.timing.facts import device_facts
from warpwright.verifier.judge.judgement import judge_leaf
from warpwright.verifier.judge.original import tf32
from warpwright.verifier.judge.original.answers import Answer, as_tensor, leaves_of
from warpwright.verifier.judge.original.precisions import Rounding
from warpwright.verifier.judge.original.reference import Original

CASES = ("nominal", "normal", "spikes")
CALLS = 20
TF32_SHARE = 0.05
"""Of what is allowed where TF32 is: a program that errs by more has used it (half is TF32's own error, float32's is a thousandth of that)."""


class Counting(Mode):
    """Counts the operators in which this process's flags permit TF32, and keeps the size of the largest tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.permitted, self.seen, self.largest = tf32.permitted(), Counter[str](), 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        name = function.overloadpacket.__name__
        self.seen[name] += name in self.permitted
        result = function(*arguments, **(keywords or {}))
        self.largest = max(self.largest, *(one.numel() for one in tree_leaves(result) if isinstance(one, torch.Tensor)), 0)
        return result


def operators(task: Task) -> tuple[dict[str, int], int]:
    """Return the operators of a task in which its flags permit TF32, run on the meta device, and the elements of its largest tensor."""
    reference = taskfile.load(task)
    model, inputs = reference.make_meta_model(), reference.make_inputs(0, "meta")
    with torch.no_grad(), torch.device("meta"), Counting() as counting:
        taskfile.call(task.path, "forward", lambda: model(*inputs))
    return {name: count for name, count in counting.seen.items() if count}, counting.largest


def excess_of(answer: Answer, output: Any) -> tuple[float, str]:
    """Return the largest ratio of an output's error to what is allowed, and the check that it fails, or ""."""
    found = [judge_leaf(as_tensor(value), leaf) for (_, value), leaf in zip(leaves_of(output), answer.leaves, strict=True)]
    worst = max(found, key=lambda one: float(one["excess"]))
    return float(worst["excess"]), next((str(one["check"]) for one in found if one["check"]), "")


def answers(original: Original, case: Case, permit: bool) -> Answer:
    """Return the answer to a case under the rule, or without it."""
    original.may_use_tf32 = permit
    original.answers.clear()
    original.usual.clear()
    return original.answer(case, 0)


def programs(original: Original) -> dict[str, Callable[..., Any]]:
    """Return what is judged: eager, eager with TF32 products and torch.compile; on a CPU eager with rounded operands in place of the last two."""

    def with_products(*inputs: Any) -> Any:
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return original.model(*inputs)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    def rounded(*inputs: Any) -> Any:
        with Rounding():
            return original.model(*inputs)

    if original.device.startswith("cuda"):
        return {"eager": original.model, "eager_tf32": with_products, "compile": torch.compile(original.model)}
    return {"eager": original.model, "rounded": rounded}


def median_seconds(program: Callable[..., Any], inputs: Any, device: str) -> float:
    """Return the median of plain calls, one after the other."""
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    taken = []
    for _ in range(CALLS if device.startswith("cuda") else 3):
        wait()
        began = time.perf_counter()
        program(*inputs)
        wait()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def judged(task: Task, device: str, secret: int) -> dict[str, Any]:
    """Return the row of a task: of each program the worst ratio over the cases, before and now, and whether it may be a baseline."""
    began = time.monotonic()
    original = Original(task, device, secret, 1 << 30)
    original.mutates_state = original.mutates_inputs = False
    can = bool(tf32.permitted())
    kinds = programs(original)
    worst: dict[str, dict[str, float]] = {name: {"before": 0.0, "now": 0.0} for name in kinds}
    failed: dict[str, set[str]] = {f"{name} {when}": set() for name in kinds for when in ("before", "now")}
    seconds: dict[str, float] = {}
    with torch.no_grad():
        for number, name in enumerate(CASES):
            case = Case(name, secret + number)
            inputs = original.inputs(case)
            original.set_state(0)
            outputs = {kind: program(*inputs) for kind, program in kinds.items()}
            for when in ("before", "now"):
                answer = answers(original, case, can and when == "now")
                for kind, output in outputs.items():
                    ratio, check = excess_of(answer, output)
                    worst[kind][when] = max(worst[kind][when], ratio)
                    failed[f"{kind} {when}"] |= {check} - {""}
            if number == 0:
                seconds = {kind: median_seconds(program, inputs, device) for kind, program in kinds.items()}
    row: dict[str, Any] = {"table": "judged", "task": task.name}
    for kind in kinds:
        row |= {f"{kind} ms": round(seconds[kind] * 1e3, 4)}
        row |= {f"{kind} {when}": f"{worst[kind][when]:.2f}" + ("" if not failed[f"{kind} {when}"] else " refused") for when in ("before", "now")}
    row["changes"] = any(bool(failed[f"{kind} before"]) != bool(failed[f"{kind} now"]) for kind in kinds)
    row["units"] = ", ".join(f"{kind} {'TF32' if worst[kind]['now'] > TF32_SHARE else 'float32'}" for kind in kinds)
    return {**row, "seconds": round(time.monotonic() - began, 1)}


def tasks_of(root: Path, level: str, only: str, without: str, scale: float) -> Iterator[Task]:
    """Yield the tasks of a level whose number is in `only`, or all, but those of `without`."""
    numbers, others = set(filter(None, only.split(","))), set(without.split(","))
    for path, entry in bench.find_tasks([root / f"level{level}"], None):
        number = Path(path).stem.partition("_")[0]
        if (not numbers or number in numbers) and number not in others:
            task = taskfile.describe(path, entry, scale)
            yield replace(task, name=f"level{level}_{Path(path).stem}")


def row_of(task: Task, device: str, secret: int, end: float) -> dict[str, Any]:
    """Return the row of a task, whatever becomes of it; in its own process where several are judged at once. `end`: by `time.time()`."""
    warnings.simplefilter("ignore")
    if time.time() > end:
        return {"task": task.name, "left out": "no time"}
    try:
        return judged(task, device, secret)
    except Exception:  # one task that does not run leaves the others
        return {"task": task.name, "error": traceback.format_exc()[-600:]}
    finally:
        torch._dynamo.reset()
        if device.startswith("cuda"):
            torch.cuda.empty_cache()


def rows_of(tasks: list[Task], device: str, secret: int, end: float, jobs: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of tasks, so many of them judged at once; what found no memory beside so many is judged beside fewer, and at last alone."""
    if jobs <= 1:
        for task in tasks:
            yield row_of(task, device, secret, end)
        return
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    again = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        asked = {pool.submit(row_of, task, device, secret, end): task for task in tasks}
        for done in as_completed(asked):
            row = done.result()
            if "OutOfMemory" in row.get("error", "") and time.time() < end:
                again.append(asked[done])
            else:
                yield row
    yield from rows_of(again, device, secret, end, jobs // 4)


def main() -> None:
    """Write a row for each task."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kernelbench", type=Path, required=True)
    parser.add_argument("--levels", default="2")
    parser.add_argument("--only", default="", help="numbers of tasks, joined by commas")
    parser.add_argument("--without", default="", help="numbers of tasks that are left out, joined by commas")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--device", default="", help="where to judge; without one the operators are listed")
    parser.add_argument("--secret", type=int, default=20240607)
    parser.add_argument("--jobs", type=int, default=1, help="tasks at once, on a device")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no task is begun")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    given.out.mkdir(parents=True, exist_ok=True)
    end = time.time() + given.limit

    def write(row: dict[str, Any]) -> None:
        with (given.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    when = datetime.now(UTC).isoformat(timespec="seconds")
    write({"part": "conditions", "when": when, "jobs": given.jobs, **device_facts(given.device or "cpu")})
    root = given.kernelbench / "KernelBench" if (given.kernelbench / "KernelBench").is_dir() else given.kernelbench
    for level in given.levels.split(","):
        chosen: list[tuple[int, Task]] = []
        for task in tasks_of(root, level, given.only, given.without, given.scale):
            try:
                seen, largest = operators(task)
            except Exception:
                write({"task": task.name, "error": traceback.format_exc()[-600:]})
                continue
            chosen += [(largest, task)] if seen else []
            if seen and not given.device:
                write({"table": "operators", "task": task.name, "operators": ", ".join(f"{n} x {name}" for name, n in seen.items())})
        if given.device:
            ordered = [task for _, task in sorted(chosen, key=lambda pair: pair[0])]
            for row in rows_of(ordered, given.device, given.secret, end, given.jobs):
                write(row)
        else:
            write({"table": "levels", "level": level, "tasks with such operators": len(chosen)})


if __name__ == "__main__":
    main()
