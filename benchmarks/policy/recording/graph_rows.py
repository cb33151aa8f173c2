"""Action data of the graph domain from a GPU: many recipes of many tasks, each compared with float64 and timed by a probe.

    python -m benchmarks.policy.recording.graph_rows --out OUT --large 300 --limit 70
    python -m benchmarks.policy.recording.graph_rows --out OUT --files FOLDER,FOLDER --most 40 --jobs 5 --limit 70

`--large` are random programs of a GPU's sizes (learn/policy/random_tasks.py): none of KernelBench is among them. `--files` are folders of task files.
Which recipes: choice.py; none with torch.compile, which takes tens of seconds, nor with a template in Triton. What is right and how fast: probe.py.
Programs are made and their kernels compiled side by side, checked side by side and timed one at a time. OUT/tasks.jsonl has a line for each task
as soon as it is done, with all of its recipes (records.py reads them); what a task had when the time was up is written too. A `--most` of hundreds
records spaces that are larger than a budget. `--dry` runs all paths on the CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import spawned
from benchmarks.kernelbench.first import DRY_SCALE, rewritten
from benchmarks.policy.recording import probe
from benchmarks.policy.recording.choice import LEFT_OUT, Chosen, chosen
from warpwright.learn.policy import random_tasks

SLOWEST = 60e-3
"""Seconds of the original above which a task is left out."""

AT_ONCE, AT_ONCE_BYTES = 16, 1.5e9
"""Programs, and bytes of GPU memory that they hold, which are compiled and checked before they are timed."""

LAST = 8.0
"""Seconds before the end after which a task begins no further part, so that its line is written."""

TRIES, AGAIN_SECONDS = 3, 2.0
"""How often a task is begun that finds too little memory free, and how long after."""


def main() -> None:
    """Write tasks.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--large", type=int, default=0, help="random programs")
    parser.add_argument("--first", type=int, default=0, help="number of the first random program")
    parser.add_argument("--files", default="", help="folders of task files, comma-separated")
    parser.add_argument("--most", type=int, default=28, help="programs of a task at most (%(default)s)")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--limit", type=float, default=70.0, help="seconds after which the run ends, whatever is left")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    end = time.monotonic() + options.limit
    options.out.mkdir(parents=True, exist_ok=True)
    jobs = listed(options)
    left = set(jobs)
    with (options.out / "tasks.jsonl").open("a") as out:
        for line in spawned.lines(work, [(job, 1) for job in jobs], options.jobs, end, options, end - LAST):
            left.discard(line["file"])
            out.write(json.dumps(line) + "\n")
            out.flush()
            shown = {name: line[name] for name in ("task", "reason", "eager us", "again us", "chosen s", "held s") if name in line}
            print(f"{options.limit - (end - time.monotonic()):.0f} s", shown, len(line.get("programs", ())), "programs", flush=True)
            if not left:
                break
        out.write(json.dumps({"not reached": sorted(left)}) + "\n")


def alone_on_a_core() -> None:
    """Have this process compute without gradients, in one thread, and in silence."""
    warnings.simplefilter("ignore")
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(1)


def listed(options: argparse.Namespace) -> list[str]:
    """Return the task files, those of each folder spread evenly: what is cut off is a part of each."""
    sizes: random_tasks.Sizes = "small" if options.dry else "large"
    groups = [random_tasks.write(options.out / "large", options.large, options.first, sizes)] if options.large else []
    groups += [sorted(Path(folder).glob("*.py")) for folder in options.files.split(",") if folder]
    placed = [((number + 0.5) / len(files), str(file)) for files in groups for number, file in enumerate(files)]
    return [file for _, file in sorted(placed, key=lambda pair: pair[0])]


def work(todo: Any, lines: Any, options: argparse.Namespace, end: float) -> None:
    """Do tasks until none is left. An error that ends the GPU's context ends this process: others take what is left."""
    import torch

    alone_on_a_core()
    for file, tries in spawned.taken(todo, end):
        line: dict[str, Any] = {"file": file}
        again = False
        try:
            record(Path(file), options, end, line)
        except Exception as error:  # one task must not end the others
            line["reason"] = f"{type(error).__name__}: {error}"[:600]
            again = isinstance(error, torch.OutOfMemoryError) and tries < TRIES
        if "CUDA error" not in line.get("reason", ""):
            spawned.free()
        if again:  # others hold the memory
            time.sleep(AGAIN_SECONDS)
            todo.put((file, tries + 1))
        else:
            lines.put(line)
        if "CUDA error" in line.get("reason", ""):
            return


