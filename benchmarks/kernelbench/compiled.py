"""The ladder's first programs of KernelBench tasks, compiled for an H200 where there is none: what a run on one would find wrong in its first second.

    python -m benchmarks.kernelbench.compiled --kernelbench ~/KernelBench --out OUT [--tasks 1:1,2:43 | FILES | FOLDERS] [--precision tf32]
    python -m benchmarks.kernelbench.compiled --cuda-l1 CUDA-L1/optimized_cuda_code/h100.json --out OUT       the tasks at the release's (v0) sizes

The programs are those of `benchmarks.kernelbench.first`, called on meta tensors, so that sizes cost nothing; each launch is compiled as its launcher
would have it (`benchmarks.kernels.without_gpu`). OUT/rows.jsonl gets a row a launch (registers, local and shared memory, seconds of compiling, and
what is wrong with it) and a row a program; tasks whose programs have rows there are left out, so a run that was ended goes on. What is compiled is
kept in OUT/cache. A program that asks for the value of a tensor cannot be called so: its row says `not reached`, which is no fault.

Nothing is said of speed, nor of results.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.kernelbench import cuda_l1_release as release
from benchmarks.kernelbench import first

Row = dict[str, Any]

VALUES = (
    "meta tensor", "Meta", "data-dependent", "DynamicOutputShape", "GuardOnDataDependent", "'aten::_local_scalar_dense'", "libcuda.so.1", "got: meta",
)  # fmt: skip
"""Parts of what is said where a meta tensor's value is asked for, or the driver itself."""
LEFT_OUT = ("compile(", "cuda_graph(", "channels_last(")
"""Actions whose programs nobody can call without a GPU; what stands before and after them is a program too."""


def main() -> None:
    """Write rows.jsonl."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    cache = options.out.resolve() / "cache"
    os.environ |= {"TRITON_CACHE_DIR": str(cache / "triton"), "WARPWRIGHT_CACHE": str(cache / "cuda")}
    warnings.simplefilter("ignore")
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    first.permit_tf32(options.precision)
    path, end = options.out / "rows.jsonl", time.monotonic() + options.seconds
    done = {(row["task"], row["precision"]) for row in read(path) if row["table"] == "task"}
    with path.open("a") as out, tempfile.TemporaryDirectory() as folder:
        for name, file in files(options, Path(folder)):
            if (name, options.precision) in done:
                continue
            if time.monotonic() > end:
                break
            for row in task_rows(name, file, options):
                out.write(json.dumps(row | {"precision": options.precision}) + "\n")
                out.flush()
                if row["table"] != "launch" or row["problems"] or row["local_bytes"]:
                    print(row, flush=True)
    print(summary(read(path)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--kernelbench", type=Path)
    where.add_argument("--cuda-l1", type=Path, help="the release's file of a GPU's programs: tasks at v0 sizes")
    parser.add_argument("--out", required=True, type=Path)
    tasks = "level:number pairs, files or folders, comma-separated; default: all, in an order drawn by --seed"
    parser.add_argument("--tasks", default="", help=tasks)
    parser.add_argument("--seed", type=int, default=811)
    parser.add_argument("--precision", choices=("strict", "tf32"), default="strict")
    parser.add_argument("--proposals", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9, help="no task is begun after so many")
    return parser.parse_args()


def read(path: Path) -> list[Row]:
    """Return the rows of a file; none where there is none."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def files(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (name, task file) of what was asked for."""
    if options.cuda_l1:
        known = release.rows(options.cuda_l1, "h100")
        pairs = [pair for pair in known if not options.tasks or f"{pair[0]}:{pair[1]}" in options.tasks.split(",")]
        for pair in random.Random(options.seed).sample(pairs, len(pairs)):
            program = release.written(known[pair], folder)
            yield f"v0 {program.name}", program.task
        return
    if options.tasks:
        found = [file for name in options.tasks.split(",") for file in first.found(options.kernelbench, name)]
    else:
        root = options.kernelbench / "KernelBench" if (options.kernelbench / "KernelBench").is_dir() else options.kernelbench
        every = sorted(root.glob("level[123]/*.py"))
        found = random.Random(options.seed).sample(every, len(every))
    for file in found:
        yield first.name_of(file), file


