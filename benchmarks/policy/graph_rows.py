"""Action data of the graph domain from a GPU: many recipes of many tasks, each compared with float64 and timed by a probe, a row each.

    python -m benchmarks.policy.graph_rows --out OUT --large 120 --kernelbench ~/KernelBench --tasks 1:23,2:12 --folder outside [--dry]

The recipes of a task are those that random, evolve, the ladder and greedy propose in turns while the cost model answers them, each program once
(`proposals`); none with torch.compile, which takes tens of seconds, nor with a template in Triton. Programs are made and their kernels compiled side
by side; the GPU is one task's at a time. No verdicts: a program is `ok` where its error against float64, on the task's own inputs and on normal ones,
is at most twice the original's (or that of TF32 operands where the flags permit them), and its time is a median of batches of calls back to back, by
CUDA events. OUT/rows.jsonl has rows as `warpwright collect` writes them, the task's group in OUT/tasks.jsonl. `--dry` runs all paths on the CPU.
"""

from __future__ import annotations

import argparse
import copy
import fcntl
import gc
import json
import multiprocessing as mp
import os
import queue
import re
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from benchmarks.kernelbench.first import DRY_SCALE, flat, found, rewritten, rms
from benchmarks.policy.plain_rows import MACHINE, copy_rate
from benchmarks.timing.events import batch
from warpwright.learn.policy import random_tasks
from warpwright.learn.policy.rows import Row

TURNS = {"evolve": 96, "random": 48, "ladder": 12, "greedy": 24}
"""Proposals of each search from which a task's recipes are taken, in turns."""

LEFT_OUT = ("compile", "direct_convolution")
"""Techniques whose programs take seconds to build."""

BATCH_SECONDS, BATCHES = 2e-3, 5

SLOWEST = 60e-3
"""Seconds of the original above which a task is left out."""

ALLOWED = 2.0
"""Error over the original's."""

GROUPS = {"large": 12, "kernelbench": 44, "outside": 44}
"""Recipes of a task at most."""


@dataclass(frozen=True)
class Job:
    """A task and what it is for."""

    file: str
    group: str


def main() -> None:
    """Write rows.jsonl and tasks.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--large", type=int, default=0, help="random programs")
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--tasks", default="", help="level:number pairs, comma-separated")
    parser.add_argument("--folder", type=Path, help="folder of outside tasks")
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=150.0, help="the run ends after that many, whatever is left")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    options.out.mkdir(parents=True, exist_ok=True)
    jobs = listed(options)
    context = mp.get_context("spawn")
    todo, rows = context.Queue(), context.Queue()
    for job in jobs:
        todo.put(job)
    workers = [context.Process(target=work, args=(todo, rows, options, end), daemon=True) for _ in range(min(options.jobs, len(jobs)))]
    for worker in workers:
        worker.start()
    left = {job.file for job in jobs}
    with (options.out / "rows.jsonl").open("a") as out, (options.out / "tasks.jsonl").open("a") as tasks:
        while left and time.monotonic() < end and (any(worker.is_alive() for worker in workers) or not rows.empty()):
            try:
                line = rows.get(timeout=0.5)
            except queue.Empty:
                continue
            if "done" in line:
                left.discard(line["done"])
                tasks.write(json.dumps(line) + "\n")
                tasks.flush()
                shown = {name: value for name, value in line.items() if name != "estimates"}
                print(f"{options.seconds - (end - time.monotonic()):.0f} s", shown, flush=True)
            else:
                out.write(json.dumps(line) + "\n")
                out.flush()
        for name in sorted(left):
            tasks.write(json.dumps({"left out": name, "reason": "the time was over"}) + "\n")
    for worker in workers:
        worker.terminate()


def listed(options: argparse.Namespace) -> list[Job]:
    """Return the tasks, those of each group spread evenly: what is cut off is a part of each."""
    sizes: random_tasks.Sizes = "small" if options.dry else "large"
    large = random_tasks.write(options.out / "large", options.large, 0, sizes)
    own = [file for name in filter(None, options.tasks.split(",")) for file in found(options.kernelbench, name)]
    outside = sorted(options.folder.glob("*.py")) if options.folder else []
    placed = [
        ((number + 0.5) / len(files), Job(str(file), group))
        for group, files in (("large", large), ("kernelbench", own), ("outside", outside)) for number, file in enumerate(files)
    ]  # fmt: skip
    return [job for _, job in sorted(placed, key=lambda pair: pair[0])]


def work(todo: Any, rows: Any, options: argparse.Namespace, end: float) -> None:
    """Do tasks until none is left. An error that ends the GPU's context ends this process: others take what is left."""
    warnings.simplefilter("ignore")
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    while time.monotonic() < end:
        try:
            job = todo.get_nowait()
        except queue.Empty:
            return
        told: dict[str, Any] = {"done": job.file, "group": job.group}
        try:
            for row in task_rows(job, options, end, told):
                rows.put(asdict(row))
        except Exception as error:  # one task must not end the others
            told["reason"] = f"{type(error).__name__}: {error}"[:600]
        rows.put(told)
        gc.collect()
        if torch.cuda.is_available():
            if "CUDA error" in told.get("reason", ""):
                return
            torch.cuda.empty_cache()