def record(file: Path, options: argparse.Namespace, end: float, line: dict[str, Any]) -> None:
    """Fill in the line of a task: what it is, its recipes, and what became of each program."""
    import torch

    from warpwright.policy.words import program_words

    began = time.monotonic()
    task, space, reference = opened(file, options.dry)
    found = chosen(space, options.most)
    line |= {"task": task.name, "key": task.key, "limited": space.limited, "chosen s": round(time.monotonic() - began, 1)}
    line["words"] = program_words(space, [*space.actions(space.start), *(action for recipe in found.recipes for action in recipe)])
    line["recipes"] = [[program, *found.numbered(recipe)] for recipe, program in found.recipes.items()]
    line["actions"] = list(found.actions)
    line["estimated us"] = [round(1e6 * space.estimate(space.replay(recipe)), 2) for recipe in found.recipes] if space.estimate else []
    firsts = {program: recipe for recipe, program in reversed(found.recipes.items())}
    makers = _makers(space, found, firsts, options.dry)
    turns = probe.Turns(options.out)
    line["device"] = "cpu" if options.dry else torch.cuda.get_device_name()
    model, inputs, truth = placed(reference, turns, options.dry)
    with turns.timing():
        eager = probe.seconds(partial(model, *inputs))
        if not options.dry and not (options.out / "rate.json").is_file():
            (options.out / "rate.json").write_text(json.dumps({"device": line["device"], "copy GB/s": round(probe.copy_rate() / 1e9, 1)}) + "\n")
    line |= {"moved": truth.moved, "eager us": round(1e6 * eager, 2)}
    if eager > SLOWEST:
        line["reason"] = f"the original takes {eager:.3f} s"
        return
    programs: list[list[Any]] = [["ok", line["eager us"]]]
    line["programs"] = programs
    for part in _parts(makers, model, reference, truth, turns, end):
        with turns.timing():
            programs += [[told, None] if program is None else ["ok", round(1e6 * _timed(program, inputs), 2)] for told, program in part]
            line["again us"] = round(1e6 * probe.seconds(partial(model, *inputs)), 2)
        part.clear()
    line["held s"] = round(time.monotonic() - began, 1)


def opened(file: Path, dry: bool) -> tuple[Any, Any, Any]:
    """Return a task, its space without what is left out, and its original."""
    from warpwright.run import Settings, open_space
    from warpwright.tasks import taskfile

    task = Settings(device="cuda", scale=DRY_SCALE if dry else 1.0).describe(file)
    whole, reference = open_space(task, "cuda"), taskfile.load(task)
    without = (*LEFT_OUT, "cuda_graph") if dry else LEFT_OUT
    return task, replace(whole, techniques=[one for one in whole.techniques if one.name not in without]), reference


def placed(reference: Any, turns: probe.Taken, dry: bool) -> tuple[Any, Any, probe.Truth]:
    """Return an original's model and inputs on the GPU, and what is right."""
    import torch

    device = "cpu" if dry else "cuda"
    with turns.checking():
        with torch.device(device):
            torch.manual_seed(0)
            model = reference.make_model().to(device)
        inputs = reference.make_inputs(0, device)
        return model, inputs, probe.Truth(model, inputs)


def _timed(program: Any, inputs: Any) -> float:
    return probe.seconds(partial(program, *inputs))


Maker = Callable[[Any, Any], Any]
"""Makes a program with the state of a model."""


def _makers(space: Any, found: Chosen, firsts: dict[int, Any], dry: bool) -> Iterator[Maker]:
    """Yield what makes each program but the original, in order, compiled when it is asked for."""
    for number in range(1, len(found.texts)):
        yield partial(rewritten_on, space, firsts[number]) if dry else compiled(found.texts[number])


def rewritten_on(space: Any, recipe: Any, model: Any, reference: Any) -> Any:
    return rewritten(space, recipe, model, reference, "cpu", True)


def compiled(text: str) -> Maker:
    """Return what makes a program with a model's state; its kernels are compiled now, before the GPU is ours."""
    path = Path(tempfile.mkdtemp(prefix="rows_")) / "optimized.py"
    path.write_text(text)
    names: dict[str, Any] = {"__name__": "generated", "__file__": str(path)}
    try:
        exec(compile(text, str(path), "exec"), names)
        if "CUDA_KERNELS" in names:
            names["CUDA_KERNELS"].machine_code("90")
    except Exception as error:  # this program is a failure, the others are not
        return partial(_fail, f"{type(error).__name__}: {error}")

    def made(model: Any, reference: Any) -> Any:
        import torch

        with torch.device("cuda"):
            new = names["ModelNew"](*reference.init_inputs).train(model.training)
        new.load_state_dict(model.state_dict())
        return new

    return made


def _fail(reason: str, model: Any, reference: Any) -> Any:
    raise RuntimeError(reason)


def _parts(
    makers: Iterator[Maker], model: Any, reference: Any, truth: probe.Truth, turns: probe.Taken, end: float
) -> Iterator[list[tuple[str, Any]]]:
    """Yield what is wrong with some programs and the right ones among them, as many at a time as memory holds; none after the end."""
    import torch

    ready: list[Maker] = []
    while time.monotonic() < end:
        ready += islice(makers, AT_ONCE - len(ready))  # compiled while others have the GPU
        if not ready:
            return
        part: list[tuple[str, Any]] = []
        with turns.checking():
            held = torch.cuda.memory_allocated() if torch.cuda.is_available() else 0
            while ready and (not torch.cuda.is_available() or torch.cuda.memory_allocated() - held < AT_ONCE_BYTES):
                part.append(checked(ready.pop(0), model, reference, truth))
        yield part


def checked(maker: Maker, model: Any, reference: Any, truth: probe.Truth) -> tuple[str, Any]:
    try:
        program = maker(model, reference)
        wrong = truth.wrong(program)
    except RuntimeError as error:
        if "CUDA error" in str(error) or "out of memory" in str(error):
            raise
        return f"{type(error).__name__}: {error}"[:160], None
    return wrong, None if wrong else program


if __name__ == "__main__":
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    main()