def task_rows(name: str, file: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each launch of each of a task's first programs, one for each program, and one for the task."""
    from warpwright.run import Settings, open_space
    from warpwright.tasks import taskfile

    began = time.monotonic()
    row: Row = {"table": "task", "task": name, "reason": ""}
    try:
        task = Settings(device="cuda", precision=options.precision).describe(file)
        space, reference = open_space(task, "cuda"), taskfile.load(task)
        recipes = list(dict.fromkeys(map(without_a_gpu, first.first(space, options.proposals, LEFT_OUT))))
        for recipe in recipes:
            yield from program_rows(name, space, recipe, reference)
        row["programs"] = len(recipes)
    except Exception as error:  # one task must not end the others
        row["reason"] = said(error)
    yield row | {"seconds": round(time.monotonic() - began, 1)}


def without_a_gpu(recipe: Any) -> tuple[Any, ...]:
    """Return a recipe without the actions that nobody can call here, wherever they stand in it."""
    return tuple(action for action in recipe if not str(action).startswith(LEFT_OUT))


def program_rows(name: str, space: Any, recipe: Any, reference: Any) -> Iterator[Row]:
    """Yield a row for each launch of a program that differs from those before, and one for the program."""
    from benchmarks.kernels.without_gpu import Record

    began, record, program = time.monotonic(), Record(), "; ".join(map(str, recipe))
    row: Row = {"table": "program", "task": name, "recipe": program, "reason": "", "not reached": False}
    try:
        called(space.lower(space.replay(recipe), recipe).source.text, reference, record)
    except Exception as error:
        row["reason"], row["not reached"] = said(error), any(part in str(error) for part in VALUES)
    for launch in record.launches:
        yield {"table": "launch", "task": name, "recipe": program} | launch.row()
    yield row | {"launches": record.count, "seconds": round(time.monotonic() - began, 1)}


def called(text: str, reference: Any, record: Any) -> None:
    """Call a program's text on meta tensors, its state and inputs as the reference makes them, and take down its launches.

    RuntimeError where the program does not take the call, or where a table of launches does not fit its kernels.
    """
    import torch

    from benchmarks.kernels.without_gpu import CudaWithoutGpu, recorded, tables_of

    text = text.replace('"device": "cuda"', '"device": "meta"').replace('device="cuda"', 'device="meta"')
    path = Path(tempfile.mkdtemp(prefix="compiled_")) / "optimized.py"  # Triton reads its kernels' text from the file
    path.write_text(text)
    names: dict[str, Any] = {"__name__": "generated", "__file__": str(path)}
    exec(compile(text, str(path), "exec"), names)
    if "CUDA_KERNELS" in names:
        names["CUDA_KERNELS"] = made = CudaWithoutGpu(names["CUDA_KERNELS"], record)
        for table, plan in names.items():
            if table.endswith("_table"):
                plan.kernels = made
    wrong = list(tables_of(names))
    if wrong:
        raise RuntimeError(f"a table of launches does not fit its kernels: {wrong}")
    with torch.device("meta"):
        model = names["ModelNew"](*reference.init_inputs).to("meta").train(reference.make_model().training)
    inputs = reference.make_inputs(0, "meta")
    with recorded(record):
        misfit = names["_Watch"].of(model, names["VERIFIED"]).misfit(inputs) if "_Watch" in names else None
        if misfit is not None:
            raise RuntimeError(f"the program does not take its own task's call: {misfit}")
        model(*inputs)


def said(error: Exception) -> str:
    """Return an error's kind and text, and where it was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {str(error)[-700:]} ({Path(frame.filename).name}:{frame.lineno} {frame.name})"


def summary(rows: list[Row]) -> str:
    """Return what the rows come to."""
    programs, launches = ([row for row in rows if row["table"] == table] for table in ("program", "launch"))
    kinds = {(row["kernel"], row["language"], row["threads"], row["registers"], row["shared_bytes"], row["local_bytes"]) for row in launches}
    lines = [f"{sum(row['table'] == 'task' for row in rows)} tasks, {len(programs)} programs, {sum(row['launches'] for row in programs)} launches"]
    lines.append(f"{len(kinds)} kinds of kernels by name and needs; {len({kind for kind in kinds if kind[-1]})} of them have local memory")
    lines += [f"wrong: {row['task']}: {row['kernel']}: {row['problems']}" for row in launches if row["problems"]]
    lines += [f"failed: {row['task']}: {row.get('recipe', '')}: {row['reason']}" for row in rows if row.get("reason") and not row.get("not reached")]
    lines.append(f"not reached: {sum(row['not reached'] for row in programs)} programs")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