# --- what is tried ---------------------------------------------------------------------------------------------------------------------


def proposals(space: Any, count: int) -> list[Any]:
    """Return up to `count` recipes of distinct programs: what several searches propose, in turns, with the cost model's answers."""
    lines = [list(_proposed(name, space, most)) for name, most in TURNS.items()]
    recipes: dict[str, Any] = {}
    for recipe in (recipe for turn in zip_longest(*lines) for recipe in turn if recipe):
        recipes.setdefault(body(space.candidate(recipe).source.text), recipe)
        if len(recipes) == count:
            break
    return list(recipes.values())


def _proposed(name: str, space: Any, most: int) -> Iterator[Any]:
    from warpwright.search import SEARCHES

    start = space.estimate(space.start) or 1.0
    proposer = SEARCHES[name](space, Random(0), 1)
    try:
        asked, seen = next(proposer), 0
        while seen < most:
            yield from asked
            seen += len(asked)
            asked = proposer.send([SimpleNamespace(status="ok", speedup=_estimated(space, start, one)) for one in asked])  # type: ignore[misc]
    except StopIteration:
        pass
    finally:
        proposer.close()


def _estimated(space: Any, start: float, recipe: Any) -> float:
    seconds = space.estimate(space.replay(recipe))
    return float(start / seconds) if seconds else 1.0


def estimates(space: Any, recipes: Sequence[Any]) -> dict[str, float]:
    """Return the cost model's seconds of each recipe and each of its beginnings, by their text."""
    steps = {recipe[:length] for recipe in recipes for length in range(len(recipe) + 1)}
    return {"; ".join(map(str, step)): space.estimate(space.replay(step)) for step in sorted(steps, key=lambda step: [*map(str, step)])}


def body(text: str) -> str:
    """Return a program's text without its comments, which name the recipe."""
    return re.sub(r"(?m)^\s*#.*\n", "", text)


# --- one task --------------------------------------------------------------------------------------------------------------------------


def task_rows(job: Job, options: argparse.Namespace, end: float, told: dict[str, Any]) -> Iterator[Row]:
    """Yield a row for the original and for each recipe of a task."""
    import torch

    from warpwright.policy.words import program_words
    from warpwright.run import Settings, open_space
    from warpwright.tasks import taskfile

    began = time.monotonic()
    task = Settings(device="cuda", scale=DRY_SCALE if options.dry and job.group == "kernelbench" else 1.0).describe(Path(job.file))
    whole, reference = open_space(task, "cuda"), taskfile.load(task)
    without = (*LEFT_OUT, "cuda_graph") if options.dry else LEFT_OUT
    space = replace(whole, techniques=[one for one in whole.techniques if one.name not in without])
    recipes = proposals(space, GROUPS[job.group])
    told |= {"task": task.name, "recipes": len(recipes), "limited": space.limited, "chosen s": round(time.monotonic() - began, 1)}
    if not recipes:
        return
    told["estimates"] = estimates(space, recipes)
    compiled = [] if options.dry else [_compiled(space, recipe) for recipe in recipes]
    told["compiled s"] = round(time.monotonic() - began, 1)
    with _alone(options.out / "lock"):
        if time.monotonic() > end:
            return
        held = time.monotonic()
        device = "cpu" if options.dry else "cuda"
        with torch.device(device):
            torch.manual_seed(0)
            model = reference.make_model().to(device)
        inputs = reference.make_inputs(0, device)
        truth = Truth(model, inputs)
        eager = _seconds(model, inputs)
        if eager > SLOWEST:
            told["reason"] = f"the original takes {eager:.3f} s"
            return
        words = program_words(space, [*space.actions(space.start), *(action for recipe in recipes for action in recipe)])
        own = (task.name, task.key, "cpu" if options.dry else MACHINE, words, round(truth.moved / copy_rate() / eager, 4))
        yield Row(*own, (), "ok", 1.0, 0.0, 0.0, eager, eager)
        for number, recipe in enumerate(recipes):
            about = (*own, tuple(map(str, recipe)))
            try:
                program = rewritten(space, recipe, model, reference, True) if options.dry else compiled[number](model, reference)
                wrong = truth.wrong(program)
                seconds = 0.0 if wrong else _seconds(program, inputs)
            except RuntimeError as error:
                if "CUDA error" in str(error):
                    raise
                wrong, seconds = f"{type(error).__name__}: {error}"[:200], 0.0
            program = None
            status = "wrong" if wrong else "ok"
            yield Row(*about, status, 0.0 if wrong else eager / seconds, 0.0, 0.0, seconds, eager, check=wrong)
        told |= {"eager ms": round(1e3 * eager, 3), "again ms": round(1e3 * _seconds(model, inputs), 3), "held s": round(time.monotonic() - held, 2)}


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a file's lock; the kernel lets go of it when a process dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compiled(space: Any, recipe: Any) -> Callable[[Any, Any], Any]:
    """Return what makes the program of a recipe with a model's state; its kernels are compiled now, before the GPU is ours."""
    text = space.candidate(recipe).source.text
    path = Path(tempfile.mkdtemp(prefix="rows_")) / "optimized.py"
    path.write_text(text)
    names: dict[str, Any] = {"__name__": "generated", "__file__": str(path)}
    exec(compile(text, str(path), "exec"), names)
    if "CUDA_KERNELS" in names:
        names["CUDA_KERNELS"].machine_code("90")

    def made(model: Any, reference: Any) -> Any:
        import torch

        with torch.device("cuda"):
            new = names["ModelNew"](*reference.init_inputs).train(model.training)
        new.load_state_dict(model.state_dict())
        return new

    return made


class Truth:
    """What a task's results are in float64, on its own inputs and on normal ones, and how far the original errs."""

    def __init__(self, model: Any, inputs: Sequence[Any]) -> None:
        import torch

        from warpwright.verifier.judge import tf32

        torch.manual_seed(1)
        normal = [torch.randn_like(x) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
        self.state = copy.deepcopy(model.state_dict())
        self.kinds: list[tuple[Sequence[Any], list[Any], float]] = []
        wider = copy.deepcopy(model).double()
        for given in (inputs, normal):
            model.load_state_dict(self.state)
            wider.load_state_dict(self.state)
            wide = [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in given]
            seen, exact = flat(model(*given)), flat(wider(*wide))
            errors = [rms(x, y) for x, y in zip(seen, exact, strict=True)]
            if seen[0].is_cuda:
                wider.load_state_dict(self.state)
                with tf32.RoundedOperands(tf32.permitted()) as rounding:
                    rounded = flat(wider(*wide))
                errors += [rms(x, y) for x, y in zip(rounded, exact, strict=True)] if rounding.count else []
            scale = max(float(x.nan_to_num(0.0, 0.0, 0.0).abs().max()) for x in exact)
            self.kinds.append((given, exact, max(*errors, 1e-8 * scale, 1e-30)))
            self.moved = sum(x.nbytes for x in [*flat(list(given)), *seen, *model.parameters()])
        model.load_state_dict(self.state)

    def wrong(self, program: Any) -> str:
        """Return what is wrong with a program's results, or ""."""
        import torch

        for given, exact, own in self.kinds:
            program.load_state_dict(self.state)
            if hasattr(program, "fits") and not program.fits(list(given)):
                return "does not fit the guard"
            seen = flat(program(*given))
            if any(x.shape != y.shape or not torch.equal(x.isnan(), y.isnan()) for x, y in zip(seen, exact, strict=True)):
                return "shapes or NaN"
            ratio = max(rms(x, y) for x, y in zip(seen, exact, strict=True)) / own
            if ratio > ALLOWED:
                return f"error {ratio:.3g} of the original's"
        program.load_state_dict(self.state)
        return ""


def _seconds(program: Any, inputs: Sequence[Any]) -> float:
    """Return the seconds of a call: the median of batches back to back."""
    import torch

    call = partial(program, *inputs)
    call(), call()
    if not torch.cuda.is_available():
        times = []
        for _ in range(BATCHES):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        return statistics.median(times)
    torch.cuda.synchronize()
    count = max(2, min(100, int(BATCH_SECONDS / max(batch(call, 2), 1e-6))))
    return statistics.median(batch(call, count) for _ in range(BATCHES))


if __name__ == "__main__":
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    main()
